//! Which version of the protocol an agent speaks, as far as it was seen, so that an agent of version 1 is not started twice
//! each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use attache::client::Protocol;
use serde::{Deserialize, Serialize};

use crate::agents::AgentSpec;
use crate::paths::{Paths, replace};

/// After this time an agent is asked again: it may have learned version 2.
const VALID_SECONDS: u64 = 7 * 24 * 60 * 60;
/// Agents that are remembered; the oldest are forgotten first.
const AGENTS: usize = 256;

/// The file of the agents that speak version 1 only, with the time when they said so.
pub(crate) fn file(paths: &Paths) -> PathBuf {
    paths.cache.join("versions.json")
}

#[derive(Default, Serialize, Deserialize)]
struct Known {
    #[serde(default)]
    version_1: BTreeMap<String, u64>,
}

fn read(file: &Path) -> Known {
    // The file is a cache: without it agents are asked.
    std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The versions to offer to an agent, by `--protocol` and by what it answered before.
///
/// To offer both may mean to start the agent twice. A command line is not started twice unless the user asks for it: it may do
/// more than start an agent.
pub(crate) fn offered(protocol: Option<&str>, file: &Path, spec: &AgentSpec) -> Protocol {
    match protocol {
        Some("1") => Protocol::V1,
        Some("2") => Protocol::V2,
        // Our own agent has nothing to gain from version 2, and its commands would not run in terminals of this program.
        None if !spec.known || spec.is_own() => Protocol::V1,
        _ => {
            let seen = read(file).version_1.get(&spec.address.to_string()).copied();
            let is_valid = seen.is_some_and(|seen| now().saturating_sub(seen) < VALID_SECONDS);
            if is_valid { Protocol::V1 } else { Protocol::Auto }
        }
    }
}

/// Remembers that an agent speaks version 1 only.
pub(crate) fn remember_version_1(file: &Path, spec: &AgentSpec) {
    let mut known = read(file);
    known.version_1.insert(spec.address.to_string(), now());
    while known.version_1.len() > AGENTS {
        let oldest = known.version_1.iter().min_by_key(|(_, seen)| **seen).map(|(agent, _)| agent.clone());
        let Some(oldest) = oldest else { break };
        known.version_1.remove(&oldest);
    }
    let write = || -> std::io::Result<()> {
        if let Some(dir) = file.parent() {
            crate::paths::private_dir(dir)?;
        }
        replace(file, &serde_json::to_vec(&known)?)
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "the versions of agents cannot be remembered");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::agents::Address;

    #[test]
    fn an_agent_of_version_1_is_remembered_for_a_while() {
        let dir = attache_conn::private::TempDir::within(&std::env::temp_dir(), "versions").unwrap();
        let file = dir.path().join("cache/versions.json");
        let spec = |name: &str| AgentSpec::new("x", Address::command(vec![name.to_owned()]).unwrap());
        assert_eq!(offered(Some("auto"), &file, &spec("a")), Protocol::Auto);
        remember_version_1(&file, &spec("a"));
        assert_eq!(offered(Some("auto"), &file, &spec("a")), Protocol::V1);
        assert_eq!(offered(Some("auto"), &file, &spec("b")), Protocol::Auto);
        assert_eq!(offered(Some("2"), &file, &spec("a")), Protocol::V2);
        assert_eq!(offered(Some("1"), &file, &spec("b")), Protocol::V1);
        assert_eq!(offered(None, &file, &spec("b")), Protocol::V1);
        let named = AgentSpec { known: true, ..spec("b") };
        assert_eq!(offered(None, &file, &named), Protocol::Auto);
        let text = std::fs::read_to_string(&file).unwrap();
        let old = text.replace(&now().to_string()[..7], "1000000");
        std::fs::write(&file, old).unwrap();
        assert_eq!(offered(Some("auto"), &file, &spec("a")), Protocol::Auto);
        std::fs::write(&file, "broken").unwrap();
        assert_eq!(offered(Some("auto"), &file, &spec("a")), Protocol::Auto);
    }
}
