//! Watchers of clients.
//!
//! Shapes, order and capabilities are judged for both roles elsewhere; these watchers judge values:
//! absolute paths, offered ids, valid content.

mod choices;
mod opening;
mod setup;

use super::Watcher;
use serde_json::Value;

/// A fresh set for one conversation.
pub fn watchers() -> Vec<Box<dyn Watcher>> {
    vec![
        Box::new(opening::Opening),
        Box::new(setup::Setups::default()),
        Box::new(choices::Choices::default()),
    ]
}

/// The items of a list, none if it is no list.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
