//! The lock of a session that a chat holds: the session is driven by this process.
//!
//! The lock keeps other processes out, as it does for an owner. Commands that connect to the
//! session's control socket learn where it is open.

use std::fs::File;

use tokio::sync::mpsc;

use crate::error::{DetailCode, Failure, Result};
use crate::paths::Paths;
use crate::session_store::{Record, Store};

/// A command of another process for the chat.
#[cfg_attr(not(unix), allow(dead_code, reason = "there are control sockets on Unix only"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    /// Cancel the running prompt.
    Cancel,
    /// Leave: the session is being closed.
    Leave,
}

/// Ownership of a session by this process.
pub(crate) struct SessionLock {
    commands: Option<mpsc::Receiver<ChatCommand>>,
    #[cfg(unix)]
    _socket: super::socket::ControlSocket,
    // Released last, after the socket is gone.
    _lock: File,
}

impl SessionLock {
    /// Locks a session. Its owner is ended if it is idle.
    pub(crate) async fn acquire(paths: &Paths, record: &Record) -> Result<SessionLock> {
        #[cfg(unix)]
        super::reach::dismiss_idle(paths, record).await?;
        let Some(lock) = Store::new(paths).own(&record.id)? else {
            return Err(Failure::runtime(format_args!("the session {} is in use", record.label()))
                .hint("another process drives it; try again when it has ended"));
        };
        let (sender, commands) = mpsc::channel(4);
        #[cfg(unix)]
        let socket = unix::ChatHandler::listen(paths, record, sender)?;
        #[cfg(not(unix))]
        drop(sender);
        Ok(SessionLock {
            commands: Some(commands),
            #[cfg(unix)]
            _socket: socket,
            _lock: lock,
        })
    }

    /// The commands of other processes. `None` if already taken.
    pub(crate) fn commands(&mut self) -> Option<mpsc::Receiver<ChatCommand>> {
        self.commands.take()
    }
}

#[cfg(unix)]
mod unix {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::super::protocol::{OwnerStatus, RemoteCommand, Reply};
    use super::super::socket::{ControlSocket, Handler, ServedRequest};
    use super::*;

    /// Connections that a chat serves at once.
    const CONNECTIONS: usize = 8;

    /// Serves the control socket of a session that is open in a chat.
    pub(super) struct ChatHandler {
        session: String,
        label: String,
        commands: mpsc::Sender<ChatCommand>,
    }

    impl ChatHandler {
        pub(super) fn listen(
            paths: &Paths,
            record: &Record,
            commands: mpsc::Sender<ChatCommand>,
        ) -> Result<ControlSocket> {
            let handler =
                ChatHandler { session: record.id.clone(), label: record.label().to_owned(), commands };
            ControlSocket::open(paths, Arc::new(handler), CONNECTIONS)
        }
    }

    impl Handler for ChatHandler {
        fn session(&self) -> &str {
            &self.session
        }

        fn check_peer(&self, _pid: Option<u32>) -> Result<()> {
            // Prompts and settings are refused from every process.
            Ok(())
        }

        fn large_requests(&self) -> Option<&Semaphore> {
            None
        }

        fn refused(&self, _text: &str) {}

        async fn serve(self: Arc<Self>, ServedRequest { command, mut replies, .. }: ServedRequest) {
            let pid = std::process::id();
            let reply = match command {
                RemoteCommand::Status => Reply::Status(OwnerStatus { prompts: 0, pid, chat: true }),
                RemoteCommand::Cancel => {
                    Reply::Cancelled(self.commands.try_send(ChatCommand::Cancel).is_ok())
                }
                RemoteCommand::Close => {
                    let _ = self.commands.try_send(ChatCommand::Leave);
                    return;
                }
                RemoteCommand::Prompt(_) | RemoteCommand::Set(_) | RemoteCommand::Leave => Reply::Failure(
                    Failure::runtime(format_args!(
                        "the session {} is open in a chat (process {pid})",
                        self.label
                    ))
                    .detail(DetailCode::SessionInChat)
                    .hint("prompt there, or leave the chat first"),
                ),
            };
            let _ = replies.send(&reply).await;
        }
    }
}
