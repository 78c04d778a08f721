//! Finds and changes records.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use attache_conn::private;
use attache_host::secrets::Mask;

use super::history::History;
use super::{Record, file_name};
use crate::agents::AgentSpec;
use crate::error::{Context as _, Result};
use crate::paths::{Paths, private_dir, replace, repository};

/// Which session is meant.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The name of a known agent.
    pub(crate) agent: Option<String>,
    pub(crate) agent_command: String,
    pub(crate) cwd: PathBuf,
    pub(crate) name: Option<String>,
}

impl Scope {
    pub(crate) fn new(spec: &AgentSpec, cwd: &Path, name: Option<&str>) -> Scope {
        Scope {
            agent: spec.known.then(|| spec.name.clone()),
            agent_command: spec.identity(),
            cwd: cwd.to_owned(),
            name: name.map(str::to_owned),
        }
    }

    /// A known agent is the same one however it is started, any other is its command.
    fn is_agent(&self, record: &Record) -> bool {
        record.agent_command == self.agent_command || (self.agent.is_some() && record.agent == self.agent)
    }

    fn fits(&self, record: &Record, cwd: &Path) -> bool {
        record.cwd == cwd && record.name == self.name && self.is_agent(record)
    }
}

/// The records of this user.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    dir: PathBuf,
    /// Values that are never written down, beside those of the environment.
    secrets: Vec<String>,
}

/// The lock for changes of records. It is released on drop and when the process ends.
#[derive(Debug)]
pub(crate) struct Locked {
    _file: File,
}

impl Store {
    pub(crate) fn new(paths: &Paths) -> Store {
        Store { dir: paths.sessions(), secrets: Vec::new() }
    }

    /// A store that also keeps these values out of what it writes.
    #[must_use]
    pub(crate) fn with_secrets(self, secrets: Vec<String>) -> Store {
        Store { secrets, ..self }
    }

    /// Hides what must not be written down.
    pub(crate) fn mask(&self) -> Mask {
        Mask::from_env().with(self.secrets.iter().cloned())
    }

    fn file(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{}.json", file_name(id)))
    }

    /// The file in which what was said is kept.
    pub(crate) fn history(&self, id: &str) -> History {
        History::new(self.dir.join(format!("{}.stream.ndjson", file_name(id))))
    }

    /// Waits for the right to change records. It is held for as long as a file takes to be written.
    fn lock(&self) -> Result<Locked> {
        let file = open_lock(&self.dir, ".lock").context("the session store")?;
        file.lock().context("the session store")?;
        Ok(Locked { _file: file })
    }

    /// Takes the lock of a session's owner process; `None` if another process has it. It is held
    /// while the file is open.
    pub(crate) fn own(&self, id: &str) -> Result<Option<File>> {
        let file = open_lock(&self.dir, &format!("{}.lock", file_name(id))).context("the session's lock")?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error).context("the session's lock"),
        }
    }

    /// Whether some process drives the session.
    pub(crate) fn is_owned(&self, id: &str) -> bool {
        let file = OpenOptions::new().read(true).open(self.dir.join(format!("{}.lock", file_name(id))));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
    }

    /// All records, those used last first. A file that is not a record is passed over.
    pub(crate) fn all(&self) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(records),
            Err(error) => return Err(error).context(self.dir.display()),
        };
        for entry in entries {
            let path = entry.context(self.dir.display())?.path();
            let named = path.file_name().and_then(|name| name.to_str());
            if !named.is_some_and(|name| name.ends_with(".json") && !name.starts_with('.')) {
                continue;
            }
            if let Some(record) = read(&path) {
                records.push(record);
            }
        }
        records.sort_by(|a, b| b.last_used_at.cmp(&a.last_used_at).then_with(|| a.id.cmp(&b.id)));
        Ok(records)
    }

    /// The record of this id.
    pub(crate) fn get(&self, id: &str) -> Option<Record> {
        read(&self.file(id)).filter(|record| record.id == id)
    }

    /// All records of an agent.
    pub(crate) fn of_agent(&self, scope: &Scope) -> Result<Vec<Record>> {
        Ok(self.all()?.into_iter().filter(|record| scope.is_agent(record)).collect())
    }

    /// The session of exactly this directory: the open one, or the last closed one if those count.
    pub(crate) fn find(&self, scope: &Scope, closed_too: bool) -> Result<Option<Record>> {
        let mut fitting: Vec<Record> =
            self.all()?.into_iter().filter(|record| scope.fits(record, &scope.cwd)).collect();
        if let Some(at) = fitting.iter().position(|record| !record.is_closed()) {
            return Ok(Some(fitting.swap_remove(at)));
        }
        Ok(if closed_too && !fitting.is_empty() { Some(fitting.swap_remove(0)) } else { None })
    }

    /// The open session of this directory or of the nearest one above it, up to the root of the
    /// repository.
    pub(crate) fn route(&self, scope: &Scope) -> Result<Option<Record>> {
        let records = self.all()?;
        let boundary = boundary(&scope.cwd);
        let within = scope.cwd.ancestors().take_while(|dir| dir.starts_with(boundary));
        for dir in within {
            if let Some(record) = records.iter().find(|record| !record.is_closed() && scope.fits(record, dir))
            {
                return Ok(Some(record.clone()));
            }
        }
        Ok(None)
    }

    /// Adds a record and closes the open ones of its scope; gives those back.
    pub(crate) fn add(&self, record: &Record, scope: &Scope, now: &str) -> Result<Vec<Record>> {
        let _locked = self.lock()?;
        let mut replaced = Vec::new();
        for mut old in self.all()? {
            if !old.is_closed() && old.id != record.id && scope.fits(&old, &scope.cwd) {
                old.closed_at = Some(now.to_owned());
                self.write(&old)?;
                replaced.push(old);
            }
        }
        self.write(record)?;
        Ok(replaced)
    }

    /// Writes a record and leaves all others as they are.
    pub(crate) fn keep(&self, record: &Record) -> Result<()> {
        let _locked = self.lock()?;
        self.write(record)
    }

    /// Changes a record, as it is now and not as it was read before. `None` if it is gone.
    pub(crate) fn change(&self, id: &str, change: impl FnOnce(&mut Record)) -> Result<Option<Record>> {
        let _locked = self.lock()?;
        let Some(mut record) = self.get(id) else { return Ok(None) };
        change(&mut record);
        self.write(&record)?;
        Ok(Some(record))
    }

    /// Deletes a record. Returns the number of bytes that were freed.
    pub(crate) fn delete(&self, id: &str, with_history: bool) -> Result<u64> {
        let _locked = self.lock()?;
        let mut freed = remove(&self.file(id)).context("the record")?;
        remove(&self.dir.join(format!("{}.lock", file_name(id)))).context("the session's lock")?;
        if with_history {
            freed += remove(self.history(id).path()).context("the history")?;
        }
        Ok(freed)
    }

    fn write(&self, record: &Record) -> Result<()> {
        let mask = self.mask();
        let mut record = record.clone();
        // What the session is started with again stays as it is.
        for text in [&mut record.title, &mut record.disconnect_reason].into_iter().flatten() {
            *text = mask.text(text).into_owned();
        }
        replace(&self.file(&record.id), record.to_json().to_string().as_bytes()).context("the record")
    }
}

/// Where the search for a session ends.
pub(crate) fn boundary(cwd: &Path) -> &Path {
    repository(cwd).unwrap_or(cwd)
}

fn read(path: &Path) -> Option<Record> {
    Record::from_json(serde_json::from_slice(&fs::read(path).ok()?).ok()?)
}

fn remove(path: &Path) -> io::Result<u64> {
    let size = fs::metadata(path).map(|meta| meta.len()).unwrap_or_default();
    match fs::remove_file(path) {
        Ok(()) => Ok(size),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn open_lock(dir: &Path, name: &str) -> io::Result<File> {
    private_dir(dir)?;
    private::open_or_create(&dir.join(name))
}
