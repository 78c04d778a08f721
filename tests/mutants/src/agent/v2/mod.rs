//! The agent in version 2.
//!
//! The connection and the envelope are those of version 1. `requests` holds the methods, `turn` the
//! life of a prompt, `actions` what a turn does, `mutation` the variants that change messages.

mod actions;
mod mutation;
mod requests;
mod turn;

pub(crate) use mutation::{bytes, message};

use attache_conn::CancelToken;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// The state of a connection that speaks version 2.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) sessions: BTreeMap<String, Session>,
    /// Whether a request came after `initialize`.
    pub(crate) begun: bool,
}

/// A session, open or only kept.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) cwd: String,
    pub(crate) open: bool,
    /// The updates that a replay repeats.
    pub(crate) history: Vec<Value>,
    pub(crate) mode: String,
    /// The running turn.
    pub(crate) turn: Option<CancelToken>,
    /// Raised when all work has ended.
    pub(crate) idle: CancelToken,
    /// `session/cancel` came for the running turn.
    pub(crate) told_to_stop: bool,
    /// Prompts that are not inserted yet: id and blocks.
    pub(crate) queue: VecDeque<(Value, Vec<Value>)>,
    /// Tool calls that can be cancelled.
    pub(crate) tools: BTreeMap<String, CancelToken>,
    /// Terminals that go on after their turn.
    pub(crate) background: Vec<String>,
}

impl Session {
    /// `background` of a state.
    pub(crate) fn work(&self) -> Value {
        self.background.iter().map(|id| json!({ "type": "terminal", "terminalId": id })).collect()
    }

    /// `configOptions` of an answer.
    pub(crate) fn options(&self) -> Value {
        let choice = |id: &str, name: &str| json!({ "value": id, "name": name });
        json!([{
            "type": "select", "configId": "mode", "name": "Mode", "category": "mode",
            "currentValue": self.mode,
            "options": [choice("ask", "Ask first"), choice("code", "Just do it")],
        }])
    }
}
