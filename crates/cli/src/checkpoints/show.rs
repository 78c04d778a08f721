//! The changes of a conversation as `/diff` shows them: what the files were before its turns, and
//! what they are now.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::FileDiff;
use super::database::Store;
use super::state::{State, look};
use super::turns::Change;
use crate::error::Result;

/// Bytes of text of all files; of the others only the names are shown.
const MAX_TEXT: usize = 8 << 20;
const MAX_FILE: u64 = 2 << 20;

impl Store {
    /// The files that the turns of a conversation have changed and that are not again what they
    /// were before.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn diff(&mut self, conversation: &str) -> Result<Vec<FileDiff>> {
        let mut changes = self.changes(conversation, 0, i64::MAX)?;
        changes.extend(self.running()?);
        let mut files: BTreeMap<PathBuf, (Change, State)> = BTreeMap::new();
        for change in changes {
            let new = change.new.clone();
            files.entry(change.path.clone()).or_insert((change, State::Missing)).1 = new;
        }
        let mut room = MAX_TEXT;
        let mut shown = Vec::new();
        for (path, (first, left)) in files {
            if self.current(&path, &[&first.old]) == first.old {
                continue;
            }
            let (now, content) = look(&self.jail, &path, MAX_FILE);
            let mut notes: Vec<String> = first.doubt.into_iter().collect();
            if self.current(&path, &[&left]) != left {
                notes.push("changed since".to_owned());
            }
            let mut text = |state: &State, content: Option<Vec<u8>>| -> Option<String> {
                match state {
                    State::Missing => return None,
                    State::Link(target) => return Some(format!("-> {}\n", target.display())),
                    _ => {}
                }
                let kept = content.filter(|content| content.len() <= room);
                room -= kept.as_ref().map_or(0, Vec::len);
                let text = kept.and_then(|content| String::from_utf8(content).ok());
                if text.is_none() {
                    notes.push("not shown: it is no text, or too large".to_owned());
                }
                Some(text.unwrap_or_default())
            };
            let old = text(&first.old, self.content(&first.old)?);
            let new = text(&now, content);
            if let (State::File { mode: old, .. }, State::File { mode: new, .. }) = (&first.old, &now)
                && old != new
            {
                notes.push(format!("mode {old:o} to {new:o}"));
            }
            notes.dedup();
            let note = (!notes.is_empty()).then(|| notes.join(", "));
            shown.push(FileDiff { path, old, new, note });
        }
        Ok(shown)
    }
}
