//! Completions at the cursor: commands, their arguments, and files to attach.

use std::fs;
use std::path::{Path, PathBuf};

/// Most directory entries that are read.
const LOOKED_AT: usize = 5000;
/// Most candidates in the menu.
const OFFERED: usize = 200;

/// A candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The text that is inserted.
    pub text: String,
    /// The text in the menu.
    pub label: String,
    /// A short description.
    pub about: String,
}

impl Item {
    /// An item whose label is its text.
    pub fn new(text: impl Into<String>, about: impl Into<String>) -> Item {
        let text = text.into();
        Item { label: text.clone(), text, about: about.into() }
    }
}

/// A menu of candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    /// The start of the text that is replaced.
    pub from: usize,
    /// The candidates.
    pub items: Vec<Item>,
    /// The selected candidate.
    pub chosen: Option<usize>,
}

impl Menu {
    /// Selects the next candidate, or the previous one.
    pub fn step(&mut self, back: bool) {
        let count = self.items.len().max(1);
        self.chosen = Some(match (self.chosen, back) {
            (None, false) => 0,
            (None, true) => count - 1,
            (Some(at), false) => (at + 1) % count,
            (Some(at), true) => (at + count - 1) % count,
        });
    }

    /// Returns the selected candidate.
    pub fn chosen(&self) -> Option<&Item> {
        self.items.get(self.chosen?)
    }

    /// Returns the common prefix of all candidates.
    pub fn common(&self) -> &str {
        let Some(first) = self.items.first() else { return "" };
        let mut common = first.text.as_str();
        for item in &self.items {
            let same = common.char_indices().zip(item.text.chars()).find(|((_, a), b)| a != b);
            let end = same.map_or(common.len().min(item.text.len()), |((at, _), _)| at);
            common = common.get(..end).unwrap_or_default();
        }
        common
    }
}

/// Completions besides files.
pub trait Completer {
    /// Returns the commands, without their slash.
    fn commands(&self) -> Vec<Item>;
    /// Returns the arguments of a command, given the words before the current one.
    fn arguments(&self, command: &str, before: &[&str]) -> Vec<Item>;
}

/// Resolves a path that was typed: `~/` is the home directory, other paths are relative to `cwd`.
pub fn resolve(path: &str, cwd: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")).join(rest),
        None => cwd.join(path),
    }
}

/// Returns the candidates for the text before the cursor.
pub fn complete(text: &str, cursor: usize, words: &impl Completer, cwd: &Path) -> Option<Menu> {
    let before = text.get(..cursor)?;
    if let Some(from) = mention(before) {
        return files(before.get(from..)?, from, cwd);
    }
    let line = before.strip_prefix('/').filter(|line| !line.contains('\n'))?;
    let start = before.rfind(' ').map_or(0, |at| at + 1);
    let items = match line.split_once(' ') {
        None => words
            .commands()
            .into_iter()
            .map(|item| Item { text: format!("/{} ", item.text), label: format!("/{}", item.label), ..item })
            .collect(),
        Some((command, rest)) => {
            let given: Vec<&str> = rest.split(' ').collect();
            let (_, given) = given.split_last()?;
            words.arguments(command, given)
        }
    };
    let typed = before.get(start..).unwrap_or_default();
    let items: Vec<Item> =
        items.into_iter().filter(|item| item.text.starts_with(typed) && item.text != typed).collect();
    (!items.is_empty()).then_some(Menu { from: start, items, chosen: None })
}

/// Returns the start of the `@file` at the end of this text.
pub fn mention(before: &str) -> Option<usize> {
    let at = before.rfind('@')?;
    let starts_word =
        before.get(..at)?.chars().next_back().is_none_or(|c| c.is_whitespace() || "([{<\"'".contains(c));
    let rest = before.get(at + 1..)?;
    let open = match rest.strip_prefix('"') {
        Some(quoted) => !quoted.contains('"'),
        None => !rest.contains(char::is_whitespace),
    };
    (starts_word && open && !rest.contains('\n')).then_some(at)
}

fn files(token: &str, from: usize, cwd: &Path) -> Option<Menu> {
    let typed = token.trim_start_matches('@').trim_start_matches('"');
    let (dir, prefix) = typed.rfind('/').map_or(("", typed), |at| typed.split_at(at + 1));
    let entries = fs::read_dir(resolve(dir, cwd)).ok()?;
    let mut items: Vec<Item> = Vec::new();
    for entry in entries.take(LOOKED_AT).filter_map(Result::ok) {
        // A name that is not UTF-8 cannot be part of a prompt.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let hidden = name.starts_with('.') && !prefix.starts_with('.');
        // Nor can one that would end its own quotes.
        let split = name.contains('"') && name.contains(char::is_whitespace);
        if hidden || split || name.chars().any(char::is_control) || !name.starts_with(prefix) {
            continue;
        }
        let is_dir = fs::metadata(entry.path()).is_ok_and(|meta| meta.is_dir());
        let slash = if is_dir { "/" } else { "" };
        let label = format!("{name}{slash}");
        items.push(Item { label, ..file_item(&format!("{dir}{name}{slash}")) });
    }
    items.sort_by(|a, b| a.label.cmp(&b.label));
    items.truncate(OFFERED);
    (!items.is_empty()).then_some(Menu { from, items, chosen: None })
}

/// Returns the candidate for a path; that of a directory ends with a slash.
pub fn file_item(path: &str) -> Item {
    // A blank follows a file; a directory continues the path.
    let text = match (path.contains(char::is_whitespace), path.ends_with('/')) {
        (true, true) => format!("@\"{path}"),
        (true, false) => format!("@\"{path}\" "),
        (false, true) => format!("@{path}"),
        (false, false) => format!("@{path} "),
    };
    Item { text, label: path.to_owned(), about: String::new() }
}
