//! `[agents.NAME]` in the settings.

use std::path::PathBuf;

use super::{Address, AgentSpec};
use crate::error::{Failure, Result};

/// Whether an entry can be used, so that a slip is told when the file is read and not when the agent is.
pub(crate) fn check_entry(name: &str, value: &toml::Value) -> Result<()> {
    spec(name, value).map(|_| ())
}

/// How the agent is started, without values that may be secret.
pub(crate) fn describe_entry(value: &toml::Value) -> String {
    spec("agent", value).map(|spec| spec.address.to_string()).unwrap_or_else(|failure| failure.message)
}

/// The agent that an entry describes: `command` (a line, or a program with `args`), `argv` or `url`, and `env`, `cwd`, `mode`, `model`.
pub(crate) fn spec(name: &str, value: &toml::Value) -> Result<AgentSpec> {
    let wrong = |what: &str| Failure::usage(format_args!("`agents.{name}`: {what}"));
    let Some(table) = value.as_table() else { return Err(wrong("this is a table, with a `command`")) };
    let text = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(&format!("`{key}` is a text"))),
    };
    let words = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::Array(items)) => {
            let words: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            words.map(Some).ok_or_else(|| wrong(&format!("`{key}` is a list of texts")))
        }
        Some(_) => Err(wrong(&format!("`{key}` is a list of texts"))),
    };
    let address = match (words("argv")?, text("command")?, words("args")?, text("url")?) {
        (Some(argv), None, None, None) => Address::command(argv)?,
        (None, Some(command), Some(args), None) => {
            Address::command(std::iter::once(command).chain(args).collect())?
        }
        (None, Some(command), None, None) => Address::parse(&command)?,
        (None, None, None, Some(url)) => Address::parse(&url)?,
        _ => return Err(wrong("one of `command` (with or without `args`), `argv` and `url` is needed")),
    };
    let mut spec = AgentSpec::new(name, address);
    match table.get("env") {
        None => {}
        Some(toml::Value::Table(env)) => {
            for (key, value) in env {
                let value = value.as_str().ok_or_else(|| wrong("`env` holds texts"))?;
                spec.env.push((key.clone(), value.to_owned()));
            }
        }
        Some(_) => return Err(wrong("`env` is a table")),
    }
    spec.cwd = text("cwd")?.map(PathBuf::from);
    spec.mode = text("mode")?;
    spec.model = text("model")?;
    spec.missing_files_are_empty = table.get("missing_files_are_empty").and_then(toml::Value::as_bool);
    Ok(spec)
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
    fn slips_are_told() {
        for text in ["", "command = 1", "argv = []", "command = 'x'\nargv = ['x']", "command = 'x'\nenv = 1"]
        {
            assert!(entry(text).is_err(), "{text}");
        }
    }
}
