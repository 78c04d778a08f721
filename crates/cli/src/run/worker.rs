//! Keeps the session of a record alive and runs its prompts, one after the other.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use attache::client::{AgentHandle, Session, SessionControl};
use attache::{Closed, ContentBlock, Reason};
use attache_host::policy::{Memory, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::exec::{leave, stopped_early};
use super::live::{Connection, Restored, note_session};
use super::permits::Permits;
use super::protocol::SetResult;
use super::renderer::{Renderer, View};
use super::settings::{model_option_id, set_mode, set_model, set_option};
use super::setup::SessionSetup;
use super::turn::{Ended, Stop, Task, late, run, stopped, timed_out};
use crate::client_services::ClientServices;
use crate::error::{DetailCode, Failure, Result};
use crate::paths::Paths;
use crate::session_store::{Record, Recorder, Store};
use crate::time::now;
use crate::wire::{Lines, Wire};

/// Runs the agent of a session and its prompts.
pub(crate) struct Worker {
    paths: Paths,
    store: Store,
    setup: SessionSetup,
    id: String,
    wire: Wire,
    live: Option<Live>,
    recorder: Option<Recorder>,
    verbose: bool,
    /// Answers to permission questions that hold until the session ends.
    memory: OnceLock<Arc<Memory>>,
}

struct Live {
    connection: Connection,
    session: Session,
}

/// Controls the session of a running prompt from other tasks.
#[derive(Clone)]
pub(crate) struct RunningSession {
    pub(super) agent: AgentHandle,
    pub(super) control: SessionControl,
    /// The option for models.
    pub(super) model: Option<String>,
    /// Whether the agent has sent its options.
    pub(super) options: bool,
}

impl RunningSession {
    fn new(session: &Session) -> RunningSession {
        RunningSession {
            agent: session.agent().clone(),
            control: session.control(),
            model: model_option_id(session),
            options: !session.config_options().is_empty(),
        }
    }
}

/// A prompt to run.
pub(crate) struct PromptJob {
    pub(crate) blocks: Vec<ContentBlock>,
    pub(crate) permits: Permits,
    /// Switch to this model first.
    pub(crate) model: Option<String>,
    /// The name of the prompt in the history.
    pub(crate) request: Option<String>,
}

/// The result of starting the agent and restoring its session.
struct Ready {
    /// A note for the user.
    note: Option<String>,
    /// Whether the agent was started and restored the session.
    resumed: bool,
}

/// A setting to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Setting {
    Mode(String),
    Model(String),
    Option(String, String),
}

impl Worker {
    pub(crate) fn new(paths: &Paths, setup: SessionSetup, record: &Record, verbose: bool) -> Worker {
        let store = Store::new(paths).with_secrets(setup.secrets());
        let recorder = store.history(&record.id).record(store.mask()).ok();
        Worker {
            paths: paths.clone(),
            store,
            setup,
            id: record.id.clone(),
            wire: Wire::default(),
            live: None,
            recorder,
            verbose,
            memory: OnceLock::new(),
        }
    }

    fn record(&self) -> Result<Record> {
        let gone = || Failure::runtime(format_args!("the record of the session {} is gone", self.id));
        self.store.get(&self.id).ok_or_else(gone)
    }

    /// Runs a prompt. Calls `running` as soon as the session can be controlled by others.
    pub(crate) async fn prompt(
        &mut self,
        work: PromptJob,
        renderer: &mut Renderer,
        stop: &mut Stop,
        running: impl FnOnce(RunningSession),
    ) -> Result<Ended> {
        let record = self.record()?;
        if let Some(limit) = work.permits.max_turns.filter(|limit| record.turns >= *limit) {
            return Err(Failure::runtime(format_args!(
                "the session has had {}; the limit is {limit}",
                crate::output::count(record.turns, "turn")
            ))
            .detail(DetailCode::BudgetExceeded));
        }
        let limit = work.permits.timeout.unwrap_or_default();
        let deadline = work.permits.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut recorder = self.recorder.take();
        if let Some(recorder) = &mut recorder {
            recorder.set_request(work.request.clone());
        }
        let mut view = View::new(renderer, recorder.as_mut(), self.wire.clone());
        let result = async {
            let ready = self.ready(&record, &work);
            let ready = view.during(async {
                tokio::select! {
                    ready = ready => ready,
                    why = stopped(stop) => Err(stopped_early(why)),
                    () = late(deadline) => Err(timed_out(limit)),
                }
            });
            if let Some(note) = ready.await?.note {
                view.renderer.note(&note).await;
            }
            let Some(live) = &mut self.live else { return Err(Failure::runtime("the session is gone")) };
            running(RunningSession::new(&live.session));
            let policy = live.connection.services.policy();
            let started = now();
            self.store.change(&self.id, |record| {
                record.last_prompt_at = Some(started.clone());
                record.last_used_at = started;
                record.turns += 1;
            })?;
            let Live { connection, session } = live;
            let task = Task {
                agent: &connection.setup.spec.name,
                session,
                guard: &mut connection.guard,
                policy: &policy,
                permits: &work.permits,
                blocks: &work.blocks,
                deadline,
            };
            let result = run(task, &mut view, stop).await;
            if result.as_ref().is_err_and(|failure| failure.answered.is_some()) {
                connection.stderr.settle().await;
            }
            result.map_err(|failure| connection.with_cause(failure))
        }
        .await;
        self.recorder = recorder;
        self.after(&work.permits).await?;
        result
    }

    /// Starts the agent and restores its session, unless it runs already.
    async fn ready(&mut self, record: &Record, work: &PromptJob) -> Result<Ready> {
        let policy = self.policy(&work.permits)?;
        if self.live.as_ref().is_some_and(|live| live.connection.agent.is_closed()) {
            self.live = None;
        }
        let (mut note, mut resumed) = (None, false);
        match &self.live {
            Some(live) => live.connection.services.set(policy),
            None => {
                let (services, guard) = ClientServices::new(policy, self.setup.command_sandbox(&self.paths));
                let stderr = super::exec::show_stderr(self.verbose, &self.setup);
                let connection =
                    Connection::start(self.setup.clone(), services, guard, self.wire.clone(), stderr).await?;
                if work.model.is_none() && self.setup.model.is_none() && record.model.is_none() {
                    crate::model_setup::require(&self.setup.spec, &connection.agent).await?;
                }
                let (session, restored) = connection.restore(record).await?;
                let problems = connection.set_again(&session, record).await;
                resumed = !matches!(restored, Restored::Replaced(_));
                if let Restored::Replaced(reason) = &restored
                    && record.turns > 0
                {
                    note =
                        Some(format!("the conversation could not be restored ({reason}); this is a new one"));
                }
                for problem in problems {
                    note = Some(note.map_or_else(|| problem.clone(), |note| format!("{note}; {problem}")));
                }
                let restorable = connection.agent.resumer().is_some() || connection.agent.loader().is_some();
                let version = connection.agent.protocol_version();
                let elsewhere = self.wire.agent_session();
                self.store.change(&self.id, |record| {
                    record.agent_session = elsewhere.or_else(|| record.agent_session.take());
                    record.restorable = Some(restorable);
                    record.agent_started_at = Some(now());
                    record.protocol_version = Some(version.0);
                    note_session(record, &session);
                })?;
                self.live = Some(Live { connection, session });
            }
        }
        if let (Some(model), Some(live)) = (&work.model, &self.live) {
            set_model(&live.session, model).await?;
        }
        Ok(Ready { note, resumed })
    }

    fn policy(&self, permits: &Permits) -> Result<attache_host::policy::Policy> {
        let roots: Vec<_> =
            std::iter::once(self.setup.cwd.clone()).chain(self.setup.directories.clone()).collect();
        let policy = permits.policy(&self.paths, &self.setup.spec, &roots, self.setup.secrets())?;
        // Answers "until this session ends" outlive the prompt that they were given in.
        let policy = match self.memory.get() {
            Some(memory) => policy.memory(memory.clone()),
            None => policy,
        };
        let _ = self.memory.set(policy.shared_memory());
        Ok(policy.span(Span::Session))
    }

    /// Restricts the agent between turns and updates the record.
    async fn after(&mut self, permits: &Permits) -> Result<()> {
        if let Some(live) = &self.live {
            live.connection.services.set(self.policy(&permits.between_turns())?);
            live.connection.stderr.clear();
            let session = &live.session;
            self.store.change(&self.id, |record| {
                record.last_used_at = now();
                note_session(record, session);
            })?;
            if live.connection.agent.is_closed() {
                let closed = live.connection.agent.closed().await;
                self.gone(&closed)?;
            }
        }
        Ok(())
    }

    /// Changes a setting and records it, so that it is set again after a restart of the agent.
    pub(crate) async fn set(
        &mut self,
        setting: &Setting,
        permits: &Permits,
        renderer: &mut Renderer,
    ) -> Result<SetResult> {
        let record = self.record()?;
        let work = PromptJob { blocks: Vec::new(), permits: permits.clone(), model: None, request: None };
        let mut view = View::new(renderer, None, self.wire.clone());
        let Ready { resumed, .. } = view.during(self.ready(&record, &work)).await?;
        let Some(live) = &self.live else { return Err(Failure::runtime("the session is gone")) };
        let session = &live.session;
        let setting_it = async {
            Ok(match setting {
                Setting::Mode(mode) => set_mode(session, mode).await.map(|()| Value::Null)?,
                Setting::Model(model) => set_model(session, model).await.map(|()| Value::Null)?,
                Setting::Option(key, value) => json!(&*set_option(session, key, value).await?),
            })
        };
        let done =
            view.during(setting_it).await.map_err(|failure: Failure| live.connection.with_cause(failure))?;
        self.store.change(&self.id, |record| {
            note_setting(record, setting);
            note_session(record, session);
        })?;
        Ok(SetResult { options: done, resumed })
    }

    /// Waits for the end of the agent and denies its questions meanwhile. Never resolves if no
    /// agent runs.
    pub(crate) async fn idle(&mut self) -> Option<Closed> {
        let Some(live) = &mut self.live else { return std::future::pending().await };
        let mut lines = Lines::default();
        loop {
            tokio::select! {
                closed = live.connection.agent.closed() => return Some(closed),
                // A question that is dropped is answered with no.
                Some(_) = live.connection.guard.recv() => {}
                () = self.wire.changed() => self.wire.take(&mut lines),
                event = live.session.next_update() => {
                    // A question between turns is answered `cancelled` by dropping it.
                    if event.is_err() {
                        return Some(live.connection.agent.closed().await);
                    }
                }
            }
        }
    }

    /// Records the end of the agent.
    pub(crate) fn gone(&mut self, closed: &Closed) -> Result<()> {
        self.live = None;
        self.store.change(&self.id, |record| {
            record.last_exit_at = Some(now());
            record.last_exit_code = closed.exit.and_then(|exit| exit.code());
            record.last_exit_signal = closed.exit.and_then(signal);
            record.disconnect_reason = Some(match &closed.reason {
                Reason::LocalClose | Reason::Dropped => "closed".to_owned(),
                Reason::HalfLine(_) => "process_exit_mid_line".to_owned(),
                Reason::Io(error) => format!("connection: {error}"),
                _ => "process_exit".to_owned(),
            });
        })?;
        Ok(())
    }

    /// Ends the agent. With `close`, the session is closed first.
    // SESS-25
    pub(crate) async fn shutdown(&mut self, close: bool) {
        let Some(Live { connection, session }) = self.live.take() else { return };
        if close {
            let limit = self.setup.cancel_timeout;
            let _ = tokio::time::timeout(limit, session.close()).await;
        } else {
            drop(session);
        }
        leave(&connection.agent).await;
    }
}

/// Writes a setting into a record.
pub(crate) fn note_setting(record: &mut Record, setting: &Setting) {
    match setting {
        Setting::Mode(mode) => record.mode = Some(mode.clone()),
        Setting::Model(model) => record.model = Some(model.clone()),
        Setting::Option(key, value) => {
            record.options.insert(key.clone(), json!(value));
        }
    }
}

#[cfg(unix)]
fn signal(exit: std::process::ExitStatus) -> Option<String> {
    use std::os::unix::process::ExitStatusExt as _;
    exit.signal().map(|signal| match signal {
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        6 => "SIGABRT".to_owned(),
        9 => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        13 => "SIGPIPE".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    })
}

#[cfg(not(unix))]
fn signal(_exit: std::process::ExitStatus) -> Option<String> {
    None
}
