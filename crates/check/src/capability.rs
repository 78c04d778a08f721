//! The places of capabilities in each version.
//!
//! Rules, scenarios and watchers name a capability by its path in version 1. Version 2 has most of
//! them elsewhere; some became part of every client.

use serde_json::Value;

use crate::role::Role;
use crate::version::Version;

/// Capabilities of clients in version 1 that every client of version 2 has.
const BASELINE: [&str; 5] =
    ["session.configOptions.boolean", "session.notices", "session.compaction", "plan", "subagents"];

/// The path in `version` of the capability that version 1 has at `path`; `None` if every peer of
/// that version has it. Paths that only version 2 has stay as they are.
fn place(version: Version, role: Role, path: &str) -> Option<String> {
    if version == Version::V1 {
        return Some(path.to_owned());
    }
    if role == Role::Client {
        return (!BASELINE.contains(&path)).then(|| path.to_owned());
    }
    // V2-07: every agent with authentication methods has it.
    if path == "auth.logout" {
        return None;
    }
    Some(match path.split_once('.') {
        None if path == "loadSession" => "session".to_owned(),
        Some(("sessionCapabilities", "list" | "resume" | "close")) => "session".to_owned(),
        Some(("sessionCapabilities", name)) => format!("session.{name}"),
        Some(("promptCapabilities", name)) => format!("session.prompt.{name}"),
        Some(("mcpCapabilities", name)) => format!("session.mcp.{name}"),
        _ => path.to_owned(),
    })
}

/// Whether `capabilities` of `role` have the one at `path`: `true` or an object.
// INIT-15, INIT-19
pub(crate) fn has(version: Version, role: Role, capabilities: &Value, path: &str) -> bool {
    place(version, role, path).is_none_or(|path| {
        let found = path.split('.').fold(capabilities, |value, key| &value[key]);
        *found == Value::Bool(true) || found.is_object()
    })
}

/// The path as a report shows it.
pub(crate) fn name(version: Version, role: Role, path: &str) -> String {
    place(version, role, path).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_capability_is_found_in_both_versions() {
        let first = json!({ "sessionCapabilities": { "delete": {}, "list": null }, "loadSession": true });
        let second = json!({ "session": { "delete": {}, "mcp": { "http": {} } } });
        let has = |version, path| match version {
            Version::V1 => super::has(version, Role::Agent, &first, path),
            Version::V2 => super::has(version, Role::Agent, &second, path),
        };
        for version in Version::ALL {
            assert!(has(version, "sessionCapabilities.delete"));
            assert!(!has(version, "sessionCapabilities.fork"));
        }
        assert!(!has(Version::V1, "sessionCapabilities.list"));
        assert!(has(Version::V2, "sessionCapabilities.list"));
        assert!(has(Version::V2, "mcpCapabilities.http"));
        assert!(!has(Version::V2, "mcpCapabilities.stdio"));
        assert!(super::has(Version::V2, Role::Client, &json!({}), "session.notices"));
        assert!(!super::has(Version::V1, Role::Client, &json!({}), "session.notices"));
    }
}
