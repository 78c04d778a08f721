//! Parts of a change: one hunk of a file is taken back, also if the user has changed other parts of
//! it since.

use std::path::Path;

use attache_term::render::hunk::{Hunk, hunks, revert};

use super::database::Store;
use super::state::{State, hash, look};
use super::turns::Change;
use super::undo::Step;
use super::{Outcome, Part, Parts};
use crate::error::{Failure, Result};

/// The largest file whose parts are listed.
const MAX_TEXT: u64 = 2 << 20;

impl Store {
    /// The last change of a file that was not undone. The end of its path is enough.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn parts(&mut self, conversation: &str, name: &str) -> Result<Parts> {
        self.checkpoints(conversation)?;
        let changes = self.changes(conversation, 0, i64::MAX)?;
        let path = match changes.iter().rev().find(|change| change.path.ends_with(name)) {
            Some(change) => change.path.clone(),
            None => {
                return Err(Failure::runtime(format_args!("{name}: no change of this conversation to undo")));
            }
        };
        let change = self.last_change(conversation, &path)?;
        let (old, new) = (self.text(&change.old)?, self.text(&change.new)?);
        let is_text = matches!((&change.old, &change.new), (State::File { .. }, State::File { .. }));
        let parts = match (is_text, &old, &new) {
            (true, Some(old), Some(new)) => hunks(old, new).iter().map(|hunk| part(hunk, old, new)).collect(),
            _ => Vec::new(),
        };
        Ok(Parts {
            change: change.id,
            path: change.path,
            old: old.unwrap_or_default(),
            new: new.unwrap_or_default(),
            parts,
            doubt: change.doubt,
        })
    }

    fn last_change(&self, conversation: &str, path: &Path) -> Result<Change> {
        let changes = self.changes(conversation, 0, i64::MAX)?;
        changes.into_iter().rev().find(|change| change.path == path).ok_or_else(|| {
            Failure::runtime(format_args!(
                "{}: no turn of this conversation has a change to undo",
                path.display()
            ))
        })
    }

    fn text(&self, state: &State) -> Result<Option<String>> {
        let content = self.content(state)?.filter(|content| content.len() as u64 <= MAX_TEXT);
        Ok(content.and_then(|content| String::from_utf8(content).ok()))
    }

    /// Takes back one part of a change. It is refused if the change is not `expected` any more, or
    /// the user has changed these lines.
    ///
    /// # Errors
    /// If it cannot be taken back.
    pub(crate) fn undo_part(
        &mut self,
        conversation: &str,
        expected: &Parts,
        index: usize,
    ) -> Result<Outcome> {
        let change = self.last_change(conversation, &expected.path)?;
        let path = &change.path;
        let gone =
            || Failure::runtime(format_args!("{}: its changes are not the same any more", path.display()));
        let (Some(old), Some(new)) = (self.text(&change.old)?, self.text(&change.new)?) else {
            return Err(gone());
        };
        if change.id != expected.change || old != expected.old || new != expected.new {
            return Err(gone());
        }
        let all = hunks(&old, &new);
        let hunk = all.get(index).ok_or_else(gone)?;
        let (from, content) = look(&self.jail, path, MAX_TEXT);
        let now = content.and_then(|content| String::from_utf8(content).ok());
        let (State::File { mode, .. }, Some(now)) = (&from, now) else {
            return Err(Failure::runtime(format_args!("{}: it is no text any more", path.display())));
        };
        let Some(reverted) = revert(&old, &new, hunk, &now) else {
            return Err(Failure::runtime(format_args!("{}: these lines were changed since", path.display())));
        };
        let to = State::File { hash: self.keep(reverted.as_bytes())?, mode: *mode };
        // What the turn left, without this part. Changes of the user are no part of it.
        let rest = revert(&old, &new, hunk, &new).unwrap_or_default();
        let State::File { mode: left_mode, .. } = change.new else { return Err(gone()) };
        let left = State::File { hash: hash(rest.as_bytes()), mode: left_mode };
        self.keep(rest.as_bytes())?;
        let undone = left == change.old;
        let step = Step {
            path: path.clone(),
            from: from.clone(),
            to,
            directories: 0,
            changes: vec![(change.id, left, undone)],
        };
        let mut outcome = Outcome::default();
        self.apply(conversation, vec![step], &mut outcome)?;
        Ok(outcome)
    }

    /// Takes back the last change of a file, also one that may not be the agent's: the user has
    /// chosen it.
    ///
    /// # Errors
    /// If it was changed since, or cannot be made again.
    pub(crate) fn undo_file(&mut self, conversation: &str, path: &Path) -> Result<Outcome> {
        let change = self.last_change(conversation, path)?;
        let now = self.current(path, &[&change.old, &change.new]);
        let mut outcome = Outcome::default();
        if now != change.new && now != change.old {
            let why = "changed since; its parts can be taken back one by one";
            outcome.left.push((change.path, why.to_owned()));
            return Ok(outcome);
        }
        self.check_kept(&change.old)
            .map_err(|why| Failure::runtime(format_args!("{}: {why}", path.display())))?;
        let step = Step {
            path: change.path,
            from: now,
            to: change.old,
            directories: change.directories,
            changes: vec![(change.id, change.new, true)],
        };
        self.apply(conversation, vec![step], &mut outcome)?;
        Ok(outcome)
    }
}

fn part(hunk: &Hunk, old: &str, new: &str) -> Part {
    let lines = |text: &str, range: &std::ops::Range<usize>| -> Option<String> {
        let mut lines = text.lines().skip(range.start).take(range.len());
        lines.find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
    };
    let text = lines(new, &hunk.new).or_else(|| lines(old, &hunk.old)).unwrap_or_default();
    Part { line: hunk.new.start + 1, removed: hunk.old.len(), added: hunk.new.len(), text }
}
