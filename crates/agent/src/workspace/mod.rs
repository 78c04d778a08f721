//! Files and commands of a session: the client's if it provides them, else those of this machine.
//!
//! Files below the session's roots are reached through the client's `fs/*` if it provides them, so
//! that unsaved text in an editor counts, and else through [`attache_host`]'s jail, which keeps
//! paths inside the roots. The client would refuse other files; they are reached through a jail of
//! their own, after a permission for exactly that path.

// FS-15

mod commands;
mod local;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attache::agent::{DetachedTurn, Turn};
use attache_host::policy::{FilePath, real_path};
use parking_lot::Mutex;

pub(crate) use commands::{CommandOutput, RunningCommand};

/// The largest file that is read as text.
const MAX_READ: usize = 4 << 20;
/// The most files that a session remembers as read.
const MAX_REMEMBERED: usize = 10_000;

/// The directories of a session.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The working directory first.
    roots: Vec<PathBuf>,
    /// The roots with links resolved.
    real: Vec<PathBuf>,
    /// Files that were read, with the user's permission if they are outside of the roots.
    read: Mutex<HashSet<PathBuf>>,
    /// Files whose text the model has seen, and how they were then.
    seen: Mutex<HashMap<PathBuf, SeenFile>>,
}

/// How a file was when the model saw it.
#[derive(Debug)]
enum SeenFile {
    /// The hash of its text.
    Text(u64),
    /// Its size and time on disk, if it is there.
    OnDisk(Option<(u64, SystemTime)>),
}

/// Whether the model knows the text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Never,
    Outdated,
    Current,
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let meta = path.metadata().ok()?;
    Some((meta.len(), meta.modified().ok()?))
}

/// A path from the model, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspacePath {
    /// The absolute path as it was named, without dots.
    pub(crate) named: PathBuf,
    /// The path with links resolved, as far as it exists.
    pub(crate) real: PathBuf,
    /// Whether the real path is below one of the roots.
    pub(crate) inside: bool,
}

impl WorkspacePath {
    /// The path for the permission engine.
    pub(crate) fn for_policy(&self) -> FilePath {
        FilePath::new(&self.named, &self.real)
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.real.is_dir()
    }
}

impl Workspace {
    pub(crate) fn new(cwd: PathBuf, additional: Vec<PathBuf>) -> Self {
        let roots: Vec<PathBuf> = std::iter::once(cwd).chain(additional).collect();
        let real = roots.iter().map(|root| real_path(root)).collect();
        Workspace { roots, real, read: Mutex::default(), seen: Mutex::default() }
    }

    pub(crate) fn cwd(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Resolves a path of the model. Nothing is opened.
    pub(crate) fn resolve(&self, path: &str) -> Result<WorkspacePath, String> {
        if path.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.contains('\0') {
            return Err("the path contains a null byte".to_owned());
        }
        let path = FilePath::resolve(path, self.cwd());
        let inside = path.is_inside(&self.real);
        Ok(WorkspacePath { named: path.named().to_owned(), real: path.real().to_owned(), inside })
    }

    /// The path for people: relative to the working directory if it is below it.
    pub(crate) fn short(&self, path: &Path) -> String {
        let bases = [Some(self.cwd()), self.real.first().map(PathBuf::as_path)];
        let relative = bases.into_iter().flatten().find_map(|base| path.strip_prefix(base).ok());
        match relative {
            Some(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            relative => relative.unwrap_or(path).display().to_string(),
        }
    }

    /// Remembers that a file was read.
    pub(crate) fn mark_read(&self, path: &WorkspacePath) {
        let mut read = self.read.lock();
        if read.len() < MAX_REMEMBERED {
            read.insert(path.real.clone());
        }
    }

    /// Records that the model knows a file: its whole text, or a part of it as it is on disk now.
    pub(crate) fn mark_seen(&self, path: &WorkspacePath, text: Option<&str>) {
        let seen = match text {
            Some(text) => SeenFile::Text(hash(text)),
            None => SeenFile::OnDisk(stamp(&path.real)),
        };
        let mut known = self.seen.lock();
        if known.len() < MAX_REMEMBERED || known.contains_key(&path.real) {
            known.insert(path.real.clone(), seen);
        }
    }

    /// Whether the model has seen a file, and whether as it is now, with this text.
    pub(crate) fn has_seen(&self, path: &WorkspacePath, now: &str) -> Seen {
        match self.seen.lock().get(&path.real) {
            None => Seen::Never,
            Some(SeenFile::Text(seen)) if *seen == hash(now) => Seen::Current,
            Some(SeenFile::OnDisk(Some(seen))) if stamp(&path.real) == Some(*seen) => Seen::Current,
            Some(_) => Seen::Outdated,
        }
    }

    /// How many lines a file has.
    pub(crate) async fn count_lines(&self, turn: &DetachedTurn, path: &WorkspacePath) -> Option<usize> {
        self.read(turn, path, None, None).await.ok().map(|text| text.lines().count())
    }

    /// Whether the old text of a file may be read without another permission: it is inside, or was
    /// read before.
    pub(crate) fn can_read(&self, path: &WorkspacePath) -> bool {
        path.inside || self.read.lock().contains(&path.real)
    }

    /// Reads text from line `line` on, at most `limit` lines. Through the client if it
    /// provides files.
    // FS-01
    pub(crate) async fn read(
        &self,
        turn: &DetachedTurn,
        path: &WorkspacePath,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, String> {
        let client = turn.turn().read_files().filter(|_| path.inside);
        let Some(files) = client else { return self.read_local(path, line, limit).await };
        let read = files.read_lines(&path.named, line, limit).await;
        let text = read.map_err(|error| self.client_error(path, error))?;
        // FS-13: some editors return an empty text for a missing file, and a model would believe
        // it.
        if text.is_empty() && !self.exists_local(path).await? {
            return Err(format!("no such file: {}", self.short(&path.named)));
        }
        Ok(text)
    }

    /// Reads the whole text of a file that is to be changed; `None` if it does not exist. It is
    /// read from where it will be written to, so that an unsaved buffer which the client cannot
    /// write does not end up on disk.
    pub(crate) async fn read_for_edit(
        &self,
        turn: &DetachedTurn,
        path: &WorkspacePath,
    ) -> Result<Option<String>, String> {
        let through_client = is_editable_by_client(turn.turn(), path);
        let on_disk = self.exists_local(path).await?;
        if !on_disk && !through_client {
            return Ok(None);
        }
        let text = match through_client {
            true => self.read(turn, path, None, None).await,
            false => self.read_local(path, None, None).await,
        };
        match text {
            Err(_) if !on_disk => Ok(None),
            text => text.map(Some),
        }
    }

    /// Replaces a file's text, or creates the file. Through the client if it provides both
    /// reading and writing.
    // FS-02
    pub(crate) async fn write(
        &self,
        turn: &DetachedTurn,
        path: &WorkspacePath,
        text: &str,
    ) -> Result<(), String> {
        match turn.turn().write_files() {
            Some(files) if is_editable_by_client(turn.turn(), path) => {
                files.write(&path.named, text).await.map_err(|error| self.client_error(path, error))
            }
            _ => {
                let text = text.to_owned();
                self.with_jail(path, move |jail, real| jail.write(real, &text)).await
            }
        }
    }

    /// The client's error for the model, with the path in it.
    fn client_error(&self, path: &WorkspacePath, error: attache::Error) -> String {
        let path = self.short(&path.named);
        match error {
            attache::Error::Refused(error) if error.message.contains(&path) => error.message,
            attache::Error::Refused(error) => format!("{path}: {}", error.message),
            error => format!("{path}: {error}"),
        }
    }
}

/// Whether a file is both read and written through the client.
fn is_editable_by_client(turn: Turn<'_>, path: &WorkspacePath) -> bool {
    path.inside && turn.read_files().is_some() && turn.write_files().is_some()
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_link_that_leads_out_is_outside_also_when_nothing_is_there() {
        // shows ROOT-17, ROOT-18
        let base = std::env::temp_dir().join(format!("attache-workspace-{}", std::process::id()));
        let root = base.join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::os::unix::fs::symlink(base.join("nowhere"), root.join("out")).unwrap();
        std::os::unix::fs::symlink("circle", root.join("circle")).unwrap();
        std::os::unix::fs::symlink("src", root.join("in")).unwrap();
        let workspace = Workspace::new(root.clone(), Vec::new());
        let inside = |path: &str| workspace.resolve(path).unwrap().inside;
        assert!(inside("src/new/file.rs") && inside(".") && inside("in/x") && inside("src/../src"));
        assert!(
            !inside("out")
                && !inside("out/x")
                && !inside("circle")
                && !inside("../x")
                && !inside("/etc/passwd")
        );
        assert!(!inside("in/../../x"));
        assert_eq!(workspace.short(&root.join("src/a.rs")), "src/a.rs");
        assert!(workspace.resolve("").is_err() && workspace.resolve("a\0b").is_err());
        std::fs::remove_dir_all(&base).unwrap();
    }
}
