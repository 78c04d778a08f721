//! A cancel at every point of a turn. The answer is always `cancelled`, and always the last word of
//! the turn.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::agent::{Agent, Choice, usual_options};
use attache::{Error, StopReason};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agent_rig::{Rig, agent, full_client, prompt};

/// Plays whatever the prompt's text says.
fn player() -> Agent {
    agent(|turn, prompt| {
        Box::pin(async move {
            match &*prompt.text() {
                "quick" => {}
                "wait" => turn.until_cancelled(std::future::pending::<()>()).await?,
                "say, wait" => {
                    turn.say("one").await?;
                    turn.cancellation().cancelled().await;
                    // CANCEL-04: from here on nothing more goes out
                    turn.say("two").await?;
                }
                "end_turn" => turn.cancellation().cancelled().await,
                "error" => {
                    turn.cancellation().cancelled().await;
                    return Err(Error::refuse(-31000, "aborted"));
                }
                "ignore cancel" => std::future::pending::<()>().await,
                "slow" => {
                    turn.cancellation().cancelled().await;
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                "tool" => {
                    let tool = turn.tool("t").id("t1").start().await?;
                    tool.run().await?;
                    turn.cancellation().cancelled().await;
                    // CANCEL-07: its end may still be reported
                    tool.fail("stopped").await?;
                }
                "late tool" => {
                    turn.cancellation().cancelled().await;
                    // it was never reported, so nothing is to be said about its end
                    turn.tool("t").id("t1").start().await?;
                }
                "late requests" => {
                    let tool = turn.tool("t").id("t1").start().await?;
                    let (files, terminals) = (turn.read_files().unwrap(), turn.terminals().unwrap());
                    turn.cancellation().cancelled().await;
                    assert!(files.read("/x").await.is_err());
                    assert!(turn.ask(&tool, usual_options()).await.is_err());
                    assert!(terminals.command("x").start().await.is_err());
                    tool.complete([]).await?;
                }
                "ask" => {
                    let tool = turn.tool("t").id("t1").start().await?;
                    let choice = turn.ask(&tool, usual_options()).await?;
                    turn.say(if choice == Choice::Undecided { "undecided" } else { "decided" }).await?;
                }
                "read" => {
                    let Some(files) = turn.read_files() else { return Ok(StopReason::Refusal) };
                    turn.say(files.read("/x").await?).await?;
                }
                "terminal" => {
                    let Some(terminals) = turn.terminals() else { return Ok(StopReason::Refusal) };
                    let terminal = terminals.command("sleep").start().await?;
                    terminal.wait().await?;
                }
                "form" => {
                    let Some(forms) = turn.forms() else { return Ok(StopReason::Refusal) };
                    forms.ask("?", Default::default()).await?;
                }
                other => turn.say(other).await?,
            }
            Ok(StopReason::EndTurn)
        })
    })
}

async fn still_serves(rig: &mut Rig) {
    // shows CANCEL-12
    rig.prompt("after", "s1", "fine").await;
    rig.expect_text("s1", "fine").await;
    rig.expect_end("after", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn before_the_first_update() {
    // shows CANCEL-05, CANCEL-12
    let mut rig = Rig::open(player(), json!({})).await;
    rig.prompt("p", "s1", "wait").await;
    rig.assert_responsive().await;
    rig.cancel("s1").await;
    rig.expect_end("p", "cancelled").await;
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_right_after_a_cancel_waits_for_the_cancelled_turn() {
    // shows CANCEL-05, CANCEL-11, CANCEL-12, PROMPT-13
    let mut rig = Rig::open(player(), json!({})).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}});
    let prompts = |id: &str, text: &str| json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": prompt("s1", text)});
    for text in ["wait", "ignore cancel"] {
        rig.prompt("first", "s1", text).await;
        rig.assert_responsive().await;
        rig.client.raw(&format!("{cancel}\n{}", prompts("second", "fine"))).await;
        rig.expect_end("first", "cancelled").await;
        rig.expect_text("s1", "fine").await;
        rig.expect_end("second", "end_turn").await;
    }
    // One that waits is a turn like any other: nothing comes beside it, and it can be cancelled
    // itself.
    rig.prompt("first", "s1", "ignore cancel").await;
    rig.assert_responsive().await;
    rig.client.raw(&format!("{cancel}\n{}", prompts("second", "wait"))).await;
    rig.expect_error("session/prompt", prompt("s1", "beside"), -32600).await;
    rig.client.raw(&format!("{cancel}\n{}", prompts("third", "at last"))).await;
    rig.expect_end("first", "cancelled").await;
    rig.expect_end("second", "cancelled").await;
    rig.expect_text("s1", "at last").await;
    rig.expect_end("third", "end_turn").await;
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_the_same_write_as_the_prompt() {
    // shows CANCEL-04, CANCEL-05
    let mut rig = Rig::open(player(), json!({})).await;
    for text in ["wait", "say, wait", "end_turn", "error", "ignore cancel", "anything"] {
        let prompt =
            json!({"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt("s1", text)});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}});
        rig.client.raw(&format!("{prompt}\n{cancel}")).await;
        rig.expect_end("p", "cancelled").await;
    }
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn between_updates() {
    // shows CANCEL-04, CANCEL-05, CANCEL-06
    let mut rig = Rig::open(player(), json!({})).await;
    rig.prompt("p", "s1", "say, wait").await;
    rig.expect_text("s1", "one").await;
    rig.cancel("s1").await;
    rig.expect_end("p", "cancelled").await;
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_the_handler_makes_of_it() {
    // shows CANCEL-05, CANCEL-06: an ordinary end, an error, and a handler that does not care
    let mut rig = Rig::open(player(), json!({})).await;
    for text in ["end_turn", "error", "slow", "ignore cancel", "late tool"] {
        rig.prompt("p", "s1", text).await;
        rig.assert_responsive().await;
        rig.cancel("s1").await;
        rig.cancel("s1").await;
        rig.expect_end("p", "cancelled").await;
        still_serves(&mut rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_its_token_gets_its_grace_and_no_more() {
    // shows CANCEL-04
    let mut rig = Rig::open(player().cancel_grace(Duration::from_millis(100)), json!({})).await;
    for (text, least, most) in [("ignore cancel", 100, 110), ("slow", 100, 110), ("wait", 0, 10)] {
        rig.prompt("p", "s1", text).await;
        rig.assert_responsive().await;
        let begin = tokio::time::Instant::now();
        rig.cancel("s1").await;
        rig.expect_end("p", "cancelled").await;
        let took = begin.elapsed().as_millis();
        assert!((least..most).contains(&took), "{text} took {took} ms of the paused clock");
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_tool_runs() {
    // shows CANCEL-07, CANCEL-08, TOOL-10
    let mut rig = Rig::open(player(), json!({})).await;
    rig.prompt("p", "s1", "tool").await;
    rig.client.expect("session/update").await;
    rig.client.expect("session/update").await;
    rig.cancel("s1").await;
    let line = rig.client.expect("session/update").await;
    assert_eq!(line["params"]["update"]["status"], "failed");
    assert_eq!(line["params"]["update"]["content"][0]["content"]["text"], "stopped");
    rig.expect_end("p", "cancelled").await;
    still_serves(&mut rig).await;
}

/// Cancels while a request of the agent waits; gives back that request.
async fn cancelled_while(rig: &mut Rig, text: &str, method: &str) -> Value {
    rig.prompt("p", "s1", text).await;
    let mut line = rig.client.line().await;
    while line["method"] == "session/update" {
        line = rig.client.line().await;
    }
    assert_eq!(line["method"], method);
    rig.cancel("s1").await;
    let taken_back = rig.client.expect("$/cancel_request").await;
    assert_eq!(taken_back["params"]["requestId"], line["id"]);
    line
}

#[tokio::test(start_paused = true)]
async fn while_a_permission_waits() {
    // shows CANCEL-05, CANCEL-13, CANCEL-22, PERM-13: the turn does not wait for the client's
    // answer
    let mut rig = Rig::open(player(), json!({})).await;
    for answer in ["cancelled", "selected", "error", "none"] {
        let ask = cancelled_while(&mut rig, "ask", "session/request_permission").await;
        let failed = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"});
        rig.expect_update("s1", failed).await;
        rig.expect_end("p", "cancelled").await;
        // a late answer is ignored
        match answer {
            "cancelled" => rig.client.answer(&ask, json!({"outcome": {"outcome": "cancelled"}})).await,
            "selected" => {
                let outcome = json!({"outcome": "selected", "optionId": "allow"});
                rig.client.answer(&ask, json!({"outcome": outcome})).await;
            }
            "error" => rig.client.refuse(&ask, -32800, "cancelled").await,
            _ => {}
        }
        still_serves(&mut rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_permission_refused_before_the_cancel_arrives() {
    // shows CANCEL-22, PERM-09
    let mut rig = Rig::open(player(), json!({})).await;
    rig.prompt("p", "s1", "ask").await;
    rig.client.expect("session/update").await;
    let ask = rig.client.expect("session/request_permission").await;
    let refusal =
        json!({"jsonrpc": "2.0", "id": ask["id"], "error": {"code": -32800, "message": "cancelled"}});
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s1"}});
    rig.client.raw(&format!("{refusal}\n{cancel}")).await;
    rig.client.expect("session/update").await;
    rig.expect_end("p", "cancelled").await;
    // without a cancel it is no approval, and the turn continues
    rig.prompt("p", "s1", "ask").await;
    rig.client.expect("session/update").await;
    let ask = rig.client.expect("session/request_permission").await;
    rig.client.refuse(&ask, -32800, "cancelled").await;
    rig.expect_text("s1", "undecided").await;
    rig.client.expect("session/update").await;
    rig.expect_end("p", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn while_a_file_or_a_form_is_waited_for() {
    // shows CANCEL-04, CANCEL-05
    let mut rig = Rig::open(player(), full_client()).await;
    for (text, method) in [("read", "fs/read_text_file"), ("form", "elicitation/create")] {
        let request = cancelled_while(&mut rig, text, method).await;
        rig.expect_end("p", "cancelled").await;
        rig.client.refuse(&request, -32800, "cancelled").await;
        still_serves(&mut rig).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_afterwards() {
    // shows CANCEL-04: not even to be taken back at once
    let mut rig = Rig::open(player(), full_client()).await;
    rig.prompt("p", "s1", "late requests").await;
    rig.client.expect("session/update").await;
    rig.cancel("s1").await;
    rig.expect_update(
        "s1",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}),
    )
    .await;
    rig.expect_end("p", "cancelled").await;
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_terminal_is_made() {
    // shows TERM-05: the terminal that comes too late is released
    let mut rig = Rig::open(player(), full_client()).await;
    rig.prompt("p", "s1", "terminal").await;
    let create = rig.client.expect("terminal/create").await;
    rig.cancel("s1").await;
    rig.expect_end("p", "cancelled").await;
    rig.client.answer(&create, json!({"terminalId": "T"})).await;
    let release = rig.client.expect("terminal/release").await;
    assert_eq!(release["params"], json!({"sessionId": "s1", "terminalId": "T"}));
    rig.client.answer(&release, json!(null)).await;
    // and one that was not made after all is not
    rig.prompt("p", "s1", "terminal").await;
    let create = rig.client.expect("terminal/create").await;
    rig.cancel("s1").await;
    rig.expect_end("p", "cancelled").await;
    rig.client.refuse(&create, -32603, "no").await;
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_terminal_runs() {
    // shows TERM-05: released by the drop of the handler, before the answer
    let mut rig = Rig::open(player(), full_client()).await;
    rig.prompt("p", "s1", "terminal").await;
    let create = rig.client.expect("terminal/create").await;
    rig.client.answer(&create, json!({"terminalId": "T"})).await;
    let wait = rig.client.expect("terminal/wait_for_exit").await;
    rig.cancel("s1").await;
    let taken_back = rig.client.expect("$/cancel_request").await;
    assert_eq!(taken_back["params"]["requestId"], wait["id"]);
    let release = rig.client.expect("terminal/release").await;
    rig.expect_end("p", "cancelled").await;
    rig.client.answer(&release, json!({})).await;
    rig.client.refuse(&wait, -32800, "cancelled").await;
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn after_the_answer_and_when_idle() {
    // shows CANCEL-10, CANCEL-20, RPC-04: nothing happens, and the next turn is not touched
    let mut rig = Rig::open(player(), json!({})).await;
    rig.cancel("s1").await;
    rig.cancel("ghost").await;
    for params in [json!({}), json!({"sessionId": 5}), json!(5), json!(null), json!(["s1"])] {
        rig.client.notify("session/cancel", params).await;
    }
    rig.assert_responsive().await;
    rig.prompt("p", "s1", "quick").await;
    rig.expect_end("p", "end_turn").await;
    rig.cancel("s1").await;
    rig.client.notify("$/cancel_request", json!({"requestId": "p"})).await;
    rig.prompt("q", "s1", "ask").await;
    rig.client.expect("session/update").await;
    let ask = rig.client.expect("session/request_permission").await;
    rig.client.answer(&ask, json!({"outcome": {"outcome": "selected", "optionId": "allow"}})).await;
    rig.expect_text("s1", "decided").await;
    rig.client.expect("session/update").await;
    rig.expect_end("q", "end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn only_its_own_session() {
    // shows CANCEL-11
    let mut rig = Rig::open(player(), json!({})).await;
    rig.new_session("s2").await;
    rig.prompt("a", "s1", "wait").await;
    rig.prompt("b", "s2", "wait").await;
    rig.cancel("s2").await;
    rig.expect_end("b", "cancelled").await;
    rig.client.expect_silence().await;
    rig.cancel("s1").await;
    rig.expect_end("a", "cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn by_the_request_itself() {
    // shows CANCEL-15, CANCEL-16, CANCEL-20, CANCEL-21, CANCEL-23
    let mut rig = Rig::open(player(), json!({})).await;
    rig.client.request(0, "session/prompt", prompt("s1", "ask")).await;
    rig.client.expect("session/update").await;
    let ask = rig.client.expect("session/request_permission").await;
    assert_eq!(ask["id"], 0, "both sides count from 0");
    // the sender's own request 0 is the prompt, not the permission
    rig.client.notify("$/cancel_request", json!({"requestId": 0})).await;
    let taken_back = rig.client.expect("$/cancel_request").await;
    assert_eq!(taken_back["params"]["requestId"], 0);
    rig.client.expect("session/update").await;
    assert_eq!(rig.client.result(0).await, json!({"stopReason": "cancelled"}));
    rig.client.notify("$/cancel_request", json!({"requestId": 0})).await;
    rig.client.answer(&ask, json!({"outcome": {"outcome": "cancelled"}})).await;
    rig.client.expect_silence().await;
    still_serves(&mut rig).await;
}

#[tokio::test(start_paused = true)]
async fn many_times_at_any_moment() {
    // shows CANCEL-05, CANCEL-08, CANCEL-12: whichever of the two is first, each prompt has one
    // answer, and it comes last
    let gate = Arc::new(Notify::new());
    let seen = Arc::new(Mutex::new(0));
    let (inner_gate, inner_seen) = (gate.clone(), seen.clone());
    let mut rig = Rig::open(
        agent(move |turn, _| {
            let (gate, seen) = (inner_gate.clone(), inner_seen.clone());
            Box::pin(async move {
                for n in 0..20 {
                    turn.say(n.to_string()).await?;
                    if n % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                *seen.lock().unwrap() += 1;
                gate.notify_one();
                Ok(StopReason::EndTurn)
            })
        }),
        json!({}),
    )
    .await;
    for round in 0..60 {
        let id = format!("p{round}");
        rig.prompt(&id, "s1", "").await;
        for _ in 0..round % 9 {
            tokio::task::yield_now().await;
        }
        rig.cancel("s1").await;
        loop {
            let line = rig.client.line().await;
            if line["method"] == "session/update" {
                continue;
            }
            assert_eq!(line["id"], id.as_str());
            let reason = line["result"]["stopReason"].as_str().unwrap().to_owned();
            assert!(reason == "cancelled" || reason == "end_turn");
            break;
        }
        rig.assert_responsive().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_handled_while_the_client_does_not_read() {
    // shows CANCEL-04: the handler waits for room, and the cancel ends that wait
    let done = Arc::new(Notify::new());
    let inner = done.clone();
    let mut rig = Rig::open(
        agent(move |turn, _| {
            let done = inner.clone();
            Box::pin(async move {
                let text = "x".repeat(10_000);
                let ended = loop {
                    if let Err(error) = turn.say(&text).await {
                        break error;
                    }
                };
                done.notify_one();
                Err(ended)
            })
        }),
        json!({}),
    )
    .await;
    rig.prompt("p", "s1", "").await;
    rig.client.raw("").await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    rig.cancel("s1").await;
    done.notified().await;
    loop {
        let line = rig.client.line().await;
        if line["id"] == "p" {
            assert_eq!(line["result"]["stopReason"], "cancelled");
            break;
        }
    }
}
