//! How connections end.

use crate::kit::{Said, Wire, connect};
use attache_conn::{CallError, Limits, Reason, Side};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn a_disconnect_fails_open_calls() {
    let (link, mut wire) = Wire::new();
    let (peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
    let driver = tokio::spawn(driver);
    let call = peer.call("a", &());
    let (sender, answered) = tokio::sync::oneshot::channel();
    peer.call_with("b", &(), move |answer| sender.send(answer.map(drop)).unwrap());
    wire.json().await;
    drop(wire);
    assert!(matches!(call.await, Err(CallError::Closed(closed)) if closed.reason == Reason::Eof));
    assert!(matches!(answered.await.unwrap(), Err(CallError::Closed(_))));
    assert_eq!(received.closed().await.reason, Reason::Eof);
    assert_eq!(driver.await.unwrap().to_string(), "the agent closed the connection");
    assert_eq!(peer.closed().await.reason, Reason::Eof);
    assert!(peer.is_closed());
    // And from now on everything fails at once.
    assert!(matches!(peer.call("c", &()).await, Err(CallError::Closed(_))));
    assert!(matches!(peer.notify("c", &()).await, Err(CallError::Closed(_))));
    assert!(!peer.notify_now("c", &()));
}

#[tokio::test]
async fn messages_before_a_disconnect_are_delivered() {
    let (link, mut wire) = Wire::new();
    let (peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
    let call = peer.call("a", &());
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":7}\n{\"jsonrpc\":\"2.0\",\"method\":\"last\"}\n")
        .await;
    drop(wire);
    // It went before our request could be written.
    let closed = driver.await;
    assert_eq!(closed.reason, Reason::Eof, "its end explains more than a broken pipe");
    assert_eq!(call.await.unwrap().get(), "7");
    assert_eq!(received.notification().await.0, "last");
}

#[tokio::test]
async fn half_a_line_at_the_end_is_reported() {
    let (link, mut wire) = Wire::new();
    let (_peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"whole\"}\n{\"jsonrpc\":\"2.0\",\"meth").await;
    drop(wire);
    let closed = driver.await;
    assert_eq!(closed.reason, Reason::HalfLine("{\"jsonrpc\":\"2.0\",\"meth".to_owned()));
    assert!(closed.to_string().contains("in the middle of a line"), "{closed}");
    assert_eq!(received.notification().await.0, "whole");
    assert!(matches!(received.next().await, Said::Closed(_)));
}

#[tokio::test]
async fn blanks_at_the_end_are_no_half_line() {
    let (link, mut wire) = Wire::new();
    let (_peer, driver, _heard) = connect(link, Limits::default(), Side::Agent);
    wire.write("\r\n  ").await;
    drop(wire);
    assert_eq!(driver.await.reason, Reason::Eof);
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    // shows STDIO-10: printf '…' | agent
    let (link, mut wire) = Wire::new();
    let (peer, driver, mut received) = connect(link, Limits::default(), Side::Agent);
    let driver = tokio::spawn(driver);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n").await;
    wire.output.shutdown().await.unwrap();
    let (_, _, responder) = received.request().await;
    received.closed().await;
    responder.cancellation().cancelled().await;
    peer.notify("update", &()).await.unwrap();
    assert!(matches!(peer.call("read", &()).await, Err(CallError::Closed(_))), "no answer could come");
    responder.ok(&"done");
    assert_eq!(wire.json().await["method"], "update");
    assert_eq!(wire.json().await["result"], "done");
    assert_eq!(wire.line().await, "");
    assert_eq!(driver.await.unwrap().reason, Reason::Eof);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_answers_does_not_hold_the_end() {
    let (link, mut wire) = Wire::new();
    let (_peer, driver, mut received) = connect(link, Limits::default(), Side::Agent);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n").await;
    wire.output.shutdown().await.unwrap();
    assert_eq!(driver.await.reason, Reason::Eof);
    let (_, _, late) = received.request().await;
    late.ok(&"too late");
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_ever_for_a_peer_that_never_reads() {
    let (link, _wire) = Wire::with_room(64);
    let (peer, driver, _heard) = connect(link, Limits::default(), Side::Agent);
    peer.notify("a", &"x".repeat(1000)).await.unwrap();
    peer.close();
    assert_eq!(driver.await.reason, Reason::LocalClose);
}

#[tokio::test]
async fn a_dropped_driver_ends_everything() {
    let (link, _wire) = Wire::new();
    let (peer, driver, _heard) = connect(link, Limits::default(), Side::Client);
    let call = peer.call("a", &());
    drop(driver);
    assert!(matches!(call.await, Err(CallError::Closed(closed)) if closed.reason == Reason::Dropped));
    assert_eq!(peer.closed().await.reason, Reason::Dropped);
}

#[tokio::test]
async fn a_panic_in_dispatch_ends_the_connection_and_all_waits() {
    struct Bomb;
    impl attache_conn::Dispatch for Bomb {
        fn request(&mut self, _: attache_conn::IncomingRequest<'_>) {}
        fn notification(&mut self, _: attache_conn::IncomingNotification<'_>) {
            panic!("boom")
        }
    }
    let (link, mut wire) = Wire::new();
    let (peer, driver) = attache_conn::open(link, Limits::default(), Side::Client, |_| Bomb);
    let driver = tokio::spawn(driver);
    let call = peer.call("a", &());
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n").await;
    assert!(matches!(call.await, Err(CallError::Closed(_))));
    assert!(driver.await.unwrap_err().is_panic());
}
