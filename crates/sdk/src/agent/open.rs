//! Opening and closing sessions: new, load, resume, fork, close.

use std::mem::take;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use attache_conn::{IncomingRequest, Responder};
use attache_rpc::ErrorObject;
use attache_wire::Request;
use attache_wire::v1::{
    AvailableCommand, CloseSessionRequest, CloseSessionResponse, LoadSessionRequest, LoadSessionResponse,
    McpServer, NewSessionRequest, NewSessionResponse, ResumeSessionRequest, ResumeSessionResponse,
};
#[cfg(feature = "unstable")]
use attache_wire::v1::{ForkSessionRequest, ForkSessionResponse};

use super::builder::{Services, Start};
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
fn check(request: &OpenRequest, services: &Services) -> Result<()> {
    as_params(check::absolute(&request.cwd))?; // ROOT-01
    if !request.additional_directories.is_empty() && !services.additional_directories {
        // ROOT-14: refused, never ignored.
        return Err(Error::invalid_params("this agent takes no `additionalDirectories`"));
    }
    for root in &request.additional_directories {
        as_params(check::absolute(root))?; // ROOT-10
    }
    for server in &request.mcp_servers {
        // MCP-08
        match server {
            McpServer::Http(_) if !services.mcp.http => return Err(no_mcp_servers("http")),
            McpServer::Sse(_) if !services.mcp.sse => return Err(no_mcp_servers("sse")),
            _ => {}
        }
    }
    #[cfg(feature = "unstable")]
    super::unstable::check_open(request, services)?;
    Ok(())
}

pub(super) fn no_mcp_servers(kind: &str) -> Error {
    Error::invalid_params(format!("this agent takes no MCP servers of type `{kind}`"))
}

/// Reports an invalid value of the client.
pub(super) fn as_params<T>(checked: Result<T>) -> Result<T> {
    checked.map_err(|error| Error::invalid_params(error.to_string()))
}

pub(super) type Opening = BoxFuture<'static, Result<ErasedSession>>;

/// A request that opens a session.
pub(super) trait Open: Request {
    /// Whether the agent chooses the id; otherwise the client knows it.
    const NAMES_SESSION: bool;
    /// Whether the state of the session is reported before the response.
    const REPORTS_STATE: bool = false;
    /// The handle of the session, before it is open.
    fn handle(&self, client: ClientHandle, services: &Services) -> SessionHandle;
    /// Takes the members that all these requests have in common.
    fn take_request(&mut self, handle: &SessionHandle) -> Result<OpenRequest>;
    /// Calls the handler; `None` if there is none.
    fn open(self, services: &Services, request: OpenRequest, start: Start) -> Option<Opening>;
    fn response(reply: OpenReply) -> Self::Response;
}

macro_rules! open_requests {
    ($(
        $(#[$cfg:meta])?
        $request:ident {
            names_session: $names:expr,
            handle: |$this:ident, $client:ident| $handle:expr,
            open: |$self:ident, $services:ident, $open:ident, $start:ident| $opening:expr,
            response: |$id:ident| $response:expr,
        }
    )+) => {
        $($(#[$cfg])? impl Open for $request {
            const NAMES_SESSION: bool = $names;

            fn handle(&self, $client: ClientHandle, _: &Services) -> SessionHandle {
                let $this = self;
                $handle
            }

            fn take_request(&mut self, handle: &SessionHandle) -> Result<OpenRequest> {
                Ok(OpenRequest {
                    id: handle.id().clone(),
                    cwd: PathBuf::from(take(&mut self.cwd)),
                    additional_directories: match take(&mut self.additional_directories) {
                        Some(roots) => roots.into_iter().map(PathBuf::from).collect(),
                        None => Vec::new(),
                    },
                    // Optional in some of the requests.
                    mcp_servers: Option::from(take(&mut self.mcp_servers)).unwrap_or_default(),
                    #[cfg(feature = "unstable")]
                    system_prompt: take(&mut self.system_prompt),
                    meta: take(&mut self.meta),
                    client: handle.client().clone(),
                    session: handle.clone(),
                })
            }

            fn open($self, $services: &Services, $open: OpenRequest, $start: Start) -> Option<Opening> {
                $opening
            }

            fn response(reply: OpenReply) -> Self::Response {
                let OpenReply { id: $id, settings, .. } = reply;
                let response = $response;
                let Some(settings) = settings else { return response };
                #[cfg(feature = "drafts")]
                let response = response.models(settings.models);
                response.modes(settings.modes).config_options(settings.options)
            }
        })+
    };
}

open_requests! {
    NewSessionRequest {
        names_session: true,
        handle: |_this, client| SessionHandle::shut(client, unique_id("sess")),
        open: |self, services, request, start| Some((services.open)(request, start)),
        response: |id| NewSessionResponse::new(id),
    }
    LoadSessionRequest {
        names_session: false,
        // SESS-12: the client knows the id, so the replay is sent at once, before the response.
        handle: |this, client| SessionHandle::replay(client, this.session_id.clone()),
        open: |self, services, request, start| services.load.as_ref().map(|load| load(request, start)),
        response: |_id| LoadSessionResponse::new(),
    }
    ResumeSessionRequest {
        names_session: false,
        // SESS-23: no update precedes the response.
        handle: |this, client| SessionHandle::shut(client, this.session_id.clone()),
        open: |self, services, request, start| services.resume.as_ref().map(|resume| resume(request, start)),
        response: |_id| ResumeSessionResponse::new(),
    }
    #[cfg(feature = "unstable")]
    ForkSessionRequest {
        names_session: true,
        // FORK-02: a session of its own, with an id of its own.
        handle: |_this, client| SessionHandle::shut(client, unique_id("sess")),
        open: |self, services, request, _start| {
            services.unstable.fork.as_ref().map(|fork| fork(self.session_id, request))
        },
        response: |id| ForkSessionResponse::new(id),
    }
}

/// The members of the response.
pub(super) struct OpenReply {
    pub(super) id: SessionId,
    pub(super) settings: Option<Box<Settings>>,
    /// In version 1 an update after the response.
    pub(super) commands: Option<Vec<AvailableCommand>>,
}

/// A session that is being opened.
struct PendingOpen {
    responder: Responder,
    handle: SessionHandle,
    method: &'static str,
    names_session: bool,
    reports_state: bool,
    respond: fn(Responder, OpenReply),
}

/// Opens a session: check, call the handler, add it to the table, respond.
pub(super) fn serve<R: Open>(core: &Arc<Core>, client: ClientHandle, request: IncomingRequest<'_>) {
    let Some((mut request, responder)) = super::read::<R>(request, client.is_v2()) else { return };
    let handle = request.handle(client, &core.services);
    let open = match request.take_request(&handle) {
        Ok(open) => open,
        Err(error) => return responder.err(error.to_wire()),
    };
    if let Err(error) = check(&open, &core.services) {
        return responder.err(error.to_wire());
    }
    let Some(opening) = request.open(&core.services, open, core.start) else {
        return responder.err(ErrorObject::invalid_params("this agent cannot open sessions that way"));
    };
    let respond = |responder: Responder, reply: OpenReply| responder.ok(&R::response(reply));
    let (names_session, reports_state) = (R::NAMES_SESSION, R::REPORTS_STATE);
    PendingOpen { responder, handle, method: R::METHOD, names_session, reports_state, respond }
        .start(core, opening);
}

impl PendingOpen {
    fn start(self, core: &Arc<Core>, mut opening: Opening) {
        match core.begin(&mut opening) {
            Some(opened) => {
                drop(opening);
                self.finish_at_once(core, opened);
            }
            None => drop(core.spawn(self.run(core.clone(), opening))),
        }
    }

    /// Finishes after a handler that returned without waiting.
    fn finish_at_once(self, core: &Arc<Core>, opened: Result<ErasedSession>) {
        let opened = match opened.and_then(|opened| self.entry(opened)) {
            Ok(opened) => opened,
            Err(error) => return self.fail(core, &error),
        };
        if core.sessions.add(&opened.entry) {
            return self.finish(opened);
        }
        // The client opened it again: the older one has to end first, which may take a while.
        drop(core.spawn(self.replace_older(core.clone(), opened)));
    }

    async fn run(self, core: Arc<Core>, mut opening: Opening) {
        let token = self.responder.cancellation();
        let opened = match race(opening.as_mut(), pin!(token.cancelled())).await {
            First::Left(opened) => opened.and_then(|opened| self.entry(opened)),
            First::Right(()) => Err(Error::Cancelled),
        };
        match opened {
            Ok(opened) => self.replace_older(core, opened).await,
            Err(error) => self.fail(&core, &error),
        }
    }

    /// Checks the settings of an opened session and prepares its entry.
    fn entry(&self, opened: ErasedSession) -> Result<OpenedEntry> {
        let ErasedSession { session, id, settings, commands } = opened;
        settings.as_deref().map_or(Ok(()), options::check_settings)?;
        let id = id.filter(|_| self.names_session).unwrap_or_else(|| self.handle.id().clone());
        let visible = settings
            .as_deref()
            .map(|settings| Box::new(options::visible_settings(settings, self.handle.client())));
        let (commands, reply_commands) =
            if self.handle.client().is_v2() { (None, commands) } else { (commands, None) };
        let reply = OpenReply { id: id.clone(), settings: visible, commands: reply_commands };
        let entry = SessionEntry::new(id, session, settings, self.handle.ids().clone());
        Ok(OpenedEntry { entry, reply, commands })
    }

    /// Ends an older session of the same id before the new one is added.
    async fn replace_older(self, core: Arc<Core>, opened: OpenedEntry) {
        let token = self.responder.cancellation();
        let leaving = async {
            while let Some(older) = core.sessions.remove(&opened.entry.id) {
                core.end(older).await;
            }
        };
        if let First::Right(()) = race(pin!(leaving), pin!(token.cancelled())).await {
            return self.fail(&core, &Error::Cancelled);
        }
        if let Some(older) = core.sessions.replace(&opened.entry) {
            // Opened twice at the same time: the last one counts.
            drop(core.end(older));
        }
        self.finish(opened);
    }

    // SESS-31: the response is written after the session is in the table and before its held
    // updates.
    fn finish(self, opened: OpenedEntry) {
        let OpenedEntry { entry, reply, commands } = opened;
        // V2-27
        if self.reports_state {
            entry.shared().repeat_state(self.handle.client(), false);
        }
        (self.respond)(self.responder, reply);
        self.handle.opened(&entry, commands);
    }

    fn fail(self, core: &Core, error: &Error) {
        self.handle.failed();
        self.responder.err(core.errors.respond(self.method, Some(self.handle.id()), error));
    }
}

/// A session that is ready to be added to the table.
struct OpenedEntry {
    entry: Arc<SessionEntry>,
    reply: OpenReply,
    commands: Option<Vec<AvailableCommand>>,
}

// SESS-27: cancels the turn, waits for its response, then drops the session. SESS-30: later
// requests do not find the session. V2-28: the same in version 2. V2-29: there an unknown session
// counts as closed.
pub(super) fn close(core: &Arc<Core>, client: ClientHandle, request: IncomingRequest<'_>) {
    let read = super::read::<CloseSessionRequest>(request, client.is_v2());
    let Some((CloseSessionRequest { session_id, .. }, responder)) = read else { return };
    let ended = core.sessions.remove(&session_id).map(|entry| core.end(entry));
    if ended.is_none() && !client.is_v2() {
        return responder.err(Error::unknown_session(session_id.as_str()).to_wire());
    }
    let failing = Failing { method: CloseSessionRequest::METHOD, session: Some(session_id) };
    core.answer_later(failing, responder, async move {
        if let Some(ended) = ended {
            ended.await;
        }
        Ok(Box::new(|responder: Responder| responder.ok(&CloseSessionResponse::new())) as Answer)
    });
}

pub(super) fn method_not_found(method: &str) -> Error {
    Error::Refused(ErrorObject::method_not_found(method))
}
