//! Where things are: the XDG places, or all of them under `ATTACHE_HOME`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use attache_conn::private;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The directories of this program. None of them needs to exist.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// Settings.
    pub(crate) config: PathBuf,
    /// Sessions, logs, permissions.
    pub(crate) state: PathBuf,
    /// Downloads.
    pub(crate) cache: PathBuf,
    /// Installed agents.
    pub(crate) data: PathBuf,
    /// Sockets.
    pub(crate) runtime: PathBuf,
}

impl Paths {
    /// The places that the environment says.
    pub(crate) fn from_env() -> Paths {
        if let Some(home) = var("ATTACHE_HOME").map(absolute) {
            return Paths {
                config: home.clone(),
                state: home.join("state"),
                cache: home.join("cache"),
                data: home.join("data"),
                runtime: home.join("run"),
            };
        }
        let base = |name: &str, fallback: &str| match var(name).map(PathBuf::from) {
            // The specification wants relative ones to be ignored.
            Some(dir) if dir.is_absolute() => dir.join("attache"),
            _ => home().join(fallback).join("attache"),
        };
        let state = base("XDG_STATE_HOME", ".local/state");
        let runtime = match var("XDG_RUNTIME_DIR").map(PathBuf::from) {
            // The specification wants it to belong to the user; after `su` it is often that of
            // another user.
            Some(dir) if dir.is_dir() && is_own(&dir) => dir.join("attache"),
            _ => state.join("run"),
        };
        Paths {
            config: base("XDG_CONFIG_HOME", ".config"),
            cache: base("XDG_CACHE_HOME", ".cache"),
            data: base("XDG_DATA_HOME", ".local/share"),
            state,
            runtime,
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        [&self.config, &self.state, &self.cache, &self.data, &self.runtime].map(Clone::clone).to_vec()
    }

    /// The user's settings.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The records of sessions.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// Log files.
    pub(crate) fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }
}

#[cfg(unix)]
fn is_own(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    dir.metadata().is_ok_and(|found| found.uid() == private::user_id())
}

#[cfg(not(unix))]
fn is_own(_dir: &Path) -> bool {
    true
}

fn var(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn absolute(path: OsString) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| path.into())
}

/// The user's home directory.
pub(crate) fn home() -> PathBuf {
    env::home_dir().unwrap_or_else(|| PathBuf::from("/"))
}

/// Creates a directory that only the user can change, or checks the one that exists. The error
/// names the directory and says what to do.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    private::create_directory(dir).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            io::Error::new(error.kind(), format!("{error} (ATTACHE_HOME names another place)"))
        }
        _ => error,
    })
}

/// Reads a cache. A file that is missing or damaged is an empty one.
pub(crate) fn read_cache<T: DeserializeOwned + Default>(file: &Path) -> T {
    std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Writes a cache. A failure is logged: the program works without.
pub(crate) fn write_cache(file: &Path, value: &impl Serialize) {
    let written = serde_json::to_vec(value).map_err(io::Error::from).and_then(|text| replace(file, &text));
    if let Err(error) = written {
        tracing::debug!(%error, file = %file.display(), "a cache cannot be written");
    }
}

/// Replaces a file of this program in one step: a reader sees the old text or the new one, also
/// after a crash. Only the user can read it.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        private_dir(dir)?;
    }
    private::replace(path, text)
}

/// The root of the repository that `dir` is in: the nearest directory with a `.git`, which is a
/// file in worktrees.
pub(crate) fn repository(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| dir.join(".git").exists())
}
/// Shows a directory for a person: below the home directory it begins with `~`.
pub(crate) fn below_home(dir: &Path) -> String {
    let home = std::env::home_dir();
    match home.as_deref().and_then(|home| dir.strip_prefix(home).ok()) {
        Some(inside) => Path::new("~").join(inside).display().to_string(),
        None => dir.display().to_string(),
    }
}
