//! Watchers of version 2.
//!
//! `envelope.rs` judges ids, `states.rs` prompts, states and background
//! work, `sessions.rs` resuming and closing, `content.rs` values, `client.rs` calls of clients.

mod client;
mod content;
mod envelope;
mod sessions;
mod states;

use serde_json::Value;

use super::Watcher;

/// A fresh set for one conversation.
pub fn watchers() -> Vec<Box<dyn Watcher>> {
    vec![
        Box::new(envelope::Ids),
        Box::new(states::States::default()),
        Box::new(sessions::Sessions::default()),
        Box::new(content::Contents),
        Box::new(client::Calls::default()),
    ]
}

/// The items of a list, none if it is no list.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether an update of this kind is part of the conversation: a message or a tool call.
pub(crate) fn is_conversation(kind: &str) -> bool {
    ["user_message", "agent_message", "agent_thought", "tool_call_"]
        .iter()
        .any(|family| kind.starts_with(family))
}
