//! What a client lends to an agent: files and terminals. A service the client did not offer is a `None`, so there is no
//! way to call it (FS-01, FS-02, TERM-01, TERM-02).

use std::fmt;
use std::path::Path;

use attache_conn::CancelToken;
use attache_wire::Request;
use attache_wire::v1::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    SessionId, TerminalExitStatus, TerminalId, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};

use super::client::Client;
use super::turn::Turn;
use crate::{Error, Result};

impl Turn<'_> {
    /// The client's files, if it lets agents read them.
    pub fn read_files(&self) -> Option<ReadFiles> {
        self.client().capabilities().fs.read_text_file.then(|| ReadFiles(self.lent()))
    }

    /// The client's files, if it lets agents write them.
    pub fn write_files(&self) -> Option<WriteFiles> {
        self.client().capabilities().fs.write_text_file.then(|| WriteFiles(self.lent()))
    }

    /// The client's terminals, if it lends any.
    pub fn terminals(&self) -> Option<Terminals> {
        self.client().capabilities().terminal.then(|| Terminals(self.lent()))
    }

    fn lent(&self) -> Lent {
        Lent {
            client: self.client().clone(),
            session: self.session_id().clone(),
            token: self.cancellation().clone(),
        }
    }
}

/// Who asks: every request names its session (FS-07) and ends with the turn.
#[derive(Clone)]
struct Lent {
    client: Client,
    session: SessionId,
    token: CancelToken,
}

impl Lent {
    async fn call<R: Request>(&self, request: &R) -> Result<R::Response> {
        self.client.request_until(request, &self.token).await
    }
}

/// FS-04, TERM-13: only absolute paths go over the wire.
fn absolute(path: &Path) -> Result<String> {
    if path.is_absolute() {
        return Ok(path.to_string_lossy().into_owned());
    }
    Err(Error::internal(format_args!(
        "the path `{}` is not absolute; join it to the session's cwd",
        path.display()
    )))
}

/// Reads files through the client, unsaved editor text included.
#[derive(Clone)]
pub struct ReadFiles(Lent);

impl ReadFiles {
    /// The whole file.
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        self.read_lines(path, None, None).await
    }

    /// `limit` lines from `line` on, counted from 1 (FS-05).
    pub async fn read_lines(
        &self,
        path: impl AsRef<Path>,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String> {
        let request = ReadTextFileRequest::new(self.0.session.clone(), absolute(path.as_ref())?)
            .line(line.map(|line| line.max(1)))
            .limit(limit);
        Ok(self.0.call(&request).await?.content)
    }
}

/// Writes files through the client.
#[derive(Clone)]
pub struct WriteFiles(Lent);

impl WriteFiles {
    /// Replaces the file's content, or makes the file.
    pub async fn write(&self, path: impl AsRef<Path>, content: impl Into<String>) -> Result<()> {
        let request =
            WriteTextFileRequest::new(self.0.session.clone(), absolute(path.as_ref())?, content.into());
        self.0.call(&request).await.map(drop)
    }
}

/// Runs commands in the client's terminals.
#[derive(Clone)]
pub struct Terminals(Lent);

impl Terminals {
    /// Describes a command; [`TerminalBuilder::start`] runs it. `program` is a program, not a shell line (TERM-14).
    pub fn command(&self, program: impl Into<String>) -> TerminalBuilder {
        let request = CreateTerminalRequest::new(self.0.session.clone(), program.into());
        TerminalBuilder { lent: self.0.clone(), request, bad_cwd: None }
    }
}

/// A command before it runs.
#[must_use = "nothing runs before `start`"]
pub struct TerminalBuilder {
    lent: Lent,
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

    /// Where it runs, absolute; the session's directory if not given.
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
    pub async fn start(self) -> Result<Terminal> {
        if let Some(error) = self.bad_cwd {
            return Err(error);
        }
        let id = self.lent.call(&self.request).await?.terminal_id;
        Ok(Terminal { lent: self.lent, id, released: false })
    }
}

/// A command in one of the client's terminals. TERM-05: it is released when this is dropped, whatever happened.
pub struct Terminal {
    lent: Lent,
    id: TerminalId,
    released: bool,
}

impl Terminal {
    /// The terminal's id, to embed it in a tool call.
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// The output so far, and the exit status if the command has ended.
    pub async fn output(&self) -> Result<TerminalOutputResponse> {
        self.lent.call(&TerminalOutputRequest::new(self.lent.session.clone(), self.id.clone())).await
    }

    /// Waits for the command to end.
    pub async fn wait(&self) -> Result<TerminalExitStatus> {
        let request = WaitForTerminalExitRequest::new(self.lent.session.clone(), self.id.clone());
        let exit = self.lent.call(&request).await?;
        Ok(TerminalExitStatus::new().exit_code(exit.exit_code).signal(exit.signal))
    }

    /// Ends the command; output and exit status stay available (TERM-10).
    pub async fn kill(&self) -> Result<()> {
        let request = KillTerminalRequest::new(self.lent.session.clone(), self.id.clone());
        self.lent.call(&request).await.map(drop)
    }

    /// Gives the terminal back and waits until the client has done so. Dropping it does the same without waiting.
    pub async fn release(mut self) -> Result<()> {
        self.released = true;
        // Not bound to the turn's token: a cancelled turn releases its terminals too.
        self.lent.client.request(&self.release_request()).await.map(drop)
    }

    fn release_request(&self) -> ReleaseTerminalRequest {
        ReleaseTerminalRequest::new(self.lent.session.clone(), self.id.clone())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.released {
            // Whatever the client answers, there is nobody left to tell.
            self.lent.client.peer.call_with(ReleaseTerminalRequest::METHOD, &self.release_request(), |_| {});
        }
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Terminal").field(&self.id).finish()
    }
}
