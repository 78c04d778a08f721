//! How sessions are opened: new, loaded, resumed or forked, with the same options.

use std::future::IntoFuture;
use std::path::PathBuf;
use std::sync::Arc;

use attache_wire::v1::{
    AgentCapabilities, ForkSessionRequest, ForkSessionResponse, LoadSessionRequest, LoadSessionResponse,
    McpServer, NewSessionRequest, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse, SessionId,
    SystemPrompt, SystemPromptMode,
};
use attache_wire::{Meta, Request};

use super::agent::AgentHandle;
use super::connection::answered;
use super::lane::Lane;
use super::replay::SessionReplay;
use super::serve::BoxFuture;
use super::session::Session;
use super::state::ReplySettings;
use crate::check;
use crate::{Error, Result};

/// Options of the caller.
#[derive(Debug, Clone)]
struct SessionOptions {
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    mcp_servers: Vec<McpServer>,
    system_prompt: Option<SystemPrompt>,
    meta: Option<Meta>,
}

/// Checked options, as they are sent.
struct CheckedOptions {
    cwd: String,
    directories: Option<Vec<String>>,
    roots: Arc<[PathBuf]>,
    mcp_servers: Vec<McpServer>,
    system_prompt: Option<SystemPrompt>,
    meta: Option<Meta>,
}

impl SessionOptions {
    fn new(cwd: impl Into<PathBuf>) -> Self {
        SessionOptions {
            cwd: cwd.into(),
            directories: Vec::new(),
            mcp_servers: Vec::new(),
            system_prompt: None,
            meta: None,
        }
    }

    /// Checks the options against the capabilities of the agent.
    fn check(self, agent: &AgentCapabilities) -> Result<CheckedOptions> {
        let mut roots = vec![self.cwd];
        for directory in self.directories {
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
        if let Some(prompt) = &self.system_prompt {
            check_system_prompt(prompt, agent)?;
        }
        Ok(CheckedOptions {
            cwd,
            // ROOT-11: none is absent.
            directories: (!directories.is_empty()).then_some(directories),
            roots: roots.into(),
            mcp_servers: self.mcp_servers,
            system_prompt: self.system_prompt,
            meta: self.meta,
        })
    }
}

/// MCP-03, MCPA-01: a server is passed only if the agent can reach it.
fn check_servers(servers: &[McpServer], agent: &AgentCapabilities) -> Result<()> {
    let can = &agent.mcp_capabilities;
    for (at, server) in servers.iter().enumerate() {
        match server {
            McpServer::Http(_) if !can.http => return Err(Error::Unsupported("MCP servers over http")),
            McpServer::Sse(_) if !can.sse => return Err(Error::Unsupported("MCP servers over sse")),
            McpServer::Acp(_) if !can.acp => {
                return Err(Error::Unsupported("MCP servers through this connection"));
            }
            // MCPA-02: one id, one server.
            McpServer::Acp(server) => {
                let same =
                    |other: &McpServer| matches!(other, McpServer::Acp(o) if o.server_id == server.server_id);
                if servers.iter().skip(at + 1).any(same) {
                    let id = &server.server_id;
                    return Err(Error::Invalid(format!("two MCP servers have the id `{id}`")));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// SYSP-01, SYSP-03
fn check_system_prompt(prompt: &SystemPrompt, agent: &AgentCapabilities) -> Result<()> {
    let Some(can) = &agent.session_capabilities.system_prompt else {
        return Err(Error::Unsupported("system prompts"));
    };
    let overriding = can.mode.as_ref().is_some_and(|mode| mode.overriding.is_some());
    if prompt.mode != SystemPromptMode::Append && !overriding {
        return Err(Error::Unsupported("system prompts that replace its own"));
    }
    check::system_prompt_content(prompt)
}

/// A session before it is opened: options first, then `.await`.
///
/// Made by [`AgentHandle::new_session`], [`SessionLoader::load`](super::SessionLoader::load),
/// [`SessionResumer::resume`](super::SessionResumer::resume) and [`SessionForker::fork`](super::SessionForker::fork). A loaded
/// session comes as a [`SessionReplay`], the others as a [`Session`]. Options are the same for all, so a generic function can set
/// them:
///
/// ```
/// use attache::client::{Client, SessionBuilder};
/// use attache::wire::v1::McpServerStdio;
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
    agent: AgentHandle,
    kind: K,
    options: SessionOptions,
}

/// Kind of a [`SessionBuilder`] that opens a new session.
#[derive(Debug, Clone)]
pub struct New(());

/// Kind of a [`SessionBuilder`] that loads a stored session with its history.
#[derive(Debug, Clone)]
pub struct Load(SessionId);

/// Kind of a [`SessionBuilder`] that resumes a stored session without its history.
#[derive(Debug, Clone)]
pub struct Resume(SessionId);

/// Kind of a [`SessionBuilder`] that copies a session.
#[derive(Debug, Clone)]
pub struct Fork(SessionId);

impl<K> SessionBuilder<K> {
    fn of(agent: AgentHandle, kind: K, cwd: impl Into<PathBuf>) -> Self {
        SessionBuilder { agent, kind, options: SessionOptions::new(cwd) }
    }

    /// Adds an MCP server for the agent to use. One that is not a program needs the agent's capability.
    pub fn mcp_server(mut self, server: impl Into<McpServer>) -> Self {
        self.options.mcp_servers.push(server.into());
        self
    }

    /// Adds MCP servers for the agent to use.
    pub fn mcp_servers(mut self, servers: impl IntoIterator<Item = McpServer>) -> Self {
        self.options.mcp_servers.extend(servers);
        self
    }

    /// Adds directories to work in; the agent must support that. Load and resume take the whole list again.
    pub fn additional_directories<P: Into<PathBuf>>(
        mut self,
        directories: impl IntoIterator<Item = P>,
    ) -> Self {
        self.options.directories.extend(directories.into_iter().map(Into::into));
        self
    }

    /// Sets or clears the system prompt; the agent must support that. Load, resume and fork repeat it.
    pub fn system_prompt(mut self, prompt: impl Into<Option<SystemPrompt>>) -> Self {
        self.options.system_prompt = prompt.into();
        self
    }

    /// Sets or clears the `_meta` of the request, for extensions.
    pub fn meta(mut self, meta: impl Into<Option<Meta>>) -> Self {
        self.options.meta = meta.into();
        self
    }
}

/// Fills in the members that the four requests have in common.
macro_rules! with_options {
    ($request:expr, $checked:ident) => {{
        let mut request = $request;
        request.additional_directories = $checked.directories;
        request.system_prompt = $checked.system_prompt;
        request.meta = $checked.meta;
        request
    }};
}

/// Reads the members that the four responses have in common.
macro_rules! settings_of {
    ($($response:ident),+) => {
        $(impl From<$response> for ReplySettings {
            fn from(reply: $response) -> Self {
                let $response { modes, models, config_options, .. } = reply;
                ReplySettings { modes, models, config_options }
            }
        })+
    };
}

settings_of!(NewSessionResponse, LoadSessionResponse, ResumeSessionResponse, ForkSessionResponse);

impl SessionBuilder<New> {
    pub(crate) fn new(agent: AgentHandle, cwd: impl Into<PathBuf>) -> Self {
        SessionBuilder::of(agent, New(()), cwd)
    }

    async fn open(self) -> Result<Session> {
        let checked = self.options.check(self.agent.capabilities())?;
        let request = with_options!(NewSessionRequest::new(checked.cwd, checked.mcp_servers), checked);
        open(self.agent, &request, checked.roots, |reply| (reply.session_id.clone(), reply.into())).await
    }
}

impl SessionBuilder<Load> {
    pub(crate) fn load(agent: AgentHandle, id: SessionId, cwd: impl Into<PathBuf>) -> Self {
        SessionBuilder::of(agent, Load(id), cwd)
    }

    fn open(self) -> Result<SessionReplay> {
        let Load(id) = self.kind;
        let checked = self.options.check(self.agent.capabilities())?;
        let request =
            with_options!(LoadSessionRequest::new(id.clone(), checked.cwd, checked.mcp_servers), checked);
        let lane = Lane::new(id, checked.roots, self.agent.0.peer.clone());
        self.agent.0.register(&lane)?;
        let load = lane.begin_load();
        let target = lane.clone();
        let call = self.agent.0.peer.call_with(LoadSessionRequest::METHOD, &request, move |answer| {
            // SESS-13, RPC-22: `null` is an answer too.
            let answer = answered::<LoadSessionRequest>(answer).map(|reply| {
                target.state(|state| state.apply_settings(reply.into()));
                None
            });
            target.end(load, answer);
        });
        Ok(SessionReplay::new(self.agent, lane, call))
    }
}

impl SessionBuilder<Resume> {
    pub(crate) fn resume(agent: AgentHandle, id: SessionId, cwd: impl Into<PathBuf>) -> Self {
        SessionBuilder::of(agent, Resume(id), cwd)
    }

    async fn open(self) -> Result<Session> {
        let Resume(id) = self.kind;
        let checked = self.options.check(self.agent.capabilities())?;
        // SESS-22: the servers are sent although the schema lets them be absent.
        let request = ResumeSessionRequest::new(id.clone(), checked.cwd).mcp_servers(checked.mcp_servers);
        let request = with_options!(request, checked);
        let lane = Lane::new(id, checked.roots, self.agent.0.peer.clone());
        self.agent.0.register(&lane)?;
        // From here on the lane is unregistered when this value is dropped.
        let session = Session::new(self.agent, lane.clone());
        let resumed = session.agent().0.in_order(&request, move |answer| {
            answer.map(|reply| lane.state(|state| state.apply_settings(reply.into())))
        });
        resumed.await??;
        Ok(session)
    }
}

impl SessionBuilder<Fork> {
    pub(crate) fn fork(agent: AgentHandle, id: SessionId, cwd: impl Into<PathBuf>) -> Self {
        SessionBuilder::of(agent, Fork(id), cwd)
    }

    async fn open(self) -> Result<Session> {
        let Fork(id) = self.kind;
        let checked = self.options.check(self.agent.capabilities())?;
        let request = ForkSessionRequest::new(id, checked.cwd).mcp_servers(checked.mcp_servers);
        let request = with_options!(request, checked);
        open(self.agent, &request, checked.roots, |reply| (reply.session_id.clone(), reply.into())).await
    }
}

/// Opens a session whose id the agent makes. Messages that arrive for it before the answer are kept for it.
async fn open<R: Request>(
    agent: AgentHandle,
    request: &R,
    roots: Arc<[PathBuf]>,
    read: impl FnOnce(R::Response) -> (SessionId, ReplySettings) + Send + 'static,
) -> Result<Session> {
    let opening = agent.0.opening();
    let core = Arc::downgrade(&agent.0);
    let answer = agent.0.in_order(request, move |answer| {
        let (id, settings) = answer.map(read)?;
        let core = core.upgrade().ok_or(Error::Cancelled)?;
        let lane = Lane::new(id, roots, core.peer.clone());
        lane.state(|state| state.apply_settings(settings));
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

awaited!(New, Resume, Fork);

impl IntoFuture for SessionBuilder<Load> {
    type Output = Result<SessionReplay>;
    type IntoFuture = std::future::Ready<Result<SessionReplay>>;
    fn into_future(self) -> Self::IntoFuture {
        std::future::ready(self.open())
    }
}
