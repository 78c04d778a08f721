//! A peer that reads slowly, or never.

use crate::kit::{Wire, connect};
use attache_conn::{CallError, Limits, Peer, Reason, Side};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// Virtual time: it passes only when every task waits for something else.
const IDLE: Duration = Duration::from_secs(3600);

/// Notifies for ever and counts what was taken.
fn producer(peer: &Peer) -> (tokio::task::JoinHandle<CallError>, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let (peer, count) = (peer.clone(), Arc::clone(&taken));
    let task = tokio::spawn(async move {
        let params = json!({ "text": "x".repeat(100) });
        loop {
            match peer.notify("update", &params).await {
                Ok(()) => count.fetch_add(1, Ordering::SeqCst),
                Err(error) => return error,
            };
        }
    });
    (task, taken)
}

#[tokio::test(start_paused = true)]
async fn producers_wait_and_answers_do_not() {
    let limits = Limits::default().write_buffer(10_000);
    let (link, mut wire) = Wire::with_room(1000);
    let (peer, driver, mut received) = connect(link, limits, Side::Agent);
    tokio::spawn(driver);
    let (mut task, taken) = producer(&peer);
    timeout(IDLE, &mut task).await.expect_err("it waits for room");
    let before = taken.load(Ordering::SeqCst);
    assert!((60..300).contains(&before), "memory is bounded: {before} messages were taken");
    // A request that comes now is answered behind what is queued, but the answer does not wait for
    // room.
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n").await;
    received.request().await.2.ok(&"answer");
    timeout(IDLE, &mut task).await.expect_err("it still waits");
    assert_eq!(taken.load(Ordering::SeqCst), before);
    // Reading brings everything, in order, and lets the producer continue.
    let mut updates = 0;
    loop {
        let line = wire.json().await;
        match line["method"].as_str() {
            Some("update") => updates += 1,
            _ => break assert_eq!(line["result"], "answer"),
        }
    }
    assert!(updates >= before);
    timeout(IDLE, &mut task).await.expect_err("full again");
    assert!(taken.load(Ordering::SeqCst) > before);
    // Closing frees it.
    peer.close();
    assert!(matches!(task.await.unwrap(), CallError::Closed(closed) if closed.reason == Reason::LocalClose));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_asks_and_never_reads_is_not_served_for_ever() {
    let limits = Limits::default().unsent_hard(10_000);
    let (link, mut wire) = Wire::with_room(1000);
    let (_peer, driver, mut received) = connect(link, limits, Side::Agent);
    tokio::spawn(driver);
    let mut asked = 0usize;
    while timeout(IDLE, wire.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{asked},\"method\":\"a\"}}\n")))
        .await
        .is_ok()
    {
        asked += 1;
        assert!(asked < 2000, "memory is not bounded");
        tokio::task::yield_now().await;
        while let Some(crate::kit::Said::Request(_, _, responder)) = received.try_next() {
            responder.ok(&"x".repeat(100));
        }
    }
    assert!(asked > 60);
    // The line that was cut off is lost for this writer; the answers are all there.
    drop(wire.output);
    let mut input = wire.input;
    let mut answers = 0;
    loop {
        while let Some(said) = received.try_next() {
            if let crate::kit::Said::Request(_, _, responder) = said {
                responder.ok(&"x".repeat(100));
            }
        }
        let mut line = String::new();
        match timeout(IDLE, tokio::io::AsyncBufReadExt::read_line(&mut input, &mut line)).await {
            Ok(Ok(n)) if n > 0 => answers += 1,
            _ => break,
        }
    }
    assert!(answers >= asked - 1, "{answers} of {asked}");
}

#[tokio::test(start_paused = true)]
async fn producers_take_turns() {
    let limits = Limits::default().write_buffer(1000);
    let (link, mut wire) = Wire::with_room(1000);
    let (peer, driver, _heard) = connect(link, limits, Side::Agent);
    tokio::spawn(driver);
    let (_greedy, many) = producer(&peer);
    let (_other, also) = producer(&peer);
    for _ in 0..1000 {
        wire.json().await;
    }
    let (many, also) = (many.load(Ordering::SeqCst), also.load(Ordering::SeqCst));
    assert!(many > 400 && also > 400, "{many} and {also}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_does_not_block_the_others() {
    let limits = Limits::default().write_buffer(1000);
    let (link, mut wire) = Wire::with_room(100);
    let (peer, driver, _heard) = connect(link, limits, Side::Agent);
    tokio::spawn(driver);
    let full = "x".repeat(2000);
    peer.notify("a", &full).await.unwrap();
    tokio::task::yield_now().await;
    peer.notify("b", &full).await.unwrap();
    let (gave_up, given_up) = tokio::sync::oneshot::channel();
    let impatient = async {
        let waited = timeout(Duration::from_secs(1), peer.notify("c", &())).await;
        gave_up.send(()).unwrap();
        waited
    };
    let patient = peer.notify("d", &());
    let reading = async {
        given_up.await.unwrap();
        let mut methods = Vec::new();
        for _ in 0..3 {
            methods.push(wire.json().await["method"].as_str().unwrap().to_owned());
        }
        methods
    };
    let (impatient, patient, methods) = tokio::join!(impatient, patient, reading);
    impatient.expect_err("there was no room in time");
    patient.unwrap();
    assert_eq!(methods, ["a", "b", "d"]);
}

#[tokio::test]
async fn a_plain_loop_of_notifications_does_not_starve_the_reader() {
    let (link, mut wire) = Wire::new();
    let (peer, driver, mut received) = connect(link, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    let (_task, _) = producer(&peer);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n").await;
    tokio::spawn(async move {
        received.request().await.2.ok(&"answer");
    });
    while wire.json().await["result"] != "answer" {}
}

#[tokio::test]
async fn a_huge_message_goes_through_a_small_budget() {
    let limits = Limits::default().write_buffer(10);
    let (link, mut wire) = Wire::with_room(1000);
    let (peer, driver, _heard) = connect(link, limits, Side::Agent);
    tokio::spawn(driver);
    let text = "x".repeat(1 << 20);
    let sending = async {
        for _ in 0..3 {
            peer.notify("big", &json!({ "text": text })).await.unwrap();
        }
    };
    let receiving = async {
        for _ in 0..3 {
            assert_eq!(wire.json().await["params"]["text"].as_str().unwrap().len(), 1 << 20);
        }
    };
    tokio::join!(sending, receiving);
}

#[tokio::test(start_paused = true)]
async fn updates_of_a_task_that_yields_are_sent_although_nothing_follows() {
    let (link, mut wire) = Wire::with_room(1 << 20);
    let (peer, driver, _received) = connect(link, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    // Fewer and more than a batch, and none that is urgent.
    for count in [1, 2, 30, 500] {
        for n in 0..count {
            peer.notify("update", &json!({ "n": n, "text": "x".repeat(100) })).await.unwrap();
            tokio::task::yield_now().await;
        }
        for n in 0..count {
            assert_eq!(wire.json().await["params"]["n"], n);
        }
    }
}
