//! How sessions are opened: new, loaded, resumed or forked, with the same options.

use std::future::IntoFuture;
use std::mem::take;
use std::path::PathBuf;
use std::sync::Arc;

use attache_wire::v1::{
    AgentCapabilities, LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest,
    NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse, SessionId,
};
use attache_wire::{Meta, Request};

use super::agent::AgentHandle;
use super::connection::answered;
use super::replay::SessionReplay;
use super::serve::BoxFuture;
use super::session::Session;
use super::state::State;
#[cfg(feature = "unstable")]
use super::unstable::Fork;
use super::v2::requests;
use crate::check;
use crate::{Error, Result};

/// Options of the caller.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionOptions {
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    pub(super) mcp_servers: Vec<McpServer>,
    #[cfg(feature = "unstable")]
    pub(super) system_prompt: Option<attache_wire::v1::SystemPrompt>,
    pub(super) meta: Option<Meta>,
}

/// Checked options, with paths as they are sent.
pub(super) struct CheckedOptions {
    pub(super) cwd: String,
    pub(super) directories: Option<Vec<String>>,
    pub(super) roots: Arc<[PathBuf]>,
    pub(super) options: SessionOptions,
}

impl SessionOptions {
    /// Checks the options against the capabilities of the agent.
    pub(super) fn check(self, agent: &AgentHandle) -> Result<CheckedOptions> {
        let checked = self.check_capabilities(agent.capabilities())?;
        requests::check_session(agent, &checked)?;
        Ok(checked)
    }

    fn check_capabilities(mut self, agent: &AgentCapabilities) -> Result<CheckedOptions> {
        let mut roots = vec![take(&mut self.cwd)];
        for directory in take(&mut self.directories) {
            // ROOT-19: duplicates, and the working directory itself, add nothing.
            if !roots.contains(&directory) {
                roots.push(directory);
            }
        }
        // ROOT-01, ROOT-09: all of them are absolute.
        let mut paths =
            roots.iter().map(|root| check::absolute(root)).collect::<Result<Vec<_>>>()?.into_iter();
        let cwd = paths.next().unwrap_or_default().to_owned();
        let directories: Vec<String> = paths.map(str::to_owned).collect();
        // ROOT-08
        if !directories.is_empty() && agent.session_capabilities.additional_directories.is_none() {
            return Err(Error::Unsupported("additional directories"));
        }
        check_servers(&self.mcp_servers, agent)?;
        #[cfg(feature = "unstable")]
        super::unstable::check_options(&self, agent)?;
        // ROOT-11: none is absent.
        let directories = (!directories.is_empty()).then_some(directories);
        Ok(CheckedOptions { cwd, directories, roots: roots.into(), options: self })
    }
}

// MCP-03: a server is passed only if the agent can reach it.
fn check_servers(servers: &[McpServer], agent: &AgentCapabilities) -> Result<()> {
    let can = &agent.mcp_capabilities;
    for server in servers {
        match server {
            McpServer::Http(_) if !can.http => return Err(Error::Unsupported("MCP servers over http")),
            McpServer::Sse(_) if !can.sse => return Err(Error::Unsupported("MCP servers over sse")),
            _ => {}
        }
    }
    Ok(())
}

/// A session before it is opened: options first, then `.await`.
///
/// Made by [`AgentHandle::new_session`], [`SessionLoader::load`](super::SessionLoader::load),
/// [`SessionResumer::resume`](super::SessionResumer::resume) and `SessionForker::fork`. A loaded
/// session comes as a [`SessionReplay`], the others as a [`Session`]. Options are the same for all,
/// so a generic function can set them:
///
/// ```
/// use attache::client::{Client, SessionBuilder};
/// use attache::model::McpServerStdio;
///
/// fn with_search<K>(session: SessionBuilder<K>) -> SessionBuilder<K> {
///     session.mcp_server(McpServerStdio::new("search", "/usr/bin/search-mcp", vec![], vec![]))
/// }
///
/// # async fn run(link: attache::Link) -> attache::Result<()> {
/// let agent = Client::new().connect(link).await?;
/// let session = with_search(agent.new_session("/work")).await?;
/// if let Some(resumer) = agent.resumer() {
///     let older = with_search(resumer.resume("s-1", "/work")).await?;
/// #   drop(older);
/// }
/// # drop(session); Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a session is opened when this is awaited"]
pub struct SessionBuilder<K> {
    pub(super) agent: AgentHandle,
    pub(super) kind: K,
    pub(super) options: SessionOptions,
}

/// Kind of a [`SessionBuilder`] that opens a new session.
///
/// Example: [`SessionBuilder`].
#[derive(Debug, Clone)]
pub struct New(pub(super) ());

/// Kind of a [`SessionBuilder`] that loads a stored session with its history.
///
/// Example: [`AgentHandle`].
#[derive(Debug, Clone)]
pub struct Load(pub(super) SessionId);

/// Kind of a [`SessionBuilder`] that resumes a stored session without its history.
///
/// Example: [`SessionBuilder`].
#[derive(Debug, Clone)]
pub struct Resume(pub(super) SessionId);

/// Kind of a [`SessionBuilder`] that opens a stored session with as much of its history as
/// [`Replay`] says.
///
/// Example: [`Replay`].
#[derive(Debug, Clone)]
pub struct Reopen(pub(super) SessionId, pub(super) Replay);

/// The history that comes with a stored session; see [`AgentHandle::reopen`].
///
/// ```
/// use attache::client::{AgentHandle, Replay, Session};
///
/// async fn reopen(agent: &AgentHandle, id: &str) -> attache::Result<Session> {
///     let mut replay = agent.reopen(id, "/work", Replay::Start).await?;
///     while let Some(event) = replay.next().await? {
///         println!("{event:?}");
///     }
///     replay.finish().await
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// None.
    None,
    /// All of it.
    Start,
    /// What follows a point that the agent has named, such as `_meta.attache.at` of a hub's
    /// [`SessionInfo`](attache_wire::v1::SessionInfo). Few agents can: those that announce
    /// `attache.after` in `_meta` of their capabilities. A point that the agent does not know is an
    /// error.
    After(String),
}

impl<K> SessionBuilder<K> {
    pub(super) fn of(agent: AgentHandle, kind: K, cwd: impl Into<PathBuf>) -> Self {
        SessionBuilder { agent, kind, options: SessionOptions { cwd: cwd.into(), ..Default::default() } }
    }

    /// Adds an MCP server for the agent to use. One that is not a program needs the agent's
    /// capability.
    pub fn mcp_server(mut self, server: impl Into<McpServer>) -> Self {
        self.options.mcp_servers.push(server.into());
        self
    }

    /// Adds MCP servers for the agent to use.
    pub fn mcp_servers(mut self, servers: impl IntoIterator<Item = McpServer>) -> Self {
        self.options.mcp_servers.extend(servers);
        self
    }

    /// Adds directories to work in; the agent must support that. Load and resume take the whole
    /// list again.
    pub fn additional_directories<P: Into<PathBuf>>(
        mut self,
        directories: impl IntoIterator<Item = P>,
    ) -> Self {
        self.options.directories.extend(directories.into_iter().map(Into::into));
        self
    }

    /// Sets or clears the `_meta` of the request, for extensions.
    pub fn meta(mut self, meta: impl Into<Option<Meta>>) -> Self {
        self.options.meta = meta.into();
        self
    }
}

/// Fills in the members that all requests have in common.
macro_rules! with_options {
    ($request:expr, $checked:ident) => {{
        let mut request = $request;
        request.additional_directories = $checked.directories;
        request.meta = $checked.options.meta;
        #[cfg(feature = "unstable")]
        (request.system_prompt = $checked.options.system_prompt);
        request
    }};
}
#[cfg(feature = "unstable")]
pub(super) use with_options;

/// A response that opens a session.
pub(super) trait OpenResponse {
    /// Applies the settings, which are newer than all updates before them. Absent members stay.
    fn apply(self, state: &mut State);
}

macro_rules! open_responses {
    ($($response:ident),+) => {
        $(impl OpenResponse for $response {
            fn apply(self, state: &mut State) {
                if self.modes.is_some() {
                    state.modes = self.modes;
                }
                if let Some(options) = self.config_options {
                    state.config_options = options.into();
                }
                #[cfg(feature = "drafts")]
                if self.models.is_some() {
                    state.models = self.models;
                }
            }
        })+
    };
}

open_responses!(NewSessionResponse, LoadSessionResponse, ResumeSessionResponse);
#[cfg(feature = "unstable")]
use attache_wire::v1::ForkSessionResponse;
#[cfg(feature = "unstable")]
open_responses!(ForkSessionResponse);

impl SessionBuilder<New> {
    async fn open(self) -> Result<Session> {
        let checked = self.options.check(&self.agent)?;
        if self.agent.0.is_v2() {
            let roots = checked.roots.clone();
            let request = requests::new_session(checked)?;
            return open(self.agent, &request, roots, |reply| reply.session_id.clone()).await;
        }
        let request =
            with_options!(NewSessionRequest::new(checked.cwd, checked.options.mcp_servers), checked);
        open(self.agent, &request, checked.roots, |reply| reply.session_id.clone()).await
    }
}

impl SessionBuilder<Load> {
    fn open(self) -> Result<SessionReplay> {
        let Load(id) = self.kind;
        reopen(self.agent, id, self.options, &Replay::Start)
    }
}

impl SessionBuilder<Resume> {
    async fn open(self) -> Result<Session> {
        let Resume(id) = self.kind;
        let checked = self.options.check(&self.agent)?;
        if self.agent.0.is_v2() {
            let roots = checked.roots.clone();
            let request = requests::resume_session(id.clone(), checked, None)?;
            return resume(self.agent, id, roots, &request).await;
        }
        let (roots, request) = (checked.roots.clone(), resume_request(&id, checked));
        resume(self.agent, id, roots, &request).await
    }
}

impl SessionBuilder<Reopen> {
    // SESS-07, SESS-20, V2-26
    fn open(self) -> Result<SessionReplay> {
        let Reopen(id, from) = self.kind;
        let capabilities = self.agent.capabilities();
        let can_follow = || {
            let announced =
                capabilities.meta.as_ref().and_then(|meta| meta.get::<serde_json::Value>("attache"));
            announced.is_some_and(|announced| announced["after"] == true)
        };
        match &from {
            Replay::None | Replay::After(_) if capabilities.session_capabilities.resume.is_none() => {
                return Err(Error::Unsupported("to resume sessions"));
            }
            Replay::Start if !capabilities.load_session => {
                return Err(Error::Unsupported("to load sessions"));
            }
            Replay::After(_) if !can_follow() => {
                return Err(Error::Unsupported("to replay a part of a session"));
            }
            _ => {}
        }
        reopen(self.agent, id, self.options, &from)
    }
}

// SESS-22: the servers are sent although the schema lets them be absent.
fn resume_request(id: &SessionId, checked: CheckedOptions) -> ResumeSessionRequest {
    let request = ResumeSessionRequest::new(id.clone(), checked.cwd);
    with_options!(request.mcp_servers(checked.options.mcp_servers), checked)
}

/// Opens a session whose id is known, with as much of its history as `from` says. The agent is able
/// to.
// SESS-12, V2-26
fn reopen(
    agent: AgentHandle,
    id: SessionId,
    options: SessionOptions,
    from: &Replay,
) -> Result<SessionReplay> {
    let mut checked = options.check(&agent)?;
    let roots = checked.roots.clone();
    if agent.0.is_v2() {
        let request = requests::resume_session(id.clone(), checked, requests::replay_from(from)?)?;
        return replay(agent, id, roots, &request);
    }
    if let Replay::After(cursor) = from {
        checked.options.meta = Some(requests::meta_after(checked.options.meta, cursor)?);
    }
    if *from == Replay::Start {
        let request = LoadSessionRequest::new(id.clone(), checked.cwd, checked.options.mcp_servers);
        let request = with_options!(request, checked);
        return replay(agent, id, roots, &request);
    }
    let request = resume_request(&id, checked);
    replay(agent, id, roots, &request)
}

/// Opens a session whose id is known, without its history.
async fn resume<R: Request>(
    agent: AgentHandle,
    id: SessionId,
    roots: Arc<[PathBuf]>,
    request: &R,
) -> Result<Session>
where
    R::Response: OpenResponse,
{
    let lane = agent.0.lane(id, roots);
    agent.0.register(&lane)?;
    // From here on the lane is unregistered when this value is dropped.
    let session = Session::new(agent, lane.clone());
    let resumed = session
        .agent()
        .0
        .in_order(request, move |answer| answer.map(|reply| lane.state(|state| reply.apply(state))));
    resumed.await??;
    Ok(session)
}

/// Opens a session whose id is known, and reads its history until the answer.
fn replay<R: Request + 'static>(
    agent: AgentHandle,
    id: SessionId,
    roots: Arc<[PathBuf]>,
    request: &R,
) -> Result<SessionReplay>
where
    R::Response: OpenResponse,
{
    let lane = agent.0.lane(id, roots);
    agent.0.register(&lane)?;
    let load = lane.begin_load();
    let target = lane.clone();
    let call = agent.0.peer.call_with(R::METHOD, request, move |answer| {
        // SESS-13, RPC-22: `null` is an answer too.
        let answer = answered::<R>(answer).map(|reply| {
            target.state(|state| reply.apply(state));
            None
        });
        target.end(load, answer);
    });
    Ok(SessionReplay::new(agent, lane, call))
}

/// Opens a session whose id the agent chooses. Messages that arrive for it before the answer are
/// kept for it.
pub(super) async fn open<R: Request>(
    agent: AgentHandle,
    request: &R,
    roots: Arc<[PathBuf]>,
    id: fn(&R::Response) -> SessionId,
) -> Result<Session>
where
    R::Response: OpenResponse,
{
    let opening = agent.0.opening();
    let core = Arc::downgrade(&agent.0);
    let answer = agent.0.in_order(request, move |answer| {
        let reply = answer?;
        let core = core.upgrade().ok_or(Error::Cancelled)?;
        let lane = core.lane(id(&reply), roots);
        lane.state(|state| reply.apply(state));
        core.adopt(&lane);
        drop(opening);
        // A caller that no longer waits drops the session with the answer.
        Ok(Session::new(AgentHandle(core), lane))
    });
    answer.await?
}

/// Opens sessions in a boxed future.
macro_rules! awaited {
    ($($kind:ident),+) => {
        $(impl IntoFuture for SessionBuilder<$kind> {
            type Output = Result<Session>;
            type IntoFuture = BoxFuture<'static, Result<Session>>;
            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.open())
            }
        })+
    };
}

awaited!(New, Resume);
#[cfg(feature = "unstable")]
awaited!(Fork);

/// Sessions with a history are there at once; their history comes later.
macro_rules! replayed {
    ($($kind:ident),+) => {
        $(impl IntoFuture for SessionBuilder<$kind> {
            type Output = Result<SessionReplay>;
            type IntoFuture = std::future::Ready<Result<SessionReplay>>;
            fn into_future(self) -> Self::IntoFuture {
                std::future::ready(self.open())
            }
        })+
    };
}

replayed!(Load, Reopen);
