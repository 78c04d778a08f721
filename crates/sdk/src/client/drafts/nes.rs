//! Edit suggestions of older agents.

// NES-19

use attache_wire::v1::{
    AcceptNesNotification, CloseNesRequest, DidChangeDocumentNotification, DidCloseDocumentNotification,
    DidFocusDocumentNotification, DidOpenDocumentNotification, DidSaveDocumentNotification, NesCapabilities,
    NesDocumentEventCapabilities, NesRejectReason, NesSuggestContext, NesSuggestion, NesSuggestionId,
    NesTriggerKind, Position, PositionEncodingKind, Range, RejectNesNotification, SessionId, StartNesRequest,
    SuggestNesRequest, TextDocumentContentChangeEvent, TextDocumentSyncKind,
};

use crate::Result;
use crate::client::AgentHandle;

/// Edit suggestions; see [`AgentHandle::nes`].
///
/// ```
/// use attache::client::{Nes, SuggestionPoint};
/// use attache::wire::v1::{NesSuggestContext, NesTriggerKind, Position, StartNesRequest};
///
/// async fn suggest(nes: Nes) -> attache::Result<()> {
///     let session = nes.start(StartNesRequest::new()).await?;
///     session.did_open("file:///a.rs", "rust", 1, "fn main() {}").await?;
///     let point = SuggestionPoint {
///         uri: "file:///a.rs".into(),
///         version: 1,
///         position: Position::new(0u32, 11u32),
///         selection: None,
///         trigger: NesTriggerKind::Manual,
///     };
///     println!("{:?}", session.suggest(point, NesSuggestContext::new()).await?);
///     session.close().await
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Nes(pub(super) AgentHandle);

impl Nes {
    /// Starts a session for suggestions, which takes no prompts.
    ///
    /// # Errors
    /// When the agent refuses, for example because it requires authentication.
    // NES-05, NES-07
    pub async fn start(&self, request: StartNesRequest) -> Result<NesSession> {
        let answer = self.0.0.request(&request).await?;
        Ok(NesSession { agent: self.0.clone(), id: answer.session_id })
    }

    /// The position encoding; UTF-16 by default.
    // NES-10
    pub fn position_encoding(&self) -> PositionEncodingKind {
        self.0.capabilities().position_encoding.unwrap_or(PositionEncodingKind::Utf16)
    }
}

/// A session for edit suggestions. Report every document; events that the agent did not ask for are
/// not sent.
///
/// Example: [`Nes`].
// NES-02
#[derive(Debug)]
pub struct NesSession {
    agent: AgentHandle,
    id: SessionId,
}

/// The position and the reason of a request for suggestions.
///
/// Example: [`Nes`].
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestionPoint {
    /// The document.
    pub uri: String,
    /// Its version.
    // NES-12
    pub version: i64,
    /// The cursor; lines and characters count from 0.
    // NES-09
    pub position: Position,
    /// The selection.
    pub selection: Option<Range>,
    /// The trigger.
    pub trigger: NesTriggerKind,
}

impl NesSession {
    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    fn can(&self) -> Option<&NesCapabilities> {
        self.agent.capabilities().nes.as_ref()
    }

    fn documents(&self) -> Option<&NesDocumentEventCapabilities> {
        self.can()?.events.as_ref()?.document.as_ref()
    }

    /// The kind of change events that the agent asked for; `None` for none.
    pub fn sync_kind(&self) -> Option<TextDocumentSyncKind> {
        self.documents()?.did_change.as_ref().map(|change| change.sync_kind)
    }

    /// Requests suggestions. Only the context that the agent asked for is sent.
    // NES-03, NES-18
    pub async fn suggest(
        &self,
        point: SuggestionPoint,
        context: NesSuggestContext,
    ) -> Result<Vec<NesSuggestion>> {
        let mut request =
            SuggestNesRequest::new(self.id.clone(), point.uri, point.version, point.position, point.trigger);
        request.selection = point.selection;
        let context = self.requested_context(context);
        request.context = (context != NesSuggestContext::new()).then_some(context);
        self.agent.0.request(&request).await.map(|answer| answer.suggestions)
    }

    fn requested_context(&self, mut context: NesSuggestContext) -> NesSuggestContext {
        fn keep<T>(list: &mut Option<Vec<T>>, requested: Option<Option<u32>>) {
            match (requested, list.as_mut()) {
                (None, _) => *list = None,
                // The newest come first.
                (Some(Some(most)), Some(list)) => list.truncate(most as usize),
                _ => {}
            }
        }
        let can = self.can().and_then(|can| can.context.as_ref());
        keep(
            &mut context.recent_files,
            can.and_then(|can| can.recent_files.as_ref()).map(|can| can.max_count),
        );
        keep(&mut context.related_snippets, can.and_then(|can| can.related_snippets.as_ref()).map(|_| None));
        keep(
            &mut context.edit_history,
            can.and_then(|can| can.edit_history.as_ref()).map(|can| can.max_count),
        );
        keep(
            &mut context.user_actions,
            can.and_then(|can| can.user_actions.as_ref()).map(|can| can.max_count),
        );
        keep(&mut context.open_files, can.and_then(|can| can.open_files.as_ref()).map(|_| None));
        keep(&mut context.diagnostics, can.and_then(|can| can.diagnostics.as_ref()).map(|_| None));
        context
    }

    /// Reports an accepted suggestion.
    // NES-13
    pub async fn accept(&self, suggestion: impl Into<NesSuggestionId>) -> Result<()> {
        self.agent.notify(&AcceptNesNotification::new(self.id.clone(), suggestion)).await
    }

    /// Reports a rejected suggestion.
    // NES-13
    pub async fn reject(
        &self,
        suggestion: impl Into<NesSuggestionId>,
        reason: NesRejectReason,
    ) -> Result<()> {
        self.agent.notify(&RejectNesNotification::new(self.id.clone(), suggestion).reason(reason)).await
    }

    /// Ends the session.
    pub async fn close(self) -> Result<()> {
        self.agent.0.request(&CloseNesRequest::new(self.id.clone())).await.map(|_| ())
    }

    /// Reports an opened document.
    pub async fn did_open(
        &self,
        uri: impl Into<String>,
        language_id: impl Into<String>,
        version: i64,
        text: impl Into<String>,
    ) -> Result<()> {
        if self.documents().is_none_or(|can| can.did_open.is_none()) {
            return Ok(());
        }
        self.agent
            .notify(&DidOpenDocumentNotification::new(self.id.clone(), uri, language_id, version, text))
            .await
    }

    /// Reports a changed document, by changes or as a whole, as the agent asked; `whole` is called
    /// only if needed.
    // NES-11
    pub async fn did_change(
        &self,
        uri: impl Into<String>,
        version: i64,
        changes: Vec<TextDocumentContentChangeEvent>,
        whole: impl FnOnce() -> String,
    ) -> Result<()> {
        let changes = match self.sync_kind() {
            None => return Ok(()),
            Some(TextDocumentSyncKind::Incremental) => changes,
            Some(_) => vec![TextDocumentContentChangeEvent::new(whole())],
        };
        self.agent.notify(&DidChangeDocumentNotification::new(self.id.clone(), uri, version, changes)).await
    }

    /// Reports a closed document.
    pub async fn did_close(&self, uri: impl Into<String>) -> Result<()> {
        if self.documents().is_none_or(|can| can.did_close.is_none()) {
            return Ok(());
        }
        self.agent.notify(&DidCloseDocumentNotification::new(self.id.clone(), uri)).await
    }

    /// Reports a saved document.
    pub async fn did_save(&self, uri: impl Into<String>) -> Result<()> {
        if self.documents().is_none_or(|can| can.did_save.is_none()) {
            return Ok(());
        }
        self.agent.notify(&DidSaveDocumentNotification::new(self.id.clone(), uri)).await
    }

    /// Reports a focused document.
    // NES-15
    pub async fn did_focus(
        &self,
        uri: impl Into<String>,
        version: i64,
        position: Position,
        visible: Range,
    ) -> Result<()> {
        if self.documents().is_none_or(|can| can.did_focus.is_none()) {
            return Ok(());
        }
        self.agent
            .notify(&DidFocusDocumentNotification::new(self.id.clone(), uri, version, position, visible))
            .await
    }
}
