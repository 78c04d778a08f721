//! Watchers of agents.
//!
//! One file per section of rules. A watcher records a pass when a message shows a rule kept and a
//! failure when it shows it broken; where the protocol leaves freedom, it records nothing.

mod account;
mod capabilities;
mod codes;
mod content;
mod elicitation;
mod lists;
mod mcp;
mod nes;
mod notes;
mod options;
mod paths;
mod permission;
mod plan;
mod setup;
mod terminals;
mod tools;
mod turns;

pub(crate) use capabilities::needed;
pub(crate) use content::{is_base64, is_content_type};
pub(crate) use options::values;
pub(crate) use paths::is_absolute;

use super::{Watcher, text};
use serde_json::Value;

/// A fresh set for one conversation.
pub fn watchers() -> Vec<Box<dyn Watcher>> {
    vec![
        Box::new(setup::InitializeAnswer),
        Box::new(account::Account::default()),
        Box::new(capabilities::Capabilities),
        Box::new(codes::Codes),
        Box::new(content::Contents),
        Box::new(paths::Paths),
        Box::new(turns::Turns),
        Box::new(tools::Tools::default()),
        Box::new(permission::Permissions),
        Box::new(terminals::Terminals),
        Box::new(plan::Plans::default()),
        Box::new(options::Options),
        Box::new(lists::Lists::default()),
        Box::new(elicitation::Elicitations::default()),
        Box::new(notes::Notes::default()),
        Box::new(nes::Nes::default()),
        Box::new(mcp::Servers::default()),
    ]
}

/// The items of a list, none if it is no list.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether it is a string with something in it.
fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Whether it is a string that is one of these.
fn is_one_of(value: &Value, names: &[&str]) -> bool {
    value.as_str().is_some_and(|text| names.contains(&text))
}
