//! Variables that log an agent in and that the user wanted kept: a file that only the user can read.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use attache_conn::private;
use serde_json::{Value, json};

use crate::agents::AgentSpec;
use crate::error::{Context as _, Failure, Result};
use crate::paths::{Paths, replace};

/// What is kept.
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

/// All that is kept. A file that other users can read is refused.
pub(crate) fn load(paths: &Paths) -> Result<Stored> {
    let path = credentials_file(paths);
    let Some(text) = private::read_secret(&path).context("credentials")? else {
        return Ok(Stored::default());
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
    let mut stored = Stored::default();
    for (agent, variables) in value.get("agents")?.as_object()? {
        stored.agents.insert(agent.clone(), texts(variables)?);
    }
    for (name, value) in value.get("auth").and_then(Value::as_object).into_iter().flatten() {
        match value {
            // The first version of the file named no agents.
            Value::String(credential) => drop(stored.unassigned.insert(name.clone(), credential.clone())),
            methods => drop(stored.auth.insert(name.clone(), texts(methods)?)),
        }
    }
    if let Some(unassigned) = value.get("unassigned") {
        stored.unassigned.extend(texts(unassigned)?);
    }
    Some(stored)
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
    let Stored { agents, auth, unassigned } = stored;
    let value = json!({ "version": 2, "agents": agents, "auth": auth, "unassigned": unassigned });
    replace(&path, format!("{value:#}\n").as_bytes()).context("credentials")
}

/// The variables that are kept for an agent that can have some, and that the environment does not set itself.
pub(crate) fn variables(paths: &Paths, spec: &AgentSpec) -> Result<Vec<(String, String)>> {
    let kept = load(paths)?.agents.remove(&spec.name).unwrap_or_default();
    Ok(kept.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect())
}

/// Every value that is kept, to keep it out of other files. A file that cannot be read has none.
pub(crate) fn secrets(paths: &Paths) -> Vec<String> {
    let Stored { agents, auth, unassigned } = load(paths).unwrap_or_default();
    let of_agents = agents.into_values().chain(auth.into_values()).flat_map(BTreeMap::into_values);
    of_agents.chain(unassigned.into_values()).collect()
}

/// Forgets an agent; gives the names of what was kept.
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
    fn what_named_no_agent_is_kept_apart() {
        let stored = read(r#"{"version":1,"agents":{},"auth":{"openai-api-key":"k"}}"#).unwrap();
        assert!(stored.auth.is_empty());
        assert_eq!(stored.unassigned["openai-api-key"], "k");
    }

    #[test]
    fn what_is_kept_reads_back() {
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
