//! One turn of a session, as a stream of events.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use attache_conn::Waiting;
use attache_wire::v1::{PromptResponse, StopReason};
use futures_core::Stream;
use tokio::time::{Sleep, sleep_until};

use super::event::Event;
use super::lane::{Lane, TurnEnd};
use super::session::Session;
use crate::{Error, Result};

/// The events of one turn, in wire order, until the agent answers the prompt.
///
/// Read it with [`next`](Self::next), or as a [`Stream`], until `None`; then
/// [`stop_reason`](Self::stop_reason) says how it ended. A turn borrows its session, so a second
/// one at the same time does not compile:
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
/// A turn that is over no longer blocks the session:
///
/// ```
/// # async fn twice(session: &mut attache::client::Session) -> attache::Result<()> {
/// let mut turn = session.prompt("one").await?;
/// let first = turn.text().await?;
/// let second = session.prompt("two").await?.text().await?;
/// # drop((first, second)); Ok(())
/// # }
/// ```
///
/// Dropping a turn before its end cancels it; the next prompt waits until the agent has ended it.
/// Programs that cannot borrow, such as user interfaces, use [`Session::into_parts`].
///
/// Example:
/// [`examples/client.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/client.rs).
#[must_use = "a turn that is dropped is cancelled"]
pub struct TurnEvents<'s> {
    session: &'s mut Session,
    // Without the lifetime: its drop does not use the borrow, so a turn that is over does not block
    // the session.
    turn: RunningTurn,
}

/// The state of a turn that is being read; dropping it before the end cancels the turn.
struct RunningTurn {
    lane: Arc<Lane>,
    number: u64,
    /// Time for the agent to end the turn after a cancel.
    cancel_deadline: Duration,
    /// Events that were taken out of the lane and not yet returned.
    events: VecDeque<Event>,
    ended: bool,
    response: Option<PromptResponse>,
    deadline: Deadline,
    /// Held while a task polls the stream, so that the reader does not rest.
    waiting: Option<Waiting>,
    span: tracing::Span,
}

impl RunningTurn {
    /// Takes the next event, or the end, or, after a cancel, the deadline.
    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        waiting: &mut Option<Waiting>,
    ) -> Poll<Result<Option<Event>>> {
        loop {
            if let Some(mut event) = self.events.pop_front() {
                self.lane.complete(&mut event);
                return Poll::Ready(Ok(Some(event)));
            }
            if self.ended {
                return Poll::Ready(Ok(None));
            }
            match poll_lane(cx, &self.lane, &mut self.events, &mut self.deadline, self.cancel_deadline) {
                Poll::Pending => {
                    waiting.get_or_insert_with(|| self.lane.backlog().waiting());
                    return Poll::Pending;
                }
                Poll::Ready(None) => {}
                Poll::Ready(Some(end)) => {
                    self.ended = true;
                    let end = end_of_turn(&self.lane, end);
                    tracing::debug!(parent: &self.span, ok = end.is_ok(), "turn ended");
                    self.response = end?;
                    return Poll::Ready(Ok(None));
                }
            }
        }
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        if !self.ended {
            self.lane.abandon_turn(self.number);
        }
    }
}

/// Takes events out of a lane, or the end of its turn. After a cancel the deadline ends the turn,
/// even if the agent never stops sending.
pub(crate) fn poll_lane(
    cx: &mut Context<'_>,
    lane: &Lane,
    events: &mut VecDeque<Event>,
    deadline: &mut Deadline,
    cancel_deadline: Duration,
) -> Poll<Option<TurnEnd>> {
    let polled = lane.poll_turn(cx, events);
    if !matches!(polled, Poll::Ready(Some(_))) && deadline.poll(cx, lane, cancel_deadline).is_ready() {
        lane.expire();
        return if polled.is_ready() { polled } else { lane.poll_turn(cx, events) };
    }
    polled
}

/// The response of a turn, which counts as cancelled if it was, whatever the agent answered.
pub(crate) fn end_of_turn(lane: &Lane, end: TurnEnd) -> Result<Option<PromptResponse>> {
    match end {
        // CANCEL-06: some agents answer a cancelled turn with an error.
        Err(Error::Refused(_) | Error::Cancelled) if lane.was_cancelled() => {
            Ok(Some(PromptResponse::new(StopReason::Cancelled)))
        }
        end => end,
    }
}

impl<'s> TurnEvents<'s> {
    pub(crate) fn new(session: &'s mut Session, number: u64) -> Self {
        let lane = session.shared_lane();
        let span = tracing::debug_span!("turn", session = %lane.id, number);
        let turn = RunningTurn {
            lane,
            number,
            cancel_deadline: session.agent().0.services.cancel_deadline,
            events: VecDeque::new(),
            ended: false,
            response: None,
            deadline: Deadline::default(),
            waiting: None,
            span,
        };
        TurnEvents { session, turn }
    }

    /// Returns the next event in wire order, and `None` at the end of the turn.
    ///
    /// Cancel safe: no event is lost when the future is dropped.
    ///
    /// # Errors
    /// When the agent answers the prompt with an error, or the connection ends. The turn is over
    /// then.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        let mut waiting = None;
        poll_fn(|cx| self.turn.poll_event(cx, &mut waiting)).await
    }

    /// Cancels the turn without waiting: notifies the agent and answers every open and later
    /// question with `cancelled`. Continue to read until the end, because the agent may send more.
    /// Tool calls that are not finished should be shown as cancelled.
    ///
    /// If the agent does not end the turn in time
    /// ([`Client::cancel_deadline`](super::Client::cancel_deadline)), it ends on this side.
    pub fn cancel(&self) {
        self.session.lane().cancel();
    }

    /// Reads to the end and returns the stop reason. Questions are answered `cancelled`, unless
    /// [`Client::on_permission`](super::Client::on_permission) decides.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub async fn finish(mut self) -> Result<StopReason> {
        while self.next().await?.is_some() {}
        self.stop_reason().ok_or(Error::Cancelled)
    }

    /// Reads to the end and returns the text of the answer. Questions are answered as in
    /// [`finish`](Self::finish).
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

    /// The stop reason; `None` while the turn runs and if it failed.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.turn.response.as_ref().map(|response| response.stop_reason)
    }

    /// The whole response to the prompt.
    pub fn response(&self) -> Option<&PromptResponse> {
        self.turn.response.as_ref()
    }

    /// The session.
    pub fn session(&self) -> &Session {
        self.session
    }
}

impl Stream for TurnEvents<'_> {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut waiting = self.turn.waiting.take();
        let polled = self.turn.poll_event(cx, &mut waiting);
        if polled.is_pending() {
            self.turn.waiting = waiting;
        }
        polled.map(Result::transpose)
    }
}

impl std::fmt::Debug for TurnEvents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnEvents")
            .field("session", self.session.id())
            .field("response", &self.turn.response)
            .finish()
    }
}

/// Timer for the end of a cancelled turn, created on first use.
#[derive(Default)]
pub(crate) struct Deadline(Option<Pin<Box<Sleep>>>);

impl Deadline {
    /// Ready when the time of a cancelled turn is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, lane: &Lane, after: Duration) -> Poll<()> {
        if self.0.is_none() {
            self.0 = lane.deadline(after).map(|at| Box::pin(sleep_until(at)));
        }
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}
