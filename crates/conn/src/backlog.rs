//! The inbound budget: bytes that were read and are not used yet.
//!
//! A connection whose messages are queued for slow consumers must stop reading at some point. But a
//! reader that pauses while a task waits for a response on the same connection is a deadlock. So
//! **the reader pauses only while no task waits for it**: a task that waits for a message holds a
//! guard. Above a hard limit the reader pauses in any case.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

/// Counts bytes that are queued inside the program and tasks that wait for more. Clones share the
/// counts.
///
/// Example: a [tap](crate::Link::tap) that queues lines adds their bytes, and the consumer of the
/// queue removes them again:
///
/// ```
/// use attache_conn::Backlog;
///
/// fn enqueue(backlog: &Backlog, queue: &mut Vec<Vec<u8>>, line: &[u8]) {
///     backlog.add(line.len());
///     queue.push(line.to_owned());
/// }
///
/// fn dequeue(backlog: &Backlog, queue: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
///     queue.pop().inspect(|line| backlog.sub(line.len()))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Backlog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    soft: usize,
    hard: usize,
    queued: AtomicUsize,
    waiting: AtomicUsize,
    /// Whether `reader` holds a waker. The reader sets this and then loads the counts; all others
    /// change a count and then load this. Sequential consistency guarantees that one of the two
    /// sees the other.
    paused: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

impl Backlog {
    pub(crate) fn new(soft: usize, hard: usize) -> Self {
        Backlog(Arc::new(Inner {
            soft,
            hard,
            queued: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            paused: AtomicBool::new(false),
            reader: Mutex::new(None),
        }))
    }

    /// Adds queued bytes. A dispatch calls it, and it takes effect before the next line is read.
    pub fn add(&self, bytes: usize) {
        self.0.queued.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Removes bytes that were used.
    pub fn sub(&self, bytes: usize) {
        self.0.queued.fetch_sub(bytes, Ordering::SeqCst);
        self.wake_reader();
    }

    /// Returns the number of queued bytes.
    pub fn queued(&self) -> usize {
        self.0.queued.load(Ordering::SeqCst)
    }

    /// Keeps the reader running for as long as the returned guard lives.
    pub fn waiting(&self) -> Waiting {
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        self.wake_reader();
        Waiting(self.clone())
    }

    /// Whether the reader has to pause.
    pub fn is_full(&self) -> bool {
        let queued = self.queued();
        queued > self.0.hard || (queued > self.0.soft && self.0.waiting.load(Ordering::SeqCst) == 0)
    }

    /// Whether the reader has to pause; if so, its task is woken when that changes.
    pub(crate) fn pause(&self, cx: &Context<'_>) -> bool {
        if !self.is_full() {
            return false;
        }
        *self.reader() = Some(cx.waker().clone());
        self.0.paused.store(true, Ordering::SeqCst);
        if self.is_full() {
            return true;
        }
        self.0.paused.store(false, Ordering::SeqCst);
        false
    }

    fn wake_reader(&self) {
        if self.0.paused.load(Ordering::SeqCst) && !self.is_full() {
            self.0.paused.store(false, Ordering::SeqCst);
            let waker = self.reader().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn reader(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.0.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a task that waits for a message; see [`Backlog::waiting`].
///
/// ```
/// use attache_conn::Backlog;
///
/// async fn receive(backlog: &Backlog, messages: &mut tokio::sync::mpsc::Receiver<Vec<u8>>) -> Option<Vec<u8>> {
///     let _waiting = backlog.waiting();
///     messages.recv().await
/// }
/// ```
#[derive(Debug)]
#[must_use = "the wait lasts as long as the guard"]
pub struct Waiting(Backlog);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
