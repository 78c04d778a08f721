//! Documents as the client edits them: `document/*`. Only in older drafts.

// NES-02, NES-09 to NES-12

use crate::shape::*;
use crate::v1::SessionId;

object! {
    /// A place in a text.
    pub struct Position { // NES-09
        required {
            /// The line, counted from 0.
            line "line": u32 [Required],
            /// The place in the line, counted from 0 in units of the negotiated encoding.
            character "character": u32 [Required], // NES-10
        }
    }
}

object! {
    /// A part of a text.
    pub struct Range {
        required {
            /// Where it begins.
            start "start": Position [Required],
            /// Where it ends; the end is not part of it.
            end "end": Position [Required],
        }
    }
}

object! {
    /// A document was opened.
    pub struct DidOpenDocumentNotification {
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The document.
            uri "uri": String [Required],
            /// Its language.
            language_id "languageId": String [Required],
            /// Its version.
            version "version": i64 [Required], // NES-12
            /// Its text.
            text "text": String [Required],
        }
    }
}

object! {
    /// One change of a document.
    pub struct TextDocumentContentChangeEvent { // NES-11
        required {
            /// The new text, of the range or of the whole document.
            text "text": String [Required],
        }
        optional {
            /// The replaced range; absent means the whole document. Strict: a lost range would lose
            /// the text.
            range "range": Option<Range> [Optional],
        }
    }
}

object! {
    /// A document was changed. One malformed change refuses them all: the texts would drift apart.
    pub struct DidChangeDocumentNotification { // NES-11
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The document.
            uri "uri": String [Required],
            /// Its version after the changes.
            version "version": i64 [Required], // NES-12
            /// The changes, in order.
            content_changes "contentChanges": Vec<TextDocumentContentChangeEvent> [Required],
        }
    }
}

object! {
    /// A document was closed.
    pub struct DidCloseDocumentNotification {
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The document.
            uri "uri": String [Required],
        }
    }
}

object! {
    /// A document was saved.
    pub struct DidSaveDocumentNotification {
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The document.
            uri "uri": String [Required],
        }
    }
}

object! {
    /// A document has the focus now.
    pub struct DidFocusDocumentNotification { // NES-15
        required {
            /// The session of suggestions.
            session_id "sessionId": SessionId [Required],
            /// The document.
            uri "uri": String [Required],
            /// Its version.
            version "version": i64 [Required],
            /// Where the cursor is.
            position "position": Position [Required],
            /// The visible range.
            visible_range "visibleRange": Range [Required],
        }
    }
}

crate::notifications! {
    "document/didOpen": DidOpenDocumentNotification,
    "document/didChange": DidChangeDocumentNotification,
    "document/didClose": DidCloseDocumentNotification,
    "document/didSave": DidSaveDocumentNotification,
    "document/didFocus": DidFocusDocumentNotification,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn positions_count_from_zero_and_never_below() {
        // shows NES-09
        let read = serde_json::from_str::<Position>;
        assert_eq!(read(r#"{"line":0,"character":0}"#).unwrap(), Position::new(0u32, 0u32));
        assert!(read(r#"{"line":-1,"character":0}"#).is_err());
        assert!(read("[0,0]").is_err());
    }

    #[test]
    fn a_change_is_never_half_read() {
        // shows NES-11
        let read = |changes: &str| {
            let text = format!(r#"{{"sessionId":"n","uri":"file:///a","version":1{changes}}}"#);
            serde_json::from_str::<DidChangeDocumentNotification>(&text)
        };
        let whole = read(r#","contentChanges":[{"text":"x","range":null}]"#).unwrap();
        assert_eq!(whole.content_changes, [TextDocumentContentChangeEvent::new("x")]);
        for bad in
            ["", r#","contentChanges":null"#, r#","contentChanges":[{"text":"x","range":{"start":1}}]"#]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
