//! The lines of a connection, from the driver to the renderer.
//!
//! The driver must not wait, so lines are buffered here until the turn takes them. Buffered lines
//! count in the budget of the connection: while the turn is busy writing, the connection reads no
//! further.

use std::sync::Arc;

use attache::client::LinesAsV1;
use attache::{Backlog, Flow};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use tokio::sync::Notify;

use crate::lenient::lenient;

/// The buffer of a connection's lines, shared by its clones.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Inner>);

#[derive(Default)]
struct Inner {
    buffer: Mutex<LineBuffer>,
    changed: Notify,
    /// The agent's own id of the session, from its `_meta`.
    elsewhere: Mutex<Option<String>>,
}

/// Buffered lines and the budget in which they count.
#[derive(Default)]
struct LineBuffer {
    lines: Lines,
    /// The lines of a connection whose version is not agreed on yet. It may be given up.
    held: Option<Lines>,
    budget: Option<Backlog>,
    /// Bytes that are counted in the budget.
    counted: usize,
}

/// Lines in the order of the wire.
#[derive(Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    ends: Vec<(Flow, usize)>,
}

/// Bytes of lines that are kept back.
const MAX_HELD: usize = 1 << 20;
/// Overhead of a line in the budget.
const LINE: usize = 32;
/// A buffer that one huge message has made larger than this is given back.
const KEEP: usize = 1 << 20;

impl Wire {
    fn lock(&self) -> MutexGuard<'_, LineBuffer> {
        self.0.buffer.lock()
    }

    /// Counts lines in the budget of this connection from now on. An earlier connection has ended.
    pub(crate) fn count_in(&self, budget: &Backlog) {
        let mut buffer = self.lock();
        buffer.counted = 0;
        buffer.budget = Some(budget.clone());
    }

    /// Returns the callback for the link.
    pub(crate) fn tap(&self) -> impl FnMut(Flow, &[u8]) + Send + 'static {
        let wire = self.clone();
        let mut looking = true;
        // Views and stores of a conversation know version 1 only.
        let mut lines = LinesAsV1::new();
        move |flow, line| lines.line(flow, line, |line| wire.add(flow, line, &mut looking))
    }

    /// Keeps the lines that follow back, until [`release`](Self::release); drops those that were
    /// kept back before.
    pub(crate) fn hold(&self) {
        self.lock().held = Some(Lines::default());
    }

    /// Gives out the lines that were kept back.
    pub(crate) fn release(&self) {
        let Some(held) = self.lock().held.take() else { return };
        let mut looking = false;
        held.iter().for_each(|(flow, line)| self.add(flow, line, &mut looking));
    }

    fn add(&self, flow: Flow, line: &[u8], looking: &mut bool) {
        if *looking {
            // Sessions are opened before prompts are sent; from then on no line is looked into.
            *looking = flow == Flow::In || !contains(line, b"\"session/prompt\"");
            if let Some(id) = elsewhere(flow, line) {
                *self.0.elsewhere.lock() = Some(id);
            }
        }
        let mut buffer = self.lock();
        if let Some(held) = &mut buffer.held {
            held.push(flow, line);
            if held.bytes.len() > MAX_HELD {
                drop(buffer);
                self.release();
            }
            return;
        }
        buffer.lines.push(flow, line);
        let weight = line.len() + LINE;
        let counted = buffer.budget.as_ref().map(|budget| budget.add(weight));
        buffer.counted += counted.map_or(0, |()| weight);
        drop(buffer);
        self.0.changed.notify_one();
    }

    /// The name of the session in the agent's own store, where it has one beside that of the
    /// protocol.
    pub(crate) fn agent_session(&self) -> Option<String> {
        self.0.elsewhere.lock().clone()
    }

    /// Takes the lines that have gathered, in exchange for `lines`, which is emptied.
    pub(crate) fn take(&self, lines: &mut Lines) {
        lines.clear();
        let (budget, counted) = {
            let mut buffer = self.lock();
            std::mem::swap(&mut buffer.lines, lines);
            (buffer.budget.clone(), std::mem::take(&mut buffer.counted))
        };
        if let Some(budget) = budget.filter(|_| counted > 0) {
            budget.sub(counted);
        }
    }

    /// How many bytes have gathered.
    pub(crate) fn gathered(&self) -> usize {
        self.lock().lines.bytes.len()
    }

    /// Waits until there are lines, or may be.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|part| part == text)
}

/// A response with the agent's own id of a session in its `_meta`.
#[derive(Deserialize)]
struct SessionIdResponse {
    result: SessionIdResult,
}

#[derive(Deserialize)]
struct SessionIdResult {
    #[serde(rename = "_meta")]
    meta: SessionIdMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionIdMeta {
    #[serde(default, deserialize_with = "lenient")]
    agent_session_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    session_id: Option<String>,
}

/// Returns `_meta.agentSessionId`, or `_meta.sessionId`, of a response.
fn elsewhere(flow: Flow, line: &[u8]) -> Option<String> {
    if flow == Flow::Out || !contains(line, b"\"_meta\"") {
        return None;
    }
    let SessionIdMeta { agent_session_id, session_id } =
        serde_json::from_slice::<SessionIdResponse>(line).ok()?.result.meta;
    let id = agent_session_id.or(session_id)?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use attache::client::Client;
    use attache::{Command, Link};

    use super::*;

    /// An agent that answers the handshake and then talks without end.
    const TALKER: &str = r#"
read line
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
while :; do
    echo '{"jsonrpc":"2.0","method":"_noise","params":{"text":"0123456789012345678901234567890123456789012345678901234567890123456789"}}'
done
"#;

    #[tokio::test]
    async fn a_connection_rests_until_its_lines_are_taken() {
        let wire = Wire::default();
        let link = Link::command(Command::new("sh").args(["-c", TALKER])).unwrap().tap(wire.tap());
        let agent = Client::new().connect(link).await.unwrap();
        wire.count_in(agent.backlog());
        let mut lines = Lines::default();
        for _ in 0..3 {
            // The reader pauses, and continues when the lines are taken.
            while !agent.backlog().is_full() {
                tokio::task::yield_now().await;
            }
            wire.take(&mut lines);
            assert!(lines.bytes.len() > 1 << 19 && lines.bytes.len() < 4 << 20, "{}", lines.bytes.len());
        }
        agent.shutdown().await;
    }
}
