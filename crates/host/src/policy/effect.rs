//! Effects: what happens if a request is allowed.
//!
//! A request is a list of effects from a closed set. A question shows each of them, a rule matches
//! one of them at a time, and an answer grants exactly those that were shown. What an agent says
//! beside them (titles, kinds, further members of its input) is shown as its own words and grants
//! nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CommandLine, FilePath, command, protected};

/// One thing that happens if a request is allowed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Reads a file, or lists or searches a directory.
    Read(FilePath),
    /// Creates a file or replaces its text.
    Write {
        /// The file.
        path: FilePath,
        /// The text.
        content: Content,
    },
    /// Deletes a file.
    Delete(FilePath),
    /// Moves a file.
    Rename {
        /// The file.
        from: FilePath,
        /// Its new path.
        to: FilePath,
    },
    /// Names a file without saying what happens to it.
    Touch(FilePath),
    /// Runs a command.
    Run(Run),
    /// Connects to a host.
    Connect(Destination),
    /// Calls a tool that is not one of the other effects: of an MCP server, or inside the agent.
    Tool(ToolUse),
    /// Keeps what a command did to a protected file: created, changed or removed it.
    Keep(FilePath),
    /// Leaves a mode that allows less.
    SwitchMode(String),
}

/// The text that a file gets.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// The whole text, to be shown as a change of the old one.
    Known {
        /// The text before, if there is a file and its text is known.
        old: Option<Arc<str>>,
        /// The text afterwards.
        new: Arc<str>,
    },
    /// The agent does not say.
    Unknown,
}

impl Content {
    /// A text that is known.
    pub fn known(old: Option<&str>, new: &str) -> Self {
        Content::Known { old: old.map(Arc::from), new: Arc::from(new) }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Known { new, .. } => write!(f, "Known({} bytes)", new.len()),
            Content::Unknown => f.write_str("Unknown"),
        }
    }
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The command.
    pub command: CommandLine,
    /// The directory in which it runs.
    pub cwd: FilePath,
    /// Variables that the agent sets for it.
    pub env: BTreeMap<String, String>,
    /// How it is confined. Set only by code that enforces it.
    pub confined: Confined,
}

impl Run {
    /// A command without variables, not confined.
    pub fn new(command: CommandLine, cwd: FilePath) -> Self {
        Run { command, cwd, env: BTreeMap::new(), confined: Confined::No }
    }

    /// The variables that may change which code runs.
    pub fn effective_env(&self) -> impl Iterator<Item = (&str, &str)> {
        let env = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        env.filter(|(name, _)| !command::is_harmless_variable(name))
    }

    /// Whether it does the same as the other one: command, directory and variables.
    pub fn is_same(&self, other: &Run) -> bool {
        self.command.is_same(&other.command)
            && self.cwd.real() == other.cwd.real()
            && self.effective_env().eq(other.effective_env())
    }
}

/// How a command is confined. The stricter is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confined {
    /// It can do what the user can.
    #[default]
    No,
    /// It writes only inside the session's directories and reaches the network only through the
    /// proxy.
    Workspace,
    /// It sees the session's directories read-only, and no network.
    ReadOnly,
}

/// A host to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The host in lower case; empty if the address cannot be read with certainty.
    pub host: String,
    /// The port, if one is known.
    pub port: Option<u16>,
    /// Whether it is this machine or one of its local networks, whose services often trust every
    /// peer that can reach them.
    pub is_near: bool,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.is_empty() { "an unreadable address" } else { &self.host };
        match self.port {
            Some(port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Some(port) => write!(f, "{host}:{port}"),
            None => f.write_str(host),
        }
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// The MCP server that has it; `None` for a tool inside the agent.
    pub server: Option<String>,
    /// The name of the tool, if the agent gives one.
    pub name: Option<String>,
    /// The input, as JSON.
    pub input: Option<String>,
}

/// The class of an effect, for words in rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reads.
    Read,
    /// Writes a file.
    Write,
    /// Deletes a file.
    Delete,
    /// Moves a file.
    Rename,
    /// Names a file.
    Touch,
    /// Runs a command.
    Run,
    /// Connects to a host.
    Connect,
    /// Calls a tool, or switches a mode.
    Tool,
}

impl Effect {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            Effect::Read(_) => Class::Read,
            Effect::Write { .. } | Effect::Keep(_) => Class::Write,
            Effect::Delete(_) => Class::Delete,
            Effect::Rename { .. } => Class::Rename,
            Effect::Touch(_) => Class::Touch,
            Effect::Run(_) => Class::Run,
            Effect::Connect(_) => Class::Connect,
            Effect::Tool(_) | Effect::SwitchMode(_) => Class::Tool,
        }
    }

    /// The files that it names.
    pub fn paths(&self) -> Vec<&FilePath> {
        match self {
            Effect::Read(path) | Effect::Delete(path) | Effect::Touch(path) | Effect::Keep(path) => {
                vec![path]
            }
            Effect::Write { path, .. } => vec![path],
            Effect::Rename { from, to } => vec![from, to],
            _ => Vec::new(),
        }
    }

    /// Whether it changes a file that makes programs run or instructs agents.
    pub fn is_protected(&self) -> bool {
        let changes = matches!(
            self,
            Effect::Write { .. } | Effect::Delete(_) | Effect::Rename { .. } | Effect::Keep(_)
        );
        changes
            && self
                .paths()
                .iter()
                .any(|path| protected::is_protected(path.real()) || protected::is_protected(path.named()))
    }

    /// Whether all files that it names are below `roots`. Without roots it cannot be known, and
    /// counts as inside.
    pub(super) fn is_inside(&self, roots: &[PathBuf]) -> bool {
        roots.is_empty() || self.paths().iter().all(|path| path.is_inside(roots))
    }

    /// Its fingerprint, for a grant: equal only for the same effect with the same content. `None`
    /// for an effect that does not say enough to be granted.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        let mut hash = Hasher::new();
        match self {
            Effect::Read(path) => hash.text("read").path(path),
            Effect::Write { path, content: Content::Known { new, .. } } => {
                hash.text("write").path(path).text(new)
            }
            Effect::Delete(path) => hash.text("delete").path(path),
            Effect::Rename { from, to } => hash.text("rename").path(from).path(to),
            Effect::Connect(to) if !to.host.is_empty() => hash.text("connect").text(&to.to_string()),
            // Commands are compared, not hashed: the same one can be written in two ways.
            _ => return None,
        };
        Some(hash.finish())
    }
}

/// A hash of everything that an effect does.
pub(super) type Fingerprint = [u8; 32];

struct Hasher(ring::digest::Context);

impl Hasher {
    fn new() -> Self {
        Hasher(ring::digest::Context::new(&ring::digest::SHA256))
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn path(&mut self, path: &FilePath) -> &mut Self {
        self.bytes(path.real().as_os_str().as_encoded_bytes())
    }

    /// With its length, so that two texts cannot be split in another way.
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn finish(self) -> Fingerprint {
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(self.0.finish().as_ref());
        fingerprint
    }
}

/// What a line of a log or a notice says about it.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Read(path) => write!(f, "read {}", path.named().display()),
            Effect::Write { path, .. } => write!(f, "write {}", path.named().display()),
            Effect::Delete(path) => write!(f, "delete {}", path.named().display()),
            Effect::Rename { from, to } => {
                write!(f, "move {} to {}", from.named().display(), to.named().display())
            }
            Effect::Touch(path) => write!(f, "use {}", path.named().display()),
            Effect::Run(run) => write!(f, "run `{}`", run.command),
            Effect::Connect(to) => write!(f, "connect to {to}"),
            Effect::Tool(ToolUse { server: Some(server), name, .. }) => {
                write!(f, "call the tool `{}` of `{server}`", name.as_deref().unwrap_or_default())
            }
            Effect::Tool(ToolUse { name: Some(name), .. }) => write!(f, "use the agent's tool `{name}`"),
            Effect::Tool(_) => f.write_str("do something that the agent does not describe"),
            Effect::Keep(path) => write!(f, "keep {}", path.named().display()),
            Effect::SwitchMode(to) => write!(f, "switch to {to} mode"),
        }
    }
}
