//! Finds the process that owns a session, or starts it.

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use attache_conn::private;
use serde_json::{Value, json};

use super::ceiling::NEEDS_NEW_OWNER;
use super::ipc::{Heard, Link, VERSION, failure_from_json, socket};
use super::permits::Permits;
use super::setup::Setup;
use crate::error::{Context as _, Failure, Result};
use crate::paths::{Paths, private_dir};
use crate::session_store::{Record, Store, file_name};

/// How long a process that starts or ends is waited for.
const PATIENCE: Duration = Duration::from_secs(15);
/// A log that has grown to this begins anew.
const LOG: u64 = 1 << 20;

/// Where the owner of a session writes what goes wrong with it.
pub(super) fn log_file(paths: &Paths, id: &str) -> PathBuf {
    paths.logs().join(format!("owner-{}.log", file_name(id)))
}

/// Connects to the owner of a session, if there is one.
pub(super) async fn find_owner(paths: &Paths, id: &str) -> Result<Option<Link>> {
    if let Some(link) = connect(paths, id).await? {
        return Ok(Some(link));
    }
    let store = Store::new(paths);
    // It is just starting, or just leaving.
    let waiting = async {
        while store.is_owned(id) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if let Some(link) = connect(paths, id).await? {
                return Ok(Some(link));
            }
        }
        Ok(None)
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| {
        Err(Failure::runtime("the session's process does not answer")
            .hint(format!("its log: {}", log_file(paths, id).display())))
    })
}

/// Connects to whoever listens at the session's socket; `None` if nobody does.
async fn connect(paths: &Paths, id: &str) -> Result<Option<Link>> {
    let path = socket(paths, id).context("the session's socket")?;
    match Link::connect(&path).await {
        Ok(link) => Ok(Some(link)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error)
            .context(path.display())
            .map_err(|failure| failure.hint("remove the socket and try again")),
        Err(_) => Ok(None),
    }
}

/// Connects to the owner of a session, or starts it. One that is started never does more than `permits`.
pub(super) async fn reach_owner(
    paths: &Paths,
    record: &Record,
    setup: &Setup,
    permits: &Permits,
    ttl: Duration,
) -> Result<Link> {
    for _ in 0..5 {
        if let Some(link) = find_owner(paths, &record.id).await? {
            return Ok(link);
        }
        start(paths, record, setup, permits, ttl)?;
    }
    Err(Failure::runtime("the session's process cannot be started")
        .hint(format!("its log: {}", log_file(paths, &record.id).display())))
}

/// Whether a failure of the owner is one that another owner, started now, would not have.
pub(super) fn needs_new_owner(failure: &Failure) -> bool {
    failure.detail.as_deref() == Some(NEEDS_NEW_OWNER)
}

/// Has an owner leave that has nothing to do.
pub(super) async fn dismiss_idle(paths: &Paths, record: &Record) -> Result<()> {
    let Some(mut link) = find_owner(paths, &record.id).await? else { return Ok(()) };
    let status = json!({ "version": VERSION, "session": record.id, "do": "status" });
    let status = request(&mut link, &status).await?;
    let pid = status.get("pid").and_then(Value::as_u64).unwrap_or_default();
    let label = record.label();
    if status.get("chat").is_some() {
        return Err(Failure::runtime(format_args!("the session {label} is open in another chat"))
            .hint(format!("it is process {pid}; go on there, or leave it first")));
    }
    if status.get("prompts").and_then(Value::as_u64).unwrap_or_default() > 0 {
        let name = record.name.as_deref();
        let flag = name.map_or(String::new(), |name| format!(" -s {}", crate::agents::join([name])));
        return Err(Failure::runtime(format_args!("a prompt runs in the session {label}"))
            .hint(format!("wait for it, or cancel it: attache{flag} cancel")));
    }
    dismiss_owner(paths, &record.id, "leave").await.map(|_| ())
}

/// Ends an idle owner that refused something, so that another one can be started for it.
///
/// # Errors
/// The refusal, with what keeps the owner from leaving.
pub(super) async fn replace_owner(paths: &Paths, record: &Record, refusal: &Failure) -> Result<()> {
    dismiss_idle(paths, record).await.map_err(|busy| {
        let mut failure = Failure::runtime(format_args!("{}; {}", refusal.message, busy.message));
        failure.detail = Some("SESSION_BUSY".to_owned());
        failure.hints = busy.hints;
        failure
    })
}

/// Starts the owner and waits until it listens.
fn start(paths: &Paths, record: &Record, setup: &Setup, permits: &Permits, ttl: Duration) -> Result<()> {
    let log = log_file(paths, &record.id);
    private_dir(&paths.logs()).context("the log")?;
    let stderr = private::append(&log).context("the log")?;
    if stderr.metadata().is_ok_and(|found| found.len() > LOG) {
        stderr.set_len(0).context("the log")?;
    }
    let program = std::env::current_exe().context("this program")?;
    let mut child = Command::new(program)
        .arg("__owner")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        // Ctrl-C is for the command, not for the owner.
        .process_group(0)
        .spawn()
        .context("the session's process")?;
    let payload = json!({
        "version": VERSION,
        "session": record.id,
        "setup": setup.to_json(),
        "permits": permits.to_json(),
        "ttl": ttl.as_secs_f64(),
    });
    if let Some(mut stdin) = child.stdin.take() {
        // By a pipe and not as arguments, which every user can read. If it has ended already, its silence tells.
        let _ = stdin.write_all(payload.to_string().as_bytes());
    }
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = io::BufReader::new(stdout).read_line(&mut line);
    }
    match line.trim() {
        "ready" | "taken" => Ok(()),
        _ => {
            let words = fs::read_to_string(&log).unwrap_or_default();
            let words = words.lines().last().unwrap_or_default().to_owned();
            Err(Failure::runtime(format_args!("the session's process could not be started: {words}"))
                .hint(format!("its log: {}", log.display())))
        }
    }
}

/// Asks the owner, if there is one, to close the session and to leave. Says whether there was one.
pub(crate) async fn close_owner(paths: &Paths, id: &str) -> Result<bool> {
    dismiss_owner(paths, id, "close").await
}

/// Has the owner leave, in the way that the word says.
pub(super) async fn dismiss_owner(paths: &Paths, id: &str, word: &str) -> Result<bool> {
    let Some(mut link) = find_owner(paths, id).await? else { return Ok(false) };
    let asked = link.send(&json!({ "version": VERSION, "session": id, "do": word })).await;
    if asked.is_ok() {
        // It says so, or it ends.
        while let Ok(Heard::Own(_) | Heard::Line(..)) = link.hear().await {}
    }
    // The lock is free when the process is gone.
    let store = Store::new(paths);
    let gone = async {
        while store.is_owned(id) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = tokio::time::timeout(PATIENCE, gone).await;
    Ok(true)
}

/// Asks the owner for something that has one answer.
pub(super) async fn request(link: &mut Link, message: &Value) -> Result<Value> {
    link.send(message).await.context("the session's process")?;
    loop {
        match link.hear().await.context("the session's process")? {
            Heard::Line(..) => {}
            Heard::End => return Err(Failure::runtime("the session's process ended").detail("OWNER_GONE")),
            Heard::Own(value) => {
                if let Some(failure) = value.get("failure") {
                    return Err(failure_from_json(failure));
                }
                return Ok(value);
            }
        }
    }
}
