//! Parts that the specification marks as unstable: forks, archives, titles, status, providers,
//! system prompts, plans and subagents.

mod capabilities;
mod session;
mod subagents;

use attache_wire::v1::{PlanCapabilities, SessionUpdate, SubagentCapabilities, Usage};

use super::builder::Client;
use super::event::Event;
use super::turn::TurnEvents;

pub use capabilities::{
    AuthStatusReader, ProviderSettings, SessionArchiver, SessionForker, SessionStatusReader, SessionTitler,
};
pub use session::Fork;
pub(super) use session::check_options;
pub(super) use subagents::Children;

impl Client {
    /// Shows several plans in one session.
    pub fn plans(mut self) -> Self {
        self.0.more.plan = Some(PlanCapabilities::new());
        self
    }

    /// Shows subagents and messages between sessions.
    pub fn subagents(mut self) -> Self {
        self.0.more.subagents = Some(SubagentCapabilities::new());
        self
    }
}

impl TurnEvents<'_> {
    /// The token usage of the turn, if the agent reported it.
    pub fn usage(&self) -> Option<&Usage> {
        self.response()?.usage.as_ref()
    }
}

/// The event of an unstable update.
pub(super) fn event(update: SessionUpdate) -> Option<Event> {
    Some(match update {
        SessionUpdate::PlanUpdate(update) => Event::PlanUpdate(Box::new(update)),
        SessionUpdate::PlanRemoved(removed) => Event::PlanRemoved(removed),
        SessionUpdate::SubagentUpdate(update) => Event::Subagent(update),
        SessionUpdate::SessionMessage(message) => Event::SessionMessage(message),
        SessionUpdate::SessionMessageChunk(chunk) => Event::SessionMessageChunk(Box::new(chunk)),
        _ => return None,
    })
}
