//! The hook that records the history of sessions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use attache_wire::v1::{ContentChunk, SessionId, SessionUpdate};

use crate::task::{catch_handler_panic, lock};

pub(super) type RecordHook = Arc<dyn Fn(&SessionId, &SessionUpdate) + Send + Sync>;

/// Calls the hook in wire order. Updates are queued while they are encoded, under the lock of the
/// connection; the hook, which is user code, runs afterwards without a lock.
pub(super) struct Recorder {
    hook: RecordHook,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    updates: VecDeque<(SessionId, SessionUpdate)>,
    /// A task calls the hook; others leave their updates to it.
    busy: bool,
}

impl Recorder {
    pub(super) fn new(hook: RecordHook) -> Self {
        Recorder { hook, queue: Mutex::default() }
    }

    /// Queues an update that is being encoded.
    pub(super) fn push(&self, session: &SessionId, update: SessionUpdate) {
        lock(&self.queue).updates.push_back((session.clone(), update));
    }

    /// Queues the blocks of a prompt.
    pub(super) fn push_prompt(&self, session: &SessionId, prompt: &crate::Prompt) {
        for block in prompt.blocks() {
            let chunk = ContentChunk::new(block.clone()).message_id(prompt.message_id().cloned());
            self.push(session, SessionUpdate::UserMessageChunk(chunk));
        }
    }

    /// Calls the hook for everything that is queued.
    pub(super) fn flush(&self) {
        let mut mine = false;
        loop {
            let mut queue = lock(&self.queue);
            if queue.busy && !mine {
                return;
            }
            let next = queue.updates.pop_front();
            queue.busy = next.is_some();
            drop(queue);
            let Some((session, update)) = next else { return };
            mine = true;
            catch_handler_panic(|| (self.hook)(&session, &update));
        }
    }
}
