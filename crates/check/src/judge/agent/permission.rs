//! Permission requests.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::message::asked_tool;
use super::super::{EventLog, Findings, Message, Watcher};
use super::{is_text, items};
use crate::Role;

// PERM-02, PERM-16, PERM-13
pub(super) struct Permissions;

impl Watcher for Permissions {
    fn rules(&self) -> &'static [&'static str] {
        &["PERM-02", "PERM-16", "PERM-13"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from == Role::Client {
            // The answer has come, and until here nothing was done.
            if let Some((asked, _)) = log.response(message)
                && asked.method == "session/request_permission"
            {
                out.pass_at("PERM-13", Role::Agent, &[asked.index]);
            }
            return;
        }
        let Some((method, params)) = message.call(Role::Agent) else { return };
        if method == "session/request_permission" {
            let named = is_text(&params["toolCall"]["toolCallId"]);
            out.check("PERM-02", message, named, || "the question names no tool call".to_owned());
            distinct(message, &params["options"], out);
        }
        before_the_answer(message, log, method, params, out);
    }
}

/// An id stands for one option.
// PERM-16
fn distinct(message: &Message, options: &Value, out: &mut Findings) {
    let mut seen = BTreeSet::new();
    let twice = items(options).filter_map(|option| option["optionId"].as_str()).find(|id| !seen.insert(*id));
    let why = || format!("two options have the id {:?}", twice.unwrap_or_default());
    out.check("PERM-16", message, twice.is_none(), why);
}

/// The tool call waits for the answer. Visible violations are the end of the tool call and
/// a write to a path that it names.
// PERM-13
fn before_the_answer(message: &Message, log: &EventLog, method: &str, params: &Value, out: &mut Findings) {
    for asked in log.open_for(Role::Agent, "session/request_permission") {
        let call = asked_tool(&asked.params);
        let id = &call["toolCallId"];
        let update = &params["update"];
        let done = update["sessionUpdate"] == "tool_call_update"
            && !id.is_null()
            && update["toolCallId"] == *id
            && update["status"] == "completed";
        let written = method == "fs/write_text_file" && names(call, &params["path"]);
        if done || written {
            let what = if done { "its tool call is completed" } else { "its file is written" };
            let places = [asked.index, message.index];
            out.fail_at("PERM-13", Role::Agent, &places, format!("the question is not answered and {what}"));
        }
    }
}

fn names(call: &Value, path: &Value) -> bool {
    path.is_string()
        && (items(&call["locations"]).any(|place| place["path"] == *path)
            || items(&call["content"]).any(|item| item["path"] == *path))
}
