//! The last turn's changes of files, taken back.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::files::state_of;
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
                write!(f, "{} cannot be restored: {error}; mend that and say /undo again", path.display())
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
        let mut foreign = Vec::new();
        for (path, step) in &steps {
            let now = state_of(path).map_err(|error| UndoError::Failed(path.clone(), error))?;
            if !same_bytes(now.as_ref(), step.after.as_ref())
                && !same_bytes(now.as_ref(), step.before.as_ref())
            {
                foreign.push(path.clone());
            }
        }
        if !foreign.is_empty() {
            return Err(UndoError::ChangedSince(foreign));
        }
        for (path, step) in &steps {
            let failed = |error| UndoError::Failed(path.clone(), error);
            match &step.before {
                Some(state) => {
                    let bytes = self.kept(session, &state.hash)?.ok_or_else(|| {
                        StoreError::Damaged(format!("the old {} is missing", path.display()))
                    })?;
                    restore(path, &bytes, state.mode).map_err(failed)?;
                }
                None => remove(path, step.new_directories).map_err(failed)?,
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

fn same_bytes(one: Option<&FileState>, other: Option<&FileState>) -> bool {
    one.map(|state| &state.hash) == other.map(|state| &state.hash)
}

/// Puts a file back whole or not at all.
fn restore(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory)?;
    // A name that says whose it is, should this process be killed now; see `leftovers.rs`.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let beside = directory.join(format!(".attache-{}-undo{number}.tmp", std::process::id()));
    let written = write_beside(&beside, bytes, mode).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_beside(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    if let Some(mode) = mode {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = mode;
    file.sync_all()
}

/// Removes a file that was not there, and the directories that were made for it, as long as they are empty.
fn remove(path: &Path, new_directories: u32) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for directory in path.ancestors().skip(1).take(new_directories as usize) {
        match fs::remove_dir(directory) {
            Ok(()) => {}
            // A crash may have come between two of them.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => break,
        }
    }
    Ok(())
}
