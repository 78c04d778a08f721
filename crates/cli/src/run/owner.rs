//! The process that owns a session: it holds the agent, runs the prompts of all commands in turn, and leaves when nothing has
//! come for a while.
//!
//! It is started by the first command that needs it and lives on when that one ends. The lock of the session says that it is there; the
//! system gives that back however the process dies, so that nothing stale is ever left to be mistaken for it.

use std::fs;
use std::io::{self, Write as _};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::ceiling::Ceiling;
use super::front::Front;
use super::ipc::{
    Answers, Questions, RemoteFront, Request, VERSION, failure_to_json, listen, peer_pid, receive, refuse,
    refuse_at_once, say, socket,
};
use super::permits::Permits;
use super::queue::{Job, Running, Shared};
use super::settings::{switch_mode, switch_model, switch_option};
use super::setup::Setup;
use super::signals::{interrupted, runtime};
use super::turn::Why;
use super::worker::{Reach, Setting, Work, Worker, note_setting};
use crate::config::{LONGEST_TIME, MOST_PROMPTS, MOST_RETRIES};
use crate::error::{Context as _, Failure, Result};
use crate::paths::Paths;
use crate::session_store::{Record, Store};

/// Connections beside those of prompts that wait.
const FURTHER_CONNECTIONS: usize = 64;

/// The main function of the owner. What it needs to know comes on stdin.
pub(crate) fn run_owner(paths: &Paths) -> Result<()> {
    let payload = io::read_to_string(io::stdin()).context("standard input")?;
    let payload: Value = serde_json::from_str(&payload).context("standard input")?;
    let wrong = || Failure::usage("this command is for the program itself");
    let id = payload.get("session").and_then(Value::as_str).ok_or_else(wrong)?;
    let setup = payload.get("setup").and_then(Setup::from_json).ok_or_else(wrong)?;
    let permits = payload.get("permits").and_then(Permits::from_json).ok_or_else(wrong)?;
    let ttl = ttl(&payload).unwrap_or_default();
    let store = Store::new(paths);
    let Some(_lock) = store.own(id)? else {
        // Somebody was faster.
        let _ = writeln!(io::stdout(), "taken");
        return Ok(());
    };
    let record = store.get(id).ok_or_else(|| Failure::runtime("there is no such session"))?;
    runtime(own(paths, setup, record, Ceiling::new(permits), ttl))
}

/// The time to live that a message names.
fn ttl(message: &Value) -> Option<Duration> {
    let seconds = message.get("ttl")?.as_f64()?;
    Duration::try_from_secs_f64(seconds.min(LONGEST_TIME)).ok()
}

async fn own(paths: &Paths, setup: Setup, record: Record, ceiling: Ceiling, ttl: Duration) -> Result<()> {
    let path = socket(paths, &record.id).context("the session's socket")?;
    let listener = listen(&path).context("the session's socket")?;
    let depth = crate::config::load(paths, &record.cwd, None).ok();
    let depth = depth.and_then(|config| config.count("queue_max_depth")).unwrap_or(16);
    let depth = usize::try_from(depth.min(MOST_PROMPTS)).unwrap_or(16);
    let (jobs, mut queue) = mpsc::channel(depth);
    let (ttl, mut ttl_now) = watch::channel(ttl);
    let store = Store::new(paths).with_secrets(setup.secrets());
    let shared = Arc::new(Shared::new(&record.id, jobs, ttl, store, ceiling));
    shared.store.change(&record.id, |record| record.pid = Some(std::process::id()))?;
    let _ = writeln!(io::stdout(), "ready");
    let accepting = tokio::spawn(accept(listener, shared.clone(), depth + FURTHER_CONNECTIONS));
    let mut worker = Worker::new(paths, setup, &record, true);
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
            () = interrupted() => break,
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
            Some(job) => do_job(&mut worker, job, &shared).await,
        }
    }
    // From here on nobody gets in; who comes now finds the socket gone and starts another owner.
    accepting.abort();
    let _ = fs::remove_file(&path);
    queue.close();
    while let Ok(job) = queue.try_recv() {
        match job {
            Job::Close { over, done } => {
                session_over |= over;
                closing = Some(done);
            }
            job => do_job(&mut worker, job, &shared).await,
        }
    }
    worker.shutdown(session_over).await;
    shared.store.change(&record.id, |record| record.pid = None)?;
    drop(closing);
    Ok(())
}

async fn do_job(worker: &mut Worker, job: Job, shared: &Arc<Shared>) {
    match job {
        Job::Prompt { work, mut front, mut stop, running } => {
            let waiting = stop.borrow().is_none();
            let result = if waiting {
                let slot = running.control.clone();
                let set = move |reach| {
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(reach);
                };
                // Told to leave, the owner takes its prompt with it.
                let tell = running.tell.clone();
                let prompt = worker.prompt(*work, &mut front, &mut stop, set);
                let signals = async move {
                    interrupted().await;
                    let _ = tell.send(Some(Why::Interrupted));
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    result = prompt => result,
                    () = signals => Err(Failure::interrupted()),
                }
            } else {
                Err(Failure::runtime("cancelled before its turn came").detail("CANCELLED"))
            };
            shared.done(&running.request);
            if let Front::Remote(remote) = &mut front {
                let message = match &result {
                    Ok(ended) => json!({ "end": { "reason": ended.reason.as_str() } }),
                    Err(failure) => json!({ "failure": failure_to_json(failure) }),
                };
                let _ = remote.say(&message).await;
            }
            if let Err(failure) = result {
                shared.note(&format!("prompt {}: {failure}", running.request));
            }
        }
        Job::Set { setting, mut writer } => {
            let mut front = Front::Nobody;
            let permits = shared.ceiling.permits.between_turns();
            let message = match worker.set(&setting, &permits, &mut front).await {
                Ok(done) => done,
                Err(failure) => json!({ "failure": failure_to_json(&failure) }),
            };
            let _ = say(&mut writer, &message).await;
        }
        Job::Close { .. } => {}
    }
}

async fn accept(listener: UnixListener, shared: Arc<Shared>, most: usize) {
    let places = Arc::new(Semaphore::new(most));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => match places.clone().try_acquire_owned() {
                Ok(place) => {
                    let shared = shared.clone();
                    tokio::spawn(async move {
                        serve(stream, shared).await;
                        drop(place);
                    });
                }
                Err(_) => refuse_at_once(&stream, &Failure::runtime("too many commands use this session")),
            },
            // Out of descriptors, perhaps: others need time to give some back.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// One command that wants something.
async fn serve(stream: UnixStream, shared: Arc<Shared>) {
    let pid = peer_pid(&stream);
    let peer = shared.ceiling.check_peer(pid);
    // Whoever cannot prompt needs little.
    let large = peer.is_ok().then_some(&shared.large);
    let Request { message, size, reader, mut writer } = match receive(stream, large).await {
        Ok(request) => request,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return,
        Err(error) => return shared.note_refusal(&format!("refused a connection: {error}")),
    };
    let text = |key: &str| message.get(key).and_then(Value::as_str);
    let refused = if message.get("version").and_then(Value::as_u64) != Some(VERSION) {
        Err(Failure::runtime("the session is held by another version of this program; close it first"))
    } else if text("session") != Some(&shared.id) {
        Err(Failure::runtime("this is not the process of that session"))
    } else if matches!(text("do"), Some("prompt" | "set")) {
        peer
    } else {
        Ok(())
    };
    if let Err(failure) = refused {
        shared.note_refusal(&format!("refused a request of process {}: {failure}", pid.unwrap_or_default()));
        let _ = refuse(&mut writer, &failure).await;
        return;
    }
    match text("do") {
        Some("prompt") => {
            if let Some(ttl) = ttl(&message) {
                shared.ttl.send_replace(ttl);
            }
            serve_prompt(message, size, reader, writer, &shared).await;
        }
        Some("cancel") => {
            let cancelled =
                shared.current().is_some_and(|running| running.tell.send(Some(Why::Cancelled)).is_ok());
            let _ = say(&mut writer, &json!({ "cancelled": cancelled })).await;
        }
        Some("set") => serve_set(&message, writer, &shared).await,
        Some("close") => {
            for prompt in shared.prompts().iter() {
                let _ = prompt.tell.send(Some(Why::Cancelled));
            }
            leave(&shared, true).await;
        }
        // Another process takes over. What runs or waits is not touched; the other one has looked, and comes after it.
        Some("leave") => leave(&shared, false).await,
        Some("status") => {
            let busy = shared.prompts().len();
            let _ = say(&mut writer, &json!({ "prompts": busy, "pid": std::process::id() })).await;
        }
        _ => {
            let _ =
                refuse(&mut writer, &Failure::runtime("the session's process does not know this request"))
                    .await;
        }
    }
}

/// Has the owner leave, after what waits.
async fn leave(shared: &Shared, over: bool) {
    let (done, left) = oneshot::channel();
    let _ = shared.jobs.send(Job::Close { over, done }).await;
    let _ = left.await;
}

async fn serve_prompt(
    mut message: Value,
    size: usize,
    mut reader: Answers,
    mut writer: OwnedWriteHalf,
    shared: &Arc<Shared>,
) {
    let blocks = message.get_mut("prompt").map(Value::take);
    let blocks = blocks.and_then(|blocks| serde_json::from_value(blocks).ok());
    let permits = message.get("permits").and_then(Permits::from_json);
    let (Some(blocks), Some(mut permits)) = (blocks, permits) else {
        let failure = Failure::runtime("the session's process did not understand the prompt");
        let _ = refuse(&mut writer, &failure).await;
        return;
    };
    if let Err(failure) = shared.ceiling.check_permits(&permits) {
        let _ = refuse(&mut writer, &failure).await;
        return;
    }
    permits.retries = permits.retries.min(MOST_RETRIES);
    let model = message.get("model").and_then(Value::as_str).map(str::to_owned);
    let waits = message.get("wait").and_then(Value::as_bool).unwrap_or(true);
    let attended = message.get("attended").and_then(Value::as_bool).unwrap_or_default();
    let request = shared.request_name();
    let (tell, stop) = watch::channel(None);
    let running = Running { request: request.clone(), size, tell: Arc::new(tell), control: Arc::default() };
    let Some((place, ahead)) = shared.enqueue(&running) else {
        let failure = Failure::runtime("too many prompts wait in this session").detail("QUEUE_FULL");
        let _ = refuse(&mut writer, &failure).await;
        return;
    };
    let _ = say(&mut writer, &json!({ "queued": request, "ahead": ahead })).await;
    let questions = Questions::default();
    let front = match waits {
        true => Front::Remote(RemoteFront::new(writer, questions.clone(), attended, stop.clone())),
        false => Front::Nobody,
    };
    let tell = running.tell.clone();
    let work = Box::new(Work { blocks, permits, model, request: Some(request) });
    place.send(Job::Prompt { work, front, stop, running });
    if !waits {
        return;
    }
    while let Some(message) = reader.next().await {
        let question = message.get("question").and_then(Value::as_u64);
        if let (Some(question), Some(answer)) = (question, message.get("answer")) {
            questions.answer(question, answer.clone());
        }
        if message.get("cancel").is_some() {
            let _ = tell.send(Some(Why::Cancelled));
        }
    }
    // Whoever waited is gone, and with them the reason to go on.
    questions.close();
    let _ = tell.send(Some(Why::Cancelled));
}

async fn serve_set(message: &Value, mut writer: OwnedWriteHalf, shared: &Arc<Shared>) {
    let text = |key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
    let value = text("value").unwrap_or_default();
    let setting = match (text("what").as_deref(), text("key")) {
        (Some("mode"), _) => Setting::Mode(value),
        (Some("model"), _) => Setting::Model(value),
        (_, Some(key)) => Setting::Option(key, value),
        _ => {
            let _ = refuse(&mut writer, &Failure::runtime("the request names no setting")).await;
            return;
        }
    };
    // While a turn runs the agent is told at once; the turn has the session, but not its settings.
    let control = shared
        .current()
        .and_then(|running| running.control.lock().unwrap_or_else(PoisonError::into_inner).clone());
    if let Some(control) = control {
        let message = match set_now(&control, &setting).await {
            Ok(done) => {
                let _ = shared.store.change(&shared.id, |record| note_setting(record, &setting));
                json!({ "set": done })
            }
            Err(failure) => json!({ "failure": failure_to_json(&failure) }),
        };
        let _ = say(&mut writer, &message).await;
        return;
    }
    let _ = shared.jobs.send(Job::Set { setting, writer }).await;
}

async fn set_now(reach: &Reach, setting: &Setting) -> Result<Value> {
    let Reach { agent, control, model: option, options } = reach;
    match setting {
        Setting::Mode(mode) => switch_mode(agent, control, mode).await.map(|()| Value::Null),
        Setting::Model(model) => {
            switch_model(agent, control, option.as_deref(), model).await.map(|()| Value::Null)
        }
        Setting::Option(key, value) => {
            switch_option(agent, control, *options, key, value).await.map(|options| json!(&*options))
        }
    }
}
