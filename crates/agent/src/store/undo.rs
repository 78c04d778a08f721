//! Reverts the file changes of the last turn.
//!
//! No path may contain links: a command may have replaced a file or a directory with one to
//! redirect a write out of the project.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use attache_host::files::{FileError, Jail};

use super::files::has_state;
use super::{Change, Entry, FileState, Mark, Store, StoreError};

/// Why nothing was reverted.
#[derive(Debug)]
pub enum UndoError {
    /// No turn has changed a file.
    Nothing,
    /// These files changed after the turn; reverting would lose that.
    ChangedSince(Vec<PathBuf>),
    /// A file cannot be restored. Files before it are restored; another attempt continues.
    Failed(PathBuf, io::Error),
    /// An error of the store.
    Store(StoreError),
}

impl fmt::Display for UndoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UndoError::Nothing => f.write_str("there is nothing to revert"),
            UndoError::ChangedSince(paths) => {
                f.write_str("these files have changed since:")?;
                paths.iter().try_for_each(|path| write!(f, " {}", path.display()))
            }
            UndoError::Failed(path, error) => {
                write!(f, "cannot restore {}: {error}; fix that and enter /undo again", path.display())
            }
            UndoError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UndoError {}

impl From<StoreError> for UndoError {
    fn from(error: StoreError) -> Self {
        UndoError::Store(error)
    }
}

/// A file's state before the turn and after it.
struct FileChange {
    before: Option<FileState>,
    after: Option<FileState>,
    new_directories: u32,
}

/// The changes of a turn.
type FileChanges = BTreeMap<PathBuf, FileChange>;

impl Store {
    /// Reverts the file changes of the last turn that has any, and returns the paths. Nothing is
    /// reverted if a file has changed since; after a crash another attempt continues.
    pub fn undo(&self, session: &str) -> Result<Vec<PathBuf>, UndoError> {
        let (turn, steps) = self.last_changes(session)?.ok_or(UndoError::Nothing)?;
        let jail = Jail::without_links();
        let mut changed = Vec::new();
        for (path, step) in &steps {
            let is = |state: &Option<FileState>| {
                has_state(&jail, path, state.as_ref()).map_err(|error| UndoError::Failed(path.clone(), error))
            };
            if !is(&step.after)? && !is(&step.before)? {
                changed.push(path.clone());
            }
        }
        if !changed.is_empty() {
            return Err(UndoError::ChangedSince(changed));
        }
        for (path, step) in &steps {
            let failed = |error: FileError| UndoError::Failed(path.clone(), io::Error::other(error));
            match &step.before {
                Some(state) => {
                    let bytes = self.blob(session, &state.hash)?.ok_or_else(|| {
                        StoreError::Damaged(format!("the old content of {} is missing", path.display()))
                    })?;
                    jail.restore(path, &bytes, state.mode.unwrap_or(0o644)).map_err(failed)?;
                }
                None => remove(&jail, path, step.new_directories).map_err(failed)?,
            }
        }
        self.append(session, &[Entry::Undone { turn }])?;
        Ok(steps.into_keys().collect())
    }

    fn last_changes(&self, session: &str) -> Result<Option<(i64, FileChanges)>, StoreError> {
        let mut turns: BTreeMap<i64, Vec<Change>> = BTreeMap::new();
        let mut turn = 0;
        // The list of files of a command without a logged end.
        let mut open: Option<(i64, String)> = None;
        for logged in self.read(session)? {
            match logged.entry {
                Entry::Mark(Mark::Began) => turn = logged.seq,
                Entry::Change(change) => turns.entry(turn).or_default().push(change),
                Entry::Snapshot { list } => open = Some((turn, list)),
                Entry::Settled {} => open = None,
                Entry::Undone { turn: done } => {
                    turns.remove(&done);
                    open = open.filter(|(at, _)| *at != done);
                }
                _ => {}
            }
        }
        if let Some((at, list)) = open {
            // Not if later turns have changed files, because the list does not contain those
            // changes.
            if turns.keys().all(|turn| *turn <= at) {
                turns.entry(at).or_default().extend(self.since(session, &list)?);
            }
        }
        Ok(turns
            .into_iter()
            .rev()
            .map(|(turn, changes)| (turn, merge(changes)))
            .find(|(_, steps)| !steps.is_empty()))
    }
}

/// The first `before` and the last `after` of every file.
fn merge(changes: Vec<Change>) -> FileChanges {
    let mut steps = FileChanges::new();
    for change in changes {
        let step = steps.entry(change.path).or_insert(FileChange {
            before: change.before,
            after: None,
            new_directories: change.new_directories,
        });
        step.after = change.after;
    }
    steps.retain(|_, step| step.before != step.after);
    steps
}

/// Removes a new file, and the directories that were created for it while they are empty.
fn remove(jail: &Jail, path: &Path, new_directories: u32) -> Result<(), FileError> {
    match jail.remove(path) {
        Ok(()) | Err(FileError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    for directory in path.ancestors().skip(1).take(new_directories as usize) {
        match jail.remove_dir(directory) {
            // A crash may have come between two of them.
            Ok(()) | Err(FileError::NotFound(_)) => {}
            Err(_) => break,
        }
    }
    Ok(())
}
