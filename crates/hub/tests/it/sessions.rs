//! Sessions: joining, coming back, prompts, cancels.

use attache_journal::Journal;
use serde_json::json;

use crate::agent::{Abilities, Record};
use crate::rig::{Rig, position, stop_reason};

#[tokio::test]
async fn a_turn_passes_through() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    assert_eq!(session, "s", "the agent's id is kept");
    let response = client.prompt(&session, "count 3").await;
    assert_eq!(stop_reason(&response), "end_turn");
    assert_eq!(client.texts(), ["1", "2", "3"], "a client does not get its own prompt");
    assert!(client.seen.iter().all(|message| message["method"] == "session/update"), "{:?}", client.seen);
}

#[tokio::test]
async fn protocol_notifications_end_at_the_hub() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    // CANCEL-14
    client.send(json!({"method": "$/ping"})).await;
    client.notify("$/ping", json!({"sessionId": session})).await;
    client.notify("_x", json!({"sessionId": session})).await;
    client.prompt(&session, "hello").await;
    assert_eq!(rig.record.of("notification"), ["_x"]);
    assert!(client.seen.iter().all(|message| message["method"] == "session/update"), "{:?}", client.seen);
}

#[tokio::test]
async fn a_second_client_loads_and_follows() {
    let rig = Rig::new();
    let mut first = rig.client().await;
    let session = first.new_session().await;
    first.prompt(&session, "count 2").await;

    let mut second = rig.client().await;
    let loaded = second.load(&session).await;
    assert_eq!(second.texts(), ["> count 2", "1", "2"]);
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "ask");
    assert!(loaded["result"]["sessionId"].is_null());

    first.prompt(&session, "count 1").await;
    let ended = second.until(|message| message["method"] == "_attache/turn_ended").await;
    assert_eq!(ended["params"]["result"]["stopReason"], "end_turn");
    assert_eq!(second.texts(), ["> count 2", "1", "2", "> count 1", "1"]);
    assert_eq!(rig.record.of("start").len(), 1, "joining starts no agent");
}

#[tokio::test]
async fn resume_brings_no_history() {
    let rig = Rig::new();
    let mut first = rig.client().await;
    let session = first.new_session().await;
    first.prompt(&session, "count 2").await;
    let mut second = rig.client().await;
    second.open("session/resume", &session, json!({})).await;
    first.prompt(&session, "hello").await;
    second.until(|message| message["method"] == "_attache/turn_ended").await;
    assert_eq!(second.texts(), ["> hello", "hello"]);
}

#[tokio::test]
async fn sessions_with_the_same_id_get_names_of_their_own() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    assert_eq!(client.new_session().await, "s");
    let second = client.new_session().await;
    assert_eq!(second, "s~2");
    client.prompt(&second, "hello").await;
    assert_eq!(client.seen.last().unwrap()["params"]["sessionId"], "s~2");
    assert_eq!(rig.record.of("start").len(), 2, "a process for each session");
}

#[tokio::test]
async fn the_list_has_live_sessions_first() {
    let rig = Rig::with(|options| options.idle(std::time::Duration::ZERO));
    let mut client = rig.client().await;
    let first = client.new_session().await;
    client.prompt(&first, "a title\nand more").await;
    client.call("session/close", json!({"sessionId": first})).await;
    let second = client.new_session().await;
    let list = client.call("session/list", json!({})).await;
    let sessions = list["result"]["sessions"].as_array().unwrap();
    let ids: Vec<_> = sessions.iter().map(|session| session["sessionId"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.as_str(), first.as_str()]);
    assert_eq!(sessions[1]["title"], "a title");
    assert_eq!(sessions[1]["cwd"], "/");
    assert_eq!(sessions[0]["_meta"]["attache"]["clients"], 1);
}

#[tokio::test]
async fn prompts_queue_up_to_a_bound() {
    let rig = Rig::with(|options| options.queue(2));
    let mut client = rig.client().await;
    let session = client.new_session().await;
    let first = client.start_prompt(&session, "wait").await;
    client.until(|message| message["method"] == "session/update").await;
    let second = client.start_prompt(&session, "two").await;
    let third = client.start_prompt(&session, "three").await;
    let refused = client.prompt(&session, "four").await;
    assert_eq!(refused["error"]["message"], "too many prompts wait for this session");
    client.notify("session/cancel", json!({"sessionId": session})).await;
    // This client's queued prompts are cancelled with the turn.
    for id in [second, third, first] {
        assert_eq!(stop_reason(&client.response(id).await), "cancelled");
    }
    assert_eq!(rig.record.of("prompt"), ["wait"]);
}

#[tokio::test]
async fn a_cancel_keeps_the_prompts_of_others() {
    let rig = Rig::new();
    let (mut first, mut second) = (rig.client().await, rig.client().await);
    let session = first.new_session().await;
    second.load(&session).await;
    let waiting = first.start_prompt(&session, "wait").await;
    first.until(|message| message["method"] == "session/update").await;
    let queued = second.start_prompt(&session, "next").await;
    // The list shows that it is queued, so that the cancel comes after it.
    loop {
        let list = first.call("session/list", json!({})).await;
        if list["result"]["sessions"][0]["_meta"]["attache"]["queued"] == 1 {
            break;
        }
    }
    first.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(stop_reason(&first.response(waiting).await), "cancelled");
    assert_eq!(stop_reason(&second.response(queued).await), "end_turn");
}

#[tokio::test]
async fn a_closed_session_answers_its_prompts() {
    for method in ["session/close", "session/delete"] {
        let rig = Rig::new();
        let mut client = rig.client().await;
        let session = client.new_session().await;
        let running = client.start_prompt(&session, "wait").await;
        client.until(|message| message["method"] == "session/update").await;
        let queued = client.start_prompt(&session, "next").await;
        let closed = client.request(method, json!({"sessionId": session})).await;
        let mut open = vec![running, queued, closed];
        while !open.is_empty() {
            let response = client.until(|message| message["method"].is_null()).await;
            let id = response["id"].as_i64().unwrap();
            let is_open = open.iter().position(|open| *open == id);
            open.remove(is_open.expect("one response for each request"));
            if id != closed {
                assert_eq!(stop_reason(&response), "cancelled");
            }
        }
        let loaded = client.load(&session).await;
        match method {
            "session/close" => assert!(loaded["error"].is_null(), "{loaded}"),
            _ => assert_eq!(loaded["error"]["code"], -32002, "{loaded}"),
        }
    }
}

#[tokio::test]
async fn a_cursor_brings_the_gap() {
    let rig = Rig::new();
    let mut first = rig.counting_client().await;
    let response = first.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
    let (session, opened) =
        (response["result"]["sessionId"].as_str().unwrap().to_owned(), position(&response));
    let mut count = Count::new(&opened);
    first.prompt(&session, "count 5").await;
    first.seen.iter().for_each(|message| count.see(message));
    let in_the_middle = count.to_string();
    drop(first);

    let mut other = rig.client().await;
    other.load(&session).await;
    other.prompt(&session, "count 2").await;

    let mut back = rig.counting_client().await;
    let resumed = back.open("session/resume", &session, json!({"after": in_the_middle})).await;
    // The end of the turn was not counted, because the client left behind its response.
    assert_eq!(back.texts(), ["> count 2", "1", "2"]);
    back.seen.iter().for_each(|message| count.see(message));
    assert_eq!(position(&resumed), count.to_string(), "counting leads to the position of the response");
    assert!(resumed["result"]["_meta"]["attache"]["replayed"].is_null());
}

#[tokio::test]
async fn an_unknown_cursor_replays_everything_or_fails() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "hello").await;
    for after in ["0.1", "999999.1", "1.99999", "nonsense", "1.-2"] {
        let mut back = rig.client().await;
        let strict = back.open("session/resume", &session, json!({"after": after, "strict": true})).await;
        assert_eq!(strict["error"]["code"], -32602, "{after}");
        let replayed = back.open("session/resume", &session, json!({"after": after})).await;
        assert_eq!(replayed["result"]["_meta"]["attache"]["replayed"], "start", "{after}");
        assert_eq!(back.texts(), ["> hello", "hello"]);
    }
}

#[tokio::test]
async fn other_clients_learn_of_a_new_mode() {
    let rig = Rig::new();
    let (mut first, mut second) = (rig.client().await, rig.client().await);
    let session = first.new_session().await;
    second.load(&session).await;
    let set = first.call("session/set_mode", json!({"sessionId": session, "modeId": "code"})).await;
    assert_eq!(set["result"], json!({}));
    let update = second.until(|message| message["method"] == "session/update").await;
    assert_eq!(update["params"]["update"]["currentModeId"], "code");
    let mut third = rig.client().await;
    assert_eq!(third.load(&session).await["result"]["modes"]["currentModeId"], "code");
}

#[tokio::test]
async fn a_stored_session_is_resumed_without_the_agents_replay() {
    for (abilities, method) in [
        (Abilities { load: true, resume: false }, "session/load"),
        (Abilities { load: true, resume: true }, "session/resume"),
    ] {
        let rig = Rig::on(Journal::memory(), Record::default(), abilities, |options| options);
        let mut client = rig.client().await;
        let session = client.new_session().await;
        client.prompt(&session, "hello").await;
        client.call("session/close", json!({"sessionId": session})).await;
        let mut back = rig.client().await;
        back.load(&session).await;
        assert_eq!(rig.record.of("reopen").len(), 0, "the agent is started when it is needed");
        assert_eq!(stop_reason(&back.prompt(&session, "again").await), "end_turn");
        assert_eq!(back.texts(), ["> hello", "hello", "again"]);
        assert_eq!(rig.record.of("reopen"), [method]);
    }
}

#[tokio::test]
async fn an_agent_that_cannot_resume_fails_the_prompt_only() {
    let abilities = Abilities { load: false, resume: false };
    let rig = Rig::on(Journal::memory(), Record::default(), abilities, |options| options);
    let mut client = rig.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "hello").await;
    client.call("session/close", json!({"sessionId": session})).await;
    client.load(&session).await;
    let failed = client.prompt(&session, "again").await;
    assert_eq!(failed["error"]["message"], "the agent has ended and cannot resume sessions");
}

#[tokio::test(start_paused = true)]
async fn an_idle_agent_is_ended_and_started_again() {
    let rig = Rig::with(|options| options.idle(std::time::Duration::from_secs(60)));
    let mut client = rig.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "hello").await;
    // Not while a turn runs.
    let waiting = client.start_prompt(&session, "wait").await;
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    client.notify("session/cancel", json!({"sessionId": session})).await;
    client.response(waiting).await;
    assert_eq!(rig.record.of("start").len(), 1);
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    client.prompt(&session, "again").await;
    assert_eq!(rig.record.of("start").len(), 2);
    assert_eq!(rig.record.of("reopen"), ["session/load"]);
}

/// A client's count of its position, as docs/hub.md describes it.
struct Count {
    epoch: u64,
    seq: u64,
}

impl Count {
    fn new(at: &str) -> Count {
        let (epoch, seq) = at.split_once('.').unwrap();
        Count { epoch: epoch.parse().unwrap(), seq: seq.parse().unwrap() }
    }

    fn see(&mut self, message: &serde_json::Value) {
        let params = &message["params"];
        if params["sessionId"].is_null() {
            return;
        }
        let at = if message["method"] == "_attache/position" {
            &params["at"]
        } else {
            &params["_meta"]["attache"]["at"]
        };
        match (at.as_str(), params["_meta"]["attache"].is_object()) {
            (Some(at), _) => *self = Count::new(at),
            (None, true) => {}
            (None, false) => self.seq += 1,
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.epoch, self.seq)
    }
}
