//! A session that this process drives itself, because somebody chats in it.
//!
//! The lock keeps other processes out, as it does for an owner; whoever asks at the session's socket is told where the session is.

use std::fs::File;

use tokio::sync::mpsc;

use crate::error::{Failure, Result};
use crate::paths::Paths;
use crate::session_store::{Record, Store};

/// What another command wants from the chat.
#[cfg_attr(not(unix), allow(dead_code, reason = "others can ask on Unix only"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Cancel what runs.
    Cancel,
    /// Leave: the session is being closed.
    Leave,
}

/// As long as it lives the session is this process's.
pub(crate) struct Held {
    wishes: Option<mpsc::Receiver<Wish>>,
    #[cfg(unix)]
    _door: unix::Door,
    // Given back last, when nobody can come to the door any more.
    _lock: File,
}

impl Held {
    /// Takes a session. Its owner leaves, if it has nothing to do.
    pub(crate) async fn take(paths: &Paths, record: &Record) -> Result<Held> {
        #[cfg(unix)]
        unix::dismiss(paths, record).await?;
        let Some(lock) = Store::new(paths).own(&record.id)? else {
            return Err(Failure::runtime(format_args!("the session {} is in use", record.label()))
                .hint("another process drives it; try again when it has ended"));
        };
        let (sender, wishes) = mpsc::channel(4);
        #[cfg(unix)]
        let door = unix::Door::open(paths, record, sender)?;
        #[cfg(not(unix))]
        drop(sender);
        Ok(Held {
            wishes: Some(wishes),
            #[cfg(unix)]
            _door: door,
            _lock: lock,
        })
    }

    /// What others want, for whoever can do it.
    pub(crate) fn wishes(&mut self) -> Option<mpsc::Receiver<Wish>> {
        self.wishes.take()
    }
}

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::path::PathBuf;

    use serde_json::{Value, json};
    use tokio::io::AsyncBufReadExt as _;
    use tokio::net::{UnixListener, UnixStream};
    use tokio::task::JoinHandle;

    use super::super::ipc::{Link, VERSION, failure_to_json, say, socket};
    use super::super::reach::{dismiss_owner, find_owner, request};
    use super::*;
    use crate::error::Context as _;

    /// Has an owner leave that has nothing to do.
    pub(super) async fn dismiss(paths: &Paths, record: &Record) -> Result<()> {
        let Some(mut link) = find_owner(paths, &record.id).await? else { return Ok(()) };
        let status = json!({ "version": VERSION, "session": record.id, "do": "status" });
        let status = request(&mut link, &status).await?;
        let pid = status.get("pid").and_then(Value::as_u64).unwrap_or_default();
        let (label, flag) = (record.label(), flag(record));
        if status.get("chat").is_some() {
            return Err(Failure::runtime(format_args!("the session {label} is open in another chat"))
                .hint(format!("it is process {pid}; go on there, or leave it first")));
        }
        if status.get("prompts").and_then(Value::as_u64).unwrap_or_default() > 0 {
            return Err(Failure::runtime(format_args!("a prompt runs in the session {label}"))
                .hint(format!("wait for it, or cancel it: attache{flag} cancel")));
        }
        dismiss_owner(paths, &record.id, "leave").await.map(|_| ())
    }

    fn flag(record: &Record) -> String {
        record.name.as_deref().map_or(String::new(), |name| format!(" -s {}", crate::agents::join([name])))
    }

    /// Where others ask for the session.
    pub(super) struct Door {
        path: PathBuf,
        answering: JoinHandle<()>,
    }

    impl Door {
        pub(super) fn open(paths: &Paths, record: &Record, wishes: mpsc::Sender<Wish>) -> Result<Door> {
            let path = socket(paths, &record.id).context("the session's socket")?;
            // With the lock in hand, whatever lies there is a dead one's.
            let _ = fs::remove_file(&path);
            let listener = UnixListener::bind(&path).context("the session's socket")?;
            let label = record.label().to_owned();
            let answering = tokio::spawn(async move {
                // One after the other: there is no more to say than a line to each.
                while let Ok((stream, _)) = listener.accept().await {
                    let limit = std::time::Duration::from_secs(1);
                    let _ = tokio::time::timeout(limit, answer(stream, &label, &wishes)).await;
                }
            });
            Ok(Door { path, answering })
        }
    }

    impl Drop for Door {
        fn drop(&mut self) {
            self.answering.abort();
            let _ = fs::remove_file(&self.path);
        }
    }

    async fn answer(stream: UnixStream, label: &str, wishes: &mpsc::Sender<Wish>) {
        let (mut reader, mut writer) = Link::new(stream).into_parts();
        let mut line = String::new();
        if reader.read_line(&mut line).await.is_err() {
            return;
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else { return };
        let pid = std::process::id();
        let answer = match message.get("do").and_then(Value::as_str) {
            Some("status") => json!({ "prompts": 0, "pid": pid, "chat": true }),
            Some("cancel") => json!({ "cancelled": wishes.try_send(Wish::Cancel).is_ok() }),
            Some("close") => {
                let _ = wishes.try_send(Wish::Leave);
                return;
            }
            _ => {
                let failure =
                    Failure::runtime(format_args!("the session {label} is open in a chat (process {pid})"))
                        .detail("SESSION_IN_CHAT")
                        .hint("say it there, or leave the chat first");
                json!({ "failure": failure_to_json(&failure) })
            }
        };
        let _ = say(&mut writer, &answer).await;
    }
}
