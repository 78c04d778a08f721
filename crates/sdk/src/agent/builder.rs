//! The builder of agents. Installing a service advertises it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use attache_wire::v1::{
    Implementation, ListSessionsRequest, ListSessionsResponse, McpCapabilities, PromptCapabilities,
    SessionId, SessionUpdate,
};
use attache_wire::{Notification, Request};
use serde_json::value::RawValue;

use super::auth::{Auth, DynAuth};
use super::client::ClientHandle;
use super::record::RecordHook;
use super::session::{BoxFuture, ErasedSession, IntoOpenedSession, OpenRequest};
use crate::report::{ErrorHook, HandlerError, NoiseHook};
use crate::{Limits, Link, Listener, Result};
use tokio::task::JoinSet;

/// An agent with the services that it provides.
///
/// ```no_run
/// # use attache::agent::{Agent, AgentSession, Turn};
/// # use attache::{Link, Prompt, Result, StopReason};
/// # struct Echo;
/// # impl AgentSession for Echo {
/// #     async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> { Ok(StopReason::EndTurn) }
/// # }
/// # async fn run() -> Result<()> {
/// Agent::new(|_| async { Ok(Echo) })
///     .info("echo", "1.0")
///     .images()
///     .load(|_request| async { Ok(Echo) })
///     .serve(Link::stdio())
///     .await
/// # }
/// ```
///
/// To serve many clients, clone the agent for each connection, as
/// [`examples/tcp_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tcp_agent.rs)
/// does; clones share their services.
#[derive(Clone)]
#[must_use = "an agent does nothing before `serve`"]
pub struct Agent {
    pub(super) services: Services,
    pub(super) limits: Limits,
}

pub(super) type OpenFn =
    Arc<dyn Fn(OpenRequest, Start) -> BoxFuture<'static, Result<ErasedSession>> + Send + Sync>;
pub(super) type IdFn<T> = Arc<dyn Fn(SessionId) -> BoxFuture<'static, Result<T>> + Send + Sync>;
pub(super) type ListFn =
    Arc<dyn Fn(ListSessionsRequest) -> BoxFuture<'static, Result<ListSessionsResponse>> + Send + Sync>;
pub(super) type PlainFn<T> = Arc<dyn Fn() -> BoxFuture<'static, Result<T>> + Send + Sync>;
pub(super) type RequestFn = Arc<
    dyn Fn(Option<&RawValue>, ClientHandle) -> Result<BoxFuture<'static, Result<Box<RawValue>>>>
        + Send
        + Sync,
>;
pub(super) type NotificationFn = Arc<dyn Fn(Option<&RawValue>, &ClientHandle) + Send + Sync>;

/// Where a handler starts: in the reader, or in a task of its own.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Here,
    Task,
}

/// The installed services.
#[derive(Clone)]
pub(super) struct Services {
    pub(super) info: Implementation,
    /// Whether version 2 of the protocol is spoken.
    pub(super) v2: bool,
    pub(super) prompt: PromptCapabilities,
    pub(super) mcp: McpCapabilities,
    pub(super) additional_directories: bool,
    /// Whether running turns may take later prompts.
    pub(super) steering: bool,
    pub(super) cancel_grace: Duration,
    pub(super) open: OpenFn,
    pub(super) load: Option<OpenFn>,
    pub(super) resume: Option<OpenFn>,
    pub(super) list: Option<ListFn>,
    pub(super) delete: Option<IdFn<()>>,
    pub(super) auth: Option<Arc<dyn DynAuth>>,
    pub(super) logout: Option<PlainFn<()>>,
    #[cfg(feature = "unstable")]
    pub(super) unstable: super::unstable::UnstableServices,
    #[cfg(feature = "drafts")]
    pub(super) drafts: super::drafts::DraftServices,
    pub(super) requests: HashMap<&'static str, RequestFn>,
    pub(super) notifications: HashMap<&'static str, NotificationFn>,
    pub(super) on_error: Option<ErrorHook>,
    pub(super) on_noise: Option<NoiseHook>,
    pub(super) record: Option<RecordHook>,
}

impl Agent {
    /// Creates an agent that opens sessions with `open`. Prompts and cancelling need no further
    /// service.
    // INIT-22
    pub fn new<F, Fut, O>(open: F) -> Self
    where
        F: Fn(OpenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
        O: IntoOpenedSession + 'static,
    {
        let services = Services {
            info: crate::extension::program_info(),
            v2: false,
            prompt: PromptCapabilities::new(),
            mcp: McpCapabilities::new(),
            additional_directories: false,
            steering: false,
            cancel_grace: Duration::from_secs(2),
            open: opener(open),
            load: None,
            resume: None,
            list: None,
            delete: None,
            auth: None,
            logout: None,
            #[cfg(feature = "unstable")]
            unstable: Default::default(),
            #[cfg(feature = "drafts")]
            drafts: Default::default(),
            requests: HashMap::new(),
            notifications: HashMap::new(),
            on_error: None,
            on_noise: None,
            record: None,
        };
        Agent { services, limits: Limits::default() }
    }

    /// Sets the agent's name and version; by default the name of the program.
    pub fn info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.services.info = Implementation::new(name, version);
        self
    }

    /// Also serves clients that offer version 2 of the protocol, a draft. Sessions need no change:
    /// the version is that of the connection, and [`ClientHandle::version`] names it. Version 2 has
    /// no files and terminals of the client.
    pub fn protocol_v2(mut self) -> Self {
        self.services.v2 = true;
        self
    }

    /// Sets name, version and title at once, for example those of the package:
    /// [`package_info!`](crate::package_info).
    pub fn implementation(mut self, info: Implementation) -> Self {
        self.services.info = info;
        self
    }

    /// Accepts images in prompts.
    pub fn images(mut self) -> Self {
        self.services.prompt.image = true;
        self
    }

    /// Accepts audio in prompts.
    pub fn audio(mut self) -> Self {
        self.services.prompt.audio = true;
        self
    }

    /// Accepts embedded resources in prompts.
    pub fn embedded_context(mut self) -> Self {
        self.services.prompt.embedded_context = true;
        self
    }

    /// Accepts MCP servers over HTTP. Servers on stdio are accepted by every agent.
    // MCP-04, MCP-02
    pub fn mcp_over_http(mut self) -> Self {
        self.services.mcp.http = true;
        self
    }

    /// Accepts MCP servers over SSE.
    pub fn mcp_over_sse(mut self) -> Self {
        self.services.mcp.sse = true;
        self
    }

    /// Accepts further roots beside the session's directory.
    pub fn additional_directories(mut self) -> Self {
        self.services.additional_directories = true;
        self
    }

    /// Lets a running turn take later prompts with [`Turn::next_prompt`](super::Turn::next_prompt).
    /// A prompt is inserted when the turn takes it: version 2 answers it then, version 1 when the
    /// turn ends, with the same stop reason. One that no turn takes waits for its own turn, in both
    /// versions.
    pub fn steering(mut self) -> Self {
        self.services.steering = true;
        self
    }

    /// Loads stored sessions. The handler replays the conversation through [`OpenRequest::session`]
    /// and returns the session; the response follows the replay. Only the roots of the request
    /// count. See [`record`](Agent::record).
    // SESS-11, SESS-12, ROOT-12
    pub fn load<F, Fut, O>(mut self, load: F) -> Self
    where
        F: Fn(OpenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
        O: IntoOpenedSession + 'static,
    {
        self.services.load = Some(opener(load));
        self
    }

    /// Resumes stored sessions without a replay. Updates that the handler sends follow the
    /// response.
    // SESS-23
    pub fn resume<F, Fut, O>(mut self, resume: F) -> Self
    where
        F: Fn(OpenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
        O: IntoOpenedSession + 'static,
    {
        self.services.resume = Some(opener(resume));
        self
    }

    /// Lists stored sessions, page by page. The handler refuses unknown cursors.
    // LIST-07
    pub fn list<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn(ListSessionsRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ListSessionsResponse>> + Send + 'static,
    {
        self.services.list = Some(Arc::new(move |request| Box::pin(list(request))));
        self
    }

    /// Deletes stored sessions. A session that does not exist counts as deleted.
    // DEL-04
    pub fn delete<F, Fut>(mut self, delete: F) -> Self
    where
        F: Fn(SessionId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.services.delete = Some(Arc::new(move |id| Box::pin(delete(id))));
        self
    }

    /// Requires a login: until then, sessions are refused with `auth_required`. A login counts for
    /// one connection.
    // AUTH-05
    pub fn auth(mut self, auth: impl Auth) -> Self {
        self.services.auth = Some(Arc::new(auth));
        self
    }

    /// Logs users out; afterwards sessions need a login again.
    // AUTH-17
    pub fn logout<F, Fut>(mut self, logout: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.services.logout = Some(Arc::new(move || Box::pin(logout())));
        self
    }

    /// Serves an extension method, whose name starts with an underscore. See
    /// [`extension!`](crate::extension).
    // EXT-06, EXT-05
    pub fn on_request<R, F, Fut>(mut self, handle: F) -> Self
    where
        R: Request,
        F: Fn(R, ClientHandle) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R::Response>> + Send + 'static,
    {
        let handle = Arc::new(handle);
        let serve: RequestFn = Arc::new(move |params, client| {
            let request = super::decode::<R>(params)?;
            let handle = handle.clone();
            Ok(Box::pin(async move { Ok(serde_json::value::to_raw_value(&handle(request, client).await?)?) }))
        });
        self.services.requests.insert(R::METHOD, serve);
        self
    }

    /// Handles a notification of an extension, in wire order. It runs in the reader and must not
    /// block.
    pub fn on_notification<N, F>(mut self, handle: F) -> Self
    where
        N: Notification,
        F: Fn(N, &ClientHandle) + Send + Sync + 'static,
    {
        let take: NotificationFn = Arc::new(move |params, client| {
            // RPC-04: a notification that cannot be read is dropped without an answer.
            if let Ok(notification) = attache_wire::decode(params) {
                handle(notification, client);
            }
        });
        self.services.notifications.insert(N::METHOD, take);
        self
    }

    /// Calls a hook for every handler that fails with an error whose cause the peer cannot see. The
    /// peer gets `internal error` and the id of the report. Without a hook the report goes to the
    /// `tracing` subscriber, or else as one line to stderr.
    pub fn on_error(mut self, hook: impl Fn(&HandlerError<'_>) + Send + Sync + 'static) -> Self {
        self.services.on_error = Some(Arc::new(hook));
        self
    }

    /// Calls a hook for every line of the client that is not a message, with the reason. It runs in
    /// the reader and must not block.
    pub fn on_noise(mut self, hook: impl Fn(&[u8], &str) + Send + Sync + 'static) -> Self {
        self.services.on_noise = Some(Arc::new(hook));
        self
    }

    /// Calls a hook for every update that is sent, in wire order, and for the blocks of every
    /// prompt as user message chunks: a complete history for [`load`](Agent::load). Updates that
    /// `load` replays are not recorded. They have the form of version 1 on both versions; appended
    /// content and output of terminals are part of the next update of their tool call.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use attache::agent::{Agent, AgentSession};
    /// # fn install(agent: Agent) -> Agent {
    /// let history = Arc::new(Mutex::new(Vec::new()));
    /// agent.record(move |session, update| {
    ///     history.lock().unwrap().push((session.clone(), update.clone()));
    /// })
    /// # }
    /// ```
    pub fn record(mut self, hook: impl Fn(&SessionId, &SessionUpdate) + Send + Sync + 'static) -> Self {
        self.services.record = Some(Arc::new(hook));
        self
    }

    /// Sets how long a cancelled prompt handler may run before it is dropped; two seconds by
    /// default.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.services.cancel_grace = grace;
        self
    }

    /// Sets the limits of the connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves one client until it disconnects.
    ///
    /// # Errors
    /// When the connection fails; a client that disconnects is no error.
    pub async fn serve(self, link: Link) -> Result<()> {
        super::dispatch::serve(self, link).await
    }

    /// Serves all clients of a listener at once. Dropping the future ends their connections.
    ///
    /// Example:
    /// [`examples/tcp_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tcp_agent.rs).
    ///
    /// # Errors
    /// The listener accepts no more clients. The end of a client is no error; a failed connection
    /// is logged.
    pub async fn serve_clients(self, mut listener: impl Listener) -> Result<()> {
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                link = listener.accept() => {
                    let (link, agent) = (link?, self.clone());
                    clients.spawn(async move {
                        if let Err(error) = agent.serve(link).await {
                            tracing::info!(%error, "the connection to a client failed");
                        }
                    });
                }
                Some(_) = clients.join_next() => {}
            }
        }
    }
}

fn opener<F, Fut, O>(open: F) -> OpenFn
where
    F: Fn(OpenRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O>> + Send + 'static,
    O: IntoOpenedSession + 'static,
{
    let open = Arc::new(open);
    Arc::new(move |request, start| match start {
        Start::Here => {
            let opening = open(request);
            Box::pin(async move { Ok(ErasedSession::from(opening.await?.into_opened())) })
        }
        Start::Task => {
            let open = open.clone();
            Box::pin(async move { Ok(ErasedSession::from(open(request).await?.into_opened())) })
        }
    })
}
