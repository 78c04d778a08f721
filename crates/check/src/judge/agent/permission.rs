//! Permission requests.

use serde_json::Value;

use super::super::{EventLog, Findings, Message, Watcher};
use super::{is_text, items};
use crate::Role;

/// PERM-02, PERM-13.
pub(super) struct Permissions;

impl Watcher for Permissions {
    fn rules(&self) -> &'static [&'static str] {
        &["PERM-02", "PERM-13"]
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
        }
        before_the_answer(message, log, method, params, out);
    }
}

/// PERM-13: the tool call waits for the answer. Visible violations are the end of the tool call and
/// a write to a path that it names.
fn before_the_answer(message: &Message, log: &EventLog, method: &str, params: &Value, out: &mut Findings) {
    for asked in log.open_for(Role::Agent, "session/request_permission") {
        let call = &asked.params["toolCall"];
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
