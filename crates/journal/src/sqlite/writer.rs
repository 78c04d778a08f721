//! The thread that writes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use crate::backend::Changes;
use crate::error::{Error, Result};

/// The most bytes of waiting calls. Others wait for a permit, so the channel is bounded.
const QUEUE_BYTES: u32 = 32 << 20;
/// What a call takes of them besides the bytes of its page.
const CALL_BYTES: u32 = 1 << 10;
/// The most calls of one transaction.
const BATCH_CALLS: usize = 1024;
/// A transaction with this many bytes takes no further calls.
const BATCH_BYTES: u32 = 4 << 20;

/// The sending end of the thread. The thread ends when it is dropped.
pub(super) struct Writer {
    sender: Sender<Message>,
    budget: Arc<Semaphore>,
    changes: Option<watch::Receiver<u64>>,
}

enum Message {
    Call(Box<dyn Call>, u32),
    /// Sessions are followed from now on.
    Poll,
}

/// A call that waits for its transaction.
trait Call: Send {
    /// Runs the statements. Fails if the transaction cannot be used any more; may then be run again
    /// in another one.
    fn run(&mut self, connection: &Connection) -> Result<()>;
    /// Answers the caller after the end of the transaction.
    fn finish(self: Box<Self>, committed: Result<()>);
}

struct Pending<T, F> {
    work: F,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
    _permit: OwnedSemaphorePermit,
}

impl<T: Send, F: Fn(&Connection) -> Result<T> + Send> Call for Pending<T, F> {
    fn run(&mut self, connection: &Connection) -> Result<()> {
        let result = (self.work)(connection);
        let failed = match &result {
            Err(error @ (Error::Full | Error::Busy | Error::Damaged(_) | Error::Unavailable(_))) => {
                Err(error.clone())
            }
            _ => Ok(()),
        };
        self.result = Some(result);
        failed
    }

    fn finish(self: Box<Self>, committed: Result<()>) {
        let Pending { result, reply, .. } = *self;
        // The caller may have gone.
        let _ = reply.send(committed.and_then(|()| result.unwrap_or(Err(Error::Closed))));
    }
}

impl Writer {
    pub(super) fn start(connection: Connection, poll_interval: Option<Duration>) -> Result<Self> {
        let (sender, receiver) = channel();
        let changes = watch::Sender::new(0);
        let writer = Writer {
            sender,
            budget: Arc::new(Semaphore::new(QUEUE_BYTES as usize)),
            // The thread counts the other receivers.
            changes: poll_interval.map(|_| changes.subscribe()),
        };
        let thread =
            Thread { connection, receiver, changes, poll_interval, polled: Instant::now(), data_version: 0 };
        std::thread::Builder::new().name("journal-writer".into()).spawn(move || thread.run())?;
        Ok(writer)
    }

    /// Runs `work` in a transaction, possibly with other calls, and returns when it is committed.
    /// `bytes` are held in memory until then.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl Fn(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let bytes = u32::try_from(bytes).unwrap_or(QUEUE_BYTES).saturating_add(CALL_BYTES).min(QUEUE_BYTES);
        let permit = self.budget.clone().acquire_many_owned(bytes).await.map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Pending { work, result: None, reply, _permit: permit });
        self.sender.send(Message::Call(call, bytes)).map_err(|_| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Notices of commits by other processes.
    pub(super) fn changes(&self) -> Changes {
        let Some(changes) = &self.changes else { return Changes::none() };
        let changes = Changes::new(changes.clone(), None);
        // If the thread has ended, the notices are closed.
        let _ = self.sender.send(Message::Poll);
        changes
    }
}

struct Thread {
    connection: Connection,
    receiver: Receiver<Message>,
    changes: watch::Sender<u64>,
    poll_interval: Option<Duration>,
    polled: Instant,
    data_version: i64,
}

impl Thread {
    fn run(mut self) {
        loop {
            match self.receive() {
                Ok(Message::Call(call, bytes)) => {
                    let batch = self.batch(call, bytes);
                    self.commit(batch);
                    if self.poll_interval.is_some_and(|interval| self.polled.elapsed() >= interval) {
                        self.poll();
                    }
                }
                Ok(Message::Poll) | Err(RecvTimeoutError::Timeout) => self.poll(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits for a message; while sessions are followed, not longer than the poll interval.
    fn receive(&self) -> std::result::Result<Message, RecvTimeoutError> {
        match self.poll_interval {
            Some(interval) if self.changes.receiver_count() > 1 => self.receiver.recv_timeout(interval),
            _ => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// The first call and those that wait behind it.
    fn batch(&mut self, first: Box<dyn Call>, mut bytes: u32) -> Vec<Box<dyn Call>> {
        let mut batch = vec![first];
        while batch.len() < BATCH_CALLS && bytes < BATCH_BYTES {
            match self.receiver.try_recv() {
                Ok(Message::Call(call, more)) => {
                    bytes = bytes.saturating_add(more);
                    batch.push(call);
                }
                Ok(Message::Poll) => {}
                Err(_) => break,
            }
        }
        batch
    }

    /// Runs all calls in one transaction. If one of them breaks it, each gets a transaction of its
    /// own, so that others do not fail with it.
    fn commit(&self, mut batch: Vec<Box<dyn Call>>) {
        let together = self.transaction(&mut batch);
        let is_broken = matches!(&together, Err(error) if !matches!(error, Error::Busy));
        if is_broken && batch.len() > 1 {
            for call in batch {
                let mut alone = [call];
                let committed = self.transaction(&mut alone);
                alone.into_iter().for_each(|call| call.finish(committed.clone()));
            }
            return;
        }
        batch.into_iter().for_each(|call| call.finish(together.clone()));
    }

    fn transaction(&self, calls: &mut [Box<dyn Call>]) -> Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let done = calls.iter_mut().try_for_each(|call| call.run(&self.connection)).and_then(|()| {
            self.connection.prepare_cached("COMMIT")?.execute([])?;
            Ok(())
        });
        // Some errors have rolled it back already.
        if done.is_err()
            && !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the journal cannot roll back");
        }
        done
    }

    /// Notices commits of other connections.
    fn poll(&mut self) {
        self.polled = Instant::now();
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0));
        // A file that cannot be read is an error for the readers that are woken.
        let version = version.unwrap_or(-1);
        if std::mem::replace(&mut self.data_version, version) != version {
            self.changes.send_modify(|count| *count += 1);
        }
    }
}
