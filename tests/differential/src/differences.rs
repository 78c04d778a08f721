//! Intended differences between Attaché and the official crate.

use serde_json::Value;

use crate::mutation::Mutation;

/// The results of both for one mutated value.
#[derive(Debug)]
pub struct Case<'a> {
    /// The protocol version.
    pub version: u8,
    /// The type.
    pub name: &'a str,
    /// The change.
    pub mutation: &'a Mutation,
    /// The result of the official crate.
    pub official: Result<Value, String>,
    /// The result of Attaché.
    pub ours: Result<Value, String>,
}

/// One documented difference.
pub struct Difference {
    /// The protocol versions that it concerns.
    pub versions: &'static [u8],
    /// The rule that asks for it.
    pub rule: &'static str,
    /// The difference.
    pub summary: &'static str,
    /// Whether a case is an instance of it.
    pub matches: fn(&Case<'_>) -> bool,
}

/// All documented differences.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        versions: &[1, 2],
        rule: "RPC-25",
        summary: "objects are not read from positional arrays",
        matches: |case| case.official.is_ok() && case.mutation.after.as_ref().is_some_and(Value::is_array),
    },
    Difference {
        versions: &[1, 2],
        rule: "RPC-25",
        summary: "a number is not the index of a variant",
        matches: |case| {
            let tags =
                ["stopReason", "sessionUpdate", "type", "state", "operation", "outcome", "mode", "action"];
            tags.iter().any(|tag| case.changes(tag))
                && case.official.is_ok()
                && case.mutation.after.as_ref().is_some_and(Value::is_number)
        },
    },
    Difference {
        versions: &[1],
        rule: "AUTH-21",
        summary: "an auth method of an unknown type is not an agent method",
        matches: |case| {
            case.official.is_ok()
                && case.changes("type")
                && case.in_list_or_alone("authMethods", "AuthMethod")
        },
    },
    Difference {
        versions: &[1],
        rule: "MCP-08",
        summary: "a server of an unknown type is refused and never becomes a process",
        matches: |case| {
            case.ours.is_err() && case.changes("type") && case.in_list_or_alone("mcpServers", "McpServer")
        },
    },
    Difference {
        versions: &[1],
        rule: "PROMPT-16",
        summary: "an update of an unknown kind is kept",
        matches: |case| case.official.is_err() && case.changes("sessionUpdate"),
    },
    Difference {
        versions: &[1],
        rule: "CONF-19",
        summary: "a boolean value is not read as the id of a value",
        matches: |case| {
            case.ours.is_err() && case.name == "SetSessionConfigOptionRequest" && case.changes("value")
        },
    },
];

impl Case<'_> {
    /// Whether the change is in a member of this name.
    fn changes(&self, member: &str) -> bool {
        self.mutation.pointer.rsplit('/').next() == Some(member)
    }

    /// Whether the change is inside of a list, or in a value of the type of its entries.
    fn in_list_or_alone(&self, list: &str, name: &str) -> bool {
        self.name == name || self.mutation.pointer.split('/').any(|part| part == list)
    }
}

/// Returns the difference that explains a case.
pub fn documented(case: &Case<'_>) -> Option<&'static Difference> {
    let concerns = |difference: &&Difference| difference.versions.contains(&case.version);
    DIFFERENCES.iter().filter(concerns).find(|difference| (difference.matches)(case))
}
