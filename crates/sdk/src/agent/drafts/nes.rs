//! Next-edit suggestions and document events (older drafts).

// NES-19

use std::collections::HashMap;
use std::future::{Future, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use attache_conn::CancelToken;
use attache_wire::Notification;
use attache_wire::v1::{
    AcceptNesNotification, ClientCapabilities, CloseNesRequest, CloseNesResponse,
    DidChangeDocumentNotification, DidCloseDocumentNotification, DidFocusDocumentNotification,
    DidOpenDocumentNotification, DidSaveDocumentNotification, NesCapabilities, NesSuggestion,
    PositionEncodingKind, RejectNesNotification, SessionId, StartNesRequest, StartNesResponse,
    SuggestNesRequest, SuggestNesResponse,
};
use serde_json::value::RawValue;

use crate::agent::client::ClientHandle;
use crate::agent::core::Core;
use crate::agent::open::method_not_found;
use crate::agent::session::BoxFuture;
use crate::id::unique_id;
use crate::race::{First, race};
use crate::task::lock;
use crate::{Error, Result};

/// An event of a document in the editor.
///
/// Example: [`NextEdits`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DocumentEvent {
    /// It was opened.
    Opened(DidOpenDocumentNotification),
    /// Its text changed.
    Changed(DidChangeDocumentNotification),
    /// It was closed.
    Closed(DidCloseDocumentNotification),
    /// It was saved.
    Saved(DidSaveDocumentNotification),
    /// The user focused it.
    Focused(DidFocusDocumentNotification),
}

impl DocumentEvent {
    /// The NES session it belongs to.
    pub fn session_id(&self) -> &SessionId {
        match self {
            DocumentEvent::Opened(event) => &event.session_id,
            DocumentEvent::Changed(event) => &event.session_id,
            DocumentEvent::Closed(event) => &event.session_id,
            DocumentEvent::Saved(event) => &event.session_id,
            DocumentEvent::Focused(event) => &event.session_id,
        }
    }
}

/// A source of next-edit suggestions; installed with
/// [`Agent::next_edits`](crate::agent::Agent::next_edits). Its sessions are no chat sessions.
///
/// ```
/// use attache::agent::{DocumentEvent, NextEdits};
/// use attache::wire::v1::{NesCapabilities, NesEditSuggestion, NesSuggestion, SuggestNesRequest};
///
/// struct Completer;
///
/// impl NextEdits for Completer {
///     fn capabilities(&self) -> NesCapabilities {
///         NesCapabilities::new()
///     }
///
///     async fn suggest(&self, request: SuggestNesRequest) -> attache::Result<Vec<NesSuggestion>> {
///         Ok(vec![NesEditSuggestion::new("1", request.uri, vec![]).into()])
///     }
///
///     fn document(&self, event: DocumentEvent) {
///         if let DocumentEvent::Saved(saved) = event {
///             println!("{} was saved", saved.uri);
///         }
///     }
/// }
/// ```
// NES-05
pub trait NextEdits: Send + Sync + 'static {
    /// The events and the context that it needs.
    // NES-02, NES-03
    fn capabilities(&self) -> NesCapabilities;

    /// The supported position encodings beside UTF-16, the best first.
    // NES-10
    fn encodings(&self) -> &[PositionEncodingKind] {
        &[]
    }

    /// The position encoding of a connection: the first of [`encodings`](Self::encodings) that the
    /// client supports, else UTF-16.
    // NES-10
    fn encoding_for(&self, client: &ClientCapabilities) -> PositionEncodingKind {
        let offered = client.position_encodings.as_deref().unwrap_or_default();
        let common = self.encodings().iter().find(|encoding| offered.contains(encoding));
        common.copied().unwrap_or(PositionEncodingKind::Utf16)
    }

    /// Starts a NES session.
    fn start(
        &self,
        id: &SessionId,
        request: StartNesRequest,
        client: ClientHandle,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (id, request, client);
        ready(Ok(()))
    }

    /// Suggests edits. Kinds that the client does not support are removed; requests for an old
    /// version of a document are answered by the SDK.
    // NES-04, NES-20
    fn suggest(&self, request: SuggestNesRequest) -> impl Future<Output = Result<Vec<NesSuggestion>>> + Send;

    /// Handles an event of a document, in wire order. Must not block.
    fn document(&self, event: DocumentEvent) {
        let _ = event;
    }

    /// Handles an accepted suggestion.
    fn accepted(&self, accepted: AcceptNesNotification) {
        let _ = accepted;
    }

    /// Handles a rejected suggestion.
    fn rejected(&self, rejected: RejectNesNotification) {
        let _ = rejected;
    }

    /// Ends a NES session.
    fn closed(&self, id: &SessionId) {
        let _ = id;
    }
}

pub(in crate::agent) trait DynNextEdits: Send + Sync {
    fn capabilities(&self) -> NesCapabilities;
    fn encoding_for(&self, client: &ClientCapabilities) -> PositionEncodingKind;
    fn start<'a>(
        &'a self,
        id: &'a SessionId,
        request: StartNesRequest,
        client: ClientHandle,
    ) -> BoxFuture<'a, Result<()>>;
    fn suggest(&self, request: SuggestNesRequest) -> BoxFuture<'_, Result<Vec<NesSuggestion>>>;
    fn document(&self, event: DocumentEvent);
    fn accepted(&self, accepted: AcceptNesNotification);
    fn rejected(&self, rejected: RejectNesNotification);
    fn closed(&self, id: &SessionId);
}

impl<N: NextEdits> DynNextEdits for N {
    fn capabilities(&self) -> NesCapabilities {
        NextEdits::capabilities(self)
    }
    fn encoding_for(&self, client: &ClientCapabilities) -> PositionEncodingKind {
        NextEdits::encoding_for(self, client)
    }
    fn start<'a>(
        &'a self,
        id: &'a SessionId,
        request: StartNesRequest,
        client: ClientHandle,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(NextEdits::start(self, id, request, client))
    }
    fn suggest(&self, request: SuggestNesRequest) -> BoxFuture<'_, Result<Vec<NesSuggestion>>> {
        Box::pin(NextEdits::suggest(self, request))
    }
    fn document(&self, event: DocumentEvent) {
        NextEdits::document(self, event);
    }
    fn accepted(&self, accepted: AcceptNesNotification) {
        NextEdits::accepted(self, accepted);
    }
    fn rejected(&self, rejected: RejectNesNotification) {
        NextEdits::rejected(self, rejected);
    }
    fn closed(&self, id: &SessionId) {
        NextEdits::closed(self, id);
    }
}

/// The NES sessions of one connection.
#[derive(Default)]
pub(in crate::agent) struct NesTable(Mutex<HashMap<SessionId, Arc<NesSession>>>);

#[derive(Default)]
struct NesSession {
    /// Cancels running suggestions when the session is closed.
    token: CancelToken,
    /// The newest version of each open document.
    versions: Mutex<HashMap<String, i64>>,
}

impl NesTable {
    pub(super) async fn start(
        &self,
        service: &dyn DynNextEdits,
        request: StartNesRequest,
        client: ClientHandle,
    ) -> Result<StartNesResponse> {
        let id = unique_id("sess");
        service.start(&id, request, client).await?;
        lock(&self.0).insert(id.clone(), Arc::default());
        Ok(StartNesResponse::new(id))
    }

    fn get(&self, id: &SessionId) -> Result<Arc<NesSession>> {
        // NES-16: here an unknown session is an error.
        lock(&self.0).get(id).cloned().ok_or_else(|| Error::unknown_session(id.as_str()))
    }

    // NES-08: running suggestions are cancelled.
    pub(super) fn close(
        &self,
        service: &dyn DynNextEdits,
        request: &CloseNesRequest,
    ) -> Result<CloseNesResponse> {
        let session = lock(&self.0).remove(&request.session_id);
        let session = session.ok_or_else(|| Error::unknown_session(request.session_id.as_str()))?;
        session.token.cancel();
        service.closed(&request.session_id);
        Ok(CloseNesResponse::new())
    }

    /// Notifications about documents and suggestions, in wire order. One that cannot be read is
    /// dropped.
    pub(in crate::agent) fn notification(
        &self,
        service: &dyn DynNextEdits,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let event = match method {
            DidOpenDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Opened),
            DidChangeDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Changed),
            DidCloseDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Closed),
            DidSaveDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Saved),
            DidFocusDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Focused),
            AcceptNesNotification::METHOD => {
                if let Ok(accepted) = attache_wire::decode::<AcceptNesNotification>(params)
                    && self.get(&accepted.session_id).is_ok()
                {
                    service.accepted(accepted);
                }
                return;
            }
            RejectNesNotification::METHOD => {
                if let Ok(rejected) = attache_wire::decode::<RejectNesNotification>(params)
                    && self.get(&rejected.session_id).is_ok()
                {
                    service.rejected(rejected);
                }
                return;
            }
            _ => return,
        };
        if let Ok(event) = event {
            self.document(service, event);
        }
    }

    // NES-16: events of unknown sessions are ignored.
    fn document(&self, service: &dyn DynNextEdits, event: DocumentEvent) {
        let Ok(session) = self.get(event.session_id()) else { return };
        let mut versions = lock(&session.versions);
        match &event {
            DocumentEvent::Opened(opened) => {
                versions.insert(opened.uri.clone(), opened.version);
            }
            DocumentEvent::Changed(changed) => {
                versions.insert(changed.uri.clone(), changed.version);
            }
            DocumentEvent::Closed(closed) => {
                versions.remove(&closed.uri);
            }
            DocumentEvent::Saved(_) | DocumentEvent::Focused(_) => {}
        }
        drop(versions);
        service.document(event);
    }

    /// The connection is gone.
    pub(in crate::agent) fn close_all(&self, service: &dyn DynNextEdits) {
        let sessions = std::mem::take(&mut *lock(&self.0));
        for (id, session) in sessions {
            session.token.cancel();
            service.closed(&id);
        }
    }
}

pub(super) async fn start(
    core: Arc<Core>,
    request: StartNesRequest,
    client: ClientHandle,
) -> Result<StartNesResponse> {
    core.nes.start(service(&core)?, request, client).await
}

/// Finds the session within dispatch, so that a later `nes/close` cancels this request.
pub(super) fn suggest(
    core: Arc<Core>,
    request: SuggestNesRequest,
    client: ClientHandle,
) -> impl Future<Output = Result<SuggestNesResponse>> {
    let session = core.nes.get(&request.session_id);
    async move {
        let session = session?;
        let newest = lock(&session.versions).get(&request.uri).copied();
        if newest.is_some_and(|newest| request.version < newest) {
            return Ok(SuggestNesResponse::new(Vec::new()));
        }
        let suggesting = service(&core)?.suggest(request);
        let mut suggestions = match race(suggesting, pin!(session.token.cancelled())).await {
            First::Left(suggestions) => suggestions?,
            First::Right(()) => return Err(Error::Cancelled),
        };
        let kinds = client.capabilities().nes.as_ref();
        suggestions.retain(|suggestion| match suggestion {
            NesSuggestion::Jump(_) => kinds.is_some_and(|kinds| kinds.jump.is_some()),
            NesSuggestion::Rename(_) => kinds.is_some_and(|kinds| kinds.rename.is_some()),
            NesSuggestion::SearchAndReplace(_) => {
                kinds.is_some_and(|kinds| kinds.search_and_replace.is_some())
            }
            _ => true,
        });
        Ok(SuggestNesResponse::new(suggestions))
    }
}

/// Removes the session within dispatch, so that no later message finds it.
pub(super) fn close(
    core: Arc<Core>,
    request: CloseNesRequest,
) -> impl Future<Output = Result<CloseNesResponse>> {
    ready(service(&core).and_then(|service| core.nes.close(service, &request)))
}

fn service(core: &Core) -> Result<&dyn DynNextEdits> {
    core.services.drafts.next_edits.as_deref().ok_or_else(|| method_not_found("nes"))
}
