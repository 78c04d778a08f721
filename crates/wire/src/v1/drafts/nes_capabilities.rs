//! Capabilities for next edit suggestions. Only in older drafts; off by default.
//!
//! Like all capabilities these are read leniently: malformed means absent.

// NES-19, INIT-20

use crate::shape::*;

closed_enum! {
    /// The unit of `character` in a position.
    pub enum PositionEncodingKind { // NES-09, NES-10
        /// UTF-16 code units; the default, which every peer supports.
        Utf16 = "utf-16",
        /// Unicode code points.
        Utf32 = "utf-32",
        /// Bytes of UTF-8.
        Utf8 = "utf-8",
    }
}

closed_enum! {
    /// The form of document changes.
    pub enum TextDocumentSyncKind { // NES-11
        /// The whole text every time.
        Full = "full",
        /// The changed ranges.
        Incremental = "incremental",
    }
}

object! {
    /// Kinds of suggestions that the client supports besides edits.
    pub struct ClientNesCapabilities { // NES-04
        optional {
            /// Jumps to another place.
            jump "jump": Option<NesJumpCapabilities> [Lenient],
            /// Renamed symbols.
            rename "rename": Option<NesRenameCapabilities> [Lenient],
            /// Search and replace in a whole file.
            search_and_replace "searchAndReplace": Option<NesSearchAndReplaceCapabilities> [Lenient],
        }
    }
}

object! {
    /// Information that the agent needs for edit suggestions.
    pub struct NesCapabilities { // NES-01
        optional {
            /// Events that it subscribes to.
            events "events": Option<NesEventCapabilities> [Lenient],
            /// Which context it wants with a request.
            context "context": Option<NesContextCapabilities> [Lenient],
        }
    }
}

object! {
    /// Events that the agent subscribes to.
    pub struct NesEventCapabilities {
        optional {
            /// Events of documents.
            document "document": Option<NesDocumentEventCapabilities> [Lenient],
        }
    }
}

object! {
    /// Document events that the agent subscribes to.
    pub struct NesDocumentEventCapabilities { // NES-02
        optional {
            /// `document/didOpen`.
            did_open "didOpen": Option<NesDocumentDidOpenCapabilities> [Lenient],
            /// `document/didChange`.
            did_change "didChange": Option<NesDocumentDidChangeCapabilities> [Lenient],
            /// `document/didClose`.
            did_close "didClose": Option<NesDocumentDidCloseCapabilities> [Lenient],
            /// `document/didSave`.
            did_save "didSave": Option<NesDocumentDidSaveCapabilities> [Lenient],
            /// `document/didFocus`.
            did_focus "didFocus": Option<NesDocumentDidFocusCapabilities> [Lenient],
        }
    }
}

object! {
    /// The agent wants `document/didChange`.
    pub struct NesDocumentDidChangeCapabilities {
        required {
            /// The form of changes.
            sync_kind "syncKind": TextDocumentSyncKind [Required],
        }
    }
}

object! {
    /// Which context the agent wants with `nes/suggest`.
    pub struct NesContextCapabilities { // NES-03
        optional {
            /// Files that were edited lately.
            recent_files "recentFiles": Option<NesRecentFilesCapabilities> [Lenient],
            /// Pieces of related files.
            related_snippets "relatedSnippets": Option<NesRelatedSnippetsCapabilities> [Lenient],
            /// The last edits.
            edit_history "editHistory": Option<NesEditHistoryCapabilities> [Lenient],
            /// The user's last actions.
            user_actions "userActions": Option<NesUserActionsCapabilities> [Lenient],
            /// Files that are open.
            open_files "openFiles": Option<NesOpenFilesCapabilities> [Lenient],
            /// Errors and warnings.
            diagnostics "diagnostics": Option<NesDiagnosticsCapabilities> [Lenient],
        }
    }
}

object! {
    /// The agent wants files that were edited lately.
    pub struct NesRecentFilesCapabilities {
        optional {
            /// How many at most.
            max_count "maxCount": Option<u32> [Lenient], // NES-18
        }
    }
}

object! {
    /// The agent wants the last edits.
    pub struct NesEditHistoryCapabilities {
        optional {
            /// How many at most.
            max_count "maxCount": Option<u32> [Lenient], // NES-18
        }
    }
}

object! {
    /// The agent wants the user's last actions.
    pub struct NesUserActionsCapabilities {
        optional {
            /// How many at most.
            max_count "maxCount": Option<u32> [Lenient], // NES-18
        }
    }
}

empty_objects! {
    /// The client takes suggestions to jump.
    NesJumpCapabilities,
    /// The client takes suggestions to rename a symbol.
    NesRenameCapabilities,
    /// The client takes suggestions to search and replace.
    NesSearchAndReplaceCapabilities,
    /// The agent wants `document/didOpen`.
    NesDocumentDidOpenCapabilities,
    /// The agent wants `document/didClose`.
    NesDocumentDidCloseCapabilities,
    /// The agent wants `document/didSave`.
    NesDocumentDidSaveCapabilities,
    /// The agent wants `document/didFocus`.
    NesDocumentDidFocusCapabilities,
    /// The agent wants pieces of related files.
    NesRelatedSnippetsCapabilities,
    /// The agent wants the files that are open.
    NesOpenFilesCapabilities,
    /// The agent wants errors and warnings.
    NesDiagnosticsCapabilities,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn malformed_parts_are_absent() {
        // shows INIT-20, NES-02: an event whose form is unknown is not announced; the others are
        let text = r#"{"events":{"document":{"didOpen":{},"didChange":{"syncKind":"psychic"},"didSave":true}},
            "context":{"recentFiles":{"maxCount":-1},"openFiles":null,"diagnostics":{}}}"#;
        let nes: NesCapabilities = serde_json::from_str(text).unwrap();
        assert_eq!(
            serde_json::to_string(&nes).unwrap(),
            r#"{"events":{"document":{"didOpen":{}}},"context":{"recentFiles":{},"diagnostics":{}}}"#
        );
    }
}
