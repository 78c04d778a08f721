//! Entries of a session's journal.
//!
//! An agent's message is stored as its line, so that a page of them is what clients are sent. All
//! other entries are JSON.

use attache_conn::rpc::Id;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::message::Outcome;

/// The kind of an entry, as the journal stores it.
pub(crate) mod kind {
    /// A notification of the agent: its line with a line feed.
    pub(crate) const LINE: u8 = 0;
    pub(crate) const OPENED: u8 = 1;
    pub(crate) const PROMPT: u8 = 2;
    /// A notification that the hub made: the connection that does not get it (8 bytes), then the
    /// line. Or one of the agent that names no session.
    pub(crate) const NOTICE: u8 = 3;
    pub(crate) const TURN_ENDED: u8 = 4;
    pub(crate) const QUESTION: u8 = 5;
    pub(crate) const DECISION: u8 = 6;
    pub(crate) const RESPONSE: u8 = 7;
}

/// The first entry of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Opened {
    /// The agent's id of the session.
    pub(crate) agent_session: String,
    /// The params of `session/new`.
    pub(crate) params: Box<RawValue>,
    /// The agent's result.
    pub(crate) result: Box<RawValue>,
    pub(crate) by: String,
    /// The epoch in which it was opened. Cursors of earlier ones are of another session.
    pub(crate) epoch: u64,
    /// Elicitation was offered to the agent.
    #[serde(default)]
    pub(crate) elicitation: bool,
}

impl Opened {
    /// The working directory.
    pub(crate) fn cwd(&self) -> String {
        #[derive(Deserialize)]
        struct Params {
            cwd: String,
        }
        serde_json::from_str::<Params>(self.params.get()).map(|params| params.cwd).unwrap_or_default()
    }
}

/// The begin of a turn, stored before the agent gets the prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Prompt {
    pub(crate) prompt: String,
    pub(crate) by: String,
}

/// The end of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnEnded {
    pub(crate) prompt: String,
    pub(crate) outcome: Outcome,
    /// The agent or the hub died during the turn.
    #[serde(default)]
    pub(crate) interrupted: bool,
}

/// A question of the agent: a permission or an elicitation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) question: String,
    pub(crate) method: String,
    pub(crate) params: Box<RawValue>,
}

/// The answer that the agent gets, stored before it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Decision {
    pub(crate) question: String,
    pub(crate) outcome: Outcome,
    /// The identity whose answer counted; `None` if it was a deadline, a cancel or an interruption.
    pub(crate) by: Option<String>,
    /// The address that the answer came from.
    pub(crate) from: Option<String>,
    /// The policy or the reason by which it was decided.
    pub(crate) rule: String,
}

/// The response to a request that was passed on to the agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) connection: u64,
    pub(crate) id: Box<RawValue>,
    pub(crate) outcome: Outcome,
}

impl Response {
    pub(crate) fn id(&self) -> Option<Id> {
        Id::from_raw(&self.id)
    }
}

/// Encodes an entry. All of them have JSON.
pub(crate) fn encode(entry: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(entry).unwrap_or_default()
}

/// In place of the connection: the notification is one of the agent that names no session.
pub(crate) const NO_SESSION: u64 = u64::MAX;

/// Encodes a notification that the connection `but` does not get.
pub(crate) fn encode_notice(but: u64, line: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + line.len());
    bytes.extend_from_slice(&but.to_le_bytes());
    bytes.extend_from_slice(line);
    bytes
}

/// Decodes a notification and the connection that does not get it.
pub(crate) fn decode_notice(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (but, line) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*but), line))
}

/// Decodes an entry; `None` if a newer program wrote it in another form.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
