//! Dispatch of the agent's messages. Dispatch is a plain function: it decodes, finds the session
//! and spawns handlers, but never waits.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use attache_conn::{Closed, Dispatch, IncomingNotification, IncomingRequest};
use attache_rpc::ErrorObject;
use attache_wire::v1::{CompleteElicitationNotification, SessionId, SessionNotification, decode_tolerant};
use attache_wire::{AnyStr, Json, Notification, UpdateParams, v1, v2};
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::connection::{Core, EarlyMessage, Route, Update};
use super::event::Event;
use super::events::ConnectionEvent;
use super::size;
use crate::Result;
use crate::task::catch_handler_panic;

/// The dispatch of a connection. It does not keep the connection alive.
pub(crate) struct Router(pub(crate) Weak<Core>);

impl Dispatch for Router {
    fn request(&mut self, request: IncomingRequest<'_>) {
        match self.0.upgrade() {
            Some(core) => core.receive_request(request),
            None => {
                let error = ErrorObject::method_not_found(request.method());
                request.reject(error);
            }
        }
    }

    fn notification(&mut self, notification: IncomingNotification<'_>) {
        if let Some(core) = self.0.upgrade() {
            core.receive_notification(notification);
        }
    }

    fn noise(&mut self, line: &[u8], reason: &str) {
        if let Some(core) = self.0.upgrade() {
            core.noise(line, reason);
        }
    }

    fn closed(&mut self, closed: &Closed) {
        if let Some(core) = self.0.upgrade() {
            core.closed(closed);
        }
    }
}

impl Core {
    fn receive_notification(self: &Arc<Self>, notification: IncomingNotification<'_>) {
        let bytes = notification.params_text().len();
        match notification.method() {
            SessionNotification::METHOD => self.receive_update(notification),
            CompleteElicitationNotification::METHOD => {
                let Some(done) = self.decode::<CompleteElicitationNotification>(notification) else { return };
                // ELIC-25: unknown and finished ids are ignored.
                match self.take_elicitation(&done.elicitation_id) {
                    None => {}
                    Some(Some(lane)) => lane.push_event(Event::ElicitationComplete(done.elicitation_id)),
                    Some(None) => {
                        self.events.push(ConnectionEvent::ElicitationComplete(done.elicitation_id), bytes)
                    }
                }
            }
            #[cfg(feature = "unstable")]
            attache_wire::v1::AuthStatusUpdateNotification::METHOD => {
                if let Some(status) = self.decode(notification) {
                    self.events.push(ConnectionEvent::AuthStatus(Box::new(status)), bytes);
                }
            }
            method => {
                let (handler, method) = (self.services.notifications.get(method), method.to_owned());
                let Some(params) = notification.open() else { return };
                match handler {
                    Some(handler) => catch_handler_panic(|| handler(Arc::downgrade(self), params)),
                    // EXT-08: unknown notifications are reported and otherwise ignored.
                    None => {
                        let params = params.map(|params| Json::from(params.to_owned()));
                        self.events.push(ConnectionEvent::Notification { method, params }, bytes);
                    }
                }
            }
        }
    }

    // RPC-04: a notification that cannot be decoded is never answered; it is reported on this side.
    fn decode<N: Notification + DeserializeOwned>(
        &self,
        notification: IncomingNotification<'_>,
    ) -> Option<N> {
        notification.decode(serde_json::from_str, |params| {
            let decoded = attache_wire::decode(params);
            decoded.map_err(|error| self.unreadable(N::METHOD, params, error)).ok()
        })
    }

    pub(crate) fn unreadable(&self, method: &str, params: Option<&RawValue>, error: impl fmt::Display) {
        self.noise(params.map_or("", RawValue::get).as_bytes(), &format!("`{method}`: {error}"));
    }

    /// Decodes an update, which borrows the session id from the line, and puts it into the
    /// session's lane.
    fn receive_update(self: &Arc<Self>, notification: IncomingNotification<'_>) {
        const METHOD: &str = SessionNotification::METHOD;
        let bytes = notification.params_text().len();
        if self.is_v2() {
            return self.receive_update_v2(notification);
        }
        let decoded = notification.decode(
            |params| {
                size::check_update(params).map_err(serde::de::Error::custom)?;
                v1::SessionUpdate::read_params(params).map_or_else(|| read_update(params), Ok)
            },
            |params| {
                let raw = params?;
                if let Err(reason) = size::check_update(raw.get()) {
                    self.unreadable(METHOD, params, reason);
                    return None;
                }
                match decode_tolerant::<SessionNotification>(METHOD, params) {
                    Ok(repaired) => Some((Cow::Owned(repaired.session_id.to_string()), repaired.update)),
                    // PROMPT-16: a malformed update is dropped, and the session continues.
                    Err(error) => {
                        self.unreadable(METHOD, params, error);
                        None
                    }
                }
            },
        );
        if let Some((id, update)) = decoded {
            self.route_update(&id, Update::V1(update), bytes);
        }
    }

    /// The same in version 2, which has no older peers to be tolerant of.
    // V2-20
    fn receive_update_v2(self: &Arc<Self>, notification: IncomingNotification<'_>) {
        let bytes = notification.params_text().len();
        let decoded = notification.decode(
            |params| {
                size::check_update(params).map_err(serde::de::Error::custom)?;
                let Some(opened) = UpdateParams::open(params) else { return read_update(params).map(Some) };
                // Most messages of the user are echoes of prompts, whose content is not used.
                if opened.kind() == "user_message"
                    && let Some((message, update)) = opened.find_member("messageId")
                    && self.hold_echo(opened.session_id(), &message, update, bytes)
                {
                    return Ok(None);
                }
                v2::SessionUpdate::read_opened(opened).map_or_else(|| read_update(params), Ok).map(Some)
            },
            |params| {
                let reason = match read_update::<v2::SessionUpdate>(params.map_or("null", RawValue::get)) {
                    Ok((id, update)) => return Some(Some((Cow::Owned(id.into_owned()), update))),
                    Err(error) => error,
                };
                self.unreadable(SessionNotification::METHOD, params, reason);
                None
            },
        );
        if let Some(Some((id, update))) = decoded {
            self.route_update(&id, Update::V2(update), bytes);
        }
    }

    /// Keeps a message of the user undecoded if it is, or may be, the echo of a prompt.
    fn hold_echo(&self, id: &str, message: &str, update: &str, bytes: usize) -> bool {
        self.find(id).is_some_and(|route| !route.child && route.lane.hold_echo(message, update, bytes))
    }

    fn route_update(self: &Arc<Self>, id: &str, update: Update, bytes: usize) {
        match self.find(id) {
            Some(route) => self.deliver(id, route, update, bytes),
            None => {
                let early = EarlyMessage::Update(Box::new(update), bytes);
                if let Err(EarlyMessage::Update(update, bytes)) = self.hold_early(id, early) {
                    self.stray(SessionId::from(id), *update, bytes);
                }
            }
        }
    }

    pub(crate) fn deliver(
        &self,
        id: &(impl AsRef<str> + ?Sized),
        route: Route,
        update: Update,
        bytes: usize,
    ) {
        let child = route.child.then_some(id.as_ref());
        match update {
            Update::V1(update) => {
                #[cfg(feature = "unstable")]
                if let attache_wire::v1::SessionUpdate::SubagentUpdate(child) = &update {
                    self.add_child(&child.session_id, &route.lane);
                }
                route.lane.update(child, update, bytes);
            }
            Update::V2(update) => {
                #[cfg(feature = "unstable")]
                if let v2::SessionUpdate::SubagentUpdate(child) = &update {
                    self.add_child(&child.session_id, &route.lane);
                }
                // RPC-04: an update that cannot be used is reported on this side.
                if let Err(reason) = route.lane.update_v2(child, update, bytes) {
                    self.noise(b"", &format!("`{}`: {reason}", SessionNotification::METHOD));
                }
            }
        }
    }
}

/// Decodes the params of `session/update` with a borrowed session id.
fn read_update<U: DeserializeOwned>(params: &str) -> serde_json::Result<(Cow<'_, str>, U)> {
    struct Members<U>(PhantomData<U>);
    impl<'de, U: DeserializeOwned> Visitor<'de> for Members<U> {
        type Value = (Cow<'de, str>, U);
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object (SessionNotification)")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut id, mut update) = (None, None);
            while let Some(key) = map.next_key_seed(AnyStr)? {
                match &*key {
                    "sessionId" => id = Some(map.next_value_seed(AnyStr)?),
                    "update" => update = Some(map.next_value::<U>()?),
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
    let read = json.deserialize_map(Members(PhantomData))?;
    json.end()?;
    Ok(read)
}
