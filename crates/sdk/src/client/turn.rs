//! A turn: the ordered stream of what an agent does about one prompt.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use attache_wire::v1::{PromptResponse, StopReason, Usage};
use tokio::time::{Sleep, sleep_until};

use super::event::Event;
use super::lane::{Lane, TurnEnd};
use super::session::Session;
use crate::{Error, Result};

/// A running turn.
///
/// Read it with [`next`](Self::next) until it says `None`; then [`stop_reason`](Self::stop_reason) tells how it ended. The
/// turn borrows the session, so a second one at the same time does not compile:
///
/// ```compile_fail
/// # async fn two(session: &mut attache::client::Session) -> attache::Result<()> {
/// let mut first = session.prompt("one").await?;
/// let mut second = session.prompt("two").await?; // `session` is borrowed by the first turn
/// first.next().await?;
/// # Ok(())
/// # }
/// ```
///
/// nor does a turn that outlives its session:
///
/// ```compile_fail
/// # async fn outlive(agent: attache::client::AgentHandle) -> attache::Result<()> {
/// let mut session = agent.new_session("/work").await?;
/// let mut turn = session.prompt("one").await?;
/// drop(session); // borrowed by the turn
/// turn.next().await?;
/// # Ok(())
/// # }
/// ```
///
/// Dropping a turn before its end cancels it; the next prompt waits until the agent has ended it.
#[must_use = "a turn that is dropped is cancelled"]
pub struct TurnEvents<'s> {
    session: &'s mut Session,
    /// Events that were taken out of the lane and not yet given out.
    events: VecDeque<Event>,
    ended: bool,
    response: Option<PromptResponse>,
}

impl<'s> TurnEvents<'s> {
    pub(crate) fn new(session: &'s mut Session) -> Self {
        TurnEvents { session, events: VecDeque::new(), ended: false, response: None }
    }

    /// The next event, in the order of the wire; `None` at the end of the turn.
    ///
    /// It is safe to drop the future: no event is lost.
    ///
    /// # Errors
    /// When the agent answers the prompt with an error, or ends. The turn is over then.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            if let Some(end) = self.more().await {
                return self.finished(end).map(|()| None);
            }
        }
    }

    /// Waits for more events, or the end, or, after a cancel, the deadline.
    async fn more(&mut self) -> Option<TurnEnd> {
        let after = self.session.agent().0.services.cancel_deadline;
        let lane: &Lane = self.session.lane();
        let events = &mut self.events;
        let mut waiting = None;
        let mut deadline = Deadline::default();
        poll_fn(|cx| {
            let polled = lane.poll_turn(cx, events);
            if let Poll::Ready(Some(_)) = polled {
                return polled;
            }
            // Also an agent that never stops talking has its time.
            if deadline.poll(cx, lane, after).is_ready() {
                lane.expire();
                return if polled.is_ready() { polled } else { lane.poll_turn(cx, events) };
            }
            if polled.is_pending() {
                waiting.get_or_insert_with(|| lane.backlog().waiting());
            }
            polled
        })
        .await
    }

    fn finished(&mut self, end: TurnEnd) -> Result<()> {
        self.ended = true;
        let response = match end {
            Ok(response) => response,
            // CANCEL-06 is broken by some agents: the turn was cancelled all the same.
            Err(Error::Refused(_) | Error::Cancelled) if self.session.lane().was_cancelled() => {
                Some(PromptResponse::new(StopReason::Cancelled))
            }
            Err(error) => return Err(error),
        };
        self.response = response;
        Ok(())
    }

    /// Cancels the turn: the agent is told, every open question is answered `cancelled` (CANCEL-03), and so is every one that
    /// still comes. Does not wait. Go on reading until the end: an agent may have more to tell (CANCEL-09).
    /// CANCEL-02: whoever shows tool calls shows those that are not finished as cancelled from now on.
    ///
    /// If the agent does not end the turn in time ([`Client::cancel_deadline`](super::Client::cancel_deadline)), it ends on this side.
    pub fn cancel(&self) {
        self.session.lane().cancel();
    }

    /// Reads to the end and tells how it ended. Questions on the way are answered `cancelled`.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub async fn finish(mut self) -> Result<StopReason> {
        while self.next().await?.is_some() {}
        self.stop_reason().ok_or(Error::Cancelled)
    }

    /// Reads to the end and gives the text of the agent's answer. Questions on the way are answered `cancelled`.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub async fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        while let Some(event) = self.next().await? {
            if let Event::Text(chunk) = event {
                text.push_str(&chunk);
            }
        }
        Ok(text)
    }

    /// How the turn ended; `None` while it runs, and when it ended with an error.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.response.as_ref().map(|response| response.stop_reason)
    }

    /// What the turn cost, if the agent told (PROMPT-19).
    pub fn usage(&self) -> Option<&Usage> {
        self.response.as_ref()?.usage.as_ref()
    }

    /// The whole answer of the prompt.
    pub fn response(&self) -> Option<&PromptResponse> {
        self.response.as_ref()
    }

    /// The session, to look at.
    pub fn session(&self) -> &Session {
        self.session
    }
}

impl Drop for TurnEvents<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.session.lane().abandon_turn();
        }
    }
}

impl std::fmt::Debug for TurnEvents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnEvents")
            .field("session", self.session.id())
            .field("response", &self.response)
            .finish()
    }
}

/// A timer for the end of a cancelled turn; there is none before there is a need for it.
#[derive(Default)]
pub(crate) struct Deadline(Option<Pin<Box<Sleep>>>);

impl Deadline {
    /// Ready when the cancelled turn of a lane has had its time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, lane: &Lane, after: std::time::Duration) -> Poll<()> {
        if self.0.is_none() {
            self.0 = lane.deadline(after).map(|at| Box::pin(sleep_until(at)));
        }
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}
