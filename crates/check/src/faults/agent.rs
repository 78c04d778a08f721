//! What a client does that no kind one would, and what must hold for the agent afterwards.

use crate::Scenario;

/// All of them, in the order in which they are played.
pub fn scenarios() -> Vec<Scenario> {
    Vec::new()
}
