//! Finds the process that owns a session, or starts it.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::ipc::{Heard, Link, VERSION, failure_from_json, socket};
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
    let path = socket(paths, id).context("the session's socket")?;
    match Link::connect(&path).await {
        Ok(link) => Ok(Some(link)),
        Err(_) if !Store::new(paths).is_owned(id) => Ok(None),
        // It is just starting, or just leaving.
        Err(_) => wait_for_owner(paths, id).await,
    }
}

async fn wait_for_owner(paths: &Paths, id: &str) -> Result<Option<Link>> {
    let path = socket(paths, id).context("the session's socket")?;
    let store = Store::new(paths);
    let waiting = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if let Ok(link) = Link::connect(&path).await {
                return Some(link);
            }
            if !store.is_owned(id) {
                return None;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.map_err(|_| {
        Failure::runtime("the session's process does not answer")
            .hint(format!("its log: {}", log_file(paths, id).display()))
    })
}

/// Connects to the owner of a session, or starts it.
pub(super) async fn reach_owner(
    paths: &Paths,
    record: &Record,
    setup: &Setup,
    ttl: Duration,
) -> Result<Link> {
    for _ in 0..5 {
        if let Some(link) = find_owner(paths, &record.id).await? {
            return Ok(link);
        }
        start(paths, record, setup, ttl)?;
    }
    Err(Failure::runtime("the session's process cannot be started")
        .hint(format!("its log: {}", log_file(paths, &record.id).display())))
}

/// Starts the owner and waits until it listens.
fn start(paths: &Paths, record: &Record, setup: &Setup, ttl: Duration) -> Result<()> {
    let log = log_file(paths, &record.id);
    private_dir(&paths.logs()).context("the log")?;
    let long = fs::metadata(&log).is_ok_and(|meta| meta.len() > LOG);
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(!long).truncate(long);
    let stderr = options.open(&log).context("the log")?;
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
        "ttl": ttl.as_secs_f64(),
    });
    if let Some(mut stdin) = child.stdin.take() {
        // If it has ended already, its silence tells.
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
