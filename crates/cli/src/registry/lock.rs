//! What is installed, from where, in which version, with which hash: `agents.lock.json`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use attache_conn::private;
use serde_json::{Map, Value, json};

use super::format::Via;
use crate::error::{Context as _, Failure, Result};
use crate::paths::{private_dir, replace};

/// An agent that was installed from a registry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Installed {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// The index that it is from.
    pub(crate) source: String,
    pub(crate) via: Via,
    /// The package, or the address of the archive.
    pub(crate) from: String,
    /// The hash of the archive.
    pub(crate) sha256: Option<String>,
    /// Whether the index had a hash that it was compared with.
    pub(crate) verified: bool,
    /// Its directory, below that of all agents; `None` if nothing is on the disk.
    pub(crate) dir: Option<String>,
    /// The program, below `dir` if there is one, and its arguments.
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// When it was installed.
    pub(crate) at: String,
}

pub(crate) fn lock_file(data: &Path) -> PathBuf {
    data.join("agents.lock.json")
}

/// Where agents are unpacked.
pub(super) fn agents_dir(data: &Path) -> PathBuf {
    data.join("agents")
}

/// What is installed.
pub(crate) fn installed(data: &Path) -> Result<BTreeMap<String, Installed>> {
    let path = lock_file(data);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error).context(path.display()),
    };
    read(&text).map_err(|what| {
        Failure::runtime(format_args!("{}: {what}", path.display()))
            .hint("if you cannot mend it, delete it and install the agents again")
    })
}

fn read(text: &str) -> Result<BTreeMap<String, Installed>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.get("version").and_then(Value::as_u64) != Some(1) {
        return Err("it was written by another version of this program".to_owned());
    }
    let agents = value.get("agents").and_then(Value::as_object).ok_or("`agents` is missing")?;
    agents
        .iter()
        .map(|(id, agent)| {
            let agent = Installed::read(id, agent).ok_or_else(|| format!("`{id}` is damaged"))?;
            Ok((id.clone(), agent))
        })
        .collect()
}

impl Installed {
    fn read(id: &str, value: &Value) -> Option<Installed> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let argv: Option<Vec<String>> =
            value.get("argv")?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect();
        let env: Option<BTreeMap<String, String>> = match value.get("env") {
            None => Some(BTreeMap::new()),
            Some(env) => env
                .as_object()?
                .iter()
                .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
        };
        Some(Installed {
            id: id.to_owned(),
            name: text("name")?,
            version: text("version")?,
            source: text("source")?,
            via: Via::from_name(&text("via")?)?,
            from: text("from")?,
            sha256: text("sha256"),
            verified: value.get("verified").and_then(Value::as_bool).unwrap_or_default(),
            dir: text("dir"),
            argv: argv.filter(|argv| !argv.is_empty())?,
            env: env?,
            at: text("installedAt").unwrap_or_default(),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "version": self.version,
            "source": self.source,
            "via": self.via.name(),
            "from": self.from,
            "argv": self.argv,
            "installedAt": self.at,
        });
        if let Some(object) = value.as_object_mut() {
            if let Some(sha256) = &self.sha256 {
                object.insert("sha256".to_owned(), json!(sha256));
                object.insert("verified".to_owned(), json!(self.verified));
            }
            if let Some(dir) = &self.dir {
                object.insert("dir".to_owned(), json!(dir));
            }
            if !self.env.is_empty() {
                object.insert("env".to_owned(), json!(self.env));
            }
        }
        value
    }

    /// The command that starts it: the program's full path if it is on the disk.
    pub(crate) fn command(&self, data: &Path) -> Vec<String> {
        let mut argv = self.argv.clone();
        if let (Some(dir), Some(program)) = (&self.dir, argv.first_mut()) {
            *program = agents_dir(data).join(dir).join(&program).to_string_lossy().into_owned();
        }
        argv
    }
}

/// The right to change what is installed; whoever comes second waits.
pub(super) struct Changing {
    data: PathBuf,
    pub(super) agents: BTreeMap<String, Installed>,
    /// The lock is given back when the file is closed.
    _file: File,
}

impl Changing {
    pub(super) fn begin(data: &Path) -> Result<Changing> {
        private_dir(data).context("the registry")?;
        let path = data.join(".agents.lock");
        let file = private::open_or_create(&path).context("the registry")?;
        file.lock().context(path.display())?;
        let dir = agents_dir(data);
        private_dir(&dir).context("the registry")?;
        // What others began and did not finish.
        for left in fs::read_dir(&dir).context(dir.display())?.flatten() {
            if left.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let _ = fs::remove_dir_all(left.path());
            }
        }
        Ok(Changing { data: data.to_owned(), agents: installed(data)?, _file: file })
    }

    /// A directory that is swept away unless it is moved in time.
    pub(super) fn unfinished(&self, id: &str) -> PathBuf {
        agents_dir(&self.data).join(format!("{UNFINISHED}{id}"))
    }

    /// Moves a finished directory to its place, below that of all agents, and gives its name there.
    pub(super) fn settle(&self, unfinished: &Path, id: &str, version: &str) -> Result<String> {
        let base = agents_dir(&self.data);
        private_dir(&base.join(id)).context("the registry")?;
        // An installation of the same version may be running from its directory: it stays until this one is recorded.
        let free = (0..).map(|round| match round {
            0 => format!("{id}/{version}"),
            round => format!("{id}/{version}.{round}"),
        });
        let name = free.into_iter().find(|name| !base.join(name).exists()).unwrap_or_default();
        fs::rename(unfinished, base.join(&name)).context(base.display())?;
        Ok(name)
    }

    /// Records the change, then takes away what nothing refers to any more.
    pub(super) fn record(&self) -> Result<()> {
        let agents: Map<String, Value> =
            self.agents.iter().map(|(id, agent)| (id.clone(), agent.to_json())).collect();
        let text = serde_json::to_string_pretty(&json!({ "version": 1, "agents": agents }))
            .context("the lock file")?;
        let path = lock_file(&self.data);
        replace(&path, format!("{text}\n").as_bytes()).context("the registry")?;
        self.sweep();
        Ok(())
    }

    fn sweep(&self) {
        let base = agents_dir(&self.data);
        let used = |dir: &Path| {
            self.agents.values().any(|agent| agent.dir.as_ref().is_some_and(|used| base.join(used) == dir))
        };
        for agent in fs::read_dir(&base).into_iter().flatten().flatten() {
            for version in fs::read_dir(agent.path()).into_iter().flatten().flatten() {
                if !used(&version.path()) {
                    let _ = fs::remove_dir_all(version.path());
                }
            }
            // Only goes if it is empty.
            let _ = fs::remove_dir(agent.path());
        }
    }
}

const UNFINISHED: &str = ".new-";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn agent() -> Installed {
        Installed {
            id: "goose".to_owned(),
            name: "Goose".to_owned(),
            version: "1.0.0".to_owned(),
            source: "https://example.com/registry.json".to_owned(),
            via: Via::Binary,
            from: "https://example.com/goose.tgz".to_owned(),
            sha256: Some("a".repeat(64)),
            verified: true,
            dir: Some("goose/1.0.0".to_owned()),
            argv: vec!["bin/goose".to_owned(), "acp".to_owned()],
            env: [("A".to_owned(), "1".to_owned())].into(),
            at: "2026-11-15T00:00:00.000Z".to_owned(),
        }
    }

    #[test]
    fn written_and_read_back() {
        let text = json!({ "version": 1, "agents": { "goose": agent().to_json() } }).to_string();
        assert_eq!(read(&text).unwrap()["goose"], agent());
        assert_eq!(agent().command(Path::new("/d")), ["/d/agents/goose/1.0.0/bin/goose", "acp"]);
        assert!(read("{}").is_err());
        assert!(read(r#"{"version":1,"agents":{"x":{}}}"#).is_err());
    }
}
