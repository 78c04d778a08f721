//! The builder of clients. Installing a service advertises it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use attache_conn::{Limits, Link, Responder, Side};
use attache_rpc::ErrorObject;
use attache_wire::v1::{
    AuthCapabilities, BooleanConfigOptionCapabilities, ClientCapabilities, ClientSessionCapabilities,
    CompactionCapabilities, CreateElicitationRequest, CreateTerminalRequest, ElicitationCapabilities,
    ElicitationFormCapabilities, ElicitationUrlCapabilities, FileSystemCapabilities, Implementation,
    InitializeRequest, InitializeResponse, KillTerminalRequest, NoticeCapabilities, ProtocolVersion,
    ReadTextFileRequest, ReleaseTerminalRequest, SessionConfigOptionsCapabilities, TerminalOutputRequest,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use attache_wire::{Fields, Json, Meta, Notification, Request, v2};
use serde_json::value::RawValue;

use super::PermissionAsk;
use super::agent::AgentHandle;
use super::connection::{Core, read};
use super::dispatch::Router;
use super::into_link::IntoLink;
use super::serve::{BoxFuture, DynTerminal, ReadFiles, RequestContext, Terminals, WriteFiles, run_with_slot};
use super::v2::convert;
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

/// Time for `initialize`: an agent that is downloaded first is slow, one that is silent for this
/// long is broken.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for an agent to end a cancelled turn.
const CANCEL_DEADLINE: Duration = Duration::from_secs(30);
/// Time to collect the output of an agent that did not answer.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);

/// The installed services. Dispatch reads them; they never change after the connection is made.
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
    /// Capabilities without a handler.
    pub(super) more: ClientCapabilities,
    protocol: Protocol,
    initialize_timeout: Duration,
    limits: Limits,
}

impl Services {
    /// Whether a method is served.
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

    /// Whether an agent of version 1 has to be asked for that version: from the offer of version 2
    /// it would not learn what this client can do.
    fn needs_version_1(&self) -> bool {
        self.capabilities() != ClientCapabilities::new()
    }

    // INIT-17: exactly the installed services are advertised.
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

/// A client with the services that it provides. It can connect many times.
///
/// Example:
/// [`examples/client.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/client.rs).
///
/// The agent learns about exactly the installed services; calls of others are answered "method not
/// found".
#[derive(Clone)]
pub struct Client(pub(super) Services);

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl Client {
    /// Creates a client without services. It still receives permission requests.
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
            protocol: Protocol::V1,
            initialize_timeout: INITIALIZE_TIMEOUT,
            limits: Limits::for_client(),
        })
    }

    /// Sets the client's name and version; by default the name of the program.
    pub fn info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.0.info = Implementation::new(name, version);
        self
    }

    /// Sets name, version and title at once, for example those of the package:
    /// [`package_info!`](crate::package_info).
    pub fn implementation(mut self, info: Implementation) -> Self {
        self.0.info = info;
        self
    }

    /// Sets a name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.info.title = Some(title.into());
        self
    }

    /// Provides files to read. The crate `attache-host` has an implementation that is confined to
    /// the session's roots.
    pub fn read_files(mut self, files: impl ReadFiles) -> Self {
        let files = Arc::new(files);
        self.0.read = Some(Arc::new(move |cx, request| {
            let files = files.clone();
            Box::pin(async move { files.read(cx, request).await })
        }));
        self
    }

    /// Provides files to write. The crate `attache-host` has an implementation that is confined to
    /// the session's roots.
    pub fn write_files(mut self, files: impl WriteFiles) -> Self {
        let files = Arc::new(files);
        self.0.write = Some(Arc::new(move |cx, request| {
            let files = files.clone();
            Box::pin(async move { files.write(cx, request).await })
        }));
        self
    }

    /// Provides terminals. Those of the crate `attache-host` end their processes, even if this
    /// process is killed.
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

    /// Sets whether a missing file reads as an empty text instead of [`Error::not_found`].
    ///
    /// Some agents create a file only if reading it returned an empty text. By default only these,
    /// which are known by name and version, get the empty text.
    pub fn missing_files_are_empty(mut self, yes: bool) -> Self {
        self.0.missing_files_are_empty = Some(yes);
        self
    }

    /// Shows forms, which arrive as [`Event::Elicitation`](super::Event::Elicitation).
    pub fn elicitation_forms(mut self) -> Self {
        self.0.forms = true;
        self
    }

    /// Asks the user to visit web pages; the questions arrive as
    /// [`Event::Elicitation`](super::Event::Elicitation).
    pub fn elicitation_urls(mut self) -> Self {
        self.0.urls = true;
        self
    }

    /// Runs the agent's program in a terminal for the user to log in; see
    /// [`AgentHandle::login_command`].
    // AUTH-09
    pub fn terminal_auth(mut self) -> Self {
        self.0.more.auth = AuthCapabilities::new().terminal(true);
        self
    }

    /// Supports config options that are on or off.
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

    /// Announces extensions in `_meta` of the capabilities.
    // INIT-27, INIT-28, EXT-09
    pub fn extensions(mut self, meta: Meta) -> Self {
        self.0.more.meta = Some(meta);
        self
    }

    /// Serves an extension method in a task of its own. Few handlers run at once, because their
    /// answers may be large: wait for slow things in [`RequestContext::pause`]. See
    /// [`extension!`](crate::extension).
    ///
    /// Names of extensions start with an underscore, but others can be served too, except those
    /// that the protocol defines for clients. `mcp/message` of MCP servers in the client is served
    /// like this: the answer holds the server's result or error, and an error of the handler means
    /// that the server does not exist.
    // MCP-12
    // MCPA-05, EXT-05
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
                    // All of the handler runs in its own task, even the part before its first wait.
                    let handler = handler.clone();
                    run_with_slot(cx.failing(R::METHOD), cx.answer().clone(), responder, async move {
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

    /// Handles a notification of an extension, in wire order. It runs in the reader and must not
    /// block. The agent is `None` if all its handles are dropped.
    pub fn on_notification<N: Notification>(
        mut self,
        handler: impl Fn(N, Option<AgentHandle>) + Send + Sync + 'static,
    ) -> Self {
        let receive = move |core: Weak<Core>, params: Option<&RawValue>| match attache_wire::decode(params) {
            Ok(notification) => handler(notification, core.upgrade().map(AgentHandle)),
            Err(error) => {
                if let Some(core) = core.upgrade() {
                    core.unreadable(N::METHOD, params, &error);
                }
            }
        };
        self.0.notifications.insert(N::METHOD, Arc::new(receive));
        self
    }

    /// Calls a hook for every line that is not a valid message, with the reason. It runs in the
    /// reader and must not block.
    pub fn on_noise(mut self, handler: impl Fn(&[u8], &str) + Send + Sync + 'static) -> Self {
        self.0.on_noise = Some(Arc::new(handler));
        self
    }

    /// Calls a hook for every handler that fails with an error whose cause the peer cannot see. The
    /// peer gets `internal error` and the id of the report. Without a hook the report goes to the
    /// `tracing` subscriber, or else as one line to stderr.
    pub fn on_error(mut self, hook: impl Fn(&HandlerError<'_>) + Send + Sync + 'static) -> Self {
        self.0.on_error = Some(Arc::new(hook));
        self
    }

    /// Decides permission requests in a task of their own, instead of
    /// [`Event::Permission`](super::Event::Permission). With it,
    /// [`TurnEvents::text`](super::TurnEvents::text) can approve. A question that the handler drops
    /// is answered `cancelled`.
    ///
    /// Programs that ask a person or follow rules use `attache-host`, whose policy decides by
    /// effects.
    ///
    /// ```
    /// use attache::client::Client;
    /// use attache::model::PermissionOptionKind::AllowOnce;
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

    /// Sets the time for `initialize`; 30 seconds by default.
    pub fn initialize_timeout(mut self, timeout: Duration) -> Self {
        self.0.initialize_timeout = timeout;
        self
    }

    /// Sets the time for an agent to end a cancelled turn, before it is ended on this side; 30
    /// seconds by default.
    pub fn cancel_deadline(mut self, deadline: Duration) -> Self {
        self.0.cancel_deadline = deadline;
        self
    }

    /// Sets the limits of the connection; [`Limits::for_client`] by default.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.0.limits = limits;
        self
    }

    /// Sets the protocol versions that are offered; [`Protocol::V1`] by default, because version 2
    /// is a draft.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.0.protocol = protocol;
        self
    }

    /// Connects to an agent and negotiates the version. Must be called within a tokio runtime. With
    /// the feature `http`, a remote agent can be given by its URL; see [`IntoLink`].
    ///
    /// With [`Protocol::Auto`], a client with capabilities offers version 1 first, because an agent
    /// of version 1 would not learn of them from the offer of version 2; see
    /// [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Version`], [`Error::Closed`] or [`Error::Refused`]. The error
    /// holds the output of the agent instead of an answer.
    pub async fn connect(&self, to: impl IntoLink) -> Result<AgentHandle> {
        let link = to.into_link().await?;
        let offer = match self.0.protocol {
            Protocol::V2 => ProtocolVersion::V2,
            Protocol::Auto if !self.0.needs_version_1() => ProtocolVersion::V2,
            Protocol::Auto | Protocol::V1 => ProtocolVersion::V1,
        };
        self.connect_offering(link, offer).await
    }

    /// Connects to an agent that can be started again: offers version 2, and where an agent of
    /// version 1 would not learn the capabilities of this client from that, starts it a second time
    /// with version 1.
    ///
    /// Remember [`AgentHandle::protocol_version`] of an agent and ask for [`Protocol::V1`] the next
    /// time, to start it once.
    ///
    /// Example: [`Protocol`].
    ///
    /// # Errors
    /// Those of `link` and of [`connect`](Self::connect).
    pub async fn connect_with(&self, mut link: impl AsyncFnMut() -> Result<Link>) -> Result<AgentHandle> {
        if self.0.protocol != Protocol::Auto || !self.0.needs_version_1() {
            return self.connect(link().await?).await;
        }
        let agent = self.connect_offering(link().await?, ProtocolVersion::V2).await?;
        if agent.0.is_v2() {
            return Ok(agent);
        }
        agent.shutdown().await;
        drop(agent);
        self.connect_offering(link().await?, ProtocolVersion::V1).await
    }

    async fn connect_offering(&self, link: Link, offer: ProtocolVersion) -> Result<AgentHandle> {
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
        self.initialize(&agent, offer).await?;
        Ok(agent)
    }

    async fn initialize(&self, agent: &AgentHandle, offer: ProtocolVersion) -> Result<()> {
        let core = &agent.0;
        let mut answer = self.offer(core, offer).await;
        // A refusal leaves the connection as it was. An agent that says which versions it has is
        // asked for one of them; one that does not know what to do with version 2 is asked for
        // version 1.
        if let Err(Error::Refused(error)) = &answer
            && let Some(other) = self.other_version(error, offer)
        {
            answer = self.offer(core, other).await;
        }
        match answer {
            // INIT-09: an unknown version ends the connection.
            Ok(Negotiated { response, .. }) if !self.0.protocol.accepts(response.protocol_version) => {
                core.peer.close();
                let ours =
                    if self.0.protocol == Protocol::V1 { ProtocolVersion::V1 } else { ProtocolVersion::V2 };
                Err(Error::Version { theirs: response.protocol_version, ours })
            }
            Ok(Negotiated { response, capabilities_v2 }) => {
                // Set once: there is one successful `initialize` per connection.
                if let Some(capabilities) = capabilities_v2 {
                    let _ = core.capabilities_v2.set(capabilities);
                }
                let _ = core.initialized.set(response);
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

    /// The version to ask for after a refusal.
    fn other_version(&self, error: &ErrorObject, offered: ProtocolVersion) -> Option<ProtocolVersion> {
        let named = error.data.as_deref().filter(|_| error.code == UNSUPPORTED_VERSION).map(RawValue::get);
        let named: Option<v2::UnsupportedProtocolVersionErrorData> =
            named.and_then(|data| serde_json::from_str(data).ok());
        let other = match named {
            Some(named) => named.supported.into_iter().filter(|version| *version != offered).max()?,
            None if offered == ProtocolVersion::V2 => ProtocolVersion::V1,
            None => return None,
        };
        self.0.protocol.accepts(other).then_some(other)
    }

    /// Sends `initialize` in the form of a version and reads the answer in the form of the version
    /// that it names.
    async fn offer(&self, core: &Core, version: ProtocolVersion) -> Result<Negotiated> {
        // INIT-01, WS-03: the first request. INIT-04: the newest version that we speak.
        let sent = async {
            match version == ProtocolVersion::V2 {
                // V2-03
                true => {
                    let capabilities = convert::client_capabilities(self.0.capabilities());
                    let request = v2::InitializeRequest::new(version, self.0.info.clone());
                    core.peer.call(InitializeRequest::METHOD, &request.capabilities(capabilities)).await
                }
                false => {
                    let request = InitializeRequest::new(version)
                        .client_capabilities(self.0.capabilities())
                        .client_info(self.0.info.clone());
                    core.peer.call(InitializeRequest::METHOD, &request).await
                }
            }
        };
        let timeout = self.0.initialize_timeout;
        let raw = match race(sent, tokio::time::sleep(timeout)).await {
            First::Left(answer) => answer?,
            First::Right(()) => {
                let method = InitializeRequest::METHOD.to_owned();
                return Err(Error::Timeout { method, after: timeout, output: last_output(core).await });
            }
        };
        // Both forms have the version; all other members of version 1 are optional.
        let mut response = read::<InitializeRequest>(&raw)?;
        if response.protocol_version != ProtocolVersion::V2 {
            return Ok(Negotiated { response, capabilities_v2: None });
        }
        // V2-04
        let answer = match read::<v2::InitializeRequest>(&raw) {
            Ok(answer) => answer,
            // Some agents of version 1 repeat the number that they are offered. Only version 2 has
            // `info`, and always.
            Err(_) if self.0.protocol == Protocol::Auto && !has_member(&raw, "info") => {
                response.protocol_version = ProtocolVersion::V1;
                return Ok(Negotiated { response, capabilities_v2: None });
            }
            Err(error) => return Err(error),
        };
        let methods = convert::auth_methods(answer.auth_methods);
        let capabilities = convert::agent_capabilities(answer.capabilities.clone(), !methods.is_empty());
        let response = InitializeResponse::new(ProtocolVersion::V2)
            .agent_capabilities(capabilities)
            .agent_info(answer.info)
            .auth_methods(methods)
            .meta(answer.meta);
        Ok(Negotiated { response, capabilities_v2: Some(answer.capabilities) })
    }
}

fn has_member(object: &RawValue, name: &str) -> bool {
    let members: Option<Fields<Json>> = serde_json::from_str(object.get()).ok();
    members.is_some_and(|members| members.get(name).is_some())
}

/// The code of an agent that does not speak the offered version.
const UNSUPPORTED_VERSION: i32 = -32022;

/// The answer to `initialize`.
struct Negotiated {
    response: InitializeResponse,
    capabilities_v2: Option<v2::AgentCapabilities>,
}

/// The protocol versions that a client speaks; see [`Client::protocol`].
///
/// ```no_run
/// use attache::Link;
/// use attache::client::{Client, Protocol};
///
/// # async fn run() -> attache::Result<()> {
/// let client = Client::new().protocol(Protocol::Auto);
/// let agent = client.connect_with(async || Ok(Link::spawn("my-agent")?)).await?;
/// println!("version {}", agent.protocol_version());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// Version 1.
    #[default]
    V1,
    /// Version 2.
    V2,
    /// Version 2 with agents that speak it, version 1 with the others.
    Auto,
}

impl Protocol {
    fn accepts(self, version: ProtocolVersion) -> bool {
        match self {
            Protocol::V1 => version == ProtocolVersion::V1,
            Protocol::V2 => version == ProtocolVersion::V2,
            Protocol::Auto => version == ProtocolVersion::V1 || version == ProtocolVersion::V2,
        }
    }
}

/// Closes the connection and returns the output of the agent, to be appended to an error.
async fn last_output(core: &Core) -> String {
    core.peer.close();
    let closed = race(core.peer.closed(), tokio::time::sleep(OUTPUT_TIMEOUT)).await;
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
