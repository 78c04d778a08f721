//! Choices among what the agent offered: options, modes, values, cursors.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::{EventLog, Findings, Kind, Message, Watcher};
use super::items;
use crate::Role;

#[derive(Debug, Default)]
pub(super) struct Choices {
    /// Cursors that the agent gave out.
    cursors: BTreeSet<String>,
}

impl Watcher for Choices {
    fn rules(&self) -> &'static [&'static str] {
        &["PERM-04", "MODE-03", "CONF-14", "LIST-06", "RPC-15", "ELIC-18"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if let Some((_, page)) = log.result_of(message, "session/list") {
            self.cursors.extend(page["nextCursor"].as_str().map(str::to_owned));
        }
        if message.from != Role::Client {
            return;
        }
        if let Some((asked, answer)) = log.result_of(message, "session/request_permission") {
            return permission(message, &asked.params["options"], &answer["outcome"], out);
        }
        if let Some((_, answer)) = log.result_of(message, "elicitation/create") {
            let action = &answer["action"];
            let known = ["accept", "decline", "cancel"].iter().any(|known| *action == *known);
            return out.check("ELIC-18", message, known, || format!("the action is {action}"));
        }
        if let Kind::Response { id, outcome: Err(error) } = &message.kind {
            return code(message, id, error, out);
        }
        match message.call(Role::Client) {
            Some(("session/set_mode", params)) => mode(log, message, params, out),
            Some(("session/set_config_option", params)) => option(log, message, params, out),
            Some(("session/list", params)) => {
                if let Some(cursor) = params["cursor"].as_str() {
                    let known = self.cursors.contains(cursor);
                    out.check("LIST-06", message, known, || {
                        format!("the cursor {cursor:?} is none that the agent gave")
                    });
                }
            }
            _ => {}
        }
    }
}

fn permission(message: &Message, options: &Value, outcome: &Value, out: &mut Findings) {
    match outcome["outcome"].as_str() {
        Some("selected") => {
            let id = &outcome["optionId"];
            let offered = items(options).any(|option| option["optionId"] == *id);
            out.check("PERM-04", message, offered, || format!("the option {id} was not offered"));
        }
        Some("cancelled") => out.pass("PERM-04", message),
        // Whatever else it is, shapes speak about it.
        _ => {}
    }
}

/// Codes that cannot be meant by a client.
// RPC-15
fn code(message: &Message, id: &Value, error: &Value, out: &mut Findings) {
    match error["code"].as_i64() {
        Some(-32000) => out.fail("RPC-15", message, "-32000 asks for authentication, which no client does"),
        Some(-32700) if !id.is_null() => {
            out.fail("RPC-15", message, "-32700 is for lines that are no JSON, this one was a request")
        }
        _ => {}
    }
}

fn mode(log: &EventLog, message: &Message, params: &Value, out: &mut Findings) {
    let Some(session) = log.session(params) else { return };
    let id = &params["modeId"];
    if !session.modes.is_object() || !id.is_string() {
        return;
    }
    let offered = items(&session.modes["availableModes"]).any(|mode| mode["id"] == *id);
    out.check("MODE-03", message, offered, || format!("the mode {id} is none of availableModes"));
}

fn option(log: &EventLog, message: &Message, params: &Value, out: &mut Findings) {
    let Some(session) = log.session(params) else { return };
    let key = log.version().option_key();
    let known = items(&session.config).find(|option| option[key] == params["configId"]);
    let value = &params["value"];
    let Some(option) = known else {
        if session.config.is_array() {
            out.fail("CONF-14", message, format!("there is no option {}", params["configId"]));
        }
        return;
    };
    let kept = match option["type"].as_str() {
        Some("boolean") => value.is_boolean() && params["type"] == "boolean",
        Some("select") => {
            let entries = items(&option["options"]);
            let mut values = entries.flat_map(|entry| match entry["options"].as_array() {
                Some(group) => group.iter().collect(),
                None => vec![entry],
            });
            values.any(|entry| entry["value"] == *value)
        }
        // An option of an unknown type has no values to compare with; CONF-06 says to leave it
        // alone.
        _ => return,
    };
    out.check("CONF-14", message, kept, || {
        format!("{value} is no value of the option {}", params["configId"])
    });
}
