//! Next edit suggestions: `nes/*`. Only in older drafts, kept for peers that still have them.

// NES-01 to NES-20

use crate::shape::*;
use crate::v1::{Position, Range, SessionId};

ids! {
    /// Id of an edit suggestion.
    NesSuggestionId,
}

object! {
    /// A directory of the workspace.
    pub struct WorkspaceFolder {
        required {
            /// The URI.
            uri "uri": String [Required],
            /// A title to show.
            name "name": String [Required],
        }
    }
}

object! {
    /// The repository that the workspace is a copy of.
    pub struct NesRepository {
        required {
            /// Its name.
            name "name": String [Required],
            /// The owner.
            owner "owner": String [Required],
            /// The URI.
            remote_url "remoteUrl": String [Required],
        }
    }
}

object! {
    /// Begins to suggest.
    pub struct StartNesRequest [nullable] { // NES-06
        optional {
            /// The workspace.
            workspace_uri "workspaceUri": Option<String> [LenientText],
            /// Its directories.
            workspace_folders "workspaceFolders": Option<Vec<WorkspaceFolder>> [Optional],
            /// Its repository.
            repository "repository": Option<NesRepository> [Lenient],
        }
    }
}

object! {
    /// Suggestions have a session of their own.
    pub struct StartNesResponse { // NES-05
        required {
            /// Its id.
            session_id "sessionId": SessionId [Required],
        }
    }
}

closed_enum! {
    /// Why a suggestion is asked for.
    pub enum NesTriggerKind { // NES-17
        /// The user types or moves the cursor.
        Automatic = "automatic",
        /// A diagnostic came up.
        Diagnostic = "diagnostic",
        /// The user asks.
        Manual = "manual",
    }
}

closed_enum! {
    /// How bad a diagnostic is.
    pub enum NesDiagnosticSeverity {
        /// An error.
        Error = "error",
        /// A warning.
        Warning = "warning",
        /// Something to know.
        Information = "information",
        /// A hint.
        Hint = "hint",
    }
}

object! {
    /// A file that was open lately.
    pub struct NesRecentFile {
        required {
            /// The URI.
            uri "uri": String [Required],
            /// Its language.
            language_id "languageId": String [Required],
            /// Its text.
            text "text": String [Required],
        }
    }
}

object! {
    /// Some lines of a file.
    pub struct NesExcerpt {
        required {
            /// The first line.
            start_line "startLine": u32 [Required],
            /// The last line.
            end_line "endLine": u32 [Required],
            /// The text.
            text "text": String [Required],
        }
    }
}

object! {
    /// Parts of a file that have to do with the place.
    pub struct NesRelatedSnippet {
        required {
            /// Where the file is.
            uri "uri": String [Required],
            /// The parts.
            excerpts "excerpts": Vec<NesExcerpt> [Required],
        }
    }
}

object! {
    /// A change that was made before.
    pub struct NesEditHistoryEntry {
        required {
            /// Where the file is.
            uri "uri": String [Required],
            /// The change, as a diff.
            diff "diff": String [Required],
        }
    }
}

object! {
    /// An action of the user.
    pub struct NesUserAction {
        required {
            /// What.
            action "action": String [Required],
            /// In which file.
            uri "uri": String [Required],
            /// Where in it.
            position "position": Position [Required],
            /// When, in milliseconds since 1970.
            timestamp_ms "timestampMs": u64 [Required],
        }
    }
}

object! {
    /// A file that is open.
    pub struct NesOpenFile {
        required {
            /// The URI.
            uri "uri": String [Required],
            /// Its language.
            language_id "languageId": String [Required],
        }
        optional {
            /// The visible range.
            visible_range "visibleRange": Option<Range> [Lenient],
            /// When it had the focus, in milliseconds since 1970.
            last_focused_ms "lastFocusedMs": Option<u64> [Lenient],
        }
    }
}

object! {
    /// A diagnostic of a compiler or linter.
    pub struct NesDiagnostic {
        required {
            /// Where the file is.
            uri "uri": String [Required],
            /// Where in it.
            range "range": Range [Required],
            /// How bad it is.
            severity "severity": NesDiagnosticSeverity [Required],
            /// The content.
            message "message": String [Required],
        }
    }
}

object! {
    /// Context of the cursor, as far as the agent asked for it.
    pub struct NesSuggestContext { // NES-03, NES-18
        optional {
            /// Files that were open lately.
            recent_files "recentFiles": Option<Vec<NesRecentFile>> [Optional],
            /// Parts of other files.
            related_snippets "relatedSnippets": Option<Vec<NesRelatedSnippet>> [Optional],
            /// Changes made before.
            edit_history "editHistory": Option<Vec<NesEditHistoryEntry>> [Optional],
            /// The user's action.
            user_actions "userActions": Option<Vec<NesUserAction>> [Optional],
            /// Files that are open.
            open_files "openFiles": Option<Vec<NesOpenFile>> [Optional],
            /// Diagnostics of compilers and linters.
            diagnostics "diagnostics": Option<Vec<NesDiagnostic>> [Optional],
        }
    }
}

object! {
    /// Requests suggestions.
    pub struct SuggestNesRequest {
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The file.
            uri "uri": String [Required],
            /// Its version.
            version "version": i64 [Required], // NES-12
            /// Where the cursor is.
            position "position": Position [Required],
            /// Why it is asked.
            trigger_kind "triggerKind": NesTriggerKind [Required], // NES-17
        }
        optional {
            /// The selection.
            selection "selection": Option<Range> [Optional],
            /// Context of the cursor.
            context "context": Option<NesSuggestContext> [Optional],
        }
    }
}

object! {
    /// One replacement.
    pub struct NesTextEdit {
        required {
            /// The replaced range.
            range "range": Range [Required],
            /// The replacement.
            new_text "newText": String [Required],
        }
    }
}

object! {
    /// Suggests to change a file.
    pub struct NesEditSuggestion {
        required {
            /// Id of the suggestion.
            id "id": NesSuggestionId [Required], // NES-14, NES-19
            /// The file.
            uri "uri": String [Required],
            /// The replacements.
            edits "edits": Vec<NesTextEdit> [Required],
        }
        optional {
            /// Where the cursor goes afterwards.
            cursor_position "cursorPosition": Option<Position> [Lenient],
        }
    }
}

object! {
    /// Suggests to go somewhere.
    pub struct NesJumpSuggestion {
        required {
            /// Id of the suggestion.
            id "id": NesSuggestionId [Required],
            /// The file.
            uri "uri": String [Required],
            /// Where in it.
            position "position": Position [Required],
        }
    }
}

object! {
    /// Suggests to rename a symbol.
    pub struct NesRenameSuggestion {
        required {
            /// Id of the suggestion.
            id "id": NesSuggestionId [Required],
            /// The file.
            uri "uri": String [Required],
            /// Where the symbol is.
            position "position": Position [Required],
            /// Its new name.
            new_name "newName": String [Required],
        }
    }
}

object! {
    /// Suggests to search and replace.
    pub struct NesSearchAndReplaceSuggestion {
        required {
            /// Id of the suggestion.
            id "id": NesSuggestionId [Required],
            /// The file.
            uri "uri": String [Required],
            /// The text to search for.
            search "search": String [Required],
            /// The replacement.
            replace "replace": String [Required],
        }
        optional {
            /// Whether `search` is a regular expression. Guessing would change the wrong text, so
            /// it is strict.
            is_regex "isRegex": Option<bool> [Optional],
        }
    }
}

tagged! {
    /// One suggestion; the list is closed. Kinds besides edits need a client capability.
    pub enum NesSuggestion by "kind" { // NES-04
        /// Change a file.
        Edit(NesEditSuggestion) = "edit",
        /// Go somewhere.
        Jump(NesJumpSuggestion) = "jump",
        /// Rename a symbol.
        Rename(NesRenameSuggestion) = "rename",
        /// Search and replace.
        SearchAndReplace(NesSearchAndReplaceSuggestion) = "searchAndReplace",
    }
}

object! {
    /// The suggestions; the list may be empty.
    pub struct SuggestNesResponse { // NES-20
        required {
            /// The suggestions.
            suggestions "suggestions": Vec<NesSuggestion> [Required],
        }
    }
}

object! {
    /// A suggestion was taken.
    pub struct AcceptNesNotification { // NES-13
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The suggestion.
            id "id": NesSuggestionId [Required],
        }
    }
}

closed_enum! {
    /// Why a suggestion was not taken.
    pub enum NesRejectReason { // NES-13
        /// The user declined.
        Rejected = "rejected",
        /// The user kept typing.
        Ignored = "ignored",
        /// Another one came.
        Replaced = "replaced",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

object! {
    /// A suggestion was not taken.
    pub struct RejectNesNotification { // NES-13
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The suggestion.
            id "id": NesSuggestionId [Required],
        }
        optional {
            /// Why; a reason that is not listed counts as none.
            reason "reason": Option<NesRejectReason> [Lenient],
        }
    }
}

object! {
    /// Ends a session of suggestions.
    pub struct CloseNesRequest { // NES-08
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// It is ended.
    CloseNesResponse,
}

crate::methods! {
    "nes/start": StartNesRequest => StartNesResponse,
    "nes/suggest": SuggestNesRequest => SuggestNesResponse,
    "nes/close": CloseNesRequest => CloseNesResponse,
}

crate::notifications! {
    "nes/accept": AcceptNesNotification,
    "nes/reject": RejectNesNotification,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_start_needs_nothing() {
        // shows NES-06, RPC-21
        assert_eq!(crate::decode::<StartNesRequest>(None).unwrap(), StartNesRequest::new());
        let text = r#"{"workspaceUri":5,"repository":{"name":"x"},"workspaceFolders":null}"#;
        assert_eq!(serde_json::from_str::<StartNesRequest>(text).unwrap(), StartNesRequest::new());
        assert!(serde_json::from_str::<StartNesRequest>(r#"{"workspaceFolders":[5]}"#).is_err());
    }

    #[test]
    fn triggers_and_suggestions_are_closed_and_reasons_are_not() {
        // shows NES-04, NES-13, NES-17
        let ask = |rest: &str| {
            let text = format!(r#"{{"sessionId":"n","uri":"file:///a","version":1{rest}}}"#);
            serde_json::from_str::<SuggestNesRequest>(&text)
        };
        assert!(
            ask(r#","position":{"line":1,"character":0},"triggerKind":"manual","selection":null"#).is_ok()
        );
        assert!(ask(r#","position":{"line":1,"character":0},"triggerKind":"magic""#).is_err());
        assert!(ask(r#","triggerKind":"manual""#).is_err());
        let text = r#"{"suggestions":[{"id":"s","kind":"teleport"}]}"#;
        assert!(serde_json::from_str::<SuggestNesResponse>(text).is_err());
        let text = r#"{"sessionId":"n","id":"s","reason":"bored"}"#;
        assert_eq!(serde_json::from_str::<RejectNesNotification>(text).unwrap().reason, None);
    }

    #[test]
    fn the_kind_may_come_after_the_id() {
        let text = r#"{"id":"s","kind":"jump","uri":"file:///b","position":{"line":9,"character":0}}"#;
        let NesSuggestion::Jump(jump) = serde_json::from_str(text).unwrap() else { panic!() };
        assert_eq!(jump, NesJumpSuggestion::new("s", "file:///b", Position::new(9u32, 0u32)));
    }
}
