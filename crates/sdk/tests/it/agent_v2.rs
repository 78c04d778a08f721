//! Agents over protocol version 2: the same sessions as over version 1, in other words on the wire.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, Auth, ClientHandle, OpenedSession, Turn, usual_options};
use attache::wire::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodId, AvailableCommand, ElicitationSchema, ListSessionsResponse,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, ProtocolVersion, SessionInfo, SessionMode, SessionModeId,
    SessionModeState, StringPropertySchema,
};
use attache::wire::v2;
use attache::{Edit, Error, Prompt, Result, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::{Rig, agent, echo, prompt};

/// Serves an agent to a client of version 2.
pub(crate) async fn greeted(agent: Agent, capabilities: Value) -> Rig {
    let mut rig = Rig::uninitialized(agent.protocol_v2());
    rig.hello = rig.call("hello", "initialize", offer(2, capabilities)).await;
    rig
}

/// The same with an open session `s1`.
pub(crate) async fn open(agent: Agent) -> Rig {
    let mut rig = greeted(agent, json!({})).await;
    rig.new_session_v2().await;
    rig
}

fn offer(version: u16, capabilities: Value) -> Value {
    json!({"protocolVersion": version, "info": {"name": "test", "version": "1"}, "capabilities": capabilities})
}

impl Rig {
    async fn new_session_v2(&mut self) {
        assert_eq!(
            self.call("new", "session/new", json!({"cwd": "/work"})).await,
            json!({"sessionId": "s1"})
        );
    }

    /// The next update, which must be one of version 2.
    pub(crate) async fn update(&mut self) -> Value {
        let line = self.client.expect("session/update").await;
        let update = &line["params"]["update"];
        let read: v2::SessionUpdate = serde_json::from_value(update.clone()).expect("an update of version 2");
        assert!(!matches!(read, v2::SessionUpdate::Other(_)), "{update}");
        update.clone()
    }

    pub(crate) async fn state(&mut self, state: &str) -> Value {
        let update = self.update().await;
        assert_eq!(
            (&update["sessionUpdate"], &update["state"]),
            (&json!("state_update"), &json!(state)),
            "{update}"
        );
        update
    }

    /// The lines that take a prompt over; returns the id of the message.
    pub(crate) async fn inserted(&mut self, id: &str, text: &str) -> String {
        let message = self.update().await;
        assert_eq!(message["sessionUpdate"], "user_message");
        assert_eq!(message["content"], json!([{"type": "text", "text": text}]));
        let answer = self.client.result(id).await;
        assert_eq!(answer, json!({"messageId": message["messageId"]}));
        self.state("running").await;
        message["messageId"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn idle(&mut self, reason: &str) -> Value {
        let state = self.state("idle").await;
        assert_eq!(state["stopReason"], reason);
        state
    }
}

#[tokio::test(start_paused = true)]
async fn both_versions_are_negotiated() {
    // shows INIT-08, V2-03, V2-04, V2-05, V2-06
    let mut rig = Rig::uninitialized(echo().protocol_v2());
    for (offered, answered) in [(1, 1), (0, 1)] {
        let hello = rig.call("h", "initialize", json!({"protocolVersion": offered})).await;
        assert_eq!(hello["protocolVersion"], answered);
        assert!(hello.get("agentCapabilities").is_some() && hello.get("capabilities").is_none(), "{hello}");
    }
    for offered in [2, 3, 65535] {
        let hello = rig.call("h", "initialize", offer(offered, json!({}))).await;
        assert_eq!(hello["protocolVersion"], 2);
        let read: v2::InitializeResponse = serde_json::from_value(hello).unwrap();
        assert!(read.capabilities.session.is_some());
    }
    // What a later version says about itself may be unreadable; a client of version 2 must say it.
    assert_eq!(rig.call("h", "initialize", json!({"protocolVersion": 3})).await["protocolVersion"], 2);
    rig.expect_error("initialize", json!({"protocolVersion": 2}), -32602).await;
    // The version stays.
    let error = rig.expect_error("initialize", json!({"protocolVersion": 1}), -32022).await;
    assert_eq!(error["data"], json!({"requested": 1, "supported": [2]}));
    rig.expect_error("initialize", json!({"protocolVersion": "1"}), -32602).await;
    rig.new_session_v2().await;
    rig.expect_error("initialize", offer(2, json!({})), -32600).await;
    rig.disconnect().await;

    // An agent that does not speak it answers with its own.
    let mut rig = Rig::uninitialized(echo());
    assert_eq!(rig.call("h", "initialize", offer(2, json!({}))).await["protocolVersion"], 1);
    rig.disconnect().await;

    let mut rig = Rig::initialized(echo().protocol_v2(), json!({})).await;
    rig.new_session("s1").await;
    rig.expect_error("initialize", offer(2, json!({})), -32600).await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn requests_before_initialize_and_ids_that_are_null() {
    // shows V2-01, V2-02, V2-39, INIT-10
    let mut rig = Rig::uninitialized(echo().protocol_v2());
    rig.expect_error("session/new", json!({"cwd": "/work"}), -32600).await;
    // A refused `initialize` leaves the connection as it was.
    rig.expect_error("initialize", json!({"protocolVersion": 2}), -32602).await;
    rig.expect_error("session/new", json!({"cwd": "/work"}), -32600).await;
    rig.client
        .raw(
            &json!({"jsonrpc": "2.0", "id": null, "method": "initialize", "params": offer(2, json!({}))})
                .to_string(),
        )
        .await;
    rig.client.error(Value::Null, -32600).await;
    // Notifications are ignored, known or not.
    rig.client.notify("session/cancel", json!({"sessionId": "s1"})).await;
    rig.client.notify("_unknown", json!({})).await;
    rig.client.expect_silence().await;
    // Requests that were refused do not count: `initialize` can be repeated, even with another
    // version.
    rig.call("h", "initialize", json!({"protocolVersion": 1})).await;
    rig.call("h", "initialize", offer(2, json!({}))).await;
    rig.call("h", "initialize", offer(2, json!({}))).await;
    rig.client.raw(r#"{"jsonrpc":"2.0","id":null,"method":"session/new","params":{"cwd":"/work"}}"#).await;
    rig.client.error(Value::Null, -32600).await;
    rig.call("h", "initialize", offer(2, json!({}))).await;
    for method in
        ["authenticate", "logout", "session/load", "session/set_mode", "session/set_model", "nes/start"]
    {
        rig.expect_error(method, json!({"sessionId": "s1"}), -32601).await;
    }
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_messages_and_states() {
    // shows V2-08, V2-10, V2-11, V2-12, V2-16
    let mut rig = open(agent(|turn, prompt| {
        Box::pin(async move {
            assert_eq!(turn.client().version(), ProtocolVersion::V2);
            // V2-39: the agent works on files and runs commands by itself.
            assert!(
                turn.read_files().is_none() && turn.write_files().is_none() && turn.terminals().is_none()
            );
            turn.think("hm").await?;
            turn.say("one ").await?;
            turn.say(prompt.text()).await?;
            let tool = turn.tool("Edit").start().await?;
            tool.complete([]).await?;
            turn.say("two").await?;
            let entry = PlanEntry::new("step", PlanEntryPriority::High, PlanEntryStatus::Pending);
            turn.plan(vec![entry]).await?;
            Ok(StopReason::EndTurn)
        })
    }))
    .await;
    rig.prompt("p", "s1", "hi").await;
    let user = rig.inserted("p", "hi").await;
    let thought = rig.update().await;
    assert_eq!(thought["sessionUpdate"], "agent_thought_chunk");
    let (one, again) = (rig.update().await, rig.update().await);
    assert_eq!(one["content"], json!({"type": "text", "text": "one "}));
    assert_eq!(one["messageId"], again["messageId"], "a message goes on");
    let created = rig.update().await;
    assert_eq!((&created["title"], &created["status"]), (&json!("Edit"), &json!("pending")));
    assert_eq!(rig.update().await["status"], "completed");
    let two = rig.update().await;
    let ids: std::collections::HashSet<&str> = [&thought, &one, &two]
        .iter()
        .map(|update| update["messageId"].as_str().unwrap())
        .chain([&*user])
        .collect();
    assert_eq!(ids.len(), 4, "each message has an id");
    let plan = rig.update().await;
    assert_eq!(plan["plan"]["entries"][0]["content"], "step");
    rig.idle("end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_a_state_and_not_an_answer() {
    // shows V2-09
    let mut rig =
        open(agent(|_, _| Box::pin(async { Err(Error::refuse(-31999, "the model is away")) }))).await;
    rig.prompt("p", "s1", "hi").await;
    rig.inserted("p", "hi").await;
    let idle = rig.idle("error").await;
    assert_eq!(idle["error"], json!({"code": -31999, "message": "the model is away"}));
    // What is wrong with the prompt itself is an answer, and leaves no message.
    rig.expect_error("session/prompt", json!({"sessionId": "s1", "prompt": [{"type": "_hologram"}]}), -32602)
        .await;
    rig.expect_error("session/prompt", json!({"sessionId": "s1", "prompt": "text"}), -32602).await;
    let error = rig.expect_error("session/prompt", prompt("other", "hi"), -32002).await;
    assert_eq!(error["data"], json!({"sessionId": "other"}));
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn prompts_wait_and_are_cancelled_together() {
    // shows V2-14, V2-15, V2-42
    let mut rig = open(agent(|turn, prompt| {
        Box::pin(async move {
            let _tool = turn.tool(prompt.text()).start().await?;
            match &*prompt.text() {
                "quick" => Ok(StopReason::EndTurn),
                _ => {
                    turn.cancellation().cancelled().await;
                    Err(Error::internal("aborted"))
                }
            }
        })
    }))
    .await;
    rig.prompt("p1", "s1", "quick").await;
    rig.prompt("p2", "s1", "slow").await;
    rig.prompt("p3", "s1", "later").await;
    rig.inserted("p1", "quick").await;
    rig.update().await;
    assert_eq!(rig.update().await["status"], "failed", "a call without an end");
    rig.idle("end_turn").await;
    rig.inserted("p2", "slow").await;
    rig.update().await;
    rig.client.expect_silence().await;
    // An answered request cannot be cancelled.
    rig.client.notify("$/cancel_request", json!({"requestId": "p2"})).await;
    rig.client.expect_silence().await;
    rig.cancel("s1").await;
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(rig.client.line().await);
    }
    let refused = lines.iter().position(|line| line["id"] == "p3").expect("the waiting prompt is answered");
    assert_eq!(lines.remove(refused)["error"]["code"], -32800);
    assert_eq!(lines[0]["params"]["update"]["status"], "cancelled");
    let idle = &lines[1]["params"]["update"];
    assert_eq!((&idle["state"], &idle["stopReason"]), (&json!("idle"), &json!("cancelled")));
    rig.client.expect_silence().await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn permission_and_edits() {
    // shows V2-13, V2-23, V2-24, V2-33, V2-46
    let mut rig = open(agent(|turn, _| {
        Box::pin(async move {
            let change = Edit::modify("/work/a", "1\n2\n", "1\nzwei\n");
            let tool = turn.tool("Edit a").edit(change).start().await?;
            let allowed = turn.ask(&tool, usual_options()).await?.is_allowed();
            if allowed {
                tool.complete([]).await?
            } else {
                tool.fail("denied").await?
            }
            Ok(StopReason::EndTurn)
        })
    }))
    .await;
    for (answer, status) in [
        (json!({"outcome": "selected", "optionId": "allow"}), "completed"),
        (json!({"outcome": "selected", "optionId": "other"}), "failed"),
        (json!({"outcome": "_later"}), "failed"),
    ] {
        rig.prompt("p", "s1", "hi").await;
        rig.inserted("p", "hi").await;
        let created = rig.update().await;
        let patch = "diff --git /work/a /work/a\n--- /work/a\n+++ /work/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+zwei\n";
        let expected = json!([{"type": "diff", "changes": [{"operation": "modify", "path": "/work/a", "fileType": "text"}],
            "patch": {"format": "git_patch", "text": patch}}]);
        assert_eq!(created["content"], expected);
        rig.state("requires_action").await;
        let asked = rig.client.expect("session/request_permission").await;
        let request: v2::RequestPermissionRequest = serde_json::from_value(asked["params"].clone()).unwrap();
        assert_eq!((request.title.as_str(), request.options.len()), ("Edit a", 4));
        let Some(v2::RequestPermissionSubject::ToolCall(subject)) = request.subject else {
            panic!("{asked}")
        };
        assert_eq!(subject.tool_call.tool_call_id.as_str(), created["toolCallId"]);
        rig.client.answer(&asked, json!({"outcome": answer})).await;
        rig.state("running").await;
        assert_eq!(rig.update().await["status"], status);
        rig.idle("end_turn").await;
    }
    // A cancel does not wait for the answer.
    rig.prompt("p", "s1", "hi").await;
    rig.inserted("p", "hi").await;
    rig.update().await;
    rig.state("requires_action").await;
    let asked = rig.client.expect("session/request_permission").await;
    rig.cancel("s1").await;
    let cancelled = rig.client.expect("$/cancel_request").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    assert_eq!(rig.update().await["status"], "cancelled");
    rig.idle("cancelled").await;
    rig.disconnect().await;
}

/// A session with two modes.
struct Modes;

impl AgentSession for Modes {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        turn.say("ok").await?;
        Ok(StopReason::EndTurn)
    }
    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        if mode.as_str() == "ask" { Ok(()) } else { Err(Error::refuse(-31998, "not now")) }
    }
}

#[tokio::test(start_paused = true)]
async fn modes_are_an_option_and_commands_a_part_of_the_answer() {
    // shows V2-25, V2-40, V2-41, V2-44
    let modes =
        || SessionModeState::new("code", [SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")]);
    let agent = Agent::new(move |request| async move {
        let session = request.session.clone();
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            session.set_mode("ask").await.ok();
        });
        let commands = vec![AvailableCommand::new("test", "Runs tests")];
        Ok(OpenedSession::new(Modes).id("s1").modes(modes()).commands(commands))
    });
    let mut rig = greeted(agent, json!({})).await;
    let opened = rig.call("new", "session/new", json!({"cwd": "/work"})).await;
    let read: v2::NewSessionResponse = serde_json::from_value(opened.clone()).unwrap();
    let option = &read.config_options[0];
    assert_eq!(option.config_id.as_str(), "mode");
    assert_eq!(opened["configOptions"][0]["currentValue"], "code");
    assert_eq!(
        opened["availableCommands"],
        json!([{"type": "command", "name": "test", "description": "Runs tests"}])
    );
    // A change by the agent is the complete list.
    let update = rig.update().await;
    assert_eq!(update["configOptions"][0]["currentValue"], "ask");
    let set = |value: Value| json!({"sessionId": "s1", "configId": "mode", "type": "id", "value": value});
    let answer = rig.call("set", "session/set_config_option", set(json!("ask"))).await;
    assert_eq!(answer["configOptions"][0]["currentValue"], "ask");
    rig.expect_error("session/set_config_option", set(json!("code")), -31998).await;
    rig.expect_error("session/set_config_option", set(json!("other")), -32602).await;
    rig.expect_error(
        "session/set_config_option",
        json!({"sessionId": "s1", "configId": "mode", "value": "ask"}),
        -32602,
    )
    .await;
    let unknown = json!({"sessionId": "s1", "configId": "mode", "type": "_x", "value": 5});
    rig.expect_error("session/set_config_option", unknown, -32602).await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn resumed_sessions_replay_if_that_is_wanted() {
    // shows V2-25, V2-26, V2-27
    let agent = echo().load(|request| async move {
        let update = attache::wire::v1::SessionUpdate::user_message("before");
        request.session.send(update).await?;
        request.session.send(attache::wire::v1::SessionUpdate::agent_message("after")).await?;
        Ok(Modes)
    });
    let mut rig = greeted(agent, json!({})).await;
    let resume = |replay: Value| json!({"sessionId": "old", "cwd": "/work", "replayFrom": replay});
    rig.client.request("r", "session/resume", resume(json!({"type": "start"}))).await;
    let (user, answer) = (rig.update().await, rig.update().await);
    assert_eq!(user["sessionUpdate"], "user_message_chunk");
    assert_ne!(user["messageId"], answer["messageId"]);
    rig.state("idle").await;
    assert_eq!(rig.client.result("r").await, json!({}));

    rig.client.request("r", "session/resume", resume(Value::Null)).await;
    rig.state("idle").await;
    assert_eq!(rig.client.result("r").await, json!({}));
    rig.expect_error("session/resume", resume(json!({"type": "_cursor", "at": 3})), -32602).await;
    rig.prompt("p", "old", "hi").await;
    rig.inserted("p", "hi").await;
    rig.update().await;
    rig.idle("end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn every_agent_lists_resumes_and_closes() {
    // shows V2-05, V2-28, V2-29, V2-31
    let mut rig = open(agent(|turn, _| {
        Box::pin(async move {
            turn.cancellation().cancelled().await;
            Ok(StopReason::EndTurn)
        })
    }))
    .await;
    assert_eq!(rig.call("l", "session/list", json!({})).await, json!({"sessions": []}));
    rig.client.request("r", "session/resume", json!({"sessionId": "s1", "cwd": "/work"})).await;
    rig.state("idle").await;
    rig.client.result("r").await;
    rig.expect_error("session/resume", json!({"sessionId": "other", "cwd": "/work"}), -32002).await;
    rig.expect_error("tool_call/cancel", json!({"sessionId": "s1", "toolCallId": "c"}), -32602).await;
    rig.expect_error("terminal/cancel", json!({"sessionId": "s1", "terminalId": "t"}), -32602).await;
    rig.prompt("p", "s1", "hi").await;
    rig.inserted("p", "hi").await;
    rig.client.request("c", "session/close", json!({"sessionId": "s1"})).await;
    rig.idle("cancelled").await;
    assert_eq!(rig.client.result("c").await, json!({}));
    assert_eq!(rig.call("c", "session/close", json!({"sessionId": "s1"})).await, json!({}));
    rig.client.expect_silence().await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_answers_prompts_that_wait() {
    // shows V2-15, V2-28
    let mut rig = open(agent(|turn, _| {
        Box::pin(async move {
            let _tool = turn.tool("Wait").id("t").start().await?;
            turn.cancellation().cancelled().await;
            Ok(StopReason::EndTurn)
        })
    }))
    .await;
    rig.prompt("p1", "s1", "one").await;
    rig.prompt("p2", "s1", "two").await;
    rig.prompt("p3", "s1", "three").await;
    rig.inserted("p1", "one").await;
    rig.update().await;
    rig.client.request("c", "session/close", json!({"sessionId": "s1"})).await;
    let mut lines = Vec::new();
    loop {
        let line = rig.client.line().await;
        if line["id"] == "c" {
            assert_eq!(line["result"], json!({}));
            break;
        }
        lines.push(line);
    }
    for id in ["p2", "p3"] {
        let refused = lines.iter().position(|line| line["id"] == id).expect("answered before the close");
        assert_eq!(lines.remove(refused)["error"]["code"], -32800);
    }
    let updates: Vec<_> = lines.iter().map(|line| &line["params"]["update"]).collect();
    assert_eq!(updates.len(), 2, "{updates:?}");
    assert_eq!(updates[0]["status"], "cancelled");
    assert_eq!((&updates[1]["state"], &updates[1]["stopReason"]), (&json!("idle"), &json!("cancelled")));
    rig.client.expect_silence().await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn lists_and_servers_are_converted() {
    // shows V2-25, V2-45
    let agent = Agent::new(|request| async move {
        assert_eq!(request.cwd, PathBuf::from("/work"));
        assert_eq!(request.mcp_servers.len(), 1);
        Ok(OpenedSession::new(Modes).id("s1"))
    })
    .list(|request| async move {
        assert_eq!(request.cursor.as_deref(), Some(""));
        Ok(ListSessionsResponse::new([SessionInfo::new("s9", "/other").title("T")]).next_cursor("more"))
    });
    let mut rig = greeted(agent, json!({})).await;
    let listed = rig.call("l", "session/list", json!({"cursor": ""})).await;
    assert_eq!(
        listed,
        json!({"sessions": [{"sessionId": "s9", "cwd": "/other", "title": "T"}], "nextCursor": "more"})
    );
    let new = |server: Value| json!({"cwd": "/work", "mcpServers": [server]});
    rig.expect_error("session/new", new(json!({"type": "sse", "name": "x", "url": "http://x"})), -32602)
        .await;
    rig.expect_error("session/new", new(json!({"name": "x", "command": "/x"})), -32602).await;
    rig.expect_error("session/new", new(json!({"type": "http", "name": "x", "url": "http://x"})), -32602)
        .await;
    let opened =
        rig.call("n", "session/new", new(json!({"type": "stdio", "name": "x", "command": "/x"}))).await;
    assert_eq!(opened, json!({"sessionId": "s1"}));
    rig.disconnect().await;
}

/// One way to log in.
struct Login;

impl Auth for Login {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethodAgent::new("web", "Browser").into()]
    }
    async fn login(&self, _: &AuthMethodId, _: &ClientHandle) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn logins_have_other_names() {
    // shows V2-07
    let mut rig = greeted(echo().auth(Login), json!({"auth": {"terminal": {}}})).await;
    assert_eq!(rig.hello["authMethods"], json!([{"type": "agent", "methodId": "web", "name": "Browser"}]));
    rig.expect_error("session/new", json!({"cwd": "/work"}), -32000).await;
    rig.expect_error("auth/login", json!({"methodId": "other"}), -32602).await;
    assert_eq!(rig.call("l", "auth/login", json!({"methodId": "web"})).await, json!({}));
    rig.new_session_v2().await;
    assert_eq!(rig.call("o", "auth/logout", json!({})).await, json!({}));
    rig.expect_error("session/new", json!({"cwd": "/work"}), -32000).await;
    rig.disconnect().await;

    let mut rig = greeted(echo(), json!({})).await;
    rig.expect_error("auth/login", json!({"methodId": "web"}), -32601).await;
    rig.expect_error("auth/logout", json!({}), -32601).await;
    rig.disconnect().await;
}

/// Updates of version 1, one of each kind at least.
fn updates() -> Vec<Value> {
    let text = json!({"type": "text", "text": "x"});
    let link = json!({"type": "resource_link", "name": "n", "uri": "file:///n"});
    let block = json!({"type": "content", "content": text});
    let entry = json!({"content": "a", "priority": "high", "status": "pending", "_meta": {"k": 1}});
    let select = json!({"id": "o", "name": "O", "type": "select", "currentValue": "a", "category": "model",
        "options": [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]}]});
    vec![
        json!({"sessionUpdate": "user_message_chunk", "content": link}),
        json!({"sessionUpdate": "agent_message_chunk", "content": text, "messageId": "m", "_meta": {"k": 1}}),
        json!({"sessionUpdate": "agent_thought_chunk", "content": text}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "kind": "edit", "status": "in_progress",
            "content": [block, {"type": "diff", "path": "/a", "oldText": "1", "newText": "2"},
                {"type": "diff", "path": "/b", "newText": "2"}, {"type": "terminal", "terminalId": "t"}],
            "locations": [{"path": "/a", "line": 2}], "rawInput": {"n": 1}, "rawOutput": null, "_meta": {"k": 1}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "content": []}),
        json!({"sessionUpdate": "plan", "entries": [entry]}),
        json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": [entry]}}),
        json!({"sessionUpdate": "plan_update", "plan": {"type": "markdown", "planId": "p", "content": "# P"}}),
        json!({"sessionUpdate": "plan_removed", "planId": "p"}),
        json!({"sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": "web", "description": "Search", "input": {"hint": "query"}}]}),
        json!({"sessionUpdate": "config_option_update",
            "configOptions": [select, {"id": "b", "name": "B", "type": "boolean", "currentValue": true}]}),
        json!({"sessionUpdate": "session_info_update", "title": "T", "updatedAt": null}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 0.5, "currency": "USD"}}),
        json!({"sessionUpdate": "notice", "severity": "info", "title": "N"}),
        json!({"sessionUpdate": "compaction_update", "compactionId": "k", "status": "cancelled"}),
        json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": text}),
        json!({"sessionUpdate": "subagent_update", "sessionId": "child", "state": {"state": "idle"}}),
        json!({"sessionUpdate": "session_message", "messageId": "m", "senderSessionId": "s1",
            "recipientSessionId": "child", "content": [text]}),
        json!({"sessionUpdate": "session_message_chunk", "messageId": "m", "content": text}),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_update_has_a_form_in_version_2() {
    // shows V2-16, V2-17, V2-33, V2-41
    let mut rig = open(agent(|turn, _| {
        Box::pin(async move {
            for update in updates() {
                turn.send(serde_json::from_value(update).unwrap()).await?;
            }
            Ok(StopReason::EndTurn)
        })
    }))
    .await;
    rig.prompt("p", "s1", "hi").await;
    rig.inserted("p", "hi").await;
    let mut written = Vec::new();
    for sent in updates() {
        let update = rig.update().await;
        let expected = match sent["sessionUpdate"].as_str().unwrap() {
            "tool_call" => "tool_call_update",
            "plan" => "plan_update",
            kind => kind,
        };
        assert_eq!(update["sessionUpdate"], expected);
        // Nothing but what the tables of version 2 rename or rewrite is lost.
        for (name, value) in sent.as_object().unwrap() {
            if !["sessionUpdate", "content", "entries", "availableCommands", "configOptions"]
                .contains(&&**name)
            {
                assert_eq!(update[name], *value, "{name} of {update}");
            }
        }
        written.push(update);
    }
    rig.idle("end_turn").await;
    let options = &written[10]["configOptions"];
    assert_eq!((&options[0]["configId"], &options[0]["options"][0]["groupId"]), (&json!("o"), &json!("g")));
    assert_eq!(written[9]["availableCommands"][0]["input"], json!({"type": "text", "hint": "query"}));
    let content = &written[3]["content"];
    assert_eq!(content[2]["changes"], json!([{"operation": "add", "path": "/b", "fileType": "text"}]));
    assert_eq!(content[3], json!({"type": "terminal", "terminalId": "t"}));
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn forms_are_asked_in_version_2() {
    // shows V2-13
    let agent = agent(|turn, _| {
        Box::pin(async move {
            let forms = turn.forms().ok_or(Error::Unsupported("forms"))?;
            let schema = ElicitationSchema::new().field("name", StringPropertySchema::new(), true);
            let answer = forms.ask("Who?", schema).await?;
            turn.say(answer.action.as_str()).await?;
            Ok(StopReason::EndTurn)
        })
    });
    let mut rig = greeted(agent, json!({"elicitation": {"form": {}}})).await;
    rig.new_session_v2().await;
    rig.prompt("p", "s1", "hi").await;
    rig.inserted("p", "hi").await;
    rig.state("requires_action").await;
    let asked = rig.client.expect("elicitation/create").await;
    let request: v2::CreateElicitationRequest = serde_json::from_value(asked["params"].clone()).unwrap();
    assert_eq!(request.message, "Who?");
    rig.client.answer(&asked, json!({"action": "decline"})).await;
    rig.state("running").await;
    assert_eq!(rig.update().await["content"]["text"], "decline");
    rig.idle("end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn the_history_has_the_order_of_the_wire() {
    let history: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = history.clone();
    let agent = echo().record(move |_, update| {
        let text = serde_json::to_value(update).unwrap()["content"]["text"].as_str().unwrap().to_owned();
        log.lock().unwrap().push(text);
    });
    let mut rig = open(agent).await;
    rig.prompt("p1", "s1", "one").await;
    rig.prompt("p2", "s1", "two").await;
    for (id, text) in [("p1", "one"), ("p2", "two")] {
        rig.inserted(id, text).await;
        rig.update().await;
        rig.idle("end_turn").await;
    }
    assert_eq!(*history.lock().unwrap(), ["one", "one", "two", "two"]);
    rig.disconnect().await;
}

/// A session with modes `0` to `9` that writes down its changes.
struct Changes(Arc<Mutex<Vec<String>>>);

impl AgentSession for Changes {
    async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        self.0.lock().unwrap().push(mode.to_string());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn options_change_in_the_order_of_the_wire() {
    // shows CONF-17
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let changes = seen.clone();
    let agent = Agent::new(move |_| {
        let modes: Vec<_> = (0..10).map(|mode| SessionMode::new(mode.to_string(), "M")).collect();
        let session = OpenedSession::new(Changes(changes.clone())).id("s1");
        async move { Ok(session.modes(SessionModeState::new("0", modes))) }
    });
    let mut rig = greeted(agent, json!({})).await;
    rig.call("new", "session/new", json!({"cwd": "/work"})).await;
    let sent: Vec<String> = (0..500).map(|change| (change % 10).to_string()).collect();
    for (number, mode) in sent.iter().enumerate() {
        let params = json!({"sessionId": "s1", "configId": "mode", "type": "id", "value": mode});
        rig.client.request(number, "session/set_config_option", params).await;
    }
    for _ in &sent {
        assert!(rig.client.line().await.get("result").is_some());
    }
    assert_eq!(*seen.lock().unwrap(), sent);
    rig.disconnect().await;
}
