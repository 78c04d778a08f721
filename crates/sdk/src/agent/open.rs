//! Opening and closing sessions: new, load, resume, fork, close.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use attache_conn::Responder;
use attache_rpc::ErrorObject;
use attache_wire::Request;
use attache_wire::v1::{
    AvailableCommand, CloseSessionRequest, CloseSessionResponse, ForkSessionRequest, ForkSessionResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SystemPrompt, SystemPromptMode,
};

use super::builder::{Services, Start, SystemPromptSupport};
use super::client::ClientHandle;
use super::core::{Answer, Core, Failing};
use super::handle::SessionHandle;
use super::options;
use super::session::{BoxFuture, ErasedSession, OpenRequest, Settings};
use super::table::SessionEntry;
use crate::check;
use crate::id::unique_id;
use crate::race::{First, race};
use crate::{Error, Result, SessionId};

/// Checks a request against the capabilities of the agent, before a session is created.
fn check(request_of_client: &OpenRequest, services: &Services) -> Result<()> {
    as_params(check::absolute(&request_of_client.cwd))?; // ROOT-01
    if !request_of_client.additional_directories.is_empty() && !services.additional_directories {
        // ROOT-14: refused, never ignored.
        return Err(Error::invalid_params("this agent takes no `additionalDirectories`"));
    }
    for root in &request_of_client.additional_directories {
        as_params(check::absolute(root))?; // ROOT-10
    }
    for server in &request_of_client.mcp_servers {
        // MCP-08
        let (taken, kind) = match server {
            McpServer::Http(_) => (services.mcp.http, "http"),
            McpServer::Sse(_) => (services.mcp.sse, "sse"),
            McpServer::Acp(_) => (services.mcp.acp, "acp"),
            _ => (true, "stdio"),
        };
        if !taken {
            return Err(Error::invalid_params(format!("this agent takes no MCP servers of type `{kind}`")));
        }
    }
    request_of_client.system_prompt.as_ref().map_or(Ok(()), |prompt| check_system_prompt(prompt, services))
}

/// SYSP-02: an unsupported system prompt opens no session.
fn check_system_prompt(prompt: &SystemPrompt, services: &Services) -> Result<()> {
    let fits = match (services.system_prompt, &prompt.mode) {
        (Some(_), SystemPromptMode::Append) => true,
        (Some(which), SystemPromptMode::Override) => which == SystemPromptSupport::AppendOrOverride,
        _ => false,
    };
    if !fits {
        return Err(Error::invalid_params(format!(
            "this agent takes no system prompt of mode `{}`",
            prompt.mode
        )));
    }
    as_params(check::system_prompt_content(prompt))
}

/// Reports an invalid value of the client.
fn as_params<T>(checked: Result<T>) -> Result<T> {
    checked.map_err(|error| Error::invalid_params(error.to_string()))
}

/// Reads the members that the four requests have in common.
macro_rules! open_request {
    ($request:ident, $servers:expr, $handle:ident) => {
        OpenRequest {
            id: $handle.id().clone(),
            cwd: PathBuf::from($request.cwd),
            additional_directories: match $request.additional_directories {
                Some(roots) => roots.into_iter().map(PathBuf::from).collect(),
                None => Vec::new(),
            },
            mcp_servers: $servers,
            system_prompt: $request.system_prompt,
            meta: $request.meta,
            client: $handle.client().clone(),
            session: $handle.clone(),
        }
    };
}

/// Sets the members that the four responses have in common.
macro_rules! with_settings {
    ($response:expr, $settings:expr) => {
        match $settings {
            None => $response,
            Some(settings) => {
                $response.modes(settings.modes).models(settings.models).config_options(settings.options)
            }
        }
    };
}

/// The members of the response.
struct OpenReply {
    id: SessionId,
    settings: Option<Box<Settings>>,
}

/// The differences between new, load, resume and fork.
struct OpenKind {
    /// Whether the agent chooses the id; otherwise the client knows it.
    names: bool,
    method: &'static str,
    respond: fn(Responder, OpenReply),
}

/// A session that is being opened.
struct PendingOpen {
    responder: Responder,
    handle: SessionHandle,
    kind: OpenKind,
}

/// Opens a session: check, call the handler, add it to the table, respond.
fn open(
    core: &Arc<Core>,
    responder: Responder,
    request_of_client: OpenRequest,
    handle: SessionHandle,
    make: impl FnOnce(&Services, OpenRequest, Start) -> Option<BoxFuture<'static, Result<ErasedSession>>>,
    kind: OpenKind,
) {
    if let Err(error) = check(&request_of_client, &core.services) {
        return responder.err(error.to_wire());
    }
    let Some(mut making) = make(&core.services, request_of_client, core.start) else {
        return responder.err(ErrorObject::internal("this agent cannot open sessions that way"));
    };
    let opening = PendingOpen { responder, handle, kind };
    match core.begin(&mut making) {
        Some(made) => {
            drop(making);
            opening.at_once(core, made);
        }
        None => drop(core.spawn(opening.run(core.clone(), making))),
    }
}

impl PendingOpen {
    /// The handler ended without waiting.
    fn at_once(self, core: &Arc<Core>, made: Result<ErasedSession>) {
        let made = match made.and_then(checked) {
            Ok(opened) => opened,
            Err(error) => return self.failed(core, &error),
        };
        let made = OpenedEntry::new(&self.kind, &self.handle, made);
        if core.sessions.add(&made.entry) {
            return self.finish(made);
        }
        // The client opened it again: the older one has to end first, which may take a while.
        drop(core.spawn(self.replace_older(core.clone(), made)));
    }

    async fn run(self, core: Arc<Core>, mut making: BoxFuture<'static, Result<ErasedSession>>) {
        let token = self.responder.cancellation();
        match race(making.as_mut(), pin!(token.cancelled())).await {
            First::Left(Ok(opened)) => match checked(opened) {
                Ok(opened) => {
                    let made = OpenedEntry::new(&self.kind, &self.handle, opened);
                    self.replace_older(core, made).await;
                }
                Err(error) => self.failed(&core, &error),
            },
            First::Left(Err(error)) => self.failed(&core, &error),
            First::Right(()) => self.failed(&core, &Error::Cancelled),
        }
    }

    /// Ends an older session of the same id before the new one is added.
    async fn replace_older(self, core: Arc<Core>, made: OpenedEntry) {
        let token = self.responder.cancellation();
        let leaving = async {
            while let Some(older) = core.sessions.remove(&made.entry.id) {
                core.end(older).await;
            }
        };
        if let First::Right(()) = race(pin!(leaving), pin!(token.cancelled())).await {
            return self.failed(&core, &Error::Cancelled);
        }
        if let Some(older) = core.sessions.replace(&made.entry) {
            // Opened twice at the same time: the last one counts.
            drop(core.end(older));
        }
        self.finish(made);
    }

    /// SESS-31: the response is written after the session is in the table and before its held updates.
    fn finish(self, made: OpenedEntry) {
        let PendingOpen { responder, handle, kind } = self;
        let OpenedEntry { entry, shown, commands } = made;
        (kind.respond)(responder, shown);
        handle.opened(&entry, commands);
    }

    fn failed(self, core: &Core, error: &Error) {
        self.handle.failed();
        self.responder.err(core.errors.respond(self.kind.method, Some(self.handle.id()), error));
    }
}

fn checked(opened: ErasedSession) -> Result<ErasedSession> {
    opened.settings.as_deref().map_or(Ok(()), options::check_settings)?;
    Ok(opened)
}

/// A session that is ready to be added to the table.
struct OpenedEntry {
    entry: Arc<SessionEntry>,
    shown: OpenReply,
    commands: Option<Vec<AvailableCommand>>,
}

impl OpenedEntry {
    fn new(kind: &OpenKind, handle: &SessionHandle, opened: ErasedSession) -> OpenedEntry {
        let ErasedSession { session, id, settings, commands } = opened;
        let id = id.filter(|_| kind.names).unwrap_or_else(|| handle.id().clone());
        let visible = |settings: &Settings| {
            let options = options::visible(settings, handle.client());
            Box::new(Settings { modes: settings.modes.clone(), models: settings.models.clone(), options })
        };
        let shown = OpenReply { id: id.clone(), settings: settings.as_deref().map(visible) };
        OpenedEntry { entry: SessionEntry::new(id, session, settings), shown, commands }
    }
}

pub(super) fn new(core: &Arc<Core>, client: ClientHandle, request: NewSessionRequest, responder: Responder) {
    let respond = |responder: Responder, shown: OpenReply| {
        responder.ok(&with_settings!(NewSessionResponse::new(shown.id), shown.settings));
    };
    let handle = SessionHandle::shut(client, unique_id("sess"));
    let request_of_client = open_request!(request, request.mcp_servers, handle);
    let make =
        |services: &Services, request_of_client, start| Some((services.open)(request_of_client, start));
    open(
        core,
        responder,
        request_of_client,
        handle,
        make,
        OpenKind { names: true, method: NewSessionRequest::METHOD, respond },
    );
}

pub(super) fn load(
    core: &Arc<Core>,
    client: ClientHandle,
    request: LoadSessionRequest,
    responder: Responder,
) {
    let respond = |responder: Responder, shown: OpenReply| {
        responder.ok(&with_settings!(LoadSessionResponse::new(), shown.settings));
    };
    // SESS-12: the client knows the id, so the replay is sent at once, before the response.
    let handle = SessionHandle::replay(client, request.session_id);
    let request_of_client = open_request!(request, request.mcp_servers, handle);
    let make = |services: &Services, request_of_client, start| {
        services.load.as_ref().map(|load| load(request_of_client, start))
    };
    open(
        core,
        responder,
        request_of_client,
        handle,
        make,
        OpenKind { names: false, method: LoadSessionRequest::METHOD, respond },
    );
}

pub(super) fn resume(
    core: &Arc<Core>,
    client: ClientHandle,
    request: ResumeSessionRequest,
    responder: Responder,
) {
    let respond = |responder: Responder, shown: OpenReply| {
        responder.ok(&with_settings!(ResumeSessionResponse::new(), shown.settings));
    };
    // SESS-23: no update precedes the response.
    let handle = SessionHandle::shut(client, request.session_id);
    let request_of_client = open_request!(request, request.mcp_servers.unwrap_or_default(), handle);
    let make = |services: &Services, request_of_client, start| {
        services.resume.as_ref().map(|resume| resume(request_of_client, start))
    };
    open(
        core,
        responder,
        request_of_client,
        handle,
        make,
        OpenKind { names: false, method: ResumeSessionRequest::METHOD, respond },
    );
}

pub(super) fn fork(
    core: &Arc<Core>,
    client: ClientHandle,
    request: ForkSessionRequest,
    responder: Responder,
) {
    let respond = |responder: Responder, shown: OpenReply| {
        responder.ok(&with_settings!(ForkSessionResponse::new(shown.id), shown.settings));
    };
    // FORK-02: a session of its own, with an id of its own.
    let handle = SessionHandle::shut(client, unique_id("sess"));
    let request_of_client = open_request!(request, request.mcp_servers.unwrap_or_default(), handle);
    let source = request.session_id;
    let make = |services: &Services, request_of_client, _| {
        services.fork.as_ref().map(|fork| fork(source, request_of_client))
    };
    open(
        core,
        responder,
        request_of_client,
        handle,
        make,
        OpenKind { names: true, method: ForkSessionRequest::METHOD, respond },
    );
}

/// SESS-27: cancels the turn, waits for its response, then drops the session. SESS-30: later requests do not find the session.
pub(super) fn close(core: &Arc<Core>, request: CloseSessionRequest, responder: Responder) {
    match core.sessions.remove(&request.session_id) {
        None => responder.err(Error::unknown_session(request.session_id.as_str()).to_wire()),
        Some(entry) => {
            let ended = core.end(entry);
            let session = Some(request.session_id);
            let failing = Failing { method: CloseSessionRequest::METHOD, session };
            core.answer_later(failing, responder, async move {
                ended.await;
                Ok(Box::new(|responder: Responder| responder.ok(&CloseSessionResponse::new())) as Answer)
            });
        }
    }
}

pub(super) fn method_not_found(method: &str) -> Error {
    Error::Refused(ErrorObject::method_not_found(method))
}
