//! The list of installed agents, `agents.lock.json`, and the directories they are in.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use attache_conn::private;
use serde::{Deserialize, Serialize};

use crate::error::{Context as _, Error, Result};
use crate::format::Method;

/// The version of the file's format.
const VERSION: u32 = 1;
/// Directories of unfinished installations begin like this.
const UNFINISHED: &str = ".new-";

/// An agent that was installed from a registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledAgent {
    /// Its id in the index, and the key in the file.
    #[serde(skip)]
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The index that it came from.
    pub source: String,
    /// How it was installed.
    #[serde(rename = "via")]
    pub method: Method,
    /// The package, or the address of the archive.
    pub from: String,
    /// The hash of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether the index had a hash to compare with; `None` without an archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Its directory, below that of all agents; `None` if a runner downloads it at each start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// The program, relative to `dir` if there is one, and its arguments.
    pub argv: Vec<String>,
    /// Variables that it is started with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The time of the installation.
    #[serde(default)]
    pub installed_at: String,
}

impl InstalledAgent {
    /// Returns the command that starts it, with the full path of a program in its own directory.
    pub fn command(&self, data: &Path) -> Vec<String> {
        let mut argv = self.argv.clone();
        if let (Some(dir), Some(program)) = (&self.dir, argv.first_mut()) {
            *program = agents_dir(data).join(dir).join(&program).to_string_lossy().into_owned();
        }
        argv
    }
}

/// The contents of the file.
#[derive(Debug, Serialize, Deserialize)]
struct LockFile {
    version: u32,
    agents: BTreeMap<String, InstalledAgent>,
}

/// Returns the path of the list of installed agents.
pub fn lock_file(data: &Path) -> PathBuf {
    data.join("agents.lock.json")
}

fn agents_dir(data: &Path) -> PathBuf {
    data.join("agents")
}

/// Reads the list of installed agents, by id.
///
/// # Errors
/// If the file cannot be read.
pub fn installed(data: &Path) -> Result<BTreeMap<String, InstalledAgent>> {
    let path = lock_file(data);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error).context(path.display()),
    };
    parse(&text).map_err(|error| {
        Error::new(format_args!("{}: {error}", path.display()))
            .hint("fix the file, or delete it and install the agents again")
    })
}

fn parse(text: &str) -> Result<BTreeMap<String, InstalledAgent>, String> {
    let file: LockFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if file.version != VERSION {
        return Err(format!("version {} of the format is not supported", file.version));
    }
    let mut agents = file.agents;
    for (id, agent) in &mut agents {
        agent.id.clone_from(id);
        if agent.argv.is_empty() {
            return Err(format!("the command of `{id}` is empty"));
        }
    }
    Ok(agents)
}

/// Creates a directory that only the user can change, or checks the one that exists.
pub(crate) fn private_dir(dir: &Path) -> Result<()> {
    private::create_directory(dir).map_err(|error| {
        let denied = error.kind() == io::ErrorKind::PermissionDenied;
        let error = Error::new(error);
        if denied { error.hint("set ATTACHE_HOME to use another directory") } else { error }
    })
}

/// Replaces a file in one step; its directory is created if it is missing.
pub(crate) fn replace(path: &Path, text: &[u8]) -> Result<()> {
    if let Some(dir) = path.parent() {
        private_dir(dir)?;
    }
    private::replace(path, text).context(path.display())
}

/// An exclusive change of the list of installed agents; a second process waits for the first.
pub(crate) struct Transaction {
    data: PathBuf,
    pub(crate) agents: BTreeMap<String, InstalledAgent>,
    /// Closing the file releases the lock.
    _file: File,
}

impl Transaction {
    pub(crate) fn begin(data: &Path) -> Result<Transaction> {
        private_dir(data)?;
        let path = data.join(".agents.lock");
        let file = private::open_or_create(&path).context(path.display())?;
        file.lock().context(path.display())?;
        let dir = agents_dir(data);
        private_dir(&dir)?;
        // Remains of installations that were killed.
        for entry in fs::read_dir(&dir).context(dir.display())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(Transaction { data: data.to_owned(), agents: installed(data)?, _file: file })
    }

    /// Returns the directory for an unfinished installation.
    pub(crate) fn staging_dir(&self, id: &str) -> PathBuf {
        agents_dir(&self.data).join(format!("{UNFINISHED}{id}"))
    }

    /// Moves a finished directory to its final place and returns its name below that of all agents.
    pub(crate) fn publish(&self, staging: &Path, id: &str, version: &str) -> Result<String> {
        let base = agents_dir(&self.data);
        private_dir(&base.join(id))?;
        // The same version may be running from its directory: that one stays until the commit.
        let mut names = (0..).map(|round| match round {
            0 => format!("{id}/{version}"),
            round => format!("{id}/{version}.{round}"),
        });
        let name = names.find(|name| !base.join(name).exists()).unwrap_or_default();
        fs::rename(staging, base.join(&name)).context(base.display())?;
        Ok(name)
    }

    /// Writes the list, then removes the directories that it does not name any more.
    pub(crate) fn commit(&self) -> Result<()> {
        let file = LockFile { version: VERSION, agents: self.agents.clone() };
        let text = serde_json::to_string_pretty(&file).context("the lock file")?;
        replace(&lock_file(&self.data), format!("{text}\n").as_bytes())?;
        self.remove_unreferenced();
        Ok(())
    }

    fn remove_unreferenced(&self) {
        let base = agents_dir(&self.data);
        let is_used = |dir: &Path| {
            self.agents.values().any(|agent| agent.dir.as_ref().is_some_and(|used| base.join(used) == dir))
        };
        for agent in fs::read_dir(&base).into_iter().flatten().flatten() {
            for version in fs::read_dir(agent.path()).into_iter().flatten().flatten() {
                if !is_used(&version.path()) {
                    let _ = fs::remove_dir_all(version.path());
                }
            }
            // Fails unless it is empty.
            let _ = fs::remove_dir(agent.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn written_and_read_back() {
        let agent = InstalledAgent {
            id: "goose".to_owned(),
            name: "Goose".to_owned(),
            version: "1.0.0".to_owned(),
            source: "https://example.com/registry.json".to_owned(),
            method: Method::Binary,
            from: "https://example.com/goose.tgz".to_owned(),
            sha256: Some("a".repeat(64)),
            verified: Some(true),
            dir: Some("goose/1.0.0".to_owned()),
            argv: vec!["bin/goose".to_owned(), "acp".to_owned()],
            env: [("A".to_owned(), "1".to_owned())].into(),
            installed_at: "2026-11-15T00:00:00.000Z".to_owned(),
        };
        let text = json!({ "version": 1, "agents": { "goose": agent } }).to_string();
        assert_eq!(parse(&text).unwrap()["goose"], agent);
        assert_eq!(agent.command(Path::new("/d")), ["/d/agents/goose/1.0.0/bin/goose", "acp"]);
        let stored = json!({ "name": "G", "version": "1", "source": "s", "via": "npx", "from": "g", "argv": ["npx", "g"] });
        assert!(parse(&json!({ "version": 1, "agents": { "g": stored } }).to_string()).is_ok());
        for wrong in
            [json!({}), json!({ "version": 2, "agents": {} }), json!({ "version": 1, "agents": { "x": {} } })]
        {
            assert!(parse(&wrong.to_string()).is_err(), "{wrong}");
        }
    }
}
