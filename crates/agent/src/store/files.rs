//! Content of files before they change, so that `/undo` can revert a turn, even after a crash.
//!
//! Paths are stored with links resolved, and files are opened without following links: a command
//! may have replaced a directory with a link out of the project.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use attache_host::files::{FileError, Jail};
use attache_host::policy::real_path;
use ring::digest::{Context, Digest, SHA256};
use rusqlite::{OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::stored_path::{self, StoredPath};
use super::{Change, Entry, FileState, Result, Store, StoreError, check_exists};

/// The largest file that a tool may change, because its content is stored.
const MAX_STORED: u64 = 64 << 20;
/// The largest file whose bytes are compared after a command, and the most bytes of all files.
/// Others are compared by length and modification time.
const MAX_COMPARED: u64 = 2 << 20;
const MAX_COMPARED_TOTAL: u64 = 256 << 20;

/// Limits of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotLimits {
    /// The most files.
    pub files: usize,
    /// The largest file.
    pub file_bytes: u64,
    /// The most bytes of all files.
    pub total_bytes: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        SnapshotLimits { files: 20_000, file_bytes: 2 << 20, total_bytes: 64 << 20 }
    }
}

/// The project's files in a session's roots at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    files: BTreeMap<PathBuf, FileInfo>,
    complete: bool,
}

/// The stored form of a [`Snapshot`].
#[derive(Serialize, Deserialize)]
struct FileList {
    roots: Vec<StoredPath>,
    #[serde(default)]
    complete: bool,
    files: Vec<ListedFile>,
}

#[derive(Serialize, Deserialize)]
struct ListedFile {
    #[serde(with = "stored_path")]
    path: PathBuf,
    #[serde(rename = "is")]
    state: FileState,
}

#[derive(Debug, Clone)]
struct FileInfo {
    state: FileState,
    stamp: Stamp,
}

/// Length and modification time: if they are the same, the file is not read again.
type Stamp = (u64, Option<std::time::SystemTime>);

impl Snapshot {
    /// Whether it contains every file; a large project exceeds the limits.
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

impl Store {
    /// Stores a file's content and logs that it will become `after` (`None`: will be deleted).
    pub fn about_to_change(&self, session: &str, path: &Path, after: Option<&[u8]>) -> Result<()> {
        let path = real_path(path);
        let before = match read_file(&Jail::without_links(), &path, MAX_STORED).map_err(StoreError::File)? {
            Some((bytes, mode)) => Some(FileState { hash: self.store_blob(session, &bytes)?, mode }),
            None => None,
        };
        let mode = before.as_ref().and_then(|state| state.mode);
        let after = after.map(|bytes| FileState { hash: hash(bytes), mode });
        let new_directories = path.ancestors().skip(1).take_while(|directory| !directory.exists()).count();
        let new_directories = u32::try_from(new_directories).unwrap_or(u32::MAX);
        self.append(session, &[Entry::Change(Change { path, before, after, new_directories })])
    }

    /// Logs a file's state after a change: an editor may have written other line ends than it was
    /// given.
    pub fn changed(&self, session: &str, path: &Path, meant: Option<&[u8]>) -> Result<()> {
        let path = real_path(path);
        let now = state_of(&Jail::without_links(), &path, MAX_STORED).map_err(StoreError::File)?;
        let meant = meant.map(hash);
        if now.as_ref().map(|state| &state.hash) == meant.as_ref() {
            return Ok(());
        }
        let before = meant.map(|hash| FileState { hash, mode: None });
        self.append(session, &[Entry::Change(Change { path, before, after: now, new_directories: 0 })])
    }

    /// Stores all files of the roots before a command that may change any of them. Files as in
    /// `last` are not read again.
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
                .filter(|file| file.stamp == stamp && file.state.mode == mode_of(&metadata));
            let state = match known {
                Some(file) => file.state.clone(),
                // It was deleted, replaced or made unreadable since it was listed.
                None => match jail.bytes(&path, limits.file_bytes) {
                    Ok(bytes) => {
                        FileState { hash: self.store_blob(session, &bytes)?, mode: mode_of(&metadata) }
                    }
                    Err(_) => continue,
                },
            };
            taken.files.insert(path, FileInfo { state, stamp });
        }
        let list = FileList {
            roots: roots.iter().cloned().map(StoredPath).collect(),
            complete: taken.complete,
            files: taken
                .files
                .iter()
                .map(|(path, file)| ListedFile { path: path.clone(), state: file.state.clone() })
                .collect(),
        };
        let list = serde_json::to_vec(&list).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let list = self.store_blob(session, &list)?;
        self.append(session, &[Entry::Snapshot { list }])?;
        Ok(taken)
    }

    /// Logs the changes of a command since `before`.
    pub fn settle(&self, session: &str, roots: &[PathBuf], before: &Snapshot) -> Result<Vec<PathBuf>> {
        let files = before.files.iter().map(|(path, file)| (path.clone(), file.state.clone())).collect();
        let changes = differences(roots, &files, before.complete, |path, metadata| {
            before
                .files
                .get(path)
                .filter(|file| file.stamp == stamp(metadata))
                .map(|file| file.state.hash.clone())
        });
        let paths = changes.iter().map(|change| change.path.clone()).collect();
        let entries: Vec<Entry> = changes.into_iter().map(Entry::Change).chain([Entry::Settled {}]).collect();
        self.append(session, &entries)?;
        Ok(paths)
    }

    /// The changes since a snapshot of a command without a logged end.
    pub(super) fn since(&self, session: &str, list: &str) -> Result<Vec<Change>> {
        let list = self
            .blob(session, list)?
            .ok_or_else(|| StoreError::Damaged("a list of files is missing".into()))?;
        let list: FileList =
            serde_json::from_slice(&list).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let roots: Vec<PathBuf> = list.roots.into_iter().map(|root| root.0).collect();
        let files = list.files.into_iter().map(|file| (file.path, file.state)).collect();
        Ok(differences(&roots, &files, list.complete, |_, _| None))
    }

    /// Stores bytes and returns their hash.
    fn store_blob(&self, session: &str, bytes: &[u8]) -> Result<String> {
        let hash = hash(bytes);
        let connection = self.connection();
        check_exists(&connection, session)?;
        connection
            .prepare_cached(
                "INSERT INTO blob (session, hash, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            )?
            .execute(params![session, hash, bytes])?;
        Ok(hash)
    }

    pub(super) fn blob(&self, session: &str, hash: &str) -> Result<Option<Vec<u8>>> {
        let connection = self.connection();
        let mut select =
            connection.prepare_cached("SELECT bytes FROM blob WHERE session = ?1 AND hash = ?2")?;
        Ok(select.query_row([session, hash], |row| row.get(0)).optional()?)
    }
}

/// The differences between `files` and the disk. `unread` may know the hash of a file without
/// reading it.
fn differences(
    roots: &[PathBuf],
    files: &BTreeMap<PathBuf, FileState>,
    complete: bool,
    unread: impl Fn(&Path, &Metadata) -> Option<String>,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut existing = std::collections::BTreeSet::new();
    let jail = Jail::without_links();
    let mut compared: u64 = 0;
    for (path, metadata) in regular_files(roots) {
        let before = files.get(&path);
        // With an incomplete snapshot an unknown file need not be new.
        if before.is_none() && !complete {
            continue;
        }
        let now = match unread(&path, &metadata) {
            Some(hash) => FileState { hash, mode: mode_of(&metadata) },
            None => {
                let limit = MAX_COMPARED.min(MAX_COMPARED_TOTAL - compared);
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
        existing.insert(path);
    }
    let is_gone = |path: &Path| path.symlink_metadata().is_err();
    for (path, before) in files.iter().filter(|(path, _)| !existing.contains(*path) && is_gone(path)) {
        changes.push(Change {
            path: path.clone(),
            before: Some(before.clone()),
            after: None,
            new_directories: 0,
        });
    }
    changes
}

/// The project's files below these directories.
fn regular_files(roots: &[PathBuf]) -> impl Iterator<Item = (PathBuf, Metadata)> {
    roots.iter().flat_map(|root| crate::project_files::walk(&real_path(root))).filter_map(|path| {
        let metadata = path.symlink_metadata().ok()?;
        Some((path, metadata))
    })
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
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
        let text = format!("{} is too large for /undo: more than {limit} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(Some((bytes, mode_of(&metadata))))
}

/// The prefix of a hash without content.
const UNREAD: &str = "unread:";

/// The present state of a file. Above `limit` bytes, length and modification time replace the hash.
fn state_of(jail: &Jail, path: &Path, limit: u64) -> io::Result<Option<FileState>> {
    let Some((file, metadata)) = open_file(jail, path)? else { return Ok(None) };
    let hash = match metadata.len() <= limit {
        true => hash_of(file, limit)?,
        false => None,
    };
    let hash = hash.unwrap_or_else(|| unread_hash(&metadata));
    Ok(Some(FileState { hash, mode: mode_of(&metadata) }))
}

/// Whether a file has this state, as far as its hash shows.
pub(super) fn has_state(jail: &Jail, path: &Path, state: Option<&FileState>) -> io::Result<bool> {
    let now = open_file(jail, path)?;
    Ok(match (now, state) {
        (None, None) => true,
        (Some((_, metadata)), Some(state)) if state.hash.starts_with(UNREAD) => {
            state.hash == unread_hash(&metadata)
        }
        (Some((file, _)), Some(state)) => hash_of(file, MAX_STORED)?.as_deref() == Some(&*state.hash),
        _ => false,
    })
}

fn unread_hash(metadata: &Metadata) -> String {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{UNREAD}{}:{}", metadata.len(), changed.map_or(0, |at| at.as_nanos()))
}

/// The hash of a file, or `None` if it has more than `limit` bytes.
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

fn mode_of(metadata: &Metadata) -> Option<u32> {
    Some(metadata.permissions().mode() & 0o7777)
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
