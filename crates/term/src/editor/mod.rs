//! A line editor with the usual keys, history and completion. It does not touch the terminal.

pub mod complete;
pub mod fuzzy;
pub mod history;
mod pastes;
mod render;
mod undo;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::complete::Menu;
use self::history::History;
use self::pastes::Pastes;
use self::undo::Undo;
use crate::render::text::char_width;

/// The result of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionResult {
    /// The key has no meaning here.
    Ignored,
    /// The text, the cursor or the menu changed.
    Changed,
    /// The text was submitted; the editor is empty.
    Submit(String),
    /// Completion was requested.
    Complete,
}

/// A line editor: text, cursor, history, menu of completions.
#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// The byte offset of the cursor.
    at: usize,
    /// The text that was cut last.
    cut: String,
    /// Prompts that were sent before.
    pub history: History,
    /// The index of the recalled entry, and the text before the recall.
    recalled: Option<(usize, String)>,
    search: Option<Search>,
    /// The open menu of completions.
    pub menu: Option<Menu>,
    undo: Undo,
    pastes: Pastes,
}

/// A search in the history.
#[derive(Debug, Default)]
struct Search {
    wanted: String,
    found: Option<usize>,
}

impl Editor {
    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the byte offset of the cursor.
    pub fn cursor(&self) -> usize {
        self.at
    }

    /// Returns whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the text and moves the cursor to its end.
    pub fn set(&mut self, text: impl Into<String>) {
        self.text = text.into();
        self.at = self.text.len();
        self.menu = None;
    }

    /// Replaces the text, as a change that can be taken back.
    pub fn replace(&mut self, text: &str) {
        self.undo.changed((self.text.clone(), self.at), false);
        self.set(text);
    }

    /// Takes the text, with long pastes in full, and leaves the editor empty.
    pub fn take(&mut self) -> String {
        let before = (self.text.clone(), self.at);
        self.at = 0;
        self.recalled = None;
        self.menu = None;
        let text = self.pastes.expand(&std::mem::take(&mut self.text));
        self.undo.changed(before, false);
        text
    }

    /// An editor that shows a long paste as a chip, `[paste 1: 500 lines]`, until the text is
    /// taken.
    #[must_use]
    pub fn with_chips(mut self) -> Editor {
        self.pastes.fold = true;
        self
    }

    /// Replaces each chip by the text that was pasted.
    pub fn expand(&mut self) {
        let text = self.pastes.expand(&self.text);
        self.set(text);
    }

    /// Inserts pasted text. Line breaks are part of it and submit nothing.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        let before = (self.text.clone(), self.at);
        match self.pastes.chip(&text) {
            Some(chip) => self.insert(&chip),
            None => self.insert(&text),
        }
        self.undo.changed(before, false);
        self.menu = None;
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
        self.recalled = None;
    }

    /// Replaces the text from `from` to the cursor.
    pub fn replace_back(&mut self, from: usize, text: &str) {
        if self.text.is_char_boundary(from) && from <= self.at {
            self.text.replace_range(from..self.at, text);
            self.at = from + text.len();
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> ActionResult {
        if self.search.is_some()
            && let Some(did) = self.search_key(key)
        {
            return did;
        }
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        // Terminals report Ctrl-_ and Ctrl-/ as Ctrl-7 as well.
        if ctrl && matches!(key.code, KeyCode::Char('_' | '/' | '7')) {
            return self.take_back();
        }
        let before = (self.text.clone(), self.at);
        let did = self.edit_key(key);
        if did == ActionResult::Changed {
            self.menu = None;
            if self.text != before.0 {
                let typed = matches!(key.code, KeyCode::Char(c) if !ctrl && !c.is_whitespace());
                self.undo.changed(before, typed);
            }
        }
        did
    }

    /// Takes back the last change of the text.
    fn take_back(&mut self) -> ActionResult {
        let Some((text, at)) = self.undo.take_back() else { return ActionResult::Ignored };
        (self.text, self.at) = (text, at);
        self.menu = None;
        self.recalled = None;
        ActionResult::Changed
    }

    /// Returns whether the history is being searched.
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    fn edit_key(&mut self, key: KeyEvent) -> ActionResult {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.insert("\n"),
            KeyCode::Char('j') if ctrl => self.insert("\n"),
            KeyCode::Enter => return self.enter(),
            KeyCode::Tab => return ActionResult::Complete,
            KeyCode::Left if ctrl || alt => self.at = self.word_left(),
            KeyCode::Right if ctrl || alt => self.at = self.word_right(),
            KeyCode::Left => self.at = self.left(),
            KeyCode::Right => self.at = self.right(),
            KeyCode::Home => self.at = self.line_start(),
            KeyCode::End => self.at = self.line_end(),
            KeyCode::Up => return self.up(),
            KeyCode::Down => return self.down(),
            KeyCode::Backspace if ctrl || alt => self.cut_to(self.word_left()),
            KeyCode::Backspace => self.remove(self.left()),
            KeyCode::Delete => self.remove(self.right()),
            KeyCode::Char(c) if ctrl => return self.control(c),
            KeyCode::Char('b') if alt => self.at = self.word_left(),
            KeyCode::Char('f') if alt => self.at = self.word_right(),
            KeyCode::Char('d') if alt => self.cut_to(self.word_right()),
            KeyCode::Char('<') if alt => self.at = 0,
            KeyCode::Char('>') if alt => self.at = self.text.len(),
            KeyCode::Char(_) if alt => return ActionResult::Ignored,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Esc if self.menu.is_some() => {}
            _ => return ActionResult::Ignored,
        }
        ActionResult::Changed
    }

    fn control(&mut self, c: char) -> ActionResult {
        match c {
            'a' => self.at = self.line_start(),
            'e' => self.at = self.line_end(),
            'b' => self.at = self.left(),
            'f' => self.at = self.right(),
            'p' => return self.up(),
            'n' => return self.down(),
            'h' => self.remove(self.left()),
            'd' if !self.text.is_empty() => self.remove(self.right()),
            'k' => {
                let end = self.line_end();
                // At the end of a line the line break is cut.
                self.cut_to(if end == self.at { self.right() } else { end });
            }
            'u' => self.cut_to(self.line_start()),
            'w' => self.cut_to(self.blank_left()),
            'y' => {
                let cut = self.cut.clone();
                self.insert(&cut);
            }
            't' => self.transpose(),
            'r' => self.search = Some(Search::default()),
            _ => return ActionResult::Ignored,
        }
        ActionResult::Changed
    }

    fn enter(&mut self) -> ActionResult {
        if self.at == self.text.len() && self.text.ends_with('\\') {
            self.remove(self.left());
            self.insert("\n");
            return ActionResult::Changed;
        }
        if self.text.trim().is_empty() {
            return ActionResult::Changed;
        }
        let text = self.take();
        self.undo = Undo::default();
        self.pastes.clear();
        self.history.add(&text);
        ActionResult::Submit(text)
    }

    fn remove(&mut self, to: usize) {
        let (from, to) = (self.at.min(to), self.at.max(to));
        self.text.replace_range(from..to, "");
        self.at = from;
        self.recalled = None;
    }

    fn cut_to(&mut self, to: usize) {
        let (from, to) = (self.at.min(to), self.at.max(to));
        if from < to {
            self.cut = self.text.get(from..to).unwrap_or_default().to_owned();
            self.remove(if from == self.at { to } else { from });
        }
    }

    fn transpose(&mut self) {
        let right = if self.at == self.text.len() { self.at } else { self.right() };
        self.at = right;
        let middle = self.left();
        self.at = middle;
        let left = self.left();
        let first = self.text.get(left..middle).unwrap_or_default().to_owned();
        let second = self.text.get(middle..right).unwrap_or_default().to_owned();
        self.text.replace_range(left..right, &format!("{second}{first}"));
        self.at = right;
    }

    fn before(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the offset one character back, accents included.
    fn left(&self) -> usize {
        let visible = |c: char| c == '\n' || c == '\t' || char_width(c) > 0;
        self.before().char_indices().rev().find(|(_, c)| visible(*c)).map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        let mut chars = self.after().char_indices().skip(1);
        let next = chars.find(|(_, c)| *c == '\n' || *c == '\t' || char_width(*c) > 0);
        next.map_or(self.text.len(), |(at, _)| self.at + at)
    }

    fn word_left(&self) -> usize {
        let trimmed = self.before().trim_end_matches(|c: char| !c.is_alphanumeric());
        trimmed.trim_end_matches(char::is_alphanumeric).len()
    }

    fn word_right(&self) -> usize {
        let rest = self.after().trim_start_matches(|c: char| !c.is_alphanumeric());
        self.text.len() - rest.trim_start_matches(char::is_alphanumeric).len()
    }

    fn blank_left(&self) -> usize {
        self.before().trim_end().trim_end_matches(|c: char| !c.is_whitespace()).len()
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.after().find('\n').map_or(self.text.len(), |at| self.at + at)
    }

    fn up(&mut self) -> ActionResult {
        let start = self.line_start();
        if start > 0 {
            let column = self.text.get(start..self.at).unwrap_or_default().chars().count();
            self.at = start - 1;
            let above = self.line_start();
            self.at = self.in_line(above, column);
            return ActionResult::Changed;
        }
        let newest = self.history.len();
        let from = self.recalled.as_ref().map_or(newest, |(at, _)| *at);
        if from == 0 {
            return ActionResult::Ignored;
        }
        self.recall(from - 1);
        ActionResult::Changed
    }

    fn down(&mut self) -> ActionResult {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.text.get(self.line_start()..self.at).unwrap_or_default().chars().count();
            self.at = self.in_line(end + 1, column);
            return ActionResult::Changed;
        }
        let Some((at, draft)) = &self.recalled else { return ActionResult::Ignored };
        if at + 1 < self.history.len() {
            self.recall(at + 1);
        } else {
            let draft = draft.clone();
            self.set(draft);
            self.recalled = None;
        }
        ActionResult::Changed
    }

    fn in_line(&self, start: usize, column: usize) -> usize {
        let line = self.text.get(start..).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default();
        start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
    }

    fn recall(&mut self, at: usize) {
        let Some(entry) = self.history.get(at).map(str::to_owned) else { return };
        let draft = self.recalled.take().map_or_else(|| self.text.clone(), |(_, draft)| draft);
        self.set(entry);
        self.recalled = Some((at, draft));
    }

    /// Handles a key of the search. Returns `None` if the search ended and the key is for the
    /// editor.
    fn search_key(&mut self, key: KeyEvent) -> Option<ActionResult> {
        let search = self.search.as_mut()?;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if ctrl => {
                let before = search.found.unwrap_or(self.history.len());
                search.found = self.history.find(&search.wanted, before).or(search.found);
            }
            KeyCode::Char('g' | 'c') if ctrl => self.search = None,
            KeyCode::Esc => self.search = None,
            KeyCode::Char(c) if !ctrl => {
                search.wanted.push(c);
                search.found = self.history.find(&search.wanted, self.history.len());
            }
            KeyCode::Backspace => {
                search.wanted.pop();
                search.found = self.history.find(&search.wanted, self.history.len());
            }
            _ => {
                let found = search.found.and_then(|at| self.history.get(at)).map(str::to_owned);
                self.search = None;
                if let Some(found) = found {
                    self.set(found);
                }
                // Enter accepts the entry without submitting it.
                return (key.code == KeyCode::Enter).then_some(ActionResult::Changed);
            }
        }
        Some(ActionResult::Changed)
    }
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
