//! What could stand where the cursor is: commands and their arguments, files to attach.

use std::fs;
use std::path::{Path, PathBuf};

/// Entries of a directory that are looked at.
const LOOKED_AT: usize = 5000;
/// Candidates that are offered.
const OFFERED: usize = 200;

/// Something to complete to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What is written.
    pub text: String,
    /// What is shown.
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

/// Several ways to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    /// Where the text begins that is replaced.
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

    /// What all of them begin with.
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

/// What can be completed besides files.
pub trait Words {
    /// The commands, without their slash.
    fn commands(&self) -> Vec<Item>;
    /// The arguments of a command, given the words before the one that is being written.
    fn arguments(&self, command: &str, before: &[&str]) -> Vec<Item>;
}

/// Resolves a path that was typed: `~/` is the home directory, other paths are relative to `cwd`.
pub fn resolve(path: &str, cwd: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")).join(rest),
        None => cwd.join(path),
    }
}

/// The candidates for what stands before the cursor.
pub fn complete(text: &str, cursor: usize, words: &impl Words, cwd: &Path) -> Option<Menu> {
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

/// Where the mention of a file begins that the cursor stands in.
fn mention(before: &str) -> Option<usize> {
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
        // A name that is not text cannot be written into a prompt.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let hidden = name.starts_with('.') && !prefix.starts_with('.');
        // Nor one that would end its own quotation.
        let split = name.contains('"') && name.contains(char::is_whitespace);
        if hidden || split || name.chars().any(char::is_control) || !name.starts_with(prefix) {
            continue;
        }
        let is_dir = fs::metadata(entry.path()).is_ok_and(|meta| meta.is_dir());
        items.push(file_item(dir, &name, is_dir));
    }
    items.sort_by(|a, b| a.label.cmp(&b.label));
    items.truncate(OFFERED);
    (!items.is_empty()).then_some(Menu { from, items, chosen: None })
}

fn file_item(dir: &str, name: &str, is_dir: bool) -> Item {
    let slash = if is_dir { "/" } else { "" };
    let path = format!("{dir}{name}{slash}");
    // Behind a file the text goes on, behind a directory the path does.
    let text = match (path.contains(char::is_whitespace), is_dir) {
        (true, true) => format!("@\"{path}"),
        (true, false) => format!("@\"{path}\" "),
        (false, true) => format!("@{path}"),
        (false, false) => format!("@{path} "),
    };
    Item { text, label: format!("{name}{slash}"), about: String::new() }
}
