//! Scenarios that judge an agent: the checker plays the client.

use crate::Scenario;

/// All of them, in the order in which they are played.
pub fn scenarios() -> Vec<Scenario> {
    Vec::new()
}
