//! Opens sessions: the first one, another one, and the same one again after the agent has failed.

use std::io;
use std::pin::pin;
use std::time::Instant;

use attache::client::{Session, SessionReplay, Speaker};
use attache::{Error, Result};
use tokio::sync::mpsc;

use super::Opener;
use super::app::{Effect, OpenTarget, Phase};
use super::drive::{Driver, InitialSession, OrExit};
use super::start::lost;
use super::tasks::Tasks;
use super::transcript::Severity;
use crate::error::{Context as _, Failure};
use crate::run;

impl Driver<'_> {
    /// Opens the first session and shows its history.
    pub(super) async fn begin(&mut self, first: InitialSession) -> crate::error::Result<OrExit<Session>> {
        let session = match first {
            InitialSession::Session(session) => {
                self.recall();
                *session
            }
            InitialSession::Loading(loading) => match self.load(loading).await.context("the terminal")? {
                Err(code) => return Ok(Err(code)),
                Ok(Ok(session)) => session,
                Ok(Err(error)) => self.instead(error).await?,
            },
        };
        let connection = self.connection.clone();
        if let Some(kept) = &mut self.saved {
            kept.replaced(&session);
            let agent = &connection.agent;
            let restorable = agent.resumer().is_some() || agent.loader().is_some();
            kept.started(restorable, agent.protocol_version());
            if let Some(record) = kept.record() {
                for problem in connection.set_again(&session, &record).await {
                    self.app.notice(Severity::Warning, problem);
                }
            }
        }
        self.opened(&session);
        Ok(Ok(session))
    }

    /// Shows the recorded text, because a resumed session does not replay its history.
    fn recall(&mut self) {
        for (role, text) in self.saved.as_ref().map_or(Vec::new(), |saved| saved.messages()) {
            let speaker = if role == "user" { Speaker::User } else { Speaker::Agent };
            self.app.transcript.say(speaker, &text);
            self.app.transcript.end_turn();
        }
    }

    /// Opens a new session in place of one that the agent could not load.
    async fn instead(&mut self, error: Error) -> crate::error::Result<Session> {
        let connection = self.connection.clone();
        let record = self.saved.as_ref().and_then(|kept| kept.record());
        let imported = record.as_ref().is_some_and(|record| record.imported);
        if imported || error.is_auth_required() || matches!(error, Error::Closed(_) | Error::Cancelled) {
            return Err(connection.explain(error, "cannot load the session"));
        }
        if record.is_some_and(|record| record.turns > 0) {
            self.recall();
            self.app.notice(Severity::Warning, lost(&Failure::from(error).message));
        }
        connection.new_session().await
    }

    /// Restarts the agent and reopens the session. Returns `None` after a failure, which is on the
    /// screen then.
    pub(super) async fn restart(&mut self, old: &Session) -> io::Result<OrExit<Option<Session>>> {
        self.app.notice(Severity::Info, "restarting the agent");
        let (starter, before, id) = (self.starter.clone(), self.connection.agent.clone(), old.id().clone());
        let starting = async move {
            run::leave(&before).await;
            let connection = starter.connect().await?;
            let (session, reason) = match connection.find_session(id.as_str()).await {
                Some(Ok((session, _))) => (session, None),
                Some(Err(error)) => (connection.new_session().await?, Some(Failure::from(error).message)),
                None => {
                    (connection.new_session().await?, Some("the agent cannot resume sessions".to_owned()))
                }
            };
            Ok::<_, Failure>((Opener::of(&connection)?, connection, session, reason))
        };
        let (opener, mut connection, session, reason) = match self.wait(starting).await? {
            Err(code) => return Ok(Err(code)),
            Ok(Some(Ok(started))) => started,
            Ok(Some(Err(failure))) => {
                self.tell(failure);
                self.app.phase = Phase::Gone;
                return Ok(Ok(None));
            }
            Ok(None) => {
                self.app.notice(Severity::Warning, "cancelled");
                // The previous agent has exited already.
                self.app.phase = Phase::Gone;
                return Ok(Ok(None));
            }
        };
        let (_, closed) = mpsc::channel(1);
        self.ui.guard = std::mem::replace(&mut connection.guard, closed);
        self.ui.connection = connection.agent.events();
        self.app.policy = opener.policy.clone();
        self.opener = opener;
        self.connection = connection.into();
        self.end_shown = false;
        if let Some(kept) = &mut self.saved
            && kept.is(old.id())
        {
            kept.replaced(&session);
        }
        if let Some(reason) = reason {
            self.app.notice(Severity::Warning, lost(&reason));
        }
        self.opened(&session);
        Ok(Ok(Some(session)))
    }

    /// Opens a session while the screen stays responsive.
    pub(super) async fn open(
        &mut self,
        opening: &OpenTarget,
        session: &Session,
    ) -> io::Result<OrExit<Result<Session>>> {
        let agent = self.connection.agent.clone();
        let opened = match opening {
            OpenTarget::New | OpenTarget::Restart => self.wait(self.opener.new_session(&agent)).await?,
            OpenTarget::Fork => self.wait(self.opener.fork(&agent, session.id())).await?,
            OpenTarget::Load(id) if agent.loader().is_some() => {
                return match self.opener.load(&agent, id).await {
                    Ok(loading) => self.load(loading).await,
                    Err(error) => Ok(Ok(Err(error))),
                };
            }
            OpenTarget::Load(id) => self.wait(self.opener.resume(&agent, id)).await?,
        };
        Ok(opened.map(|opened| opened.unwrap_or(Err(Error::Cancelled))))
    }

    /// Waits for a session to open.
    async fn wait<T>(&mut self, work: impl Future<Output = T>) -> io::Result<OrExit<Option<T>>> {
        self.app.phase = Phase::Opening(Instant::now());
        self.ui.dirty = true;
        let done = self.meanwhile(work).await;
        self.app.phase = Phase::Idle;
        done
    }

    /// Shows the history of a session while it loads.
    async fn load(&mut self, mut loading: SessionReplay) -> io::Result<OrExit<Result<Session>>> {
        self.app.phase = Phase::Opening(Instant::now());
        let before = std::mem::replace(&mut self.app.transcript.tasks, Tasks::of_replay());
        let failed = loop {
            self.ui.dirty = true;
            match self.meanwhile(loading.next()).await? {
                Err(code) => return Ok(Err(code)),
                Ok(None) => break Some(Error::Cancelled),
                Ok(Some(Ok(Some(event)))) => self.app.event(event),
                Ok(Some(Ok(None))) => break None,
                Ok(Some(Err(error))) => break Some(error),
            }
        };
        self.app.phase = Phase::Idle;
        self.app.transcript.end_turn();
        match failed {
            Some(error) => {
                self.app.transcript.tasks = before;
                Ok(Ok(Err(error)))
            }
            None => Ok(Ok(loading.finish().await)),
        }
    }

    /// Waits while the screen stays responsive. Returns `None` if the user cancelled.
    pub(super) async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> io::Result<OrExit<Option<T>>> {
        let mut work = pin!(work);
        loop {
            match self.interim() {
                Some(Interim::Cancel) => return Ok(Ok(None)),
                Some(Interim::Leave(code)) => return Ok(Err(code)),
                None => {}
            }
            tokio::select! {
                biased;
                event = self.ui.next(&mut self.app) => {
                    if self.ui.happened(event?, &mut self.app) {
                        return Ok(Err(130));
                    }
                }
                done = &mut work => return Ok(Ok(Some(done))),
            }
        }
    }

    /// Handles effects before there is a session.
    fn interim(&mut self) -> Option<Interim> {
        while let Some(effect) = self.app.effects.pop_front() {
            match effect {
                Effect::Cancel => return Some(Interim::Cancel),
                Effect::Quit(code) => return Some(Interim::Leave(code)),
                Effect::Prompt(text) => self.app.queue.push_back(text),
                Effect::Set(..) | Effect::ListSessions | Effect::Open(_) | Effect::CancelTask(_) => {
                    self.app.notice(Severity::Warning, "no session yet");
                }
                other => drop(self.aside_effect(other)),
            }
        }
        None
    }
}

enum Interim {
    Cancel,
    Leave(u8),
}
