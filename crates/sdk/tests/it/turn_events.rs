//! Events of a turn without the states, which `client_v2` and `client_turn` test for themselves.

use attache::Result;
use attache::client::{Event, SessionEvent, SessionEvents, SessionState, TurnEvents};

pub(crate) trait SkipStates {
    type Next;
    /// The next event that is no state.
    async fn after_states(&mut self) -> Self::Next;
}

impl SkipStates for TurnEvents<'_> {
    type Next = Result<Option<Event>>;

    async fn after_states(&mut self) -> Self::Next {
        loop {
            match self.next().await {
                Ok(Some(Event::State(_))) => {}
                next => return next,
            }
        }
    }
}

impl SkipStates for SessionEvents {
    type Next = Option<SessionEvent>;

    async fn after_states(&mut self) -> Self::Next {
        loop {
            match self.next().await {
                Some(SessionEvent::Event(Event::State(_))) => {}
                next => return next,
            }
        }
    }
}

/// The states among events, by name.
pub(crate) fn state_name(state: &SessionState) -> &str {
    match state {
        SessionState::Running => "running",
        SessionState::RequiresAction => "requires_action",
        SessionState::Idle(_) => "idle",
        SessionState::Other(name) => name,
        _ => "unknown",
    }
}
