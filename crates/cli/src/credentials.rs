//! Saved credentials, in a private file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use attache_conn::private;
use serde::Deserialize;
use serde_json::json;

use crate::agents::AgentSpec;
use crate::error::{Context as _, Failure, Result};
use crate::paths::{Paths, replace};

/// The saved credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The variables of agents, by agent.
    pub(crate) agents: BTreeMap<String, BTreeMap<String, String>>,
    /// Credentials by agent and by the way to authenticate.
    pub(crate) auth: BTreeMap<String, BTreeMap<String, String>>,
    /// Credentials that no agent was named for. They are not used.
    pub(crate) unassigned: BTreeMap<String, String>,
}

pub(crate) fn credentials_file(paths: &Paths) -> PathBuf {
    paths.config.join("credentials.json")
}

/// Reads all credentials. A file that other users can read is refused.
pub(crate) fn load(paths: &Paths) -> Result<Stored> {
    let path = credentials_file(paths);
    let Some(text) = private::read_secret(&path).context("credentials")? else {
        return Ok(Stored::default());
    };
    // The error must not quote the file.
    read(&text).ok_or_else(|| {
        Failure::runtime(format_args!("{} is damaged", path.display())).hint("delete it and log in again")
    })
}

fn read(text: &str) -> Option<Stored> {
    /// Credentials of an agent; the first version of the file named no agents.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Credentials {
        Unassigned(String),
        OfAgent(BTreeMap<String, String>),
    }
    #[derive(Deserialize)]
    struct Contents {
        agents: BTreeMap<String, BTreeMap<String, String>>,
        #[serde(default)]
        auth: BTreeMap<String, Credentials>,
        #[serde(default)]
        unassigned: BTreeMap<String, String>,
    }
    let Contents { agents, auth, unassigned } = serde_json::from_str(text).ok()?;
    let mut stored = Stored { agents, unassigned, ..Stored::default() };
    for (name, credentials) in auth {
        match credentials {
            Credentials::Unassigned(credential) => drop(stored.unassigned.insert(name, credential)),
            Credentials::OfAgent(methods) => drop(stored.auth.insert(name, methods)),
        }
    }
    Some(stored)
}

/// Replaces all credentials.
pub(crate) fn save(paths: &Paths, stored: &Stored) -> Result<()> {
    let path = credentials_file(paths);
    if *stored == Stored::default() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(path.display()),
            _ => Ok(()),
        };
    }
    let Stored { agents, auth, unassigned } = stored;
    let value = json!({ "version": 2, "agents": agents, "auth": auth, "unassigned": unassigned });
    replace(&path, format!("{value:#}\n").as_bytes()).context("credentials")
}

/// The saved variables of an agent that the environment does not set.
pub(crate) fn variables(paths: &Paths, spec: &AgentSpec) -> Result<Vec<(String, String)>> {
    let kept = load(paths)?.agents.remove(&spec.name).unwrap_or_default();
    Ok(kept.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect())
}

/// All saved values, to mask them. A file that cannot be read has none.
pub(crate) fn secrets(paths: &Paths) -> Vec<String> {
    let Stored { agents, auth, unassigned } = load(paths).unwrap_or_default();
    let of_agents = agents.into_values().chain(auth.into_values()).flat_map(BTreeMap::into_values);
    of_agents.chain(unassigned.into_values()).collect()
}

/// Deletes the credentials of an agent. Returns their names.
pub(crate) fn forget(paths: &Paths, spec: &AgentSpec) -> Result<Vec<String>> {
    let mut stored = load(paths)?;
    // Earlier versions also kept something for command lines.
    let key = if spec.known { spec.name.clone() } else { spec.identity() };
    let gone: Vec<String> = [stored.agents.remove(&key), stored.auth.remove(&key)]
        .into_iter()
        .flatten()
        .flat_map(BTreeMap::into_keys)
        .collect();
    if !gone.is_empty() {
        save(paths, &stored)?;
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn credentials_without_an_agent_are_unassigned() {
        let stored = read(r#"{"version":1,"agents":{},"auth":{"openai-api-key":"k"}}"#).unwrap();
        assert!(stored.auth.is_empty());
        assert_eq!(stored.unassigned["openai-api-key"], "k");
    }

    #[test]
    fn stored_values_round_trip() {
        let text = r#"{"version":1,"agents":{"gemini":{"GEMINI_API_KEY":"k"}}}"#;
        assert_eq!(read(text).unwrap().agents["gemini"]["GEMINI_API_KEY"], "k");
        assert!(read(r#"{"agents":{"gemini":{"A":1}}}"#).is_none());
        let text = r#"{"version":2,"agents":{},"auth":{"codex":{"key":"a"}},"unassigned":{"other":"b"}}"#;
        let stored = read(text).unwrap();
        assert_eq!(stored.auth["codex"]["key"], "a");
        assert_eq!(stored.unassigned["other"], "b");
        assert!(read("").is_none());
    }
}
