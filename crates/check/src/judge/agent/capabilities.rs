//! The capability of the client that a message of the agent needs, and the plain form of plans.
//! `judge/capability_use.rs` judges the rules about single capabilities, for both roles.

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::items;
use crate::Role;

// PLAN-07, PLAN-08
pub(super) struct Capabilities;

/// The capability of the client, a path below `clientCapabilities`, that a call of the agent needs,
/// or an answer with such a result.
fn gate(method: &str, payload: &Value) -> Option<&'static str> {
    match method {
        "fs/read_text_file" => Some("fs.readTextFile"),
        "fs/write_text_file" => Some("fs.writeTextFile"),
        "elicitation/create" => match payload["mode"].as_str() {
            Some("form") => Some("elicitation.form"),
            Some("url") => Some("elicitation.url"),
            _ => None,
        },
        "session/update" => update_gate(&payload["update"]),
        "session/new" | "session/load" | "session/resume" | "session/fork" | "session/set_config_option" => {
            booleans(&payload["configOptions"])
        }
        "initialize" => {
            let terminal = items(&payload["authMethods"]).any(|method| method["type"] == "terminal");
            terminal.then_some("auth.terminal")
        }
        // In version 2 clients cancel terminals of the agent.
        _ if method.starts_with("terminal/") && method != "terminal/cancel" => Some("terminal"),
        _ => None,
    }
}

fn update_gate(update: &Value) -> Option<&'static str> {
    match update["sessionUpdate"].as_str()? {
        "plan_update" | "plan_removed" => Some("plan"),
        "notice" => Some("session.notices"),
        "compaction_update" | "compaction_summary_chunk" => Some("session.compaction"),
        "subagent_update" | "session_message" | "session_message_chunk" => Some("subagents"),
        "config_option_update" => booleans(&update["configOptions"]),
        _ => None,
    }
}

fn booleans(options: &Value) -> Option<&'static str> {
    let boolean = items(options).any(|option| option["type"] == "boolean");
    boolean.then_some("session.configOptions.boolean")
}

/// The capability of the client that a request or notification of the agent needs.
pub(crate) fn needed(message: &Message) -> Option<&'static str> {
    gate(message.method()?, message.params())
}

impl Watcher for Capabilities {
    fn rules(&self) -> &'static [&'static str] {
        &["PLAN-07", "PLAN-08"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from != Role::Agent || log.initialize.is_none() {
            return;
        }
        let Some((_, kind, _)) = message.update() else { return };
        if log.can(Role::Client, "plan") {
            return;
        }
        if update_gate(&message.params()["update"]) == Some("plan") {
            let why = format!("`{kind}` is used and the client does not advertise `plan`");
            out.fail("PLAN-08", message, why);
        }
        // A plan in the plain form for a client that knows no other.
        if kind == "plan" {
            out.pass("PLAN-08", message);
            out.pass("PLAN-07", message);
        }
    }
}
