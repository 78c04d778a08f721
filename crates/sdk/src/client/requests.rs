//! Requests of the agent: permissions, files, terminals, elicitations and extensions.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use attache_conn::{IncomingRequest, Responder};
use attache_rpc::ErrorObject;
use attache_wire::Request;
use attache_wire::v1::{
    CreateElicitationRequest, CreateTerminalRequest, CreateTerminalResponse, ElicitationMode,
    ElicitationScope, KillTerminalRequest, KillTerminalResponse, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionRequest, SessionId, TerminalId,
    TerminalOutputRequest, ToolCallId, ToolCallStatus, ToolCallUpdate, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use serde::Serialize;

use super::ask::{PendingAnswer, PermissionDetails, cancel_permission};
use super::connection::{Core, EarlyMessage, Route};
use super::elicitation::{cancel_elicitation, mode_not_offered};
use super::event::Event;
use super::events::ConnectionEvent;
use super::lane::Lane;
use super::quirks::needs_empty_missing_files;
use super::serve::{DynTerminal, RequestContext, TerminalTable, run, run_with_slot};
use super::{ElicitationAsk, PermissionAsk, size, v2};
use crate::{Error, Result};

/// A request that belongs to a session.
trait SessionRequest: Request + Send + 'static {
    /// The largest accepted params.
    const MAX_BYTES: usize;
    fn session_id(&self) -> &SessionId;
    // FS-04, TERM-13, ROOT-04: a path that must be absolute.
    fn path(&self) -> Option<&str> {
        None
    }
}

/// A request about a terminal.
trait TerminalRequest: SessionRequest {
    fn terminal_id(&self) -> &TerminalId;
}

macro_rules! session_requests {
    ($($request:ty: $bytes:expr $(, |$this:ident| $path:expr)?;)*) => {
        $(impl SessionRequest for $request {
            const MAX_BYTES: usize = $bytes;
            fn session_id(&self) -> &SessionId {
                &self.session_id
            }
            $(fn path(&self) -> Option<&str> {
                let $this = self;
                $path
            })?
        })*
    };
}

macro_rules! terminal_requests {
    ($($request:ty)*) => {
        session_requests! { $($request: size::NAMES;)* }
        $(impl TerminalRequest for $request {
            fn terminal_id(&self) -> &TerminalId {
                &self.terminal_id
            }
        })*
    };
}

session_requests! {
    RequestPermissionRequest: size::PERMISSION;
    attache_wire::v2::RequestPermissionRequest: size::PERMISSION;
    ReadTextFileRequest: size::NAMES, |this| Some(&this.path);
    // As large as a frame: the text is all that is kept of it.
    WriteTextFileRequest: usize::MAX, |this| Some(&this.path);
    CreateTerminalRequest: size::COMMAND, |this| this.cwd.as_deref();
}

terminal_requests! { TerminalOutputRequest WaitForTerminalExitRequest KillTerminalRequest ReleaseTerminalRequest }

impl Core {
    pub(super) fn receive_request(self: &Arc<Self>, request: IncomingRequest<'_>) {
        // FS-03: a method that was not advertised does not exist.
        // V2-01
        if self.is_v2() && request.has_null_id() {
            return request.reject(ErrorObject::invalid_request("the id of a request is not null"));
        }
        // V2-39: version 2 has no files and terminals of clients.
        if !self.services.serves(request.method()) || (self.is_v2() && is_gone(request.method())) {
            let error = ErrorObject::method_not_found(request.method());
            return request.reject(error);
        }
        let bytes = request.params_len();
        match request.method() {
            RequestPermissionRequest::METHOD if self.is_v2() => {
                type V2 = attache_wire::v2::RequestPermissionRequest;
                self.session_request(request, move |core, route, request: V2, responder| {
                    match v2::requests::permission(request) {
                        Ok((request, details)) => {
                            ask_permission(core, route, request, Some(Box::new(details)), bytes, responder);
                        }
                        Err(reason) => responder.err(ErrorObject::invalid_params(reason)),
                    }
                });
            }
            RequestPermissionRequest::METHOD => {
                self.session_request(request, move |core, route, request, responder| {
                    ask_permission(core, route, request, None, bytes, responder);
                });
            }
            ReadTextFileRequest::METHOD => self.session_request(request, read_file),
            WriteTextFileRequest::METHOD => self.session_request(request, write_file),
            CreateTerminalRequest::METHOD => self.session_request(request, create_terminal),
            TerminalOutputRequest::METHOD => self.session_request(request, terminal_output),
            WaitForTerminalExitRequest::METHOD => {
                self.on_terminal::<WaitForTerminalExitRequest, _, _>(
                    request,
                    TerminalTable::get,
                    |terminal| async move {
                        terminal.wait_for_exit().await.map(WaitForTerminalExitResponse::from)
                    },
                );
            }
            KillTerminalRequest::METHOD => {
                self.on_terminal::<KillTerminalRequest, _, _>(
                    request,
                    TerminalTable::get,
                    |terminal| async move { terminal.kill().await.map(|()| KillTerminalResponse::new()) },
                );
            }
            // TERM-11: the id is invalid from here on, however long the release takes.
            ReleaseTerminalRequest::METHOD => {
                self.on_terminal::<ReleaseTerminalRequest, _, _>(
                    request,
                    TerminalTable::take,
                    |terminal| async move { terminal.release().await.map(|()| ReleaseTerminalResponse::new()) },
                );
            }
            CreateElicitationRequest::METHOD => self.receive_elicitation(request),
            method => match self.services.requests.get(method) {
                Some(handler) => {
                    if let Some((params, responder)) = request.open() {
                        let cx = RequestContext::new(self, None, responder.cancellation());
                        handler(cx, params, responder);
                    }
                }
                // RPC-12, EXT-07
                None => {
                    let error = ErrorObject::method_not_found(method);
                    request.reject(error);
                }
            },
        }
    }

    /// Decodes a request of a session and serves it.
    // RPC-13: params that do not fit are refused before anything happens.
    fn session_request<R: SessionRequest>(
        self: &Arc<Self>,
        request: IncomingRequest<'_>,
        serve: impl FnOnce(&Arc<Core>, Route, R, Responder) + Send + 'static,
    ) {
        let bytes = request.params_len();
        if let Err(reason) = size::check(bytes, R::MAX_BYTES) {
            return request.reject(ErrorObject::invalid_params(reason));
        }
        let Some((request, responder)) = decode::<R>(request) else { return };
        if let Some(path) = request.path().filter(|path| !Path::new(path).is_absolute()) {
            let path: String = path.chars().take(80).collect();
            return responder.err(ErrorObject::invalid_params(format!("the path is not absolute: {path}")));
        }
        let id = request.session_id().clone();
        self.for_session(&id, bytes, responder, move |core, route, responder| {
            serve(core, route, request, responder);
        });
    }

    /// Calls `serve` with the route to a session, perhaps only after the session's id is known.
    fn for_session(
        self: &Arc<Self>,
        id: &SessionId,
        bytes: usize,
        responder: Responder,
        serve: impl FnOnce(&Arc<Core>, Route, Responder) + Send + 'static,
    ) {
        match self.find(id.as_str()) {
            Some(route) => serve(self, route, responder),
            None => {
                let early = EarlyMessage::Request { serve: Box::new(serve), bytes, responder };
                if let Err(EarlyMessage::Request { responder, .. }) = self.hold_early(id.as_str(), early) {
                    responder.err(Error::unknown_session(id.as_str()).to_wire());
                }
            }
        }
    }

    /// Serves a request about a terminal that `find` looks up.
    fn on_terminal<R: TerminalRequest, T, F>(
        self: &Arc<Self>,
        request: IncomingRequest<'_>,
        find: fn(&TerminalTable, &TerminalId) -> Result<Arc<dyn DynTerminal>>,
        work: impl FnOnce(Arc<dyn DynTerminal>) -> F + Send + 'static,
    ) where
        T: Serialize + Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.session_request::<R>(request, move |core, route, request, responder| {
            match find(&route.lane.terminals, request.terminal_id()) {
                Ok(terminal) => {
                    let failing = context(core, route, &responder).failing(R::METHOD);
                    run(failing, responder, work(terminal));
                }
                Err(error) => responder.err(error.to_wire()),
            }
        });
    }

    fn receive_elicitation(self: &Arc<Self>, request: IncomingRequest<'_>) {
        let bytes = request.params_len();
        if let Err(reason) = size::check(bytes, size::ELICITATION) {
            return request.reject(ErrorObject::invalid_params(reason));
        }
        let decoded = match self.is_v2() {
            true => decode::<attache_wire::v2::CreateElicitationRequest>(request)
                .map(|(request, responder)| (v2::requests::elicitation(request), responder)),
            false => decode(request).map(|(request, responder)| (Ok(request), responder)),
        };
        let Some((request, responder)) = decoded else { return };
        let request = match request.and_then(|request| self.check_elicitation(&request).map(|()| request)) {
            Ok(request) => request,
            Err(reason) => return responder.err(ErrorObject::invalid_params(reason)),
        };
        match request.mode.scope() {
            ElicitationScope::Session(scope) => {
                let id = scope.session_id.clone();
                self.for_session(&id.clone(), bytes, responder, move |core, route, responder| {
                    core.ask_elicitation(Some((route, id)), request, bytes, responder);
                });
            }
            _ => self.ask_elicitation(None, request, bytes, responder),
        }
    }

    fn check_elicitation(&self, request: &CreateElicitationRequest) -> Result<(), String> {
        // ELIC-02, ELIC-33: a mode that is unknown or was not advertised is refused.
        let offered = match &request.mode {
            ElicitationMode::Form(_) => self.services.forms,
            ElicitationMode::Url(_) => self.services.urls,
            _ => false,
        };
        if !offered {
            return Err(mode_not_offered(request.mode.as_str()));
        }
        if let ElicitationMode::Url(url) = &request.mode {
            if !is_web_address(&url.url) {
                return Err("only http and https addresses can be opened".to_owned());
            }
            size::check(url.elicitation_id.as_str().len(), size::ELICITATION_ID)?;
        }
        Ok(())
    }

    fn ask_elicitation(
        &self,
        route: Option<(Route, SessionId)>,
        request: CreateElicitationRequest,
        bytes: usize,
        responder: Responder,
    ) {
        if let ElicitationMode::Url(url) = &request.mode {
            self.remember_elicitation(&url.elicitation_id, route.as_ref().map(|(route, _)| &route.lane));
        }
        let slot = PendingAnswer::open(responder, cancel_elicitation);
        let ask = ElicitationAsk::new(slot.clone(), Box::new(request));
        match route {
            Some((route, id)) => {
                route.lane.ask(route.child.then_some(id), &slot, Event::Elicitation(ask), bytes);
            }
            None => self.events.push(ConnectionEvent::Elicitation(ask), bytes),
        }
    }
}

fn is_gone(method: &str) -> bool {
    method.starts_with("fs/") || method.starts_with("terminal/")
}

fn decode<R: Request>(request: IncomingRequest<'_>) -> Option<(R, Responder)> {
    request.decode(serde_json::from_str, |params| {
        attache_wire::decode(params).map_err(|error| ErrorObject::invalid_params(error.to_string()))
    })
}

fn ask_permission(
    core: &Arc<Core>,
    route: Route,
    request: RequestPermissionRequest,
    details: Option<Box<PermissionDetails>>,
    bytes: usize,
    responder: Responder,
) {
    let child = route.child.then(|| request.session_id.clone());
    let cx = context(core, route.clone(), &responder);
    let slot = PendingAnswer::open(responder, cancel_permission);
    let has_call = child.is_some() || details.as_ref().is_none_or(|details| details.has_call);
    let made_up = (!has_call).then(|| request.tool_call.tool_call_id.clone());
    let ask = PermissionAsk::new(slot.clone(), Box::new(request), details);
    let lane = route.lane.clone();
    match &core.services.on_permission {
        None => route.lane.ask(child, &slot, Event::Permission(ask), bytes),
        Some(decide) => {
            route.lane.note_ask(&slot, child.is_none().then(|| ask.tool_call()));
            let decide = decide.clone();
            tokio::spawn(async move { decide(ask, cx).await });
        }
    }
    if let Some(call) = made_up {
        end_with_answer(&lane, call, &slot);
    }
}

/// Ends the tool call that was made up for a question when that is answered, as an agent of version
/// 1 does.
// TOOL-10
fn end_with_answer(lane: &Arc<Lane>, call: ToolCallId, slot: &Arc<PendingAnswer>) {
    let (lane, question) = (Arc::downgrade(lane), Arc::downgrade(slot));
    slot.on_done(move || {
        let (Some(lane), Some(question)) = (lane.upgrade(), question.upgrade()) else { return };
        let status = if question.is_allowed() { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        // In a cancelled turn the call is not announced, so it is not known.
        lane.change_known(ToolCallUpdate::new(call).status(status));
    });
}

fn context(core: &Arc<Core>, route: Route, responder: &Responder) -> RequestContext {
    RequestContext::new(core, Some(route.lane), responder.cancellation())
}

fn read_file(core: &Arc<Core>, route: Route, mut request: ReadTextFileRequest, responder: Responder) {
    let Some(read) = core.services.read.clone() else { return };
    let cx = context(core, route, &responder);
    // FS-14: lines count from 1, and 0 is read as 1.
    request.line = request.line.map(|line| line.max(1));
    let by_agent = || core.initialized().agent_info.as_ref().is_some_and(needs_empty_missing_files);
    let missing_is_empty = core.services.missing_files_are_empty.unwrap_or_else(by_agent);
    run_with_slot(cx.failing(ReadTextFileRequest::METHOD), cx.answer().clone(), responder, async move {
        match read(cx, request).await {
            Err(error) if missing_is_empty && error.is_not_found() => Ok(ReadTextFileResponse::new("")),
            content => content.map(ReadTextFileResponse::new),
        }
    });
}

fn write_file(core: &Arc<Core>, route: Route, request: WriteTextFileRequest, responder: Responder) {
    let Some(write) = &core.services.write else { return };
    let cx = context(core, route, &responder);
    let failing = cx.failing(WriteTextFileRequest::METHOD);
    let writing = write(cx, request);
    run(failing, responder, async move { writing.await.map(|()| WriteTextFileResponse::new()) });
}

fn create_terminal(core: &Arc<Core>, route: Route, request: CreateTerminalRequest, responder: Responder) {
    let Some(create) = &core.services.terminals else { return };
    let lane = route.lane.clone();
    let cx = context(core, route, &responder);
    let failing = cx.failing(CreateTerminalRequest::METHOD);
    let creating = create(cx, request);
    run(failing, responder, async move {
        match lane.terminals.add(creating.await?) {
            Ok(id) => Ok(CreateTerminalResponse::new(id)),
            Err(late) => {
                let _ = late.release().await;
                Err(Error::not_found("the session is over"))
            }
        }
    });
}

fn terminal_output(core: &Arc<Core>, route: Route, request: TerminalOutputRequest, responder: Responder) {
    match route.lane.terminals.get(&request.terminal_id) {
        Ok(terminal) => {
            let cx = context(core, route, &responder);
            let slot = cx.answer().clone();
            run_with_slot(cx.failing(TerminalOutputRequest::METHOD), slot.clone(), responder, async move {
                slot.reserve(terminal.output_bytes()).await;
                terminal.output().await
            });
        }
        Err(error) => responder.err(error.to_wire()),
    }
}

// ELIC-28: an address that a person is asked to open is one of the web; `javascript:`, `file:` and
// the like do something other than show a page.
fn is_web_address(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let known = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    known && !rest.is_empty() && !url.contains(|c: char| c.is_control() || c.is_whitespace())
}
