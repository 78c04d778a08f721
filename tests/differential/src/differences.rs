//! Where Attaché reads otherwise than the official crate, on purpose.

use serde_json::Value;

use crate::mutation::Mutation;

/// What both made of one changed value.
#[derive(Debug)]
pub struct Case<'a> {
    /// The type.
    pub name: &'a str,
    /// The change.
    pub mutation: &'a Mutation,
    /// What the official crate made of it, or why it refused it.
    pub official: Result<Value, String>,
    /// What Attaché made of it.
    pub ours: Result<Value, String>,
}

/// One documented difference.
pub struct Difference {
    /// The rule that asks for it.
    pub rule: &'static str,
    /// What is different.
    pub what: &'static str,
    /// Whether a case is an instance of it.
    pub seen: fn(&Case<'_>) -> bool,
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        rule: "RPC-25",
        what: "objects are not read from positional arrays",
        seen: |case| case.official.is_ok() && case.mutation.after.as_ref().is_some_and(Value::is_array),
    },
    Difference {
        rule: "RPC-25",
        what: "a number is not the place of a variant in a list of variants",
        seen: |case| case.changes("stopReason") && case.mutation.after.as_ref().is_some_and(Value::is_number),
    },
    Difference {
        rule: "AUTH-21",
        what: "an auth method of an unknown type is not one of the agent's own",
        seen: |case| {
            case.official.is_ok()
                && case.changes("type")
                && case.in_list_or_alone("authMethods", "AuthMethod")
        },
    },
    Difference {
        rule: "MCP-08",
        what: "a server of an unknown type is refused and never becomes a process",
        seen: |case| {
            case.ours.is_err() && case.changes("type") && case.in_list_or_alone("mcpServers", "McpServer")
        },
    },
    Difference {
        rule: "PROMPT-16",
        what: "an update of an unknown kind is kept",
        seen: |case| case.official.is_err() && case.changes("sessionUpdate"),
    },
    Difference {
        rule: "CONF-19",
        what: "a value that says it is a boolean is not read as the id of a value",
        seen: |case| {
            case.ours.is_err() && case.name == "SetSessionConfigOptionRequest" && case.changes("value")
        },
    },
];

impl Case<'_> {
    /// Whether the change is in a member of this name.
    fn changes(&self, member: &str) -> bool {
        self.mutation.place.rsplit('/').next() == Some(member)
    }

    /// Whether it is inside such a list, or in the type of its entries.
    fn in_list_or_alone(&self, list: &str, name: &str) -> bool {
        self.name == name || self.mutation.place.split('/').any(|part| part == list)
    }
}

/// The difference that explains a case.
pub fn documented(case: &Case<'_>) -> Option<&'static Difference> {
    DIFFERENCES.iter().find(|difference| (difference.seen)(case))
}
