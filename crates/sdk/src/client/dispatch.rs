//! Dispatch: every message of the agent finds its place here. Plain functions; nothing waits, handlers are spawned.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Weak};

use attache_conn::{Closed, Dispatch, Responder};
use attache_rpc::ErrorObject;
use attache_wire::v1::{
    AuthStatusUpdateNotification, CompleteElicitationNotification, CreateElicitationRequest,
    CreateTerminalRequest, CreateTerminalResponse, ElicitationMode, ElicitationScope, KillTerminalRequest,
    KillTerminalResponse, ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest,
    ReleaseTerminalResponse, RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate,
    TerminalOutputRequest, WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse, decode_tolerant,
};
use attache_wire::{Json, Notification, Request};
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::ask::{PendingAnswer, cancel_permission};
use super::connection::{Core, EarlyMessage, Route};
use super::elicitation::cancel_elicitation;
use super::event::Event;
use super::events::ConnectionEvent;
use super::quirks::needs_empty_missing_files;
use super::serve::{RequestContext, run, run_in_turn};
use super::{ElicitationAsk, PermissionAsk, size};
use crate::task::catch_handler_panic;
use crate::{Error, Result};

/// The receiving end of a connection. It does not keep the connection alive.
pub(crate) struct Router(pub(crate) Weak<Core>);

impl Dispatch for Router {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder) {
        match self.0.upgrade() {
            Some(core) => core.receive_request(method, params, responder),
            None => responder.err(ErrorObject::method_not_found(method)),
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        if let Some(core) = self.0.upgrade() {
            core.receive_notification(method, params);
        }
    }

    fn unread(&mut self, method: &str, params: &str) -> bool {
        method == SessionNotification::METHOD
            && self.0.upgrade().is_some_and(|core| core.take_update(params).is_ok())
    }

    fn noise(&mut self, line: &[u8], why: &str) {
        if let Some(core) = self.0.upgrade() {
            core.noise(line, why);
        }
    }

    fn closed(&mut self, why: &Closed) {
        if let Some(core) = self.0.upgrade() {
            core.closed(why);
        }
    }
}

/// The requests that belong to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serve {
    Permission,
    Elicitation,
    Read,
    Write,
    Create,
    Output,
    Wait,
    Kill,
    Release,
}

impl Serve {
    fn by_method(method: &str) -> Option<Self> {
        Some(match method {
            RequestPermissionRequest::METHOD => Serve::Permission,
            ReadTextFileRequest::METHOD => Serve::Read,
            WriteTextFileRequest::METHOD => Serve::Write,
            CreateTerminalRequest::METHOD => Serve::Create,
            TerminalOutputRequest::METHOD => Serve::Output,
            WaitForTerminalExitRequest::METHOD => Serve::Wait,
            KillTerminalRequest::METHOD => Serve::Kill,
            ReleaseTerminalRequest::METHOD => Serve::Release,
            _ => return None,
        })
    }
}

impl Core {
    fn receive_notification(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        let bytes = params.map_or(0, |params| params.get().len());
        match method {
            SessionNotification::METHOD => self.receive_update(params),
            CompleteElicitationNotification::METHOD => {
                if let Some(done) = self.read_or_tell::<CompleteElicitationNotification>(method, params) {
                    // ELIC-25: unknown and finished ids are ignored.
                    match self.take_elicitation(&done.elicitation_id) {
                        None => {}
                        Some(Some(lane)) => lane.push_event(Event::ElicitationComplete(done.elicitation_id)),
                        Some(None) => {
                            self.events.push(ConnectionEvent::ElicitationComplete(done.elicitation_id), bytes)
                        }
                    }
                }
            }
            AuthStatusUpdateNotification::METHOD => {
                if let Some(status) = self.read_or_tell::<AuthStatusUpdateNotification>(method, params) {
                    self.events.push(ConnectionEvent::AuthStatus(Box::new(status)), bytes);
                }
            }
            _ => match self.services.notifications.get(method) {
                Some(handler) => catch_handler_panic(|| handler(Arc::downgrade(self), params)),
                // EXT-08: unknown notifications are ignored, but not in secret.
                None => {
                    let (method, params) =
                        (method.to_owned(), params.map(|params| Json::from(params.to_owned())));
                    self.events.push(ConnectionEvent::Notification { method, params }, bytes);
                }
            },
        }
    }

    /// RPC-04: a notification that cannot be read is never answered; it is reported on this side.
    fn read_or_tell<N: DeserializeOwned>(&self, method: &str, params: Option<&RawValue>) -> Option<N> {
        match attache_wire::decode(params) {
            Ok(notification) => Some(notification),
            Err(error) => {
                self.unreadable(method, params, &error);
                None
            }
        }
    }

    pub(crate) fn unreadable(&self, method: &str, params: Option<&RawValue>, error: &serde_json::Error) {
        self.noise(params.map_or("", RawValue::get).as_bytes(), &format!("`{method}`: {error}"));
    }

    /// An update that is written in an unusual way, or not a good one.
    fn receive_update(self: &Arc<Self>, params: Option<&RawValue>) {
        let Some(raw) = params else { return };
        let Err(error) = self.take_update(raw.get()) else { return };
        if size::check_update(raw.get()).is_err() {
            return self.unreadable(SessionNotification::METHOD, params, &error);
        }
        match decode_tolerant::<SessionNotification>(SessionNotification::METHOD, params) {
            Ok(repaired) => self.route_update(repaired.session_id.as_str(), repaired.update, raw.get().len()),
            // PROMPT-16: a malformed update is dropped and the session lives on.
            Err(_) => self.unreadable(SessionNotification::METHOD, params, &error),
        }
    }

    /// The hot path: decoded once, from the borrowed text, and put into the session's lane. An error if the text is not
    /// an update, and JSON to its end.
    fn take_update(self: &Arc<Self>, params: &str) -> serde_json::Result<()> {
        size::check_update(params).map_err(serde::de::Error::custom)?;
        let (id, update) = read_update(params)?;
        self.route_update(&id, update, params.len());
        Ok(())
    }

    fn route_update(self: &Arc<Self>, id: &str, update: SessionUpdate, bytes: usize) {
        match self.find(id) {
            Some(route) => self.deliver(id, route, update, bytes),
            None => {
                let early = EarlyMessage::Update(Box::new(update), bytes);
                if let Err(EarlyMessage::Update(update, bytes)) = self.hold_early(id, early) {
                    self.stray(SessionId::from(id), update, bytes);
                }
            }
        }
    }

    pub(crate) fn deliver(
        &self,
        id: &(impl AsRef<str> + ?Sized),
        route: Route,
        update: SessionUpdate,
        bytes: usize,
    ) {
        if let SessionUpdate::SubagentUpdate(child) = &update {
            self.add_child(&child.session_id, &route.lane);
        }
        route.lane.update(route.child.then_some(id.as_ref()), update, bytes);
    }

    fn receive_request(self: &Arc<Self>, method: &str, params: Option<&RawValue>, responder: Responder) {
        if let Some(serve) = Serve::by_method(method) {
            return self.receive_for_session(serve, method, params, responder);
        }
        if method == CreateElicitationRequest::METHOD {
            return self.receive_elicitation(params, responder);
        }
        match self.services.requests.get(method) {
            Some(handler) => {
                let cx = RequestContext::new(self, None, responder.cancellation());
                handler(cx, params, responder);
            }
            // RPC-12, EXT-07
            None => responder.err(ErrorObject::method_not_found(method)),
        }
    }

    fn receive_for_session(
        self: &Arc<Self>,
        serve: Serve,
        method: &str,
        params: Option<&RawValue>,
        responder: Responder,
    ) {
        // FS-03: what was not offered is not there, whoever calls it.
        if !self.services.serves(serve) {
            return responder.err(ErrorObject::method_not_found(method));
        }
        let Some(raw) = params else {
            return responder.err(ErrorObject::invalid_params("params are missing"));
        };
        if let Err(why) = size::check_request(serve, raw.get()) {
            return responder.err(ErrorObject::invalid_params(why));
        }
        let id = match read_session_id(raw) {
            Ok(id) => id,
            Err(error) => return responder.err(ErrorObject::invalid_params(error.to_string())),
        };
        match self.find(&id) {
            Some(route) => self.serve(serve, route, raw, responder),
            None => {
                let early = EarlyMessage::Request(serve, raw.to_owned(), responder);
                if let Err(EarlyMessage::Request(_, _, responder)) = self.hold_early(&id, early) {
                    responder.err(Error::unknown_session(&id).to_wire());
                }
            }
        }
    }

    /// Serves a request of a session. RPC-13: params that do not fit are refused before anything happens.
    pub(crate) fn serve(self: &Arc<Self>, serve: Serve, route: Route, raw: &RawValue, responder: Responder) {
        let refused = |error: Error, responder: Responder| responder.err(error.to_wire());
        let context = |responder: &Responder| {
            RequestContext::new(self, Some(route.lane.clone()), responder.cancellation())
        };
        let lane = route.lane.clone();
        match serve {
            Serve::Permission => match read::<RequestPermissionRequest>(raw) {
                Ok(request) => ask_permission(&route, request, raw.get().len(), responder),
                Err(error) => refused(error, responder),
            },
            // It came before the session did, and finds it now.
            Serve::Elicitation => self.receive_elicitation(Some(raw), responder),
            Serve::Read => match read::<ReadTextFileRequest>(raw).and_then(with_path) {
                Ok(request) => self.serve_read(context(&responder), request, responder),
                Err(error) => refused(error, responder),
            },
            Serve::Write => {
                match (read::<WriteTextFileRequest>(raw).and_then(with_path), &self.services.write) {
                    (Ok(request), Some(write)) => {
                        let writing = write(context(&responder), request);
                        run(responder, async move { writing.await.map(|()| WriteTextFileResponse::new()) });
                    }
                    (Err(error), _) => refused(error, responder),
                    (_, None) => responder.err(ErrorObject::method_not_found(WriteTextFileRequest::METHOD)),
                }
            }
            Serve::Create => {
                match (read::<CreateTerminalRequest>(raw).and_then(with_path), &self.services.terminals) {
                    (Ok(request), Some(create)) => {
                        let creating = create(context(&responder), request);
                        run(responder, async move {
                            match lane.terminals.add(creating.await?) {
                                Ok(id) => Ok(CreateTerminalResponse::new(id)),
                                Err(late) => {
                                    let _ = late.release().await;
                                    Err(Error::not_found("the session is over"))
                                }
                            }
                        });
                    }
                    (Err(error), _) => refused(error, responder),
                    (_, None) => responder.err(ErrorObject::method_not_found(CreateTerminalRequest::METHOD)),
                }
            }
            Serve::Output => {
                match read::<TerminalOutputRequest>(raw).and_then(|r| lane.terminals.get(&r.terminal_id)) {
                    Ok(terminal) => {
                        let answer = Arc::new(self.peer.answer_slot());
                        run_in_turn(answer.clone(), responder, async move {
                            answer.reserve(terminal.output_bytes()).await;
                            terminal.output().await
                        });
                    }
                    Err(error) => refused(error, responder),
                }
            }
            Serve::Wait => match read::<WaitForTerminalExitRequest>(raw)
                .and_then(|r| lane.terminals.get(&r.terminal_id))
            {
                Ok(terminal) => run(responder, async move {
                    terminal.wait_for_exit().await.map(WaitForTerminalExitResponse::from)
                }),
                Err(error) => refused(error, responder),
            },
            Serve::Kill => match read::<KillTerminalRequest>(raw)
                .and_then(|r| lane.terminals.get(&r.terminal_id))
            {
                Ok(terminal) => {
                    run(responder, async move { terminal.kill().await.map(|()| KillTerminalResponse::new()) })
                }
                Err(error) => refused(error, responder),
            },
            // TERM-11: the id is invalid from here on, however long the release takes.
            Serve::Release => {
                match read::<ReleaseTerminalRequest>(raw).and_then(|r| lane.terminals.take(&r.terminal_id)) {
                    Ok(terminal) => {
                        run(responder, async move {
                            terminal.release().await.map(|()| ReleaseTerminalResponse::new())
                        });
                    }
                    Err(error) => refused(error, responder),
                }
            }
        }
    }

    fn serve_read(&self, cx: RequestContext, mut request: ReadTextFileRequest, responder: Responder) {
        let Some(read) = &self.services.read else {
            return responder.err(ErrorObject::method_not_found(ReadTextFileRequest::METHOD));
        };
        // FS-14: lines count from 1, and 0 is read as 1.
        request.line = request.line.map(|line| line.max(1));
        let read = read.clone();
        let by_agent = || self.initialized().agent_info.as_ref().is_some_and(needs_empty_missing_files);
        let missing_is_empty = self.services.missing_files_are_empty.unwrap_or_else(by_agent);
        run_in_turn(cx.answer().clone(), responder, async move {
            match read(cx, request).await {
                Err(error) if missing_is_empty && error.is_not_found() => Ok(ReadTextFileResponse::new("")),
                content => content.map(ReadTextFileResponse::new),
            }
        });
    }

    fn receive_elicitation(self: &Arc<Self>, params: Option<&RawValue>, responder: Responder) {
        let services = &self.services;
        if !services.forms && !services.urls {
            return responder.err(ErrorObject::method_not_found(CreateElicitationRequest::METHOD));
        }
        if let Err(why) = size::check(params.map_or("", RawValue::get), size::ELICITATION) {
            return responder.err(ErrorObject::invalid_params(why));
        }
        let request: CreateElicitationRequest = match attache_wire::decode(params) {
            Ok(request) => request,
            Err(error) => return responder.err(ErrorObject::invalid_params(error.to_string())),
        };
        // ELIC-02, ELIC-33: a mode that was not advertised is refused, and so is one that is not known.
        let offered = match &request.mode {
            ElicitationMode::Form(_) => services.forms,
            ElicitationMode::Url(_) => services.urls,
            _ => false,
        };
        if !offered {
            let mode: String = request.mode.as_str().chars().take(40).collect();
            return responder
                .err(ErrorObject::invalid_params(format!("this client does not offer the mode `{mode}`")));
        }
        if let ElicitationMode::Url(asked) = &request.mode {
            if !is_web_address(&asked.url) {
                let why = "only http and https addresses can be opened";
                return responder.err(ErrorObject::invalid_params(why));
            }
            if let Err(why) = size::check(asked.elicitation_id.as_str(), size::ELICITATION_ID) {
                return responder.err(ErrorObject::invalid_params(why));
            }
        }
        let route = match request.mode.scope() {
            ElicitationScope::Session(scope) => match self.find(scope.session_id.as_str()) {
                Some(route) => Some((route, scope.session_id.clone())),
                None => {
                    let id = scope.session_id.as_str();
                    let raw = params.map(RawValue::to_owned).unwrap_or_default();
                    let early = EarlyMessage::Request(Serve::Elicitation, raw, responder);
                    if let Err(EarlyMessage::Request(_, _, responder)) = self.hold_early(id, early) {
                        responder.err(Error::unknown_session(id).to_wire());
                    }
                    return;
                }
            },
            _ => None,
        };
        if let ElicitationMode::Url(url) = &request.mode {
            self.remember_elicitation(&url.elicitation_id, route.as_ref().map(|(route, _)| &route.lane));
        }
        let slot = PendingAnswer::open(responder, cancel_elicitation);
        let ask = ElicitationAsk::new(slot.clone(), Box::new(request));
        let bytes = params.map_or(0, |params| params.get().len());
        match route {
            Some((route, id)) => {
                route.lane.ask(route.child.then_some(id), &slot, Event::Elicitation(ask), bytes)
            }
            None => self.events.push(ConnectionEvent::Elicitation(ask), bytes),
        }
    }
}

/// ELIC-28: an address that a person is asked to open is one of the web; `javascript:`, `file:` and the like would do
/// something else than to show a page.
fn is_web_address(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let known = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    known && !rest.is_empty() && !url.contains(|c: char| c.is_control() || c.is_whitespace())
}

fn ask_permission(route: &Route, request: RequestPermissionRequest, bytes: usize, responder: Responder) {
    let child = route.child.then(|| request.session_id.clone());
    let slot = PendingAnswer::open(responder, cancel_permission);
    let ask = PermissionAsk::new(slot.clone(), Box::new(request));
    route.lane.ask(child, &slot, Event::Permission(ask), bytes);
}

fn read<R: DeserializeOwned>(raw: &RawValue) -> Result<R> {
    attache_wire::decode(Some(raw)).map_err(|error| Error::invalid_params(error.to_string()))
}

/// A request that names a path.
trait HasPath {
    fn path(&self) -> Option<&str>;
}

impl HasPath for ReadTextFileRequest {
    fn path(&self) -> Option<&str> {
        Some(&self.path)
    }
}

impl HasPath for WriteTextFileRequest {
    fn path(&self) -> Option<&str> {
        Some(&self.path)
    }
}

impl HasPath for CreateTerminalRequest {
    fn path(&self) -> Option<&str> {
        self.cwd.as_deref()
    }
}

/// FS-04, TERM-13, ROOT-04: paths are absolute; a relative one is refused rather than guessed at.
fn with_path<R: HasPath>(request: R) -> Result<R> {
    match request.path() {
        Some(path) if !Path::new(path).is_absolute() => {
            let path: String = path.chars().take(80).collect();
            Err(Error::invalid_params(format!("the path is not absolute: {path}")))
        }
        _ => Ok(request),
    }
}

/// The params of `session/update`, the session's id borrowed.
fn read_update(params: &str) -> serde_json::Result<(Cow<'_, str>, SessionUpdate)> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = (Cow<'de, str>, SessionUpdate);
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object (SessionNotification)")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut id, mut update) = (None, None);
            while let Some(key) = map.next_key_seed(Text)? {
                match &*key {
                    "sessionId" => id = Some(map.next_value_seed(Text)?),
                    "update" => update = Some(map.next_value::<SessionUpdate>()?),
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            match (id, update) {
                (Some(id), Some(update)) => Ok((id, update)),
                (None, _) => Err(serde::de::Error::missing_field("sessionId")),
                (_, None) => Err(serde::de::Error::missing_field("update")),
            }
        }
    }
    let mut json = serde_json::Deserializer::from_str(params);
    let read = json.deserialize_map(Members)?;
    json.end()?;
    Ok(read)
}

/// Only the session's id; the rest is read by whoever serves the request.
fn read_session_id(raw: &RawValue) -> serde_json::Result<Cow<'_, str>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Cow<'de, str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with `sessionId`")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut id = None;
            while let Some(key) = map.next_key_seed(Text)? {
                match &*key {
                    "sessionId" => id = Some(map.next_value_seed(Text)?),
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            id.ok_or_else(|| serde::de::Error::missing_field("sessionId"))
        }
    }
    let mut json = serde_json::Deserializer::from_str(raw.get());
    json.deserialize_map(Members)
}

/// A string, borrowed where it can be.
pub(super) struct Text;

impl<'de> serde::de::DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
