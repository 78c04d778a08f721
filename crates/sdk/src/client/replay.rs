//! A session while its history is replayed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use attache_conn::CallId;
use attache_wire::v1::SessionId;

use super::agent::AgentHandle;
use super::event::Event;
use super::lane::Lane;
use super::session::Session;
use crate::{Error, Result};

/// A session that is being loaded: first its history as events, then the session. Made by
/// [`SessionLoader::load`](super::SessionLoader::load).
///
/// Later events come through [`Session::next_update`]. Dropping the replay before its end drops the
/// session.
///
/// Example: [`AgentHandle`].
// SESS-12
pub struct SessionReplay {
    /// `None` after the session was returned.
    parts: Option<(AgentHandle, Arc<Lane>)>,
    call: CallId,
    events: VecDeque<Event>,
    end: Option<Result<()>>,
}

impl SessionReplay {
    pub(crate) fn new(agent: AgentHandle, lane: Arc<Lane>, call: CallId) -> Self {
        SessionReplay { parts: Some((agent, lane)), call, events: VecDeque::new(), end: None }
    }

    /// The session id.
    pub fn id(&self) -> Option<&SessionId> {
        self.parts.as_ref().map(|(_, lane)| &lane.id)
    }

    /// The next event of the history; `None` at its end.
    ///
    /// # Errors
    /// When the agent refuses to load the session, or ends.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            let Some((_, lane)) = &self.parts else { return Ok(None) };
            if let Some(mut event) = self.events.pop_front() {
                lane.complete(&mut event);
                return Ok(Some(event));
            }
            if let Some(end) = &self.end {
                return end.clone().map(|()| None);
            }
            let mut waiting = None;
            let end = poll_fn(|cx| {
                let polled = lane.poll_turn(cx, &mut self.events);
                if polled.is_pending() {
                    waiting.get_or_insert_with(|| lane.backlog().waiting());
                }
                polled
            })
            .await;
            self.end = end.map(|end| end.map(|_| ()));
        }
    }

    /// Skips the rest of the history and returns the session.
    ///
    /// # Errors
    /// When the agent refuses to load the session, or ends.
    pub async fn finish(mut self) -> Result<Session> {
        while self.next().await?.is_some() {}
        let (agent, lane) = self.parts.take().ok_or(Error::Cancelled)?;
        Ok(Session::new(agent, lane))
    }
}

impl Drop for SessionReplay {
    fn drop(&mut self) {
        if let Some((agent, lane)) = self.parts.take() {
            agent.0.unregister(&lane);
            if self.end.is_none() {
                lane.peer.abandon(self.call);
            }
        }
    }
}

impl std::fmt::Debug for SessionReplay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SessionReplay").field(&self.id()).finish()
    }
}
