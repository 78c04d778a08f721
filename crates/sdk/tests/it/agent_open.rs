//! Opening and closing sessions.

use std::path::Path;
use std::sync::{Arc, Mutex};

use attache::agent::{
    Agent, AgentSession, OpenRequest, OpenedSession, SessionHandle, SystemPromptSupport, Turn,
};
use attache::wire::v1::{AvailableCommand, McpServer, SessionUpdate};
use attache::{Error, Prompt, Result, SessionId, StopReason};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent_rig::{Rig, agent, echo, new};

/// What happened to sessions, in order.
type Log = Arc<Mutex<Vec<String>>>;

struct Logged {
    name: String,
    log: Log,
}

impl AgentSession for Logged {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        if prompt.text() == "wait" {
            turn.cancellation().cancelled().await;
            turn.say("too late").await?;
        }
        turn.say(&self.name).await?;
        Ok(StopReason::EndTurn)
    }

    async fn closed(&self) {
        self.log.lock().unwrap().push(format!("{} closed", self.name));
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        self.log.lock().unwrap().push(format!("{} dropped", self.name));
    }
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

/// An agent with `session/new`, `load`, `resume` and `fork`, all of them logged.
fn keeper(log: &Log) -> Agent {
    let session = |log: &Log, name: &str| Logged { name: name.to_owned(), log: log.clone() };
    let [new, load, resume, fork] = std::array::from_fn(|_| log.clone());
    Agent::new(move |_| {
        let opened = OpenedSession::new(session(&new, "new")).id("s1");
        async { Ok(opened) }
    })
    .load(move |request| {
        let loaded = session(&load, "loaded");
        async move {
            if request.id.as_str() == "ghost" {
                return Err(Error::not_found("no such session"));
            }
            request.session.send(SessionUpdate::user_message("hello")).await?;
            request.session.send(SessionUpdate::agent_message("hi")).await?;
            // the client has named it; another id is of no use
            Ok(OpenedSession::new(loaded).id("other").commands(vec![AvailableCommand::new("go", "Goes")]))
        }
    })
    .resume(move |request| {
        let resumed = session(&resume, "resumed");
        async move {
            request.session.send(SessionUpdate::agent_message("early")).await?;
            Ok(resumed)
        }
    })
    .fork(move |source, request: OpenRequest| {
        let forked = session(&fork, &format!("fork of {source}"));
        async move {
            assert_ne!(request.id, source);
            assert!(request.additional_directories.is_empty());
            request.session.send(SessionUpdate::agent_message("early")).await?;
            Ok(OpenedSession::new(forked).id("f1"))
        }
    })
}

fn at(id: &str) -> Value {
    json!({"sessionId": id, "cwd": "/work", "mcpServers": []})
}

#[tokio::test(start_paused = true)]
async fn every_session_has_an_id_of_its_own() {
    // shows SESS-03
    struct Plain;
    impl AgentSession for Plain {
        async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> {
            Ok(StopReason::EndTurn)
        }
    }
    let mut rig = Rig::initialized(Agent::new(|_| async { Ok(Plain) }), json!({})).await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..100 {
        let opened = rig.call("n", "session/new", new()).await;
        assert!(ids.insert(opened["sessionId"].as_str().unwrap().to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn session_requests_are_checked_before_the_handler_is_called() {
    // shows ROOT-01, ROOT-10, ROOT-14, MCP-08, MCP-10, MCP-11, SESS-33, RPC-13, SYSP-02
    let made = Arc::new(Mutex::new(0));
    let count = made.clone();
    let agent = Agent::new(move |_| {
        *count.lock().unwrap() += 1;
        async { Err::<Logged, _>(Error::internal("not made")) }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    let stdio = json!({"name": "m", "command": "/bin/m", "args": [], "env": []});
    let bad = [
        json!({}),
        json!({"mcpServers": []}),
        json!({"cwd": ".", "mcpServers": []}), // one client sends this
        json!({"cwd": "rel/ative", "mcpServers": []}),
        json!({"cwd": "", "mcpServers": []}),
        json!({"cwd": 5, "mcpServers": []}),
        json!({"cwd": "/", "mcpServers": [5]}),
        json!({"cwd": "/", "mcpServers": {}}),
        json!({"cwd": "/", "mcpServers": [{"name": "m"}]}),
        json!({"cwd": "/", "mcpServers": [stdio, {"type": "weird", "name": "m", "command": "/bin/m", "args": [], "env": []}]}),
        json!({"cwd": "/", "mcpServers": [{"type": "http", "name": "m", "url": "http://x", "headers": []}]}),
        json!({"cwd": "/", "mcpServers": [{"type": "sse", "name": "m", "url": "http://x", "headers": []}]}),
        json!({"cwd": "/", "mcpServers": [{"type": "acp", "name": "m", "serverId": "x"}]}),
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": ["/a"]}),
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": ["rel"]}),
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": [5]}),
        json!({"cwd": "/", "mcpServers": [], "systemPrompt": {"mode": "append", "content": [{"type": "text", "text": "x"}]}}),
        json!(["/", []]),
    ];
    for params in bad {
        rig.expect_error("session/new", params, -32602).await;
    }
    assert_eq!(*made.lock().unwrap(), 0);
    rig.expect_error("session/new", new(), -32603).await;
    assert_eq!(*made.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn supported_session_options_reach_the_handler() {
    // shows ROOT-02, ROOT-11, MCP-02, MCP-08, MCP-10, MCPA-01, SYSP-02, EXT-01
    let seen: Arc<Mutex<Vec<OpenRequest>>> = Arc::default();
    let log = seen.clone();
    let agent = Agent::new(move |request: OpenRequest| {
        log.lock().unwrap().push(request);
        async { Err::<Logged, _>(Error::Cancelled) }
    })
    .mcp_over_http()
    .mcp_over_sse()
    .mcp_over_acp()
    .additional_directories()
    .system_prompts(SystemPromptSupport::Append);
    let mut rig = Rig::initialized(agent, json!({})).await;
    let text = |mode: &str, content: Value| json!({"cwd": "/", "mcpServers": [], "systemPrompt": {"mode": mode, "content": content}});
    let good = [
        json!({"cwd": "/somewhere/else", "mcpServers": null, "_meta": {"trace": 1}}),
        json!({"cwd": "/"}), // tolerated
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": []}),
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": ["/a", "/b"]}),
        json!({"cwd": "/", "mcpServers": [
            {"name": "1", "command": "/bin/m", "args": ["-x"], "env": [{"name": "A", "value": "b"}]},
            {"name": "2", "command": "/bin/m"},
            {"type": "http", "name": "3", "url": "http://x", "headers": []},
            {"type": "sse", "name": "4", "url": "http://x", "headers": []},
            {"type": "acp", "name": "5", "serverId": "x"},
        ]}),
        text("append", json!([{"type": "text", "text": "Be brief."}])),
    ];
    for params in good {
        rig.expect_error("session/new", params, -32800).await;
    }
    for params in [
        text("append", json!([])),
        text("append", json!([{"type": "resource_link", "uri": "file:///x", "name": "x"}])),
        text("override", json!([{"type": "text", "text": "x"}])),
        text("_x", json!([{"type": "text", "text": "x"}])),
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": ["/a", "rel"]}),
        json!({"cwd": "/", "mcpServers": [], "additionalDirectories": [""]}),
    ] {
        rig.expect_error("session/new", params, -32602).await;
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen.len(), 6);
    assert_eq!(seen[0].cwd, Path::new("/somewhere/else"));
    assert!(seen[0].meta.is_some());
    assert!(seen[2].additional_directories.is_empty());
    assert_eq!(seen[3].additional_directories, [Path::new("/a"), Path::new("/b")]);
    assert_eq!(seen[4].mcp_servers.len(), 5);
    assert!(matches!(&seen[4].mcp_servers[1], McpServer::Stdio(server) if server.args.is_empty()));
    assert!(seen[5].system_prompt.is_some());
}

#[tokio::test(start_paused = true)]
async fn early_updates_are_held_until_the_session_is_known() {
    // shows SESS-31, CMD-01
    let agent = Agent::new(|request: OpenRequest| async move {
        request.session.send(SessionUpdate::agent_message("first")).await?;
        request.session.set_title(Some("second".to_owned())).await?;
        let late = request.session.clone();
        tokio::spawn(async move { late.send(SessionUpdate::agent_message("third")).await });
        tokio::task::yield_now().await;
        let session = Logged { name: "x".to_owned(), log: Log::default() };
        Ok(OpenedSession::new(session).id("own id").commands(vec![AvailableCommand::new("go", "Goes")]))
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    assert_eq!(rig.call("n", "session/new", new()).await, json!({"sessionId": "own id"}));
    rig.expect_text("own id", "first").await;
    rig.expect_update("own id", json!({"sessionUpdate": "session_info_update", "title": "second"})).await;
    rig.expect_text("own id", "third").await;
    let commands = json!([{"name": "go", "description": "Goes"}]);
    rig.expect_update(
        "own id",
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
    )
    .await;
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_failed_to_open_sends_nothing() {
    let kept: Arc<Mutex<Option<SessionHandle>>> = Arc::default();
    let keep = kept.clone();
    let agent = Agent::new(move |request: OpenRequest| {
        let keep = keep.clone();
        async move {
            request.session.send(SessionUpdate::agent_message("lost")).await?;
            *keep.lock().unwrap() = Some(request.session);
            Err::<Logged, _>(Error::refuse(-31000, "not today"))
        }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.expect_error("session/new", new(), -31000).await;
    let handle = kept.lock().unwrap().take().unwrap();
    assert!(handle.send(SessionUpdate::agent_message("lost")).await.is_err());
    assert!(handle.set_mode("x").await.is_err());
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn held_updates_are_bounded() {
    let agent = Agent::new(|request: OpenRequest| async move {
        let mut held = 0;
        while request.session.send(SessionUpdate::agent_message("early")).await.is_ok() {
            held += 1;
        }
        Err::<Logged, _>(Error::refuse(held, "enough"))
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.expect_error("session/new", new(), 1024).await;
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_fails_stops() {
    // shows SESS-12
    let kept: Arc<Mutex<Option<SessionHandle>>> = Arc::default();
    let keep = kept.clone();
    let agent = echo().load(move |request| {
        let keep = keep.clone();
        async move {
            request.session.send(SessionUpdate::agent_message("one")).await?;
            *keep.lock().unwrap() = Some(request.session);
            std::future::pending::<Result<Logged>>().await
        }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.client.request("l", "session/load", at("x")).await;
    rig.expect_text("x", "one").await;
    let handle = kept.lock().unwrap().take().unwrap();
    handle.send(SessionUpdate::agent_message("two")).await.unwrap();
    rig.expect_text("x", "two").await;
    rig.client.notify("$/cancel_request", json!({"requestId": "l"})).await;
    rig.client.error("l", -32800).await;
    assert!(handle.send(SessionUpdate::agent_message("three")).await.is_err());
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn loading_replays_and_then_answers() {
    // shows SESS-11, SESS-12, SESS-13, SESS-19
    let log = Log::default();
    let mut rig = Rig::initialized(keeper(&log), json!({})).await;
    rig.client.request("l", "session/load", at("old one")).await;
    rig.expect_update(
        "old one",
        json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hello"}}),
    )
    .await;
    rig.expect_text("old one", "hi").await;
    assert_eq!(rig.client.result("l").await, json!({}));
    assert_eq!(rig.client.expect("session/update").await["params"]["sessionId"], "old one");
    rig.prompt("p", "old one", "").await;
    rig.expect_text("old one", "loaded").await;
    rig.expect_end("p", "end_turn").await;

    rig.expect_error("session/load", at("ghost"), -32002).await;
    rig.expect_error("session/load", json!({"sessionId": "x"}), -32602).await; // shows SESS-10
    rig.expect_error("session/load", json!({"sessionId": "x", "cwd": ".", "mcpServers": []}), -32602).await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn resuming_replays_nothing_before_the_answer() {
    // shows SESS-23
    let mut rig = Rig::initialized(keeper(&Log::default()), json!({})).await;
    let params = json!({"sessionId": "old", "cwd": "/work"});
    assert_eq!(rig.call("r", "session/resume", params).await, json!({}));
    rig.expect_text("old", "early").await;
    rig.prompt("p", "old", "").await;
    rig.expect_text("old", "resumed").await;
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_another_session() {
    // shows FORK-02, FORK-03, FORK-05
    let mut rig = Rig::initialized(keeper(&Log::default()), json!({})).await;
    rig.new_session("s1").await;
    let params = json!({"sessionId": "s1", "cwd": "/work"});
    assert_eq!(rig.call("f", "session/fork", params).await, json!({"sessionId": "f1"}));
    rig.expect_text("f1", "early").await;
    for (session, name) in [("f1", "fork of s1"), ("s1", "new")] {
        rig.prompt("p", session, "").await;
        rig.expect_text(session, name).await;
        rig.expect_end("p", "end_turn").await;
    }
}

#[tokio::test(start_paused = true)]
async fn opening_a_session_once_more_ends_the_older_one() {
    let log = Log::default();
    let mut rig = Rig::initialized(keeper(&log), json!({})).await;
    rig.new_session("s1").await;
    rig.prompt("p", "s1", "wait").await;
    rig.client.request("r", "session/resume", at("s1")).await;
    rig.expect_end("p", "cancelled").await;
    rig.client.result("r").await;
    rig.expect_text("s1", "early").await;
    assert_eq!(taken(&log), ["new closed", "new dropped"]);
    rig.prompt("p", "s1", "").await;
    rig.expect_text("s1", "resumed").await;
    rig.expect_end("p", "end_turn").await;
    rig.disconnect().await;
    assert_eq!(taken(&log), ["resumed closed", "resumed dropped"]);
}

#[tokio::test(start_paused = true)]
async fn closing_cancels_answers_and_frees() {
    // shows SESS-27, SESS-28, SESS-29, SESS-30, RPC-18
    let log = Log::default();
    let mut rig = Rig::initialized(keeper(&log), json!({})).await;
    rig.new_session("s1").await;
    rig.prompt("p", "s1", "wait").await;
    rig.client.request("c", "session/close", json!({"sessionId": "s1"})).await;
    // whatever stands behind the close on the wire finds nothing
    rig.prompt("q", "s1", "").await;
    rig.client.request("m", "session/set_mode", json!({"sessionId": "s1", "modeId": "x"})).await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(rig.client.line().await);
    }
    let place = |id: &str| answers.iter().position(|line| line["id"] == id).unwrap();
    assert_eq!(answers[place("p")]["result"]["stopReason"], "cancelled");
    assert_eq!(answers[place("c")]["result"], json!({}));
    assert!(place("p") < place("c"));
    for id in ["q", "m"] {
        assert_eq!(answers[place(id)]["error"]["code"], -32002);
        assert_eq!(answers[place(id)]["error"]["data"], json!({"sessionId": "s1"}));
    }
    assert_eq!(taken(&log), ["new closed", "new dropped"]);
    rig.expect_error("session/close", json!({"sessionId": "s1"}), -32002).await;
    rig.expect_error("session/close", json!({"sessionId": "ghost"}), -32002).await;
    rig.new_session("s1").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_waits_for_a_turn_that_takes_its_time() {
    // shows SESS-27, SESS-30: the turn may still send updates, the closing hook may not
    struct Stubborn(SessionHandle, Log);
    impl AgentSession for Stubborn {
        async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
            turn.cancellation().cancelled().await;
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            self.0.send(SessionUpdate::agent_message("final text")).await?;
            Ok(StopReason::EndTurn)
        }

        async fn closed(&self) {
            let sent = self.0.send(SessionUpdate::agent_message("from the grave")).await;
            self.1.lock().unwrap().push(format!("sent: {}", sent.is_ok()));
        }
    }
    let log = Log::default();
    let inner = log.clone();
    let agent = Agent::new(move |request: OpenRequest| {
        let opened = OpenedSession::new(Stubborn(request.session, inner.clone())).id("s1");
        async { Ok(opened) }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.new_session("s1").await;
    rig.prompt("p", "s1", "").await;
    rig.client.request("c", "session/close", json!({"sessionId": "s1"})).await;
    rig.expect_text("s1", "final text").await;
    rig.expect_end("p", "cancelled").await;
    assert_eq!(rig.client.result("c").await, json!({}));
    assert_eq!(taken(&log), ["sent: false"]);
    rig.assert_responsive().await;
}

/// Takes its time to be closed.
struct Slow(Arc<Notify>, Log);

impl AgentSession for Slow {
    async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn closed(&self) {
        self.0.notified().await;
        self.1.lock().unwrap().push("closed".to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_that_is_cancelled_still_closes() {
    // shows CANCEL-16
    let (gate, log) = (Arc::new(Notify::new()), Log::default());
    let (inner_gate, inner_log) = (gate.clone(), log.clone());
    let agent = Agent::new(move |_| {
        let opened = OpenedSession::new(Slow(inner_gate.clone(), inner_log.clone())).id("s1");
        async { Ok(opened) }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.new_session("s1").await;
    rig.client.request("c", "session/close", json!({"sessionId": "s1"})).await;
    rig.client.notify("$/cancel_request", json!({"requestId": "c"})).await;
    rig.client.error("c", -32800).await;
    assert!(taken(&log).is_empty());
    gate.notify_one();
    rig.assert_responsive().await;
    assert_eq!(taken(&log), ["closed"]);
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_handle_is_silent_once_the_session_is_over() {
    // shows SESS-30
    let kept: Arc<Mutex<Option<SessionHandle>>> = Arc::default();
    let keep = kept.clone();
    let agent = Agent::new(move |request: OpenRequest| {
        *keep.lock().unwrap() = Some(request.session.clone());
        let session = Logged { name: "x".to_owned(), log: Log::default() };
        async { Ok(OpenedSession::new(session).id("s1")) }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.new_session("s1").await;
    let handle = kept.lock().unwrap().clone().unwrap();
    handle.send(SessionUpdate::agent_message("between turns")).await.unwrap();
    rig.expect_text("s1", "between turns").await;
    rig.call("c", "session/close", json!({"sessionId": "s1"})).await;
    assert!(handle.send(SessionUpdate::agent_message("after the end")).await.is_err());
    assert!(handle.set_title(None).await.is_err());
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn an_opening_can_be_cancelled() {
    // shows CANCEL-15, CANCEL-16, CANCEL-20
    let dropped = Log::default();
    let log = dropped.clone();
    let agent = Agent::new(move |_| {
        let session = Logged { name: "half".to_owned(), log: log.clone() };
        async move {
            let _session = session;
            std::future::pending::<Result<Logged>>().await
        }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.client.request(7, "session/new", new()).await;
    rig.client.notify("$/cancel_request", json!({"requestId": 7})).await;
    rig.client.error(7, -32800).await;
    assert_eq!(taken(&dropped), ["half dropped"]);
    for id in [json!(7), json!(9999), json!("7"), json!(null)] {
        rig.client.notify("$/cancel_request", json!({"requestId": id})).await;
    }
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn sessions_are_independent() {
    // shows SESS-06, PROMPT-12
    let mut rig = Rig::initialized(echo(), json!({})).await;
    rig.new_session("s1").await;
    rig.new_session("s2").await;
    for (session, text) in [("s1", "a"), ("s2", "b"), ("s1", "c")] {
        rig.prompt("p", session, text).await;
        rig.expect_text(session, text).await;
        rig.expect_end("p", "end_turn").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_choose_any_id() {
    // shows SESS-05
    let odd: SessionId = "an id with blanks, \u{2028} and ünïcode".into();
    let opened = odd.clone();
    let agent = Agent::new(move |_| {
        let session = Logged { name: "x".to_owned(), log: Log::default() };
        let opened = OpenedSession::new(session).id(opened.clone());
        async { Ok(opened) }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.call("n", "session/new", new()).await;
    rig.prompt("p", odd.as_str(), "").await;
    rig.expect_text(odd.as_str(), "x").await;
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn invalid_current_settings_are_refused() {
    // shows CONF-05
    use attache::wire::v1::{SessionConfigOption, SessionConfigSelectOption, SessionMode, SessionModeState};
    let agent = agent(|_, _| Box::pin(async { Ok(StopReason::EndTurn) }))
        .load(|_| async {
            let session = Logged { name: "x".to_owned(), log: Log::default() };
            Ok(OpenedSession::new(session)
                .modes(SessionModeState::new("ghost", vec![SessionMode::new("ask", "Ask")])))
        })
        .resume(|_| async {
            let session = Logged { name: "x".to_owned(), log: Log::default() };
            let values = vec![SessionConfigSelectOption::new("a", "A")];
            Ok(OpenedSession::new(session)
                .options(vec![SessionConfigOption::select("o", "O", "ghost", values)]))
        });
    let mut rig = Rig::initialized(agent, json!({})).await;
    let error = rig.expect_error("session/load", at("x"), -32603).await;
    assert!(error["message"].as_str().unwrap().contains("ghost"));
    rig.expect_error("session/resume", at("x"), -32603).await;
    rig.expect_error("session/prompt", crate::agent_rig::prompt("x", ""), -32002).await;
}
