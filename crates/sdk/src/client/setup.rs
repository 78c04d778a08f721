//! What a session is started with: new, loaded, resumed or forked, the options are the same.

use std::future::IntoFuture;
use std::path::PathBuf;
use std::sync::Arc;

use attache_wire::v1::{
    AgentCapabilities, ForkSessionRequest, ForkSessionResponse, LoadSessionRequest, LoadSessionResponse,
    McpServer, NewSessionRequest, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse, SessionId,
    SystemPrompt, SystemPromptMode,
};
use attache_wire::{Meta, Request};

use super::agent::Agent;
use super::connection::answered;
use super::lane::Lane;
use super::loading::Loading;
use super::serve::BoxFuture;
use super::session::Session;
use super::state::Offers;
use crate::check;
use crate::{Error, Result};

/// The options as the user gave them.
#[derive(Debug, Clone)]
struct Setup {
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    mcp_servers: Vec<McpServer>,
    system_prompt: Option<SystemPrompt>,
    meta: Option<Meta>,
}

/// The options as they can be sent.
struct Checked {
    cwd: String,
    directories: Option<Vec<String>>,
    roots: Arc<[PathBuf]>,
    mcp_servers: Vec<McpServer>,
    system_prompt: Option<SystemPrompt>,
    meta: Option<Meta>,
}

impl Setup {
    fn new(cwd: impl Into<PathBuf>) -> Self {
        Setup {
            cwd: cwd.into(),
            directories: Vec::new(),
            mcp_servers: Vec::new(),
            system_prompt: None,
            meta: None,
        }
    }

    /// Looks at everything before anything is sent.
    fn check(self, agent: &AgentCapabilities) -> Result<Checked> {
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
        let cwd = paths.next().unwrap_or_default();
        let directories: Vec<String> = paths.collect();
        // ROOT-08
        if !directories.is_empty() && agent.session_capabilities.additional_directories.is_none() {
            return Err(Error::Unsupported("additional directories"));
        }
        check_servers(&self.mcp_servers, agent)?;
        if let Some(prompt) = &self.system_prompt {
            check_system_prompt(prompt, agent)?;
        }
        Ok(Checked {
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

/// The options that all of them have.
macro_rules! options {
    ($($name:ident),+) => {
        $(impl $name {
            /// MCP-01: an MCP server that the agent shall use. MCP-03: what is not a program needs the agent's
            /// capability.
            pub fn mcp_server(mut self, server: impl Into<McpServer>) -> Self {
                self.setup.mcp_servers.push(server.into());
                self
            }

            /// MCP servers that the agent shall use.
            pub fn mcp_servers(mut self, servers: impl IntoIterator<Item = McpServer>) -> Self {
                self.setup.mcp_servers.extend(servers);
                self
            }

            /// More directories that the session may work in. The agent must offer that (ROOT-08). Load and resume take the
            /// whole list again (ROOT-13).
            pub fn additional_directories<P: Into<PathBuf>>(mut self, directories: impl IntoIterator<Item = P>) -> Self {
                self.setup.directories.extend(directories.into_iter().map(Into::into));
                self
            }

            /// A system prompt. The agent must offer that (SYSP-01). Load, resume and fork repeat it (SYSP-04).
            pub fn system_prompt(mut self, prompt: SystemPrompt) -> Self {
                self.setup.system_prompt = Some(prompt);
                self
            }

            /// What extensions attach to the request.
            pub fn meta(mut self, meta: Meta) -> Self {
                self.setup.meta = Some(meta);
                self
            }
        })+
    };
}

options!(NewSession, LoadSession, ResumeSession, ForkSession);

/// A new session, before it is started. Await it.
#[derive(Debug, Clone)]
#[must_use = "a session is started when this is awaited"]
pub struct NewSession {
    agent: Agent,
    setup: Setup,
}

impl NewSession {
    pub(crate) fn new(agent: Agent, cwd: impl Into<PathBuf>) -> Self {
        NewSession { agent, setup: Setup::new(cwd) }
    }

    async fn open(self) -> Result<Session> {
        let checked = self.setup.check(self.agent.capabilities())?;
        let mut request = NewSessionRequest::new(checked.cwd, checked.mcp_servers);
        request.additional_directories = checked.directories;
        request.system_prompt = checked.system_prompt;
        request.meta = checked.meta;
        let read = |answer: NewSessionResponse| {
            let offers =
                Offers { modes: answer.modes, models: answer.models, config_options: answer.config_options };
            (answer.session_id, offers)
        };
        open(self.agent, &request, checked.roots, read).await
    }
}

impl IntoFuture for NewSession {
    type Output = Result<Session>;
    type IntoFuture = BoxFuture<'static, Result<Session>>;
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

/// Starts a session whose id the agent makes. What arrives for it before its answer is kept for it.
async fn open<R: Request>(
    agent: Agent,
    request: &R,
    roots: Arc<[PathBuf]>,
    read: impl FnOnce(R::Response) -> (SessionId, Offers) + Send + 'static,
) -> Result<Session> {
    let opening = agent.0.opening();
    let core = Arc::downgrade(&agent.0);
    let answer = agent.0.in_order(request, move |answer| {
        let (id, offers) = answer.map(read)?;
        let core = core.upgrade().ok_or(Error::Cancelled)?;
        let lane = Lane::new(id, roots, core.peer.clone());
        lane.state(|state| state.offer(offers));
        core.adopt(&lane);
        drop(opening);
        // If nobody waits any more, the session goes with the answer and is forgotten.
        Ok(Session::new(Agent(core), lane))
    });
    answer.await?
}

/// A stored session, before it is loaded. Await it.
#[derive(Debug, Clone)]
#[must_use = "a session is loaded when this is awaited"]
pub struct LoadSession {
    agent: Agent,
    id: SessionId,
    setup: Setup,
}

impl LoadSession {
    pub(crate) fn new(agent: Agent, id: SessionId, cwd: impl Into<PathBuf>) -> Self {
        LoadSession { agent, id, setup: Setup::new(cwd) }
    }

    fn open(self) -> Result<Loading> {
        let checked = self.setup.check(self.agent.capabilities())?;
        let mut request = LoadSessionRequest::new(self.id.clone(), checked.cwd, checked.mcp_servers);
        request.additional_directories = checked.directories;
        request.system_prompt = checked.system_prompt;
        request.meta = checked.meta;
        let lane = Lane::new(self.id, checked.roots, self.agent.0.peer.clone());
        self.agent.0.register(&lane)?;
        let load = lane.begin_load();
        let target = lane.clone();
        let call = self.agent.0.peer.call_with(LoadSessionRequest::METHOD, &request, move |answer| {
            // SESS-13, RPC-22: `null` is an answer too.
            let answer = answered::<LoadSessionRequest>(answer).map(|answer: LoadSessionResponse| {
                let offers = Offers {
                    modes: answer.modes,
                    models: answer.models,
                    config_options: answer.config_options,
                };
                target.state(|state| state.offer(offers));
                None
            });
            target.end(load, answer);
        });
        Ok(Loading::new(self.agent, lane, call))
    }
}

impl IntoFuture for LoadSession {
    type Output = Result<Loading>;
    type IntoFuture = std::future::Ready<Result<Loading>>;
    fn into_future(self) -> Self::IntoFuture {
        std::future::ready(self.open())
    }
}

/// A stored session, before it is resumed. Await it.
#[derive(Debug, Clone)]
#[must_use = "a session is resumed when this is awaited"]
pub struct ResumeSession {
    agent: Agent,
    id: SessionId,
    setup: Setup,
}

impl ResumeSession {
    pub(crate) fn new(agent: Agent, id: SessionId, cwd: impl Into<PathBuf>) -> Self {
        ResumeSession { agent, id, setup: Setup::new(cwd) }
    }

    async fn open(self) -> Result<Session> {
        let checked = self.setup.check(self.agent.capabilities())?;
        // SESS-22: the servers are sent although the schema lets them be absent.
        let mut request =
            ResumeSessionRequest::new(self.id.clone(), checked.cwd).mcp_servers(checked.mcp_servers);
        request.additional_directories = checked.directories;
        request.system_prompt = checked.system_prompt;
        request.meta = checked.meta;
        let lane = Lane::new(self.id, checked.roots, self.agent.0.peer.clone());
        self.agent.0.register(&lane)?;
        // From here on the session is this value's, and is forgotten with it.
        let session = Session::new(self.agent, lane.clone());
        let resumed = session.agent().0.in_order(&request, move |answer: Result<ResumeSessionResponse>| {
            answer.map(|answer| {
                let offers = Offers {
                    modes: answer.modes,
                    models: answer.models,
                    config_options: answer.config_options,
                };
                lane.state(|state| state.offer(offers));
            })
        });
        resumed.await??;
        Ok(session)
    }
}

impl IntoFuture for ResumeSession {
    type Output = Result<Session>;
    type IntoFuture = BoxFuture<'static, Result<Session>>;
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

/// A copy of a session, before it is made. Await it.
#[derive(Debug, Clone)]
#[must_use = "a session is forked when this is awaited"]
pub struct ForkSession {
    agent: Agent,
    id: SessionId,
    setup: Setup,
}

impl ForkSession {
    pub(crate) fn new(agent: Agent, id: SessionId, cwd: impl Into<PathBuf>) -> Self {
        ForkSession { agent, id, setup: Setup::new(cwd) }
    }

    async fn open(self) -> Result<Session> {
        let checked = self.setup.check(self.agent.capabilities())?;
        let mut request = ForkSessionRequest::new(self.id, checked.cwd).mcp_servers(checked.mcp_servers);
        request.additional_directories = checked.directories;
        request.system_prompt = checked.system_prompt;
        request.meta = checked.meta;
        let read = |answer: ForkSessionResponse| {
            let offers =
                Offers { modes: answer.modes, models: answer.models, config_options: answer.config_options };
            (answer.session_id, offers)
        };
        open(self.agent, &request, checked.roots, read).await
    }
}

impl IntoFuture for ForkSession {
    type Output = Result<Session>;
    type IntoFuture = BoxFuture<'static, Result<Session>>;
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}
