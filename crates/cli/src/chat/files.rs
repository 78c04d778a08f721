//! `@`: a list of the project's files that is searched while typing.

use std::path::Path;

use ignore::WalkBuilder;

use super::app::{App, Effect};
use attache_term::editor::complete::{Item, Menu, complete, file_item, mention};
use attache_term::editor::fuzzy;

/// Most files and directories that are listed.
const MAX_FILES: usize = 200_000;
/// Most candidates in the menu.
const OFFERED: usize = 50;

/// Lists files and directories below `cwd`, without hidden ones and those that `.gitignore` names.
/// Blocks.
pub(crate) fn walk(cwd: &Path) -> Vec<String> {
    let entries = WalkBuilder::new(cwd).require_git(false).build().filter_map(Result::ok);
    let named = entries.filter_map(|entry| {
        let path = entry.path().strip_prefix(cwd).ok()?.to_str()?;
        // A prompt cannot name the others.
        let quotable = !(path.contains('"') && path.contains(char::is_whitespace));
        let fits = !path.is_empty() && quotable && !path.chars().any(char::is_control);
        let slash = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
        fits.then(|| format!("{path}{slash}"))
    });
    let mut files: Vec<String> = named.take(MAX_FILES).collect();
    files.sort_unstable();
    files
}

/// The files for `@`.
#[derive(Debug, Default)]
pub(crate) struct Files {
    found: Vec<String>,
    /// Whether the project is being listed, and whether it was listed for the present mention.
    walking: bool,
    fresh: bool,
    /// Whether the user has closed the menu; the next key opens it again.
    dismissed: bool,
}

impl Files {
    pub(super) fn dismiss(&mut self) {
        self.dismissed = true;
    }
}

impl App {
    /// Opens, narrows or closes the menu of the `@file` at the cursor. Returns whether there is
    /// one.
    pub(super) fn mention_menu(&mut self) -> bool {
        let before = self.editor.text().get(..self.editor.cursor()).unwrap_or_default();
        self.files.dismissed = false;
        let Some(from) = mention(before) else {
            self.files.fresh = false;
            return false;
        };
        let typed = before.get(from + 1..).unwrap_or_default().trim_start_matches('"');
        // Paths outside of the project are completed name by name.
        if typed.starts_with(['/', '~', '.']) {
            let menu = complete(self.editor.text(), self.editor.cursor(), &self.state, &self.canvas.cwd);
            self.editor.menu = menu.map(|menu| Menu { chosen: Some(0), ..menu });
            return true;
        }
        if !self.files.fresh && !self.files.walking {
            (self.files.fresh, self.files.walking) = (true, true);
            self.effects.push_back(Effect::ListFiles);
        }
        let found = fuzzy::best(typed, &self.files.found, OFFERED);
        let files = found.into_iter().filter_map(|at| self.files.found.get(at));
        let items: Vec<Item> = files.map(|path| file_item(path)).collect();
        let chosen = Some(0);
        self.editor.menu = (!items.is_empty()).then_some(Menu { from, items, chosen });
        true
    }

    /// Takes the list of files.
    pub(crate) fn files_found(&mut self, files: Vec<String>) {
        self.files.walking = false;
        self.files.found = files;
        if self.files.fresh && !self.files.dismissed && self.questions.is_empty() {
            self.mention_menu();
        }
    }
}
