//! Turns: what is said in them, in which order, and how they end.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, DetachedTurn};
use attache::wire::v1::*;
use attache::{Error, Limits, Prompt, StopReason};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::agent_rig::{Rig, agent, echo, prompt};

#[tokio::test(start_paused = true)]
async fn a_turn_on_the_wire() {
    // shows PROMPT-07, PROMPT-11, RPC-05, RPC-24: the exact lines
    let mut rig = Rig::open(
        agent(|turn, prompt| {
            Box::pin(async move {
                turn.think("hm").await?;
                turn.say(prompt.text()).await?;
                turn.say("line\nbreak \"quoted\"").await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.client
        .raw(r#"{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"hi"}]}}"#)
        .await;
    for expected in [
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"line\nbreak \"quoted\""}}}}"#,
        r#"{"jsonrpc":"2.0","id":"p","result":{"stopReason":"end_turn"}}"#,
    ] {
        assert_eq!(rig.client.text().await.unwrap(), expected);
    }
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_end() {
    // shows PROMPT-08, PROMPT-20
    let mut rig = Rig::open(
        agent(|turn, prompt| {
            Box::pin(async move {
                turn.set_usage(Usage::new(5_u64, 3_u64, 2_u64));
                match &*prompt.text() {
                    "max_tokens" => Ok(StopReason::MaxTokens),
                    "max_turn_requests" => Ok(StopReason::MaxTurnRequests),
                    "refusal" => Ok(StopReason::Refusal),
                    "refused" => Err(Error::refuse(-31999, "the model is away")),
                    "internal" => Err(Error::internal("the password is 1234")),
                    "missing" => Err(Error::not_found("no such file")),
                    _ => Ok(StopReason::EndTurn),
                }
            })
        }),
        json!({}),
    )
    .await;
    for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal"] {
        let end = rig.call("p", "session/prompt", prompt("s1", reason)).await;
        assert_eq!(end["stopReason"], reason);
        assert_eq!(end["usage"], json!({"totalTokens": 5, "inputTokens": 3, "outputTokens": 2})); // shows PROMPT-19
    }
    let error = rig.expect_error("session/prompt", prompt("s1", "refused"), -31999).await;
    assert_eq!(error["message"], "the model is away");
    let error = rig.expect_error("session/prompt", prompt("s1", "internal"), -32603).await;
    assert!(!error.to_string().contains("1234"), "internal detail stays here: {error}");
    rig.expect_error("session/prompt", prompt("s1", "missing"), -32002).await;
    assert_eq!(rig.call("p", "session/prompt", prompt("s1", "")).await["stopReason"], "end_turn");
}

#[tokio::test(start_paused = true)]
async fn kinds_of_content_in_prompts() {
    // shows PROMPT-03, PROMPT-04, PROMPT-05, PROMPT-22, MSG-03, CONT-01, CONT-03, CONT-04, CONT-05,
    // CONT-06, CONT-07, EXT-03
    let seen: Arc<Mutex<Vec<Prompt>>> = Arc::default();
    let log = seen.clone();
    let listener = move || -> Agent {
        let log = log.clone();
        agent(move |_, prompt| {
            log.lock().unwrap().push(prompt);
            Box::pin(async { Ok(StopReason::EndTurn) })
        })
    };
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"});
    let text = json!({"type": "resource", "resource": {"uri": "file:///a", "text": "t"}});
    let blob = json!({"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}});
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "size": 5});
    let with = |blocks: Value| json!({"sessionId": "s1", "prompt": blocks});

    let mut plain = Rig::open(listener(), json!({})).await;
    for block in [&image, &audio, &text, &blob] {
        plain
            .expect_error("session/prompt", with(json!([{"type": "text", "text": "x"}, block])), -32602)
            .await;
    }
    for bad in [
        json!([{"type": "hologram"}]),
        json!([{"type": "text"}]),
        json!([{"type": "resource_link", "uri": "file:///a"}]),
        json!([5]),
        json!({}),
        json!(5),
        json!(null),
    ] {
        plain.expect_error("session/prompt", with(bad), -32602).await;
    }
    plain.expect_error("session/prompt", json!({"sessionId": "s1"}), -32602).await;
    plain.expect_error("session/prompt", json!({"prompt": []}), -32602).await;
    assert!(seen.lock().unwrap().is_empty(), "none of these starts a turn");

    let annotated = json!({"type": "text", "text": "x", "annotations": {"audience": ["user"], "priority": 1}, "zz": 1, "_meta": {"a": 1}});
    for good in [json!([annotated, link]), json!([]), json!("a plain text")] {
        plain.client.request("p", "session/prompt", with(good)).await;
        plain.expect_end("p", "end_turn").await;
    }
    // an id that the client proposes is ignored
    plain
        .client
        .request("p", "session/prompt", json!({"sessionId": "s1", "prompt": [], "messageId": "m", "zz": 1}))
        .await;
    plain.expect_end("p", "end_turn").await;
    let prompts = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(prompts[0].blocks().len(), 2);
    assert_eq!(prompts[2].text(), "a plain text");

    let mut rich = Rig::open(listener().images().audio().embedded_context(), json!({})).await;
    rich.client.request("p", "session/prompt", with(json!([image, audio, text, blob, link]))).await;
    rich.expect_end("p", "end_turn").await;
    assert_eq!(seen.lock().unwrap()[0].blocks().len(), 5);
    for data in ["a", "a b", "aGk=x", "====", "aGk!", "ä"] {
        let broken = json!([{"type": "image", "data": data, "mimeType": "image/png"}]);
        rich.expect_error("session/prompt", with(broken), -32602).await;
    }
    for data in ["", "aGk", "-_-_", "aGkh"] {
        rich.client
            .request(
                "p",
                "session/prompt",
                with(json!([{"type": "audio", "data": data, "mimeType": "audio/wav"}])),
            )
            .await;
        rich.expect_end("p", "end_turn").await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_turn_at_a_time_in_a_session() {
    // shows PROMPT-13, RPC-18, RPC-20
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let mut rig = Rig::open(
        agent(move |turn, prompt| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.notified().await;
                turn.say(prompt.text()).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.new_session("s2").await;
    rig.prompt("first", "s1", "one").await;
    rig.expect_error("session/prompt", prompt("s1", "two"), -32600).await;
    rig.prompt("other", "s2", "three").await;
    let error = rig.expect_error("session/prompt", prompt("ghost", "x"), -32002).await;
    assert_eq!(error["data"], json!({"sessionId": "ghost"}));
    go.notify_waiters();
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.push(rig.client.line().await);
    }
    for (id, session, text) in [("first", "s1", "one"), ("other", "s2", "three")] {
        let end = lines.iter().position(|line| line["id"] == id).unwrap();
        let said = lines.iter().position(|line| line["params"]["sessionId"] == session).unwrap();
        assert_eq!(lines[said]["params"]["update"]["content"]["text"], text);
        assert!(said < end);
    }
    // a client that prompts again at once, behind the answer, is served
    for _ in 0..50 {
        rig.prompt("p", "s1", "again").await;
        rig.assert_responsive().await;
        go.notify_waiters();
        rig.expect_text("s1", "again").await;
        rig.expect_end("p", "end_turn").await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_can_be_streamed() {
    // shows PLAN-01, PLAN-03, PLAN-06, MSG-05, TOOL-13
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                let entry = PlanEntry::new("do it", PlanEntryPriority::High, PlanEntryStatus::Pending);
                turn.plan(vec![entry]).await?;
                turn.report_usage(10, 100, Some(Cost::new(0.5, "EUR"))).await?;
                turn.show(ImageContent::new("aGk=", "image/png")).await?;
                turn.send(SessionUpdate::user_message("echo")).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.prompt("p", "s1", "").await;
    let entries = json!([{"content": "do it", "priority": "high", "status": "pending"}]);
    rig.expect_update("s1", json!({"sessionUpdate": "plan", "entries": entries})).await;
    let cost = json!({"amount": 0.5, "currency": "EUR"});
    rig.expect_update("s1", json!({"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost}))
        .await;
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    rig.expect_update("s1", json!({"sessionUpdate": "agent_message_chunk", "content": image})).await;
    let echo = json!({"type": "text", "text": "echo"});
    rig.expect_update("s1", json!({"sessionUpdate": "user_message_chunk", "content": echo})).await;
    rig.expect_end("p", "end_turn").await;
}

/// Tries every update that needs a capability and says which ones were sent.
fn curious() -> Agent {
    agent(|turn, _| {
        Box::pin(async move {
            let entries = vec![PlanEntry::new("x", PlanEntryPriority::Low, PlanEntryStatus::Completed)];
            let tries: Vec<(&str, SessionUpdate)> = vec![
                ("notice", Notice::new(NoticeSeverity::Info, "careful").into()),
                ("compaction", CompactionUpdate::new("c1", CompactionStatus::InProgress).into()),
                ("plan", PlanUpdate::new(PlanItems::new("p1", entries)).into()),
                ("text plan", PlanUpdate::new(PlanMarkdown::new("p1", "# do")).into()),
                ("file plan", PlanUpdate::new(PlanFile::new("p1", "file:///plan.md")).into()),
                ("removed", PlanRemoved::new("p1").into()),
                ("subagent", SubagentUpdate::new("child").into()),
                (
                    "options",
                    ConfigOptionUpdate::new(vec![SessionConfigOption::boolean("b", "B", true)]).into(),
                ),
            ];
            let mut refused = Vec::new();
            for (name, update) in tries {
                match turn.send(update).await {
                    Ok(()) => {}
                    Err(Error::Unsupported(_)) => refused.push(name),
                    Err(error) => return Err(error),
                }
            }
            turn.say(refused.join(", ")).await?;
            Ok(StopReason::EndTurn)
        })
    })
}

#[tokio::test(start_paused = true)]
async fn updates_that_the_client_does_not_know_are_not_sent() {
    // shows INIT-15, NOTE-01, NOTE-06, PLAN-07, PLAN-08, SUBA-01, CONF-07
    let mut rig = Rig::open(curious(), json!({})).await;
    rig.prompt("p", "s1", "").await;
    let entries = json!([{"content": "x", "priority": "low", "status": "completed"}]);
    rig.expect_update("s1", json!({"sessionUpdate": "plan", "entries": entries})).await;
    let mut ids = Vec::new();
    for text in ["# do", "Plan: file:///plan.md"] {
        let update = &rig.client.expect("session/update").await["params"]["update"];
        assert_eq!(
            (&update["sessionUpdate"], &update["content"]["text"]),
            (&json!("agent_message_chunk"), &json!(text))
        );
        ids.push(update["messageId"].as_str().unwrap().to_owned());
    }
    assert_ne!(ids[0], ids[1], "each is a message of its own");
    rig.expect_update("s1", json!({"sessionUpdate": "plan", "entries": []})).await;
    rig.expect_update("s1", json!({"sessionUpdate": "config_option_update", "configOptions": []})).await;
    rig.expect_text("s1", "notice, compaction, subagent").await;
    rig.expect_end("p", "end_turn").await;

    let session = json!({"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}});
    let all = json!({"plan": {}, "subagents": {}, "session": session});
    let mut rig = Rig::open(curious(), all).await;
    rig.prompt("p", "s1", "").await;
    for kind in [
        "notice",
        "compaction_update",
        "plan_update",
        "plan_update",
        "plan_update",
        "plan_removed",
        "subagent_update",
    ] {
        let line = rig.client.expect("session/update").await;
        assert_eq!(line["params"]["update"]["sessionUpdate"], kind);
    }
    let options = rig.client.expect("session/update").await;
    assert_eq!(options["params"]["update"]["configOptions"][0]["currentValue"], true);
    rig.expect_text("s1", "").await;
    rig.expect_end("p", "end_turn").await;
}

/// An agent that gives its turns away.
fn detaching() -> (Agent, mpsc::Receiver<DetachedTurn>, Arc<Notify>) {
    let (sender, turns) = mpsc::channel(16);
    let end = Arc::new(Notify::new());
    let gate = end.clone();
    let agent = agent(move |turn, _| {
        let (sender, gate) = (sender.clone(), gate.clone());
        Box::pin(async move {
            sender.try_send(turn.detach()).unwrap();
            gate.notified().await;
            Ok(StopReason::EndTurn)
        })
    });
    (agent, turns, end)
}

#[tokio::test(start_paused = true)]
async fn a_detached_turn_dies_with_the_turn() {
    // shows PROMPT-11: nothing of it is on the wire after the answer
    let (agent, mut turns, end) = detaching();
    let mut rig = Rig::open(agent, crate::agent_rig::full_client()).await;
    rig.prompt("p", "s1", "").await;
    let detached = turns.recv().await.unwrap();
    let turn = detached.turn();
    turn.say("still running").await.unwrap();
    rig.expect_text("s1", "still running").await;
    let tool = turn.tool("t").id("t1").start().await.unwrap();
    rig.client.expect("session/update").await;
    let (read, forms, terminals) =
        (turn.read_files().unwrap(), turn.forms().unwrap(), turn.terminals().unwrap());
    end.notify_one();
    let failed = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"});
    rig.expect_update("s1", failed).await; // shows TOOL-10
    rig.expect_end("p", "end_turn").await;

    assert!(turn.is_cancelled());
    assert!(matches!(turn.say("too late").await, Err(Error::Cancelled)));
    assert!(matches!(turn.plan(Vec::new()).await, Err(Error::Cancelled)));
    assert!(matches!(tool.run().await, Err(Error::Cancelled)));
    assert!(matches!(turn.ask(&tool, attache::agent::usual_options()).await, Err(Error::Cancelled)));
    assert!(matches!(tool.complete([]).await, Err(Error::Cancelled)));
    assert!(matches!(turn.tool("u").start().await, Err(Error::Cancelled)));
    assert!(matches!(read.read("/x").await, Err(Error::Cancelled)));
    assert!(matches!(forms.ask("?", ElicitationSchema::new()).await, Err(Error::Cancelled)));
    assert!(matches!(terminals.command("ls").start().await, Err(Error::Cancelled)));
    assert!(matches!(turn.until_cancelled(std::future::pending::<()>()).await, Err(Error::Cancelled)));
    rig.assert_responsive().await;
    // the next turn is another one
    rig.prompt("q", "s1", "").await;
    let next = turns.recv().await.unwrap();
    assert!(matches!(turn.say("too late").await, Err(Error::Cancelled)));
    next.turn().say("new").await.unwrap();
    rig.expect_text("s1", "new").await;
    end.notify_one();
    rig.expect_end("q", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn waits_of_background_tasks_end_with_the_turn() {
    let (agent, mut turns, end) = detaching();
    let mut rig = Rig::open(agent, crate::agent_rig::full_client()).await;
    rig.prompt("p", "s1", "").await;
    let detached = turns.recv().await.unwrap();
    let background = tokio::spawn(async move {
        let read = detached.turn().read_files().unwrap();
        read.read("/x").await
    });
    let read = rig.client.expect("fs/read_text_file").await;
    end.notify_one();
    let mut lines = [rig.client.line().await, rig.client.line().await];
    lines.sort_by_key(|line| line.get("method").is_some());
    assert_eq!(lines[0]["result"]["stopReason"], "end_turn");
    assert_eq!(lines[1]["method"], "$/cancel_request");
    assert_eq!(lines[1]["params"]["requestId"], read["id"]);
    assert!(matches!(background.await.unwrap(), Err(Error::Cancelled)));
    rig.client.refuse(&read, -32800, "cancelled").await;
    rig.assert_responsive().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_tasks_never_send_after_the_response() {
    // shows PROMPT-11, CANCEL-08: many tasks that talk as fast as they can while the turn ends
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                for _ in 0..4 {
                    let detached = turn.detach();
                    tokio::spawn(async move {
                        while detached.turn().say("x").await.is_ok() {
                            let tool = detached.turn().tool("t").start().await;
                            if let Ok(tool) = tool
                                && tool.complete([]).await.is_err()
                            {
                                return;
                            }
                        }
                    });
                }
                for _ in 0..5 {
                    turn.say("y").await?;
                    tokio::task::yield_now().await;
                }
                Ok(StopReason::EndTurn)
            })
        })
        .limits(Limits::default().write_buffer(2 << 10)),
        json!({}),
    )
    .await;
    for _ in 0..10 {
        rig.prompt("p", "s1", "").await;
        let mut open = std::collections::HashSet::new();
        loop {
            let line = rig.client.line().await;
            if line["id"] == "p" {
                break;
            }
            let update = &line["params"]["update"];
            let id = update["toolCallId"].to_string();
            match update["sessionUpdate"].as_str().unwrap() {
                "tool_call" => assert!(open.insert(id)),
                // A call that ends is over: it is not reported as failed as well.
                "tool_call_update" if update["status"] == "completed" => assert!(open.remove(&id)),
                // One that was about to be reported may be failed without having been seen.
                "tool_call_update" => drop(open.remove(&id)),
                _ => {}
            }
        }
        assert!(open.is_empty(), "calls without an end: {open:?}");
        rig.assert_responsive().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_panics_is_answered_and_the_session_lives_on() {
    // shows RPC-24, PROMPT-20
    let kept: Arc<Mutex<Option<DetachedTurn>>> = Arc::default();
    let keep = kept.clone();
    let mut rig = Rig::open(
        agent(move |turn, prompt| {
            let text = prompt.text().into_owned();
            if text == "at once" {
                panic!("before anything was awaited");
            }
            let keep = keep.clone();
            Box::pin(async move {
                *keep.lock().unwrap() = Some(turn.detach());
                turn.tool("t").id("t1").start().await?;
                match text.as_str() {
                    "later" => panic!("in the middle"),
                    "cancelled" => {
                        turn.cancellation().cancelled().await;
                        panic!("on the way out")
                    }
                    _ => Ok(StopReason::EndTurn),
                }
            })
        }),
        json!({}),
    )
    .await;
    let error = rig.expect_error("session/prompt", prompt("s1", "at once"), -32603).await;
    assert!(!error.to_string().contains("awaited"));
    rig.prompt("p", "s1", "later").await;
    rig.client.expect("session/update").await;
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}),
    )
    .await;
    rig.client.error("p", -32603).await;
    let detached = kept.lock().unwrap().take().unwrap();
    assert!(detached.turn().say("from the grave").await.is_err());

    rig.prompt("p", "s1", "cancelled").await; // shows CANCEL-06
    rig.client.expect("session/update").await;
    rig.cancel("s1").await;
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}),
    )
    .await;
    rig.expect_end("p", "cancelled").await;
    rig.assert_responsive().await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn slash_commands_are_prompts() {
    // shows CMD-04, CMD-05, CMD-06
    let mut rig = Rig::open(
        agent(|turn, prompt| {
            Box::pin(async move {
                match prompt.command() {
                    Some(("echo", input)) => turn.say(format!("[{input}]")).await?,
                    Some((name, _)) => turn.say(format!("no command {name}")).await?,
                    None => turn.say("plain").await?,
                }
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    for (text, answer) in [
        ("/echo hi  there ", "[hi  there]"),
        ("/echo", "[]"),
        ("  /echo\thi", "[hi]"),
        ("/nosuch x", "no command nosuch"),
        ("no /echo", "plain"),
        ("/", "plain"),
        ("", "plain"),
    ] {
        rig.prompt("p", "s1", text).await;
        rig.expect_text("s1", answer).await;
        rig.expect_end("p", "end_turn").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_turn_is_a_turn() {
    // shows PROMPT-07, INIT-21
    let mut rig = Rig::open(echo(), json!({})).await;
    rig.client.request("p", "session/prompt", json!({"sessionId": "s1", "prompt": []})).await;
    rig.expect_text("s1", "").await;
    rig.expect_end("p", "end_turn").await;
}
