//! Lines of version 2 in the form of version 1.

use attache::Flow;
use attache::client::LinesAsV1;
use serde_json::{Value, json};

/// A connection with the session `s`, and the lines that stand for its lines.
struct Lines {
    lines: LinesAsV1,
    prompts: u32,
}

impl Lines {
    fn connect(answer: Value) -> Self {
        let mut lines = Lines { lines: LinesAsV1::new(), prompts: 0 };
        let hello =
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 2}});
        assert_eq!(lines.line(Flow::Out, &hello), vec![hello]);
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": answer});
        assert_eq!(lines.line(Flow::In, &answer), vec![answer]);
        lines
    }

    fn v2() -> Self {
        Lines::connect(json!({"protocolVersion": 2, "info": {"name": "a", "version": "1"}}))
    }

    fn line(&mut self, flow: Flow, line: &Value) -> Vec<Value> {
        let mut out = Vec::new();
        self.lines.line(flow, line.to_string().as_bytes(), |line| {
            out.push(serde_json::from_slice(line).unwrap());
        });
        out
    }

    /// The updates that stand for an update, and other lines.
    fn update(&mut self, update: Value) -> Vec<Value> {
        let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
        let out = self.line(Flow::In, &line);
        out.into_iter()
            .map(|mut line| line.pointer_mut("/params/update").map(Value::take).unwrap_or(line))
            .collect()
    }

    fn state(&mut self, members: Value) -> Vec<Value> {
        let mut update = json!({"sessionUpdate": "state_update"});
        update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.update(update)
    }

    /// A turn up to its first output. Returns the id of its request.
    fn begin(&mut self) -> Value {
        self.prompts += 1;
        let (id, message) = (json!(format!("p{}", self.prompts)), json!(format!("u{}", self.prompts)));
        let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": prompt});
        assert_eq!(self.line(Flow::Out, &request), vec![request]);
        let echo = json!({"sessionUpdate": "user_message", "messageId": message, "content": [{"type": "text", "text": "go"}]});
        assert_eq!(
            self.update(echo),
            Vec::<Value>::new(),
            "the client that prompted does not see its own message"
        );
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"messageId": message}});
        assert_eq!(self.line(Flow::In, &answer), Vec::<Value>::new(), "the end is the answer");
        assert_eq!(self.state(json!({"state": "running"})), Vec::<Value>::new());
        id
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn chunk(id: &str, text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": self::text(text)})
}

#[test]
fn states_are_the_answer_to_the_prompt() {
    let mut lines = Lines::v2();
    let error = json!({"code": -32000, "message": "log in"});
    for (state, member, expected) in [
        (json!({"stopReason": "max_tokens"}), "result", json!({"stopReason": "max_tokens"})),
        (json!({}), "result", json!({"stopReason": "end_turn"})),
        (json!({"stopReason": "error", "error": error}), "error", error.clone()),
        // Never an unknown word in a closed list.
        (
            json!({"stopReason": "_bored", "since": 5}),
            "result",
            json!({"stopReason": "end_turn", "_meta": {"attache": {"stopReason": "_bored"}}}),
        ),
    ] {
        let id = lines.begin();
        assert_eq!(lines.state(json!({"state": "requires_action"})), Vec::<Value>::new());
        assert_eq!(lines.state(json!({"state": "_dreaming"})), Vec::<Value>::new());
        let mut idle = json!({"state": "idle"});
        idle.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
        assert_eq!(lines.state(idle.clone()), [json!({"jsonrpc": "2.0", "id": id, member: expected})]);
        assert_eq!(lines.state(idle), Vec::<Value>::new(), "a repeated state");
    }
}

#[test]
fn a_message_that_is_taken_back_is_another_one() {
    // shows V2-17
    let mut lines = Lines::v2();
    lines.begin();
    let whole = |texts: &[&str]| {
        let content: Vec<Value> = texts.iter().map(|text| self::text(text)).collect();
        json!({"sessionUpdate": "agent_message", "messageId": "a", "content": content})
    };
    assert_eq!(lines.update(chunk("a", "one")), [chunk("a", "one")]);
    assert_eq!(lines.update(whole(&["one two"])), [chunk("a", " two")]);
    assert_eq!(lines.update(whole(&["uno"])), [chunk("a-1", "uno")]);
    assert_eq!(lines.update(chunk("a", " dos")), [chunk("a-1", " dos")]);
    assert_eq!(lines.update(chunk("b", "other")), [chunk("b", "other")]);
    assert_eq!(lines.update(whole(&[])), Vec::<Value>::new());
    assert_eq!(lines.update(chunk("a", "eins")), [chunk("a-2", "eins")]);
    assert_eq!(lines.update(whole(&["zwei"])), [chunk("a-3", "zwei")]);
}

#[test]
fn calls_are_whole_and_terminals_are_text() {
    let mut lines = Lines::v2();
    lines.begin();
    let block = |text: &str| json!({"type": "content", "content": self::text(text)});
    let call = |members: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t"});
        update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        update
    };
    let append = |content: Value| json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": content});
    let created =
        lines.update(call(json!({"title": "Run", "kind": "_paint", "status": "paused", "_meta": {"a": 1}})));
    assert_eq!(created[0]["sessionUpdate"], "tool_call");
    let members = ["title", "kind", "status", "_meta"].map(|name| created[0][name].clone());
    assert_eq!(members, [json!("Run"), json!("other"), json!("in_progress"), json!({"a": 1})]);
    assert_eq!(lines.update(append(block("one")))[0]["content"], json!([block("one")]));
    assert_eq!(lines.update(append(block("two")))[0]["content"], json!([block("one"), block("two")]));
    let patched = lines.update(call(json!({"content": null, "_meta": {"a": null, "b": 2}})));
    assert_eq!((&patched[0]["content"], &patched[0]["_meta"]), (&json!([]), &json!({"b": 2})));

    let terminal = json!({"sessionUpdate": "terminal_update", "terminalId": "x", "command": "make"});
    assert_eq!(lines.update(terminal), Vec::<Value>::new());
    lines.update(append(json!({"type": "terminal", "terminalId": "x"})));
    let output = json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": "aGk="});
    assert_eq!(lines.update(output), Vec::<Value>::new());
    let exit = json!({"sessionUpdate": "terminal_update", "terminalId": "x", "exitStatus": {"exitCode": -1}});
    assert_eq!(lines.update(exit)[0]["content"], json!([block("hi")]));
    let patch = "--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-old\n+new\n";
    let diff = json!({"type": "diff", "changes": [{"operation": "modify", "path": "/w/a"}], "patch": {"format": "git_patch", "text": patch}});
    assert_eq!(
        lines.update(call(json!({"status": "cancelled", "content": [diff]}))),
        [call(json!({"status": "failed",
            "content": [{"type": "diff", "path": "/w/a", "oldText": "old\n", "newText": "new\n"}]}))]
    );
}

#[test]
fn options_commands_and_questions() {
    let mut lines = Lines::v2();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/w"}});
    lines.line(Flow::Out, &request);
    let option = json!({"configId": "m", "name": "Mode", "category": "mode", "type": "select", "currentValue": "ask",
        "options": [{"value": "ask", "name": "Ask"}]});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s", "configOptions": [option]}});
    let opened = lines.line(Flow::In, &answer);
    assert_eq!(opened[0]["result"]["modes"]["currentModeId"], "ask");
    assert_eq!(opened[0]["result"]["configOptions"][0]["id"], "m");
    lines.begin();
    let command = json!({"type": "command", "name": "go", "description": "Go", "input": {"type": "text", "hint": "where"}});
    let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": [command, {"type": "_x", "name": "x", "description": "x"}]});
    assert_eq!(
        lines.update(update)[0]["availableCommands"],
        json!([{"name": "go", "description": "Go", "input": {"hint": "where"}}])
    );
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let params = json!({"sessionId": "s", "title": "Run it?", "options": options,
        "subject": {"type": "command", "command": "make", "cwd": "/w"}});
    let asked = lines.line(
        Flow::In,
        &json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params}),
    );
    let call = &asked[0]["params"]["toolCall"];
    assert_eq!(
        (&asked[0]["id"], &call["title"], &call["kind"]),
        (&json!(7), &json!("make"), &json!("execute"))
    );
    assert!(call["toolCallId"].is_string(), "{call}");
    // Updates that neither version has are kept.
    let unknown = json!({"sessionUpdate": "_vendor", "anything": [1]});
    assert_eq!(lines.update(unknown.clone()), [unknown]);
}

#[test]
fn lines_of_version_1_pass() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T",
        "content": [{"type": "diff", "path": "/w/a", "newText": "x"}]});
    for answer in [
        json!({"protocolVersion": 1}),
        // An agent that repeats the number, but answers in the form of version 1.
        json!({"protocolVersion": 2, "agentCapabilities": {"loadSession": true}}),
    ] {
        let mut lines = Lines::connect(answer);
        assert_eq!(lines.update(call.clone()), vec![call.clone()]);
        let mode = json!({"sessionUpdate": "current_mode_update", "currentModeId": "ask"});
        assert_eq!(lines.update(mode.clone()), [mode]);
        let update =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": call["content"]});
        assert_eq!(lines.update(update.clone()), [update]);
    }
}
