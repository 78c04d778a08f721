//! Files as they were: kept before they change, so that a turn can be taken back, also after a crash in its middle.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, params};
use serde_json::{Map, Value, json};

use super::entry::{path_from, path_json, state_from, state_json};
use super::{Change, Entry, FileState, Result, Store, StoreError, known};

/// How much of a project is kept before a command runs.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotLimits {
    /// At most so many files.
    pub files: usize,
    /// None that is larger.
    pub file_bytes: u64,
    /// Not more than this together.
    pub total_bytes: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        SnapshotLimits { files: 20_000, file_bytes: 2 << 20, total_bytes: 64 << 20 }
    }
}

/// The files of a session's roots at one moment, without what the project ignores and what version control keeps for itself.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    files: BTreeMap<PathBuf, Kept>,
    complete: bool,
}

#[derive(Debug, Clone)]
struct Kept {
    state: FileState,
    stamp: Stamp,
}

/// What tells without reading that a file is the same: length and time of its last change.
type Stamp = (u64, Option<std::time::SystemTime>);

impl Snapshot {
    /// Whether every file is in it; a large project has more than the limits allow.
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

impl Store {
    /// Keeps a file as it is and writes down that it is about to become `after` (`None`: to go away).
    ///
    /// # Errors
    /// When it cannot be read or kept: then it must not be changed.
    pub fn about_to_change(&self, session: &str, path: &Path, after: Option<&[u8]>) -> Result<()> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let before = match read_file(&path)? {
            Some((bytes, mode)) => Some(FileState { hash: self.keep(session, &bytes)?, mode }),
            None => None,
        };
        let mode = before.as_ref().and_then(|state| state.mode);
        let after = after.map(|bytes| FileState { hash: hash(bytes), mode });
        let new_directories = path.ancestors().skip(1).take_while(|directory| !directory.exists()).count();
        let new_directories = u32::try_from(new_directories).unwrap_or(u32::MAX);
        self.append(session, &[Entry::Change(Change { path, before, after, new_directories })])
    }

    /// Looks at a file after it was changed: an editor may have written something else than it was given, such as other line ends.
    ///
    /// # Errors
    /// When it cannot be read or written down.
    pub fn changed(&self, session: &str, path: &Path, meant: Option<&[u8]>) -> Result<()> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let now = state_of(&path)?;
        let meant = meant.map(hash);
        if now.as_ref().map(|state| &state.hash) == meant.as_ref() {
            return Ok(());
        }
        let before = meant.map(|hash| FileState { hash, mode: None });
        self.append(session, &[Entry::Change(Change { path, before, after: now, new_directories: 0 })])
    }

    /// Keeps all files of the roots, before a command runs that may change any of them. `last` saves reading what did not change.
    ///
    /// # Errors
    /// When they cannot be kept.
    pub fn snapshot(
        &self,
        session: &str,
        roots: &[PathBuf],
        limits: SnapshotLimits,
        last: Option<&Snapshot>,
    ) -> Result<Snapshot> {
        let mut taken = Snapshot { files: BTreeMap::new(), complete: true };
        let mut total = 0;
        for (path, metadata) in regular_files(roots) {
            total += metadata.len();
            if metadata.len() > limits.file_bytes
                || taken.files.len() >= limits.files
                || total > limits.total_bytes
            {
                total -= metadata.len();
                taken.complete = false;
                continue;
            }
            let stamp = stamp(&metadata);
            let known = last
                .and_then(|last| last.files.get(&path))
                .filter(|kept| kept.stamp == stamp && kept.state.mode == mode_of(&metadata));
            let state = match known {
                Some(kept) => kept.state.clone(),
                // Gone or unreadable since it was listed: nothing to give back.
                None => match fs::read(&path) {
                    Ok(bytes) => FileState { hash: self.keep(session, &bytes)?, mode: mode_of(&metadata) },
                    Err(_) => continue,
                },
            };
            taken.files.insert(path, Kept { state, stamp });
        }
        let list: Vec<Value> = taken
            .files
            .iter()
            .map(|(path, kept)| json!({ "path": path_json(path), "is": state_json(Some(&kept.state)) }))
            .collect();
        let mut head = Map::new();
        head.insert("roots".into(), Value::Array(roots.iter().map(|root| path_json(root)).collect()));
        head.insert("complete".into(), taken.complete.into());
        head.insert("files".into(), list.into());
        let hash = self.keep(session, Value::Object(head).to_string().as_bytes())?;
        self.append(session, &[Entry::Snapshot(hash)])?;
        Ok(taken)
    }

    /// Writes down what a command changed since `before` was taken.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn settle(&self, session: &str, roots: &[PathBuf], before: &Snapshot) -> Result<Vec<PathBuf>> {
        let files = before.files.iter().map(|(path, kept)| (path.clone(), kept.state.clone())).collect();
        let changes = differences(roots, &files, before.complete, |path, metadata| {
            before
                .files
                .get(path)
                .filter(|kept| kept.stamp == stamp(metadata))
                .map(|kept| kept.state.hash.clone())
        });
        let paths = changes.iter().map(|change| change.path.clone()).collect();
        let entries: Vec<Entry> = changes.into_iter().map(Entry::Change).chain([Entry::Settled]).collect();
        self.append(session, &entries)?;
        Ok(paths)
    }

    /// What differs from a list that was kept before a command whose end was never written down.
    pub(super) fn since(&self, session: &str, list: &str) -> Result<Vec<Change>> {
        let text = self
            .kept(session, list)?
            .ok_or_else(|| StoreError::Damaged("a list of files is missing".into()))?;
        let value: Value =
            serde_json::from_slice(&text).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let entries = |name: &str| value.get(name).and_then(Value::as_array).into_iter().flatten();
        let roots: Vec<PathBuf> = entries("roots").filter_map(|root| path_from(Some(root))).collect();
        let files: BTreeMap<PathBuf, FileState> = entries("files")
            .filter_map(|file| Some((path_from(file.get("path"))?, state_from(file.get("is"))?)))
            .collect();
        let complete = value.get("complete").and_then(Value::as_bool).unwrap_or(false);
        Ok(differences(&roots, &files, complete, |_, _| None))
    }

    /// Keeps bytes and gives the name by which they are found again.
    fn keep(&self, session: &str, bytes: &[u8]) -> Result<String> {
        let hash = hash(bytes);
        let connection = self.connection();
        known(&connection, session)?;
        connection
            .prepare_cached(
                "INSERT INTO blob (session, hash, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            )?
            .execute(params![session, hash, bytes])?;
        Ok(hash)
    }

    pub(super) fn kept(&self, session: &str, hash: &str) -> Result<Option<Vec<u8>>> {
        let connection = self.connection();
        let mut select =
            connection.prepare_cached("SELECT bytes FROM blob WHERE session = ?1 AND hash = ?2")?;
        Ok(select.query_row([session, hash], |row| row.get(0)).optional()?)
    }
}

/// What is different on disk from `files`. `unread` may tell the hash of a file without reading it.
fn differences(
    roots: &[PathBuf],
    files: &BTreeMap<PathBuf, FileState>,
    complete: bool,
    unread: impl Fn(&Path, &Metadata) -> Option<String>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut there = std::collections::BTreeSet::new();
    for (path, metadata) in regular_files(roots) {
        let before = files.get(&path);
        // In a project that was not kept as a whole nobody knows whether an unknown file is new.
        if before.is_none() && !complete {
            continue;
        }
        let Some(hash) = unread(&path, &metadata).or_else(|| fs::read(&path).ok().map(|bytes| hash(&bytes)))
        else {
            continue;
        };
        let now = FileState { hash, mode: mode_of(&metadata) };
        if before != Some(&now) {
            changes.push(Change {
                path: path.clone(),
                before: before.cloned(),
                after: Some(now),
                new_directories: 0,
            });
        }
        there.insert(path);
    }
    for (path, before) in files.iter().filter(|(path, _)| !there.contains(*path) && !path.exists()) {
        changes.push(Change {
            path: path.clone(),
            before: Some(before.clone()),
            after: None,
            new_directories: 0,
        });
    }
    changes
}

/// The files below these directories that a project counts as its own.
fn regular_files(roots: &[PathBuf]) -> impl Iterator<Item = (PathBuf, Metadata)> {
    roots.iter().flat_map(|root| crate::project::files(root)).filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        Some((entry.into_path(), metadata))
    })
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

/// Bytes and permissions, or `None` if there is no such file.
fn read_file(path: &Path) -> io::Result<Option<(Vec<u8>, Option<u32>)>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some((fs::read(path)?, mode_of(&metadata)))),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a file", path.display())))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What a file is now.
pub(super) fn state_of(path: &Path) -> io::Result<Option<FileState>> {
    Ok(read_file(path)?.map(|(bytes, mode)| FileState { hash: hash(&bytes), mode }))
}

#[cfg(unix)]
fn mode_of(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(metadata.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode_of(_: &Metadata) -> Option<u32> {
    None
}

fn hash(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
