//! An agent as a child process.

use std::io;

use attache_conn::process::{ChildGuard, Command};

use crate::remote::Observations;

use super::{BoxFuture, Connection, Exit, PeerProcess, StartOptions, Target};

/// An agent as a child process in the checker's own directory: it must take its directory from the
/// session.
// ROOT-02
#[derive(Clone, Debug)]
pub struct Process {
    command: Vec<String>,
    env: Vec<(String, String)>,
}

impl Process {
    /// The program and its arguments.
    pub fn new(command: Vec<String>) -> Process {
        Process { command, env: Vec::new() }
    }

    /// Sets variables in its environment.
    #[must_use]
    pub fn envs(mut self, env: impl IntoIterator<Item = (String, String)>) -> Process {
        self.env.extend(env);
        self
    }
}

impl Target for Process {
    fn open<'a>(&'a self, _: &'a StartOptions) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let Some((program, args)) = self.command.split_first() else {
                return Err(io::Error::other("no command: put the program to start after `--`"));
            };
            let child =
                Command::new(program).args(args).envs(self.env.iter().map(|(k, v)| (k, v))).spawn()?;
            tracing::debug!(program, pid = child.guard.pid(), "agent started");
            Ok(Connection {
                reader: Box::new(child.stdout),
                writer: Box::new(child.stdin),
                process: Box::new(Child(child.guard)),
                observations: Observations::default(),
            })
        })
    }

    fn command(&self) -> Vec<String> {
        self.command.clone()
    }
}

/// A child process.
struct Child(ChildGuard);

impl PeerProcess for Child {
    fn exit(&mut self) -> BoxFuture<'_, Option<Exit>> {
        Box::pin(async { Some(exit_of(self.0.wait().await)) })
    }

    fn stderr(&self) -> String {
        self.0.stderr_tail()
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Option<Exit>> {
        Box::pin(async move { Some(exit_of(self.0.shutdown().await)) })
    }
}

pub(crate) fn exit_of(status: std::process::ExitStatus) -> Exit {
    tracing::debug!(%status, "process exited");
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    Exit { code: status.code(), signal }
}
