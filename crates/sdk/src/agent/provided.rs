//! What a client lends to an agent: files and terminals. A service the client did not offer is a `None`, so there is no
//! way to call it (FS-01, FS-02, TERM-01, TERM-02).

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
use super::turn::{Inner, Turn};
use crate::check::absolute;
use crate::{Error, Result};

impl Turn<'_> {
    /// The client's files, if it lets agents read them.
    ///
    /// There is no way around the `Option`:
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

    /// The client's files, if it lets agents write them.
    pub fn write_files(&self) -> Option<FileWriter> {
        self.client().capabilities().fs.write_text_file.then(|| FileWriter(self.inner().clone()))
    }

    /// The client's terminals, if it lends any.
    pub fn terminals(&self) -> Option<ClientTerminals> {
        self.client().capabilities().terminal.then(|| ClientTerminals(self.inner().clone()))
    }
}

/// Reads files through the client, unsaved editor text included. It serves as long as its turn runs.
#[derive(Clone)]
pub struct FileReader(Arc<Inner>);

impl FileReader {
    /// The whole file. FS-04: the path is absolute.
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        self.read_lines(path, None, None).await
    }

    /// Like [`read`](Self::read), but `None` if there is no such file. Use this before a file is written: any other error means that the
    /// content is not known, and must not lead to overwriting it.
    ///
    /// # Errors
    /// When the client refuses for another reason than a missing file (FS-13), or the connection is gone.
    pub async fn read_if_exists(&self, path: impl AsRef<Path>) -> Result<Option<String>> {
        match self.read(path).await {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some),
        }
    }

    /// `limit` lines from `line` on, counted from 1 (FS-05).
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

/// Writes files through the client. It serves as long as its turn runs.
#[derive(Clone)]
pub struct FileWriter(Arc<Inner>);

impl FileWriter {
    /// Replaces the file's content, or makes the file.
    pub async fn write(&self, path: impl AsRef<Path>, content: impl Into<String>) -> Result<()> {
        let request =
            WriteTextFileRequest::new(self.0.session_id().clone(), absolute(path.as_ref())?, content.into());
        self.0.request(&request).await.map(drop)
    }
}

/// Runs commands in the client's terminals. It serves as long as its turn runs; a [`ClientTerminal`] may outlive it.
#[derive(Clone)]
pub struct ClientTerminals(Arc<Inner>);

impl ClientTerminals {
    /// Describes a command; [`TerminalBuilder::start`] runs it. `program` is a program, not a shell line (TERM-14).
    pub fn command(&self, program: impl Into<String>) -> TerminalBuilder {
        let request = CreateTerminalRequest::new(self.0.session_id().clone(), program.into());
        TerminalBuilder { turn: self.0.clone(), request, bad_cwd: None }
    }
}

/// A command before it runs.
#[must_use = "nothing runs before `start`"]
pub struct TerminalBuilder {
    turn: Arc<Inner>,
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

    /// TERM-13: where it runs, absolute; the session's directory if not given.
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        match absolute(cwd.as_ref()) {
            Ok(cwd) => self.request.cwd = Some(cwd),
            Err(error) => self.bad_cwd = Some(error),
        }
        self
    }

    /// How many bytes of output the client keeps, at the most (TERM-06).
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.request.output_byte_limit = Some(bytes);
        self
    }

    /// Runs the command.
    pub async fn start(self) -> Result<ClientTerminal> {
        if let Some(error) = self.bad_cwd {
            return Err(error);
        }
        // TERM-05: whoever stops waiting here leaves a terminal behind that the client is about to make. So the request is
        // not given up, and a terminal that comes too late is released at once.
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

/// A command in one of the client's terminals. TERM-05: it is released when this is dropped, whatever happened.
///
/// It may be kept beyond its turn, for commands in the background. [`wait`](ClientTerminal::wait) ends with the turn, though.
pub struct ClientTerminal {
    client: ClientHandle,
    session: SessionId,
    id: TerminalId,
    turn: Option<Arc<Inner>>,
    released: bool,
}

impl ClientTerminal {
    /// The terminal's id, to embed it in a tool call.
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// The output so far, and the exit status if the command has ended. It can be had also when the turn was cancelled.
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

    /// Lets the command go on beyond its turn: [`wait`](ClientTerminal::wait) no longer ends with it.
    pub fn into_background(mut self) -> Self {
        self.turn = None;
        self
    }

    /// Ends the command; output and exit status stay available (TERM-10). It works also when the turn was cancelled.
    pub async fn kill(&self) -> Result<()> {
        let request = KillTerminalRequest::new(self.session.clone(), self.id.clone());
        self.client.request(&request).await.map(drop)
    }

    /// Gives the terminal back and waits until the client has done so. Dropping it does the same without waiting.
    pub async fn release(mut self) -> Result<()> {
        self.released = true;
        let (sender, released) = oneshot::channel();
        let request = ReleaseTerminalRequest::new(self.session.clone(), self.id.clone());
        // A release is never taken back, also if nobody waits for it any more.
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
            // Whatever the client answers, there is nobody left to tell.
            self.client.peer().call_with(ReleaseTerminalRequest::METHOD, &request, |_| {});
        }
    }
}

impl fmt::Debug for ClientTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientTerminal").field(&self.id).finish()
    }
}
