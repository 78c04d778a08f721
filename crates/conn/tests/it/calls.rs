//! Requests in both directions.

use crate::kit::{Wire, connect};
use attache_conn::rpc::{ErrorObject, RequestError};
use attache_conn::{CallError, Limits, Link, Side};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    // shows CANCEL-13, RPC-14
    let (link, mut wire) = Wire::new();
    let (peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
    tokio::spawn(driver);
    drop(peer.call("slow", &json!({})));
    assert_eq!(wire.json().await["method"], "slow");
    assert_eq!(
        wire.line().await,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}"#
    );
    // Its answer still comes, and is of no interest.
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32800,\"message\":\"c\"}}\n").await;
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"next\"}\n").await;
    assert_eq!(received.notification().await.0, "next");
}

#[tokio::test]
async fn a_finished_call_is_not_cancelled() {
    let (link, mut wire) = Wire::new();
    let (peer, driver, _heard) = connect(link, Limits::default(), Side::Client);
    tokio::spawn(driver);
    let mut call = peer.call("quick", &json!({}));
    wire.json().await;
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"a\":1}}\n").await;
    assert_eq!((&mut call).await.unwrap().get(), r#"{"a":1}"#);
    drop(call);
    peer.notify("next", &()).await.unwrap();
    assert_eq!(wire.json().await["method"], "next");
}

#[tokio::test]
async fn the_peer_cancels_a_request_and_is_answered() {
    // shows CANCEL-15, CANCEL-16, CANCEL-20
    let (link, mut wire) = Wire::new();
    let (_peer, driver, mut received) = connect(link, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"slow\"}\n").await;
    let (_, _, responder) = received.request().await;
    let token = responder.cancellation();
    assert!(!token.is_cancelled());
    let waiting = tokio::spawn({
        let token = token.clone();
        async move { token.cancelled().await }
    });
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"x\"}}\n")
        .await;
    waiting.await.unwrap();
    token.cancelled().await;
    responder.err(ErrorObject::cancelled());
    assert_eq!(
        wire.line().await,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32800,"message":"request cancelled"}}"#
    );
    wire.write("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"x\"}}\n")
        .await;
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"next\"}\n").await;
    received.request().await.2.ok(&1);
    assert_eq!(wire.json().await["id"], 2, "no second answer");
}

#[tokio::test]
async fn a_dropped_responder_answers() {
    // shows RPC-24
    let (a, b) = Link::pair();
    let (client, driver, _) = connect(a, Limits::default(), Side::Client);
    tokio::spawn(driver);
    let (_agent, driver, mut received) = connect(b, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    let call = client.call("a", &());
    drop(received.request().await.2);
    let Err(CallError::Refused(error)) = call.await else { panic!() };
    assert_eq!((error.code, error.message.as_str()), (-32603, "the handler ended without an answer"));
    // So does one whose handler panicked.
    let call = client.call("a", &());
    let (_, _, responder) = received.request().await;
    let handler = tokio::spawn(async move {
        let _responder = responder;
        panic!("the handler's own failure");
    });
    assert!(handler.await.unwrap_err().is_panic());
    assert!(matches!(call.await, Err(CallError::Refused(error)) if error.code == -32603));
}

#[tokio::test]
async fn calls_cross_and_are_answered_in_any_order() {
    // shows RPC-08, RPC-20
    let (a, b) = Link::pair();
    let (client, driver, mut at_client) = connect(a, Limits::default(), Side::Client);
    tokio::spawn(driver);
    let (agent, driver, mut at_agent) = connect(b, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    let prompt = client.call("prompt", &());
    let (_, _, prompt_answer) = at_agent.request().await;
    let read = agent.call("read", &());
    let (_, _, read_answer) = at_client.request().await;
    let mode = client.call("mode", &());
    at_agent.request().await.2.ok(&"mode");
    assert_eq!(mode.await.unwrap().get(), r#""mode""#);
    read_answer.ok(&"read");
    assert_eq!(read.await.unwrap().get(), r#""read""#);
    prompt_answer.ok(&"prompt");
    assert_eq!(prompt.await.unwrap().get(), r#""prompt""#);
}

#[tokio::test]
async fn callbacks_run_in_the_order_of_the_wire() {
    let (link, mut wire) = Wire::new();
    let (peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
    tokio::spawn(driver);
    let order = Arc::new(Mutex::new(Vec::new()));
    for n in 0..3 {
        let order = Arc::clone(&order);
        peer.call_with("a", &(), move |answer| {
            order.lock().unwrap().push((n, answer.unwrap().get().to_owned()))
        });
    }
    let given_up = peer.call_with("a", &(), |_| panic!("it was given up"));
    peer.abandon(given_up);
    wire.write(
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":2}\n{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":0}\n\
         {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":3}\n{\"jsonrpc\":\"2.0\",\"method\":\"between\"}\n\
         {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n{\"jsonrpc\":\"2.0\",\"method\":\"after\"}\n",
    )
    .await;
    received.notification().await;
    received.notification().await;
    let expected = [(2, "2".to_owned()), (0, "0".to_owned()), (1, "1".to_owned())];
    assert_eq!(*order.lock().unwrap(), expected);
}

#[tokio::test]
async fn open_requests_are_capped() {
    let limits = Limits::default().open_requests(2);
    let (link, mut wire) = Wire::new();
    let (peer, driver, mut received) = connect(link, limits, Side::Agent);
    tokio::spawn(driver);
    for id in 0..3 {
        wire.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"a\"}}\n")).await;
    }
    let (_, _, first) = received.request().await;
    let (_, _, _second) = received.request().await;
    received.noise().await;
    let refused = wire.json().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32603)));
    first.ok(&());
    wire.json().await;
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a\"}\n").await;
    received.request().await;
    // Ours are capped as well.
    let _calls = [peer.call("b", &()), peer.call("b", &())];
    assert!(matches!(peer.call("b", &()).await, Err(CallError::Encode(RequestError::TooMany))));
}

#[tokio::test]
async fn params_that_do_not_serialize_send_nothing() {
    let (link, mut wire) = Wire::new();
    let (peer, driver, _heard) = connect(link, Limits::default(), Side::Client);
    tokio::spawn(driver);
    let bad = std::collections::HashMap::from([((1, 2), 3)]);
    assert!(matches!(peer.call("a", &bad).await, Err(CallError::Encode(RequestError::Encode(_)))));
    assert!(matches!(peer.notify("a", &bad).await, Err(CallError::Encode(_))));
    assert!(!peer.notify_now("a", &bad));
    assert!(peer.notify_now("good", &()));
    assert_eq!(wire.json().await["method"], "good");
}
