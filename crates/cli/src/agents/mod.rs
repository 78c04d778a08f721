//! Agents: from the settings, from a built-in table, or any command.

mod builtin;
mod entry;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use attache_registry::on_path;
pub(crate) use builtin::{BUILTIN, OWN, builtin};
pub(crate) use entry::{describe_entry, spec as entry_spec};
pub(crate) use words::{join, split};

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result};

/// An agent that can be connected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentSpec {
    /// Its name in this program.
    pub(crate) name: String,
    /// Whether that is a name of the settings or of the table, and not only a command.
    pub(crate) known: bool,
    /// Its command or address.
    pub(crate) address: Address,
    /// Variables for its environment, beside our own.
    pub(crate) env: Vec<(String, String)>,
    /// The directory that it is started in; the session's unless said.
    pub(crate) cwd: Option<PathBuf>,
    /// Whether reading a missing file gives an empty text; unless set, the name and version of the
    /// agent decide.
    pub(crate) missing_files_are_empty: Option<bool>,
    /// The mode and the model that its new sessions begin with.
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    /// The file with the token of a remote agent.
    #[serde(default)]
    pub(crate) token_file: Option<PathBuf>,
    /// Whether a remote agent may get the token of the environment.
    #[serde(default)]
    pub(crate) takes_token: bool,
}

/// The command or address of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Address {
    /// A program to start.
    Command {
        /// A path, or a name that is looked up in PATH.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// A TCP address, `host:port`.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
    /// A URL: `ws`, `wss`, `http` or `https`.
    Remote(String),
}

impl Address {
    /// Reads a command line, a URL, `tcp://host:port` or `unix:/path`.
    pub(crate) fn parse(text: &str) -> Result<Address> {
        let text = text.trim();
        if let Some(address) = text.strip_prefix("tcp://") {
            let address = address.trim_end_matches('/');
            if !address.contains(':') {
                return Err(Failure::usage(format_args!(
                    "an agent's address is tcp://HOST:PORT, not `{text}`"
                )));
            }
            return Ok(Address::Tcp(address.to_owned()));
        }
        if ["ws://", "wss://", "http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Ok(Address::Remote(text.to_owned()));
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Address::Unix(PathBuf::from(path.strip_prefix("//").unwrap_or(path))));
        }
        Address::command(split(text)?)
    }

    /// A program and its arguments.
    pub(crate) fn command(words: Vec<String>) -> Result<Address> {
        let mut words = words.into_iter();
        match words.next().filter(|command| !command.is_empty()) {
            Some(command) => Ok(Address::Command { command, args: words.collect() }),
            None => Err(Failure::usage("the agent's command is empty")),
        }
    }
}

/// The address in one line; for a command it is the identity under which sessions are kept.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Command { command, args } => {
                f.write_str(&join(std::iter::once(command.as_str()).chain(args.iter().map(String::as_str))))
            }
            Address::Tcp(address) => write!(f, "tcp://{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Remote(url) => f.write_str(url),
        }
    }
}

impl AgentSpec {
    pub(crate) fn new(name: impl Into<String>, address: Address) -> AgentSpec {
        AgentSpec {
            name: name.into(),
            known: false,
            address,
            env: Vec::new(),
            cwd: None,
            missing_files_are_empty: None,
            mode: None,
            model: None,
            token_file: None,
            takes_token: false,
        }
    }

    /// The identity under which sessions are kept.
    pub(crate) fn identity(&self) -> String {
        self.address.to_string()
    }

    /// The identity under which answers to its permission questions are remembered. Two commands
    /// may have the same name.
    pub(crate) fn permission_key(&self) -> String {
        if self.known { self.name.clone() } else { self.identity() }
    }

    /// Returns the words that name it on a command line.
    pub(crate) fn argument(&self) -> String {
        if self.known { self.name.clone() } else { join([self.identity().as_str()]) }
    }

    /// Whether it is our own agent.
    pub(crate) fn is_own(&self) -> bool {
        self.known && self.name == OWN
    }

    /// The program that has to be there for the agent to start, if it is one.
    pub(crate) fn program(&self) -> Option<&str> {
        match &self.address {
            Address::Command { command, .. } => Some(command),
            _ => None,
        }
    }
}

/// An agent that was given as a command or an address.
pub(crate) fn raw(text: &str, default_name: &str) -> Result<AgentSpec> {
    let address = Address::parse(text).map_err(|failure| failure.context("--agent"))?;
    let name = match &address {
        Address::Command { command, .. } => {
            Path::new(command).file_stem().map(|stem| stem.to_string_lossy().into_owned())
        }
        _ => None,
    };
    Ok(AgentSpec::new(name.unwrap_or_else(|| default_name.to_owned()), address))
}
