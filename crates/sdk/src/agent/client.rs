//! The client as an agent sees it.

use std::fmt;
use std::sync::Arc;

use attache_conn::{CancelToken, Peer};
use attache_wire::v1::{ClientCapabilities, Implementation, SessionId, SessionUpdate};
use attache_wire::{Notification, Request};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::race::{First, race};
use crate::{Error, Result};

/// What the client said about itself in `initialize`.
#[derive(Debug, Clone, Default)]
pub(super) struct Hello {
    pub(super) info: Option<Implementation>,
    pub(super) capabilities: ClientCapabilities,
}

/// The client on the other side of the connection. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pub(super) peer: Peer,
    pub(super) hello: Arc<Hello>,
}

impl Client {
    /// The client's name and version, if it gave them (INIT-29).
    pub fn info(&self) -> Option<&Implementation> {
        self.hello.info.as_ref()
    }

    /// What the client can do. INIT-15: what is absent is not supported.
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.hello.capabilities
    }

    /// Sends any request, typed: extensions, and what this SDK has no word for. It is the caller's duty to have checked
    /// that the client offers it.
    pub async fn request<R: Request>(&self, request: &R) -> Result<R::Response> {
        let raw = self.peer.call(R::METHOD, request).await?;
        decode::<R>(&raw)
    }

    /// Sends any notification, typed; waits while the connection is congested.
    pub async fn notify<N: Notification>(&self, notification: &N) -> Result<()> {
        Ok(self.peer.notify(N::METHOD, notification).await?)
    }

    /// Sends a request and gives up when the token is cancelled; the peer is told so.
    pub(super) async fn request_until<R: Request>(
        &self,
        request: &R,
        token: &CancelToken,
    ) -> Result<R::Response> {
        match race(self.peer.call(R::METHOD, request), token.cancelled()).await {
            First::Left(raw) => decode::<R>(&*raw?),
            First::Right(()) => Err(Error::Cancelled),
        }
    }

    /// Whether the client understands an update, for those that need a capability.
    pub(super) fn takes(&self, update: &SessionUpdate) -> Result<()> {
        let session = self.hello.capabilities.session.as_ref();
        let (fits, what) = match update {
            // NOTE-01
            SessionUpdate::Notice(_) => (session.is_some_and(|s| s.notices.is_some()), "notices"),
            // NOTE-06
            SessionUpdate::CompactionUpdate(_) | SessionUpdate::CompactionSummaryChunk(_) => {
                (session.is_some_and(|s| s.compaction.is_some()), "compaction updates")
            }
            // PLAN-07
            SessionUpdate::PlanUpdate(_) | SessionUpdate::PlanRemoved(_) => {
                (self.hello.capabilities.plan.is_some(), "plan updates")
            }
            // SUBA-01
            SessionUpdate::SubagentUpdate(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_) => {
                (self.hello.capabilities.subagents.is_some(), "subagents")
            }
            _ => (true, ""),
        };
        if fits { Ok(()) } else { Err(Error::Unsupported(what)) }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.hello).finish()
    }
}

fn decode<R: Request>(raw: &serde_json::value::RawValue) -> Result<R::Response> {
    attache_wire::decode(Some(raw))
        .map_err(|error| Error::Decode { method: R::METHOD.to_owned(), reason: error.to_string() })
}

/// `session/update` without owning what it carries.
pub(super) struct Outgoing<'a, U> {
    pub(super) session: &'a SessionId,
    pub(super) update: U,
}

impl<U: Serialize> Serialize for Outgoing<'_, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("sessionId", self.session)?;
        map.serialize_entry("update", &self.update)?;
        map.end()
    }
}

/// A chunk of text, borrowed.
pub(super) struct TextChunk<'a> {
    pub(super) kind: &'static str,
    pub(super) text: &'a str,
}

impl Serialize for TextChunk<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Text<'a>(&'a str);
        impl Serialize for Text<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", self.0)?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("sessionUpdate", self.kind)?;
        map.serialize_entry("content", &Text(self.text))?;
        map.end()
    }
}
