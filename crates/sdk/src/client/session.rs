//! A session with an agent.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

use attache_wire::v1::{
    AgentCapabilities, AvailableCommand, CloseSessionRequest, ContentBlock, PromptRequest, SessionConfigId,
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue, SessionId,
    SessionModeId, SessionModeState, SetSessionConfigOptionRequest, SetSessionModeRequest, TerminalId,
    ToolCallId, UsageUpdate,
};
use attache_wire::{Request, v2};

use super::agent::AgentHandle;
use super::connection::answered;
use super::event::{Event, SessionState};
use super::lane::Lane;
use super::parts::{Prompter, SessionEvents};
use super::turn::{Deadline, TurnEvents};
use super::v2::{convert, requests};
use crate::check::unknown;
use crate::race::{First, race};
use crate::{Error, Prompt, Result};

/// A session with an agent. A turn borrows it; use [`control`](Self::control) during a turn.
///
/// Dropping a session forgets it on this side and releases its terminals. [`close`](Self::close)
/// notifies the agent too.
///
/// Example:
/// [`examples/client.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/client.rs).
// TERM-20
pub struct Session {
    agent: AgentHandle,
    lane: Arc<Lane>,
}

impl Session {
    pub(crate) fn new(agent: AgentHandle, lane: Arc<Lane>) -> Self {
        Session { agent, lane }
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    pub(crate) fn shared_lane(&self) -> Arc<Lane> {
        self.lane.clone()
    }

    /// Splits the session for user interfaces: a handle that starts turns from any task, and one
    /// stream of all events. The session ends when both are dropped.
    ///
    /// ```no_run
    /// # use attache::client::{Event, Session, SessionEvent};
    /// # async fn run(session: Session) -> attache::Result<()> {
    /// let (prompter, mut events) = session.into_parts();
    /// prompter.prompt("What is 2 + 2?").await?;
    /// while let Some(event) = events.next().await {
    ///     match event {
    ///         SessionEvent::Event(Event::Text(text)) => print!("{text}"),
    ///         SessionEvent::TurnEnded(_) => break,
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_parts(self) -> (Prompter, SessionEvents) {
        let session = Arc::new(self);
        (Prompter::new(session.clone()), SessionEvents::new(session))
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.lane.id
    }

    /// The agent.
    pub fn agent(&self) -> &AgentHandle {
        &self.agent
    }

    /// The working directory.
    pub fn cwd(&self) -> &Path {
        self.lane.cwd()
    }

    /// The effective roots, the working directory first.
    // ROOT-07
    pub fn roots(&self) -> &[PathBuf] {
        &self.lane.roots
    }

    /// Starts a turn. A slash command is a prompt that starts with it.
    ///
    /// Waits until the agent has ended an earlier turn that was dropped.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the agent does not accept the content. Nothing is sent then.
    // CMD-04, PROMPT-02
    pub async fn prompt(&mut self, prompt: impl Into<Prompt>) -> Result<TurnEvents<'_>> {
        self.prompt_with(prompt, |request| request).await
    }

    /// Like [`prompt`](Self::prompt), but lets the caller edit the request before it is sent.
    ///
    /// # Errors
    /// As for [`prompt`](Self::prompt).
    pub async fn prompt_with(
        &mut self,
        prompt: impl Into<Prompt>,
        edit: impl FnOnce(PromptRequest) -> PromptRequest,
    ) -> Result<TurnEvents<'_>> {
        let request = edit(PromptRequest::new(self.lane.id.clone(), prompt.into().into_blocks()));
        // An earlier turn that was neither finished nor dropped is not used any more: this call
        // borrows the session.
        self.lane.abandon_turn(self.lane.latest_turn());
        let turn = self.start(request, |lane| Some(lane.begin_turn())).await?;
        Ok(TurnEvents::new(self, turn))
    }

    /// Checks and sends a prompt for a turn that `begin` registers; returns the number of the turn.
    pub(crate) async fn start(
        &self,
        request: PromptRequest,
        begin: impl FnOnce(&Lane) -> Option<u64>,
    ) -> Result<u64> {
        check_prompt(&request.prompt, self.agent.capabilities())?;
        self.idle().await?;
        let running = || Error::Invalid("a turn is already running in this session".to_owned());
        let turn = begin(&self.lane).ok_or_else(running)?;
        let lane = self.lane.clone();
        // The reader puts the response into the lane, after the updates before it. A prompt is the
        // same JSON in both versions.
        let call = match self.agent.0.is_v2() {
            false => self.lane.peer.call_with(PromptRequest::METHOD, &request, move |answer| {
                lane.end(turn, answered::<PromptRequest>(answer).map(Some));
            }),
            true => self.lane.peer.call_with(v2::PromptRequest::METHOD, &request, move |answer| {
                let answer = answered::<v2::PromptRequest>(answer);
                lane.prompt_answered(turn, answer.map(|answer| answer.message_id));
            }),
        };
        self.lane.set_call(turn, call);
        Ok(turn)
    }

    /// Waits for the end of a dropped turn, up to the cancel deadline.
    async fn idle(&self) -> Result<()> {
        let lane = &*self.lane;
        let after = self.agent.0.services.cancel_deadline;
        let mut deadline = Deadline::default();
        let mut waiting = None;
        poll_fn(|cx| {
            let polled = lane.poll_idle(cx);
            if polled.is_ready() {
                return polled;
            }
            waiting.get_or_insert_with(|| lane.backlog().waiting());
            if deadline.poll(cx, lane, after).is_ready() {
                lane.expire();
                return Poll::Ready(Ok(()));
            }
            Poll::Pending
        })
        .await
    }

    /// Returns the next event outside of turns: updates of settings, late updates, questions while
    /// no turn runs. Unread questions go to the next turn.
    ///
    /// Reading is optional: old events are dropped, and the state is in
    /// [`commands`](Self::commands), [`modes`](Self::modes),
    /// [`config_options`](Self::config_options) and so on.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn next_update(&mut self) -> Result<Event> {
        let lane = &*self.lane;
        let mut waiting = None;
        let next = poll_fn(|cx| {
            let polled = lane.poll_outside(cx);
            if polled.is_pending() {
                waiting.get_or_insert_with(|| lane.backlog().waiting());
            }
            polled
        });
        match race(next, lane.peer.closed()).await {
            First::Left(event) => event.map(|mut event| {
                lane.complete(&mut event);
                event
            }),
            First::Right(closed) => Err(Error::Closed(closed)),
        }
    }

    /// Returns a handle that cancels and changes settings, also during a turn and from other tasks.
    pub fn control(&self) -> SessionControl {
        SessionControl { agent: self.agent.clone(), lane: self.lane.clone() }
    }

    /// The slash commands.
    pub fn commands(&self) -> Arc<[AvailableCommand]> {
        self.lane.state(|state| state.commands.clone())
    }

    /// The config options in the agent's order. If there are some, show them instead of modes.
    /// Categories are hints.
    // CONF-03, CONF-02, MODE-09, CONF-10
    pub fn config_options(&self) -> Arc<[SessionConfigOption]> {
        self.lane.state(|state| state.config_options.clone())
    }

    /// The modes, for clients that do not show config options.
    // MODE-12
    pub fn modes(&self) -> Option<SessionModeState> {
        self.lane.state(|state| state.modes.clone())
    }

    /// The title, if the agent gave one.
    pub fn title(&self) -> Option<String> {
        self.lane.state(|state| state.title.clone())
    }

    /// The time of the last change as ISO 8601 text, if the agent reported it.
    pub fn updated_at(&self) -> Option<String> {
        self.lane.state(|state| state.updated_at.clone())
    }

    /// The used context, if the agent reported it.
    pub fn usage(&self) -> Option<UsageUpdate> {
        self.lane.state(|state| state.usage.clone())
    }

    /// Ends the session and notifies the agent, if it supports that.
    ///
    /// # Errors
    /// When the agent refuses, or the connection is over.
    // SESS-25, SESS-26
    pub async fn close(self) -> Result<()> {
        if self.agent.capabilities().session_capabilities.close.is_some() {
            // SESS-34
            let closed = self.agent.0.request(&CloseSessionRequest::new(self.lane.id.clone())).await;
            // V2-29: a session that the agent does not know is closed.
            return closed.map(drop).or_else(|error| match self.agent.0.is_v2() && error.is_not_found() {
                true => Ok(()),
                false => Err(error),
            });
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.agent.0.unregister(&self.lane);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Session").field(self.id()).finish()
    }
}

// PROMPT-02, CONT-02: every agent accepts text and links; other content needs its capability.
fn check_prompt(blocks: &[ContentBlock], agent: &AgentCapabilities) -> Result<()> {
    let can = &agent.prompt_capabilities;
    for block in blocks {
        match block {
            ContentBlock::Image(_) if !can.image => return Err(Error::Unsupported("images in prompts")),
            ContentBlock::Audio(_) if !can.audio => return Err(Error::Unsupported("sound in prompts")),
            ContentBlock::Resource(_) if !can.embedded_context => {
                return Err(Error::Unsupported("included resources in prompts"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Cancels turns and changes settings of a session from any task. Made by [`Session::control`];
/// cheap to clone, does not keep the session open.
///
/// ```
/// # async fn run(mut session: attache::client::Session) -> attache::Result<()> {
/// let control = session.control();
/// control.set_mode("code").await?;
/// control.set_config_option("fast", true).await?;
/// let turn = session.prompt("Refactor everything").await?;
/// tokio::spawn(async move {
///     tokio::time::sleep(std::time::Duration::from_secs(60)).await;
///     control.cancel();
/// });
/// println!("{:?}", turn.finish().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SessionControl {
    pub(super) agent: AgentHandle,
    pub(super) lane: Arc<Lane>,
}

impl SessionControl {
    /// The session id.
    pub fn id(&self) -> &SessionId {
        &self.lane.id
    }

    /// Cancels the running turn like [`TurnEvents::cancel`]. Without one it does nothing, and never
    /// affects the next turn.
    pub fn cancel(&self) {
        self.lane.cancel();
    }

    /// The state of the session, if it is known.
    pub fn state(&self) -> Option<SessionState> {
        self.lane.state(|state| state.now.clone())
    }

    /// Cancels one tool call. It ends with a status of its own; the turn continues. Needs an agent
    /// of version 2 that offers it: [`ToolCall::cancellable`](super::ToolCall::cancellable).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the call cannot be cancelled now. Nothing is sent then.
    // V2-30
    pub async fn cancel_tool_call(&self, id: &ToolCallId) -> Result<()> {
        if !self.lane.state(|state| state.is_cancellable(id)) {
            return Err(Error::Unsupported("to cancel this tool call"));
        }
        let request = v2::CancelToolCallRequest::new(self.lane.id.clone(), id.clone());
        self.agent.0.request(&request).await.map(drop)
    }

    /// Cancels the command of a terminal of the agent; see
    /// [`AgentTerminal::cancellable`](super::AgentTerminal::cancellable).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the command cannot be cancelled now. Nothing is sent then.
    // V2-30
    pub async fn cancel_terminal(&self, id: &TerminalId) -> Result<()> {
        if !self.lane.state(|state| state.is_cancellable_terminal(id)) {
            return Err(Error::Unsupported("to cancel this command"));
        }
        let request = v2::CancelTerminalRequest::new(self.lane.id.clone(), id.as_str());
        self.agent.0.request(&request).await.map(drop)
    }

    /// Changes the mode, or the option of category `mode` of an agent that has no modes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the mode is unknown. Nothing is sent then.
    // MODE-03
    pub async fn set_mode(&self, mode: impl Into<SessionModeId>) -> Result<()> {
        let mode = mode.into();
        let has_modes = self.lane.state(|state| {
            let Some(modes) = &state.modes else { return Ok(false) };
            let available = modes.available_modes.iter().map(|offered| offered.id.as_str());
            check_offered("mode", mode.as_str(), available).map(|()| true)
        })?;
        if self.agent.0.is_v2() || !has_modes {
            let option = self.option_of(&SessionConfigOptionCategory::Mode);
            let option = option.ok_or(Error::Unsupported("session modes"))?;
            return self.set_config_option(option, mode.as_str()).await.map(drop);
        }
        let lane = self.lane.clone();
        let request = SetSessionModeRequest::new(self.lane.id.clone(), mode.clone());
        let done = self.agent.0.in_order(&request, move |answer| {
            answer.map(|_| {
                lane.state(|state| {
                    if let Some(modes) = &mut state.modes {
                        modes.current_mode_id = mode;
                    }
                });
            })
        });
        done.await?
    }

    /// The select option of a category.
    pub(super) fn option_of(&self, category: &SessionConfigOptionCategory) -> Option<SessionConfigId> {
        self.lane.state(|state| {
            convert::select_of(&state.config_options, category).map(|(option, _)| option.id.clone())
        })
    }

    /// Sets a config option: to the id of one of its values, or to `true` or `false`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the option or the value is unknown. Nothing is sent then.
    // CONF-14
    pub async fn set_config_option(
        &self,
        option: impl Into<SessionConfigId>,
        value: impl Into<SessionConfigOptionValue>,
    ) -> Result<Arc<[SessionConfigOption]>> {
        let (option, value) = (option.into(), value.into());
        check_option(&self.lane.state(|state| state.config_options.clone()), &option, &value)?;
        let lane = self.lane.clone();
        if self.agent.0.is_v2() {
            let value = requests::option_value(value)?;
            let request = v2::SetSessionConfigOptionRequest::new(self.lane.id.clone(), option, value);
            let done = self.agent.0.in_order(&request, move |answer| {
                answer.map(|answer| {
                    let options: Arc<[SessionConfigOption]> = convert::options(answer.config_options).into();
                    lane.state(|state| {
                        state.config_options = options.clone();
                        state.derive_modes();
                    });
                    options
                })
            });
            return done.await?;
        }
        let request = SetSessionConfigOptionRequest::new(self.lane.id.clone(), option, value);
        let done = self.agent.0.in_order(&request, move |answer| {
            // CONF-13: the answer is the complete list.
            answer.map(|answer| {
                let options: Arc<[SessionConfigOption]> = answer.config_options.into();
                lane.state(|state| state.config_options = options.clone());
                options
            })
        });
        done.await?
    }
}

impl std::fmt::Debug for SessionControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SessionControl").field(self.id()).finish()
    }
}

/// An error that lists the alternatives, unless the value is among them.
pub(super) fn check_offered<'a>(
    what: &str,
    value: &str,
    available: impl Iterator<Item = &'a str> + Clone,
) -> Result<()> {
    match available.clone().any(|offered| offered == value) {
        true => Ok(()),
        false => Err(Error::Invalid(unknown(what, value, available))),
    }
}

fn check_option(
    options: &[SessionConfigOption],
    id: &SessionConfigId,
    value: &SessionConfigOptionValue,
) -> Result<()> {
    check_offered("option", id.as_str(), options.iter().map(|option| option.id.as_str()))?;
    let Some(option) = options.iter().find(|option| option.id == *id) else { return Ok(()) };
    match (&option.kind, value) {
        (SessionConfigKind::Select(select), SessionConfigOptionValue::ValueId(value)) => {
            let values: Vec<_> = select.options.iter().map(|offered| offered.value.as_str()).collect();
            check_offered(&format!("value of {id}"), value.as_str(), values.iter().copied())
        }
        (SessionConfigKind::Boolean(_), SessionConfigOptionValue::Boolean(_)) => Ok(()),
        (SessionConfigKind::Boolean(_), _) => {
            Err(Error::Invalid(format!("the option `{id}` is true or false")))
        }
        _ => Err(Error::Invalid(format!("the option `{id}` takes the id of one of its values"))),
    }
}
