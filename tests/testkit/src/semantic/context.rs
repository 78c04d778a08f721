//! The context that a line needs.

use serde_json::Value;

use crate::example::Example;

/// Rules about something that was not advertised although the request fits its type.
const NOT_ADVERTISED: &[&str] =
    &["PROMPT-02", "PROMPT-03", "PROMPT-04", "MCP-03", "MCP-04", "ROOT-08", "SYSP-01", "CONF-07", "CONF-08"];

/// Reads a line for what its context must be.
pub(super) struct Context<'a> {
    line: &'a Example,
}

impl<'a> Context<'a> {
    pub(super) fn of(line: &'a Example) -> Self {
        Context { line }
    }

    /// Whether the line belongs to version 2.
    pub(super) fn is_v2(&self) -> bool {
        self.line.version == 2
    }

    /// The code that is expected, of the first alternative if there are several.
    pub(super) fn code(&self) -> Option<i64> {
        let expect = &self.line.expect;
        expect["code"]
            .as_i64()
            .or_else(|| expect["either"].as_array()?.iter().find_map(|one| one["code"].as_i64()))
    }

    /// Whether the words that say what is wrong hold one of these.
    pub(super) fn says(&self, words: &[&str]) -> bool {
        let why = self.line.why.to_lowercase();
        words.iter().any(|word| why.contains(word))
    }

    /// Whether the receiver must offer nothing that it can leave out.
    pub(super) fn bare(&self) -> bool {
        self.code() == Some(-32601)
            || NOT_ADVERTISED.contains(&self.line.rule.as_str())
            || self.says(&["not advertised", "unadvertised", "without the capability", "capability missing"])
    }

    /// Whether the request comes before `initialize`. An agent speaks version 2 only on a
    /// connection that began with it.
    pub(super) fn before_initialize(&self) -> bool {
        (self.line.method == "initialize" && !self.fresh() && !self.says(&["repeated", "again"]))
            || ["INIT-01", "INIT-02", "INIT-03"].contains(&self.line.rule.as_str())
            || self.says(&["before initialize"])
    }

    /// Whether the connection is initialized and not used yet.
    pub(super) fn fresh(&self) -> bool {
        self.code() == Some(-32022)
    }

    /// Whether users must log in and have not.
    pub(super) fn login_needed(&self) -> bool {
        self.code() == Some(-32000) || (self.line.method == "authenticate" && !self.bare())
    }

    /// Whether the session, terminal or file that the line names must not exist.
    pub(super) fn unknown(&self) -> bool {
        // The terminals of version 2 belong to a session that exists.
        let terminal = !self.is_v2() && self.says(&["unknown terminal"]);
        self.code() == Some(-32002)
            || terminal
            || self.says(&["unknown session", "never created", "no such", "missing file"])
    }

    /// Whether what the line names existed and is gone.
    pub(super) fn gone(&self) -> bool {
        self.says(&["after release", "released", "after close", "closed", "after delete", "deleted"])
    }

    /// Whether a prompt is running already.
    pub(super) fn busy(&self) -> bool {
        self.line.rule == "PROMPT-13"
            || self.says(&[
                "second prompt",
                "while one runs",
                "while a prompt",
                "during a turn",
                "already running",
            ])
    }

    /// A member of the params, as text.
    pub(super) fn param(&self, name: &str) -> Option<&'a str> {
        self.line.message["params"][name].as_str()
    }

    /// The line with one of its params replaced.
    pub(super) fn with_param(&self, name: &str, value: &str) -> String {
        let mut message = self.line.message.clone();
        if let Some(member) = message["params"].get_mut(name) {
            *member = Value::from(value);
        }
        message.to_string()
    }
}
