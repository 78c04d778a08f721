//! The client as an agent sees it.

use std::fmt;
use std::sync::{Arc, Mutex};

use attache_conn::Peer;
use attache_wire::v1::{
    ClientCapabilities, ContentChunk, Implementation, ProtocolVersion, SessionId, SessionUpdate,
};
use attache_wire::{Notification, Request};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::options;
use super::record::Recorder;
use super::v2::MessageIds;
use crate::task::lock;
use crate::{Error, Result};

/// Name and capabilities of the client, from `initialize`.
#[derive(Debug, Clone)]
pub(super) struct ClientInfo {
    pub(super) info: Option<Implementation>,
    pub(super) capabilities: ClientCapabilities,
    pub(super) version: ProtocolVersion,
}

/// The client on the other side of the connection. Cheap to clone.
///
/// Example: [`Auth`](super::Auth).
#[derive(Clone)]
pub struct ClientHandle(Arc<Inner>);

struct Inner {
    peer: Peer,
    client: ClientInfo,
    recorder: Option<Recorder>,
}

impl ClientHandle {
    pub(super) fn new(peer: Peer, client: ClientInfo, recorder: Option<Recorder>) -> Self {
        ClientHandle(Arc::new(Inner { peer, client, recorder }))
    }

    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.0.recorder.as_ref()
    }

    /// Calls the record hook for updates that were sent.
    pub(super) fn flush_records(&self) {
        if let Some(recorder) = self.recorder() {
            recorder.flush();
        }
    }

    /// An update of a session, to be encoded.
    pub(super) fn outgoing<'a, U>(
        &'a self,
        session: &'a SessionId,
        ids: &'a SharedIds,
        update: U,
    ) -> Outgoing<'a, U> {
        Outgoing { session, ids: ids.as_deref(), update, recorder: self.recorder() }
    }

    /// The protocol version of the connection.
    pub fn version(&self) -> ProtocolVersion {
        self.0.client.version
    }

    pub(super) fn is_v2(&self) -> bool {
        self.version() == ProtocolVersion::V2
    }

    /// The message ids of a new session, which version 2 needs.
    pub(super) fn message_ids(&self) -> SharedIds {
        self.is_v2().then(Arc::default)
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.0.peer
    }

    /// The client's name and version, if it gave them.
    // INIT-29
    pub fn info(&self) -> Option<&Implementation> {
        self.0.client.info.as_ref()
    }

    /// The capabilities of the client. Absent ones are not supported.
    // INIT-15
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.0.client.capabilities
    }

    /// Sends any typed request, such as an extension method. The caller checks that the client
    /// supports it. Dropping the future cancels the request.
    pub async fn request<R: Request>(&self, request: &R) -> Result<R::Response> {
        let raw = self.peer().call(R::METHOD, request).await?;
        decode::<R>(&raw)
    }

    /// Sends any typed notification; waits while the connection is congested.
    pub async fn notify<N: Notification>(&self, notification: &N) -> Result<()> {
        Ok(self.peer().notify(N::METHOD, notification).await?)
    }

    /// Adapts an update to the capabilities of the client. Fails if the client cannot show it at
    /// all.
    pub(super) fn adapt(&self, update: SessionUpdate) -> Result<SessionUpdate> {
        #[cfg(feature = "unstable")]
        let update = super::unstable::adapt(update, self.capabilities())?;
        let session = self.capabilities().session.as_ref();
        match update {
            SessionUpdate::Notice(notice) if notice.title.trim().is_empty() => {
                Err(Error::Invalid("a notice needs a title".to_owned())) // NOTE-02
            }
            SessionUpdate::Notice(_) if session.is_none_or(|session| session.notices.is_none()) => {
                Err(Error::Unsupported("notices")) // NOTE-01
            }
            // NOTE-06
            SessionUpdate::CompactionUpdate(_) | SessionUpdate::CompactionSummaryChunk(_)
                if session.is_none_or(|session| session.compaction.is_none()) =>
            {
                Err(Error::Unsupported("compaction updates"))
            }
            // CONF-07
            SessionUpdate::ConfigOptionUpdate(mut update) => {
                update.config_options.retain(|option| options::is_visible(option, self));
                Ok(SessionUpdate::ConfigOptionUpdate(update))
            }
            update => Ok(update),
        }
    }
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientHandle").field(&self.0.client).finish()
    }
}

/// Reads the result of a request.
pub(super) fn decode<R: Request>(raw: &serde_json::value::RawValue) -> Result<R::Response> {
    attache_wire::decode(Some(raw))
        .map_err(|error| Error::Decode { method: R::METHOD.to_owned(), reason: error.to_string() })
}

/// The message ids of a session; `None` in version 1.
pub(super) type SharedIds = Option<Arc<Mutex<MessageIds>>>;

/// Params of `session/update`, borrowed.
pub(super) struct Outgoing<'a, U> {
    pub(super) session: &'a SessionId,
    ids: Option<&'a Mutex<MessageIds>>,
    pub(super) update: U,
    pub(super) recorder: Option<&'a Recorder>,
}

/// An update that can be written in both versions and recorded.
pub(super) trait Recordable: Serialize {
    /// The update that is recorded, in the form of version 1.
    fn to_update(&self) -> Option<SessionUpdate>;
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error>;
}

impl Recordable for SessionUpdate {
    fn to_update(&self) -> Option<SessionUpdate> {
        Some(self.clone())
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        super::v2::update(self, ids, serializer)
    }
}

impl<U: Recordable> Recordable for &U {
    fn to_update(&self) -> Option<SessionUpdate> {
        (*self).to_update()
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        (*self).serialize_v2(ids, serializer)
    }
}

impl Recordable for TextChunk<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        let chunk = ContentChunk::new(self.text);
        Some(match self.kind {
            "agent_thought_chunk" => SessionUpdate::AgentThoughtChunk(chunk),
            _ => SessionUpdate::AgentMessageChunk(chunk),
        })
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        super::v2::text(self.kind, self.text, ids, serializer)
    }
}

impl<U: Recordable> Serialize for Outgoing<'_, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("sessionId", self.session)?;
        match self.ids {
            None => map.serialize_entry("update", &self.update)?,
            Some(ids) => map.serialize_entry("update", &InV2(&self.update, ids))?,
        }
        let end = map.end()?;
        if let Some(recorder) = self.recorder
            && let Some(update) = self.update.to_update()
        {
            recorder.push(self.session, update);
        }
        Ok(end)
    }
}

/// An update in the form of version 2.
struct InV2<'a, U>(&'a U, &'a Mutex<MessageIds>);

impl<U: Recordable> Serialize for InV2<'_, U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_v2(&mut lock(self.1), serializer)
    }
}

/// A chunk of text, borrowed.
pub(super) struct TextChunk<'a> {
    pub(super) kind: &'static str,
    pub(super) text: &'a str,
}

impl Serialize for TextChunk<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("sessionUpdate", self.kind)?;
        map.serialize_entry("content", &TextBlock(self.text))?;
        map.end()
    }
}

/// A content block of text, borrowed.
pub(super) struct TextBlock<'a>(pub(super) &'a str);

impl Serialize for TextBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "text")?;
        map.serialize_entry("text", self.0)?;
        map.end()
    }
}
