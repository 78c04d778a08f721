//! Where an agent runs: directories and an environment of its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::agents::{Agent, Setup};
use super::drive::Programs;

/// What the files to work on hold.
pub(super) const BEFORE: &str = "one\ntwo\nthree\n";

/// Where an agent runs with a real model.
pub(crate) struct ModelEnvironment<'a> {
    /// Has the directories `work`, `home` and `tmp`.
    pub(crate) dir: &'a Path,
    /// The server of the model, without `/v1`. It is also the proxy for everything else.
    pub(crate) url: &'a str,
    pub(crate) model: &'a str,
    pub(crate) window: u64,
}

/// The name of the fake model.
const FAKE_MODEL: &str = "fake-model";

pub(super) struct AgentEnvironment {
    pub(super) dir: PathBuf,
    /// The session's directory.
    pub(super) work: PathBuf,
    home: PathBuf,
    /// Where the model answers.
    pub(super) url: String,
    /// The name of the model.
    pub(super) model: String,
    /// Its context window, if the agent is to know it.
    pub(super) window: Option<u64>,
    /// Where the agent's package is installed, and the directory of its `node`.
    pub(super) package: PathBuf,
    pub(super) node: PathBuf,
}

impl AgentEnvironment {
    /// Directories for an agent, with the files that the scenes work on; what an earlier run left
    /// is gone.
    pub(super) fn clear(dir: &Path) -> Result<(), String> {
        let make = || {
            if dir.exists() {
                fs::remove_dir_all(dir)?;
            }
            for sub in ["work", "home", "tmp"] {
                fs::create_dir_all(dir.join(sub))?;
            }
            for file in ["note.txt", "kept.txt"] {
                fs::write(dir.join("work").join(file), BEFORE)?;
            }
            Ok(())
        };
        make().map_err(|error: std::io::Error| format!("{}: {error}", dir.display()))
    }

    /// The place in these directories for an agent whose model answers at `url`.
    pub(super) fn new(dir: &Path, url: &str, agent: &Agent, programs: &Programs) -> Self {
        Self {
            dir: dir.to_owned(),
            work: dir.join("work"),
            home: dir.join("home"),
            url: url.to_owned(),
            model: FAKE_MODEL.to_owned(),
            window: None,
            package: programs.packages.join(agent.name),
            node: programs.node.clone(),
        }
    }

    /// The place for an agent with a real model.
    pub(super) fn with_model(place: &ModelEnvironment<'_>, package: PathBuf, node: PathBuf) -> Self {
        Self {
            dir: place.dir.to_owned(),
            work: place.dir.join("work"),
            home: place.dir.join("home"),
            url: place.url.to_owned(),
            model: place.model.to_owned(),
            window: Some(place.window),
            package,
            node,
        }
    }

    /// A path inside the agent's package.
    pub(super) fn installed(&self, path: &str) -> String {
        self.package.join("node_modules").join(path).to_string_lossy().into_owned()
    }

    /// A command that runs a script of the agent's package.
    pub(super) fn script(&self, path: &str, args: &[&str]) -> Vec<String> {
        let mut command = vec![self.node.join("node").to_string_lossy().into_owned(), self.installed(path)];
        command.extend(args.iter().map(|arg| (*arg).to_owned()));
        command
    }

    /// Changes the user's settings of the program `attache`.
    pub(super) fn set(&self, settings: &str) -> Result<(), String> {
        let dir = self.home.join(".config/attache");
        let write = || {
            fs::create_dir_all(&dir)?;
            fs::write(dir.join("config.toml"), settings)
        };
        write().map_err(|error: std::io::Error| format!("{}: {error}", dir.display()))
    }

    /// Writes the agent's settings and returns its whole environment.
    pub(super) fn settle(&self, setup: &Setup) -> Result<Vec<(String, String)>, String> {
        for (file, text) in &setup.files {
            let path = self.home.join(file);
            let write = || {
                fs::create_dir_all(path.parent().unwrap_or(&path))?;
                fs::write(&path, text)
            };
            write().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))?;
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let at = |sub: &str| self.home.join(sub).to_string_lossy().into_owned();
        let mut env: Vec<(String, String)> = vec![
            ("PATH".into(), format!("{}:{path}", self.node.display())),
            ("HOME".into(), at("")),
            ("XDG_CONFIG_HOME".into(), at(".config")),
            ("XDG_DATA_HOME".into(), at(".local/share")),
            ("XDG_STATE_HOME".into(), at(".local/state")),
            ("XDG_CACHE_HOME".into(), at(".cache")),
            ("TMPDIR".into(), self.dir.join("tmp").to_string_lossy().into_owned()),
            ("LANG".into(), "C.UTF-8".into()),
            ("TERM".into(), "dumb".into()),
            ("NODE_USE_ENV_PROXY".into(), "1".into()),
        ];
        // Requests that would leave the loopback go to the model as their proxy, which lists and
        // refuses them.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            env.push((name.into(), self.url.clone()));
        }
        for name in ["NO_PROXY", "no_proxy"] {
            env.push((name.into(), "127.0.0.1,localhost,::1".into()));
        }
        env.extend(setup.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(env)
    }
}
