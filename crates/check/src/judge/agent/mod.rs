//! Watchers of what agents say.

use super::Watcher;

/// A fresh set for one conversation.
pub fn watchers() -> Vec<Box<dyn Watcher>> {
    Vec::new()
}
