//! Variables that log an agent in and that the user wanted kept: a file that only the user can read.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agents::AgentSpec;
use crate::error::{Context as _, Failure, Result};
use crate::paths::{Paths, replace};

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The variables of agents, by agent.
    pub(crate) agents: BTreeMap<String, BTreeMap<String, String>>,
    /// Credentials by the way to authenticate, whichever agent has it.
    pub(crate) auth: BTreeMap<String, String>,
}

pub(crate) fn credentials_file(paths: &Paths) -> PathBuf {
    paths.config.join("credentials.json")
}

/// Under which name an agent's variables are kept. A command that has no name in the settings is known by itself alone, so that its
/// secrets never reach another program that happens to be called the same.
pub(crate) fn key(spec: &AgentSpec) -> String {
    if spec.known { spec.name.clone() } else { spec.identity() }
}

/// All that is kept.
pub(crate) fn load(paths: &Paths) -> Result<Stored> {
    let path = credentials_file(paths);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::default()),
        Err(error) => return Err(error).context(path.display()),
    };
    // What is wrong with it is told without its text.
    read(&text).ok_or_else(|| {
        Failure::runtime(format_args!("{} is damaged", path.display())).hint("delete it and log in again")
    })
}

fn read(text: &str) -> Option<Stored> {
    let value: Value = serde_json::from_str(text).ok()?;
    let texts = |value: &Value| -> Option<BTreeMap<String, String>> {
        value
            .as_object()?
            .iter()
            .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    let agents = value.get("agents")?.as_object()?;
    let agents: Option<BTreeMap<_, _>> =
        agents.iter().map(|(agent, value)| Some((agent.clone(), texts(value)?))).collect();
    let auth = match value.get("auth") {
        Some(auth) => texts(auth)?,
        None => BTreeMap::new(),
    };
    Some(Stored { agents: agents?, auth })
}

/// Keeps exactly this.
pub(crate) fn save(paths: &Paths, stored: &Stored) -> Result<()> {
    let path = credentials_file(paths);
    if *stored == Stored::default() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(path.display()),
            _ => Ok(()),
        };
    }
    let text =
        serde_json::to_string_pretty(&json!({ "version": 1, "agents": stored.agents, "auth": stored.auth }))
            .context("credentials")?;
    replace(&path, format!("{text}\n").as_bytes()).context(path.display())
}

/// The variables that are kept for an agent and that the environment does not set itself.
pub(crate) fn variables(paths: &Paths, spec: &AgentSpec) -> Result<Vec<(String, String)>> {
    let kept = load(paths)?.agents.remove(&key(spec)).unwrap_or_default();
    Ok(kept.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect())
}

/// Forgets an agent; gives the names of the variables that were kept.
pub(crate) fn forget(paths: &Paths, spec: &AgentSpec) -> Result<Vec<String>> {
    let mut stored = load(paths)?;
    let Some(gone) = stored.agents.remove(&key(spec)) else { return Ok(Vec::new()) };
    save(paths, &stored)?;
    Ok(gone.into_keys().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_kept_reads_back() {
        let text = r#"{"version":1,"agents":{"gemini":{"GEMINI_API_KEY":"k"}}}"#;
        assert_eq!(read(text).unwrap().agents["gemini"]["GEMINI_API_KEY"], "k");
        assert!(read(r#"{"agents":{"gemini":{"A":1}}}"#).is_none());
        assert!(read("").is_none());
    }
}
