//! The reader rests only when nobody waits for it.

use crate::kit::{Heard, Wire, connect};
use attache_conn::{Limits, Peer, Side};
use std::time::Duration;
use tokio::time::timeout;

/// Virtual time: it passes only when every task waits for something else.
const IDLE: Duration = Duration::from_secs(3600);

fn connection() -> (Peer, Heard, Wire) {
    let limits = Limits::default().queued(100).queued_hard(1000);
    let (link, wire) = Wire::new();
    let (peer, driver, heard) = connect(link, limits, Side::Client);
    tokio::spawn(driver);
    (peer, heard, wire)
}

async fn is_read(heard: &mut Heard, wire: &mut Wire) -> bool {
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n").await;
    timeout(IDLE, heard.notification()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn past_the_budget_the_reader_rests() {
    let (peer, mut heard, mut wire) = connection();
    let backlog = peer.backlog();
    backlog.add(100);
    assert!(is_read(&mut heard, &mut wire).await, "the budget is not exceeded");
    backlog.add(1);
    // The reader is parked on its input; it takes note of the budget before the next line.
    assert!(!is_read(&mut heard, &mut wire).await);
    assert!(backlog.is_full());
    backlog.sub(1);
    heard.notification().await;
    assert!(is_read(&mut heard, &mut wire).await);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_gets_what_it_waits_for() {
    let (peer, mut heard, mut wire) = connection();
    peer.backlog().add(500);
    assert!(!is_read(&mut heard, &mut wire).await);
    let waiting = peer.backlog().waiting();
    heard.notification().await;
    assert!(is_read(&mut heard, &mut wire).await);
    drop(waiting);
    assert!(!is_read(&mut heard, &mut wire).await);
    // A call is somebody who waits.
    let call = peer.call("a", &());
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":1}\n").await;
    assert_eq!(call.await.unwrap().get(), "1");
    heard.notification().await;
    assert!(!is_read(&mut heard, &mut wire).await, "and when it is answered it is not");
}

#[tokio::test(start_paused = true)]
async fn past_the_hard_limit_nothing_helps() {
    let (peer, mut heard, mut wire) = connection();
    let _waiting = peer.backlog().waiting();
    peer.backlog().add(1001);
    assert!(!is_read(&mut heard, &mut wire).await);
    peer.backlog().sub(1);
    heard.notification().await;
}

#[tokio::test(start_paused = true)]
async fn a_resting_reader_still_writes() {
    let (peer, mut heard, mut wire) = connection();
    peer.backlog().add(500);
    assert!(!is_read(&mut heard, &mut wire).await);
    peer.notify("out", &()).await.unwrap();
    assert_eq!(wire.json().await["method"], "out");
}
