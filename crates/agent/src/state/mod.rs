//! State that tools, turns and sessions share: [`AgentState`] for all sessions of one agent,
//! [`SessionState`] for one session.
//!
//! Nothing here runs tools or turns, so everything above may depend on it.

mod agent;
mod choices;
mod notify;
mod session;

pub(crate) use agent::AgentState;
pub(crate) use choices::Choices;
pub(crate) use notify::ModelChangeNotifier;
pub(crate) use session::{MAX_RESULT, MIN_RESULTS, SessionState};
