//! The process that owns a session: it runs the agent and the prompts of all commands, and ends
//! when it has been idle for a while.
//!
//! The first command that needs it starts it, and it outlives that command. The lock of the session
//! marks its existence; the system releases the lock however the process dies, so there are no
//! stale owners.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::owner_limits::OwnerLimits;
use super::permits::Permits;
use super::protocol::{FollowUp, OwnerStatus, PromptRequest, RemoteCommand, Reply, SetResult};
use super::queue::{Job, Running, Shared};
use super::renderer::Renderer;
use super::settings::{switch_mode, switch_model, switch_option};
use super::setup::SessionSetup;
use super::socket::{ControlSocket, FollowUps, Handler, Questions, RemoteRenderer, Replies, ServedRequest};
use super::turn::StopCause;
use super::worker::{PromptJob, RunningSession, Setting, Worker, note_setting};
use crate::args::LONGEST_TIME;
use crate::config::MOST_RETRIES;
use crate::error::{Context as _, DetailCode, Failure, Result};
use crate::paths::Paths;
use crate::runtime::{Interrupts, runtime};
use crate::session_store::{Record, Store};

/// Connections besides those of queued prompts.
const FURTHER_CONNECTIONS: usize = 64;

/// The input of the owner process.
#[derive(Serialize, Deserialize)]
pub(super) struct OwnerStart {
    pub(super) session: String,
    pub(super) setup: SessionSetup,
    pub(super) permits: Permits,
    pub(super) ttl: Duration,
}

/// The main function of the owner. Its input comes on stdin.
pub(crate) fn run_owner(paths: &Paths) -> Result<()> {
    let input = io::read_to_string(io::stdin()).context("standard input")?;
    let OwnerStart { session, setup, permits, ttl } = serde_json::from_str(&input)
        .map_err(|error| Failure::usage(format_args!("this command is for the program itself: {error}")))?;
    crate::log::init(None)?;
    crate::log::mask_values(setup.secrets());
    let store = Store::new(paths);
    let Some(_lock) = store.own(&session)? else {
        // Another process was faster.
        let _ = writeln!(io::stdout(), "taken");
        return Ok(());
    };
    let record = store.get(&session).ok_or_else(|| Failure::runtime("there is no such session"))?;
    runtime(own(paths, setup, record, OwnerLimits::new(permits), ttl))
}

async fn own(
    paths: &Paths,
    setup: SessionSetup,
    record: Record,
    limits: OwnerLimits,
    ttl: Duration,
) -> Result<()> {
    let config = crate::config::load(paths, &record.cwd, None)
        .unwrap_or_else(|_| crate::config::fallback(paths, &record.cwd));
    let depth = config.settings.queue_max_depth;
    let (jobs, mut queue) = mpsc::channel(depth);
    let (ttl, mut ttl_now) = watch::channel(ttl);
    let store = Store::new(paths).with_secrets(setup.secrets());
    let shared = Arc::new(Shared::new(&record.id, jobs, ttl, store, limits));
    shared.store.change(&record.id, |record| record.pid = Some(std::process::id()))?;
    let socket = ControlSocket::open(paths, shared.clone(), depth + FURTHER_CONNECTIONS)?;
    let _ = writeln!(io::stdout(), "ready");
    let mut worker = Worker::new(paths, setup, &record, true);
    let mut interrupts = Interrupts::new();
    let mut closing = None;
    let mut session_over = false;
    loop {
        let ttl = *ttl_now.borrow_and_update();
        let rest = async {
            match ttl {
                Duration::ZERO => std::future::pending().await,
                ttl => tokio::time::sleep(ttl).await,
            }
        };
        let job = tokio::select! {
            biased;
            () = interrupts.next() => break,
            job = queue.recv() => job,
            closed = worker.idle() => {
                if let Some(closed) = closed {
                    worker.gone(&closed)?;
                }
                continue;
            }
            Ok(()) = ttl_now.changed() => continue,
            () = rest => break,
        };
        match job {
            None => break,
            Some(Job::Close { over, done }) => {
                session_over = over;
                closing = Some(done);
                break;
            }
            Some(job) => do_job(&mut worker, job, &shared, &mut interrupts).await,
        }
    }
    // From here on commands find no socket, wait for the lock and start another owner.
    drop(socket);
    queue.close();
    while let Ok(job) = queue.try_recv() {
        match job {
            Job::Close { over, done } => {
                session_over |= over;
                closing = Some(done);
            }
            job => do_job(&mut worker, job, &shared, &mut interrupts).await,
        }
    }
    worker.shutdown(session_over).await;
    shared.store.change(&record.id, |record| record.pid = None)?;
    drop(closing);
    Ok(())
}

async fn do_job(worker: &mut Worker, job: Job, shared: &Arc<Shared>, interrupts: &mut Interrupts) {
    match job {
        Job::Prompt { work, mut renderer, mut stop, running } => {
            let waiting = stop.borrow().is_none();
            let result = if waiting {
                let slot = running.control.clone();
                let set = move |reach| {
                    *slot.lock() = Some(reach);
                };
                // A signal cancels the prompt.
                let tell = running.tell.clone();
                let prompt = worker.prompt(*work, &mut renderer, &mut stop, set);
                let signals = async move {
                    interrupts.next().await;
                    let _ = tell.send(Some(StopCause::Interrupted));
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    result = prompt => result,
                    () = signals => Err(Failure::interrupted()),
                }
            } else {
                Err(Failure::runtime("cancelled before it was run").detail(DetailCode::Cancelled))
            };
            shared.done(&running.request);
            if let Renderer::Remote(remote) = &mut renderer {
                remote
                    .send(result.as_ref().map_or_else(|f| Reply::Failure(f.clone()), |_| Reply::Ended))
                    .await;
            }
            if let Err(failure) = result {
                shared.note(&format!("prompt {}: {failure}", running.request));
            }
        }
        Job::Set { setting, mut replies } => {
            let permits = shared.limits.permits.between_turns();
            let result = worker.set(&setting, &permits, &mut Renderer::Discard).await;
            let _ = replies.send(&result.map_or_else(Reply::Failure, Reply::Set)).await;
        }
        Job::Close { .. } => {}
    }
}

impl Handler for Shared {
    fn session(&self) -> &str {
        &self.id
    }

    fn check_peer(&self, pid: Option<u32>) -> Result<()> {
        self.limits.check_peer(pid)
    }

    fn large_requests(&self) -> Option<&Semaphore> {
        Some(&self.large)
    }

    fn refused(&self, text: &str) {
        self.note_refusal(text);
    }

    async fn serve(self: Arc<Self>, request: ServedRequest) {
        let ServedRequest { command, size, follow_ups, mut replies } = request;
        let reply = match command {
            RemoteCommand::Prompt(prompt) => {
                return serve_prompt(*prompt, size, follow_ups, replies, &self).await;
            }
            RemoteCommand::Set(setting) => return serve_set(setting, replies, &self).await,
            RemoteCommand::Cancel => {
                let running = self.current();
                Reply::Cancelled(
                    running.is_some_and(|running| running.tell.send(Some(StopCause::Cancelled)).is_ok()),
                )
            }
            RemoteCommand::Close => {
                for prompt in self.prompts().iter() {
                    let _ = prompt.tell.send(Some(StopCause::Cancelled));
                }
                return leave(&self, true).await;
            }
            // Queued prompts are run first: the process that takes over waits for the lock.
            RemoteCommand::Leave => return leave(&self, false).await,
            RemoteCommand::Status => {
                let (prompts, pid) = (self.prompts().len(), std::process::id());
                Reply::Status(OwnerStatus { prompts, pid, chat: false })
            }
        };
        let _ = replies.send(&reply).await;
    }
}

/// Ends the owner after its queued jobs.
async fn leave(shared: &Shared, over: bool) {
    let (done, left) = oneshot::channel();
    let _ = shared.jobs.send(Job::Close { over, done }).await;
    let _ = left.await;
}

async fn serve_prompt(
    prompt: PromptRequest,
    size: usize,
    mut follow_ups: FollowUps,
    mut replies: Replies,
    shared: &Arc<Shared>,
) {
    let PromptRequest { blocks, mut permits, model, wait, attended, ttl } = prompt;
    if let Err(failure) = shared.limits.check_permits(&permits) {
        return replies.refuse(failure).await;
    }
    if let Some(ttl) = ttl {
        shared.ttl.send_replace(ttl.min(Duration::from_secs_f64(LONGEST_TIME)));
    }
    permits.retries = permits.retries.min(MOST_RETRIES);
    let request = shared.request_name();
    let (tell, stop) = watch::channel(None);
    let running = Running { request: request.clone(), size, tell: Arc::new(tell), control: Arc::default() };
    let Some((place, ahead)) = shared.enqueue(&running) else {
        let failure =
            Failure::runtime("too many prompts are queued in this session").detail(DetailCode::QueueFull);
        return replies.refuse(failure).await;
    };
    let _ = replies.send(&Reply::Queued { request: request.clone(), ahead: ahead as u64 }).await;
    let questions = Questions::default();
    let renderer = match wait {
        true => Renderer::Remote(RemoteRenderer::new(replies, questions.clone(), attended, stop.clone())),
        false => Renderer::Discard,
    };
    let tell = running.tell.clone();
    let work = Box::new(PromptJob { blocks, permits, model, request: Some(request) });
    place.send(Job::Prompt { work, renderer, stop, running });
    if !wait {
        return;
    }
    while let Some(message) = follow_ups.next().await {
        match message {
            FollowUp::Answer { question, answer } => questions.answer(question, answer),
            FollowUp::Cancel => drop(tell.send(Some(StopCause::Cancelled))),
        }
    }
    // The command is gone, so its prompt is cancelled.
    questions.close();
    let _ = tell.send(Some(StopCause::Cancelled));
}

async fn serve_set(setting: Setting, mut replies: Replies, shared: &Arc<Shared>) {
    // During a turn the agent is notified at once: the turn borrows the session, but not its
    // settings.
    let control = shared.current().and_then(|running| running.control.lock().clone());
    let Some(control) = control else {
        let _ = shared.jobs.send(Job::Set { setting, replies }).await;
        return;
    };
    let result = set_now(&control, &setting).await;
    if result.is_ok() {
        let _ = shared.store.change(&shared.id, |record| note_setting(record, &setting));
    }
    let _ = replies.send(&result.map_or_else(Reply::Failure, Reply::Set)).await;
}

async fn set_now(reach: &RunningSession, setting: &Setting) -> Result<SetResult> {
    let RunningSession { agent, control, model: option, options } = reach;
    let mut result = SetResult::default();
    match setting {
        Setting::Mode(mode) => switch_mode(agent, control, mode).await?,
        Setting::Model(model) => switch_model(agent, control, option.as_deref(), model).await?,
        Setting::Option(key, value) => {
            result.options = json!(&*switch_option(agent, control, *options, key, value).await?);
        }
    }
    Ok(result)
}
