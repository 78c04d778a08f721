//! Modes and config options.

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::items;
use crate::Role;

// CONF-05, CONF-11, MODE-01, MODE-02
pub(super) struct Options;

impl Watcher for Options {
    fn rules(&self) -> &'static [&'static str] {
        &["CONF-05", "CONF-11", "MODE-01", "MODE-02"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from != Role::Agent {
            return;
        }
        if let Some((asked, Ok(result))) = log.response(message)
            && asked.from == Role::Client
            && asked.method.starts_with("session/")
        {
            options(log, message, &result["configOptions"], out);
            if result["modes"].is_object() {
                modes(message, &result["modes"], out);
                out.pass("MODE-02", message);
            } else if asked.method == "session/new" && announces_modes(&log.initialized) {
                out.fail("MODE-02", message, "initialize announced modes, and the session's answer has none");
            }
        }
        if let Some((_, "config_option_update", update)) = message.update() {
            options(log, message, &update["configOptions"], out);
        }
    }
}

/// Whether the answer to `initialize` holds modes, where an early draft wanted them.
fn announces_modes(initialized: &Value) -> bool {
    let places = [&initialized["modes"], &initialized["agentCapabilities"]["modes"]];
    places.into_iter().any(|modes| modes.is_object() || modes.is_array())
}

fn modes(message: &Message, modes: &Value, out: &mut Findings) {
    let current = &modes["currentModeId"];
    let offered = items(&modes["availableModes"]).any(|mode| mode["id"] == *current);
    out.check("MODE-01", message, offered, || format!("the mode {current} is not among those offered"));
}

fn options(log: &EventLog, message: &Message, options: &Value, out: &mut Findings) {
    for option in items(options) {
        let id = &option[log.version().option_key()];
        let current = &option["currentValue"];
        let usable = match option["type"].as_str() {
            Some("boolean") => current.is_boolean(),
            Some("select") => values(option).any(|value| value == current),
            _ => !current.is_null(),
        };
        out.check("CONF-05", message, usable, || format!("the option {id} has no usable value: {current}"));
        if let Some(category) = option["category"].as_str() {
            let reserved = ["mode", "model", "model_config", "thought_level"].contains(&category);
            out.check("CONF-11", message, reserved || category.starts_with('_'), || {
                format!("the category {category:?} of option {id} is neither one of the protocol's nor begins with an underscore")
            });
        }
    }
}

/// The values of a select, in groups or not.
pub(crate) fn values(option: &Value) -> impl Iterator<Item = &Value> {
    let list = items(&option["options"]);
    list.flat_map(|entry| std::iter::once(entry).chain(items(&entry["options"])))
        .filter_map(|entry| entry.get("value"))
}
