//! `[agents.NAME]` in the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Address, AgentSpec};
use crate::error::{Failure, Result};

/// An agent in the settings: `command` (a line, or a program with `args`), `argv` or `url`.
#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    args: Option<Vec<String>>,
    argv: Option<Vec<String>>,
    url: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    mode: Option<String>,
    model: Option<String>,
    missing_files_are_empty: Option<bool>,
    token_file: Option<PathBuf>,
}

/// The command or address of an entry, without values that may be secret.
pub(crate) fn describe_entry(value: &toml::Value) -> String {
    spec("agent", value).map(|spec| spec.address.to_string()).unwrap_or_else(|failure| failure.message)
}

/// Reads an entry.
pub(crate) fn spec(name: &str, value: &toml::Value) -> Result<AgentSpec> {
    let wrong = |reason: &dyn std::fmt::Display| Failure::usage(format_args!("`agents.{name}`: {reason}"));
    let entry = Entry::deserialize(value.clone()).map_err(|error| wrong(&error.message()))?;
    let address = match (entry.argv, entry.command, entry.args, entry.url) {
        (Some(argv), None, None, None) => Address::command(argv)?,
        (None, Some(command), Some(args), None) => {
            Address::command(std::iter::once(command).chain(args).collect())?
        }
        (None, Some(command), None, None) => Address::parse(&command)?,
        (None, None, None, Some(url)) => Address::parse(&url)?,
        _ => return Err(wrong(&"provide one of `command` (with or without `args`), `argv` and `url`")),
    };
    Ok(AgentSpec {
        env: entry.env.into_iter().collect(),
        cwd: entry.cwd,
        mode: entry.mode,
        model: entry.model,
        missing_files_are_empty: entry.missing_files_are_empty,
        token_file: entry.token_file,
        ..AgentSpec::new(name, address)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(text: &str) -> Result<AgentSpec> {
        spec("a", &toml::Value::Table(text.parse().unwrap()))
    }

    #[test]
    fn three_ways_to_write_a_command() {
        let argv = entry("argv = ['my agent', '--acp']").unwrap();
        let line = entry("command = \"'my agent' --acp\"").unwrap();
        let both = entry("command = 'my agent'\nargs = ['--acp']\nenv = { A = '1' }").unwrap();
        assert_eq!(argv.address, line.address);
        assert_eq!(argv.address, both.address);
        assert_eq!(both.env, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(
            entry("url = 'tcp://localhost:1'").unwrap().address,
            Address::Tcp("localhost:1".to_owned())
        );
    }

    #[test]
    fn mistakes_are_reported() {
        for text in ["", "command = 1", "argv = []", "command = 'x'\nargv = ['x']", "command = 'x'\nenv = 1"]
        {
            assert!(entry(text).is_err(), "{text}");
        }
    }
}
