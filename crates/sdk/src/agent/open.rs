//! Opening and closing sessions: new, load, resume, fork, close.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use attache_conn::Responder;
use attache_rpc::ErrorObject;
use attache_wire::Meta;
use attache_wire::v1::{
    CloseSessionRequest, CloseSessionResponse, ContentBlock, ForkSessionRequest, ForkSessionResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionConfigOption, SessionModeState, SessionModelState,
    SystemPrompt, SystemPromptMode,
};

use super::builder::{Services, SystemPrompts};
use super::client::Client;
use super::core::{Answer, Core};
use super::handle::SessionHandle;
use super::options;
use super::session::{Boxed, NewSession, Opened};
use super::table::{Entry, fresh_id};
use crate::race::{First, race};
use crate::{Error, Result, SessionId};

/// What every way of opening a session asks for.
struct Setup {
    cwd: String,
    additional_directories: Option<Vec<String>>,
    mcp_servers: Vec<McpServer>,
    system_prompt: Option<SystemPrompt>,
    meta: Option<Meta>,
}

impl Setup {
    /// Checks it against what the agent offers; whatever is wrong is refused before anything is made.
    fn check(&self, services: &Services) -> Result<()> {
        absolute("cwd", &self.cwd)?; // ROOT-01
        let roots = self.additional_directories.as_deref().unwrap_or_default();
        if !roots.is_empty() && !services.additional_directories {
            // ROOT-14: refused, never ignored.
            return Err(Error::invalid_params("this agent takes no `additionalDirectories`"));
        }
        for root in roots {
            absolute("additionalDirectories", root)?; // ROOT-10
        }
        for server in &self.mcp_servers {
            // MCP-08
            let (taken, kind) = match server {
                McpServer::Http(_) => (services.mcp.http, "http"),
                McpServer::Sse(_) => (services.mcp.sse, "sse"),
                McpServer::Acp(_) => (services.mcp.acp, "acp"),
                _ => (true, "stdio"),
            };
            if !taken {
                return Err(Error::invalid_params(format!(
                    "this agent takes no MCP servers of type `{kind}`"
                )));
            }
        }
        self.system_prompt.as_ref().map_or(Ok(()), |prompt| check_system_prompt(prompt, services))
    }

    /// What the author's function is asked for.
    fn request(self, session: SessionHandle) -> NewSession {
        NewSession {
            id: session.id().clone(),
            cwd: PathBuf::from(self.cwd),
            additional_directories: self
                .additional_directories
                .into_iter()
                .flatten()
                .map(PathBuf::from)
                .collect(),
            mcp_servers: self.mcp_servers,
            system_prompt: self.system_prompt,
            meta: self.meta,
            client: session.client().clone(),
            session,
        }
    }
}

fn absolute(what: &str, path: &str) -> Result<()> {
    if Path::new(path).is_absolute() {
        return Ok(());
    }
    Err(Error::invalid_params(format!("`{what}` must be an absolute path, not `{path}`")))
}

/// SYSP-02: what is not supported makes no session.
fn check_system_prompt(prompt: &SystemPrompt, services: &Services) -> Result<()> {
    let fits = match (services.system_prompt, &prompt.mode) {
        (Some(_), SystemPromptMode::Append) => true,
        (Some(which), SystemPromptMode::Override) => which == SystemPrompts::AppendOrOverride,
        _ => false,
    };
    if !fits {
        return Err(Error::invalid_params(format!(
            "this agent takes no system prompt of mode `{}`",
            prompt.mode
        )));
    }
    if prompt.content.is_empty() || !prompt.content.iter().all(|block| matches!(block, ContentBlock::Text(_)))
    {
        return Err(Error::invalid_params("a system prompt is made of text blocks, at least one"));
    }
    Ok(())
}

/// The requests that open a session are four types with the same members; a new member is taken over here, for all.
macro_rules! setup {
    ($request:ident, $servers:expr) => {
        Setup {
            cwd: $request.cwd,
            additional_directories: $request.additional_directories,
            mcp_servers: $servers,
            system_prompt: $request.system_prompt,
            meta: $request.meta,
        }
    };
}

/// Their answers, likewise.
macro_rules! with_offers {
    ($response:expr, $shown:ident) => {
        $response.modes($shown.modes).models($shown.models).config_options($shown.options)
    };
}

/// What the answer of an opened session shows.
struct Shown {
    id: SessionId,
    modes: Option<SessionModeState>,
    models: Option<SessionModelState>,
    options: Option<Vec<SessionConfigOption>>,
}

/// One of the ways to open a session.
struct Way {
    /// Whether the agent may give the session an id of its own; else the client knows it already.
    names: bool,
    respond: fn(Responder, Shown),
}

/// A session that is being opened.
struct Opening {
    core: Arc<Core>,
    responder: Responder,
    handle: SessionHandle,
    way: Way,
}

/// The way every session is opened: check, let the author make it, put it into the table, answer.
fn open(
    core: &Arc<Core>,
    responder: Responder,
    setup: Setup,
    handle: SessionHandle,
    make: impl FnOnce(&Services, NewSession) -> Option<Boxed<'static, Result<Opened>>>,
    way: Way,
) {
    if let Err(error) = setup.check(&core.services) {
        return responder.err(error.to_wire());
    }
    let Some(mut making) = make(&core.services, setup.request(handle.clone())) else {
        return responder.err(ErrorObject::internal("this agent cannot open sessions that way"));
    };
    let opening = Opening { core: core.clone(), responder, handle, way };
    match core.begin(&mut making) {
        Some(made) => opening.made(made),
        None => opening.later(making),
    }
}

impl Opening {
    /// The author's function has ended already.
    fn made(self, made: Result<Opened>) {
        let named = made.and_then(|opened| self.name(opened));
        match named {
            // Somebody else has to leave first, and that may take a while.
            Ok((id, opened)) if self.core.sessions.contains(&id) => {
                self.later(Box::pin(std::future::ready(Ok(opened))));
            }
            named => self.finish(named),
        }
    }

    /// The author's function needs its time.
    fn later(self, making: Boxed<'static, Result<Opened>>) {
        let core = self.core.clone();
        core.spawn(self.run(making));
    }

    async fn run(self, mut making: Boxed<'static, Result<Opened>>) {
        let token = self.responder.cancellation();
        let made = async {
            let (id, opened) = self.name(making.as_mut().await?)?;
            // The client opened it once more: the older one is over before the new one is there.
            while let Some(older) = self.core.sessions.remove(&id) {
                self.core.end(older).await;
            }
            Ok((id, opened))
        };
        let made: Result<_> = match race(pin!(made), pin!(token.cancelled())).await {
            First::Left(made) => made,
            First::Right(()) => Err(Error::Cancelled),
        };
        self.finish(made);
    }

    /// Checks what the author made, and finds its id.
    fn name(&self, opened: Opened) -> Result<(SessionId, Opened)> {
        opened.offers.as_deref().map_or(Ok(()), options::check_offers)?;
        let id = opened.id.as_ref().filter(|_| self.way.names).unwrap_or(self.handle.id()).clone();
        Ok((id, opened))
    }

    fn finish(self, made: Result<(SessionId, Opened)>) {
        let Opening { core, responder, handle, way } = self;
        match made {
            Err(error) => {
                handle.failed();
                responder.err(error.to_wire());
            }
            Ok((id, opened)) => opened_as(&core, responder, &handle, &way, id, opened),
        }
    }
}

/// The answer is written after the session can be found and before any update of it that was held back (SESS-31).
fn opened_as(
    core: &Arc<Core>,
    responder: Responder,
    handle: &SessionHandle,
    way: &Way,
    id: SessionId,
    opened: Opened,
) {
    let Opened { session, offers, commands, .. } = opened;
    let shown = match &offers {
        None => Shown { id: id.clone(), modes: None, models: None, options: None },
        Some(offers) => Shown {
            id: id.clone(),
            modes: offers.modes.clone(),
            models: offers.models.clone(),
            options: options::visible(offers, handle.client()),
        },
    };
    let entry = Entry::new(id, session, offers);
    if let Some(older) = core.sessions.insert(entry.clone()) {
        // Somebody else opened it in the same moment; the last one counts.
        drop(core.end(older));
    }
    (way.respond)(responder, shown);
    handle.opened(&entry, commands);
}

pub(super) fn new(core: &Arc<Core>, client: Client, request: NewSessionRequest, responder: Responder) {
    let setup = setup!(request, request.mcp_servers);
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(NewSessionResponse::new(shown.id), shown));
    };
    let handle = SessionHandle::shut(client, fresh_id());
    let make = |services: &Services, request| Some((services.open)(request));
    open(core, responder, setup, handle, make, Way { names: true, respond });
}

pub(super) fn load(core: &Arc<Core>, client: Client, request: LoadSessionRequest, responder: Responder) {
    let setup = setup!(request, request.mcp_servers);
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(LoadSessionResponse::new(), shown));
    };
    // The client knows the id, so the replay needs no gate: it is sent as it comes, before the answer (SESS-12).
    let handle = SessionHandle::replay(client, request.session_id);
    let make = |services: &Services, request| services.load.as_ref().map(|load| load(request));
    open(core, responder, setup, handle, make, Way { names: false, respond });
}

pub(super) fn resume(core: &Arc<Core>, client: Client, request: ResumeSessionRequest, responder: Responder) {
    let setup = setup!(request, request.mcp_servers.unwrap_or_default());
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(ResumeSessionResponse::new(), shown));
    };
    // SESS-23: nothing comes before the answer.
    let handle = SessionHandle::shut(client, request.session_id);
    let make = |services: &Services, request| services.resume.as_ref().map(|resume| resume(request));
    open(core, responder, setup, handle, make, Way { names: false, respond });
}

pub(super) fn fork(core: &Arc<Core>, client: Client, request: ForkSessionRequest, responder: Responder) {
    let setup = setup!(request, request.mcp_servers.unwrap_or_default());
    let respond = |responder: Responder, shown: Shown| {
        responder.ok(&with_offers!(ForkSessionResponse::new(shown.id), shown));
    };
    // FORK-02: a session of its own, with an id of its own.
    let handle = SessionHandle::shut(client, fresh_id());
    let source = request.session_id;
    let make = |services: &Services, request| services.fork.as_ref().map(|fork| fork(source, request));
    open(core, responder, setup, handle, make, Way { names: true, respond });
}

/// SESS-27: cancels what runs, waits for its answer, then frees the session. SESS-30: whatever the client sends behind this
/// request does not find the session any more.
pub(super) fn close(core: &Arc<Core>, request: CloseSessionRequest, responder: Responder) {
    match core.sessions.remove(&request.session_id) {
        None => responder.err(super::unknown_session(&request.session_id).to_wire()),
        Some(entry) => {
            let ended = core.end(entry);
            core.answer_later(responder, async move {
                ended.await;
                Ok(Box::new(|responder: Responder| responder.ok(&CloseSessionResponse::new())) as Answer)
            });
        }
    }
}

pub(super) fn no_method(method: &str) -> Error {
    Error::Refused(ErrorObject::method_not_found(method))
}
