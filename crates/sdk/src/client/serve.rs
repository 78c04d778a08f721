//! Services of a client: files, terminals and extension methods.
//!
//! Installing one of these on [`Client`](super::Client) advertises it, so nothing can be advertised
//! and not served. All of them run as tasks of their own: waiting in one of them stops nothing
//! else.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use attache_conn::{CancelToken, Responder, ResponseSlot};
use attache_rpc::ErrorObject;
use attache_wire::v1::{
    CreateTerminalRequest, ReadTextFileRequest, SessionId, TerminalExitStatus, TerminalId,
    TerminalOutputResponse, WriteTextFileRequest,
};
use serde::Serialize;

use super::agent::AgentHandle;
use super::connection::Core;
use super::lane::Lane;
use crate::race::{First, race};
use crate::report::ErrorReporter;
use crate::{Error, Result};

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Session and connection that a request of the agent belongs to.
///
/// Example:
/// [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
#[derive(Clone)]
pub struct RequestContext {
    core: Weak<Core>,
    lane: Option<Arc<Lane>>,
    cancellation: CancelToken,
    answer: Arc<ResponseSlot>,
}

impl RequestContext {
    pub(crate) fn new(core: &Arc<Core>, lane: Option<Arc<Lane>>, cancellation: CancelToken) -> Self {
        let answer = Arc::new(core.peer.response_slot());
        RequestContext { core: Arc::downgrade(core), lane, cancellation, answer }
    }

    /// The request as error reports name it.
    pub(crate) fn failing(&self, method: &'static str) -> Failing {
        let errors = self.core.upgrade().map(|core| core.errors.clone());
        Failing { method, session: self.session_id().cloned(), errors }
    }

    pub(crate) fn answer(&self) -> &Arc<ResponseSlot> {
        &self.answer
    }

    /// Waits for a slow future, for example a decision of the user, without occupying one of the
    /// few slots for handlers.
    pub async fn pause<T>(&self, future: impl Future<Output = T>) -> T {
        self.answer.pause(future).await
    }

    /// Waits until there is room for an answer of `bytes`. Call it before a large answer is made,
    /// so that an agent which does not read costs no memory.
    pub async fn reserve(&self, bytes: usize) {
        self.answer.reserve(bytes).await;
    }

    /// The agent; `None` if all its handles are dropped. A handler does not keep the connection
    /// alive.
    pub fn agent(&self) -> Option<AgentHandle> {
        self.core.upgrade().map(AgentHandle)
    }

    /// The session of the request; `None` for extension methods.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.lane.as_ref().map(|lane| &lane.id)
    }

    /// The session's working directory.
    pub fn cwd(&self) -> Option<&Path> {
        self.lane.as_ref().map(|lane| lane.cwd())
    }

    /// The roots of the session, its working directory first. Files outside of them must not be
    /// served.
    // ROOT-07, ROOT-17
    pub fn roots(&self) -> &[PathBuf] {
        self.lane.as_ref().map_or(&[], |lane| &lane.roots)
    }

    /// Raised when the agent cancels the request. The handler is dropped then.
    pub fn cancellation(&self) -> &CancelToken {
        &self.cancellation
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext").field("session", &self.session_id()).finish_non_exhaustive()
    }
}

/// Serves `fs/read_text_file`.
///
/// The path is absolute, and a line is at least 1. Implementations keep to
/// [`RequestContext::roots`], prefer unsaved text, return [`Error::not_found`] for a missing file,
/// refuse binary files and keep line ends. Closures `Fn(RequestContext, ReadTextFileRequest) ->
/// impl Future` implement this trait. See `attache-host`.
///
/// Example:
/// [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
// FS-04, FS-14, FS-15, FS-09, FS-13, FS-17, FS-16
pub trait ReadFiles: Send + Sync + 'static {
    /// The text from `line` on, at most `limit` lines of it.
    // FS-06
    fn read(
        &self,
        cx: RequestContext,
        request: ReadTextFileRequest,
    ) -> impl Future<Output = Result<String>> + Send;
}

impl<F, Fut> ReadFiles for F
where
    F: Fn(RequestContext, ReadTextFileRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String>> + Send,
{
    fn read(
        &self,
        cx: RequestContext,
        request: ReadTextFileRequest,
    ) -> impl Future<Output = Result<String>> + Send {
        self(cx, request)
    }
}

/// Serves `fs/write_text_file`.
///
/// The path is absolute. A missing file is created. Closures `Fn(RequestContext,
/// WriteTextFileRequest) -> impl Future` implement this trait. See `attache-host`.
///
/// Example:
/// [`examples/tour.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tour.rs).
// FS-04, FS-10, FS-11
pub trait WriteFiles: Send + Sync + 'static {
    /// Writes the whole file.
    fn write(
        &self,
        cx: RequestContext,
        request: WriteTextFileRequest,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl<F, Fut> WriteFiles for F
where
    F: Fn(RequestContext, WriteTextFileRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    fn write(
        &self,
        cx: RequestContext,
        request: WriteTextFileRequest,
    ) -> impl Future<Output = Result<()>> + Send {
        self(cx, request)
    }
}

/// Serves `terminal/create`. The SDK owns the ids of terminals. See `attache-host`.
///
/// ```
/// use attache::Result;
/// use attache::client::{RequestContext, Terminal, Terminals};
/// use attache::wire::v1::{CreateTerminalRequest, TerminalExitStatus, TerminalOutputResponse};
///
/// /// Prints commands instead of running them.
/// struct DryRun;
///
/// struct Printed(String);
///
/// impl Terminals for DryRun {
///     type Terminal = Printed;
///
///     async fn create(&self, _: RequestContext, request: CreateTerminalRequest) -> Result<Printed> {
///         Ok(Printed(request.command))
///     }
/// }
///
/// impl Terminal for Printed {
///     async fn output(&self) -> Result<TerminalOutputResponse> {
///         Ok(TerminalOutputResponse::new(self.0.clone(), false))
///     }
///
///     async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
///         Ok(TerminalExitStatus::new().exit_code(0))
///     }
///
///     async fn kill(&self) -> Result<()> {
///         Ok(())
///     }
///
///     async fn release(&self) -> Result<()> {
///         Ok(())
///     }
/// }
/// ```
pub trait Terminals: Send + Sync + 'static {
    /// A started command.
    type Terminal: Terminal;

    /// Starts a program, not a shell line, and returns at once. The working directory is absolute;
    /// by default that of the session. Variables are added to the environment.
    // TERM-04, TERM-18, TERM-13, TERM-14, TERM-15
    fn create(
        &self,
        cx: RequestContext,
        request: CreateTerminalRequest,
    ) -> impl Future<Output = Result<Self::Terminal>> + Send;
}

/// A running or ended command.
///
/// Example: [`Terminals`].
pub trait Terminal: Send + Sync + 'static {
    /// The output of both streams so far, truncated at its start at a character boundary, and the
    /// exit status if the command has ended. Invalid UTF-8 is replaced.
    // TERM-06, TERM-07, TERM-08, TERM-19
    fn output(&self) -> impl Future<Output = Result<TerminalOutputResponse>> + Send;

    /// Waits until the command has ended. Several may wait at once. A signal leaves the exit code
    /// absent.
    // TERM-17, TERM-16
    fn wait_for_exit(&self) -> impl Future<Output = Result<TerminalExitStatus>> + Send;

    /// Ends the command; output and exit status stay available.
    // TERM-10
    fn kill(&self) -> impl Future<Output = Result<()>> + Send;

    /// Ends the command and frees its resources. Called once, also when the session or the
    /// connection ends.
    // TERM-11, TERM-20
    fn release(&self) -> impl Future<Output = Result<()>> + Send;

    /// The size of [`output`](Self::output), if known, so that the SDK can wait for room.
    fn output_bytes(&self) -> usize {
        0
    }

    /// Receives the id by which the agent knows the terminal. Called once, before the response;
    /// must not wait.
    // TOOL-16
    fn named(&self, _id: &TerminalId) {}
}

/// [`Terminal`] as an object.
pub(crate) trait DynTerminal: Send + Sync {
    fn output(&self) -> BoxFuture<'_, Result<TerminalOutputResponse>>;
    fn wait_for_exit(&self) -> BoxFuture<'_, Result<TerminalExitStatus>>;
    fn kill(&self) -> BoxFuture<'_, Result<()>>;
    fn release(&self) -> BoxFuture<'_, Result<()>>;
    fn output_bytes(&self) -> usize;
    fn named(&self, id: &TerminalId);
}

impl<T: Terminal> DynTerminal for T {
    fn output(&self) -> BoxFuture<'_, Result<TerminalOutputResponse>> {
        Box::pin(Terminal::output(self))
    }
    fn wait_for_exit(&self) -> BoxFuture<'_, Result<TerminalExitStatus>> {
        Box::pin(Terminal::wait_for_exit(self))
    }
    fn kill(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Terminal::kill(self))
    }
    fn release(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Terminal::release(self))
    }
    fn output_bytes(&self) -> usize {
        Terminal::output_bytes(self)
    }
    fn named(&self, id: &TerminalId) {
        Terminal::named(self, id);
    }
}

/// The terminals of one session.
#[derive(Default)]
pub(crate) struct TerminalTable(Mutex<Table>);

#[derive(Default)]
struct Table {
    open: HashMap<TerminalId, Arc<dyn DynTerminal>>,
    /// The session is over; a terminal that is created now is released at once.
    over: bool,
}

/// Terminal ids are unique in the process, so that no agent can mistake one for another.
static NEXT_TERMINAL: AtomicU64 = AtomicU64::new(1);

impl TerminalTable {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a terminal and returns its id, or the terminal if the session ended meanwhile.
    pub(crate) fn add(&self, terminal: Arc<dyn DynTerminal>) -> Result<TerminalId, Arc<dyn DynTerminal>> {
        let id = TerminalId::from(format!("term-{}", NEXT_TERMINAL.fetch_add(1, Ordering::Relaxed)));
        terminal.named(&id);
        let mut table = self.lock();
        if table.over {
            return Err(terminal);
        }
        table.open.insert(id.clone(), terminal);
        Ok(id)
    }

    // TERM-11: a terminal that does not exist, or not any more, is -32002.
    pub(crate) fn get(&self, id: &TerminalId) -> Result<Arc<dyn DynTerminal>> {
        self.lock().open.get(id).cloned().ok_or_else(|| unknown(id))
    }

    pub(crate) fn take(&self, id: &TerminalId) -> Result<Arc<dyn DynTerminal>> {
        self.lock().open.remove(id).ok_or_else(|| unknown(id))
    }

    // TERM-20: terminals are released with their session.
    pub(crate) fn release_all(&self) {
        let open = {
            let mut table = self.lock();
            table.over = true;
            std::mem::take(&mut table.open)
        };
        // Without a runtime there is nothing left to do but to drop them.
        if let (false, Ok(runtime)) = (open.is_empty(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                for terminal in open.into_values() {
                    let _ = terminal.release().await;
                }
            });
        }
    }
}

fn unknown(id: &TerminalId) -> Error {
    Error::not_found(format!("no such terminal: {id}"))
}

/// The request that an error belongs to.
pub(crate) struct Failing {
    method: &'static str,
    session: Option<SessionId>,
    /// `None` if the connection was dropped.
    errors: Option<ErrorReporter>,
}

/// Runs a handler whose answer may be large: it starts when a response slot is free and keeps the
/// slot until the answer is written.
pub(crate) fn run_with_slot<T, F>(failing: Failing, slot: Arc<ResponseSlot>, responder: Responder, work: F)
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    tokio::spawn(async move {
        let with_slot = async {
            slot.enter().await;
            work.await
        };
        finish(failing, with_slot, responder).await;
        // The handler may have kept a clone.
        slot.leave();
    });
}

/// Runs a handler as a task.
pub(crate) fn run<T, F>(failing: Failing, responder: Responder, work: F)
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    tokio::spawn(finish(failing, work, responder));
}

/// Answers with the result of a handler.
// CANCEL-16: when the agent cancels the request, the handler is dropped and the answer says so.
async fn finish<T, F>(failing: Failing, work: F, responder: Responder)
where
    T: Serialize + Send,
    F: Future<Output = Result<T>> + Send,
{
    let cancellation = responder.cancellation();
    match race(work, cancellation.cancelled()).await {
        First::Left(Ok(value)) => responder.ok(&value),
        First::Left(Err(error)) => responder.err(match &failing.errors {
            Some(errors) => errors.respond(failing.method, failing.session.as_ref(), &error),
            None => error.to_wire(),
        }),
        First::Right(()) => responder.err(ErrorObject::cancelled()),
    }
}
