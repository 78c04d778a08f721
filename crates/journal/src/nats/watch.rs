//! Notices of messages that other nodes append.
//!
//! The server announces the new messages of a followed session by a consumer, because a plain
//! subscription may see a message before the stream has it. All followers of a session on this node
//! share one consumer. The server removes it when there is no listener.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::client::Event;
use super::record::{HEADER, Record, subject};
use super::stream::Stream;
use crate::backend::Changes;
use crate::key::SessionKey;
use crate::position::Epoch;

/// Without a message or a heartbeat for this long, the consumer is made again. The server sends a
/// heartbeat every second.
const SILENCE: Duration = Duration::from_secs(3);

/// The followed sessions of this node.
pub(super) struct Watches {
    stream: Stream,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    watches: Mutex<HashMap<SessionKey, Weak<Watch>>>,
    /// Claims of this node. Its followers get their pages directly.
    own: Mutex<HashMap<SessionKey, Epoch>>,
}

struct Watch {
    changes: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watches {
    pub(super) fn new(stream: Stream) -> Self {
        Watches { stream, shared: Arc::default() }
    }

    /// Leaves out the messages of a claim; with `None` all are noticed.
    pub(super) fn ignore(&self, key: &SessionKey, epoch: Option<Epoch>) {
        let mut own = self.shared.own.lock();
        match epoch {
            Some(epoch) => drop(own.insert(key.clone(), epoch)),
            None => drop(own.remove(key)),
        }
    }

    pub(super) fn watch(&self, key: &SessionKey) -> Changes {
        let mut watches = self.shared.watches.lock();
        let watch = watches.get(key).and_then(Weak::upgrade).unwrap_or_else(|| {
            watches.retain(|_, watch| watch.strong_count() > 0);
            let (sender, changes) = watch::channel(0);
            let run = run(self.stream.clone(), key.clone(), self.shared.clone(), Arc::new(sender));
            let watch = Arc::new(Watch { changes, task: tokio::spawn(run) });
            watches.insert(key.clone(), Arc::downgrade(&watch));
            watch
        });
        let mut changes = watch.changes.clone();
        // The consumer of another follower may have noticed something that this one has not read.
        changes.mark_changed();
        Changes::new(changes, Some(Box::new(watch)))
    }
}

/// Keeps a consumer for a session until it is aborted.
async fn run(stream: Stream, key: SessionKey, shared: Arc<Shared>, changes: Arc<watch::Sender<u64>>) {
    let mut tick = tokio::time::interval(SILENCE);
    loop {
        let (id, deliver) = stream.client.delivery_subject();
        let _subscription = Unsubscribe(&stream, id);
        let (is_alive, resubscribed) = (Arc::new(AtomicBool::new(true)), Arc::new(Notify::new()));
        let events = {
            let (key, shared, changes) = (key.clone(), shared.clone(), changes.clone());
            let (is_alive, resubscribed) = (is_alive.clone(), resubscribed.clone());
            let mut is_first = true;
            move |event: Event| match event {
                Event::Subscribed if std::mem::take(&mut is_first) => {}
                // The connection was lost, and messages with it.
                Event::Subscribed => resubscribed.notify_one(),
                Event::Message(message) => {
                    is_alive.store(true, Ordering::Relaxed);
                    let is_own = match message.header(HEADER).and_then(Record::parse) {
                        Some(Record::Part(part)) => shared.own.lock().get(&key) == Some(&part.epoch),
                        _ => false,
                    };
                    if message.status().is_none() && !is_own {
                        changes.send_modify(|count| *count += 1);
                    }
                }
            }
        };
        let announced = async {
            stream.client.subscribe(id, deliver.clone(), Box::new(events)).await?;
            stream.announce(&subject(&key), &deliver).await
        };
        if let Err(error) = announced.await {
            tracing::debug!(%error, "a session cannot be followed at the moment");
            is_alive.store(false, Ordering::Relaxed);
        }
        changes.send_modify(|count| *count += 1);
        tick.reset();
        loop {
            tokio::select! {
                () = resubscribed.notified() => break,
                _ = tick.tick() => if !is_alive.swap(false, Ordering::Relaxed) { break },
            }
        }
    }
}

struct Unsubscribe<'a>(&'a Stream, u64);

impl Drop for Unsubscribe<'_> {
    fn drop(&mut self) {
        self.0.client.unsubscribe(self.1);
    }
}
