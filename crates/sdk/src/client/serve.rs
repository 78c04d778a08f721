//! What a client offers to agents: files, terminals, and methods of its own.
//!
//! Installing one of these on [`Client`](super::Client) is what advertises it, so nothing can be advertised and not served. All of
//! them run as tasks of their own: waiting in one of them stops nothing else.

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

/// Where a request of the agent comes from.
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

    /// Waits for something that may take long, a person's decision for example, and lets the handlers of other requests
    /// run meanwhile. Few handlers that may answer with much run at once.
    pub async fn pause<T>(&self, future: impl Future<Output = T>) -> T {
        self.answer.pause(future).await
    }

    /// Waits until there is room for an answer of so many bytes. To be called before the answer is made, by handlers that know
    /// how large it will be: an agent that asks for much and reads nothing then costs no memory.
    pub async fn reserve(&self, bytes: usize) {
        self.answer.reserve(bytes).await;
    }

    /// The agent that asks; `None` when the connection has been let go in the meantime. A handler does not keep the
    /// connection alive.
    pub fn agent(&self) -> Option<AgentHandle> {
        self.core.upgrade().map(AgentHandle)
    }

    /// The session it asks for. Methods of extensions belong to none.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.lane.as_ref().map(|lane| &lane.id)
    }

    /// The session's working directory.
    pub fn cwd(&self) -> Option<&Path> {
        self.lane.as_ref().map(|lane| lane.cwd())
    }

    /// ROOT-07: the effective roots of the session, its working directory first. ROOT-17: whoever serves files keeps
    /// within them.
    pub fn roots(&self) -> &[PathBuf] {
        self.lane.as_ref().map_or(&[], |lane| &lane.roots)
    }

    /// Raised when the agent takes its request back. The handler is dropped then, so most need not look.
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
/// The path is absolute (FS-04) and a line, if given, is at least 1 (FS-14). What is left to do: keep to
/// [`RequestContext::roots`] (FS-15), prefer unsaved text (FS-09), answer [`Error::not_found`] for a missing file (FS-13),
/// refuse what is not text (FS-17), keep line ends as they are (FS-16).
/// Any `Fn(RequestContext, ReadTextFileRequest) -> impl Future` is one too.
pub trait ReadFiles: Send + Sync + 'static {
    /// FS-06: the text from `line` on, at most `limit` lines of it.
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
/// The path is absolute (FS-04). FS-10, FS-11: a file that does not exist is created, and so are its
/// directories, or it is an error. Any
/// `Fn(RequestContext, WriteTextFileRequest) -> impl Future` is one too.
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

/// Serves `terminal/create`. The ids of terminals, and which of them exist, are not the provider's business.
pub trait Terminals: Send + Sync + 'static {
    /// What runs.
    type Terminal: Terminal;

    /// Starts a command and returns at once (TERM-04). A command that cannot be started is an error (TERM-18). The working
    /// directory, if given, is absolute; else it is the session's (TERM-13). The command is a program, not a line for a
    /// shell (TERM-14); variables add to the environment (TERM-15).
    fn create(
        &self,
        cx: RequestContext,
        request: CreateTerminalRequest,
    ) -> impl Future<Output = Result<Self::Terminal>> + Send;
}

/// A running, or ended, command.
pub trait Terminal: Send + Sync + 'static {
    /// The output so far, cut from the beginning at a character boundary (TERM-06, TERM-07), and the exit status if the command
    /// has ended (TERM-08). What is no text is replaced, and both streams are one (TERM-19).
    fn output(&self) -> impl Future<Output = Result<TerminalOutputResponse>> + Send;

    /// Waits until the command has ended. Several may wait at once (TERM-17). A signal leaves the exit code absent
    /// (TERM-16).
    fn wait_for_exit(&self) -> impl Future<Output = Result<TerminalExitStatus>> + Send;

    /// Ends the command; output and exit status stay readable (TERM-10).
    fn kill(&self) -> impl Future<Output = Result<()>> + Send;

    /// Ends the command and frees what it holds (TERM-11). Called once, also when the session or the connection ends
    /// (TERM-20).
    fn release(&self) -> impl Future<Output = Result<()>> + Send;

    /// How many bytes [`output`](Self::output) would return now, if that is known: room for them is waited for before.
    fn output_bytes(&self) -> usize {
        0
    }

    /// The id by which the agent knows the terminal, for example to show its output in a tool call (TOOL-16). Called once, before
    /// the agent is told; must not wait.
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

    /// Gives a terminal its id; gives it back if the session has ended while it was created.
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

    /// TERM-11: a terminal that does not exist, or not any more, is -32002.
    pub(crate) fn get(&self, id: &TerminalId) -> Result<Arc<dyn DynTerminal>> {
        self.lock().open.get(id).cloned().ok_or_else(|| unknown(id))
    }

    pub(crate) fn take(&self, id: &TerminalId) -> Result<Arc<dyn DynTerminal>> {
        self.lock().open.remove(id).ok_or_else(|| unknown(id))
    }

    /// TERM-20: the session is over, and so are its terminals.
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

/// Runs a handler whose answer may be large: it starts when a response slot is free and keeps the slot until the answer is
/// written.
pub(crate) fn run_in_turn<T, F>(failing: Failing, slot: Arc<ResponseSlot>, responder: Responder, work: F)
where
    T: Serialize + Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    tokio::spawn(async move {
        let in_turn = async {
            slot.enter().await;
            work.await
        };
        finish(failing, in_turn, responder).await;
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

/// Answers with the result of a handler. CANCEL-16: when the agent cancels the request, the handler is dropped and the answer
/// says so.
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
