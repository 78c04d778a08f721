//! Remembered answers: for a session, and for a project in a file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attache::wire::v1::SessionId;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::{Effect, Scope};
use crate::time::timestamp;

/// One remembered answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Its number within the project, to show and to revoke it.
    pub id: u64,
    /// The agent that asked.
    pub agent: String,
    /// Whether it was allowed.
    pub allow: bool,
    /// The effects that it covers.
    pub scope: Scope,
    /// When it was given, as RFC 3339.
    #[serde(default)]
    pub since: String,
}

/// Remembers answers for one project, in a file that other processes may use at the same time, and
/// for sessions in memory.
#[derive(Debug, Default)]
pub struct Memory {
    file: Option<MemoryFile>,
    cache: Mutex<Cache>,
    sessions: Mutex<HashMap<SessionId, Vec<Scope>>>,
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    project: PathBuf,
}

#[derive(Debug, Default)]
struct Cache {
    entries: Vec<Remembered>,
    /// Time and size of the file when it was read.
    version: Option<(SystemTime, u64)>,
}

/// The version of the file. Answers of older versions were not bound to a directory and no longer
/// count.
const VERSION: u64 = 2;

/// The file of a project.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    version: u64,
    project: String,
    #[serde(default)]
    rules: Vec<Remembered>,
}

/// Scopes that are remembered for one session at most.
const MOST_PER_SESSION: usize = 256;

impl Memory {
    /// A memory that ends with the process.
    pub fn transient() -> Self {
        Memory::default()
    }

    /// The memory of the project in `dir`, in a file below `state_dir`.
    ///
    /// # Errors
    /// If there is such a file and it cannot be read.
    pub fn open(state_dir: &Path, dir: &Path) -> io::Result<Self> {
        let project = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let name = format!("{:016x}.json", fingerprint(&project));
        let path = state_dir.join("permissions").join(name);
        let memory = Memory { file: Some(MemoryFile { path, project }), ..Memory::default() };
        memory.refresh(&mut memory.lock())?;
        Ok(memory)
    }

    /// The projects for which answers are remembered.
    pub fn projects(state_dir: &Path) -> Vec<PathBuf> {
        let project = |entry: io::Result<fs::DirEntry>| {
            let text = fs::read_to_string(entry.ok()?.path()).ok()?;
            let stored: Stored = serde_json::from_str(&text).ok()?;
            (stored.version == VERSION && !stored.rules.is_empty()).then(|| PathBuf::from(stored.project))
        };
        let entries = fs::read_dir(state_dir.join("permissions"));
        let mut projects: Vec<PathBuf> = entries.into_iter().flatten().filter_map(project).collect();
        projects.sort();
        projects
    }

    /// All answers that are remembered for the project, the oldest first.
    pub fn list(&self) -> Vec<Remembered> {
        let mut cache = self.lock();
        let _ = self.refresh(&mut cache);
        cache.entries.clone()
    }

    /// Forgets one answer. Returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn revoke(&self, id: u64) -> io::Result<bool> {
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| entry.id != id);
            entries.len() != before
        })
    }

    /// Forgets everything about this project.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn clear(&self) -> io::Result<()> {
        self.change(Vec::clear)
    }

    /// Remembers an answer for the project.
    pub(super) fn remember(&self, agent: &str, allow: bool, scope: &Scope) -> io::Result<()> {
        self.change(|entries| {
            // The latest answer counts.
            entries.retain(|entry| entry.agent != agent || entry.scope != *scope);
            let id = entries.iter().map(|entry| entry.id).max().unwrap_or(0) + 1;
            let since = timestamp(SystemTime::now());
            entries.push(Remembered { id, agent: agent.to_owned(), allow, scope: scope.clone(), since });
        })
    }

    /// Remembers an answer until the session ends.
    pub(super) fn remember_for_session(&self, session: &SessionId, scope: &Scope) {
        let mut sessions = self.sessions.lock();
        let scopes = sessions.entry(session.clone()).or_default();
        if !scopes.contains(scope) && scopes.len() < MOST_PER_SESSION {
            scopes.push(scope.clone());
        }
    }

    /// Forgets the answers of a session.
    pub fn end_session(&self, session: &SessionId) {
        self.sessions.lock().remove(session);
    }

    /// The scope that allows this effect in a session.
    pub(super) fn recall_for_session(&self, session: &SessionId, effect: &Effect) -> Option<Scope> {
        let sessions = self.sessions.lock();
        sessions.get(session)?.iter().find(|scope| scope.covers(effect)).cloned()
    }

    /// The answer that covers this effect. A denial counts more than a permission.
    pub(super) fn recall(&self, agent: &str, effect: &Effect) -> Option<Remembered> {
        let mut cache = self.lock();
        // While the file cannot be read nothing is remembered, so that everything is asked.
        if self.refresh(&mut cache).is_err() {
            return None;
        }
        let fits = |entry: &&Remembered| entry.agent == agent && entry.scope.covers(effect);
        cache.entries.iter().filter(fits).min_by_key(|entry| entry.allow).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock()
    }

    /// Reads the file again if it has changed, so that an answer revoked by another process no
    /// longer counts.
    fn refresh(&self, cache: &mut Cache) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let version = match fs::metadata(&file.path) {
            Ok(meta) => Some((meta.modified()?, meta.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if version.is_none() {
            *cache = Cache::default();
        } else if version != cache.version {
            cache.entries = file.read()?;
            cache.version = version;
        }
        Ok(())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Remembered>) -> T) -> io::Result<T> {
        let mut cache = self.lock();
        let Some(file) = &self.file else { return Ok(change(&mut cache.entries)) };
        let _lock = file.lock()?;
        cache.entries = file.read()?;
        let result = change(&mut cache.entries);
        file.write(&cache.entries)?;
        cache.version = None;
        Ok(result)
    }
}

impl MemoryFile {
    fn lock(&self) -> io::Result<File> {
        if let Some(dir) = self.path.parent() {
            attache_conn::private::create_directory(dir)?;
        }
        let lock = private(File::options().write(true).create(true).truncate(false))
            .open(self.path.with_extension("lock"))?;
        #[cfg(unix)]
        crate::sys::lock(&lock)?;
        Ok(lock)
    }

    fn read(&self) -> io::Result<Vec<Remembered>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let stored: Stored = serde_json::from_str(&text)?;
        // Two projects may have the same fingerprint, though hardly by accident.
        if Path::new(&stored.project) != self.project {
            return Err(io::Error::other("the file belongs to another project"));
        }
        Ok(if stored.version == VERSION { stored.rules } else { Vec::new() })
    }

    fn write(&self, entries: &[Remembered]) -> io::Result<()> {
        let project = self.project.to_string_lossy().into_owned();
        let stored = Stored { version: VERSION, project, rules: entries.to_vec() };
        let new = self.path.with_extension("new");
        let mut file = private(File::options().write(true).create(true).truncate(true)).open(&new)?;
        file.write_all(serde_json::to_string_pretty(&stored)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

/// Readable by the user only.
pub(crate) fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// FNV-1a: the same in every version of this program, unlike the hashes of the standard library.
fn fingerprint(path: &Path) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}
