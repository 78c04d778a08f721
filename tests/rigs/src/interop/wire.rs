//! What must hold of any exchange, whatever the scenario: read from the log of the tap.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pair::short;
use super::tap::{From, Log};

/// An open request: its method and its session, if it names one.
struct Open {
    method: String,
    session: String,
    /// The turn, or this request, was cancelled while it was open.
    cancelled: bool,
}

#[derive(Default)]
struct Exchange {
    /// Open requests of the client and of the agent, by id.
    client: BTreeMap<String, Open>,
    agent: BTreeMap<String, Open>,
    /// Sessions that the client knows of.
    known: BTreeSet<String>,
    /// How far each tool call has come.
    tools: BTreeMap<(String, String), u8>,
    client_can: Value,
    agent_can: Value,
    initialized: bool,
    /// The log is one of version 2, in the form of version 1.
    is_v2: bool,
    /// Sessions of version 2 in which a tool call went on after its turn; their agents may speak on
    /// their own.
    background: BTreeSet<String>,
    bad: Vec<String>,
}

/// Reads the whole log and returns what was wrong with it.
pub(super) fn check(log: &Log) -> Vec<String> {
    let mut exchange = Exchange::default();
    for (number, (from, line)) in log.lines.iter().enumerate() {
        let before = exchange.bad.len();
        match serde_json::from_str::<Value>(line) {
            Ok(message) => exchange.message(*from, &message),
            Err(error) => exchange.bad.push(format!("not JSON ({error})")),
        }
        for problem in &mut exchange.bad[before..] {
            *problem = format!("wire line {}: {problem}: {}", number + 1, short(line));
        }
    }
    if log.lines.is_empty() {
        exchange.bad.push("nothing went over the wire".to_owned());
    }
    for (side, open) in [("client", &exchange.client), ("agent", &exchange.agent)] {
        for (id, request) in open {
            exchange.bad.push(format!("the {side}'s {} with id {id} was never answered", request.method));
        }
    }
    exchange.bad
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Whether a capability is there: `true` or an object.
fn has(capabilities: &Value, path: &str) -> bool {
    let found = capabilities.pointer(path);
    found.is_some_and(|value| value.as_bool().unwrap_or(value.is_object()))
}

impl Exchange {
    fn say(&mut self, problem: impl Into<String>) {
        self.bad.push(problem.into());
    }

    fn message(&mut self, from: From, message: &Value) {
        if message["jsonrpc"] != "2.0" {
            self.say("no \"jsonrpc\":\"2.0\"");
        }
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.request(from, method, id, &message["params"]),
            (Some(method), None) => self.notification(from, method, &message["params"]),
            (None, Some(id)) => self.answer(from, id, message),
            (None, None) => self.say("neither method nor id"),
        }
    }

    fn request(&mut self, from: From, method: &str, id: &Value, params: &Value) {
        let first = from == From::Client && method == "initialize";
        if !self.initialized && !first {
            self.say("before the answer to initialize");
        }
        let capabilities = if from == From::Client { &self.agent_can } else { &self.client_can };
        let gate = if self.is_v2 { gate_v2(from, method, params) } else { gate(from, method, params) };
        if gate.is_some_and(|path| !has(capabilities, path)) {
            self.say(format!("{method} was not offered"));
        }
        if method == "initialize" {
            let is_offered = params["protocolVersion"] == 2;
            let key = if is_offered { "capabilities" } else { "clientCapabilities" };
            self.client_can = params[key].clone();
        }
        let session = word(params, "sessionId").to_owned();
        if matches!(method, "session/load" | "session/resume") {
            self.known.insert(session.clone());
        }
        let open = Open { method: method.to_owned(), session, cancelled: false };
        let table = if from == From::Client { &mut self.client } else { &mut self.agent };
        if table.insert(id.to_string(), open).is_some() {
            self.say(format!("id {id} is used twice at the same time"));
        }
    }

    fn answer(&mut self, from: From, id: &Value, message: &Value) {
        let table = if from == From::Client { &mut self.agent } else { &mut self.client };
        let Some(open) = table.remove(&id.to_string()) else {
            return self.say(format!("an answer to nothing, id {id}"));
        };
        if message.get("result").is_some() == message.get("error").is_some() {
            self.say("an answer with both or neither of result and error");
        }
        let result = &message["result"];
        // CANCEL-22, CANCEL-23: what was cancelled may also be answered with this error.
        let refused = message["error"]["code"] == -32800;
        match open.method.as_str() {
            "initialize" => {
                self.initialized = true;
                self.is_v2 = result["protocolVersion"] == 2;
                let key = if self.is_v2 { "capabilities" } else { "agentCapabilities" };
                self.agent_can = result[key].clone();
            }
            "session/new" | "session/fork" => {
                self.known.insert(word(result, "sessionId").to_owned());
            }
            "session/prompt" if open.cancelled && !refused && word(result, "stopReason") != "cancelled" => {
                self.say("the turn was cancelled and does not say so");
            }
            "session/request_permission"
                if open.cancelled && !refused && word(&result["outcome"], "outcome") != "cancelled" =>
            {
                self.say("the turn was cancelled and its question answered otherwise");
            }
            _ => {}
        }
    }

    fn notification(&mut self, from: From, method: &str, params: &Value) {
        match (from, method) {
            (From::Client, "session/cancel") => {
                let session = word(params, "sessionId");
                let open = self.client.values_mut().chain(self.agent.values_mut());
                for open in open.filter(|open| open.session == session) {
                    open.cancelled = true;
                }
            }
            (_, "$/cancel_request") => {
                let table = if from == From::Client { &mut self.client } else { &mut self.agent };
                if let Some(open) = table.get_mut(&params["requestId"].to_string()) {
                    open.cancelled = true;
                }
            }
            (From::Agent, "session/update") => self.update(word(params, "sessionId"), &params["update"]),
            _ => {}
        }
    }

    fn update(&mut self, session: &str, update: &Value) {
        if !self.known.contains(session) {
            self.say("an update of a session that the client does not know yet");
        }
        let kind = word(update, "sessionUpdate");
        let in_turn = self.client.values().any(|open| {
            let is_turn = match open.method.as_str() {
                "session/prompt" | "session/load" => true,
                "session/resume" => self.is_v2,
                _ => false,
            };
            open.session == session && is_turn
        });
        let of_turn = kind.ends_with("_chunk") || kind.starts_with("tool_call") || kind == "plan";
        let call = (session.to_owned(), word(update, "toolCallId").to_owned());
        if self.is_v2 && !in_turn && self.tools.contains_key(&call) {
            self.background.insert(session.to_owned());
        }
        if of_turn && !in_turn && !self.background.contains(session) {
            self.say("an update of a turn outside any turn");
        }
        if kind.starts_with("tool_call") {
            self.tool_call(session, update);
        }
    }

    /// A tool call goes from pending to in progress to its end, and never back.
    fn tool_call(&mut self, session: &str, update: &Value) {
        let key = (session.to_owned(), word(update, "toolCallId").to_owned());
        let reached = self.tools.get(&key).copied();
        let step = match update["status"].as_str() {
            Some("pending") => 0,
            Some("in_progress") => 1,
            Some("completed" | "failed") => 2,
            Some(other) => return self.say(format!("status {other}")),
            None => reached.unwrap_or(0),
        };
        let begins = word(update, "sessionUpdate") == "tool_call";
        if begins == reached.is_some() {
            self.say("a tool call must begin exactly once");
        }
        if reached.is_some_and(|reached| step < reached) {
            self.say("a tool call went back");
        }
        self.tools.insert(key, step);
    }
}

/// The capability that a request needs, as a path into what the receiver offered.
fn gate(from: From, method: &str, params: &Value) -> Option<&'static str> {
    Some(match (from, method) {
        (From::Client, "session/load") => "/loadSession",
        (From::Client, "session/list") => "/sessionCapabilities/list",
        (From::Client, "session/resume") => "/sessionCapabilities/resume",
        (From::Client, "session/close") => "/sessionCapabilities/close",
        (From::Client, "session/fork") => "/sessionCapabilities/fork",
        (From::Client, "session/delete") => "/sessionCapabilities/delete",
        (From::Client, "logout") => "/auth/logout",
        (From::Agent, "fs/read_text_file") => "/fs/readTextFile",
        (From::Agent, "fs/write_text_file") => "/fs/writeTextFile",
        (From::Agent, "elicitation/create") if params["mode"] == "url" => "/elicitation/url",
        (From::Agent, "elicitation/create") => "/elicitation/form",
        (From::Agent, method) if method.starts_with("terminal/") => "/terminal",
        _ => return None,
    })
}

/// The same for version 2.
fn gate_v2(from: From, method: &str, params: &Value) -> Option<&'static str> {
    Some(match (from, method) {
        (From::Client, "session/fork") => "/session/fork",
        (From::Client, "session/delete") => "/session/delete",
        (From::Client, method) if method.starts_with("session/") => "/session",
        (From::Agent, "elicitation/create") if params["mode"] == "url" => "/elicitation/url",
        (From::Agent, "elicitation/create") => "/elicitation/form",
        // No client offers what version 2 does not have.
        (From::Agent, method) if method.starts_with("fs/") || method.starts_with("terminal/") => "/none",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &[&str] = &[
        r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientCapabilities":{"terminal":true}}}"#,
        r#"< {"jsonrpc":"2.0","id":0,"result":{"agentCapabilities":{"loadSession":true}}}"#,
        r#"> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#,
        r#"< {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
        r#"> {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}"#,
    ];
    const BYE: &str = r#"< {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#;

    /// What is wrong when these lines follow the start of a turn.
    fn wrong(lines: &[&str]) -> String {
        found(HELLO.iter().chain(lines).copied())
    }

    /// What is wrong with these lines.
    fn found<'a>(lines: impl Iterator<Item = &'a str>) -> String {
        let mut log = Log::default();
        for line in lines {
            let from = if line.starts_with('>') { From::Client } else { From::Agent };
            log.lines.push((from, line[2..].to_owned()));
        }
        check(&log).join("\n")
    }

    #[test]
    fn a_good_exchange_passes() {
        let call = r#"< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t"}}}"#;
        assert_eq!(wrong(&[call, BYE]), "");
    }

    #[test]
    fn work_in_the_background_goes_on_in_version_2_only() {
        let update = |kind: &str| {
            format!(
                r#"< {{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}","toolCallId":"t"}}}}}}"#
            )
        };
        let (begin, later, text) =
            (update("tool_call"), update("tool_call_update"), update("agent_message_chunk"));
        let lines = [&*begin, BYE, &*later, &*text];
        assert!(wrong(&lines).contains("outside any turn"));
        let answer =
            r#"< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"capabilities":{"session":{}}}}"#;
        let hello = [HELLO[0], answer].into_iter().chain(HELLO[2..].iter().copied());
        assert_eq!(found(hello.chain(lines)), "");
    }

    #[test]
    fn each_fault_is_noticed() {
        let update = |status: &str| {
            format!(
                r#"< {{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call{status}}}}}}}"#
            )
        };
        let begin = update(r#"","toolCallId":"t","status":"in_progress""#);
        let back = update(r#"_update","toolCallId":"t","status":"pending""#);
        let cancel = r#"> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
        let read = r#"< {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s"}}"#;
        for (lines, problem) in [
            (vec![], "was never answered"),
            (vec![BYE, BYE], "an answer to nothing"),
            (vec![BYE, &*begin], "outside any turn"),
            (vec![&*begin, &*back, BYE], "went back"),
            (vec![&*back, BYE], "must begin exactly once"),
            (vec![cancel, BYE], "was cancelled and does not say so"),
            (vec![read, BYE], "was not offered"),
            (vec!["< hello", BYE], "not JSON"),
        ] {
            let found = wrong(&lines);
            assert!(found.contains(problem), "expected `{problem}`, found `{found}`");
        }
    }
}
