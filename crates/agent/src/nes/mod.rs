//! Next-edit suggestions: what the user may want to change next, from the model.
//!
//! `documents.rs` follows the client's editor, `place.rs` counts in its units, `question.rs` asks the model, `reply.rs` turns what it says into
//! suggestions that fit the text.
//!
//! What never happens here: a suggestion about a text that is no longer the one in the editor; a file on disk is read or written.

mod documents;
mod place;
mod question;
mod reply;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache::agent::{ClientHandle, DocumentEvent, NextEdits};
use attache::wire::v1::{
    AcceptNesNotification, NesCapabilities, NesContextCapabilities, NesDiagnosticsCapabilities,
    NesDocumentDidChangeCapabilities, NesDocumentDidCloseCapabilities, NesDocumentDidOpenCapabilities,
    NesDocumentEventCapabilities, NesEditHistoryCapabilities, NesEventCapabilities, NesOpenFilesCapabilities,
    NesRelatedSnippetsCapabilities, NesSuggestion, PositionEncodingKind, RejectNesNotification, SessionId,
    StartNesRequest, SuggestNesRequest, TextDocumentSyncKind,
};
use attache::{Error, Result};

use crate::house::House;
use documents::Documents;
use reply::Wish;

/// Later than this nobody wants to know.
const LIMIT: Duration = Duration::from_secs(20);
/// Suggestions that were refused are not made again; so many are remembered.
const REFUSED: usize = 50;

/// Suggests edits with the models of the house.
pub(crate) struct Suggestions {
    house: Arc<House>,
    sessions: Mutex<HashMap<SessionId, Editor>>,
}

/// One NES session.
struct Editor {
    documents: Documents,
    /// What the client takes besides edits.
    kinds: Kinds,
    made: u64,
    /// Suggestions whose fate is not known yet, and those that were refused.
    open: HashMap<String, Wish>,
    refused: Vec<Wish>,
}

/// What the client takes besides edits (NES-04).
#[derive(Clone, Copy, Debug, Default)]
struct Kinds {
    jump: bool,
    rename: bool,
    search_and_replace: bool,
}

impl Suggestions {
    pub(crate) fn new(house: Arc<House>) -> Self {
        Suggestions { house, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Editor>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NextEdits for Suggestions {
    fn capabilities(&self) -> NesCapabilities {
        let mut document = NesDocumentEventCapabilities::new();
        document.did_open = Some(NesDocumentDidOpenCapabilities::new());
        document.did_change = Some(NesDocumentDidChangeCapabilities::new(TextDocumentSyncKind::Incremental));
        document.did_close = Some(NesDocumentDidCloseCapabilities::new());
        let mut events = NesEventCapabilities::new();
        events.document = Some(document);
        let mut context = NesContextCapabilities::new();
        context.related_snippets = Some(NesRelatedSnippetsCapabilities::new());
        context.open_files = Some(NesOpenFilesCapabilities::new());
        context.diagnostics = Some(NesDiagnosticsCapabilities::new());
        let mut history = NesEditHistoryCapabilities::new();
        history.max_count = Some(10);
        context.edit_history = Some(history);
        let mut capabilities = NesCapabilities::new();
        capabilities.events = Some(events);
        capabilities.context = Some(context);
        capabilities
    }

    /// Bytes need no conversion, so they come first.
    fn encodings(&self) -> &[PositionEncodingKind] {
        &[PositionEncodingKind::Utf8, PositionEncodingKind::Utf32]
    }

    async fn start(&self, id: &SessionId, _: StartNesRequest, client: ClientHandle) -> Result<()> {
        let capabilities = client.capabilities();
        let kinds = capabilities.nes.as_ref().map_or_else(Kinds::default, |nes| Kinds {
            jump: nes.jump.is_some(),
            rename: nes.rename.is_some(),
            search_and_replace: nes.search_and_replace.is_some(),
        });
        let editor = Editor {
            documents: Documents::new(self.encoding_for(capabilities)),
            kinds,
            made: 0,
            open: HashMap::new(),
            refused: Vec::new(),
        };
        self.sessions().insert(id.clone(), editor);
        Ok(())
    }

    async fn suggest(&self, request: SuggestNesRequest) -> Result<Vec<NesSuggestion>> {
        let Some(model) = self.house.first_model(None) else { return Ok(Vec::new()) };
        let question = {
            let sessions = self.sessions();
            let Some(editor) = sessions.get(&request.session_id) else { return Ok(Vec::new()) };
            // NES-20: a version that is not the one we know is not answered.
            let document =
                editor.documents.get(&request.uri).filter(|document| document.version == request.version);
            let Some(document) = document else { return Ok(Vec::new()) };
            question::ask(document, &editor.documents, &request, editor.kinds)
        };
        let asked = tokio::time::timeout(LIMIT, reply::wishes(model.as_ref(), question)).await;
        let wishes = match asked {
            Ok(Ok(wishes)) => wishes,
            Ok(Err(error)) => return Err(Error::refuse(attache::code::INTERNAL_ERROR, error)),
            Err(_) => return Ok(Vec::new()),
        };
        let mut sessions = self.sessions();
        let Some(editor) = sessions.get_mut(&request.session_id) else { return Ok(Vec::new()) };
        Ok(editor.fit(wishes, &request))
    }

    fn document(&self, event: DocumentEvent) {
        if let Some(editor) = self.sessions().get_mut(event.session_id()) {
            editor.documents.take(event);
        }
    }

    fn accepted(&self, accepted: AcceptNesNotification) {
        if let Some(editor) = self.sessions().get_mut(&accepted.session_id) {
            editor.open.remove(accepted.id.as_str());
        }
    }

    fn rejected(&self, rejected: RejectNesNotification) {
        let mut sessions = self.sessions();
        let Some(editor) = sessions.get_mut(&rejected.session_id) else { return };
        let Some(wish) = editor.open.remove(rejected.id.as_str()) else { return };
        // Only a plain no is a no; what was overtaken may still be right.
        if rejected.reason.is_none_or(|reason| reason == attache::wire::v1::NesRejectReason::Rejected) {
            editor.refused.push(wish);
            let surplus = editor.refused.len().saturating_sub(REFUSED);
            editor.refused.drain(..surplus);
        }
    }

    fn closed(&self, id: &SessionId) {
        self.sessions().remove(id);
    }
}

impl Editor {
    /// What of the model's wishes fits the text as it is now.
    fn fit(&mut self, wishes: Vec<Wish>, request: &SuggestNesRequest) -> Vec<NesSuggestion> {
        // NES-20: the user has typed on meanwhile.
        let Some(document) =
            self.documents.get(&request.uri).filter(|document| document.version == request.version).cloned()
        else {
            return Vec::new();
        };
        self.open.clear();
        let mut suggestions = Vec::new();
        for wish in wishes {
            if self.refused.contains(&wish) {
                continue;
            }
            // NES-14: unique within the session.
            let id = format!("n{}", self.made + 1);
            if let Some(suggestion) =
                wish.fit(&id, &document.text, request, self.documents.encoding(), self.kinds)
            {
                self.made += 1;
                self.open.insert(id, wish);
                suggestions.push(suggestion);
            }
        }
        suggestions
    }
}
