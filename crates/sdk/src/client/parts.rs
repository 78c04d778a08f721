//! A session in two parts, for programs that cannot borrow it: user interfaces and servers.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use attache_conn::Waiting;
use attache_wire::v1::{PromptRequest, PromptResponse};
use futures_core::Stream;

use super::event::Event;
use super::lane::Lane;
use super::session::{Session, SessionControl};
use super::turn::{Deadline, end_of_turn, poll_lane};
use crate::{Prompt, Result};

/// Starts and cancels the turns of a session, from any task. Made by [`Session::into_parts`]; cheap
/// to clone.
///
/// Example: [`Session::into_parts`].
#[derive(Debug, Clone)]
pub struct Prompter(Arc<Session>);

impl Prompter {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Prompter(session)
    }

    /// Starts a turn. Its events and its end come through [`SessionEvents`].
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) while a turn runs or its end was not read yet;
    /// [`Error::Unsupported`](crate::Error::Unsupported) if the agent does not take the content.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<()> {
        let request = PromptRequest::new(self.0.id().clone(), prompt.into().into_blocks());
        self.0.start(request, Lane::try_begin_turn).await.map(drop)
    }

    /// Cancels the running turn, if there is one.
    pub fn cancel(&self) {
        self.0.lane().cancel();
    }

    /// Changes modes, models and options.
    pub fn control(&self) -> SessionControl {
        self.0.control()
    }

    /// The session, for its id and its state.
    pub fn session(&self) -> &Session {
        &self.0
    }
}

/// One step of a session; see [`SessionEvents`].
///
/// Example: [`Session::into_parts`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// An event, inside or outside of a turn.
    Event(Event),
    /// The turn is over, with the response of the agent.
    TurnEnded(Result<PromptResponse>),
}

/// All events of a session in wire order, inside and outside of turns. Made by
/// [`Session::into_parts`]; also a [`Stream`].
///
/// Example: [`Session::into_parts`].
pub struct SessionEvents {
    session: Arc<Session>,
    /// Events that were taken out of the lane and not yet returned.
    events: VecDeque<Event>,
    deadline: Deadline,
    /// Held while a task polls the stream, so that the reader does not rest.
    waiting: Option<Waiting>,
    closed: bool,
}

impl SessionEvents {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        SessionEvents {
            session,
            events: VecDeque::new(),
            deadline: Deadline::default(),
            waiting: None,
            closed: false,
        }
    }

    /// Returns the next event, and `None` when the connection is over. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        let mut waiting = None;
        poll_fn(|cx| self.poll_event(cx, &mut waiting)).await
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        waiting: &mut Option<Waiting>,
    ) -> Poll<Option<SessionEvent>> {
        loop {
            if let Some(mut event) = self.events.pop_front() {
                self.session.lane().complete(&mut event);
                return Poll::Ready(Some(SessionEvent::Event(event)));
            }
            if self.closed {
                return Poll::Ready(None);
            }
            let lane = self.session.lane();
            if !lane.in_turn() {
                self.deadline = Deadline::default();
                match lane.poll_outside(cx) {
                    Poll::Ready(Ok(mut event)) => {
                        lane.complete(&mut event);
                        return Poll::Ready(Some(SessionEvent::Event(event)));
                    }
                    Poll::Ready(Err(_)) => self.closed = true,
                    // A turn may have begun meanwhile, before the waker was there.
                    Poll::Pending if lane.in_turn() => {}
                    Poll::Pending => {
                        waiting.get_or_insert_with(|| lane.backlog().waiting());
                        return Poll::Pending;
                    }
                }
                continue;
            }
            let cancel_deadline = self.session.agent().0.services.cancel_deadline;
            match poll_lane(cx, lane, &mut self.events, &mut self.deadline, cancel_deadline) {
                Poll::Pending => {
                    waiting.get_or_insert_with(|| lane.backlog().waiting());
                    return Poll::Pending;
                }
                Poll::Ready(None) => {}
                Poll::Ready(Some(end)) => {
                    self.closed = matches!(end, Err(crate::Error::Closed(_)));
                    let end = end_of_turn(lane, end);
                    // The responses of loads, which have none, do not come here.
                    let end = end.and_then(|response| response.ok_or(crate::Error::Cancelled));
                    return Poll::Ready(Some(SessionEvent::TurnEnded(end)));
                }
            }
        }
    }
}

impl Stream for SessionEvents {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        let mut waiting = self.waiting.take();
        let polled = self.poll_event(cx, &mut waiting);
        if polled.is_pending() {
            self.waiting = waiting;
        }
        polled
    }
}

impl Drop for SessionEvents {
    /// Without a reader the turn that runs is cancelled.
    fn drop(&mut self) {
        let lane = self.session.lane();
        if lane.in_turn() {
            lane.abandon_turn(lane.latest_turn());
        }
    }
}

impl std::fmt::Debug for SessionEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SessionEvents").field(self.session.id()).finish()
    }
}
