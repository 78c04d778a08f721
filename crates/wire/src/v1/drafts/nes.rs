//! Next edit suggestions: `nes/*` (NES-01 to NES-20). Only in older drafts, kept for peers that still have them.

use crate::shape::*;
use crate::v1::{Position, Range, SessionId};

id! {
    /// Names an edit suggestion. Only in older drafts.
    NesSuggestionId
}

object! {
    /// A directory of the workspace.
    pub struct WorkspaceFolder {
        required {
            /// Where it is.
            uri "uri": String [Required],
            /// What to call it.
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
            /// Whose it is.
            owner "owner": String [Required],
            /// Where it is.
            remote_url "remoteUrl": String [Required],
        }
    }
}

object! {
    /// Begins to suggest (NES-06).
    pub struct StartNesRequest [nullable] {
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
    /// Suggestions have a session of their own (NES-05).
    pub struct StartNesResponse {
        required {
            /// Names it.
            session_id "sessionId": SessionId [Required],
        }
    }
}

closed_enum! {
    /// Why a suggestion is asked for (NES-17).
    pub enum NesTriggerKind {
        /// The person types or moves.
        Automatic = "automatic",
        /// A diagnostic came up.
        Diagnostic = "diagnostic",
        /// The person asks.
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
            /// Where it is.
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
    /// Something the person did.
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
            /// Where it is.
            uri "uri": String [Required],
            /// Its language.
            language_id "languageId": String [Required],
        }
        optional {
            /// What is visible of it.
            visible_range "visibleRange": Option<Range> [Lenient],
            /// When it had the focus, in milliseconds since 1970.
            last_focused_ms "lastFocusedMs": Option<u64> [Lenient],
        }
    }
}

object! {
    /// What a compiler or linter says.
    pub struct NesDiagnostic {
        required {
            /// Where the file is.
            uri "uri": String [Required],
            /// Where in it.
            range "range": Range [Required],
            /// How bad it is.
            severity "severity": NesDiagnosticSeverity [Required],
            /// What it says.
            message "message": String [Required],
        }
    }
}

object! {
    /// What is known around the place; only what the agent asked for (NES-03, NES-18).
    pub struct NesSuggestContext {
        optional {
            /// Files that were open lately.
            recent_files "recentFiles": Option<Vec<NesRecentFile>> [Optional],
            /// Parts of other files.
            related_snippets "relatedSnippets": Option<Vec<NesRelatedSnippet>> [Optional],
            /// Changes made before.
            edit_history "editHistory": Option<Vec<NesEditHistoryEntry>> [Optional],
            /// What the person did.
            user_actions "userActions": Option<Vec<NesUserAction>> [Optional],
            /// Files that are open.
            open_files "openFiles": Option<Vec<NesOpenFile>> [Optional],
            /// What compilers and linters say.
            diagnostics "diagnostics": Option<Vec<NesDiagnostic>> [Optional],
        }
    }
}

object! {
    /// Asks what to change next.
    pub struct SuggestNesRequest {
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The file.
            uri "uri": String [Required],
            /// Its version (NES-12).
            version "version": i64 [Required],
            /// Where the cursor is.
            position "position": Position [Required],
            /// Why it is asked (NES-17).
            trigger_kind "triggerKind": NesTriggerKind [Required],
        }
        optional {
            /// What is selected.
            selection "selection": Option<Range> [Optional],
            /// What is known around the place.
            context "context": Option<NesSuggestContext> [Optional],
        }
    }
}

object! {
    /// One replacement.
    pub struct NesTextEdit {
        required {
            /// What is replaced.
            range "range": Range [Required],
            /// By what.
            new_text "newText": String [Required],
        }
    }
}

object! {
    /// Suggests to change a file.
    pub struct NesEditSuggestion {
        required {
            /// Names the suggestion (NES-14, NES-19).
            id "id": NesSuggestionId [Required],
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
            /// Names the suggestion.
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
            /// Names the suggestion.
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
            /// Names the suggestion.
            id "id": NesSuggestionId [Required],
            /// The file.
            uri "uri": String [Required],
            /// What to search.
            search "search": String [Required],
            /// By what to replace it.
            replace "replace": String [Required],
        }
        optional {
            /// Whether `search` is a regular expression. Guessing would change the wrong text, so it is strict.
            is_regex "isRegex": Option<bool> [Optional],
        }
    }
}

tagged! {
    /// One suggestion; the list is closed. NES-04: all but edits only if the client said so.
    pub enum NesSuggestion by "kind" {
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
    /// What to change next; an empty list is an answer too (NES-20).
    pub struct SuggestNesResponse {
        required {
            /// The suggestions.
            suggestions "suggestions": Vec<NesSuggestion> [Required],
        }
    }
}

object! {
    /// A suggestion was taken (NES-13).
    pub struct AcceptNesNotification {
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The suggestion.
            id "id": NesSuggestionId [Required],
        }
    }
}

closed_enum! {
    /// Why a suggestion was not taken (NES-13).
    pub enum NesRejectReason {
        /// The person said no.
        Rejected = "rejected",
        /// The person went on.
        Ignored = "ignored",
        /// Another one came.
        Replaced = "replaced",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

object! {
    /// A suggestion was not taken (NES-13).
    pub struct RejectNesNotification {
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
    /// Ends a session of suggestions (NES-08).
    pub struct CloseNesRequest {
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
        }
    }
}

object! {
    /// It is ended.
    pub struct CloseNesResponse [nullable] {}
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
