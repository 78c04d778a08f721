//! Scenarios that judge a client: the checker plays the agent.

use crate::Scenario;

/// All of them, in the order in which they are played.
pub fn scenarios() -> Vec<Scenario> {
    Vec::new()
}
