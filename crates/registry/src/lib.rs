//! Agents from registries, installed for this user.
//!
//! A registry is a JSON index that describes agents and how to get them: as an archive for each
//! platform, or as a package that npx or uvx runs. `format` reads an index, `index` finds and
//! caches it, `http` downloads, `install` installs one agent, `archive` unpacks, `lock` records the
//! result. Nothing is printed: [`Event`]s report progress and warnings.
//!
//! What never happens here: an archive with a wrong hash is unpacked; a partly unpacked agent is
//! used; an archive writes outside of its directory; a token goes to another server than its own;
//! code of an agent runs during the installation, except by npm when that was asked for.

mod archive;
mod error;
mod format;
mod http;
mod index;
mod install;
mod lock;
mod npm;
mod program;

use std::path::PathBuf;

pub use error::{Error, ErrorKind, Result};
pub use format::{Distribution, Entry, Method};
pub use index::{AvailableAgent, Source, cached_entry};
pub use install::{InstallOptions, Outcome};
pub use lock::{InstalledAgent, installed, lock_file};
pub use program::on_path;

/// Indexes, and the directories that installed agents and downloads live in.
#[derive(Debug)]
pub struct Registry {
    /// Where agents and the lock file are.
    pub data: PathBuf,
    /// Where copies of indexes and archives are.
    pub cache: PathBuf,
    /// How indexes are read.
    pub options: Options,
}

/// How indexes and archives are fetched.
#[derive(Debug, Clone)]
pub struct Options {
    /// Indexes; if several describe an agent, the first one counts.
    pub sources: Vec<Source>,
    /// Age of a cached index after which the server is asked again.
    pub max_age: std::time::Duration,
    /// Whether an index or an unverified archive may come over plain http.
    pub allow_http: bool,
    /// Whether archives without a checksum in the index are refused.
    pub require_checksum: bool,
    /// Certificates to trust instead of the built-in ones, in PEM.
    pub certificates: Option<PathBuf>,
    /// Whether the network is off limits.
    pub offline: bool,
    /// Whether cached indexes are ignored, unless the server is unreachable.
    pub refresh: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sources: Vec::new(),
            max_age: std::time::Duration::from_secs(3600),
            allow_http: false,
            require_checksum: false,
            certificates: None,
            offline: false,
            refresh: false,
        }
    }
}

/// Progress and warnings of a call, in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Something is wrong and the call continues.
    Warning(String),
    /// An entry of an index is invalid and is skipped.
    InvalidEntry(String),
    /// npm installs a package.
    NpmInstall(&'a str),
    /// A download begins.
    DownloadStarted {
        /// Name and version of the agent.
        name: &'a str,
        /// Bytes of all of it, if the server says.
        total: Option<u64>,
    },
    /// So many more bytes have arrived.
    Downloaded(u64),
    /// The download has ended, well or not.
    DownloadEnded,
}

/// Receives events; called on the thread of the caller.
pub type OnEvent<'a> = &'a mut dyn FnMut(Event<'_>);

impl Registry {
    /// Removes agents from the lock file and from the disk. Fails without a change if one of them
    /// is not installed.
    ///
    /// # Errors
    /// If an agent is not installed, or the directories cannot be changed.
    pub fn remove(&self, ids: &[String]) -> Result<Vec<InstalledAgent>> {
        let mut transaction = lock::Transaction::begin(&self.data)?;
        if let Some(id) = ids.iter().find(|id| !transaction.agents.contains_key(*id)) {
            return Err(Error::new(format_args!("`{id}` is not installed from a registry"))
                .kind_of(ErrorKind::NotInstalled(id.clone())));
        }
        let removed: Vec<InstalledAgent> =
            ids.iter().filter_map(|id| transaction.agents.remove(id)).collect();
        transaction.commit()?;
        removed.iter().for_each(|agent| install::forget_archive(&self.cache, agent));
        Ok(removed)
    }
}
