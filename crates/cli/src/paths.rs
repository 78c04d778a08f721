//! Where things are: the XDG places, or all of them under `ATTACHE_HOME`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The directories of this program. None of them needs to exist.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// Settings.
    pub(crate) config: PathBuf,
    /// Sessions, logs, what was allowed.
    pub(crate) state: PathBuf,
    /// What can be fetched again.
    pub(crate) cache: PathBuf,
    /// What was installed.
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
            Some(dir) if dir.is_dir() => dir.join("attache"),
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

/// Makes a directory that only the user can look into.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(dir)
}

/// Replaces a file in one step: whoever reads it sees the old text or the new one, also after a crash. Only the user can read it.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let dir = path.parent().unwrap_or(Path::new("."));
    private_dir(dir)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = dir.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = (|| {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let mut file = options.open(&temporary)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// The root of the repository that `dir` is in: the nearest directory with a `.git`, which is a file in worktrees.
pub(crate) fn repository(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| dir.join(".git").exists())
}
