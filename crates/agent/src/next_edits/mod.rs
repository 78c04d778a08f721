//! Next-edit suggestions (NES) from the model.
//!
//! `documents.rs` follows the client's editor, `position.rs` converts positions, `request.rs` asks
//! the model, `proposal.rs` turns its response into suggestions.
//!
//! Invariants: no suggestion refers to an outdated text; no file on disk is read or written.

mod documents;
mod position;
mod proposal;
mod request;

use std::collections::HashMap;
use std::sync::Arc;
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
use parking_lot::{Mutex, MutexGuard};

use crate::state::AgentState;
use documents::Documents;
use proposal::Proposal;

/// The time limit, because a late suggestion is useless.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Rejected suggestions that are remembered and not repeated.
const MAX_REJECTED: usize = 50;

/// Suggests edits.
pub(crate) struct Suggestions {
    agent: Arc<AgentState>,
    sessions: Mutex<HashMap<SessionId, Editor>>,
}

/// One NES session.
struct Editor {
    documents: Documents,
    /// Supported kinds besides edits.
    kinds: Kinds,
    /// The number of suggestions so far, for their ids.
    count: u64,
    /// Suggestions that were neither accepted nor rejected yet.
    open: HashMap<String, Proposal>,
    rejected: Vec<Proposal>,
}

/// Kinds of suggestions besides edits that the client supports.
// NES-04
#[derive(Clone, Copy, Debug, Default)]
struct Kinds {
    jump: bool,
    rename: bool,
    search_and_replace: bool,
}

impl Suggestions {
    pub(crate) fn new(agent: Arc<AgentState>) -> Self {
        Suggestions { agent, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Editor>> {
        self.sessions.lock()
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

    /// UTF-8 needs no conversion, so it comes first.
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
            count: 0,
            open: HashMap::new(),
            rejected: Vec::new(),
        };
        self.sessions().insert(id.clone(), editor);
        Ok(())
    }

    async fn suggest(&self, request: SuggestNesRequest) -> Result<Vec<NesSuggestion>> {
        let Some(model) = self.agent.first_model(None) else { return Ok(Vec::new()) };
        let model_request = {
            let sessions = self.sessions();
            let Some(editor) = sessions.get(&request.session_id) else { return Ok(Vec::new()) };
            // NES-20: no suggestions for another version.
            let document =
                editor.documents.get(&request.uri).filter(|document| document.version == request.version);
            let Some(document) = document else { return Ok(Vec::new()) };
            request::build(document, &editor.documents, &request, editor.kinds)
        };
        let asked = proposal::request(model.as_ref(), model_request);
        let proposals = match tokio::time::timeout(TIMEOUT, asked).await {
            Ok(Ok(proposals)) => proposals,
            Ok(Err(error)) => return Err(Error::refuse(attache::code::INTERNAL_ERROR, error.to_string())),
            Err(_) => return Ok(Vec::new()),
        };
        let mut sessions = self.sessions();
        let Some(editor) = sessions.get_mut(&request.session_id) else { return Ok(Vec::new()) };
        Ok(editor.apply(proposals, &request))
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
        let Some(proposal) = editor.open.remove(rejected.id.as_str()) else { return };
        // A suggestion that was replaced or ignored may still be right.
        if rejected.reason.is_none_or(|reason| reason == attache::wire::v1::NesRejectReason::Rejected) {
            editor.rejected.push(proposal);
            let surplus = editor.rejected.len().saturating_sub(MAX_REJECTED);
            editor.rejected.drain(..surplus);
        }
    }

    fn closed(&self, id: &SessionId) {
        self.sessions().remove(id);
    }
}

impl Editor {
    /// The proposals that apply to the present text.
    fn apply(&mut self, proposals: Vec<Proposal>, request: &SuggestNesRequest) -> Vec<NesSuggestion> {
        // NES-20: the user may have typed in the meantime.
        let Some(document) =
            self.documents.get(&request.uri).filter(|document| document.version == request.version).cloned()
        else {
            return Vec::new();
        };
        self.open.clear();
        let mut suggestions = Vec::new();
        for proposal in proposals {
            if self.rejected.contains(&proposal) {
                continue;
            }
            // NES-14: unique within the session.
            let id = format!("n{}", self.count + 1);
            if let Some(suggestion) =
                proposal.apply(&id, &document.text, request, self.documents.encoding(), self.kinds)
            {
                self.count += 1;
                self.open.insert(id, proposal);
                suggestions.push(suggestion);
            }
        }
        suggestions
    }
}
