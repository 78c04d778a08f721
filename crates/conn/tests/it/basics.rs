use crate::kit::{Wire, connect};
use attache_conn::{CallError, Limits, Link, Reason, Side};
use serde_json::json;

#[tokio::test]
async fn a_round_trip_over_memory() {
    let (a, b) = Link::pair();
    let (client, driver, _heard) = connect(a, Limits::default(), Side::Client);
    tokio::spawn(driver);
    let (_agent, driver, mut received) = connect(b, Limits::default(), Side::Agent);
    tokio::spawn(driver);
    let call = client.call("echo", &json!({"a": 1}));
    let (method, params, responder) = received.request().await;
    assert_eq!((method.as_str(), params.as_str()), ("echo", r#"{"a":1}"#));
    responder.ok(&json!({"b": 2}));
    assert_eq!(call.await.unwrap().get(), r#"{"b":2}"#);
}

#[tokio::test]
async fn close_flushes_and_ends_both_sides() {
    let (a, b) = Link::pair();
    let (client, driver, _heard) = connect(a, Limits::default(), Side::Client);
    let driver = tokio::spawn(driver);
    let (agent, agent_driver, mut received) = connect(b, Limits::default(), Side::Agent);
    let agent_driver = tokio::spawn(agent_driver);
    let call = client.call("never", &());
    client.notify("last", &json!({"n": 1})).await.unwrap();
    client.close();
    assert_eq!(driver.await.unwrap().reason, Reason::LocalClose);
    let (_, _, responder) = received.request().await;
    assert_eq!(received.notification().await.0, "last");
    assert_eq!(received.closed().await.reason, Reason::Eof);
    drop(responder);
    assert_eq!(agent_driver.await.unwrap().reason, Reason::Eof);
    assert!(agent.is_closed() && client.is_closed());
    let Err(CallError::Closed(closed)) = call.await else { panic!("no answer can come") };
    assert_eq!(closed.reason, Reason::LocalClose);
}

#[tokio::test]
async fn each_message_is_one_line() {
    let (link, mut wire) = Wire::new();
    let (peer, driver, _heard) = connect(link, Limits::default(), Side::Client);
    tokio::spawn(driver);
    let _call = peer.call("a/b", &json!({"t": "x\ny"}));
    peer.notify("c", &()).await.unwrap();
    assert_eq!(wire.line().await, r#"{"jsonrpc":"2.0","id":0,"method":"a/b","params":{"t":"x\ny"}}"#);
    assert_eq!(wire.line().await, r#"{"jsonrpc":"2.0","method":"c"}"#);
}
