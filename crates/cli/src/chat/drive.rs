//! The loop: session, keys and screen, one turn after the other.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use attache::client::{Agent, Control, Event, Loading, Session, Turn};
use attache::{Error, Result, StopReason};
use attache_host::budget::{Exceeded, Meter};

use super::app::{App, Effect, Opening, Phase};
use super::hub::{Happening, Hub, Outcome};
use super::state::{SessionState, Target};
use super::transcript::Severity;
use super::{Opener, attach, terminal};

/// Events that are taken in before anything else is looked at.
const BATCH: usize = 256;

/// How a turn ended.
type End = Result<Option<StopReason>>;

/// Why a part of the loop ended.
enum Next {
    Prompt(String),
    Open(Opening),
    Quit(u8),
}

pub(crate) struct Driver {
    pub(crate) hub: Hub,
    pub(crate) app: App,
    pub(crate) agent: Agent,
    pub(crate) opener: Opener,
    pub(crate) meter: Meter,
    pub(crate) time: Option<Duration>,
}

impl Driver {
    /// Until the user leaves or the agent ends; the exit code.
    pub(crate) async fn run(&mut self, mut session: Session) -> io::Result<u8> {
        loop {
            match self.idle(&mut session).await? {
                Next::Quit(code) => return Ok(code),
                Next::Open(opening) => match self.open(&opening, &session).await? {
                    Err(code) => return Ok(code),
                    Ok(Ok(next)) => {
                        let old = std::mem::replace(&mut session, next);
                        self.opened(&session);
                        self.app.next_prompt();
                        tokio::spawn(old.close());
                    }
                    Ok(Err(error)) => {
                        self.app.notice(Severity::Error, error.to_string());
                        self.app.next_prompt();
                    }
                },
                Next::Prompt(text) => {
                    if let Some(code) = self.turn(&mut session, &text).await? {
                        return Ok(code);
                    }
                }
            }
        }
    }

    /// Another session is the one that is shown.
    pub(crate) fn opened(&mut self, session: &Session) {
        let state = SessionState::of(session);
        self.app.notice(Severity::Info, format!("session {}", state.id));
        self.app.opened(state);
        (self.opener.opened)(session.id());
    }

    async fn idle(&mut self, session: &mut Session) -> io::Result<Next> {
        self.hub.dirty = true;
        loop {
            if let Some(next) = self.effects(session) {
                return Ok(next);
            }
            tokio::select! {
                biased;
                happening = self.hub.next(&mut self.app) => {
                    let happening = happening?;
                    let outcome = matches!(happening, Happening::Outcome(_));
                    if self.hub.happened(happening, &mut self.app) {
                        return Ok(Next::Quit(130));
                    }
                    if outcome {
                        self.app.state = SessionState::of(session);
                    }
                }
                event = session.next_update() => match event {
                    Ok(event) => {
                        self.hub.dirty = true;
                        let changes_state = changes_state(&event);
                        self.app.event(event);
                        if changes_state {
                            self.app.state = SessionState::of(session);
                        }
                    }
                    Err(error) => {
                        self.app.notice(Severity::Error, error.to_string());
                        return Ok(Next::Quit(1));
                    }
                },
            }
        }
    }

    /// Does what the chat wants, as far as it is not a change of the loop itself.
    fn effects(&mut self, session: &Session) -> Option<Next> {
        while let Some(effect) = self.app.effects.pop_front() {
            match effect {
                Effect::Quit(code) => return Some(Next::Quit(code)),
                Effect::Prompt(text) => return Some(Next::Prompt(text)),
                Effect::Open(opening) => return Some(Next::Open(opening)),
                Effect::Cancel => session.control().cancel(),
                Effect::Set(target, value) => self.set(session, target, value),
                Effect::ListSessions => self.list(session),
                Effect::OpenUrl(url) => {
                    // Nobody waits for this one: if sixteen others are still unread, it is not told.
                    let _ = self.hub.outcomes.0.try_send(Outcome::Browsed(terminal::browse(&url)));
                }
            }
        }
        None
    }

    /// One turn. A value means that the chat is over.
    async fn turn(&mut self, session: &mut Session, text: &str) -> io::Result<Option<u8>> {
        if let Err(exceeded) = self.meter.turn(Instant::now()) {
            self.app.notice(Severity::Error, exceeded.to_string());
            return Ok(None);
        }
        let capabilities = &self.agent.capabilities().prompt_capabilities;
        let (prompt, attached) = attach::prompt(text, session.cwd(), capabilities);
        self.app.turn_started(text, &attached, Instant::now());
        self.hub.deadline = self.time.and_then(|time| Instant::now().checked_add(time));
        let id = session.id().clone();
        let control = session.control();
        let mut turn = match session.prompt(prompt).await {
            Ok(turn) => turn,
            Err(error) => {
                self.app.turn_ended(&Err(error), None);
                return Ok(None);
            }
        };
        let end = loop {
            if let Some(Next::Quit(code)) = self.effects(turn.session()) {
                return Ok(Some(code));
            }
            tokio::select! {
                biased;
                happening = self.hub.next(&mut self.app) => {
                    let happening = happening?;
                    match happening {
                        Happening::TimeUp => {
                            self.hub.deadline = None;
                            let limit = self.time.unwrap_or_default();
                            self.stop(&control, &Exceeded::Time(limit).to_string());
                        }
                        Happening::Outcome(_) => {
                            self.hub.happened(happening, &mut self.app);
                            self.app.state = SessionState::of(turn.session());
                        }
                        happening => if self.hub.happened(happening, &mut self.app) {
                            return Ok(Some(130));
                        },
                    }
                }
                event = turn.next() => if let Some(end) = self.take_in(event, &mut turn, &control) {
                    break end;
                },
            }
        };
        let usage = turn.usage().cloned();
        drop(turn);
        self.hub.deadline = None;
        self.opener.policy.turn_over(&id);
        self.app.turn_ended(&end, usage.as_ref());
        if let Some(Err(exceeded)) = usage.as_ref().map(|usage| self.meter.counted(usage)) {
            self.app.notice(Severity::Warning, exceeded.to_string());
        }
        if let Err(error) = &end
            && error.is_auth_required()
        {
            self.app.notice(Severity::Info, self.opener.login.clone());
        }
        Ok(self.agent.is_closed().then_some(1))
    }

    /// Takes in an event of the turn, and those that have come already; the keys have their turn after that. A value is how
    /// the turn ended.
    fn take_in(
        &mut self,
        first: Result<Option<Event>>,
        turn: &mut Turn<'_>,
        control: &Control,
    ) -> Option<End> {
        self.hub.dirty = true;
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
            let changes_state = changes_state(&event);
            self.app.event(event);
            if changes_state {
                self.app.state = SessionState::of(turn.session());
            }
            left -= 1;
            next = if left > 0 { ready(turn.next()) } else { None };
        }
        None
    }

    /// A limit is reached: the turn is cancelled, and says why.
    fn stop(&mut self, control: &Control, why: &str) {
        if let Phase::Running { cancelling: cancelling @ false, .. } = &mut self.app.phase {
            *cancelling = true;
            control.cancel();
            self.app.notice(Severity::Error, format!("{why}; the turn is cancelled"));
        }
    }

    fn set(&self, session: &Session, target: Target, value: String) {
        let control = session.control();
        let sender = self.hub.outcomes.0.clone();
        tokio::spawn(async move {
            let (name, done) = match target {
                Target::Mode => ("mode".to_owned(), control.set_mode(value.clone()).await),
                Target::Model => ("model".to_owned(), control.set_model(value.clone()).await),
                Target::Option(id) => {
                    let value = attache::wire::v1::SessionConfigValueId::from(value.clone());
                    (id.clone(), control.set_config_option(id, value).await.map(drop))
                }
                Target::Switch(id) => {
                    (id.clone(), control.set_config_option(id, value == "on").await.map(drop))
                }
            };
            let _ = sender.send(Outcome::Set(done.map(|()| format!("{name}: {value}")))).await;
        });
    }

    fn list(&self, session: &Session) {
        let sender = self.hub.outcomes.0.clone();
        let Some(listing) = self.agent.listing() else {
            let _ = sender.try_send(Outcome::Listed(Err(Error::Unsupported("listing its sessions"))));
            return;
        };
        let cwd = session.cwd().to_string_lossy().into_owned();
        tokio::spawn(async move {
            let _ = sender.send(Outcome::Listed(listing.sessions().cwd(cwd).all().await)).await;
        });
    }

    /// Opens a session while the screen stays alive. The outer error is the exit code of a user who does not wait.
    async fn open(
        &mut self,
        opening: &Opening,
        session: &Session,
    ) -> io::Result<std::result::Result<Result<Session>, u8>> {
        self.app.phase = Phase::Opening(Instant::now());
        let opened = match opening {
            Opening::New => self.wait(session, self.opener.new_session(&self.agent)).await?,
            Opening::Fork => self.wait(session, self.opener.fork(&self.agent, session.id())).await?,
            Opening::Load(id) if self.agent.loading().is_some() => {
                match self.opener.load(&self.agent, id).await {
                    Ok(loading) => return self.load(loading).await,
                    Err(error) => Ok(Err(error)),
                }
            }
            Opening::Load(id) => self.wait(session, self.opener.resume(&self.agent, id)).await?,
        };
        self.app.phase = Phase::Idle;
        Ok(opened)
    }

    async fn wait(
        &mut self,
        session: &Session,
        opening: impl Future<Output = Result<Session>> + 'static,
    ) -> io::Result<std::result::Result<Result<Session>, u8>> {
        let mut opening = pin!(opening);
        loop {
            if self.app.effects.contains(&Effect::Cancel) {
                self.app.effects.clear();
                return Ok(Ok(Err(Error::Cancelled)));
            }
            if let Some(Next::Quit(code)) = self.effects(session) {
                return Ok(Err(code));
            }
            tokio::select! {
                biased;
                happening = self.hub.next(&mut self.app) => {
                    if self.hub.happened(happening?, &mut self.app) {
                        return Ok(Err(130));
                    }
                }
                opened = &mut opening => return Ok(Ok(opened)),
            }
        }
    }

    /// Shows the history of a session that is being loaded.
    pub(crate) async fn load(
        &mut self,
        mut loading: Loading,
    ) -> io::Result<std::result::Result<Result<Session>, u8>> {
        self.app.phase = Phase::Opening(Instant::now());
        self.hub.dirty = true;
        let failed = loop {
            match self.app.effects.pop_front() {
                Some(Effect::Cancel) => break Some(Error::Cancelled),
                Some(Effect::Quit(code)) => return Ok(Err(code)),
                // Nothing else can be wished for before there is a session.
                _ => {}
            }
            tokio::select! {
                biased;
                happening = self.hub.next(&mut self.app) => {
                    if self.hub.happened(happening?, &mut self.app) {
                        return Ok(Err(130));
                    }
                }
                event = loading.next() => match event {
                    Ok(Some(event)) => {
                        self.hub.dirty = true;
                        self.app.event(event);
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                },
            }
        };
        self.app.phase = Phase::Idle;
        self.app.transcript.end_turn();
        match failed {
            Some(error) => Ok(Ok(Err(error))),
            None => Ok(Ok(loading.finish().await)),
        }
    }

    /// The last picture: everything that was said, and no prompt.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.app.questions.clear();
        self.app.transcript.end_turn();
        self.hub.draw(&mut self.app)?;
        self.hub.screen.leave()
    }
}

/// What a future gives without waiting.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    // Whoever waits for it afterwards polls it again, with a waker that works.
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
