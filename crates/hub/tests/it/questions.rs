//! Questions of agents.

use std::time::Duration;

use attache_hub::{Identity, Policy, Role};
use serde_json::json;

use crate::rig::{Rig, TestClient, stop_reason};

/// Two clients of a session, and the prompt that the first of them has sent.
async fn two_in_a_session(rig: &Rig, prompt: &str) -> (TestClient, TestClient, i64) {
    let (mut first, mut second) = (rig.client().await, rig.client().await);
    let session = first.new_session().await;
    second.load(&session).await;
    let turn = first.start_prompt(&session, prompt).await;
    (first, second, turn)
}

#[tokio::test]
async fn the_first_answer_wins_and_the_others_are_withdrawn() {
    let rig = Rig::new();
    let (mut first, mut second, turn) = two_in_a_session(&rig, "ask may I").await;
    let (mine, theirs) = (first.question().await, second.question().await);
    second.choose(&theirs, "yes").await;
    let withdrawn = first.until(|message| message["method"] == "$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], mine);
    // A late answer changes nothing.
    first.choose(&mine, "no").await;
    assert_eq!(stop_reason(&first.response(turn).await), "end_turn");
    assert_eq!(rig.record.of("answered"), ["yes"]);
    assert!(!second.seen.iter().any(|message| message["method"] == "$/cancel_request"));
}

#[tokio::test]
async fn an_answer_that_was_not_offered_does_not_count() {
    let rig = Rig::new();
    let (mut first, mut second, turn) = two_in_a_session(&rig, "ask may I").await;
    let (mine, theirs) = (first.question().await, second.question().await);
    first.choose(&mine, "everything").await;
    second.choose(&theirs, "no").await;
    first.response(turn).await;
    assert_eq!(rig.record.of("answered"), ["no"]);
}

#[tokio::test]
async fn a_cancel_answers_the_question() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    let turn = client.start_prompt(&session, "ask may I").await;
    client.question().await;
    client.notify("session/cancel", json!({"sessionId": session})).await;
    client.response(turn).await;
    assert_eq!(rig.record.of("answered"), ["cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_rejects() {
    let rig = Rig::with(|options| options.deadline(Duration::from_secs(30)));
    let mut client = rig.client().await;
    let session = client.new_session().await;
    let turn = client.start_prompt(&session, "ask may I").await;
    client.question().await;
    client.response(turn).await;
    assert_eq!(rig.record.of("answered"), ["no"]);
}

#[tokio::test(start_paused = true)]
async fn the_prompter_is_asked_first() {
    let rig = Rig::with(|options| options.policy(Policy::Prompter(Duration::from_secs(10))));
    let mut author = rig.client_as(Identity::new("author"), false).await;
    let mut other = rig.client_as(Identity::new("other"), false).await;
    let session = author.new_session().await;
    other.load(&session).await;
    let turn = author.start_prompt(&session, "ask may I").await;
    author.question().await;
    // The clock of the test moves on while everybody waits.
    let before = tokio::time::Instant::now();
    let theirs = other.question().await;
    assert!(before.elapsed() >= Duration::from_secs(9));
    other.choose(&theirs, "yes").await;
    author.response(turn).await;
    assert_eq!(rig.record.of("answered"), ["yes"]);
}

#[tokio::test]
async fn a_role_can_be_required() {
    let rig = Rig::with(|options| options.policy(Policy::Role(Role::Admin)));
    let mut driver = rig.client_as(Identity::new("driver").role(Role::Drive), false).await;
    let mut admin = rig.client_as(Identity::new("admin"), false).await;
    let session = driver.new_session().await;
    admin.load(&session).await;
    let turn = driver.start_prompt(&session, "ask may I").await;
    let question = admin.question().await;
    admin.choose(&question, "yes").await;
    driver.response(turn).await;
    assert!(!driver.seen.iter().any(|message| message["method"] == "session/request_permission"));
}

#[tokio::test]
async fn a_quorum_needs_different_identities() {
    let rig = Rig::with(|options| options.policy(Policy::Quorum(2)));
    let mut a = rig.client_as(Identity::new("a"), false).await;
    let mut again = rig.client_as(Identity::new("a"), false).await;
    let mut b = rig.client_as(Identity::new("b"), false).await;
    let mut c = rig.client_as(Identity::new("c"), false).await;
    let session = a.new_session().await;
    for client in [&mut again, &mut b, &mut c] {
        client.load(&session).await;
    }
    let turn = a.start_prompt(&session, "ask may I").await;
    for (client, option) in [(&mut a, "yes"), (&mut again, "yes"), (&mut b, "no"), (&mut c, "no")] {
        let question = client.question().await;
        client.choose(&question, option).await;
    }
    a.response(turn).await;
    assert_eq!(rig.record.of("answered"), ["no"]);
}

/// A form goes to every client that may answer, waits for one, and the first valid answer counts.
#[tokio::test]
async fn a_form_is_answered_through_the_hub() {
    let rig = Rig::new();
    let offer = json!({"protocolVersion": 1, "clientCapabilities": {"elicitation": {"form": {}}}});
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = rig.connect(Identity::new("me"));
        client.call("initialize", offer.clone()).await;
        clients.push(client);
    }
    let (mut second, mut first) = (clients.pop().unwrap(), clients.pop().unwrap());
    let session = first.new_session().await;
    assert_eq!(rig.record.of("forms"), ["offered"]);
    second.load(&session).await;
    let turn = first.start_named(&session, "form Who are you?", "p1").await;
    let is_form = |message: &serde_json::Value| message["method"] == "elicitation/create";
    let asked = first.until(is_form).await;
    assert_eq!(
        (&asked["params"]["message"], &asked["params"]["sessionId"]),
        (&json!("Who are you?"), &json!(session))
    );
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["name"]["type"], "string");
    let theirs = second.until(is_form).await["id"].clone();
    // What is no answer does not count.
    second.send(json!({"jsonrpc": "2.0", "id": theirs, "result": {"action": "perhaps"}})).await;
    drop(second);
    // No client is attached; it is asked again.
    drop(first);
    let mut back = rig.client().await;
    back.load(&session).await;
    let again = back.until(is_form).await["id"].clone();
    let turn_again = back.start_named(&session, "form Who are you?", "p1").await;
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    back.send(json!({"jsonrpc": "2.0", "id": again, "result": answer})).await;
    assert_eq!(stop_reason(&back.response(turn_again).await), "end_turn");
    assert_ne!(again, asked["id"], "ids of two connections differ");
    assert_eq!(rig.record.of("answered"), [answer.to_string()]);
    assert_eq!(rig.record.of("prompt"), ["form Who are you?"]);
    let _ = turn;
}

/// A client that takes nothing is disconnected after its time, and holds up no one until then.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let rig = Rig::new();
    let (mut driver, mut stalled) = (rig.client().await, rig.client().await);
    let session = driver.new_session().await;
    stalled.load(&session).await;
    let clients = || {
        let metrics = rig.hub.metrics();
        let line = metrics.lines().find(|line| line.starts_with("attache_hub_clients ")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(clients(), 2);
    // More than the link and the queue hold.
    let begun = tokio::time::Instant::now();
    driver.prompt(&session, "count 40000").await;
    assert_eq!(driver.texts().len(), 40000);
    assert!(begun.elapsed() < Duration::from_secs(60), "nobody waits for the client that does not read");
    assert_eq!(clients(), 2);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(clients(), 1);
    // It gets what was written before, and the end.
    while stalled.next().await.is_some() {}
    driver.prompt(&session, "hello").await;
}
