//! The relay: bytes pass as they are, and only what was named is touched.

use std::sync::{Arc, Mutex};

use attache::Link;
use attache::proxy::{Direction, Frame, Relay, RelayEnd};
use attache::wire::v1::{InitializeRequest, PromptRequest, SessionNotification, SessionUpdate};
use serde_json::json;

use crate::script::Script;

/// A relay with a script on both ends.
fn relay(
    with: impl FnOnce(Relay) -> Relay,
) -> (Script, Script, tokio::task::JoinHandle<attache::Result<RelayEnd>>) {
    let (near_client, far_client) = Link::pair();
    let (near_agent, far_agent) = Link::pair();
    let relay = with(Relay::new(near_client, near_agent));
    (Script::on(far_client), Script::on(far_agent), tokio::spawn(relay.run()))
}

#[tokio::test(start_paused = true)]
async fn everything_passes_byte_for_byte() {
    // shows EXT-13, PROXY-03, PROXY-04, PROXY-05
    let (mut client, mut agent, _running) = relay(|relay| relay);
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"zz" : [1, 2.50],"_meta":{"a":null}}}"#,
        r#"{ "id" : "x" , "jsonrpc" : "2.0", "method":"_x/y", "extra": true }"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}"#,
        "not json at all \u{2028} \u{0}",
        "[]",
        "{\"half\":",
    ];
    for line in lines {
        client.raw(line).await;
        assert_eq!(agent.text().await.unwrap(), line);
        agent.raw(line).await;
        assert_eq!(client.text().await.unwrap(), line);
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_touches_one_member_of_one_method() {
    let (mut client, mut agent, _running) = relay(|relay| {
        relay.edit(|request: &mut PromptRequest| request.prompt.push("Answer in French.".into()))
    });
    client.raw(r#"{"jsonrpc":"2.0","id": 7,"zz":1,"method":"session/prompt","params":{"zz":{"a" :1},"prompt":[{"type":"text","text":"hi"}],"sessionId":"s","_meta":{"t": 1}} }"#).await;
    assert_eq!(
        agent.text().await.unwrap(),
        r#"{"jsonrpc":"2.0","id": 7,"zz":1,"method":"session/prompt","params":{"zz":{"a" :1},"prompt":[{"type":"text","text":"hi"},{"type":"text","text":"Answer in French."}],"sessionId":"s","_meta":{"t": 1}} }"#
    );
    // what does not fit the type passes unchanged, and so does every other method
    for line in [
        r#"{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":{"prompt":"text"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"session/promptly","params":{"sessionId":"s","prompt":[]}}"#,
    ] {
        client.raw(line).await;
        assert_eq!(agent.text().await.unwrap(), line);
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_changes_nothing_leaves_the_bytes() {
    let (mut client, mut agent, _running) = relay(|relay| relay.edit(|_: &mut PromptRequest| {}));
    let line = r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params": {"sessionId":"s","prompt":[ ],"zz":0}}"#;
    client.raw(line).await;
    assert_eq!(agent.text().await.unwrap(), line);
}

#[tokio::test(start_paused = true)]
async fn notifications_and_results_can_be_edited() {
    let (mut client, mut agent, _running) = relay(|relay| {
        relay
            .edit_notification(|notification: &mut SessionNotification| {
                if let SessionUpdate::AgentMessageChunk(_) = notification.update {
                    notification.update = SessionUpdate::agent_message("redacted");
                }
            })
            .edit_response::<InitializeRequest>(|answer| answer.agent_capabilities.load_session = false)
    });
    agent.say("s", "secret").await;
    let update = client.expect("session/update").await;
    assert_eq!(update["params"]["update"]["content"]["text"], "redacted");
    client.request("i", "initialize", json!({"protocolVersion": 1})).await;
    let request = agent.expect("initialize").await;
    // an answer of the same id in the other direction is another answer
    client.raw(r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#).await;
    assert_eq!(agent.line().await["result"]["agentCapabilities"]["loadSession"], true);
    agent
        .answer(&request, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}, "zz": 1}))
        .await;
    let answer = client.line().await;
    assert_ne!(answer["result"]["agentCapabilities"]["loadSession"], true);
    assert_eq!(answer["result"]["zz"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_everything_as_it_came() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let (mut client, mut agent, _running) = relay(|relay| {
        relay.observe(move |direction, frame, line| {
            let kind = match frame {
                Frame::Request { method, .. } | Frame::Notification { method, .. } => method.to_string(),
                Frame::Response { id, .. } => format!("answer {id}"),
                _ => String::from_utf8_lossy(line).into_owned(),
            };
            sink.lock().unwrap().push((direction, kind));
        })
    });
    client.request(1, "a/b", json!({})).await;
    let request = agent.line().await;
    agent.answer(&request, json!(1)).await;
    agent.raw("noise").await;
    client.line().await;
    assert_eq!(client.text().await.unwrap(), "noise");
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (Direction::ToAgent, "a/b".to_owned()),
            (Direction::ToClient, "answer 1".to_owned()),
            (Direction::ToClient, "noise".to_owned()),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_agent_ends_the_relay() {
    let (mut client, mut agent, running) = relay(|relay| relay);
    agent.raw("final line").await;
    drop(agent);
    assert_eq!(client.text().await.unwrap(), "final line");
    client.expect_eof().await;
    let end = running.await.unwrap().unwrap();
    assert!(end.first == Direction::ToClient && end.exit.is_none() && !end.agent_failed());
}

#[cfg(unix)]
#[tokio::test]
async fn the_relay_reports_why_the_agent_exited() {
    let (client, _theirs) = Link::pair();
    let agent = attache::Command::new("sh").args(["-c", "echo no API key >&2; exit 7"]);
    let end = Relay::new(client, Link::command(agent).unwrap()).run().await.unwrap();
    assert_eq!((end.exit.unwrap().code(), end.stderr_tail.trim()), (Some(7), "no API key"));
    assert!(end.agent_failed());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_client_lets_the_agent_finish() {
    let (client, mut agent, running) = relay(|relay| relay);
    drop(client);
    agent.expect_eof().await;
    drop(agent);
    running.await.unwrap().unwrap();

    // and one that never ends is left behind
    let (client, _agent, running) = relay(|relay| relay);
    drop(client);
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn neither_side_can_flood_the_other() {
    let (mut client, mut agent, _running) = relay(|relay| relay);
    let line = "x".repeat(100_000);
    let mut sent = 0;
    // the other side does not read, so the writer has to stop
    let flood = async {
        for _ in 0..100 {
            agent.raw(&line).await;
            sent += 1;
        }
    };
    assert!(tokio::time::timeout(std::time::Duration::from_secs(5), flood).await.is_err());
    assert!(sent < 20, "{sent}");
    // the other direction is free
    assert_eq!(client.text().await.unwrap().len(), 100_000);
}
