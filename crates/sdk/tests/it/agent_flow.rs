//! Many things at once, things that go wrong, and the end of the connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::agent::{Agent, AgentSession, OpenRequest, OpenedSession, Turn, usual_options};
use attache::wire::v1::SessionUpdate;
use attache::{Limits, Prompt, Result, StopReason};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::agent_rig::{Rig, acts, agent, echo, full_client, new, prompt};

#[tokio::test(start_paused = true)]
async fn two_sessions_in_parallel() {
    // shows SESS-06, PROMPT-12, RPC-20: two turns side by side, each waiting for the client in its
    // own way
    let mut rig = Rig::open(
        agent(|turn, prompt| {
            Box::pin(async move {
                let files = turn.read_files().unwrap();
                for n in 0..3 {
                    let text = files.read(format!("/{}", prompt.text())).await?;
                    turn.say(format!("{text} {n}")).await?;
                }
                Ok(StopReason::EndTurn)
            })
        }),
        full_client(),
    )
    .await;
    rig.new_session("s2").await;
    rig.prompt("a", "s1", "one").await;
    rig.prompt("b", "s2", "two").await;
    let mut said = [Vec::new(), Vec::new()];
    let mut ends = 0;
    while ends < 2 {
        let line = rig.client.line().await;
        match line["method"].as_str() {
            Some("fs/read_text_file") => {
                let right = if line["params"]["sessionId"] == "s1" { "/one" } else { "/two" };
                assert_eq!(line["params"]["path"], right);
                rig.client.answer(&line, json!({"content": right})).await;
            }
            Some("session/update") => {
                let which = usize::from(line["params"]["sessionId"] == "s2");
                said[which].push(line["params"]["update"]["content"]["text"].as_str().unwrap().to_owned());
            }
            _ => {
                let which = usize::from(line["id"] == "b");
                assert_eq!(said[which].len(), 3, "all updates before the answer");
                ends += 1;
            }
        }
    }
    assert_eq!(said, [["/one 0", "/one 1", "/one 2"], ["/two 0", "/two 1", "/two 2"]]);
}

#[tokio::test(start_paused = true)]
async fn sixty_four_requests_in_flight() {
    // shows RPC-20, RPC-24, SESS-03
    let mut rig = Rig::initialized(echo(), json!({})).await;
    for id in 0..64 {
        rig.client.request(id, "session/new", new()).await;
    }
    let mut seen = std::collections::HashMap::new();
    for _ in 0..64 {
        let line = rig.client.line().await;
        let session = line["result"]["sessionId"].as_str().unwrap().to_owned();
        assert!(seen.insert(session, line["id"].as_i64().unwrap()).is_none());
    }
    let mut ids: Vec<_> = seen.values().copied().collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..64).collect::<Vec<_>>());
    // a turn in each of them at once
    for (session, id) in &seen {
        rig.client.request(*id, "session/prompt", prompt(session, session)).await;
    }
    let mut received = std::collections::HashSet::new();
    let mut ends = 0;
    while ends < 64 {
        let line = rig.client.line().await;
        if line["method"] == "session/update" {
            assert_eq!(line["params"]["sessionId"], line["params"]["update"]["content"]["text"]);
            received.insert(line["params"]["sessionId"].as_str().unwrap().to_owned());
        } else {
            assert_eq!(line["result"], json!({"stopReason": "end_turn"}));
            ends += 1;
        }
    }
    assert_eq!(received.len(), 64);
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_refused_and_the_rest_is_served() {
    let limits = Limits::default().open_requests(4);
    let mut rig = Rig::initialized(
        agent(|turn, _| {
            Box::pin(async move {
                turn.until_cancelled(std::future::pending::<()>()).await?;
                Ok(StopReason::EndTurn)
            })
        })
        .limits(limits),
        json!({}),
    )
    .await;
    for n in 1..=5 {
        rig.new_session(&format!("s{n}")).await;
    }
    for n in 1..=4 {
        rig.prompt(&format!("p{n}"), &format!("s{n}"), "").await;
    }
    rig.prompt("p5", "s5", "").await;
    let line = rig.client.line().await;
    assert_eq!(line["id"], "p5");
    assert!(line["error"]["code"].is_i64());
    rig.cancel("s2").await;
    rig.expect_end("p2", "cancelled").await;
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn a_permission_is_answered_while_the_agent_floods() {
    // shows PERM-12, RPC-20: one turn streams without end, another waits for the user, others come
    // and go
    let stop = Arc::new(Notify::new());
    let gate = stop.clone();
    let mut rig = Rig::open(
        agent(move |turn, prompt| {
            let gate = gate.clone();
            Box::pin(async move {
                match &*prompt.text() {
                    "flood" => {
                        let stopped = gate.notified();
                        tokio::pin!(stopped);
                        let text = "x".repeat(500);
                        loop {
                            tokio::select! {
                                biased;
                                () = &mut stopped => break,
                                said = turn.say(&text) => said?,
                            }
                        }
                    }
                    "ask" => {
                        let tool = turn.tool("t").start().await?;
                        assert!(turn.ask(&tool, usual_options()).await?.is_allowed());
                        tool.complete([]).await?;
                    }
                    _ => {}
                }
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.new_session("s2").await;
    rig.prompt("flood", "s1", "flood").await;
    rig.prompt("ask", "s2", "ask").await;
    rig.client.request("new", "session/new", new()).await;
    let (mut asked, mut opened, mut flood) = (false, false, 0);
    loop {
        let line = rig.client.line().await;
        match line["method"].as_str() {
            Some("session/update") => flood += 1,
            Some("session/request_permission") => {
                let outcome = json!({"outcome": "selected", "optionId": "allow"});
                rig.client.answer(&line, json!({"outcome": outcome})).await;
            }
            _ if line["id"] == "ask" => asked = true,
            _ if line["id"] == "new" => opened = true,
            _ => panic!("{line}"),
        }
        if asked && opened {
            break;
        }
        assert!(flood < 100_000, "nothing but the flood");
    }
    stop.notify_waiters();
    loop {
        let line = rig.client.line().await;
        if line["id"] == "flood" {
            assert_eq!(line["result"]["stopReason"], "end_turn");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_the_client_does_not_block_others() {
    // shows RPC-20: every kind of handler waits for an answer that the client gives last of all
    let waits = |client: attache::agent::ClientHandle| async move {
        let request = attache::wire::v1::MessageMcpRequest::new("s", "r", "m");
        client.request(&request).await
    };
    let inner = acts(|turn, prompt| {
        Box::pin(async move {
            if prompt.text() == "read" {
                turn.read_files().unwrap().read("/x").await?;
            }
            Ok(StopReason::EndTurn)
        })
    });
    let count = AtomicUsize::new(0);
    let agent = Agent::new(move |request: OpenRequest| {
        let opened =
            OpenedSession::new(inner.clone()).id(format!("s{}", count.fetch_add(1, Ordering::Relaxed)));
        async move {
            if request.id.as_str().is_empty() || request.cwd.ends_with("slow") {
                waits(request.client).await?;
            }
            Ok(opened)
        }
    });
    let mut rig = Rig::initialized(agent, full_client()).await;
    rig.new_session("s0").await;
    rig.client.request("slow", "session/new", json!({"cwd": "/slow", "mcpServers": []})).await;
    let first = rig.client.expect("mcp/message").await;
    rig.prompt("read", "s0", "read").await;
    let second = rig.client.expect("fs/read_text_file").await;
    rig.new_session("s2").await;
    rig.prompt("quick", "s2", "").await;
    rig.expect_end("quick", "end_turn").await;
    rig.assert_responsive().await;
    rig.client.answer(&second, json!({"content": ""})).await;
    rig.expect_end("read", "end_turn").await;
    rig.client.answer(&first, json!({"result": {}})).await;
    assert_eq!(rig.client.result("slow").await, json!({"sessionId": "s1"}));
}

/// Notes how its sessions and turns end.
struct Witness {
    log: Arc<Mutex<Vec<String>>>,
    ignores_cancel: bool,
}

impl AgentSession for Witness {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        struct Left(Arc<Mutex<Vec<String>>>);
        impl Drop for Left {
            fn drop(&mut self) {
                self.0.lock().unwrap().push("handler left".to_owned());
            }
        }
        let _left = Left(self.log.clone());
        match &*prompt.text() {
            "read" => drop(turn.read_files().unwrap().read("/x").await?),
            "stream" => loop {
                turn.say("x".repeat(1000)).await?;
            },
            _ if self.ignores_cancel => std::future::pending().await,
            _ => turn.until_cancelled(std::future::pending::<()>()).await?,
        }
        Ok(StopReason::EndTurn)
    }

    async fn closed(&self) {
        self.log.lock().unwrap().push("closed".to_owned());
    }
}

fn witness(ignores_cancel: bool) -> (Agent, Arc<Mutex<Vec<String>>>) {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let inner = log.clone();
    let count = AtomicUsize::new(0);
    let agent = Agent::new(move |_| {
        let id = format!("s{}", count.fetch_add(1, Ordering::Relaxed) + 1);
        let opened = OpenedSession::new(Witness { log: inner.clone(), ignores_cancel }).id(id);
        async { Ok(opened) }
    });
    (agent, log)
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_in_the_middle_of_a_turn() {
    // shows STDIO-10: handlers end, hooks run, serving ends in peace
    for (text, ignores_cancel) in [("wait", false), ("wait", true), ("read", false), ("stream", false)] {
        let (agent, log) = witness(ignores_cancel);
        let mut rig = Rig::open(agent, full_client()).await;
        rig.new_session("s2").await;
        rig.prompt("p", "s1", text).await;
        rig.is_busy().await;
        rig.disconnect().await;
        assert_eq!(*log.lock().unwrap(), ["handler left", "closed", "closed"], "{text}");
    }
}

impl Rig {
    /// Lets the agent take in what was sent.
    async fn is_busy(&mut self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_the_end_gets_its_grace_and_no_more() {
    let (agent, log) = witness(true);
    let mut rig = Rig::open(agent.cancel_grace(Duration::from_millis(50)), json!({})).await;
    rig.prompt("p", "s1", "wait").await;
    rig.is_busy().await;
    let begin = tokio::time::Instant::now();
    rig.disconnect().await;
    assert!(begin.elapsed() < Duration::from_millis(200), "{:?} of the paused clock", begin.elapsed());
    assert_eq!(*log.lock().unwrap(), ["handler left", "closed"]);
}

/// A hook that never ends, and one that panics.
struct Sticky(bool, Arc<()>);

impl AgentSession for Sticky {
    async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn closed(&self) {
        let _alive = self.1.clone();
        if self.0 {
            panic!("in the hook");
        }
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn closed_hooks_that_hang_or_panic_do_not_block_others() {
    let alive = Arc::new(());
    let inner = alive.clone();
    let agent = Agent::new(move |request: OpenRequest| {
        let session = Sticky(request.cwd.ends_with("panic"), inner.clone());
        async { Ok(session) }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    for _ in 0..50 {
        rig.call("n", "session/new", new()).await;
    }
    let opened = rig.call("n", "session/new", json!({"cwd": "/panic", "mcpServers": []})).await;
    assert_eq!(rig.call("c", "session/close", opened).await, json!({}));
    rig.call("n", "session/new", json!({"cwd": "/panic", "mcpServers": []})).await;
    // one that is being closed when the client leaves
    let opened = rig.call("n", "session/new", new()).await;
    rig.client.request("c", "session/close", opened).await;
    rig.is_busy().await;
    let begin = tokio::time::Instant::now();
    rig.disconnect().await;
    assert!(begin.elapsed() < Duration::from_secs(9), "all of them at once");
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(Arc::strong_count(&alive), 1, "and none of them is left behind");
}

#[tokio::test(start_paused = true)]
async fn dropping_serve_stops_the_handlers() {
    let (agent, log) = witness(true);
    let mut rig = Rig::open(agent, json!({})).await;
    rig.prompt("p", "s1", "wait").await;
    rig.is_busy().await;
    rig.serving.abort();
    assert!((&mut rig.serving).await.unwrap_err().is_cancelled());
    rig.is_busy().await;
    assert_eq!(*log.lock().unwrap(), ["handler left"]);
    rig.client.expect_eof().await;
}

#[tokio::test(start_paused = true)]
async fn background_tasks_fail_after_serve_is_dropped() {
    let (sender, mut turns) = mpsc::channel(16);
    let agent = agent(move |turn, _| {
        sender.try_send(turn.detach()).unwrap();
        Box::pin(std::future::pending())
    });
    let mut rig = Rig::open(agent, json!({})).await;
    rig.prompt("p", "s1", "").await;
    let detached = turns.recv().await.unwrap();
    rig.serving.abort();
    detached.turn().cancellation().cancelled().await;
    assert!(detached.turn().say("too late").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_when_the_client_is_gone() {
    // no circle of references keeps a session alive, whatever it holds on to
    struct Hoarder {
        handle: attache::agent::SessionHandle,
        kept: Mutex<Vec<Box<dyn std::any::Any + Send>>>,
        _alive: Arc<()>,
    }
    impl AgentSession for Hoarder {
        async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
            let terminal = turn.terminals().unwrap().command("x").start().await?;
            let tool = turn.tool("t").start().await?;
            let everything: Vec<Box<dyn std::any::Any + Send>> = vec![
                Box::new(turn.detach()),
                Box::new(turn.client().clone()),
                Box::new(turn.read_files()),
                Box::new(turn.write_files()),
                Box::new(turn.terminals()),
                Box::new(turn.forms()),
                Box::new(turn.links()),
                Box::new(self.handle.clone()),
                Box::new(terminal),
                Box::new(tool),
            ];
            self.kept.lock().unwrap().extend(everything);
            Ok(StopReason::EndTurn)
        }
    }
    let alive = Arc::new(());
    let inner = alive.clone();
    let agent = Agent::new(move |request: OpenRequest| {
        let session = Hoarder { handle: request.session, kept: Mutex::default(), _alive: inner.clone() };
        async { Ok(OpenedSession::new(session).id("s1")) }
    });
    let mut rig = Rig::open(agent, full_client()).await;
    rig.prompt("p", "s1", "").await;
    let create = rig.client.expect("terminal/create").await;
    rig.client.answer(&create, json!({"terminalId": "T"})).await;
    rig.client.expect("session/update").await;
    rig.client.expect("session/update").await;
    rig.expect_end("p", "end_turn").await;
    rig.disconnect().await;
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_client_has_sessions_of_its_own() {
    // one agent, cloned for each client
    let agent = echo();
    let mut first = Rig::open(agent.clone(), json!({})).await;
    let mut second = Rig::initialized(agent, json!({})).await;
    second.expect_error("session/prompt", prompt("s1", "x"), -32002).await;
    second.new_session("s2").await;
    first.prompt("p", "s1", "x").await;
    first.expect_text("s1", "x").await;
    first.expect_end("p", "end_turn").await;
    first.disconnect().await;
    second.prompt("p", "s2", "y").await;
    second.expect_text("s2", "y").await;
    second.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn updates_between_turns_keep_their_order() {
    // shows SESS-31
    let (sender, mut handles) = mpsc::channel(16);
    let inner = acts(|_, _| Box::pin(async { Ok(StopReason::EndTurn) }));
    let agent = Agent::new(move |request: OpenRequest| {
        sender.try_send(request.session).unwrap();
        let opened = OpenedSession::new(inner.clone()).id("s1");
        async { Ok(opened) }
    });
    let mut rig = Rig::open(agent, json!({})).await;
    let handle = handles.recv().await.unwrap();
    let sending = tokio::spawn(async move {
        for n in 0..1000 {
            handle.send(SessionUpdate::agent_message(n.to_string())).await.unwrap();
        }
    });
    for n in 0..1000 {
        rig.expect_text("s1", &n.to_string()).await;
    }
    sending.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_has_one_answer_in_every_interleaving() {
    // shows RPC-24, CANCEL-12, PROMPT-13: prompts, cancels, closes and openings in a fixed but wild
    // order, on two threads
    let inner = acts(|turn, prompt| {
        Box::pin(async move {
            let detached = turn.detach();
            tokio::spawn(async move { while detached.turn().say("b").await.is_ok() {} });
            for _ in 0..prompt.text().len() {
                turn.say("a").await?;
                tokio::task::yield_now().await;
            }
            let tool = turn.tool("t").start().await?;
            turn.until_cancelled(tokio::task::yield_now()).await?;
            tool.complete([]).await?;
            Ok(StopReason::EndTurn)
        })
    });
    let resumed = inner.clone();
    let agent = Agent::new(|_| async { Err::<crate::agent_rig::Acts, _>(attache::Error::Cancelled) })
        .resume(move |_| {
            let session = resumed.clone();
            async { Ok(session) }
        })
        .limits(Limits::default().write_buffer(4 << 10));
    let mut rig = Rig::initialized(agent, json!({})).await;
    let (mut open, mut seed) = (std::collections::HashSet::new(), 7_u64);
    for id in 0..600_i64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let session = format!("s{}", (seed >> 33) % 3);
        match (seed >> 40) % 8 {
            0 | 1 => {
                let params = json!({"sessionId": session, "cwd": "/"});
                rig.client.request(id, "session/resume", params).await;
            }
            2 => rig.client.request(id, "session/close", json!({"sessionId": session})).await,
            3 | 4 => {
                rig.cancel(&session).await;
                continue;
            }
            5 => {
                let params = json!({"requestId": id - 1});
                rig.client.notify("$/cancel_request", params).await;
                continue;
            }
            _ => rig.client.request(id, "session/prompt", prompt(&session, "xxxx")).await,
        }
        open.insert(id);
        // Answers are read now and then, so that some of them cross what is sent.
        while open.len() > 20 {
            let line = rig.client.line().await;
            if line.get("method").is_none() {
                assert!(open.remove(&line["id"].as_i64().unwrap()), "a second answer: {line}");
            }
        }
    }
    while !open.is_empty() {
        let line = rig.client.line().await;
        if line.get("method").is_none() {
            assert!(open.remove(&line["id"].as_i64().unwrap()), "a second answer: {line}");
        }
    }
    rig.disconnect().await;
}
