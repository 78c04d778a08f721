//! Background work, and tool calls and terminals that the client cancels alone.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, BackgroundTool, TerminalExit};
use attache::{Error, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::{Rig, agent};
use crate::agent_v2::open;

/// An agent whose turns leave a call `t` in the background, and the call.
fn background() -> (Agent, Arc<Mutex<Option<BackgroundTool>>>) {
    let work: Arc<Mutex<Option<BackgroundTool>>> = Arc::default();
    let kept = work.clone();
    let agent = agent(move |turn, prompt| {
        let kept = kept.clone();
        Box::pin(async move {
            match &*prompt.text() {
                "start" => {
                    let tool = turn.tool("Watch").id("t").cancellable().start().await?;
                    *kept.lock().unwrap() = Some(tool.into_background()?);
                }
                "wait" => turn.cancellation().cancelled().await,
                _ => {}
            }
            Ok(StopReason::EndTurn)
        })
    });
    (agent, work)
}

fn listed(ids: &[&str]) -> Value {
    ids.iter().map(|id| json!({"type": "tool_call", "toolCallId": id})).collect()
}

async fn start(rig: &mut Rig) {
    rig.prompt("p", "s1", "start").await;
    rig.inserted("p", "start").await;
    assert_eq!(rig.update().await["toolCallId"], "t", "announced before it is listed");
    assert_eq!(rig.state("running").await["background"], listed(&["t"]));
    assert_eq!(rig.idle("end_turn").await["background"], listed(&["t"]));
}

#[tokio::test(start_paused = true)]
async fn background_work_is_listed_and_outlives_turns() {
    // shows V2-15, V2-36
    let (agent, work) = background();
    let mut rig = open(agent).await;
    start(&mut rig).await;
    rig.prompt("p", "s1", "wait").await;
    rig.update().await;
    rig.client.result("p").await;
    assert_eq!(rig.state("running").await["background"], listed(&["t"]));
    rig.cancel("s1").await;
    assert_eq!(rig.idle("cancelled").await["background"], listed(&["t"]));
    let work = work.lock().unwrap().take().unwrap();
    assert!(!work.cancellation().is_cancelled());
    // It speaks while no turn runs.
    work.message().say("built").await.unwrap();
    let said = rig.update().await;
    assert_eq!(
        (&said["sessionUpdate"], &said["content"]["text"]),
        (&json!("agent_message_chunk"), &json!("built"))
    );
    work.run().await.unwrap();
    assert_eq!(rig.update().await["status"], "in_progress");
    work.complete([]).await.unwrap();
    assert_eq!(rig.update().await["status"], "completed", "finished before it leaves the list");
    let idle = rig.state("idle").await;
    assert_eq!(idle["background"], json!([]));
    assert!(idle.get("stopReason").is_none(), "no new completion: {idle}");
    rig.prompt("p", "s1", "nothing").await;
    rig.update().await;
    rig.client.result("p").await;
    assert_eq!(rig.state("running").await["background"], json!([]));
    assert_eq!(rig.idle("end_turn").await["background"], json!([]));
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn background_work_ends_with_the_session() {
    // shows V2-28
    let (agent, work) = background();
    let mut rig = open(agent.clone()).await;
    start(&mut rig).await;
    rig.client.request("c", "session/close", json!({"sessionId": "s1"})).await;
    let held = work.lock().unwrap().take().unwrap();
    held.cancellation().cancelled().await;
    held.cancel().await.unwrap();
    assert_eq!(rig.update().await["status"], "cancelled");
    assert_eq!(rig.state("idle").await["background"], json!([]));
    assert_eq!(rig.client.result("c").await, json!({}));
    rig.disconnect().await;

    // Work that does not end is given up.
    let (agent, work) = background();
    let mut rig = open(agent).await;
    start(&mut rig).await;
    rig.client.request("c", "session/close", json!({"sessionId": "s1"})).await;
    assert_eq!(rig.update().await["status"], "cancelled");
    rig.state("idle").await;
    rig.client.result("c").await;
    let held = work.lock().unwrap().take().unwrap();
    assert!(held.run().await.is_err());
    drop(held);
    rig.client.expect_silence().await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn dropped_work_has_an_end() {
    // shows TOOL-10, V2-36
    let (agent, work) = background();
    let mut rig = open(agent).await;
    start(&mut rig).await;
    drop(work.lock().unwrap().take());
    assert_eq!(rig.update().await["status"], "failed");
    assert_eq!(rig.state("idle").await["background"], json!([]));
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn version_1_keeps_the_turn_open() {
    let (agent, work) = background();
    let mut rig = Rig::open(agent, json!({})).await;
    rig.prompt("p", "s1", "start").await;
    rig.client.expect("session/update").await;
    rig.client.expect_silence().await;
    let held = work.lock().unwrap().take().unwrap();
    held.message().say("built").await.unwrap();
    assert_eq!(rig.client.expect("session/update").await["params"]["update"]["content"]["text"], "built");
    held.complete([]).await.unwrap();
    assert_eq!(rig.client.expect("session/update").await["params"]["update"]["status"], "completed");
    rig.expect_end("p", "end_turn").await;
    // A cancel of the turn cancels it.
    rig.prompt("p", "s1", "start").await;
    rig.client.expect("session/update").await;
    rig.client.expect_silence().await;
    let held = work.lock().unwrap().take().unwrap();
    rig.cancel("s1").await;
    held.cancellation().cancelled().await;
    drop(held);
    assert_eq!(rig.client.expect("session/update").await["params"]["update"]["status"], "failed");
    rig.expect_end("p", "cancelled").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_version_1_that_fails_does_not_wait() {
    let work: Arc<Mutex<Option<BackgroundTool>>> = Arc::default();
    let kept = work.clone();
    let agent = agent(move |turn, _| {
        let kept = kept.clone();
        Box::pin(async move {
            *kept.lock().unwrap() = Some(turn.tool("Watch").start().await?.into_background()?);
            Err(Error::refuse(-31999, "away"))
        })
    });
    let mut rig = Rig::open(agent, json!({})).await;
    rig.prompt("p", "s1", "start").await;
    rig.client.expect("session/update").await;
    assert_eq!(rig.client.expect("session/update").await["params"]["update"]["status"], "failed");
    rig.client.error("p", -31999).await;
    let held = work.lock().unwrap().take().unwrap();
    assert!(held.cancellation().is_cancelled() && held.run().await.is_err());
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_and_a_terminal_are_cancelled_alone() {
    // shows V2-30, V2-31
    let mut rig = open(agent(|turn, _| {
        Box::pin(async move {
            let plain = turn.tool("Plain").id("plain").start().await?;
            let tool = turn.tool("Run").id("t").cancellable().start().await?;
            let terminal = tool.terminal("sleep 9").cancellable().start().await?;
            terminal.cancellation().cancelled().await;
            assert!(!tool.cancellation().is_cancelled());
            terminal.exit(TerminalExit::signal("SIGTERM")).await?;
            tool.cancellation().cancelled().await;
            assert!(!turn.is_cancelled());
            tool.cancel().await?;
            plain.complete([]).await?;
            Ok(StopReason::EndTurn)
        })
    }))
    .await;
    rig.prompt("p", "s1", "hi").await;
    rig.inserted("p", "hi").await;
    assert!(rig.update().await.get("capabilities").is_none());
    assert_eq!(rig.update().await["capabilities"], json!({"cancel": {}}));
    let terminal = rig.update().await["terminalId"].clone();
    rig.update().await;
    let tool = |id: &str| json!({"sessionId": "s1", "toolCallId": id});
    rig.expect_error("tool_call/cancel", tool("plain"), -32602).await;
    rig.expect_error("tool_call/cancel", tool("other"), -32602).await;
    let cancel = json!({"sessionId": "s1", "terminalId": terminal});
    assert_eq!(rig.call("c", "terminal/cancel", cancel.clone()).await, json!({}));
    assert_eq!(rig.update().await["exitStatus"], json!({"signal": "SIGTERM"}));
    rig.expect_error("terminal/cancel", cancel, -32602).await;
    assert_eq!(rig.call("c", "tool_call/cancel", tool("t")).await, json!({}));
    assert_eq!(rig.update().await["status"], "cancelled");
    assert_eq!(rig.update().await["status"], "completed");
    rig.idle("end_turn").await;
    rig.expect_error("tool_call/cancel", tool("t"), -32602).await;
    rig.disconnect().await;
}
