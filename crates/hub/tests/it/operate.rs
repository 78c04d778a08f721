//! What operators need: the table, warm agents, the end of old sessions.

use std::time::Duration;

use attache_hub::{Identity, Role};
use attache_journal::Journal;
use serde_json::json;

use crate::agent::{Abilities, Record};
use crate::rig::{Rig, stop_reason};

#[tokio::test]
async fn the_status_is_for_admins_of_the_tenant() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    let turn = client.start_prompt(&session, "ask may I").await;
    let question = client.question().await;
    let status = client.call("_attache/status", json!({})).await;
    let row = &status["result"]["sessions"][0];
    let meta = &row["_meta"]["attache"];
    assert_eq!((&row["sessionId"], &row["title"]), (&json!(session), &json!("ask may I")), "{status}");
    assert_eq!(
        (&meta["state"], &meta["clients"], &meta["questions"]),
        (&json!("running"), &json!(1), &json!(1))
    );
    assert!(meta["agent"].is_object() && meta["bytes"].as_u64().unwrap() > 0, "{row}");
    assert_eq!(status["result"]["agents"], 1);
    client.choose(&question, "yes").await;
    client.response(turn).await;

    let mut driver = rig.client_as(Identity::new("driver").role(Role::Drive), false).await;
    assert_eq!(driver.call("_attache/status", json!({})).await["error"]["code"], -32600);
    let mut foreign = rig.client_as(Identity::new("foreign").tenant("other"), false).await;
    assert_eq!(foreign.call("_attache/status", json!({})).await["result"], json!({"sessions": []}));
}

#[tokio::test]
async fn warm_agents_wait_for_sessions() {
    let rig = Rig::with(|options| options.warm(2));
    let mut client = rig.client().await;
    // The reserve is filled again after each session.
    for sessions in 1..=3 {
        let session = client.new_session().await;
        assert_eq!(stop_reason(&client.prompt(&session, "hello").await), "end_turn");
        rig.record.until("start", sessions + 2).await;
    }
}

#[tokio::test]
async fn an_agent_that_ended_in_reserve_is_replaced() {
    let rig = Rig::with(|options| options.warm(1));
    let mut client = rig.client().await;
    rig.record.until("start", 1).await;
    // A login goes to the agent in reserve, which dies of it.
    let login = client.call("authenticate", json!({"methodId": "die"})).await;
    assert_eq!(login["error"]["message"], "the agent has ended");
    let session = client.new_session().await;
    assert_eq!(stop_reason(&client.prompt(&session, "hello").await), "end_turn");
}

#[tokio::test]
async fn old_sessions_are_removed() {
    let abilities = Abilities { load: true, resume: false };
    let journal = Journal::memory();
    let rig = Rig::on(journal.clone(), Record::default(), abilities, |options| options);
    let mut client = rig.client().await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let session = client.new_session().await;
        client.prompt(&session, "count 50").await;
        sessions.push(session);
    }
    // In use, so none is removed.
    assert_eq!(rig.hub.sweep("default", Some(Duration::ZERO), Some(0)).await.unwrap(), 0);
    for session in &sessions[..3] {
        client.call("session/close", json!({"sessionId": session})).await;
    }
    rig.is_in_memory(&mut client, 1).await;
    assert_eq!(rig.hub.sweep("other", Some(Duration::ZERO), Some(0)).await.unwrap(), 0);
    assert_eq!(rig.hub.sweep("default", Some(Duration::from_secs(3600)), None).await.unwrap(), 0);
    // Room for the one in use and one more.
    let size = journal.list("default", None, 1).await.unwrap()[0].bytes;
    assert_eq!(rig.hub.sweep("default", None, Some(size * 2 + size / 2)).await.unwrap(), 2);
    assert_eq!(client.load(&sessions[0]).await["error"]["code"], -32002, "the oldest go first");
    assert_eq!(client.load(&sessions[1]).await["error"]["code"], -32002);
    assert!(client.load(&sessions[2]).await["result"].is_object());
}
