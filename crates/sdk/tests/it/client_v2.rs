//! Clients over protocol version 2, against scripted agents.

use attache::client::{AgentHandle, Client, Event, Protocol, Replay, Session, SessionState, ToolStatus};
use attache::wire::v1::{PermissionOptionKind, SessionConfigOptionValue};
use attache::{Error, StopReason};
use serde_json::{Value, json};

use crate::script::Script;
use crate::turn_events::{SkipStates, state_name};

pub(crate) fn both() -> Client {
    Client::new().protocol(Protocol::Auto)
}

pub(crate) fn hello(capabilities: Value) -> Value {
    json!({"protocolVersion": 2, "info": {"name": "scripted", "version": "1"}, "capabilities": capabilities})
}

pub(crate) async fn greeted(client: Client, capabilities: Value) -> (AgentHandle, Script) {
    let (link, mut script) = Script::pair();
    let answer = async {
        let request = script.expect("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], 2);
        assert!(request["params"].get("clientCapabilities").is_none(), "{request}");
        script.answer(&request, hello(capabilities)).await;
    };
    let (agent, ()) = tokio::join!(client.connect(link), answer);
    (agent.unwrap(), script)
}

async fn open(client: Client) -> (Session, Script) {
    let (agent, mut script) = greeted(client, json!({"session": {}})).await;
    let (session, request) = tokio::join!(agent.new_session("/work"), script.new_session("s1"));
    assert_eq!(request["params"], json!({"cwd": "/work"}));
    (session.unwrap(), script)
}

impl Script {
    async fn state(&mut self, state: Value) {
        let mut update = json!({"sessionUpdate": "state_update"});
        update.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
        self.update("s1", update).await;
    }

    async fn message(&mut self, id: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": content});
        self.update("s1", update).await;
    }

    async fn idle(&mut self) {
        self.state(json!({"state": "idle", "stopReason": "end_turn"})).await;
    }

    /// Takes a prompt over, in the usual order.
    async fn insert(&mut self, id: &str) -> Value {
        let prompt = self.expect("session/prompt").await;
        let content = &prompt["params"]["prompt"];
        self.update("s1", json!({"sessionUpdate": "user_message", "messageId": id, "content": content}))
            .await;
        self.answer(&prompt, json!({"messageId": id})).await;
        self.state(json!({"state": "running"})).await;
        prompt
    }
}

/// A short form of an event.
fn line(event: &Event) -> String {
    match event {
        Event::Text(text) => format!("text {}", &**text),
        Event::User(text) => format!("user {}", &**text),
        Event::State(state) => format!("state {}", state_name(state)),
        Event::Message(change) => format!("message {}", change.text()),
        Event::ToolCall(change) => {
            format!("tool {} {} {}", change.created, change.call.title, change.call.status.as_str())
        }
        Event::Terminal(change) => {
            format!("terminal {}", String::from_utf8_lossy(&change.terminal.output))
        }
        Event::Background(work) => format!("background {}", work.len()),
        Event::Mode(mode) => format!("mode {mode}"),
        Event::ConfigOptions(options) => format!("options {}", options.len()),
        other => format!("{other:?}"),
    }
}

async fn lines(session: &mut Session) -> Vec<String> {
    let mut turn = session.prompt("go").await.unwrap();
    let mut lines = Vec::new();
    while let Some(event) = turn.next().await.unwrap() {
        lines.push(line(&event));
    }
    lines.push(format!("{:?}", turn.stop_reason().unwrap()));
    lines
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_when_the_session_is_idle() {
    // shows V2-08, V2-11, V2-13, V2-37
    let (mut session, mut agent) = open(both()).await;
    let script = async {
        // The end of earlier work.
        let prompt = agent.expect("session/prompt").await;
        agent.idle().await;
        agent.answer(&prompt, json!({"messageId": "m1"})).await;
        agent.update("s1", json!({"sessionUpdate": "user_message", "messageId": "m1", "content": []})).await;
        agent.state(json!({"state": "running"})).await;
        agent.message("a1", "hel").await;
        agent.message("a1", "lo").await;
        agent.idle().await;
    };
    let (lines, ()) = tokio::join!(lines(&mut session), script);
    assert_eq!(lines, ["state idle", "state running", "text hel", "text lo", "state idle", "EndTurn"]);
    assert_eq!(
        session.control().state(),
        Some(SessionState::Idle(Some(attache::client::IdleReason::EndTurn)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_repeated_idle_state_does_not_end_a_turn() {
    // shows V2-37
    let (mut session, mut agent) = open(both()).await;
    for id in ["m1", "m2"] {
        let script = async {
            let prompt = agent.expect("session/prompt").await;
            agent.answer(&prompt, json!({"messageId": id})).await;
            let user = json!({"sessionUpdate": "user_message", "messageId": id, "content": []});
            agent.update("s1", user).await;
            // The state before the work starts: background work changed.
            agent.state(json!({"state": "idle", "background": []})).await;
            if id == "m2" {
                agent.state(json!({"state": "idle", "stopReason": "end_turn", "background": []})).await;
            }
            agent.state(json!({"state": "running", "background": []})).await;
            agent.message(id, "hello").await;
            agent.state(json!({"state": "idle", "stopReason": "end_turn", "background": []})).await;
        };
        let (lines, ()) = tokio::join!(lines(&mut session), script);
        assert_eq!(lines[lines.len() - 3..], ["text hello", "state idle", "EndTurn"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_come_after_the_end() {
    // shows V2-10
    let (mut session, mut agent) = open(both()).await;
    let script = async {
        let prompt = agent.expect("session/prompt").await;
        let user = |id: &str| json!({"sessionUpdate": "user_message", "messageId": id, "content": [{"type": "text", "text": id}]});
        agent.update("s1", user("of another client")).await;
        agent.update("s1", user("m1")).await;
        agent.message("a1", "hello").await;
        agent.idle().await;
        agent.answer(&prompt, json!({"messageId": "m1"})).await;
    };
    let (lines, ()) = tokio::join!(lines(&mut session), script);
    assert_eq!(lines, ["text hello", "state idle", "user of another client", "EndTurn"]);
}

#[tokio::test(start_paused = true)]
async fn errors_end_turns() {
    // shows V2-09
    let (mut session, mut agent) = open(both()).await;
    let turn = session.prompt("one").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.refuse(&prompt, -32602, "no").await;
    assert!(matches!(turn.finish().await, Err(Error::Refused(error)) if error.code == -32602));

    let mut turn = session.prompt("two").await.unwrap();
    agent.insert("m2").await;
    let error = json!({"code": -32000, "message": "log in"});
    agent.state(json!({"state": "idle", "stopReason": "error", "error": error})).await;
    let failed = loop {
        match turn.next().await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(failed.is_err_and(|error| error.is_auth_required()));
    drop(turn);

    // An unknown reason is an end as well; so is none, or a malformed one.
    for state in [
        json!({"state": "idle", "stopReason": "_bored"}),
        json!({"state": "idle"}),
        json!({"state": "idle", "stopReason": {"why": 5}}),
    ] {
        let turn = session.prompt("three").await.unwrap();
        agent.insert("m3").await;
        agent.state(state).await;
        assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn);
    }
    // An unknown state is none. shows V2-35
    let mut turn = session.prompt("four").await.unwrap();
    agent.insert("m4").await;
    agent.state(json!({"state": "_dreaming"})).await;
    agent.message("a", "still here").await;
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    agent.idle().await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_with_an_idle_state_or_a_refused_prompt() {
    // shows V2-14, V2-15, V2-43
    let (mut session, mut agent) = open(both()).await;
    let mut turn = session.prompt("one").await.unwrap();
    agent.insert("m1").await;
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    agent
        .request(
            "q",
            "session/request_permission",
            json!({"sessionId": "s1", "title": "Go?", "options": options}),
        )
        .await;
    let Some(Event::ToolCall(_)) = turn.after_states().await.unwrap() else { panic!() };
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    turn.cancel();
    agent.expect("session/cancel").await;
    assert_eq!(agent.result("q").await, json!({"outcome": {"outcome": "cancelled"}}));
    assert!(!ask.is_open());
    agent.message("a", "late").await;
    agent.state(json!({"state": "idle", "stopReason": "cancelled"})).await;
    let Some(Event::ToolCall(ended)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(ended.call.status, ToolStatus::Failed);
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    assert!(turn.after_states().await.unwrap().is_none());
    assert_eq!(turn.stop_reason(), Some(StopReason::Cancelled));
    drop(turn);

    // The agent was cancelled before it reported that it works. The state is that of the turn
    // before.
    let turn = session.prompt("again").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.answer(&prompt, json!({"messageId": "m2"})).await;
    turn.cancel();
    agent.expect("session/cancel").await;
    agent.state(json!({"state": "idle", "stopReason": "cancelled"})).await;
    let before = tokio::time::Instant::now();
    assert_eq!(turn.finish().await.unwrap(), StopReason::Cancelled);
    assert_eq!(before.elapsed(), std::time::Duration::ZERO, "ended by the state and not by the deadline");

    let turn = session.prompt("two").await.unwrap();
    turn.cancel();
    let prompt = agent.expect("session/prompt").await;
    agent.expect("session/cancel").await;
    agent.refuse(&prompt, -32800, "cancelled").await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn messages_are_replaced_and_grow() {
    // shows V2-16, V2-17, V2-21
    let (mut session, mut agent) = open(both()).await;
    let script = async {
        agent.insert("m1").await;
        let text = |text: &str| json!({"type": "text", "text": text});
        let message =
            |content: Value| json!({"sessionUpdate": "agent_message", "messageId": "a", "content": content});
        agent.update("s1", message(json!([text("one"), {"type": "_x"}]))).await;
        agent.message("a", " two").await;
        agent.update("s1", message(json!([text("one two")]))).await;
        agent.update("s1", message(json!([text("one two three")]))).await;
        agent.update("s1", message(json!([text("uno")]))).await;
        agent
            .update("s1", json!({"sessionUpdate": "agent_message", "messageId": "a", "_meta": {"a": 1}}))
            .await;
        agent.update("s1", message(Value::Null)).await;
        // Without an id it is no message, and the session continues.
        agent.say("s1", "nameless").await;
        agent.idle().await;
    };
    let (lines, ()) = tokio::join!(lines(&mut session), script);
    assert_eq!(
        lines,
        [
            "state running",
            "text one",
            "text  two",
            "text  three",
            "message uno",
            "message ",
            "state idle",
            "EndTurn"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn tool_calls_have_three_states_per_member_and_grow() {
    // shows V2-17, V2-18, V2-19, V2-30
    let (mut session, mut agent) = open(both()).await;
    let control = session.control();
    let mut turn = session.prompt("go").await.unwrap();
    agent.insert("m1").await;
    let tool = |members: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t"});
        update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        update
    };
    async fn next(turn: &mut attache::client::TurnEvents<'_>) -> attache::client::ToolCallChange {
        let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
        change
    }
    let chunk = |text: &str| {
        json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t",
        "content": {"type": "content", "content": {"type": "text", "text": text}}})
    };
    agent.update("s1", tool(json!({"name": "sh", "title": "ls", "capabilities": {"cancel": {}}, "_meta": {"a": 1, "b": 2}}))).await;
    let change = next(&mut turn).await;
    assert!(change.created && change.call.cancellable);
    assert_eq!((change.call.name.as_deref(), &change.call.status), (Some("sh"), &ToolStatus::Pending));
    agent.update("s1", chunk("a")).await;
    agent.update("s1", chunk("b")).await;
    next(&mut turn).await;
    let change = next(&mut turn).await;
    assert!(!change.created);
    assert_eq!((change.call.content.len(), change.update.content.unwrap().len()), (2, 2));
    let id = "t".into();
    let (cancelled, request) = tokio::join!(control.cancel_tool_call(&id), async {
        let request = agent.expect("tool_call/cancel").await;
        agent.answer(&request, json!({})).await;
        request
    });
    cancelled.unwrap();
    assert_eq!(request["params"], json!({"sessionId": "s1", "toolCallId": "t"}));
    let update = json!({"status": "cancelled", "title": null, "content": null, "_meta": {"a": null, "c": 3}});
    agent.update("s1", tool(update)).await;
    let change = next(&mut turn).await;
    assert_eq!(change.call.status, ToolStatus::Cancelled);
    assert!(change.call.title.is_empty() && change.call.content.is_empty());
    assert_eq!(change.call.name.as_deref(), Some("sh"));
    assert_eq!(serde_json::to_value(&change.call.meta).unwrap(), json!({"b": 2, "c": 3}));
    assert!(matches!(control.cancel_tool_call(&"t".into()).await, Err(Error::Unsupported(_))));
    assert!(matches!(control.cancel_tool_call(&"other".into()).await, Err(Error::Unsupported(_))));
}

#[tokio::test(start_paused = true)]
async fn terminals_belong_to_the_agent() {
    // shows V2-32, V2-30
    let (mut session, mut agent) = open(both()).await;
    let control = session.control();
    let mut turn = session.prompt("go").await.unwrap();
    agent.insert("m1").await;
    let update = json!({"sessionUpdate": "terminal_update", "terminalId": "x", "command": "make", "cwd": "/work",
        "size": {"cols": 80, "rows": 24}, "capabilities": {"cancel": {}}, "_meta": {"a": 1, "b": {"c": 2}}});
    agent.update("s1", update).await;
    let output =
        |data: &str| json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "x", "data": data});
    // A character in two pieces.
    agent.update("s1", output("aMM=")).await;
    agent.update("s1", output("qQ==")).await;
    agent.update("s1", output("no base64")).await;
    let mut last = None;
    for _ in 0..3 {
        let Some(Event::Terminal(change)) = turn.after_states().await.unwrap() else { panic!() };
        last = Some(change);
    }
    let terminal = last.unwrap().terminal;
    assert_eq!((terminal.output.as_slice(), terminal.size), ("hé".as_bytes(), Some((80, 24))));
    assert!(terminal.cancellable && terminal.exit_status.is_none());
    let (cancelled, ()) = tokio::join!(control.cancel_terminal(&terminal.id), async {
        let request = agent.expect("terminal/cancel").await;
        agent.answer(&request, json!({})).await;
    });
    cancelled.unwrap();
    let update = json!({"sessionUpdate": "terminal_update", "terminalId": "x", "exitStatus": {"signal": "KILL"},
        "output": {"data": "ISE="}, "_meta": {"a": null, "d": 3}});
    agent.update("s1", update).await;
    let Some(Event::Terminal(change)) = turn.after_states().await.unwrap() else { panic!() };
    // shows V2-18
    assert_eq!(serde_json::to_value(&change.terminal.meta).unwrap(), json!({"b": {"c": 2}, "d": 3}));
    assert!(change.replaced);
    assert_eq!((change.appended.as_slice(), change.terminal.output.as_slice()), (&b"!!"[..], &b"!!"[..]));
    assert_eq!(change.terminal.command.as_deref(), Some("make"));
    assert!(matches!(control.cancel_terminal(&terminal.id).await, Err(Error::Unsupported(_))));

    // A snapshot that is not base64 is no snapshot; the exit code has 64 bits.
    let status = json!({"exitCode": -9_223_372_036_854_775_808_i64});
    let update = json!({"sessionUpdate": "terminal_update", "terminalId": "x", "exitStatus": status,
        "output": {"data": "no base64"}});
    agent.update("s1", update).await;
    let Some(Event::Terminal(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!((change.replaced, change.terminal.output.as_slice()), (false, &b"!!"[..]));
    assert_eq!(change.terminal.exit_status.as_ref().unwrap().exit_code, Some(i64::MIN));
}

#[tokio::test(start_paused = true)]
async fn metadata_of_sessions_and_messages_is_patched_by_key() {
    // shows V2-18
    let (mut session, mut agent) = open(both()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.insert("m1").await;
    for (meta, whole) in [
        (json!({"a": 1, "b": {"c": 2}}), json!({"a": 1, "b": {"c": 2}})),
        (json!({"a": null, "d": 3}), json!({"b": {"c": 2}, "d": 3})),
        (Value::Null, json!({})),
    ] {
        agent.update("s1", json!({"sessionUpdate": "session_info_update", "_meta": meta})).await;
        let Some(Event::Info(info)) = turn.after_states().await.unwrap() else { panic!() };
        assert_eq!(serde_json::to_value(&info.meta).unwrap(), whole);
    }
    agent.update("s1", json!({"sessionUpdate": "session_info_update", "title": "T"})).await;
    let Some(Event::Info(info)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(info.meta, None, "unchanged");
    let message = |text: &str| {
        json!({"sessionUpdate": "agent_message", "messageId": "a", "_meta": {"k": text, "gone": null},
        "content": [{"type": "text", "text": text}]})
    };
    agent.update("s1", message("one")).await;
    let Some(Event::Text(text)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(serde_json::to_value(&text.meta).unwrap(), json!({"k": "one"}));
    agent.update("s1", message("two")).await;
    let Some(Event::Message(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(serde_json::to_value(&change.meta).unwrap(), json!({"k": "two"}));
}

#[tokio::test(start_paused = true)]
async fn questions_have_titles_and_subjects() {
    // shows V2-22, V2-24
    let (mut session, mut agent) = open(both()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.insert("m1").await;
    let options = json!([
        {"optionId": "_x", "name": "Maybe", "kind": "_maybe"},
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    ]);
    let ask = |subject: Value| json!({"sessionId": "s1", "title": "Run it?", "description": "It is safe.", "options": options, "subject": subject});
    agent
        .request(
            1,
            "session/request_permission",
            ask(json!({"type": "command", "command": "rm x", "cwd": "/work", "toolCallId": "t"})),
        )
        .await;
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!((change.id().as_str(), change.call.title.as_str()), ("t", "rm x"));
    let Some(Event::Permission(ask_1)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!((ask_1.title(), ask_1.description()), (Some("Run it?"), Some("It is safe.")));
    assert_eq!(ask_1.command().unwrap().command, "rm x");
    assert_eq!(ask_1.options().len(), 1, "an option of unknown kind is not offered");
    ask_1.choose_kind(PermissionOptionKind::AllowOnce);
    assert_eq!(agent.result(1).await, json!({"outcome": {"outcome": "selected", "optionId": "y"}}));

    let call = json!({"toolCallId": "t2", "title": "Edit", "kind": "edit", "content": [{"type": "diff",
        "changes": [{"operation": "modify", "path": "/work/a"}],
        "patch": {"format": "git_patch", "text": "--- /work/a\n+++ /work/a\n@@ -1 +1 @@\n-old\n+new\n"}}]});
    agent.request(2, "session/request_permission", ask(json!({"type": "tool_call", "toolCall": call}))).await;
    let Some(Event::ToolCall(_)) = turn.after_states().await.unwrap() else { panic!() };
    let Some(Event::Permission(ask_2)) = turn.after_states().await.unwrap() else { panic!() };
    let diff = serde_json::to_value(ask_2.tool_call().content.as_ref().unwrap()).unwrap();
    assert_eq!(diff, json!([{"type": "diff", "path": "/work/a", "oldText": "old\n", "newText": "new\n"}]));
    drop(ask_2);
    agent.result(2).await;

    agent
        .request(3, "session/request_permission", json!({"sessionId": "s1", "title": "x", "options": []}))
        .await;
    agent.error(3, -32602).await;

    // A question that the agent withdraws. shows V2-42, V2-43
    agent.request(6, "session/request_permission", ask(json!({"type": "_site", "url": "x"}))).await;
    let Some(Event::ToolCall(_)) = turn.after_states().await.unwrap() else { panic!() };
    let Some(Event::Permission(ask_6)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!((ask_6.title(), ask_6.command().is_none()), (Some("Run it?"), true));
    agent.notify("$/cancel_request", json!({"requestId": 77})).await;
    agent.notify("$/cancel_request", json!({"requestId": 6})).await;
    agent.notify("$/cancel_request", json!({"requestId": 6})).await;
    assert_eq!(agent.result(6).await, json!({"outcome": {"outcome": "cancelled"}}));
    drop(ask_6);
    // The call that was made up for it ends with it. shows TOOL-10
    let Some(Event::ToolCall(ended)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(ended.id().as_str().starts_with("question-") && ended.call.status == ToolStatus::Failed);
    agent.expect_silence().await;
    // shows V2-01
    agent.request(Value::Null, "session/request_permission", ask(Value::Null)).await;
    agent.error(Value::Null, -32600).await;
    // Files and terminals of clients are gone. shows V2-39
    for (id, method) in [(4, "fs/read_text_file"), (5, "terminal/create")] {
        agent.request(id, method, json!({"sessionId": "s1", "path": "/work/a", "command": "x"})).await;
        agent.error(id, -32601).await;
    }
}

#[tokio::test(start_paused = true)]
async fn options_stand_for_modes() {
    // shows V2-40, V2-44
    let (agent, mut script) = greeted(both(), json!({"session": {}})).await;
    let options = |current: &str| {
        json!([{"configId": "m", "name": "Mode", "category": "mode", "type": "select", "currentValue": current,
            "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]},
            {"configId": "s", "name": "S", "type": "_slider", "max": 3}])
    };
    let answer = async {
        let request = script.expect("session/new").await;
        let commands = json!([{"type": "command", "name": "go", "description": "Go", "input": {"type": "text", "hint": "where"}}]);
        script
            .answer(
                &request,
                json!({"sessionId": "s1", "configOptions": options("ask"), "availableCommands": commands}),
            )
            .await;
    };
    let (session, ()) = tokio::join!(agent.new_session("/work"), answer);
    let mut session = session.unwrap();
    assert_eq!(session.modes().unwrap().current_mode_id, "ask");
    assert_eq!((session.commands().len(), session.config_options().len()), (1, 1));
    let control = session.control();
    let (set, request) = tokio::join!(control.set_mode("code"), async {
        let request = script.expect("session/set_config_option").await;
        script.answer(&request, json!({"configOptions": options("code")})).await;
        request
    });
    set.unwrap();
    assert_eq!(request["params"], json!({"sessionId": "s1", "configId": "m", "type": "id", "value": "code"}));
    assert_eq!(session.modes().unwrap().current_mode_id, "code");
    assert!(matches!(control.set_mode("no").await, Err(Error::Invalid(_))));
    assert!(matches!(control.set_model("big").await, Err(Error::Unsupported(_))));
    assert!(matches!(
        control.set_config_option("m", SessionConfigOptionValue::Boolean(true)).await,
        Err(Error::Invalid(_))
    ));
    script
        .update("s1", json!({"sessionUpdate": "config_option_update", "configOptions": options("ask")}))
        .await;
    assert!(matches!(session.next_update().await.unwrap(), Event::ConfigOptions(_)));
    assert!(matches!(session.next_update().await.unwrap(), Event::Mode(mode) if mode == "ask"));
}

#[tokio::test(start_paused = true)]
async fn modes_and_models_are_set_by_what_the_agent_has() {
    // Options of both versions, without modes and models.
    for version in [1, 2] {
        let key = if version == 2 { "configId" } else { "id" };
        let option = |id: &str, category: &str| {
            let values = json!([{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]);
            json!({key: id, "name": "N", "category": category, "type": "select", "currentValue": "a", "options": values})
        };
        let options =
            json!({"sessionId": "s1", "configOptions": [option("x", "mode"), option("y", "model")]});
        let (agent, mut script) = match version {
            1 => crate::script::connect(Client::new(), json!({})).await,
            _ => greeted(both(), json!({"session": {}})).await,
        };
        let (session, ()) = tokio::join!(agent.new_session("/work"), async {
            let request = script.expect("session/new").await;
            script.answer(&request, options.clone()).await;
        });
        let session = session.unwrap();
        let control = session.control();
        let answer = async |script: &mut Script| {
            let request = script.expect("session/set_config_option").await;
            script.answer(&request, options.clone()).await;
            (request["params"]["configId"].clone(), request["params"]["value"].clone())
        };
        let (set, mode) = tokio::join!(control.set_mode("b"), answer(&mut script));
        set.unwrap();
        let (set, model) = tokio::join!(control.set_model("b"), answer(&mut script));
        set.unwrap();
        assert_eq!((mode, model), ((json!("x"), json!("b")), (json!("y"), json!("b"))));
        assert!(matches!(control.set_model("ghost").await, Err(Error::Invalid(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_while_the_session_is_idle() {
    // shows V2-36
    let (mut session, mut agent) = open(both()).await;
    let script = async {
        agent.insert("m1").await;
        let background = json!([{"type": "tool_call", "toolCallId": "t"}]);
        agent.state(json!({"state": "idle", "stopReason": "end_turn", "background": background})).await;
        agent.message("a", "in the background").await;
        agent.state(json!({"state": "idle", "background": []})).await;
    };
    let (lines, ()) = tokio::join!(lines(&mut session), script);
    assert_eq!(lines, ["state running", "background 1", "state idle", "EndTurn"]);
    let mut outside = Vec::new();
    for _ in 0..3 {
        outside.push(line(&session.next_update().await.unwrap()));
    }
    assert_eq!(outside, ["text in the background", "background 0", "state idle"]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_resumed_with_and_without_history() {
    // shows V2-26, V2-27, V2-29, V2-45
    let (agent, mut script) = greeted(both(), json!({"session": {}})).await;
    let mut replay = agent.loader().unwrap().load("s1", "/work").await.unwrap();
    let request = script.expect("session/resume").await;
    assert_eq!(
        request["params"],
        json!({"sessionId": "s1", "cwd": "/work", "replayFrom": {"type": "start"}})
    );
    let user = json!({"sessionUpdate": "user_message", "messageId": "m", "content": [{"type": "text", "text": "hi"}]});
    script.update("s1", user).await;
    script.message("a", "hello").await;
    script.idle().await;
    script.answer(&request, Value::Null).await;
    let mut events = Vec::new();
    while let Some(event) = replay.next().await.unwrap() {
        events.push(line(&event));
    }
    assert_eq!(events, ["user hi", "text hello"]);
    let session = replay.finish().await.unwrap();
    let (closed, ()) = tokio::join!(session.close(), async {
        let request = script.expect("session/close").await;
        script.refuse(&request, -32002, "unknown session").await;
    });
    closed.unwrap();
    let (session, request) =
        tokio::join!(async { agent.resumer().unwrap().resume("s2", "/work").await }, async {
            let request = script.expect("session/resume").await;
            script.update("s2", json!({"sessionUpdate": "state_update", "state": "idle"})).await;
            script.answer(&request, json!({})).await;
            request
        });
    assert!(request["params"].get("replayFrom").is_none());
    drop(session.unwrap());
    let (listed, ()) = tokio::join!(agent.lister().unwrap().list().all(), async {
        let request = script.expect("session/list").await;
        script
            .answer(&request, json!({"sessions": [{"sessionId": "s1", "cwd": "/work"}], "nextCursor": ""}))
            .await;
        let request = script.expect("session/list").await;
        assert_eq!(request["params"]["cursor"], "");
        script.answer(&request, json!({"sessions": []})).await;
    });
    assert_eq!(listed.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_reopened_with_as_much_history_as_is_wanted() {
    // shows V2-26, SESS-07, SESS-20
    let after = || Replay::After("7".to_owned());
    let can = json!({"session": {}, "_meta": {"attache": {"after": true}}});
    let (agent, mut script) = greeted(both(), can).await;
    for (replay, point) in [
        (Replay::None, Value::Null),
        (Replay::Start, json!({"type": "start"})),
        (after(), json!({"type": "_attache_after", "at": "7"})),
    ] {
        let replay = agent.reopen("s1", "/work", replay).await.unwrap();
        let request = script.expect("session/resume").await;
        assert_eq!(request["params"]["replayFrom"], point);
        script.answer(&request, json!({})).await;
        drop(replay.finish().await.unwrap());
    }
    let can = json!({"loadSession": true, "sessionCapabilities": {"resume": {}}, "_meta": {"attache": {"after": true}}});
    let (agent, mut script) = crate::script::connect(Client::new(), can).await;
    for (replay, method, meta) in [
        (Replay::None, "session/resume", Value::Null),
        (Replay::Start, "session/load", Value::Null),
        (after(), "session/resume", json!({"attache": {"after": "7", "strict": true}})),
    ] {
        let replay = agent.reopen("s1", "/work", replay).await.unwrap();
        let request = script.expect(method).await;
        assert_eq!(request["params"]["_meta"], meta);
        script.answer(&request, json!({})).await;
        drop(replay.finish().await.unwrap());
    }
    let (agent, mut script) = crate::script::connect(Client::new(), json!({})).await;
    for replay in [Replay::None, Replay::Start, after()] {
        assert!(matches!(agent.reopen("s1", "/work", replay).await, Err(Error::Unsupported(_))));
    }
    let (agent, _script) = greeted(both(), json!({"session": {}})).await;
    assert!(matches!(agent.reopen("s1", "/work", after()).await, Err(Error::Unsupported(_))));
    script.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_lacks_is_not_asked_of_it() {
    // shows V2-06, V2-07
    let (agent, mut script) = greeted(both(), json!({})).await;
    assert!(matches!(agent.new_session("/work").await, Err(Error::Unsupported("sessions"))));
    assert!(agent.loader().is_none() && agent.lister().is_none() && agent.resumer().is_none());
    script.expect_silence().await;
    let (agent, mut script) = greeted(both(), json!({"session": {"mcp": {"http": {}}}})).await;
    let server = attache::wire::v1::McpServerStdio::new("x", "/x", vec![], vec![]);
    assert!(matches!(agent.new_session("/work").mcp_server(server).await, Err(Error::Unsupported(_))));
    // Version 2 has no servers over SSE.
    let server =
        attache::wire::v1::McpServer::Sse(attache::wire::v1::McpServerSse::new("x", "http://x", vec![]));
    assert!(matches!(agent.new_session("/work").mcp_server(server).await, Err(Error::Unsupported(_))));
    script.expect_silence().await;

    let (link, mut script) = Script::pair();
    let client = both();
    let (agent, ()) = tokio::join!(client.connect(link), async {
        let request = script.expect("initialize").await;
        let mut answer = hello(json!({"session": {}}));
        answer["authMethods"] = json!([{"type": "agent", "methodId": "web", "name": "Web"}, {"type": "_x", "methodId": "y", "name": "Y"}]);
        script.answer(&request, answer).await;
    });
    let agent = agent.unwrap();
    let (login, request) = tokio::join!(agent.authenticate("web"), async {
        let request = script.expect("auth/login").await;
        script.answer(&request, Value::Null).await;
        request
    });
    login.unwrap();
    assert_eq!(request["params"], json!({"methodId": "web"}));
    let (logout, ()) = tokio::join!(agent.logout().unwrap().send(), async {
        let request = script.expect("auth/logout").await;
        script.answer(&request, json!({})).await;
    });
    logout.unwrap();
}

#[tokio::test(start_paused = true)]
async fn version_1_has_states_too() {
    let (mut session, mut agent) = crate::script::open(Client::new()).await;
    assert_eq!(session.control().state(), None);
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.ask("q1", "s1").await;
    agent.ask("q2", "s1").await;
    let mut seen = Vec::new();
    let mut asks = Vec::new();
    while asks.len() < 2 {
        match turn.next().await.unwrap().unwrap() {
            Event::Permission(ask) => asks.push(ask),
            Event::State(state) => seen.push(state_name(&state).to_owned()),
            _ => {}
        }
    }
    assert_eq!(seen, ["running", "requires_action"]);
    for ask in asks {
        ask.cancel();
    }
    agent.answer(&prompt, json!({"stopReason": "end_turn"})).await;
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::State(state) = event {
            seen.push(state_name(&state).to_owned());
        }
    }
    assert_eq!(seen, ["running", "requires_action", "running", "idle"]);
}
