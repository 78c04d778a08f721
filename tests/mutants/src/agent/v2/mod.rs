//! The agent in version 2.
//!
//! The connection and the envelope are those of version 1. `requests` holds the methods, `turn` the
//! life of a prompt, `actions` what a turn does, `mutation` the variants that change messages.

mod actions;
mod mutation;
mod requests;
mod turn;

pub(crate) use mutation::{bytes, message};

use crate::agent::state;
use attache_conn::CancelToken;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};

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
    /// The parts that version 1 has too. `idle` is raised when all work has ended.
    pub(crate) base: state::Session,
    /// Prompts that are not inserted yet: id and blocks.
    pub(crate) queue: VecDeque<(Value, Vec<Value>)>,
    /// Tool calls that can be cancelled.
    pub(crate) tools: BTreeMap<String, CancelToken>,
    /// Terminals that go on after their turn.
    pub(crate) background: Vec<String>,
}

impl Deref for Session {
    type Target = state::Session;

    fn deref(&self) -> &state::Session {
        &self.base
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut state::Session {
        &mut self.base
    }
}

impl Session {
    /// `background` of a state.
    pub(crate) fn work(&self) -> Value {
        self.background.iter().map(|id| json!({ "type": "terminal", "terminalId": id })).collect()
    }

    /// `configOptions` of an answer.
    pub(crate) fn options(&self) -> Value {
        let mut list = self.base.options(true);
        for option in list.as_array_mut().into_iter().flatten() {
            rename(option, "id", "configId");
            for entry in option.get_mut("options").and_then(Value::as_array_mut).into_iter().flatten() {
                rename(entry, "group", "groupId");
            }
        }
        list
    }
}

/// Gives a member another name.
fn rename(object: &mut Value, old: &str, new: &str) {
    if let Some(value) = object.as_object_mut().and_then(|object| object.remove(old)) {
        object[new] = value;
    }
}
