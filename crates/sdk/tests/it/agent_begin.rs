//! How handlers begin: on a runtime with one thread in the reader, elsewhere in a task.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;

use attache::agent::{Agent, OpenRequest, OpenedSession};
use attache::wire::v1::SessionUpdate;
use attache::{Error, Result, StopReason};
use serde_json::json;
use tokio::sync::Notify;

use crate::agent_rig::{Acts, Rig, acts, new};

fn idle() -> Acts {
    acts(|_, _| Box::pin(async { Ok(StopReason::EndTurn) }))
}

fn at(cwd: &str) -> serde_json::Value {
    json!({"cwd": cwd, "mcpServers": []})
}

/// Opens a session in the way that the directory says.
async fn open(request: OpenRequest, gate: Arc<Notify>) -> Result<OpenedSession<Acts>> {
    match request.cwd.to_str() {
        Some("/panic") => panic!("before anything was awaited"),
        Some("/error") => return Err(Error::internal("no")),
        Some("/wait") => gate.notified().await,
        Some("/open") => gate.notify_one(),
        Some("/yield") => tokio::task::yield_now().await,
        Some("/later/panic") => {
            tokio::task::yield_now().await;
            panic!("after something was awaited");
        }
        Some("/early") => request.session.send(SessionUpdate::agent_message("early")).await?,
        _ => {}
    }
    Ok(OpenedSession::new(idle()).id(format!("in{}", request.cwd.display())))
}

fn agent() -> Agent {
    let gate = Arc::new(Notify::new());
    Agent::new(move |request| open(request, gate.clone()))
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_fails_one_request() {
    let called = Agent::new(|request: OpenRequest| {
        assert!(!request.cwd.ends_with("call"), "in the function itself");
        open(request, Arc::default())
    });
    let mut rig = Rig::initialized(called, json!({})).await;
    for cwd in ["/call", "/panic", "/later/panic", "/error"] {
        rig.expect_error("session/new", at(cwd), -32603).await;
        rig.assert_responsive().await;
    }
    assert_eq!(rig.call("n", "session/new", at("/x")).await, json!({"sessionId": "in/x"}));
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_lets_others_go_first() {
    let mut rig = Rig::initialized(agent(), json!({})).await;
    rig.client.request(1, "session/new", at("/wait")).await;
    rig.client.request(2, "session/new", at("/yield")).await;
    rig.client.request(3, "session/new", at("/x")).await;
    // The first one was polled before, with a waker that does nothing; its task has polled it
    // again.
    rig.client.request(4, "session/new", at("/open")).await;
    let mut answered = Vec::new();
    for _ in 0..4 {
        let line = rig.client.line().await;
        assert!(line["result"]["sessionId"].is_string(), "{line}");
        answered.push(line["id"].as_u64().unwrap());
    }
    assert_eq!(answered.iter().position(|id| *id == 3), Some(0), "{answered:?}");
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3, 4]);
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_can_be_cancelled() {
    // shows CANCEL-15, CANCEL-16
    let mut rig = Rig::initialized(agent(), json!({})).await;
    rig.client.request("w", "session/new", at("/wait")).await;
    rig.client.notify("$/cancel_request", json!({"requestId": "w"})).await;
    rig.client.error("w", -32800).await;
    // One that has its answer already is not touched.
    rig.client.request("x", "session/new", at("/x")).await;
    rig.client.notify("$/cancel_request", json!({"requestId": "x"})).await;
    rig.client.result("x").await;
    rig.assert_responsive().await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn updates_of_an_immediate_handler_follow_the_response() {
    // shows SESS-31, whether or not the handle is kept
    let mut rig = Rig::initialized(agent(), json!({})).await;
    rig.client.request(1, "session/new", at("/early")).await;
    assert_eq!(rig.client.result(1).await, json!({"sessionId": "in/early"}));
    rig.expect_text("in/early", "early").await;
    rig.assert_responsive().await;
    rig.disconnect().await;

    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    let keeper = Agent::new(move |request: OpenRequest| {
        keep.lock().unwrap().push(request.session.clone());
        open(request, Arc::default())
    });
    let mut rig = Rig::initialized(keeper, json!({})).await;
    rig.client.request(1, "session/new", at("/early")).await;
    rig.client.result(1).await;
    rig.expect_text("in/early", "early").await;
    let handle = kept.lock().unwrap().pop().unwrap();
    handle.send(SessionUpdate::agent_message("late")).await.unwrap();
    rig.expect_text("in/early", "late").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_opened_twice_at_once_is_the_newer_one() {
    let mut rig = Rig::initialized(agent(), json!({})).await;
    for id in 1..=2 {
        rig.client.request(id, "session/new", at("/x")).await;
    }
    for id in 1..=2 {
        assert_eq!(rig.client.result(id).await, json!({"sessionId": "in/x"}));
    }
    rig.prompt("p", "in/x", "hello").await;
    rig.expect_end("p", "end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_requests_is_answered_in_order_and_leaves_room_for_others() {
    const FLOOD: u64 = 10_000;
    // Something of tokio's, so that the budget that tokio gives a task is used up now and then.
    let count = Arc::new(tokio::sync::Mutex::new(0u64));
    let counted = count.clone();
    let agent = Agent::new(move |_| {
        let count = counted.clone();
        async move {
            let mut count = count.lock().await;
            *count += 1;
            Ok(OpenedSession::new(idle()).id(format!("s{count}")))
        }
    });
    let Rig { client, serving, .. } = Rig::initialized(agent, json!({})).await;
    let (mut reader, mut writer) = client.halves();
    let turns = Arc::new(AtomicUsize::new(0));
    let other = tokio::spawn({
        let turns = turns.clone();
        poll_fn(move |cx| {
            turns.fetch_add(1, Ordering::Relaxed);
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        })
    });
    let flood = async {
        for id in 0..FLOOD {
            let params = new();
            writer.feed(
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/new","params":{params}}}"#)
                    .as_bytes(),
            );
        }
        writer.flush().await.unwrap();
    };
    let answers = async {
        let mut answered = Vec::new();
        while answered.len() < FLOOD as usize {
            let line: serde_json::Value =
                serde_json::from_slice(reader.next().await.unwrap().unwrap()).unwrap();
            assert!(line["result"]["sessionId"].is_string(), "{line}");
            answered.push(line["id"].as_u64().unwrap());
        }
        answered
    };
    let ((), answered) = tokio::join!(flood, answers);
    other.abort();
    // Those that found the budget used up were spawned, and come a little later; none is lost.
    let mut sorted = answered.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..FLOOD));
    let late = answered.iter().zip(0..).filter(|(id, place)| id.abs_diff(*place) > 128).count();
    assert_eq!(late, 0, "no answer is far from its place");
    assert!(
        turns.load(Ordering::Relaxed) >= FLOOD as usize / 64,
        "others run after 64 requests at the latest"
    );
    drop((reader, writer));
    serving.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_does_not_block_a_multi_threaded_runtime() {
    let (free, blocked) = mpsc::channel::<()>();
    let (free, blocked) = (Mutex::new(free), Arc::new(Mutex::new(blocked)));
    let agent = Agent::new(move |request: OpenRequest| {
        let blocked = blocked.clone();
        if request.cwd.ends_with("free") {
            free.lock().unwrap().send(()).unwrap();
        }
        async move {
            if request.cwd.ends_with("block") {
                // Blocks its thread until the other request has been read.
                blocked.lock().unwrap().recv().unwrap();
            }
            Ok(OpenedSession::new(idle()).id(request.cwd.display().to_string()))
        }
    });
    let mut rig = Rig::initialized(agent, json!({})).await;
    rig.client.request(1, "session/new", at("/block")).await;
    rig.client.request(2, "session/new", at("/free")).await;
    let mut answered = [rig.client.line().await["id"].clone(), rig.client.line().await["id"].clone()];
    answered.sort_by_key(serde_json::Value::as_u64);
    assert_eq!(answered, [1, 2]);
    rig.disconnect().await;
}
