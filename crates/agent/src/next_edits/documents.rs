//! The documents of a client's editor in their present state.

use std::collections::{HashMap, VecDeque};

use attache::agent::DocumentEvent;
use attache::wire::v1::{
    DidChangeDocumentNotification, PositionEncodingKind, TextDocumentContentChangeEvent,
};

use super::position::offset;

/// The most changes that are remembered.
const MAX_CHANGES: usize = 12;
/// The longest text of one change.
const MAX_TEXT: usize = 400;

/// The documents of one NES session.
pub(super) struct Documents {
    encoding: PositionEncodingKind,
    open: HashMap<String, Document>,
    changes: VecDeque<Change>,
}

/// One open document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) language: String,
    pub(super) version: i64,
    pub(super) text: String,
}

/// A change by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) uri: String,
    pub(super) before: String,
    pub(super) after: String,
}

impl Documents {
    pub(super) fn new(encoding: PositionEncodingKind) -> Self {
        Documents { encoding, open: HashMap::new(), changes: VecDeque::new() }
    }

    pub(super) fn encoding(&self) -> PositionEncodingKind {
        self.encoding
    }

    pub(super) fn get(&self, uri: &str) -> Option<&Document> {
        self.open.get(uri)
    }

    /// The user's last changes, oldest first.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter()
    }

    pub(super) fn take(&mut self, event: DocumentEvent) {
        match event {
            DocumentEvent::Opened(opened) => {
                let document =
                    Document { language: opened.language_id, version: opened.version, text: opened.text };
                self.open.insert(opened.uri, document);
            }
            DocumentEvent::Changed(changed) => self.change(changed),
            DocumentEvent::Closed(closed) => {
                self.open.remove(&closed.uri);
            }
            _ => {}
        }
    }

    /// Applies a change. If it does not fit, our text differs from the editor's, and the document
    /// is forgotten until it is opened again.
    fn change(&mut self, changed: DidChangeDocumentNotification) {
        let Some(mut document) = self.open.remove(&changed.uri) else { return };
        if changed.version <= document.version {
            // Our text is newer.
            self.open.insert(changed.uri, document);
            return;
        }
        for change in changed.content_changes {
            let Some(made) = apply(&mut document.text, change, self.encoding) else { return };
            self.remember(&changed.uri, made);
        }
        document.version = changed.version;
        self.open.insert(changed.uri, document);
    }

    /// Remembers a change; consecutive keystrokes are one change.
    fn remember(&mut self, uri: &str, (before, after): (String, String)) {
        if let Some(last) = self.changes.back_mut()
            && last.uri == uri
            && before.is_empty()
            && after.len() <= 2
            && last.after.len() < MAX_TEXT
            && !last.after.ends_with('\n')
        {
            last.after.push_str(&after);
            return;
        }
        let short = |text: String| text.chars().take(MAX_TEXT).collect();
        self.changes.push_back(Change { uri: uri.to_owned(), before: short(before), after: short(after) });
        if self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }
}

/// Replaces a range or the whole text. Returns the old and the new text.
// NES-11
fn apply(
    text: &mut String,
    change: TextDocumentContentChangeEvent,
    encoding: PositionEncodingKind,
) -> Option<(String, String)> {
    let Some(range) = change.range else {
        let before = std::mem::replace(text, change.text);
        return Some(differing(&before, text));
    };
    let (start, end) = (offset(text, &range.start, encoding)?, offset(text, &range.end, encoding)?);
    let before = text.get(start..end)?.to_owned();
    text.replace_range(start..end, &change.text);
    Some((before, change.text))
}

/// The lines between the common start and the common end of two texts.
fn differing(one: &str, other: &str) -> (String, String) {
    let (a, b): (Vec<&str>, Vec<&str>) =
        (one.split_inclusive('\n').collect(), other.split_inclusive('\n').collect());
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    (a[head..a.len() - tail].concat(), b[head..b.len() - tail].concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use attache::wire::v1::{DidOpenDocumentNotification, Position, Range};

    use super::*;

    fn opened(text: &str) -> Documents {
        let mut documents = Documents::new(PositionEncodingKind::Utf16);
        documents.take(DocumentEvent::Opened(DidOpenDocumentNotification::new(
            "n",
            "file:///a",
            "rust",
            1,
            text,
        )));
        documents
    }

    fn change(documents: &mut Documents, version: i64, range: Option<[u32; 4]>, text: &str) {
        let mut event = TextDocumentContentChangeEvent::new(text);
        event.range = range.map(|[a, b, c, d]| Range::new(Position::new(a, b), Position::new(c, d)));
        documents.take(DocumentEvent::Changed(DidChangeDocumentNotification::new(
            "n",
            "file:///a",
            version,
            vec![event],
        )));
    }

    #[test]
    fn changes_are_followed_in_both_ways() {
        // shows NES-11
        let mut documents = opened("fn a() {}\nfn b() {}\n");
        change(&mut documents, 2, Some([1, 3, 1, 4]), "😀c");
        assert_eq!(documents.get("file:///a").unwrap().text, "fn a() {}\nfn 😀c() {}\n");
        change(&mut documents, 3, Some([1, 5, 1, 6]), "");
        assert_eq!(documents.get("file:///a").unwrap().text, "fn a() {}\nfn 😀() {}\n");
        change(&mut documents, 4, None, "fn a() {}\nwhole\n");
        let last = documents.changes().last().unwrap();
        assert_eq!((last.before.as_str(), last.after.as_str()), ("fn 😀() {}\n", "whole\n"));
    }

    #[test]
    fn outdated_and_invalid_changes_do_no_harm() {
        let mut documents = opened("one\n");
        change(&mut documents, 1, None, "older");
        assert_eq!(documents.get("file:///a").unwrap().text, "one\n");
        change(&mut documents, 2, Some([9, 0, 9, 1]), "x");
        assert!(documents.get("file:///a").is_none());
    }

    #[test]
    fn keystrokes_are_one_change() {
        let mut documents = opened("\n");
        for (version, (column, key)) in (2..).zip([(0, "a"), (1, "b"), (2, "c")]) {
            change(&mut documents, version, Some([0, column, 0, column]), key);
        }
        assert_eq!(documents.changes().map(|change| change.after.as_str()).collect::<Vec<_>>(), ["abc"]);
    }
}
