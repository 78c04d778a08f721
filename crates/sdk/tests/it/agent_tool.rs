//! Tool calls, permissions, and services of a client: files, terminals, forms.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, Choice, ClientTerminal, ToolStatus, Turn, block, usual_options};
use attache::wire::v1::*;
use attache::{Edit, Error, Json, Result, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::{Rig, agent, full_client};

fn update(line: &Value) -> &Value {
    &line["params"]["update"]
}

#[tokio::test(start_paused = true)]
async fn the_life_of_a_tool_call() {
    // shows TOOL-01, TOOL-03, TOOL-05, TOOL-06, TOOL-08, TOOL-09, TOOL-10, TOOL-11, TOOL-14,
    // TOOL-15, TOOL-18, TOOL-19, TOOL-20, EXT-02
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                let tool = turn
                    .tool("Edit a file")
                    .id("t1")
                    .kind(ToolKind::Edit)
                    .name("edit")
                    .input(Json::new(&"any JSON").unwrap())
                    .location("/work/a", Some(0))
                    .edit(Edit::add("/work/a", "new"))
                    .start()
                    .await?;
                tool.run().await?;
                tool.show([block("half way")]).await?;
                tool.update(tool.change().title("Edited".to_owned())).await?;
                tool.complete([Edit::modify("/work/a", "old", "new").into()]).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.prompt("p", "s1", "").await;
    rig.expect_update("s1", json!({
        "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Edit a file", "name": "edit", "kind": "edit",
        "status": "pending", "content": [{"type": "diff", "path": "/work/a", "newText": "new"}],
        "locations": [{"path": "/work/a", "line": 1}], "rawInput": "any JSON",
    }))
    .await;
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "in_progress"}),
    )
    .await;
    let half = json!([{"type": "content", "content": {"type": "text", "text": "half way"}}]);
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "content": half}),
    )
    .await;
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "Edited"}),
    )
    .await;
    let done = json!([{"type": "diff", "path": "/work/a", "oldText": "old", "newText": "new"}]);
    rig.expect_update("s1", json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "content": done})).await;
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn every_call_has_an_id_and_an_end() {
    // shows TOOL-02, TOOL-10
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                let kept = turn.tool("kept").start().await?;
                drop(turn.tool("dropped").start().await?);
                turn.tool("failed").start().await?.fail("no").await?;
                let plain = turn.tool("ended by a plain update").start().await?;
                plain.update(plain.change().status(ToolStatus::Completed)).await?;
                // an update is about its own call, whatever it says
                kept.update(ToolCallUpdate::new("someone else's").title("still kept".to_owned())).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    let mut ids = std::collections::HashSet::new();
    for id in ["p", "q"] {
        rig.prompt(id, "s1", "").await;
        let mut states = std::collections::HashMap::new();
        loop {
            let line = rig.client.line().await;
            if line["id"] == id {
                break;
            }
            let call = update(&line);
            let name = call["toolCallId"].as_str().unwrap().to_owned();
            match call["sessionUpdate"].as_str().unwrap() {
                "tool_call" => {
                    assert!(ids.insert(name.clone()) && states.insert(name, "open".to_owned()).is_none())
                }
                _ if call["status"].is_string() => {
                    let ended = states.insert(name, call["status"].as_str().unwrap().to_owned());
                    assert_eq!(ended.as_deref(), Some("open"), "ended twice");
                }
                _ => assert!(states.contains_key(&name)),
            }
        }
        let mut ends: Vec<_> = states.values().map(String::as_str).collect();
        ends.sort_unstable();
        assert_eq!(ends, ["completed", "failed", "failed", "failed"]);
    }
    assert_eq!(ids.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn paths_are_absolute() {
    // shows ROOT-04, FS-04, TERM-13, TOOL-15, TOOL-18
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                assert!(turn.tool("x").location("a", None).start().await.is_err());
                assert!(turn.tool("x").edit(Edit::add("a", "")).start().await.is_err());
                let tool = turn.tool("x").start().await?;
                assert!(tool.show([Edit::add("a", "").into()]).await.is_err());
                assert!(
                    tool.update(tool.change().locations(vec![ToolCallLocation::new("a")])).await.is_err()
                );
                let (read, write) = (turn.read_files().unwrap(), turn.write_files().unwrap());
                assert!(read.read("a").await.is_err());
                assert!(read.read_lines("../a", None, None).await.is_err());
                assert!(write.write("a", "").await.is_err());
                assert!(turn.terminals().unwrap().command("ls").cwd("a").start().await.is_err());
                tool.complete([]).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        full_client(),
    )
    .await;
    rig.prompt("p", "s1", "").await;
    assert_eq!(update(&rig.client.line().await)["sessionUpdate"], "tool_call");
    assert_eq!(update(&rig.client.line().await)["status"], "completed");
    rig.expect_end("p", "end_turn").await;
}

/// Asks once and says what came of it; a tool that was not allowed is reported as failed.
fn asker() -> Agent {
    agent(|turn, _| {
        Box::pin(async move {
            let tool = turn.tool("rm -rf").id("t1").kind(ToolKind::Execute).start().await?;
            assert!(turn.ask(&tool, Vec::new()).await.is_err());
            let choice = turn.ask(&tool, usual_options()).await?;
            assert_eq!(choice.option().is_none(), choice == Choice::Undecided);
            if !choice.is_allowed() {
                tool.fail("not allowed").await?;
                turn.say(if choice == Choice::Undecided { "undecided" } else { "rejected" }).await?;
                return Ok(StopReason::EndTurn);
            }
            tool.run().await?;
            tool.complete([]).await?;
            turn.say("ran").await?;
            Ok(StopReason::EndTurn)
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_permission_on_the_wire() {
    // shows PERM-01, PERM-02, PERM-03, PERM-13, PERM-16: nothing runs before the answer
    let mut rig = Rig::open(asker(), json!({})).await;
    rig.prompt("p", "s1", "").await;
    rig.client.expect("session/update").await;
    let ask = rig.client.expect("session/request_permission").await;
    assert_eq!(
        ask["params"],
        json!({
            "sessionId": "s1",
            "toolCall": {"toolCallId": "t1", "title": "rm -rf", "kind": "execute", "status": "pending"},
            "options": [
                {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
                {"optionId": "allow-always", "name": "Always allow", "kind": "allow_always"},
                {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
                {"optionId": "reject-always", "name": "Always reject", "kind": "reject_always"},
            ],
        })
    );
    rig.client.expect_silence().await;
    rig.client.answer(&ask, json!({"outcome": {"outcome": "selected", "optionId": "allow"}})).await;
    assert_eq!(update(&rig.client.line().await)["status"], "in_progress");
    assert_eq!(update(&rig.client.line().await)["status"], "completed");
    rig.expect_text("s1", "ran").await;
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn only_an_offered_option_is_an_approval() {
    // shows PERM-04, PERM-09, PERM-10, CANCEL-22
    let mut rig = Rig::open(asker(), json!({})).await;
    let selected = |id: &str| json!({"outcome": {"outcome": "selected", "optionId": id}});
    let answers = [
        (selected("allow"), "ran"),
        (selected("allow-always"), "ran"),
        (selected("reject"), "rejected"),
        (selected("reject-always"), "rejected"),
        (selected("ghost"), "undecided"),
        (json!({"outcome": {"outcome": "cancelled"}}), "undecided"),
        (json!({"outcome": {"outcome": "_future", "optionId": "allow"}}), "undecided"),
        (json!({"outcome": "selected", "optionId": "allow"}), "undecided"),
        (json!({"outcome": null}), "undecided"),
        (json!({}), "undecided"),
        (json!(null), "undecided"),
        (json!(true), "undecided"),
    ];
    for (answer, expected) in answers {
        rig.prompt("p", "s1", "").await;
        rig.client.expect("session/update").await;
        let ask = rig.client.expect("session/request_permission").await;
        rig.client.answer(&ask, answer).await;
        if expected == "ran" {
            rig.client.expect("session/update").await;
        }
        let end = rig.client.line().await;
        assert_eq!(update(&end)["status"], if expected == "ran" { "completed" } else { "failed" });
        rig.expect_text("s1", expected).await;
        rig.expect_end("p", "end_turn").await;
    }
    for code in [-32601, -32603, -32800, 400, -31999] {
        rig.prompt("p", "s1", "").await;
        rig.client.expect("session/update").await;
        let ask = rig.client.expect("session/request_permission").await;
        rig.client.refuse(&ask, code, "{\"error\":\"as JSON\"}").await;
        assert_eq!(update(&rig.client.line().await)["status"], "failed");
        rig.expect_text("s1", "undecided").await;
        rig.expect_end("p", "end_turn").await;
    }
}

#[tokio::test(start_paused = true)]
async fn several_permissions_at_once() {
    // shows PERM-12
    let mut rig = Rig::open(
        agent(|turn, _| {
            Box::pin(async move {
                let [a, b] = [turn.tool("a").start().await?, turn.tool("b").start().await?];
                let (a, b) = tokio::join!(turn.ask(&a, usual_options()), turn.ask(&b, usual_options()));
                turn.say(format!("{} {}", a?.is_allowed(), b?.is_allowed())).await?;
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    rig.prompt("p", "s1", "").await;
    rig.client.expect("session/update").await;
    rig.client.expect("session/update").await;
    let first = rig.client.expect("session/request_permission").await;
    let second = rig.client.expect("session/request_permission").await;
    assert_eq!([&first["id"], &second["id"]], [0, 1]);
    rig.client.answer(&second, json!({"outcome": {"outcome": "selected", "optionId": "reject"}})).await;
    rig.client.answer(&first, json!({"outcome": {"outcome": "selected", "optionId": "allow"}})).await;
    rig.expect_text("s1", "true false").await;
}

async fn files(turn: Turn<'_>) -> Result<StopReason> {
    let (read, write) = (turn.read_files().unwrap(), turn.write_files().unwrap());
    let whole = read.read("/work/a").await?;
    let lines = read.read_lines("/work/a", Some(0), Some(2)).await?;
    write.write("/work/b", format!("{whole}{lines}")).await?;
    write.write("/work/c", "").await?;
    match read.read("/gone").await {
        Err(Error::Refused(error)) => turn.say(error.code.to_string()).await?,
        other => panic!("{other:?}"),
    }
    match read.read("/odd").await {
        Err(Error::Decode { method, .. }) => turn.say(method).await?,
        other => panic!("{other:?}"),
    }
    Ok(StopReason::EndTurn)
}

#[tokio::test(start_paused = true)]
async fn files_on_the_wire() {
    // shows FS-04, FS-05, FS-07, RPC-16, RPC-22, TOOL-22
    let mut rig = Rig::open(agent(|turn, _| Box::pin(files(turn))), full_client()).await;
    rig.prompt("p", "s1", "").await;
    let request = rig.client.expect("fs/read_text_file").await;
    assert_eq!(request["params"], json!({"sessionId": "s1", "path": "/work/a"}));
    rig.client.answer(&request, json!({"content": "all "})).await;
    let request = rig.client.expect("fs/read_text_file").await;
    assert_eq!(request["params"], json!({"sessionId": "s1", "path": "/work/a", "line": 1, "limit": 2}));
    rig.client.answer(&request, json!({"content": "two"})).await;
    let request = rig.client.expect("fs/write_text_file").await;
    assert_eq!(request["params"], json!({"sessionId": "s1", "path": "/work/b", "content": "all two"}));
    rig.client.answer(&request, json!(null)).await;
    let request = rig.client.expect("fs/write_text_file").await;
    rig.client.answer(&request, json!({"_meta": {"a": 1}})).await;
    let request = rig.client.expect("fs/read_text_file").await;
    rig.client.refuse(&request, -32002, "no such file").await;
    rig.expect_text("s1", "-32002").await;
    let request = rig.client.expect("fs/read_text_file").await;
    rig.client.answer(&request, json!(null)).await;
    rig.expect_text("s1", "fs/read_text_file").await;
    rig.expect_end("p", "end_turn").await;
}

async fn terminal(turn: Turn<'_>) -> Result<StopReason> {
    let terminal = turn
        .terminals()
        .unwrap()
        .command("cargo")
        .args(["test", "-q"])
        .env("A", "b")
        .cwd("/work")
        .output_limit(1000)
        .start()
        .await?;
    let tool = turn.tool("test").id("t1").start().await?;
    tool.show_terminal(&terminal).await?;
    let exit = terminal.wait().await?;
    let output = terminal.output().await?;
    terminal.kill().await?;
    turn.say(format!("{:?} {}", exit.exit_code, output.output)).await?;
    terminal.release().await?;
    tool.complete([]).await?;
    Ok(StopReason::EndTurn)
}

#[tokio::test(start_paused = true)]
async fn a_terminal_on_the_wire() {
    // shows TERM-05, TERM-13, TOOL-16
    let mut rig = Rig::open(agent(|turn, _| Box::pin(terminal(turn))), full_client()).await;
    rig.prompt("p", "s1", "").await;
    let create = rig.client.expect("terminal/create").await;
    assert_eq!(
        create["params"],
        json!({
            "sessionId": "s1", "command": "cargo", "args": ["test", "-q"], "env": [{"name": "A", "value": "b"}],
            "cwd": "/work", "outputByteLimit": 1000,
        })
    );
    rig.client.answer(&create, json!({"terminalId": "T"})).await;
    rig.client.expect("session/update").await;
    let embedded = json!([{"type": "terminal", "terminalId": "T"}]);
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "content": embedded}),
    )
    .await;
    let here = json!({"sessionId": "s1", "terminalId": "T"});
    let answers = [
        ("terminal/wait_for_exit", json!({"exitCode": 7})),
        ("terminal/output", json!({"output": "text", "truncated": false})),
        ("terminal/kill", json!(null)),
    ];
    for (method, answer) in answers {
        let request = rig.client.expect(method).await;
        assert_eq!(request["params"], here);
        rig.client.answer(&request, answer).await;
    }
    rig.expect_text("s1", "Some(7) text").await;
    let release = rig.client.expect("terminal/release").await;
    assert_eq!(release["params"], here);
    rig.client.answer(&release, json!(null)).await;
    assert_eq!(update(&rig.client.line().await)["status"], "completed");
    rig.expect_end("p", "end_turn").await;
    rig.assert_responsive().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_is_released_once_however_it_goes() {
    // shows TERM-05
    let mut rig = Rig::open(
        agent(|turn, prompt| {
            Box::pin(async move {
                let terminal = turn.terminals().unwrap().command("x").start().await?;
                match &*prompt.text() {
                    "drop" => drop(terminal),
                    "error" => return Err(Error::internal("x")),
                    "panic" => panic!("x"),
                    "release, unpolled" => drop(terminal.release()),
                    "release, refused" => assert!(terminal.release().await.is_err()),
                    "release, not awaited" => {
                        let waiting =
                            tokio::time::timeout(std::time::Duration::from_millis(1), terminal.release());
                        assert!(waiting.await.is_err());
                    }
                    _ => {}
                }
                Ok(StopReason::EndTurn)
            })
        }),
        full_client(),
    )
    .await;
    for how in ["drop", "error", "panic", "release, unpolled", "release, refused", "release, not awaited"] {
        rig.prompt("p", "s1", how).await;
        let create = rig.client.expect("terminal/create").await;
        rig.client.answer(&create, json!({"terminalId": "T"})).await;
        let release = rig.client.expect("terminal/release").await;
        if how == "release, refused" {
            rig.client.refuse(&release, -32002, "gone").await;
        }
        // a release is never taken back
        assert_eq!(rig.client.line().await["id"], "p", "{how}");
        if how != "release, refused" {
            rig.client.answer(&release, json!({})).await;
        }
        rig.assert_responsive().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_may_outlive_its_turn() {
    // shows TERM-05, TERM-10
    let kept: Arc<Mutex<Option<ClientTerminal>>> = Arc::default();
    let keep = kept.clone();
    let mut rig = Rig::open(
        agent(move |turn, _| {
            let keep = keep.clone();
            Box::pin(async move {
                let known = keep.lock().unwrap().take();
                let terminal = match known {
                    Some(terminal) => terminal,
                    None => turn.terminals().unwrap().command("npm").start().await?,
                };
                assert_eq!(terminal.id(), &"T");
                turn.say(terminal.output().await?.output).await?;
                *keep.lock().unwrap() = Some(terminal);
                Ok(StopReason::EndTurn)
            })
        }),
        full_client(),
    )
    .await;
    for turn in 0..2 {
        rig.prompt("p", "s1", "").await;
        if turn == 0 {
            let create = rig.client.expect("terminal/create").await;
            rig.client.answer(&create, json!({"terminalId": "T"})).await;
        }
        let output = rig.client.expect("terminal/output").await;
        rig.client.answer(&output, json!({"output": "so far", "truncated": true})).await;
        rig.expect_text("s1", "so far").await;
        rig.expect_end("p", "end_turn").await;
    }
    // by default waiting ends with the turn
    let terminal = kept.lock().unwrap().take().unwrap();
    let waited = tokio::time::timeout(std::time::Duration::from_secs(1), terminal.wait()).await;
    assert!(matches!(waited, Ok(Err(Error::Cancelled))));
    let terminal = terminal.into_background();
    let waiting = tokio::spawn(async move { terminal.wait().await.map(|exit| (exit, terminal)) });
    let wait = rig.client.expect("terminal/wait_for_exit").await;
    rig.client.answer(&wait, json!({"exitCode": null, "signal": "SIGTERM"})).await;
    let (exit, terminal) = waiting.await.unwrap().unwrap();
    assert_eq!(exit.signal.as_deref(), Some("SIGTERM"));
    drop(terminal);
    rig.client.expect("terminal/release").await;
}

/// Asks for a form and a link and says what came of it.
fn elicitor() -> Agent {
    agent(|turn, prompt| {
        Box::pin(async move {
            let tool = turn.tool("t").id("t1").start().await?;
            let asked = match &*prompt.text() {
                "form" => turn.forms().unwrap().ask("who?", ElicitationSchema::new()).await,
                "form of a tool" => {
                    turn.forms().unwrap().about(&tool).ask("who?", ElicitationSchema::new()).await
                }
                _ => turn.links().unwrap().ask("log in", "e1", "https://example.org").await,
            };
            tool.complete([]).await?;
            let said = match asked {
                Ok(answer) => match answer.action {
                    ElicitationAction::Accept(_) => "accepted".to_owned(),
                    ElicitationAction::Decline => "declined".to_owned(),
                    ElicitationAction::Cancel => "cancelled".to_owned(),
                    _ => "unknown".to_owned(),
                },
                Err(Error::Refused(error)) => error.code.to_string(),
                Err(error) => return Err(error),
            };
            turn.say(said).await?;
            if let Some(links) = turn.links() {
                links.complete("e1").await?;
            }
            Ok(StopReason::EndTurn)
        })
    })
}

#[tokio::test(start_paused = true)]
async fn elicitations_on_the_wire() {
    // shows ELIC-04, ELIC-05, ELIC-20, ELIC-23, ELIC-33, ELIC-34
    let mut rig = Rig::open(elicitor(), full_client()).await;
    let schema = json!({"type": "object"});
    let kinds = [
        ("form", json!({"sessionId": "s1", "mode": "form", "message": "who?", "requestedSchema": schema})),
        (
            "form of a tool",
            json!({"sessionId": "s1", "toolCallId": "t1", "mode": "form", "message": "who?", "requestedSchema": schema}),
        ),
        (
            "url",
            json!({"sessionId": "s1", "mode": "url", "message": "log in", "elicitationId": "e1", "url": "https://example.org"}),
        ),
    ];
    for (kind, params) in kinds {
        let answers = [
            (json!({"action": "accept", "content": {}}), "accepted"),
            (json!({"action": "decline"}), "declined"),
            (json!({"action": "cancel"}), "cancelled"),
            (json!({"action": "_later"}), "unknown"),
            (json!({}), "cancelled"),
            (json!(null), "cancelled"),
        ];
        for (answer, expected) in answers {
            rig.prompt("p", "s1", kind).await;
            rig.client.expect("session/update").await;
            let ask = rig.client.expect("elicitation/create").await;
            assert_eq!(ask["params"], params);
            rig.client.answer(&ask, answer).await;
            rig.client.expect("session/update").await;
            rig.expect_text("s1", expected).await;
            let complete = rig.client.expect("elicitation/complete").await;
            assert_eq!(complete["params"], json!({"elicitationId": "e1"}));
            rig.expect_end("p", "end_turn").await;
        }
        rig.prompt("p", "s1", kind).await;
        rig.client.expect("session/update").await;
        let ask = rig.client.expect("elicitation/create").await;
        rig.client.refuse(&ask, -32042, "withdrawn").await;
        rig.client.expect("session/update").await;
        rig.expect_text("s1", "-32042").await;
        rig.client.expect("elicitation/complete").await;
        rig.expect_end("p", "end_turn").await;
    }
}
