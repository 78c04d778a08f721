//! Files as they were: kept before they change, so that a turn can be taken back, also after a crash in its middle.
//!
//! Paths are recorded free of links, and whatever is read here is opened by a walk that refuses links: a command may have
//! put one in the place of a directory, and what lies behind it is not the project's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use attache_host::files::{FileError, Jail};
use ring::digest::{Context, Digest, SHA256};
use rusqlite::{OptionalExtension as _, params};
use serde_json::{Map, Value, json};

use super::entry::{path_from, path_json, state_from, state_json};
use super::{Change, Entry, FileState, Result, Store, StoreError, known};

/// The largest file that a tool may change: it is kept as a whole before.
const LARGEST_KEPT: u64 = 64 << 20;
/// The largest file whose bytes are compared after a command, and how many bytes are read for that in all. Larger ones, and
/// those beyond, are told apart by their length and the time of their last change.
const LARGEST_COMPARED: u64 = 2 << 20;
const COMPARED_BYTES: u64 = 256 << 20;

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
        let path = real_path(path);
        let before = match read_file(&Jail::without_links(), &path, LARGEST_KEPT)? {
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
        let path = real_path(path);
        let now = state_of(&Jail::without_links(), &path, LARGEST_KEPT)?;
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
        let jail = Jail::without_links();
        let mut total: u64 = 0;
        for (path, metadata) in regular_files(roots) {
            let with_this = total.saturating_add(metadata.len());
            if metadata.len() > limits.file_bytes
                || taken.files.len() >= limits.files
                || with_this > limits.total_bytes
            {
                taken.complete = false;
                continue;
            }
            total = with_this;
            let stamp = stamp(&metadata);
            let known = last
                .and_then(|last| last.files.get(&path))
                .filter(|kept| kept.stamp == stamp && kept.state.mode == mode_of(&metadata));
            let state = match known {
                Some(kept) => kept.state.clone(),
                // Gone or unreadable since it was listed, or something else by now: nothing to give back.
                None => match jail.bytes(&path, limits.file_bytes) {
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
    let jail = Jail::without_links();
    let mut compared: u64 = 0;
    for (path, metadata) in regular_files(roots) {
        let before = files.get(&path);
        // In a project that was not kept as a whole nobody knows whether an unknown file is new.
        if before.is_none() && !complete {
            continue;
        }
        let now = match unread(&path, &metadata) {
            Some(hash) => FileState { hash, mode: mode_of(&metadata) },
            None => {
                let limit = LARGEST_COMPARED.min(COMPARED_BYTES - compared);
                compared += metadata.len().min(limit);
                match state_of(&jail, &path, limit) {
                    Ok(Some(state)) => state,
                    _ => continue,
                }
            }
        };
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
    let is_gone = |path: &Path| path.symlink_metadata().is_err();
    for (path, before) in files.iter().filter(|(path, _)| !there.contains(*path) && is_gone(path)) {
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
    roots.iter().flat_map(|root| crate::project::files(&real_path(root))).filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        Some((entry.into_path(), metadata))
    })
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

/// A path free of links, also if it leads to something that does not exist yet.
fn real_path(path: &Path) -> PathBuf {
    for parent in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(parent), path.strip_prefix(parent)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

/// Opens a file, or returns `None` if there is none.
fn open_file(jail: &Jail, path: &Path) -> io::Result<Option<(File, Metadata)>> {
    match jail.open(path) {
        Ok(file) => {
            let metadata = file.metadata()?;
            Ok(Some((file, metadata)))
        }
        Err(FileError::NotFound(_)) => Ok(None),
        Err(FileError::Io(_, error)) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error.to_string())),
    }
}

/// Bytes and permissions, or `None` if there is no such file.
fn read_file(jail: &Jail, path: &Path, limit: u64) -> io::Result<Option<(Vec<u8>, Option<u32>)>> {
    let Some((file, metadata)) = open_file(jail, path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let text = format!("{} is too large to be kept for /undo: more than {limit} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(Some((bytes, mode_of(&metadata))))
}

/// How a name of bytes begins that were not read.
const UNREAD: &str = "unread:";

/// What a file is now. One of more than `limit` bytes is not read: its length and the time of its last change stand for it.
fn state_of(jail: &Jail, path: &Path, limit: u64) -> io::Result<Option<FileState>> {
    let Some((file, metadata)) = open_file(jail, path)? else { return Ok(None) };
    let hash = match metadata.len() <= limit {
        true => hash_of(file, limit)?,
        false => None,
    };
    let hash = hash.unwrap_or_else(|| unread_hash(&metadata));
    Ok(Some(FileState { hash, mode: mode_of(&metadata) }))
}

/// Whether the bytes of a file are, as far as is known, those that `state` names.
pub(super) fn is_now(jail: &Jail, path: &Path, state: Option<&FileState>) -> io::Result<bool> {
    let now = open_file(jail, path)?;
    Ok(match (now, state) {
        (None, None) => true,
        (Some((_, metadata)), Some(state)) if state.hash.starts_with(UNREAD) => {
            state.hash == unread_hash(&metadata)
        }
        (Some((file, _)), Some(state)) => hash_of(file, LARGEST_KEPT)?.as_deref() == Some(&*state.hash),
        _ => false,
    })
}

fn unread_hash(metadata: &Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{UNREAD}{}:{}", metadata.len(), changed.map_or(0, |at| at.as_nanos()))
}

/// The name of a file's bytes, or `None` if they are more than `limit`.
fn hash_of(file: File, limit: u64) -> io::Result<Option<String>> {
    let mut context = Context::new(&SHA256);
    let mut file = file.take(limit.saturating_add(1));
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => context.update(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((file.limit() > 0).then(|| hex(&context.finish())))
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
    hex(&ring::digest::digest(&SHA256, bytes))
}

fn hex(digest: &Digest) -> String {
    digest.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
