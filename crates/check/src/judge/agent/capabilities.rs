//! What the client did not advertise is not used.

use serde_json::Value;

use super::super::{Book, Findings, Heard, Kind, Message, Said, Watcher};
use super::items;
use crate::Party;

/// INIT-15 and the rule of each capability.
pub(super) struct Capabilities;

/// Something that needs a capability of the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate {
    /// The capability, a path below `clientCapabilities`.
    pub(crate) path: &'static str,
    /// The rules that speak of it.
    pub(crate) rules: &'static [&'static str],
}

const fn needs(path: &'static str, rules: &'static [&'static str]) -> Option<Gate> {
    Some(Gate { path, rules })
}

/// What a call of the agent needs, or an answer with such `result`.
fn gate(method: &str, payload: &Value) -> Option<Gate> {
    match method {
        "fs/read_text_file" => needs("fs.readTextFile", &["INIT-15", "FS-01", "FS-02"]),
        "fs/write_text_file" => needs("fs.writeTextFile", &["INIT-15", "FS-01", "FS-02"]),
        "elicitation/create" => match payload["mode"].as_str() {
            Some("form") => needs("elicitation.form", &["INIT-15", "ELIC-01"]),
            Some("url") => needs("elicitation.url", &["INIT-15", "ELIC-01"]),
            _ => None,
        },
        "session/update" => update_gate(&payload["update"]),
        "session/new" | "session/load" | "session/resume" | "session/fork" | "session/set_config_option" => {
            booleans(&payload["configOptions"])
        }
        "initialize" => {
            let terminal = items(&payload["authMethods"]).any(|method| method["type"] == "terminal");
            terminal.then_some(())?;
            needs("auth.terminal", &["INIT-15", "AUTH-08"])
        }
        _ if method.starts_with("terminal/") => needs("terminal", &["INIT-15", "TERM-01", "TERM-02"]),
        _ => None,
    }
}

fn update_gate(update: &Value) -> Option<Gate> {
    match update["sessionUpdate"].as_str()? {
        "plan_update" | "plan_removed" => needs("plan", &["INIT-15", "PLAN-07", "PLAN-08"]),
        "notice" => needs("session.notices", &["INIT-15", "NOTE-01"]),
        "compaction_update" | "compaction_summary_chunk" => {
            needs("session.compaction", &["INIT-15", "NOTE-06"])
        }
        "subagent_update" | "session_message" | "session_message_chunk" => {
            needs("subagents", &["INIT-15", "SUBA-01"])
        }
        "config_option_update" => booleans(&update["configOptions"]),
        _ => None,
    }
}

fn booleans(options: &Value) -> Option<Gate> {
    items(options).any(|option| option["type"] == "boolean").then_some(())?;
    needs("session.configOptions.boolean", &["INIT-15", "CONF-07"])
}

impl Gate {
    /// What a message of the agent needs.
    pub(crate) fn of(heard: &Heard) -> Option<Gate> {
        match &heard.message {
            Message::Request { method, params, .. } | Message::Notification { method, params } => {
                gate(method, params)
            }
            _ => None,
        }
    }
}

impl Watcher for Capabilities {
    fn rules(&self) -> &'static [&'static str] {
        &[
            "INIT-15", "FS-01", "FS-02", "TERM-01", "TERM-02", "ELIC-01", "PLAN-07", "PLAN-08", "NOTE-01",
            "NOTE-06", "SUBA-01", "CONF-07", "AUTH-08",
        ]
    }

    fn see(&mut self, book: &Book, said: &Said<'_>, out: &mut Findings) {
        if said.from != Party::Agent || book.initialize.is_none() {
            return;
        }
        let (name, found) = match said.kind {
            Kind::Request { method, params, .. } | Kind::Notification { method, params } => {
                (method, gate(method, params))
            }
            Kind::Answer { to: Some(asked), outcome: Ok(result), .. } => {
                (asked.method.as_str(), gate(&asked.method, result))
            }
            _ => return,
        };
        if let Some(gate) = found {
            let may = book.can(Party::Client, gate.path);
            for rule in gate.rules {
                // With the capability there is nothing to fall back from.
                if !(may && *rule == "PLAN-08") {
                    out.check(rule, said, may, || {
                        format!("{name} is used and the client does not advertise `{}`", gate.path)
                    });
                }
            }
        }
        if let Some((_, "plan", _)) = said.update()
            && !book.can(Party::Client, "plan")
        {
            out.pass("PLAN-08", said);
            out.pass("PLAN-07", said);
        }
    }
}
