//! Scopes: what an answer can be remembered for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CommandLine, Confined, Effect, FilePath, Run};
use crate::secrets::is_secret_name;

/// A set of effects that an answer covers beyond the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scope {
    /// Writing files below a directory that are not protected.
    EditBelow(PathBuf),
    /// Reading everything below a directory.
    ReadBelow(PathBuf),
    /// One command, in one directory, with the same variables.
    Command {
        /// The command as one would type it.
        line: String,
        /// The directory, free of links.
        cwd: PathBuf,
        /// Variables that may change which code runs.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// The weakest confinement under which it was allowed.
        #[serde(default)]
        confined: Confined,
    },
    /// Connecting to a host.
    Host {
        /// The host.
        host: String,
        /// The port.
        port: Option<u16>,
    },
    /// Calling a tool of an MCP server, or one inside the agent.
    Tool {
        /// The server.
        server: Option<String>,
        /// The tool.
        name: String,
    },
}

impl Scope {
    /// The scope of an answer to this effect; `None` if it can only be answered once.
    pub(super) fn of(effect: &Effect, roots: &[PathBuf]) -> Option<Self> {
        match effect {
            Effect::Write { path, .. } if !effect.is_protected() => {
                let root = roots.iter().find(|root| path.real().starts_with(root))?;
                Some(Scope::EditBelow(root.clone()))
            }
            Effect::Read(path) => {
                let dir = match roots.iter().find(|root| path.real().starts_with(root)) {
                    Some(root) => root.as_path(),
                    // A directory is read as a whole; a file stands for the files beside it.
                    None if path.real().is_dir() => path.real(),
                    None => path.real().parent()?,
                };
                // Reading everything is more than an answer about one file can mean.
                (dir.parent().is_some()).then(|| Scope::ReadBelow(dir.to_owned()))
            }
            // A remembered variable is stored; a secret must not be.
            Effect::Run(run) if run.effective_env().any(|(name, _)| is_secret_name(name)) => None,
            Effect::Run(run) => Some(Scope::Command {
                line: run.command.text().trim().to_owned(),
                cwd: run.cwd.real().to_owned(),
                env: owned(run),
                confined: run.confined,
            }),
            Effect::Connect(to) if !to.host.is_empty() => {
                Some(Scope::Host { host: to.host.clone(), port: to.port })
            }
            Effect::Tool(used) => {
                let name = used.name.clone()?;
                Some(Scope::Tool { server: used.server.clone(), name })
            }
            _ => None,
        }
    }

    /// The scopes of an answer to a request with these effects; `None` if some of them can only be
    /// answered once.
    pub(super) fn of_all(effects: &[Effect], roots: &[PathBuf]) -> Option<Vec<Self>> {
        let mut scopes: Vec<Scope> = Vec::new();
        for effect in effects {
            let scope = Scope::of(effect, roots)?;
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        Some(scopes)
    }

    /// Whether an effect is in it.
    pub(super) fn covers(&self, effect: &Effect) -> bool {
        match (self, effect) {
            (Scope::EditBelow(dir), Effect::Write { path, .. }) => {
                path.real().starts_with(dir) && !effect.is_protected()
            }
            (Scope::ReadBelow(dir), Effect::Read(path)) => path.real().starts_with(dir),
            (Scope::Command { line, cwd, env, confined }, Effect::Run(run)) => {
                let remembered = Run {
                    command: CommandLine::shell(line),
                    cwd: FilePath::from_real(cwd),
                    env: env.clone(),
                    confined: *confined,
                };
                remembered.is_same(run) && run.confined >= *confined
            }
            (Scope::Host { host, port }, Effect::Connect(to)) => *host == to.host && *port == to.port,
            (Scope::Tool { server, name }, Effect::Tool(used)) => {
                *server == used.server && Some(name) == used.name.as_ref()
            }
            _ => false,
        }
    }

    /// The scope in a few words. Directories are shown relative to `base`.
    pub fn describe(&self, base: &Path) -> String {
        let short = |path: &Path| match path.strip_prefix(base) {
            Ok(relative) if relative.as_os_str().is_empty() => "this directory".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => path.display().to_string(),
        };
        match self {
            Scope::EditBelow(dir) if dir == base => "edit files".to_owned(),
            Scope::EditBelow(dir) => format!("edit files below {}", short(dir)),
            Scope::ReadBelow(dir) => format!("read files below {}", short(dir)),
            Scope::Command { line, cwd, env, confined } => {
                let mut text = format!("`{line}` in {}", short(cwd));
                match env.len() {
                    0 => {}
                    1 => text.push_str(" with 1 variable"),
                    count => text.push_str(&format!(" with {count} variables")),
                }
                if *confined != Confined::No {
                    text.push_str(", sandboxed");
                }
                text
            }
            Scope::Host { host, port: Some(port) } => format!("connect to {host}:{port}"),
            Scope::Host { host, port: None } => format!("connect to {host}"),
            Scope::Tool { server: Some(server), name } => format!("the tool `{name}` of `{server}`"),
            Scope::Tool { server: None, name } => format!("the agent's tool `{name}`"),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(Path::new("")))
    }
}

fn owned(run: &Run) -> BTreeMap<String, String> {
    run.effective_env().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
