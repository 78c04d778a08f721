//! The main loop: session, keys and screen, turn by turn.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use attache::client::{Event, Session, SessionControl, SessionReplay, TurnEvents};
use attache::{Error, Result, StopReason};
use attache_host::budget::{Exceeded, Meter};

use super::app::{App, Effect, OpenTarget, Phase};
use super::saved_session::SavedSession;
use super::start::Starter;
use super::state::{SessionState, Target};
use super::transcript::Severity;
use super::ui::{TaskResult, Ui, UiEvent};
use super::{Opener, attach};
use crate::error::{Context as _, Failure};
use crate::run::{Connection, Setting};

/// Events that are handled in one go before keys are read.
const BATCH: usize = 256;

/// The end of a turn.
type End = Result<Option<StopReason>>;

/// The next step after a part of the loop.
enum Next {
    Prompt(String),
    Open(OpenTarget),
    Quit(u8),
}

/// The session that a chat starts with.
pub(crate) enum InitialSession {
    Session(Box<Session>),
    /// A session whose history is being replayed.
    Loading(SessionReplay),
}

/// A result, or the exit code if the user quit meanwhile.
pub(super) type OrExit<T> = std::result::Result<T, u8>;

pub(crate) struct Driver<'a> {
    pub(crate) ui: Ui,
    pub(crate) app: App,
    pub(crate) connection: Rc<Connection>,
    pub(crate) opener: Opener,
    pub(crate) starter: Rc<Starter<'a>>,
    pub(crate) saved: Option<SavedSession>,
    pub(crate) meter: Meter,
    /// Whether the exit of the agent was reported.
    pub(crate) end_shown: bool,
    /// The checkpoint of the last turn.
    pub(crate) checkpoint: Option<i64>,
}

impl Driver<'_> {
    /// Runs until the user quits; returns the exit code.
    pub(crate) async fn begin_and_run(&mut self, first: InitialSession) -> crate::error::Result<u8> {
        match self.begin(first).await? {
            Ok(session) => {
                // Prompts that were typed during the replay.
                self.app.next_prompt();
                self.run(session).await.context("the terminal")
            }
            Err(code) => Ok(code),
        }
    }

    async fn run(&mut self, mut session: Session) -> io::Result<u8> {
        loop {
            match self.idle(&mut session).await? {
                // Quitting after the agent has failed is not a success.
                Next::Quit(0) if self.app.phase == Phase::Gone => return Ok(1),
                Next::Quit(code) => return Ok(code),
                Next::Open(OpenTarget::Restart) => match self.restart(&session).await? {
                    Err(code) => return Ok(code),
                    Ok(Some(next)) => {
                        session = next;
                        self.app.next_prompt();
                    }
                    Ok(None) => self.app.requeue(),
                },
                Next::Open(opening) => match self.open(&opening, &session).await? {
                    Err(code) => return Ok(code),
                    Ok(Ok(next)) => {
                        let old = std::mem::replace(&mut session, next);
                        self.opened(&session);
                        self.app.next_prompt();
                        tokio::spawn(old.close());
                    }
                    Ok(Err(error)) => {
                        self.tell(error);
                        self.app.next_prompt();
                    }
                },
                Next::Prompt(text) => {
                    if self.app.phase == Phase::Gone {
                        match self.restart(&session).await? {
                            Err(code) => return Ok(code),
                            Ok(Some(next)) => session = next,
                            Ok(None) => {
                                // Typed text is not lost.
                                self.app.queue.push_front(text);
                                self.app.requeue();
                                continue;
                            }
                        }
                    }
                    if let Some(code) = self.turn(&mut session, &text).await? {
                        return Ok(code);
                    }
                }
            }
        }
    }

    /// Switches the screen to another session.
    pub(crate) fn opened(&mut self, session: &Session) {
        let state = SessionState::of(session);
        self.app.notice(Severity::Info, format!("session {}", state.id));
        self.app.opened(state);
        // A conversation without a name is a record of its own.
        if self.saved.as_ref().is_some_and(|saved| !saved.is(session.id()) && !saved.is_named()) {
            self.saved = None;
            if let Some(traffic) = &mut self.ui.traffic {
                traffic.record(None);
            }
        }
        if let Some(kept) = &mut self.saved {
            let here = kept.opened(session);
            if let Some(traffic) = &mut self.ui.traffic {
                traffic.take();
                traffic.recording = here;
            }
            if here && self.app.known_title.is_none() {
                self.app.known_title = kept.record().and_then(|record| record.name);
            }
            if !here && let Some(name) = kept.record().and_then(|record| record.name) {
                self.app.notice(Severity::Info, format!("this conversation is not saved in {name}"));
            }
        }
    }

    /// Shows an error without secrets: a failing agent may quote anything.
    pub(super) fn tell(&mut self, failure: impl Into<Failure>) {
        let text = self.connection.with_cause(failure.into()).text();
        let text = self.starter.mask.text(&text).into_owned();
        self.app.notice(Severity::Error, text);
    }

    /// Handles the exit of the agent, which can be restarted.
    async fn gone(&mut self) {
        if !std::mem::take(&mut self.end_shown) {
            let closed = self.connection.agent.closed().await;
            self.tell(Error::Closed(closed));
        }
        self.app.prune();
        self.app.phase = Phase::Gone;
        self.ui.dirty = true;
    }

    async fn idle(&mut self, session: &mut Session) -> io::Result<Next> {
        self.ui.dirty = true;
        loop {
            if self.app.phase == Phase::Idle && self.connection.agent.is_closed() {
                self.gone().await;
            }
            if let Some(next) = self.effects(session) {
                return Ok(next);
            }
            // What it asks for, such as a restart after a login, comes first.
            if self.foreground().await? {
                continue;
            }
            let gone = self.app.phase == Phase::Gone;
            tokio::select! {
                biased;
                event = self.ui.next(&mut self.app) => {
                    if self.happened(event?, session) {
                        return Ok(Next::Quit(130));
                    }
                }
                event = session.next_update(), if !gone => match event {
                    Ok(event) => {
                        self.ui.dirty = true;
                        let changes_state = changes_state(&event);
                        self.app.event(event);
                        if changes_state {
                            self.app.state = SessionState::of(session);
                        }
                    }
                    Err(error) => {
                        self.tell(error);
                        self.end_shown = true;
                        self.gone().await;
                    }
                },
            }
        }
    }

    /// Gives the terminal to a program that the user wants to run. Returns whether there was one.
    async fn foreground(&mut self) -> io::Result<bool> {
        match self.app.foreground.take() {
            Some(job) => self.ui.foreground(job, &mut self.app).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Handles an event. Returns `true` if the program must end.
    fn happened(&mut self, event: UiEvent, session: &Session) -> bool {
        let outcome = matches!(event, UiEvent::TaskResult(_));
        if let (UiEvent::TaskResult(TaskResult::Set(Ok((setting, _)))), Some(kept)) = (&event, &self.saved) {
            kept.set(setting);
        }
        let ended = self.ui.happened(event, &mut self.app);
        if outcome {
            self.app.state = SessionState::of(session);
        }
        ended
    }

    /// Performs the effects that do not change the loop itself.
    fn effects(&mut self, session: &Session) -> Option<Next> {
        while let Some(effect) = self.app.effects.pop_front() {
            match effect {
                Effect::Quit(code) => return Some(Next::Quit(code)),
                Effect::Prompt(text) => return Some(Next::Prompt(text)),
                Effect::Open(opening) => return Some(Next::Open(opening)),
                Effect::Cancel => session.control().cancel(),
                Effect::Set(target, value) => self.set(session, target, value),
                Effect::ListSessions => self.list(session),
                Effect::Become(args) => {
                    self.app.successor = Some(args);
                    return Some(Next::Quit(0));
                }
                Effect::CancelTask(id) => self.cancel_task(session.control(), id),
                other => drop(self.aside_effect(other)),
            }
        }
        None
    }

    /// Runs a turn. A value is the exit code of the chat.
    async fn turn(&mut self, session: &mut Session, text: &str) -> io::Result<Option<u8>> {
        if let Err(exceeded) = self.meter.turn(Instant::now()) {
            self.app.notice(Severity::Error, exceeded.to_string());
            return Ok(None);
        }
        self.save_conversation(session, text).await;
        let capabilities = &self.connection.agent.capabilities().prompt_capabilities;
        let attach::Attached { prompt, notes, missing } = attach::prompt(text, session.cwd(), capabilities);
        self.app.turn_started(text, &notes, Instant::now());
        for name in missing {
            self.app.notice(Severity::Warning, format!("@{name}: there is no such file"));
        }
        if let Err(code) = self.begin_checkpoint(text).await? {
            return Ok(Some(code));
        }
        while let Ok(result) = self.ui.task_results.1.try_recv() {
            self.happened(UiEvent::TaskResult(result), session);
        }
        let prompt = self.with_carried(prompt);
        if let Some(kept) = &self.saved {
            kept.turn_started();
        }
        self.ui.deadline = self.app.time.and_then(|time| Instant::now().checked_add(time));
        let id = session.id().clone();
        let control = session.control();
        let mut turn = match session.prompt(prompt).await {
            Ok(turn) => turn,
            Err(error) => {
                self.end_checkpoint();
                self.turn_ended(&Err(error), None);
                return Ok(None);
            }
        };
        let end = loop {
            if let Some(Next::Quit(code)) = self.effects(turn.session()) {
                return Ok(Some(code));
            }
            // What it asks for, such as a restart after a login, comes first.
            if self.foreground().await? {
                continue;
            }
            tokio::select! {
                biased;
                event = self.ui.next(&mut self.app) => {
                    let event = event?;
                    if matches!(event, UiEvent::TimeUp) {
                        self.ui.deadline = None;
                        let limit = self.app.time.unwrap_or_default();
                        self.stop(&control, &Exceeded::Time(limit).to_string());
                    } else if self.happened(event, turn.session()) {
                        return Ok(Some(130));
                    }
                }
                event = turn.next() => if let Some(end) = self.take_in(event, &mut turn, &control) {
                    break end;
                },
            }
        };
        let usage = turn.usage().cloned();
        drop(turn);
        self.ui.deadline = None;
        self.opener.policy.turn_over(&id);
        self.end_checkpoint();
        if matches!(end, Err(Error::Refused(_))) {
            self.connection.stderr.settle().await;
        }
        self.turn_ended(&end, usage.as_ref());
        if let Some(kept) = &self.saved {
            kept.turn_ended(session);
        }
        if let Some(Err(exceeded)) = usage.as_ref().map(|usage| self.meter.counted(usage.total_tokens)) {
            self.app.notice(Severity::Warning, exceeded.to_string());
        }
        self.app.used = self.meter.tokens();
        if let Err(error) = &end
            && error.is_auth_required()
        {
            self.app.notice(Severity::Info, self.opener.login.clone());
        }
        Ok(None)
    }

    fn turn_ended(&mut self, end: &End, usage: Option<&attache::wire::v1::Usage>) {
        self.end_shown = matches!(end, Err(Error::Closed(_)));
        let (mask, connection) = (self.starter.mask.clone(), self.connection.clone());
        self.app.turn_ended(end, usage, |error| {
            let failure = connection.with_cause(Failure::from(error.clone()));
            mask.text(&failure.text()).into_owned()
        });
        connection.stderr.clear();
    }

    /// Handles an event of the turn and those that have arrived already; keys are read after that.
    /// A value is the end of the turn.
    fn take_in(
        &mut self,
        first: Result<Option<Event>>,
        turn: &mut TurnEvents<'_>,
        control: &SessionControl,
    ) -> Option<End> {
        self.ui.dirty = true;
        let mut next = Some(first);
        let mut left = BATCH;
        while let Some(event) = next {
            let event = match event {
                Ok(Some(event)) => event,
                Ok(None) => return Some(Ok(turn.stop_reason())),
                Err(error) => return Some(Err(error)),
            };
            if let Event::Usage(usage) = &event
                && let Err(exceeded) = self.meter.usage(usage)
            {
                self.stop(control, &exceeded.to_string());
            }
            self.app.used = self.meter.tokens();
            let changes_state = changes_state(&event);
            self.name_files(&event);
            self.app.event(event);
            if changes_state {
                self.app.state = SessionState::of(turn.session());
            }
            left -= 1;
            next = if left > 0 { ready(turn.next()) } else { None };
        }
        None
    }

    /// Cancels the turn at a limit and reports the reason.
    fn stop(&mut self, control: &SessionControl, why: &str) {
        if let Phase::Running { cancelling: cancelling @ false, .. } = &mut self.app.phase {
            *cancelling = true;
            control.cancel();
            self.app.notice(Severity::Error, format!("{why}; the turn is cancelled"));
        }
    }

    fn set(&self, session: &Session, target: Target, value: String) {
        let control = session.control();
        let sender = self.ui.task_results.0.clone();
        tokio::spawn(async move {
            let set = match &target {
                Target::Mode => control.set_mode(value.clone()).await,
                Target::Model => control.set_model(value.clone()).await,
                Target::Option(id) => {
                    let value = attache::wire::v1::SessionConfigValueId::from(value.clone());
                    control.set_config_option(id.clone(), value).await.map(drop)
                }
                Target::Switch(id) => control.set_config_option(id.clone(), value == "on").await.map(drop),
            };
            let (name, setting) = match target {
                Target::Mode => ("mode".to_owned(), Setting::Mode(value.clone())),
                Target::Model => ("model".to_owned(), Setting::Model(value.clone())),
                Target::Option(id) | Target::Switch(id) => (id.clone(), Setting::Option(id, value.clone())),
            };
            let _ = sender.send(TaskResult::Set(set.map(|()| (setting, format!("{name}: {value}"))))).await;
        });
    }

    fn list(&self, session: &Session) {
        let sender = self.ui.task_results.0.clone();
        let Some(listing) = self.connection.agent.lister() else {
            let _ = sender.try_send(TaskResult::Listed(Err(Error::Unsupported("listing its sessions"))));
            return;
        };
        let cwd = session.cwd().to_string_lossy().into_owned();
        tokio::spawn(async move {
            let _ = sender.send(TaskResult::Listed(listing.list().cwd(cwd).all().await)).await;
        });
    }

    /// Draws the last picture: the conversation without the prompt.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.app.questions.clear();
        self.app.transcript.end_turn();
        if let Some(traffic) = &mut self.ui.traffic {
            traffic.take();
        }
        self.ui.draw(&mut self.app)?;
        self.ui.screen.leave()
    }

    /// Drops everything but the connection.
    pub(crate) fn leave(self) -> Rc<Connection> {
        self.connection
    }
}

/// Polls a future once.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    // A later await polls it again with a real waker.
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn changes_state(event: &Event) -> bool {
    matches!(
        event,
        Event::Commands(_) | Event::Mode(_) | Event::ConfigOptions(_) | Event::Info(_) | Event::Usage(_)
    )
}
