//! The lines of a connection, on their way from the driver to whoever shows them.
//!
//! The driver must not wait, so lines are put aside here; whoever runs the turn takes them away. It is the turn that bounds this: while
//! its reader is busy writing, the connection reads no further than its own budget.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache::Flow;
use tokio::sync::Notify;

/// Where a connection puts its lines. Clones are the same place.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Inner>);

#[derive(Default)]
struct Inner {
    lines: Mutex<Lines>,
    changed: Notify,
    /// What the agent calls the session elsewhere, as its `_meta` says.
    elsewhere: Mutex<Option<String>>,
}

/// Lines in the order of the wire.
#[derive(Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    ends: Vec<(Flow, usize)>,
}

/// A buffer that one huge message has made larger than this is given back.
const KEEP: usize = 1 << 20;

impl Wire {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What listens to a link.
    pub(crate) fn tap(&self) -> impl FnMut(Flow, &[u8]) + Send + 'static {
        let wire = self.clone();
        let mut looking = true;
        move |flow, line| {
            if looking {
                // Sessions are opened before prompts are sent; from then on no line is looked into.
                looking = flow == Flow::In || !contains(line, b"\"session/prompt\"");
                if let Some(id) = elsewhere(flow, line) {
                    *wire.0.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
                }
            }
            wire.lock().push(flow, line);
            wire.0.changed.notify_one();
        }
    }

    /// The name of the session in the agent's own store, where it has one beside that of the protocol.
    pub(crate) fn agent_session(&self) -> Option<String> {
        self.0.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the lines that have gathered, in exchange for `lines`, which is emptied.
    pub(crate) fn take(&self, lines: &mut Lines) {
        lines.clear();
        std::mem::swap(&mut *self.lock(), lines);
    }

    /// How many bytes have gathered.
    pub(crate) fn gathered(&self) -> usize {
        self.lock().bytes.len()
    }

    /// Waits until there are lines, or may be.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|part| part == text)
}

/// `_meta.agentSessionId`, or `_meta.sessionId`, of an answer.
fn elsewhere(flow: Flow, line: &[u8]) -> Option<String> {
    if flow == Flow::Out || !contains(line, b"\"_meta\"") {
        return None;
    }
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    let meta = line.get("result")?.get("_meta")?;
    let id = ["agentSessionId", "sessionId"].iter().find_map(|key| meta.get(key)?.as_str());
    id.map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned)
}

impl Lines {
    pub(crate) fn push(&mut self, flow: Flow, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.ends.push((flow, self.bytes.len()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Flow, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(flow, end)| {
            let line = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            (flow, line)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        if self.bytes.capacity() > KEEP {
            *self = Lines::default();
        }
    }
}
