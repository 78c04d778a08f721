//! Files and terminals that a client provides. One that it does not provide is `None`, so it cannot
//! be called.

// FS-01, FS-02, TERM-01, TERM-02

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use attache_wire::Request;
use attache_wire::v1::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    SessionId, TerminalExitStatus, TerminalId, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};

use tokio::sync::oneshot;

use super::client::ClientHandle;
use super::turn::Turn;
use super::turn_state::TurnState;
use crate::check::absolute;
use crate::{Error, Result};

impl Turn<'_> {
    /// Reads files of the client, if it supports that.
    ///
    /// The `Option` cannot be ignored:
    ///
    /// ```compile_fail
    /// # use attache::agent::Turn;
    /// # async fn tool(turn: Turn<'_>) -> attache::Result<String> {
    /// turn.read_files().read("/etc/hosts").await // the client may not offer it
    /// # }
    /// ```
    ///
    /// ```
    /// # use attache::agent::Turn;
    /// # async fn tool(turn: Turn<'_>) -> attache::Result<String> {
    /// match turn.read_files() {
    ///     Some(files) => files.read("/etc/hosts").await,
    ///     None => Ok(std::fs::read_to_string("/etc/hosts")?),
    /// }
    /// # }
    /// ```
    pub fn read_files(&self) -> Option<FileReader> {
        self.client().capabilities().fs.read_text_file.then(|| FileReader(self.inner().clone()))
    }

    /// Writes files of the client, if it supports that.
    pub fn write_files(&self) -> Option<FileWriter> {
        self.client().capabilities().fs.write_text_file.then(|| FileWriter(self.inner().clone()))
    }

    /// Terminals of the client, if it supports them.
    pub fn terminals(&self) -> Option<ClientTerminals> {
        self.client().capabilities().terminal.then(|| ClientTerminals(self.inner().clone()))
    }
}

/// Reads files through the client, with unsaved changes. Usable during its turn; made by
/// [`Turn::read_files`].
///
/// Example:
/// [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
#[derive(Clone)]
pub struct FileReader(Arc<TurnState>);

impl FileReader {
    /// Reads a whole file. The path must be absolute.
    // FS-04
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        self.read_lines(path, None, None).await
    }

    /// Like [`read`](Self::read), but returns `None` if the file does not exist. Use it before you
    /// overwrite a file: after any other error the content is unknown.
    ///
    /// # Errors
    /// When the client refuses for another reason than a missing file, or the connection ended.
    // FS-13
    pub async fn read_if_exists(&self, path: impl AsRef<Path>) -> Result<Option<String>> {
        match self.read(path).await {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Reads `limit` lines from `line` on, counted from 1.
    // FS-05
    pub async fn read_lines(
        &self,
        path: impl AsRef<Path>,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String> {
        let request = ReadTextFileRequest::new(self.0.session_id().clone(), absolute(path.as_ref())?)
            .line(line.map(|line| line.max(1)))
            .limit(limit);
        Ok(self.0.request(&request).await?.content)
    }
}

/// Writes files through the client. Usable during its turn; made by [`Turn::write_files`].
///
/// Example:
/// [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
#[derive(Clone)]
pub struct FileWriter(Arc<TurnState>);

impl FileWriter {
    /// Replaces or creates a file. The path must be absolute.
    pub async fn write(&self, path: impl AsRef<Path>, content: impl Into<String>) -> Result<()> {
        let request =
            WriteTextFileRequest::new(self.0.session_id().clone(), absolute(path.as_ref())?, content.into());
        self.0.request(&request).await.map(drop)
    }
}

/// Runs commands in terminals of the client. Usable during its turn; made by [`Turn::terminals`].
///
/// Example: [`agent`](crate::agent).
#[derive(Clone)]
pub struct ClientTerminals(Arc<TurnState>);

impl ClientTerminals {
    /// Describes a command; [`TerminalBuilder::start`] runs it. `program` is a program, not a shell
    /// line.
    // TERM-14
    pub fn command(&self, program: impl Into<String>) -> TerminalBuilder {
        let request = CreateTerminalRequest::new(self.0.session_id().clone(), program.into());
        TerminalBuilder { turn: self.0.clone(), request, bad_cwd: None }
    }
}

/// A command before it runs.
///
/// Example: [`agent`](crate::agent).
#[must_use = "nothing runs before `start`"]
pub struct TerminalBuilder {
    turn: Arc<TurnState>,
    request: CreateTerminalRequest,
    bad_cwd: Option<Error>,
}

impl TerminalBuilder {
    /// Adds arguments.
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.request.args.get_or_insert_default().extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.request.env.get_or_insert_default().push(EnvVariable::new(name, value));
        self
    }

    /// Sets the working directory, absolute; by default that of the session.
    // TERM-13
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        match absolute(cwd.as_ref()) {
            Ok(cwd) => self.request.cwd = Some(cwd.to_owned()),
            Err(error) => self.bad_cwd = Some(error),
        }
        self
    }

    /// Sets how many bytes of output the client keeps.
    // TERM-06
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.request.output_byte_limit = Some(bytes);
        self
    }

    /// Runs the command.
    pub async fn start(self) -> Result<ClientTerminal> {
        if let Some(error) = self.bad_cwd {
            return Err(error);
        }
        // TERM-05: the request is never cancelled, so that a terminal which comes too late is
        // released instead of lost.
        let (client, session) = (self.turn.client().clone(), self.turn.session_id().clone());
        let made = self.turn.request_without_cancel(&self.request, move |made| {
            let id = made.terminal_id;
            ClientTerminal { client, session, id, turn: None, released: false }
        });
        let mut terminal = made.await?;
        terminal.turn = Some(self.turn);
        Ok(terminal)
    }
}

/// A command in a terminal of the client. Dropping it releases the terminal.
///
/// It may be kept beyond its turn; see [`into_background`](ClientTerminal::into_background).
///
/// Example: [`agent`](crate::agent).
// TERM-05
pub struct ClientTerminal {
    client: ClientHandle,
    session: SessionId,
    id: TerminalId,
    turn: Option<Arc<TurnState>>,
    released: bool,
}

impl ClientTerminal {
    /// The terminal's id, to embed it in a tool call.
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// The output so far, and the exit status if the command has ended. Works after a cancel too.
    pub async fn output(&self) -> Result<TerminalOutputResponse> {
        self.client.request(&TerminalOutputRequest::new(self.session.clone(), self.id.clone())).await
    }

    /// Waits for the command to end, or for the turn to be cancelled.
    pub async fn wait(&self) -> Result<TerminalExitStatus> {
        let request = WaitForTerminalExitRequest::new(self.session.clone(), self.id.clone());
        let exit = match &self.turn {
            Some(turn) => turn.request(&request).await?,
            None => self.client.request(&request).await?,
        };
        Ok(TerminalExitStatus::new().exit_code(exit.exit_code).signal(exit.signal))
    }

    /// Keeps the command beyond its turn: [`wait`](ClientTerminal::wait) no longer ends with the
    /// turn.
    pub fn into_background(mut self) -> Self {
        self.turn = None;
        self
    }

    /// Ends the command; output and exit status stay available. Works after a cancel too.
    // TERM-10
    pub async fn kill(&self) -> Result<()> {
        let request = KillTerminalRequest::new(self.session.clone(), self.id.clone());
        self.client.request(&request).await.map(drop)
    }

    /// Releases the terminal and waits for the client. Dropping it does the same without waiting.
    pub async fn release(mut self) -> Result<()> {
        self.released = true;
        let (sender, released) = oneshot::channel();
        let request = ReleaseTerminalRequest::new(self.session.clone(), self.id.clone());
        // A release is never cancelled, even if the caller stops waiting.
        self.client.peer().call_with(ReleaseTerminalRequest::METHOD, &request, |answer| {
            let _ = sender.send(answer.map(drop));
        });
        match released.await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::internal("the release was not answered")),
        }
    }
}

impl Drop for ClientTerminal {
    fn drop(&mut self) {
        if !self.released {
            let request = ReleaseTerminalRequest::new(self.session.clone(), self.id.clone());
            // The answer does not matter any more.
            self.client.peer().call_with(ReleaseTerminalRequest::METHOD, &request, |_| {});
        }
    }
}

impl fmt::Debug for ClientTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientTerminal").field(&self.id).finish()
    }
}
