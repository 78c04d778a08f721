//! The reader pauses only while no task waits for it.

use crate::kit::{Received, Wire, connect};
use attache_conn::{Limits, Peer, Side};
use std::time::Duration;
use tokio::time::timeout;

/// Virtual time: it passes only when every task waits for something else.
const IDLE: Duration = Duration::from_secs(3600);

fn connection() -> (Peer, Received, Wire) {
    let limits = Limits::default().queued(100).queued_hard(1000);
    let (link, wire) = Wire::new();
    let (peer, driver, received) = connect(link, limits, Side::Client);
    tokio::spawn(driver);
    (peer, received, wire)
}

async fn is_read(received: &mut Received, wire: &mut Wire) -> bool {
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n").await;
    timeout(IDLE, received.notification()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn past_the_budget_the_reader_rests() {
    let (peer, mut received, mut wire) = connection();
    let backlog = peer.backlog();
    backlog.add(100);
    assert!(is_read(&mut received, &mut wire).await, "the budget is not exceeded");
    backlog.add(1);
    // The reader is parked on its input; it takes note of the budget before the next line.
    assert!(!is_read(&mut received, &mut wire).await);
    assert!(backlog.is_full());
    backlog.sub(1);
    received.notification().await;
    assert!(is_read(&mut received, &mut wire).await);
}

#[tokio::test(start_paused = true)]
async fn the_reader_continues_while_a_task_waits() {
    let (peer, mut received, mut wire) = connection();
    peer.backlog().add(500);
    assert!(!is_read(&mut received, &mut wire).await);
    let waiting = peer.backlog().waiting();
    received.notification().await;
    assert!(is_read(&mut received, &mut wire).await);
    drop(waiting);
    assert!(!is_read(&mut received, &mut wire).await);
    // A call waits too.
    let call = peer.call("a", &());
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":1}\n").await;
    assert_eq!(call.await.unwrap().get(), "1");
    received.notification().await;
    assert!(!is_read(&mut received, &mut wire).await, "and when it is answered it is not");
}

#[tokio::test(start_paused = true)]
async fn past_the_hard_limit_nothing_helps() {
    let (peer, mut received, mut wire) = connection();
    let _waiting = peer.backlog().waiting();
    peer.backlog().add(1001);
    assert!(!is_read(&mut received, &mut wire).await);
    peer.backlog().sub(1);
    received.notification().await;
}

#[tokio::test(start_paused = true)]
async fn a_resting_reader_still_writes() {
    let (peer, mut received, mut wire) = connection();
    peer.backlog().add(500);
    assert!(!is_read(&mut received, &mut wire).await);
    peer.notify("out", &()).await.unwrap();
    assert_eq!(wire.json().await["method"], "out");
}
