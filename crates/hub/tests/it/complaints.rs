//! Each complaint of users of other hubs is a test.

use attache_hub::{Hub, Identity, Options, Role};
use attache_journal::Journal;
use serde_json::{Value, json};

use crate::agent::{Abilities, Record};
use crate::rig::{Rig, TestClient, position, stop_reason};

/// Leaves in the middle of a turn that waits.
async fn leave_during_turn(rig: &Rig, name: &str) -> String {
    let mut client = rig.client().await;
    let session = client.new_session().await;
    client.start_named(&session, "wait", name).await;
    client.until(|message| message["method"] == "session/update").await;
    session
}

/// 1: a turn never ends after a reconnect, because its response belonged to the dead connection.
#[tokio::test]
async fn a_turn_ends_after_a_reconnect() {
    let rig = Rig::new();
    let session = leave_during_turn(&rig, "p1").await;
    let mut back = rig.client().await;
    assert_eq!(back.load(&session).await["result"]["_meta"]["attache"]["state"], "running");
    let again = back.start_named(&session, "wait", "p1").await;
    back.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(stop_reason(&back.response(again).await), "cancelled");
    assert_eq!(rig.record.of("prompt"), ["wait"]);
    // Sent once more after its end, it is answered from the journal.
    let mut late = rig.client().await;
    late.open("session/resume", &session, json!({})).await;
    let again = late.start_named(&session, "wait", "p1").await;
    assert_eq!(stop_reason(&late.response(again).await), "cancelled");
    assert_eq!(rig.record.of("prompt"), ["wait"]);
    assert!(rig.hub.metrics().contains("attache_hub_prompts_repeated_total 2"));
}

/// 2: text is lost while nobody is connected.
#[tokio::test]
async fn text_without_a_client_is_kept() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    client.start_named(&session, "count 1000", "p1").await;
    drop(client);
    let mut back = rig.client().await;
    back.load(&session).await;
    let turn = back.start_named(&session, "count 1000", "p1").await;
    back.response(turn).await;
    let mut expected = vec!["> count 1000".to_owned()];
    expected.extend((1..=1000).map(|number| number.to_string()));
    // The prompt is sent again if it had not arrived.
    let texts: Vec<String> = back.texts();
    assert!(texts == expected || texts == expected[1..], "{} texts", texts.len());
    assert_eq!(rig.record.of("prompt").len(), 1);
}

/// 3: each reconnect builds everything again.
#[tokio::test]
async fn reconnects_start_nothing() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "hello").await;
    for _ in 0..200 {
        let mut back = rig.client().await;
        back.load(&session).await;
        assert_eq!(back.texts(), ["> hello", "hello"]);
    }
    assert_eq!(rig.record.of("start").len(), 1);
    assert!(rig.record.of("reopen").is_empty());
}

/// 4: a question that was asked while nobody was there is never asked again.
#[tokio::test]
async fn a_question_waits_for_a_client() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    client.start_named(&session, "ask may I", "p1").await;
    client.question().await;
    drop(client);
    // Asked again after the response of every load and resume, also of the same connection.
    let mut back = rig.client().await;
    for method in ["session/load", "session/resume", "session/load"] {
        back.seen.clear();
        back.open(method, &session, json!({})).await;
        assert!(!back.seen.iter().any(|message| message["method"] == "session/request_permission"));
        back.question().await;
    }
    let mut other = rig.client().await;
    other.load(&session).await;
    let question = other.question().await;
    let turn = back.start_named(&session, "ask may I", "p1").await;
    other.choose(&question, "yes").await;
    assert_eq!(stop_reason(&back.response(turn).await), "end_turn");
    assert_eq!(rig.record.of("answered"), ["yes"]);
}

/// 5: a client of version 1 gets updates that it does not know.
#[tokio::test]
async fn no_client_gets_an_unknown_update() {
    let rig = Rig::new();
    let (mut first, mut second) = (rig.client().await, rig.client().await);
    let session = first.new_session().await;
    second.load(&session).await;
    first.prompt(&session, "count 2").await;
    let turn = first.start_prompt(&session, "ask may I").await;
    let question = first.question().await;
    first.choose(&question, "yes").await;
    first.response(turn).await;
    second.until(|message| message["method"] == "_attache/turn_ended").await;
    second.until(|message| message["method"] == "_attache/turn_ended").await;
    let mut third = rig.client().await;
    third.load(&session).await;
    for message in first.seen.iter().chain(&second.seen).chain(&third.seen) {
        let method = message["method"].as_str().unwrap();
        match method {
            "session/update" => {
                let kind = message["params"]["update"]["sessionUpdate"].as_str().unwrap();
                assert!(["user_message_chunk", "agent_message_chunk"].contains(&kind), "{kind}");
            }
            "session/request_permission" | "$/cancel_request" => {}
            // Only what begins with `_` may be ignored by everybody.
            other => assert!(other.starts_with("_attache/"), "{other}"),
        }
        assert!(message["params"]["_meta"].is_null(), "a client that does not count gets no positions");
    }
}

/// 6: a cursor passes what the client has not seen, or "caught up" moves while the client catches
/// up. Here it leaves after every message once, in the middle of a turn, and its count is all that
/// it knows.
#[tokio::test]
async fn a_cursor_neither_skips_nor_repeats() {
    let rig = Rig::new();
    let mut driver = rig.client().await;
    let session = driver.new_session().await;
    let turn = driver.start_prompt(&session, "count 60").await;
    let mut at = None;
    let mut texts = Vec::new();
    let mut is_over = false;
    while !is_over {
        let mut client = rig.counting_client().await;
        let opened = match &at {
            None => client.load(&session).await,
            Some(at) => client.open("session/resume", &session, json!({"after": at, "strict": true})).await,
        };
        assert!(opened["result"].is_object(), "{opened}");
        // One message more than the replay, which ends at a fixed position.
        if client.seen.is_empty() {
            let next = client.next().await.unwrap();
            client.seen.push(next);
        }
        let first = client.seen.remove(0);
        at = Some(match counted(&first, at.as_deref(), &opened) {
            Some(at) => at,
            None => panic!("no position after {first}"),
        });
        texts.extend(crate::rig::text(&first));
        is_over = first["method"] == "_attache/turn_ended";
    }
    driver.response(turn).await;
    let mut expected = vec!["> count 60".to_owned()];
    expected.extend((1..=60).map(|number| number.to_string()));
    assert_eq!(texts, expected);
}

/// The position of a client that has seen one more message, as docs/hub.md describes it.
fn counted(message: &Value, before: Option<&str>, opened: &Value) -> Option<String> {
    let params = &message["params"];
    let own = if message["method"] == "_attache/position" {
        &params["at"]
    } else {
        &params["_meta"]["attache"]["at"]
    };
    if let Some(at) = own.as_str() {
        return Some(at.to_owned());
    }
    // A load starts before the first entry.
    let epoch = position(opened).split_once('.')?.0.to_owned();
    let seq = before.map_or(Some(0), |at| at.split_once('.')?.1.parse::<u64>().ok())?;
    Some(format!("{epoch}.{}", seq + 1))
}

/// 7: a client that closes a session ends the connections of others.
#[tokio::test]
async fn a_closed_session_closes_no_connection() {
    let rig = Rig::new();
    let (mut first, mut second) = (rig.client().await, rig.client().await);
    let session = first.new_session().await;
    second.load(&session).await;
    first.call("session/close", json!({"sessionId": session})).await;
    drop(first);
    assert_eq!(stop_reason(&second.prompt(&session, "hello").await), "end_turn");
    assert_eq!(second.texts(), ["hello"]);
}

/// 8: ids that clients claim decide about permissions.
#[tokio::test]
async fn a_claimed_identity_gives_no_rights() {
    let rig = Rig::new();
    let mut driver = rig.client().await;
    let session = driver.new_session().await;
    let mut watcher = rig.client_as(Identity::new("watcher").role(Role::Watch), false).await;
    let claim = json!({"role": "admin", "identity": "me", "after": "1.1"});
    watcher.open("session/resume", &session, claim).await;
    let turn = driver.start_prompt(&session, "ask may I").await;
    let question = driver.question().await;
    // The watcher guesses the ids of the question.
    for id in 0..3 {
        watcher.choose(&json!(id), "yes").await;
    }
    watcher.call("session/list", json!({})).await;
    driver.choose(&question, "no").await;
    driver.response(turn).await;
    assert_eq!(rig.record.of("answered"), ["no"]);
}

/// 9: the state is in the memory of one process. Here the hub is killed during a turn and a
/// question.
#[test]
fn a_killed_hub_loses_nothing_that_a_client_saw() {
    let (journal, record) = (Journal::memory(), Record::default());
    let abilities = Abilities { load: true, resume: false };
    let start = || Rig::on(journal.clone(), record.clone(), abilities, |options| options);
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();

    let first = runtime();
    let (session, seen) = first.block_on(async {
        let rig = start();
        let mut client = rig.client().await;
        let session = client.new_session().await;
        client.prompt(&session, "count 3").await;
        client.start_named(&session, "ask may I", "p2").await;
        client.question().await;
        (session, client.texts())
    });
    // Its tasks end where they are, as those of a killed process do.
    first.shutdown_background();

    runtime().block_on(async {
        let rig = start();
        let mut back = rig.counting_client().await;
        back.load(&session).await;
        assert_eq!(back.texts(), ["> count 3", "1", "2", "3", "> ask may I"]);
        assert_eq!(seen, ["1", "2", "3"]);
        // The interrupted turn says so, and is not run again.
        let again = back.start_named(&session, "ask may I", "p2").await;
        let response = back.response(again).await;
        assert_eq!(response["error"]["code"], -32603);
        assert_eq!(response["error"]["data"]["attache"]["interrupted"], true);
        assert_eq!(record.of("prompt"), ["count 3", "ask may I"]);
        let ended = back.seen.iter().rfind(|message| message["method"] == "_attache/turn_ended");
        assert_eq!(ended.unwrap()["params"]["interrupted"], true);
        // The next turn takes the session up again.
        assert_eq!(stop_reason(&back.prompt(&session, "hello").await), "end_turn");
        assert_eq!(record.of("reopen"), ["session/load"]);
    });
}

/// 10: two hubs of one user take the same sessions, and the error of the second one is not seen.
#[tokio::test]
async fn a_second_hub_does_not_take_a_session() {
    let (journal, record) = (Journal::memory(), Record::default());
    let abilities = Abilities { load: true, resume: false };
    let first = Rig::on(journal.clone(), record.clone(), abilities, |options| options);
    let mut client = first.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "hello").await;

    let of_agents = record.clone();
    let start = move || {
        let link = crate::agent::start(&of_agents, abilities);
        async move { Ok(link) }
    };
    let second = Rig { hub: Hub::new(journal, Options::new("another", start)), record: record.clone() };
    let mut other = second.client().await;
    let refused = other.load(&session).await;
    assert_eq!(refused["error"]["message"], "the session is in use by another hub");
    assert_eq!(stop_reason(&client.prompt(&session, "still here").await), "end_turn");
    assert_eq!(record.of("prompt"), ["hello", "still here"]);
}

/// 11: usage counts twice when the agent reports it again after a reload.
#[tokio::test]
async fn the_agents_replay_is_dropped() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    let turn = client.start_prompt(&session, "die").await;
    let response = client.response(turn).await;
    assert_eq!(response["error"]["data"]["attache"]["interrupted"], true);
    assert_eq!(stop_reason(&client.prompt(&session, "hello").await), "end_turn");
    assert_eq!(rig.record.of("reopen"), ["session/load"]);
    assert_eq!(client.texts(), ["last words", "hello"]);
    let has_usage = |client: &TestClient| {
        client.seen.iter().any(|message| message["params"]["update"]["sessionUpdate"] == "usage_update")
    };
    assert!(!has_usage(&client));
    let mut other = rig.client().await;
    other.load(&session).await;
    assert!(!has_usage(&other));
}
