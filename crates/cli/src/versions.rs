//! Which version of the protocol an agent speaks, as far as it was seen, so that an agent of
//! version 1 is not started twice each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use attache::client::Protocol;
use serde::{Deserialize, Serialize};

use crate::agents::AgentSpec;
use crate::paths::{Paths, read_cache, write_cache};

/// After this time an agent is asked again: it may have learned version 2.
const VALID_SECONDS: u64 = 7 * 24 * 60 * 60;
/// Agents that are remembered; the oldest are forgotten first.
const AGENTS: usize = 256;

/// The file of the versions that agents have answered with.
pub(crate) fn file(paths: &Paths) -> PathBuf {
    paths.cache.join("versions.json")
}

/// The agents of each version by address, with the time of their answer.
#[derive(Default, Serialize, Deserialize)]
struct Known {
    /// Agents that speak version 1 only.
    #[serde(default)]
    version_1: BTreeMap<String, u64>,
    #[serde(default)]
    version_2: BTreeMap<String, u64>,
}

impl Known {
    /// The newest version of the agent at `address`, if it answered lately.
    fn version(&self, address: &str) -> Option<u16> {
        let is_valid = |agents: &BTreeMap<String, u64>| {
            agents.get(address).is_some_and(|seen| now().saturating_sub(*seen) < VALID_SECONDS)
        };
        match () {
            () if is_valid(&self.version_2) => Some(2),
            () if is_valid(&self.version_1) => Some(1),
            () => None,
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// What is offered to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) protocol: Protocol,
    /// Whether the agent may be started a second time, so that version 2 is offered first.
    pub(crate) starts_again: bool,
}

/// The versions to offer to an agent, by `--protocol` and by what it answered before.
///
/// To offer version 2 first may mean to start the agent twice. A command line is not started twice
/// unless the user asks for it: it may do more than start an agent. It is offered version 1 and
/// then, if it has only version 2, that.
pub(crate) fn offered(protocol: Option<&str>, file: &Path, spec: &AgentSpec) -> Offer {
    let (protocol, starts_again) = match protocol {
        Some("1") => (Protocol::V1, false),
        Some("2") => (Protocol::V2, false),
        // Our own agent has nothing to gain from version 2, and its commands would not run in
        // terminals of this program.
        None if spec.is_own() => (Protocol::V1, false),
        None if !spec.known => (Protocol::Auto, false),
        _ if known(file, spec) == Some(1) => (Protocol::V1, false),
        _ => (Protocol::Auto, true),
    };
    Offer { protocol, starts_again }
}

/// The newest version that an agent speaks, if it is known.
pub(crate) fn known(file: &Path, spec: &AgentSpec) -> Option<u16> {
    read_cache::<Known>(file).version(&spec.address.to_string())
}

/// Remembers the newest version of an agent, 1 or 2.
pub(crate) fn remember(file: &Path, spec: &AgentSpec, version: u16) {
    let mut known: Known = read_cache(file);
    let address = spec.address.to_string();
    // Most connections confirm what is known.
    if known.version(&address) == Some(version) {
        return;
    }
    known.version_1.remove(&address);
    known.version_2.remove(&address);
    let agents = if version == 1 { &mut known.version_1 } else { &mut known.version_2 };
    agents.insert(address, now());
    while agents.len() > AGENTS {
        let oldest = agents.iter().min_by_key(|(_, seen)| **seen).map(|(agent, _)| agent.clone());
        let Some(oldest) = oldest else { break };
        agents.remove(&oldest);
    }
    write_cache(file, &known);
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
        let twice = Offer { protocol: Protocol::Auto, starts_again: true };
        assert_eq!(offered(Some("auto"), &file, &spec("a")), twice);
        assert_eq!(known(&file, &spec("a")), None);
        remember(&file, &spec("a"), 1);
        assert_eq!(known(&file, &spec("a")), Some(1));
        assert_eq!(offered(Some("auto"), &file, &spec("a")).protocol, Protocol::V1);
        assert_eq!(offered(Some("auto"), &file, &spec("b")).protocol, Protocol::Auto);
        assert_eq!(offered(Some("2"), &file, &spec("a")).protocol, Protocol::V2);
        assert_eq!(offered(Some("1"), &file, &spec("b")).protocol, Protocol::V1);
        // A command line is started once, whatever it answers.
        assert_eq!(offered(None, &file, &spec("b")), Offer { protocol: Protocol::Auto, starts_again: false });
        let named = AgentSpec { known: true, ..spec("b") };
        assert_eq!(offered(None, &file, &named), twice);
        // An agent that has learned version 2, and another one.
        remember(&file, &spec("c"), 1);
        remember(&file, &spec("c"), 2);
        assert_eq!((known(&file, &spec("c")), known(&file, &spec("a"))), (Some(2), Some(1)));
        assert_eq!(offered(Some("auto"), &file, &spec("c")).protocol, Protocol::Auto);
        let text = std::fs::read_to_string(&file).unwrap();
        let old = text.replace(&now().to_string()[..7], "1000000");
        std::fs::write(&file, old).unwrap();
        assert_eq!(offered(Some("auto"), &file, &spec("a")), twice);
        std::fs::write(&file, "broken").unwrap();
        assert_eq!(offered(Some("auto"), &file, &spec("a")), twice);
    }
}
