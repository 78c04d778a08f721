//! Edit suggestions, and the documents they are about. Only older agents have them (NES-19).

use attache_wire::v1::{
    AcceptNesNotification, CloseNesRequest, DidChangeDocumentNotification, DidCloseDocumentNotification,
    DidFocusDocumentNotification, DidOpenDocumentNotification, DidSaveDocumentNotification, NesCapabilities,
    NesDocumentEventCapabilities, NesRejectReason, NesSuggestContext, NesSuggestion, NesSuggestionId,
    NesTriggerKind, Position, PositionEncodingKind, Range, RejectNesNotification, SessionId, StartNesRequest,
    SuggestNesRequest, TextDocumentContentChangeEvent, TextDocumentSyncKind,
};

use super::agent::AgentHandle;
use crate::Result;

/// Edit suggestions; see [`AgentHandle::nes`].
#[derive(Debug, Clone)]
pub struct Nes(pub(crate) AgentHandle);

impl Nes {
    /// Starts a session for suggestions; it is none for prompts (NES-05).
    ///
    /// # Errors
    /// When the agent refuses, for example because it wants authentication (NES-07).
    pub async fn start(&self, request: StartNesRequest) -> Result<NesSession> {
        let answer = self.0.0.request(&request).await?;
        Ok(NesSession { agent: self.0.clone(), id: answer.session_id })
    }

    /// How positions count characters. NES-10: UTF-16 unless the agent chose something else.
    pub fn position_encoding(&self) -> PositionEncodingKind {
        self.0.capabilities().position_encoding.unwrap_or(PositionEncodingKind::Utf16)
    }
}

/// A session for edit suggestions. Tell it about every document; what the agent did not ask for is not sent (NES-02).
#[derive(Debug)]
pub struct NesSession {
    agent: AgentHandle,
    id: SessionId,
}

/// Where and why a suggestion is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestionPoint {
    /// The document.
    pub uri: String,
    /// Its version (NES-12).
    pub version: i64,
    /// The cursor; lines and characters count from 0 (NES-09).
    pub position: Position,
    /// The selection.
    pub selection: Option<Range>,
    /// What set it off.
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

    /// How the agent wants to hear of changes; `None` if it does not.
    pub fn sync_kind(&self) -> Option<TextDocumentSyncKind> {
        self.documents()?.did_change.as_ref().map(|change| change.sync_kind)
    }

    /// Asks for suggestions. NES-03, NES-18: of the context, only what the agent asked for is sent, and not more of it.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn suggest(
        &self,
        spot: SuggestionPoint,
        context: NesSuggestContext,
    ) -> Result<Vec<NesSuggestion>> {
        let mut request =
            SuggestNesRequest::new(self.id.clone(), spot.uri, spot.version, spot.position, spot.trigger);
        request.selection = spot.selection;
        let context = self.wanted(context);
        request.context = (context != NesSuggestContext::new()).then_some(context);
        self.agent.0.request(&request).await.map(|answer| answer.suggestions)
    }

    fn wanted(&self, mut context: NesSuggestContext) -> NesSuggestContext {
        fn keep<T>(list: &mut Option<Vec<T>>, wanted: Option<Option<u32>>) {
            match (wanted, list.as_mut()) {
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

    /// NES-13: a suggestion was taken.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn accept(&self, suggestion: impl Into<NesSuggestionId>) -> Result<()> {
        self.agent.notify(&AcceptNesNotification::new(self.id.clone(), suggestion)).await
    }

    /// NES-13: a suggestion was not taken.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn reject(
        &self,
        suggestion: impl Into<NesSuggestionId>,
        reason: NesRejectReason,
    ) -> Result<()> {
        self.agent.notify(&RejectNesNotification::new(self.id.clone(), suggestion).reason(reason)).await
    }

    /// Ends the session.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn close(self) -> Result<()> {
        self.agent.0.request(&CloseNesRequest::new(self.id.clone())).await.map(|_| ())
    }

    /// A document was opened.
    ///
    /// # Errors
    /// When the connection is over.
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

    /// A document was changed. NES-11: the agent gets the single changes or the whole text, as it asked for; the whole text is
    /// made only if it is needed.
    ///
    /// # Errors
    /// When the connection is over.
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

    /// A document was closed.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn did_close(&self, uri: impl Into<String>) -> Result<()> {
        if self.documents().is_none_or(|can| can.did_close.is_none()) {
            return Ok(());
        }
        self.agent.notify(&DidCloseDocumentNotification::new(self.id.clone(), uri)).await
    }

    /// A document was saved.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn did_save(&self, uri: impl Into<String>) -> Result<()> {
        if self.documents().is_none_or(|can| can.did_save.is_none()) {
            return Ok(());
        }
        self.agent.notify(&DidSaveDocumentNotification::new(self.id.clone(), uri)).await
    }

    /// NES-15: the user looks at a document, be it open before or not.
    ///
    /// # Errors
    /// When the connection is over.
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
