//! Opening and closing sessions: new, load, resume, fork, close.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_conn::Responder;
use attache_wire::Meta;
use attache_wire::v1::{
    CloseSessionRequest, CloseSessionResponse, ContentBlock, ForkSessionRequest, ForkSessionResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionConfigOption, SessionModeState, SessionModelState,
    SystemPrompt, SystemPromptMode,
};
use serde::Serialize;

use super::builder::{Services, SystemPrompts};
use super::core::Core;
use super::handle::SessionHandle;
use super::options;
use super::session::{Boxed, NewSession, Opened};
use super::table::{Entry, Gate, fresh_id};
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

    fn request(self, core: &Core, id: SessionId, gate: Arc<Gate>) -> Result<NewSession> {
        self.check(&core.services)?;
        let client = core.client().ok_or_else(|| Error::internal("no client yet"))?;
        Ok(NewSession {
            session: SessionHandle::new(client.clone(), id.clone(), gate),
            id,
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
            client,
        })
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

/// What the answer of an opened session shows.
struct Shown {
    id: SessionId,
    modes: Option<SessionModeState>,
    models: Option<SessionModelState>,
    options: Option<Vec<SessionConfigOption>>,
}

/// The way every session is opened: check, let the author make it, put it into the table, answer.
///
/// `make` refuses what the agent does not offer; it is asked before anything else (SESS-09). The answer is written after
/// the session can be found and before any update of it that was held back (SESS-31).
fn open<R: Serialize + 'static>(
    core: &Arc<Core>,
    responder: Responder,
    setup: Setup,
    (id, gate): (SessionId, Arc<Gate>),
    make: impl FnOnce(&Services, NewSession) -> Result<Boxed<'static, Result<Opened>>> + Send + 'static,
    respond: fn(Shown) -> R,
) {
    let this = core.clone();
    let opening = async move {
        let request = setup.request(&this, id, gate)?;
        let handle = request.session.clone();
        let opened = make(&this.services, request)?.await?;
        Ok((handle, opened))
    };
    let this = core.clone();
    core.answer_later(responder, opening, move |responder, (handle, opened): (SessionHandle, Opened)| {
        let Opened { session, id, offers } = opened;
        let id = id.unwrap_or_else(|| handle.id().clone());
        let shown = Shown {
            id: id.clone(),
            modes: offers.modes.clone(),
            models: offers.models.clone(),
            options: options::visible(&offers, handle.client()),
        };
        let commands = offers.commands.clone();
        let entry = Entry::new(id, session, offers);
        if let Some(replaced) = this.sessions.insert(entry.clone()) {
            // The client opened it once more: the older one is over.
            replaced.cancel();
        }
        responder.ok(&respond(shown));
        handle.opened(&entry, commands);
    });
}

pub(super) fn new(core: &Arc<Core>, request: NewSessionRequest, responder: Responder) {
    let setup = Setup {
        cwd: request.cwd,
        additional_directories: request.additional_directories,
        mcp_servers: request.mcp_servers,
        system_prompt: request.system_prompt,
        meta: request.meta,
    };
    let make = |services: &Services, request| Ok((services.open)(request));
    open(core, responder, setup, (fresh_id(), Gate::shut()), make, |shown| {
        NewSessionResponse::new(shown.id)
            .modes(shown.modes)
            .models(shown.models)
            .config_options(shown.options)
    });
}

pub(super) fn load(core: &Arc<Core>, request: LoadSessionRequest, responder: Responder) {
    let setup = Setup {
        cwd: request.cwd,
        additional_directories: request.additional_directories,
        mcp_servers: request.mcp_servers,
        system_prompt: request.system_prompt,
        meta: request.meta,
    };
    let make = |services: &Services, request| {
        services.load.as_ref().map(|load| load(request)).ok_or_else(|| no_method("session/load"))
    };
    // The client knows the id, so the replay needs no gate: it is sent as it comes, before the answer (SESS-12).
    open(core, responder, setup, (request.session_id, Gate::open()), make, |shown| {
        LoadSessionResponse::new().modes(shown.modes).models(shown.models).config_options(shown.options)
    });
}

pub(super) fn resume(core: &Arc<Core>, request: ResumeSessionRequest, responder: Responder) {
    let setup = Setup {
        cwd: request.cwd,
        additional_directories: request.additional_directories,
        mcp_servers: request.mcp_servers.unwrap_or_default(),
        system_prompt: request.system_prompt,
        meta: request.meta,
    };
    let make = |services: &Services, request| {
        services.resume.as_ref().map(|resume| resume(request)).ok_or_else(|| no_method("session/resume"))
    };
    // SESS-23: nothing comes before the answer.
    open(core, responder, setup, (request.session_id, Gate::shut()), make, |shown| {
        ResumeSessionResponse::new().modes(shown.modes).models(shown.models).config_options(shown.options)
    });
}

pub(super) fn fork(core: &Arc<Core>, request: ForkSessionRequest, responder: Responder) {
    let setup = Setup {
        cwd: request.cwd,
        additional_directories: request.additional_directories,
        mcp_servers: request.mcp_servers.unwrap_or_default(),
        system_prompt: request.system_prompt,
        meta: request.meta,
    };
    let source = request.session_id;
    let make = |services: &Services, request| {
        services.fork.as_ref().map(|fork| fork(source, request)).ok_or_else(|| no_method("session/fork"))
    };
    // FORK-02: a session of its own, with an id of its own.
    open(core, responder, setup, (fresh_id(), Gate::shut()), make, |shown| {
        ForkSessionResponse::new(shown.id)
            .modes(shown.modes)
            .models(shown.models)
            .config_options(shown.options)
    });
}

/// SESS-27: cancels what runs, waits for its answer, then frees the session.
pub(super) async fn close(core: Arc<Core>, request: CloseSessionRequest) -> Result<CloseSessionResponse> {
    let entry = core.session(&request.session_id)?;
    end(&core, &entry).await;
    Ok(CloseSessionResponse::new())
}

/// Takes a session out of the table and ends it. SESS-30: from the first moment on nobody finds it.
pub(super) async fn end(core: &Core, entry: &Entry) {
    core.sessions.remove(entry.id.as_str());
    entry.cancel();
    entry.until_idle().await;
    entry.session.closed().await;
}

pub(super) fn no_method(method: &str) -> Error {
    Error::Refused(attache_rpc::ErrorObject::method_not_found(method))
}
