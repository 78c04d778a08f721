//! The last turn's changes of files, taken back.
//!
//! Every file is reached by a walk that refuses links: commands of the turn, or of somebody else, may have put one in the
//! place of a file or a directory, to have something outside of the project written.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use attache_host::files::{FileError, Jail};

use super::files::is_now;
use super::{Change, Entry, FileState, Mark, Store, StoreError};

/// What was taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undo {
    /// The files that are as they were.
    pub files: Vec<PathBuf>,
}

/// Why nothing was taken back.
#[derive(Debug)]
pub enum UndoError {
    /// No turn that is left has changed a file.
    Nothing,
    /// These files changed after the turn; taking the turn back would lose that.
    ChangedSince(Vec<PathBuf>),
    /// A file cannot be restored. What was restored before it stays so; asking again goes on.
    Failed(PathBuf, io::Error),
    /// The store.
    Store(StoreError),
}

impl fmt::Display for UndoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UndoError::Nothing => f.write_str("there is nothing to take back"),
            UndoError::ChangedSince(paths) => {
                f.write_str("not taken back, because these files have changed since:")?;
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

/// One file: as it was before the turn, and as the turn left it.
struct Step {
    before: Option<FileState>,
    after: Option<FileState>,
    new_directories: u32,
}

/// What a turn did, file by file.
type Steps = BTreeMap<PathBuf, Step>;

impl Store {
    /// Takes back the file changes of the last turn that has any. All or nothing as far as files changed by others go; a
    /// crash in the middle is mended by asking again.
    ///
    /// # Errors
    /// See [`UndoError`].
    pub fn undo(&self, session: &str) -> Result<Undo, UndoError> {
        let (turn, steps) = self.last_changes(session)?.ok_or(UndoError::Nothing)?;
        let jail = Jail::without_links();
        let mut foreign = Vec::new();
        for (path, step) in &steps {
            let is = |state: &Option<FileState>| {
                is_now(&jail, path, state.as_ref()).map_err(|error| UndoError::Failed(path.clone(), error))
            };
            if !is(&step.after)? && !is(&step.before)? {
                foreign.push(path.clone());
            }
        }
        if !foreign.is_empty() {
            return Err(UndoError::ChangedSince(foreign));
        }
        for (path, step) in &steps {
            let failed = |error: FileError| UndoError::Failed(path.clone(), io::Error::other(error));
            match &step.before {
                Some(state) => {
                    let bytes = self.kept(session, &state.hash)?.ok_or_else(|| {
                        StoreError::Damaged(format!("the old {} is missing", path.display()))
                    })?;
                    jail.restore(path, &bytes, state.mode.unwrap_or(0o644)).map_err(failed)?;
                }
                None => remove(&jail, path, step.new_directories).map_err(failed)?,
            }
        }
        self.append(session, &[Entry::Undone(turn)])?;
        Ok(Undo { files: steps.into_keys().collect() })
    }

    fn last_changes(&self, session: &str) -> Result<Option<(i64, Steps)>, StoreError> {
        let mut turns: BTreeMap<i64, Vec<Change>> = BTreeMap::new();
        let mut turn = 0;
        // A list of files whose command has not been seen to end.
        let mut open: Option<(i64, String)> = None;
        for logged in self.read(session)? {
            match logged.entry {
                Entry::Mark(Mark::Began) => turn = logged.seq,
                Entry::Change(change) => turns.entry(turn).or_default().push(change),
                Entry::Snapshot(list) => open = Some((turn, list)),
                Entry::Settled => open = None,
                Entry::Undone(done) => {
                    turns.remove(&done);
                    open = open.filter(|(at, _)| *at != done);
                }
                _ => {}
            }
        }
        if let Some((at, list)) = open {
            // Only if nothing came after it: later turns have changed files that the list does not know about.
            if turns.keys().all(|turn| *turn <= at) {
                turns.entry(at).or_default().extend(self.since(session, &list)?);
            }
        }
        Ok(turns
            .into_iter()
            .rev()
            .map(|(turn, changes)| (turn, fold(changes)))
            .find(|(_, steps)| !steps.is_empty()))
    }
}

/// The first `before` and the last `after` of every file.
fn fold(changes: Vec<Change>) -> Steps {
    let mut steps = Steps::new();
    for change in changes {
        let step = steps.entry(change.path).or_insert(Step {
            before: change.before,
            after: None,
            new_directories: change.new_directories,
        });
        step.after = change.after;
    }
    steps.retain(|_, step| step.before != step.after);
    steps
}

/// Removes a file that was not there, and the directories that were made for it, as long as they are empty.
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
