//! A turn, as the wire shows it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::tap::{From, Log};

/// What was exchanged about one session.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The agent's words, and how the turn ended, for the last prompt of the session.
    pub(super) text: String,
    pub(super) stop: String,
    /// Updates during the load of the session.
    pub(super) replayed: String,
    pub(super) asks: Vec<Ask>,
    pub(super) tools: BTreeMap<String, Tool>,
    /// What the agent asked of the client, by method, in order, and whether it was granted.
    pub(super) calls: Vec<(String, bool)>,
    /// Requests and notifications of the client, by method, in order.
    pub(super) methods: Vec<String>,
}

/// A permission request and its answer.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) kind: String,
    /// The kind of the option that was chosen.
    pub(super) chosen: String,
}

/// A tool call, with all its updates merged.
#[derive(Debug, Default)]
pub(super) struct Tool {
    pub(super) kind: String,
    pub(super) status: String,
    /// All texts in it, wherever they stand.
    pub(super) texts: String,
    /// The new texts of its diffs.
    pub(super) diffs: Vec<String>,
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The session that a log is about, if it is about one.
pub(super) fn session(log: &Log) -> Option<String> {
    log.lines.iter().filter(|(from, _)| *from == From::Client).find_map(|(_, line)| {
        let message: Value = serde_json::from_str(line).ok()?;
        let id = (message["method"] == "session/prompt").then(|| word(&message["params"], "sessionId"))?;
        Some(id.to_owned())
    })
}

/// The version that the agent answered to `initialize`.
pub(super) fn version(log: &Log) -> Option<u64> {
    log.lines.iter().filter(|(from, _)| *from == From::Agent).find_map(|(_, line)| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["result"]["protocolVersion"].as_u64()
    })
}

/// Reads everything about one session.
pub(super) fn read(log: &Log, session: &str) -> Seen {
    let mut seen = Seen::default();
    // Requests that are open: whose, method, params.
    let mut open: BTreeMap<(bool, String), (String, Value)> = BTreeMap::new();
    for (from, line) in &log.lines {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let by_client = *from == From::Client;
        match message["method"].as_str() {
            Some(method) if word(&message["params"], "sessionId") == session => {
                if let Some(id) = message.get("id") {
                    let key = (by_client, id.to_string());
                    open.insert(key, (method.to_owned(), message["params"].clone()));
                }
                if by_client {
                    seen.methods.push(method.to_owned());
                }
                match method {
                    "session/prompt" => seen.text.clear(),
                    "session/update" => seen.update(&message["params"]["update"]),
                    _ => {}
                }
            }
            Some(_) => {}
            None => {
                let key = (!by_client, message["id"].to_string());
                if let Some((method, params)) = open.remove(&key) {
                    seen.answer(by_client, &method, &params, &message);
                }
            }
        }
    }
    seen
}

impl Seen {
    fn answer(&mut self, by_client: bool, method: &str, params: &Value, message: &Value) {
        let result = &message["result"];
        match method {
            "session/prompt" => self.stop = word(result, "stopReason").to_owned(),
            "session/load" | "session/resume" => self.replayed = std::mem::take(&mut self.text),
            "session/request_permission" => {
                self.calls.push((method.to_owned(), true));
                let id = &result["outcome"]["optionId"];
                let mut options = params["options"].as_array().into_iter().flatten();
                let chosen =
                    options.find(|option| option["optionId"] == *id).map(|option| word(option, "kind"));
                self.tool(&params["toolCall"]);
                let tool = self.tools.get(word(&params["toolCall"], "toolCallId"));
                let kind = tool.map(|tool| tool.kind.clone()).unwrap_or_default();
                self.asks.push(Ask { kind, chosen: chosen.unwrap_or("cancelled").to_owned() });
            }
            _ if by_client => self.calls.push((method.to_owned(), message.get("result").is_some())),
            _ => {}
        }
    }

    fn update(&mut self, update: &Value) {
        match word(update, "sessionUpdate") {
            "agent_message_chunk" | "user_message_chunk" => self.text += word(&update["content"], "text"),
            "tool_call" | "tool_call_update" => self.tool(update),
            _ => {}
        }
    }

    /// Adds what an update, or a question, says about a tool call.
    fn tool(&mut self, update: &Value) {
        let tool = self.tools.entry(word(update, "toolCallId").to_owned()).or_default();
        for (member, key) in [(&mut tool.kind, "kind"), (&mut tool.status, "status")] {
            if let Some(value) = update[key].as_str() {
                *member = value.to_owned();
            }
        }
        for piece in update["content"].as_array().into_iter().flatten() {
            if piece["type"] == "diff" {
                tool.diffs.push(word(piece, "newText").to_owned());
            }
        }
        // What a command printed stands in different places with every agent.
        texts(&update["content"], &mut tool.texts);
        texts(&update["rawOutput"], &mut tool.texts);
        texts(&update["_meta"], &mut tool.texts);
    }

    /// The tool calls of a kind.
    pub(super) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Tool> {
        self.tools.values().filter(move |tool| tool.kind == kind)
    }
}

fn texts(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(list) => list.iter().for_each(|value| texts(value, into)),
        Value::Object(members) => members.values().for_each(|value| texts(value, into)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[&str] = &[
        r#"> {"id":1,"method":"session/load","params":{"sessionId":"s"}}"#,
        r#"< {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"before"}}}}"#,
        r#"< {"id":1,"result":null}"#,
        r#"> {"id":2,"method":"session/prompt","params":{"sessionId":"s"}}"#,
        r#"< {"method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"no"}}}}"#,
        r#"< {"id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","kind":"edit"},"options":[{"optionId":"y","kind":"allow_once"}]}}"#,
        r#"> {"id":1,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#,
        r#"< {"id":2,"method":"fs/write_text_file","params":{"sessionId":"s"}}"#,
        r#"> {"id":2,"error":{"code":-32603,"message":"no"}}"#,
        r#"< {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed","content":[{"type":"diff","newText":"n"}]}}}"#,
        r#"< {"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}}"#,
        r#"< {"id":2,"result":{"stopReason":"end_turn"}}"#,
    ];

    #[test]
    fn a_turn_is_put_together_from_the_wire() {
        let mut log = Log::default();
        for line in LINES {
            let from = if line.starts_with('>') { From::Client } else { From::Agent };
            log.lines.push((from, line[2..].to_owned()));
        }
        assert_eq!(session(&log).as_deref(), Some("s"));
        let seen = read(&log, "s");
        assert_eq!((&*seen.replayed, &*seen.text, &*seen.stop), ("before", "done", "end_turn"));
        assert!(matches!(&seen.asks[..], [ask] if ask.kind == "edit" && ask.chosen == "allow_once"));
        let calls: Vec<(&str, bool)> = seen.calls.iter().map(|(call, granted)| (&**call, *granted)).collect();
        assert_eq!(calls, [("session/request_permission", true), ("fs/write_text_file", false)]);
        assert!(seen.of_kind("edit").all(|tool| tool.status == "failed" && tool.diffs == ["n"]));
    }
}
