//! The client before it is connected: what it is and what it offers.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use attache_conn::{Limits, Link, Responder, Side};
use attache_rpc::ErrorObject;
use attache_wire::v1::{
    AuthCapabilities, BooleanConfigOptionCapabilities, ClientCapabilities, ClientNesCapabilities,
    ClientSessionCapabilities, CompactionCapabilities, CreateElicitationRequest, CreateTerminalRequest,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationUrlCapabilities, FileSystemCapabilities,
    Implementation, InitializeRequest, KillTerminalRequest, NoticeCapabilities, PlanCapabilities,
    PositionEncodingKind, ProtocolVersion, ReadTextFileRequest, ReleaseTerminalRequest,
    SessionConfigOptionsCapabilities, SubagentCapabilities, TerminalOutputRequest,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use attache_wire::{Meta, Notification, Request};
use serde_json::value::RawValue;

use super::PermissionAsk;
use super::agent::AgentHandle;
use super::connection::Core;
use super::dispatch::Router;
use super::serve::{BoxFuture, DynTerminal, ReadFiles, RequestContext, Terminals, WriteFiles, run_in_turn};
use crate::race::{First, race};
use crate::report::{ErrorHook, HandlerError, NoiseHook};
use crate::{Error, Result};

type ReadFn =
    Arc<dyn Fn(RequestContext, ReadTextFileRequest) -> BoxFuture<'static, Result<String>> + Send + Sync>;
type WriteFn =
    Arc<dyn Fn(RequestContext, WriteTextFileRequest) -> BoxFuture<'static, Result<()>> + Send + Sync>;
type CreateFn = Arc<
    dyn Fn(RequestContext, CreateTerminalRequest) -> BoxFuture<'static, Result<Arc<dyn DynTerminal>>>
        + Send
        + Sync,
>;
type RequestFn = Arc<dyn Fn(RequestContext, Option<&RawValue>, Responder) + Send + Sync>;
type NotificationFn = Arc<dyn Fn(Weak<Core>, Option<&RawValue>) + Send + Sync>;
type PermissionFn = Arc<dyn Fn(PermissionAsk, RequestContext) -> BoxFuture<'static, ()> + Send + Sync>;

/// How long `initialize` may take: an agent that is fetched and started for the first time is slow, one that says nothing for
/// this long is broken.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an agent may take to end a cancelled turn.
const CANCEL_DEADLINE: Duration = Duration::from_secs(30);
/// How long to wait for the last words of an agent that did not answer.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What a client offers. It is read by dispatch and never changes after the connection is made.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) info: Implementation,
    pub(crate) read: Option<ReadFn>,
    pub(crate) write: Option<WriteFn>,
    pub(crate) terminals: Option<CreateFn>,
    pub(crate) forms: bool,
    pub(crate) urls: bool,
    pub(crate) requests: HashMap<&'static str, RequestFn>,
    pub(crate) notifications: HashMap<&'static str, NotificationFn>,
    pub(crate) on_noise: Option<NoiseHook>,
    pub(crate) on_error: Option<ErrorHook>,
    pub(crate) on_permission: Option<PermissionFn>,
    pub(crate) missing_files_are_empty: Option<bool>,
    pub(crate) cancel_deadline: Duration,
    /// What needs no handler to be offered.
    more: ClientCapabilities,
    initialize_timeout: Duration,
    limits: Limits,
}

impl Services {
    /// Whether a request is served at all.
    pub(crate) fn serves(&self, method: &str) -> bool {
        match method {
            ReadTextFileRequest::METHOD => self.read.is_some(),
            WriteTextFileRequest::METHOD => self.write.is_some(),
            // TERM-03: all five together.
            CreateTerminalRequest::METHOD
            | TerminalOutputRequest::METHOD
            | WaitForTerminalExitRequest::METHOD
            | KillTerminalRequest::METHOD
            | ReleaseTerminalRequest::METHOD => self.terminals.is_some(),
            CreateElicitationRequest::METHOD => self.forms || self.urls,
            _ => true,
        }
    }

    /// INIT-17: what is installed is what is advertised.
    fn capabilities(&self) -> ClientCapabilities {
        let mut all = self.more.clone();
        all.fs = FileSystemCapabilities::new()
            .read_text_file(self.read.is_some())
            .write_text_file(self.write.is_some());
        all.terminal = self.terminals.is_some();
        if self.forms || self.urls {
            let mut elicitation = ElicitationCapabilities::new();
            elicitation.form = self.forms.then(ElicitationFormCapabilities::new);
            elicitation.url = self.urls.then(ElicitationUrlCapabilities::new);
            all.elicitation = Some(elicitation);
        }
        all
    }
}

/// A client, before it is connected. It can be connected many times.
///
/// What is installed is what the agent is told, and the only way to tell it: an agent that calls what was not
/// installed is answered "method not found".
#[derive(Clone)]
pub struct Client(Services);

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl Client {
    /// A client that offers nothing but to answer permission requests, which every client does.
    pub fn new() -> Self {
        Client(Services {
            info: crate::extension::program_info(),
            read: None,
            write: None,
            terminals: None,
            forms: false,
            urls: false,
            requests: HashMap::new(),
            notifications: HashMap::new(),
            on_noise: None,
            on_error: None,
            on_permission: None,
            missing_files_are_empty: None,
            cancel_deadline: CANCEL_DEADLINE,
            more: ClientCapabilities::new(),
            initialize_timeout: INITIALIZE_TIMEOUT,
            limits: Limits::for_client(),
        })
    }

    /// Sets the client's name and version; by default the name of the program.
    pub fn info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.0.info = Implementation::new(name, version);
        self
    }

    /// Sets name, version and title at once, for example those of the package: [`package_info!`](crate::package_info).
    pub fn implementation(mut self, info: Implementation) -> Self {
        self.0.info = info;
        self
    }

    /// Sets a name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.info.title = Some(title.into());
        self
    }

    /// Offers to read files.
    pub fn read_files(mut self, files: impl ReadFiles) -> Self {
        let files = Arc::new(files);
        self.0.read = Some(Arc::new(move |cx, request| {
            let files = files.clone();
            Box::pin(async move { files.read(cx, request).await })
        }));
        self
    }

    /// Offers to write files.
    pub fn write_files(mut self, files: impl WriteFiles) -> Self {
        let files = Arc::new(files);
        self.0.write = Some(Arc::new(move |cx, request| {
            let files = files.clone();
            Box::pin(async move { files.write(cx, request).await })
        }));
        self
    }

    /// Offers terminals.
    pub fn terminals<T: Terminals>(mut self, terminals: T) -> Self {
        let terminals = Arc::new(terminals);
        self.0.terminals = Some(Arc::new(move |cx, request| {
            let terminals = terminals.clone();
            Box::pin(
                async move { Ok(Arc::new(terminals.create(cx, request).await?) as Arc<dyn DynTerminal>) },
            )
        }));
        self
    }

    /// Whether `fs/read_text_file` of a missing file ([`Error::not_found`]) returns an empty text instead of the error.
    ///
    /// Some agents create a new file only if reading it gave an empty text. Unless this is set, the agents that are known to do
    /// so, recognised by the name and version that they report, get the empty text, and all others the error.
    pub fn missing_files_are_empty(mut self, yes: bool) -> Self {
        self.0.missing_files_are_empty = Some(yes);
        self
    }

    /// Offers to show forms; they arrive as [`Event::Elicitation`](super::Event::Elicitation).
    pub fn elicitation_forms(mut self) -> Self {
        self.0.forms = true;
        self
    }

    /// Offers to send the user to web pages; the questions arrive as [`Event::Elicitation`](super::Event::Elicitation).
    pub fn elicitation_urls(mut self) -> Self {
        self.0.urls = true;
        self
    }

    /// Offers to run the agent's program in a terminal for the user to log in (AUTH-09); see
    /// [`AgentHandle::login_command`].
    pub fn terminal_auth(mut self) -> Self {
        self.0.more.auth = AuthCapabilities::new().terminal(true);
        self
    }

    /// Understands config options that are on or off.
    pub fn boolean_options(mut self) -> Self {
        let boolean = SessionConfigOptionsCapabilities::new().boolean(BooleanConfigOptionCapabilities::new());
        self.session().config_options = Some(boolean);
        self
    }

    /// Shows notices.
    pub fn notices(mut self) -> Self {
        self.session().notices = Some(NoticeCapabilities::new());
        self
    }

    /// Shows compactions of the context.
    pub fn compaction(mut self) -> Self {
        self.session().compaction = Some(CompactionCapabilities::new());
        self
    }

    fn session(&mut self) -> &mut ClientSessionCapabilities {
        self.0.more.session.get_or_insert_with(ClientSessionCapabilities::new)
    }

    /// Shows several plans in one session.
    pub fn plans(mut self) -> Self {
        self.0.more.plan = Some(PlanCapabilities::new());
        self
    }

    /// Shows subagents and messages between sessions.
    pub fn subagents(mut self) -> Self {
        self.0.more.subagents = Some(SubagentCapabilities::new());
        self
    }

    /// Understands these kinds of edit suggestions beside plain edits (NES-04).
    pub fn nes(mut self, kinds: ClientNesCapabilities) -> Self {
        self.0.more.nes = Some(kinds);
        self
    }

    /// Understands these ways to count characters, the best first (NES-10). Without this it is UTF-16.
    pub fn position_encodings(mut self, encodings: impl Into<Vec<PositionEncodingKind>>) -> Self {
        self.0.more.position_encodings = Some(encodings.into());
        self
    }

    /// INIT-27, INIT-28, EXT-09: announces extensions, in `_meta` of the capabilities and nowhere else.
    pub fn extensions(mut self, meta: Meta) -> Self {
        self.0.more.meta = Some(meta);
        self
    }

    /// Serves a method of an extension, as a task of its own. Its answer may be large, so few handlers run at once: one that
    /// waits for something slow does that in [`RequestContext::pause`].
    ///
    /// EXT-05: names that begin with an underscore are free for extensions; some agents use others, and those can be served too.
    /// MCP-12: `mcp/message` of MCP servers that are reached through this connection is served like this as well; the
    /// answer holds the server's result or its error, and an error of this handler says that there is no such server
    /// (MCPA-05). What the protocol itself defines for clients stays with this crate.
    pub fn on_request<R, F, Fut>(mut self, handler: F) -> Self
    where
        R: Request,
        F: Fn(R, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R::Response>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let serve = move |cx: RequestContext, params: Option<&RawValue>, responder: Responder| {
            match attache_wire::decode(params) {
                Ok(request) => {
                    // All of the handler runs in its own task, also what it does before its first wait.
                    let handler = handler.clone();
                    run_in_turn(cx.failing(R::METHOD), cx.answer().clone(), responder, async move {
                        handler(request, cx).await
                    });
                }
                // RPC-13
                Err(error) => responder.err(ErrorObject::invalid_params(error.to_string())),
            }
        };
        self.0.requests.insert(R::METHOD, Arc::new(serve));
        self
    }

    /// Hears a notification of an extension, in the order of the wire. The handler runs in the reader: it must not block.
    /// The agent is `None` when the connection has been let go.
    pub fn on_notification<N: Notification>(
        mut self,
        handler: impl Fn(N, Option<AgentHandle>) + Send + Sync + 'static,
    ) -> Self {
        let hear = move |core: Weak<Core>, params: Option<&RawValue>| match attache_wire::decode(params) {
            Ok(notification) => handler(notification, core.upgrade().map(AgentHandle)),
            Err(error) => {
                if let Some(core) = core.upgrade() {
                    core.unreadable(N::METHOD, params, &error);
                }
            }
        };
        self.0.notifications.insert(N::METHOD, Arc::new(hear));
        self
    }

    /// Hears of everything that is not a message, with the reason: log lines on the wrong stream, messages off the
    /// schema. The handler runs in the reader: it must not block.
    pub fn on_noise(mut self, handler: impl Fn(&[u8], &str) + Send + Sync + 'static) -> Self {
        self.0.on_noise = Some(Arc::new(handler));
        self
    }

    /// Calls a hook for every handler that fails with an error whose cause the peer cannot see. The peer gets `internal error` and
    /// the id of the report. Without a hook the report goes to the `tracing` subscriber, or else as one line to stderr.
    pub fn on_error(mut self, hook: impl Fn(&HandlerError<'_>) + Send + Sync + 'static) -> Self {
        self.0.on_error = Some(Arc::new(hook));
        self
    }

    /// Decides permission requests in a task of their own, instead of [`Event::Permission`](super::Event::Permission). With it,
    /// [`TurnEvents::text`](super::TurnEvents::text) can approve. A question that the handler drops is answered `cancelled`.
    ///
    /// Programs that ask a person or follow rules use `attache-host`, whose policy decides by effects.
    ///
    /// ```
    /// use attache::client::Client;
    /// use attache::wire::v1::PermissionOptionKind::AllowOnce;
    ///
    /// let client = Client::new().on_permission(|ask, _context| async move { ask.choose_kind(AllowOnce) });
    /// ```
    pub fn on_permission<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(PermissionAsk, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.0.on_permission = Some(Arc::new(move |ask, context| Box::pin(handler(ask, context))));
        self
    }

    /// How long `initialize` may take; half a minute if nothing is said.
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.0.initialize_timeout = timeout;
        self
    }

    /// How long an agent may take to end a turn that was cancelled, before it is ended on this side; half a minute if
    /// nothing is said. Some agents never do.
    pub fn cancel_deadline(mut self, deadline: Duration) -> Self {
        self.0.cancel_deadline = deadline;
        self
    }

    /// What the connection may cost; [`Limits::for_client`] unless said.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.0.limits = limits;
        self
    }

    /// Connects to an agent: opens the link and agrees on a version. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the agent does not answer in time, answers with an error, ends, or speaks no version that this client speaks. The
    /// error tells what the agent printed instead.
    pub async fn connect(&self, link: Link) -> Result<AgentHandle> {
        let services = self.0.clone();
        let mut core = None;
        let (peer, driver) = attache_conn::open(link, services.limits.clone(), Side::Client, |peer| {
            let made = core.insert(Core::new(peer.clone(), services));
            Router(Arc::downgrade(made))
        });
        tokio::spawn(driver);
        let Some(core) = core else {
            peer.close();
            return Err(Error::internal("the connection was not made"));
        };
        // Dropping this future drops the last handle, which closes the connection.
        let agent = AgentHandle(core);
        self.initialize(&agent).await?;
        Ok(agent)
    }

    async fn initialize(&self, agent: &AgentHandle) -> Result<()> {
        let core = &agent.0;
        // INIT-04: the newest version that we speak.
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(self.0.capabilities())
            .client_info(self.0.info.clone());
        let timeout = self.0.initialize_timeout;
        let answer = match race(core.request(&request), tokio::time::sleep(timeout)).await {
            First::Left(answer) => answer,
            First::Right(()) => {
                let method = InitializeRequest::METHOD.to_owned();
                return Err(Error::Timeout { method, after: timeout, output: last_output(core).await });
            }
        };
        match answer {
            // INIT-09: a version that we do not speak ends the connection, and the user is told.
            Ok(initialized) if initialized.protocol_version != ProtocolVersion::V1 => {
                core.peer.close();
                Err(Error::Version { theirs: initialized.protocol_version, ours: ProtocolVersion::V1 })
            }
            Ok(initialized) => {
                // Set once: there is one `initialize` per connection.
                let _ = core.initialized.set(initialized);
                Ok(())
            }
            Err(Error::Closed(closed)) => Err(Error::Closed(closed.with_stdout(core.printed()))),
            Err(Error::Decode { method, reason }) => {
                Err(Error::Decode { method, reason: reason + &last_output(core).await })
            }
            Err(error) => {
                core.peer.close();
                Err(error)
            }
        }
    }
}

/// Closes the connection and returns the output of the agent, to be appended to an error.
async fn last_output(core: &Core) -> String {
    core.peer.close();
    let closed = race(core.peer.closed(), tokio::time::sleep(LAST_WORDS)).await;
    let stderr = if let First::Left(closed) = &closed { closed.stderr_tail.trim() } else { "" };
    let printed = core.printed();
    let named = [("stdout", printed.as_str()), ("stderr", stderr)];
    named
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| format!("; {name}: {text}"))
        .collect()
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("info", &self.0.info).finish_non_exhaustive()
    }
}
