//! The use of capabilities: only after the other side has advertised them.
//!
//! Many of these duties are two rules: check the capability, and do without it if it is missing. An
//! allowed use shows the first; the second needs a scenario in which the peer has a reason to use
//! the missing capability.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use super::{EventLog, Findings, Message, Watcher};
use crate::{Role, Version, capability};

/// A method or update, the capability that it needs, the rules that an allowed use shows and the
/// rules that a forbidden use breaks.
type Use = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const BY_CLIENT: &[Use] = &[
    ("session/load", "loadSession", &["SESS-07"], &["SESS-07", "SESS-08"]),
    ("session/resume", "sessionCapabilities.resume", &["SESS-20"], &["SESS-20", "SESS-21"]),
    ("session/close", "sessionCapabilities.close", &["SESS-25"], &["SESS-25", "SESS-26"]),
    ("session/list", "sessionCapabilities.list", &["LIST-01"], &["LIST-01", "LIST-02"]),
    ("session/delete", "sessionCapabilities.delete", &["DEL-01"], &["DEL-01", "DEL-02"]),
    ("session/fork", "sessionCapabilities.fork", &["FORK-01"], &["FORK-01"]),
    ("session/archive", "sessionCapabilities.archive", &["INIT-15"], &["INIT-15"]),
    ("session/unarchive", "sessionCapabilities.archive", &["INIT-15"], &["INIT-15"]),
    ("session/status", "sessionCapabilities.status", &["INIT-15"], &["INIT-15"]),
    ("session/set_title", "sessionCapabilities.title", &["INIT-15"], &["INIT-15"]),
    ("logout", "auth.logout", &["AUTH-16"], &["AUTH-16"]),
    ("auth/status", "auth.status", &["INIT-15"], &["INIT-15"]),
    ("providers/list", "providers", &["PROV-02"], &["PROV-02"]),
    ("providers/set", "providers", &["PROV-02"], &["PROV-02"]),
    ("providers/disable", "providers", &["PROV-02"], &["PROV-02"]),
];

const BY_AGENT: &[Use] = &[
    ("fs/read_text_file", "fs.readTextFile", &[], &["FS-02"]),
    ("fs/write_text_file", "fs.writeTextFile", &[], &["FS-02"]),
    ("terminal/create", "terminal", &[], &["TERM-02"]),
    ("terminal/output", "terminal", &[], &["TERM-02"]),
    ("terminal/wait_for_exit", "terminal", &[], &["TERM-02"]),
    ("terminal/kill", "terminal", &[], &["TERM-02"]),
    ("terminal/release", "terminal", &[], &["TERM-02"]),
];

/// Updates that need a capability of the client.
const UPDATES: &[Use] = &[
    ("plan_update", "plan", &["PLAN-07"], &["PLAN-07"]),
    ("plan_removed", "plan", &["PLAN-07"], &["PLAN-07"]),
    ("notice", "session.notices", &["NOTE-01"], &["NOTE-01"]),
    ("compaction_update", "session.compaction", &["NOTE-06"], &["NOTE-06"]),
    ("compaction_summary_chunk", "session.compaction", &["NOTE-06"], &["NOTE-06"]),
    ("subagent_update", "subagents", &["SUBA-01"], &["SUBA-01"]),
    ("session_message", "subagents", &["SUBA-01"], &["SUBA-01"]),
    ("session_message_chunk", "subagents", &["SUBA-01"], &["SUBA-01"]),
];

/// Rules about parts of messages that need a capability.
const OTHER: [&str; 9] =
    ["AUTH-08", "CONF-07", "CONT-02", "ELIC-01", "MCP-03", "MCPA-01", "PROMPT-02", "ROOT-08", "SYSP-01"];

/// Judges the use of capabilities.
#[derive(Debug, Default)]
pub(super) struct CapabilityUse;

impl Watcher for CapabilityUse {
    fn rules(&self) -> &'static [&'static str] {
        static RULES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
            let uses = [BY_CLIENT, BY_AGENT, UPDATES].concat();
            let listed = uses.iter().flat_map(|(_, _, kept, broken)| kept.iter().chain(*broken).copied());
            let rules: BTreeSet<&str> = listed.chain(OTHER).collect();
            rules.into_iter().collect()
        });
        &RULES
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        match message.from {
            Role::Client => client(log, message, out),
            Role::Agent => agent(log, message, out),
        }
    }
}

/// Whether a rule of its own says that a client needs a capability for the method.
pub(crate) fn has_own_rule(method: &str) -> bool {
    BY_CLIENT.iter().any(|(name, _, _, broken)| *name == method && *broken != ["INIT-15"])
}

/// One use: fine if the other side can.
fn used(log: &EventLog, message: &Message, what: &str, table: &[Use], out: &mut Findings) {
    let Some((_, path, looked, broken)) = table.iter().find(|(name, ..)| *name == what) else { return };
    need(log, message, what, path, looked, broken, out);
}

fn need(
    log: &EventLog,
    message: &Message,
    what: &str,
    path: &str,
    looked: &[&'static str],
    broken: &[&'static str],
    out: &mut Findings,
) {
    let other = message.from.other();
    if log.can(other, path) {
        looked.iter().for_each(|rule| out.pass(rule, message));
    } else {
        let path = capability::name(log.version(), other, path);
        let why = format!("`{what}` is used, but the {other} did not advertise `{path}`");
        broken.iter().for_each(|rule| out.fail(rule, message, why.clone()));
    }
}

fn client(log: &EventLog, message: &Message, out: &mut Findings) {
    let Some((method, params)) = message.call(Role::Client) else { return };
    used(log, message, method, BY_CLIENT, out);
    if matches!(method, "session/new" | "session/load" | "session/resume" | "session/fork") {
        set_up(log, message, params, out);
    }
    if method == "session/prompt" {
        for block in params["prompt"].as_array().into_iter().flatten() {
            let kind = block["type"].as_str().unwrap_or_default();
            let path = match kind {
                "image" => "promptCapabilities.image",
                "audio" => "promptCapabilities.audio",
                "resource" => "promptCapabilities.embeddedContext",
                _ => {
                    out.pass("PROMPT-02", message);
                    continue;
                }
            };
            let rules = &["PROMPT-02", "CONT-02"];
            need(log, message, &format!("a block of type {kind}"), path, rules, rules, out);
        }
    }
}

/// Judges the params that open a session.
fn set_up(log: &EventLog, message: &Message, params: &Value, out: &mut Findings) {
    // ROOT-11: an empty list says the same as none.
    if params["additionalDirectories"].as_array().is_some_and(|roots| !roots.is_empty()) {
        let path = "sessionCapabilities.additionalDirectories";
        need(log, message, "additionalDirectories", path, &["ROOT-08"], &["ROOT-08"], out);
    }
    for server in params["mcpServers"].as_array().into_iter().flatten() {
        let (kind, path, rule) = match server["type"].as_str() {
            Some("http") => ("http", "mcpCapabilities.http", "MCP-03"),
            // V2-39: version 2 has none of these.
            Some("sse") if log.version() == Version::V1 => ("sse", "mcpCapabilities.sse", "MCP-03"),
            Some("stdio") if log.version() == Version::V2 => ("stdio", "mcpCapabilities.stdio", "MCP-03"),
            Some("acp") => ("acp", "mcpCapabilities.acp", "MCPA-01"),
            _ => continue,
        };
        need(log, message, &format!("an MCP server of type {kind}"), path, &[rule], &[rule], out);
    }
    let prompt = &params["systemPrompt"];
    if prompt.is_object() {
        let path = match prompt["mode"].as_str() {
            Some("override") => "sessionCapabilities.systemPrompt.mode.override",
            _ => "sessionCapabilities.systemPrompt",
        };
        need(log, message, "systemPrompt", path, &["SYSP-01"], &["SYSP-01"], out);
    }
}

fn agent(log: &EventLog, message: &Message, out: &mut Findings) {
    if let Some(options) = config_options(log, message) {
        boolean_options(log, message, options, out);
    }
    if let Some((_, result)) = log.result_of(message, "initialize") {
        let terminal = |method: &&Value| method["type"] == "terminal";
        if result["authMethods"].as_array().into_iter().flatten().any(|method| terminal(&method)) {
            need(
                log,
                message,
                "an auth method of type terminal",
                "auth.terminal",
                &["AUTH-08"],
                &["AUTH-08"],
                out,
            );
        }
    }
    let Some((method, params)) = message.call(Role::Agent) else { return };
    used(log, message, method, BY_AGENT, out);
    if let Some((_, kind, _)) = message.update() {
        used(log, message, kind, UPDATES, out);
    }
    if method == "elicitation/create" {
        let (mode, path) = match params["mode"].as_str() {
            Some("form") => ("form", "elicitation.form"),
            Some("url") => ("url", "elicitation.url"),
            _ => return,
        };
        need(log, message, &format!("elicitation by {mode}"), path, &["ELIC-01"], &["ELIC-01"], out);
    }
}

/// The config options that a message of the agent carries.
fn config_options<'a>(log: &'a EventLog, message: &'a Message) -> Option<&'a Value> {
    if let Some((_, "config_option_update", update)) = message.update() {
        return Some(&update["configOptions"]);
    }
    let methods =
        ["session/new", "session/load", "session/resume", "session/fork", "session/set_config_option"];
    methods
        .iter()
        .find_map(|method| log.result_of(message, method))
        .map(|(_, result)| &result["configOptions"])
}

fn boolean_options(log: &EventLog, message: &Message, options: &Value, out: &mut Findings) {
    let boolean = |option: &&Value| option["type"] == "boolean";
    if options.as_array().into_iter().flatten().any(|option| boolean(&option)) {
        let path = "session.configOptions.boolean";
        need(log, message, "a boolean option", path, &["CONF-07"], &["CONF-07"], out);
    }
}
