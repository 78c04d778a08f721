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
        super::reach::dismiss_idle(paths, record).await?;
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
    use tokio::net::UnixStream;
    use tokio::task::JoinHandle;

    use super::super::ipc::{Request, failure_to_json, listen, receive, say, socket};
    use super::*;
    use crate::error::Context as _;

    /// Where others ask for the session.
    pub(super) struct Door {
        path: PathBuf,
        answering: JoinHandle<()>,
    }

    impl Door {
        pub(super) fn open(paths: &Paths, record: &Record, wishes: mpsc::Sender<Wish>) -> Result<Door> {
            let path = socket(paths, &record.id).context("the session's socket")?;
            let listener = listen(&path).context("the session's socket")?;
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
        let Ok(Request { message, mut writer, .. }) = receive(stream, None).await else { return };
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
