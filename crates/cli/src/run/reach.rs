//! Finds the process that owns a session, or starts it.

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::owner::OwnerStart;
use super::permits::Permits;
use super::protocol::{Incoming, RemoteCommand, Reply, Request};
use super::setup::SessionSetup;
use super::socket::{OwnerConnection, socket_path};
use crate::error::{Context as _, DetailCode, Failure, Result};
use crate::paths::{Paths, private_dir};
use crate::session_store::{Record, Store, file_name};
use attache_conn::private;

/// How long a process may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(15);
/// The size at which a log is truncated.
const LOG_SIZE: u64 = 1 << 20;

/// The log of a session's owner.
pub(super) fn log_file(paths: &Paths, id: &str) -> PathBuf {
    paths.logs().join(format!("owner-{}.log", file_name(id)))
}

/// Connects to the owner of a session, if there is one.
pub(super) async fn find_owner(paths: &Paths, id: &str) -> Result<Option<OwnerConnection>> {
    if let Some(link) = connect(paths, id).await? {
        return Ok(Some(link));
    }
    let store = Store::new(paths);
    // It is starting or ending.
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

/// Connects to the session's socket; `None` if no process listens.
async fn connect(paths: &Paths, id: &str) -> Result<Option<OwnerConnection>> {
    let path = socket_path(paths, id).context("the session's socket")?;
    match OwnerConnection::open(&path).await {
        Ok(link) => Ok(Some(link)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error)
            .context(path.display())
            .map_err(|failure| failure.hint("remove the socket and try again")),
        Err(_) => Ok(None),
    }
}

/// Connects to the owner of a session, or starts one that is limited to `permits`.
pub(super) async fn reach_owner(
    paths: &Paths,
    record: &Record,
    setup: &SessionSetup,
    permits: &Permits,
    ttl: Duration,
) -> Result<OwnerConnection> {
    for _ in 0..5 {
        if let Some(link) = find_owner(paths, &record.id).await? {
            return Ok(link);
        }
        start(paths, record, setup, permits, ttl)?;
    }
    Err(Failure::runtime("the session's process cannot be started")
        .hint(format!("its log: {}", log_file(paths, &record.id).display())))
}

/// Whether a new owner would not give this refusal.
pub(super) fn needs_new_owner(failure: &Failure) -> bool {
    failure.detail == Some(DetailCode::SessionNeedsRestart)
}

/// Ends the owner if it is idle.
pub(super) async fn dismiss_idle(paths: &Paths, record: &Record) -> Result<()> {
    let Some(mut link) = find_owner(paths, &record.id).await? else { return Ok(()) };
    let reply = request(&mut link, &record.id, RemoteCommand::Status).await?;
    let Reply::Status(status) = reply else { return Err(unexpected_reply()) };
    let label = record.label();
    if status.chat {
        return Err(Failure::runtime(format_args!("the session {label} is open in another chat"))
            .hint(format!("it is process {}; continue there, or leave it first", status.pid)));
    }
    if status.prompts > 0 {
        let name = record.name.as_deref();
        let flag = name.map_or(String::new(), |name| format!(" -s {}", crate::agents::join([name])));
        return Err(Failure::runtime(format_args!("a prompt runs in the session {label}"))
            .hint(format!("wait for it, or cancel it: attache{flag} cancel")));
    }
    dismiss_owner(paths, &record.id, RemoteCommand::Leave).await.map(|_| ())
}

/// Ends an idle owner that refused a command, so that a new one can be started.
///
/// # Errors
/// The refusal and the reason why the owner is busy.
pub(super) async fn replace_owner(paths: &Paths, record: &Record, refusal: &Failure) -> Result<()> {
    dismiss_idle(paths, record).await.map_err(|busy| {
        let mut failure = Failure::runtime(format_args!("{}; {}", refusal.message, busy.message));
        failure.detail = Some(DetailCode::SessionBusy);
        failure.hints = busy.hints;
        failure
    })
}

/// Starts the owner and waits until it listens.
fn start(
    paths: &Paths,
    record: &Record,
    setup: &SessionSetup,
    permits: &Permits,
    ttl: Duration,
) -> Result<()> {
    let log = log_file(paths, &record.id);
    private_dir(&paths.logs()).context("the log")?;
    let stderr = private::append(&log).context("the log")?;
    if stderr.metadata().is_ok_and(|found| found.len() > LOG_SIZE) {
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
    let start =
        OwnerStart { session: record.id.clone(), setup: setup.clone(), permits: permits.clone(), ttl };
    let start = serde_json::to_vec(&start).context("the session's process")?;
    if let Some(mut stdin) = child.stdin.take() {
        // Through a pipe, because every user can read arguments. A process that has ended prints no
        // line below.
        let _ = stdin.write_all(&start);
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

/// Closes the session of an owner, if there is one. Returns whether there was one.
pub(crate) async fn close_owner(paths: &Paths, id: &str) -> Result<bool> {
    dismiss_owner(paths, id, RemoteCommand::Close).await
}

/// Ends the owner, if there is one, with [`RemoteCommand::Leave`] or [`RemoteCommand::Close`].
/// Returns whether there was one.
async fn dismiss_owner(paths: &Paths, id: &str, command: RemoteCommand) -> Result<bool> {
    let Some(mut link) = find_owner(paths, id).await? else { return Ok(false) };
    if link.request(&Request::new(id, command)).await.is_ok() {
        while let Ok(Some(_)) = link.next().await {}
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

/// Sends a command that has one reply.
pub(super) async fn request(link: &mut OwnerConnection, id: &str, command: RemoteCommand) -> Result<Reply> {
    link.request(&Request::new(id, command)).await.context("the session's process")?;
    loop {
        match link.next().await.context("the session's process")? {
            Some(Incoming::Wire(..)) => {}
            Some(Incoming::Reply(Reply::Failure(failure))) => return Err(failure),
            Some(Incoming::Reply(reply)) => return Ok(reply),
            None => return Err(Failure::runtime("the session's process ended").detail(DetailCode::OwnerGone)),
        }
    }
}

/// The failure of a reply that does not belong to its command.
pub(super) fn unexpected_reply() -> Failure {
    Failure::runtime("the session's process sent an unexpected reply")
}
