//! Clients of version 2, alone and beside clients of version 1.

use attache_hub::Identity;
use serde_json::{Value, json};

use crate::rig::{Rig, TestClient, position, prompt, stop_reason};

/// What a client has seen, in short form: states, pieces of messages with their ids, other updates
/// by their kinds.
fn shown(client: &TestClient) -> Vec<String> {
    client.seen.iter().map(short).collect()
}

fn short(message: &Value) -> String {
    let update = &message["params"]["update"];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    match update["sessionUpdate"].as_str() {
        Some("state_update") => {
            let reason = update["stopReason"].as_str().map(|reason| format!(" {reason}"));
            format!("{}{}", text(&update["state"]), reason.unwrap_or_default())
        }
        Some(kind @ ("user_message_chunk" | "agent_message_chunk")) => {
            let who = kind.split('_').next().unwrap();
            format!("{who} {} {}", text(&update["messageId"]), text(&update["content"]["text"]))
        }
        Some(kind) => kind.to_owned(),
        None => text(&message["method"]),
    }
}

async fn is_idle(client: &mut TestClient) -> Value {
    let idle = client.until(|message| message["params"]["update"]["state"] == "idle").await;
    client.seen.push(idle.clone());
    idle
}

fn replay(session: &str, from: Value) -> Value {
    json!({"sessionId": session, "cwd": "/", "replayFrom": from})
}

async fn resume(client: &mut TestClient, session: &str, from: Value) -> Value {
    client.call("session/resume", replay(session, from)).await
}

fn start() -> Value {
    json!({"type": "start"})
}

#[tokio::test]
async fn a_turn_is_told_by_states() {
    // shows V2-08, V2-10, V2-11, V2-12, V2-16
    let rig = Rig::new();
    let mut client = rig.v2_client().await;
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let mode = &opened["result"]["configOptions"][0];
    assert_eq!((&mode["configId"], &mode["currentValue"]), (&json!("mode"), &json!("ask")), "{opened}");
    assert!(client.seen.is_empty(), "a new session is idle");

    let response = client.call("session/prompt", prompt(&session, "count 2")).await;
    let id = response["result"]["messageId"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
    is_idle(&mut client).await;
    let seen = shown(&client);
    let answer = client.seen[2]["params"]["update"]["messageId"].as_str().unwrap();
    assert_ne!(answer, id);
    let expected = [
        "running".to_owned(),
        format!("user {id} count 2"),
        format!("agent {answer} 1"),
        format!("agent {answer} 2"),
        "idle end_turn".to_owned(),
    ];
    assert_eq!(seen, expected);
    assert_eq!(rig.record.of("prompt"), ["count 2"]);
}

#[tokio::test]
async fn clients_of_both_versions_share_a_session() {
    // shows V2-13, V2-24
    let rig = Rig::new();
    let (mut old, mut new) = (rig.client().await, rig.v2_client().await);
    let session = old.new_session().await;
    assert!(resume(&mut new, &session, start()).await["result"].is_object());
    assert_eq!(shown(&new), ["idle"], "V2-27: a state precedes the response");
    new.seen.clear();

    let turn = old.start_prompt(&session, "ask may I").await;
    let (mine, theirs) = (old.question().await, {
        let asked = new.until(|message| message["method"] == "session/request_permission").await;
        assert_eq!(asked["params"]["title"], "may I");
        assert_eq!(asked["params"]["subject"]["type"], "tool_call");
        assert_eq!(asked["params"]["subject"]["toolCall"]["toolCallId"], "t");
        assert_eq!(asked["params"]["options"][0]["optionId"], "yes");
        asked["id"].clone()
    });
    // An outcome that only version 2 may have is no approval.
    new.send(json!({"jsonrpc": "2.0", "id": theirs, "result": {"outcome": {"outcome": "_later"}}})).await;
    let withdrawn = old.until(|message| message["method"] == "$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], mine);
    assert_eq!(stop_reason(&old.response(turn).await), "end_turn");
    is_idle(&mut new).await;
    let states: Vec<_> = shown(&new).into_iter().filter(|line| !line.contains(' ')).collect();
    assert_eq!(states, ["running", "requires_action", "running"]);
    assert_eq!(rig.record.of("answered"), ["cancelled"]);

    // The other way round.
    old.seen.clear();
    new.call("session/prompt", prompt(&session, "count 2")).await;
    old.until(|message| message["method"] == "_attache/turn_ended").await;
    assert_eq!(old.texts(), ["> count 2", "1", "2"]);
    let kinds = old.seen.iter().map(|message| message["params"]["update"]["sessionUpdate"].as_str().unwrap());
    assert!(kinds.into_iter().all(|kind| kind != "state_update"), "version 1 has no states");
}

#[tokio::test]
async fn updates_have_the_form_of_version_2() {
    // shows V2-33, V2-39
    let rig = Rig::new();
    let mut client = rig.v2_client().await;
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    client.call("session/prompt", prompt(&session, "edit")).await;
    is_idle(&mut client).await;
    let of = |kind: &str| {
        let updates = client.seen.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).cloned().collect::<Vec<_>>()
    };
    let calls = of("tool_call_update");
    assert_eq!((&calls[0]["title"], &calls[1]["status"]), (&json!("Edit"), &json!("completed")));
    let change = &calls[1]["content"][0]["changes"][0];
    assert_eq!((&change["operation"], &change["path"]), (&json!("modify"), &json!("/a")));
    assert_eq!(of("plan_update")[0]["plan"]["entries"][0]["content"], "one");
    assert_eq!(of("config_option_update")[0]["configOptions"][0]["currentValue"], "code");
    assert!(of("tool_call").is_empty() && of("plan").is_empty() && of("current_mode_update").is_empty());
}

#[tokio::test]
async fn messages_have_the_same_ids_for_everybody() {
    // shows V2-26
    let rig = Rig::new();
    let mut first = rig.v2_client().await;
    let opened = first.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    // Longer than the part of a message that is looked at first.
    for text in ["count 300", "edit", "count 100"] {
        first.call("session/prompt", prompt(&session, text)).await;
        is_idle(&mut first).await;
    }
    let messages = |client: &TestClient| {
        shown(client).into_iter().filter(|line| line.contains(" msg-")).collect::<Vec<_>>()
    };
    let all = messages(&first);
    assert_eq!(all.len(), 3 + 300 + 1 + 100);

    let mut whole = rig.v2_client().await;
    let resumed = resume(&mut whole, &session, start()).await;
    assert_eq!(messages(&whole), all);
    assert_eq!(shown(&whole).last().unwrap(), "idle end_turn");
    let states = shown(&whole).into_iter().filter(|line| line == "running").count();
    assert_eq!(states, 0, "a replay has no states");

    // Every position is the begin of another replay.
    let last = position(&resumed);
    let (epoch, last) = last.split_once('.').unwrap();
    let last: u64 = last.parse().unwrap();
    for at in [1, 2, 3, 150, 250, last - 60, last - 2, last] {
        let mut back = rig.v2_client().await;
        let from = json!({"type": "_attache_after", "at": format!("{epoch}.{at}")});
        resume(&mut back, &session, from).await;
        let part = messages(&back);
        assert!(all.ends_with(&part), "after {at}: {:?}", part.first());
    }
    for at in ["0.1", "9.9", "x"] {
        let from = json!({"type": "_attache_after", "at": at});
        assert_eq!(resume(&mut whole, &session, from).await["error"]["code"], -32602, "{at}");
    }
    for from in [json!({"type": "_other"}), json!({"type": "_attache_after"}), json!("start")] {
        assert_eq!(resume(&mut whole, &session, from.clone()).await["error"]["code"], -32602, "{from}");
    }
}

#[tokio::test]
async fn joining_during_a_turn_shows_its_state() {
    let rig = Rig::new();
    let mut old = rig.client().await;
    let session = old.new_session().await;
    let turn = old.start_prompt(&session, "ask may I").await;
    let question = old.question().await;
    let mut new = rig.v2_client().await;
    new.call("session/resume", json!({"sessionId": session, "cwd": "/"})).await;
    assert_eq!(shown(&new), ["requires_action"]);
    new.until(|message| message["method"] == "session/request_permission").await;
    old.choose(&question, "yes").await;
    is_idle(&mut new).await;
    old.response(turn).await;
    let seen = shown(&new);
    assert_eq!(seen[0..3], ["requires_action", "$/cancel_request", "running"]);
    assert!(seen[3].ends_with("answer yes"), "{seen:?}");
    assert_eq!(seen[4..], ["idle end_turn"]);
}

#[tokio::test]
async fn a_counting_client_comes_back_where_it_was() {
    let rig = Rig::new();
    let mut client = rig.connect(Identity::new("me"));
    let info = json!({"name": "test", "version": "1"});
    let capabilities = json!({"_meta": {"attache": {}}});
    client
        .call("initialize", json!({"protocolVersion": 2, "info": info, "capabilities": capabilities}))
        .await;
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    for text in ["count 3", "edit"] {
        client.call("session/prompt", prompt(&session, text)).await;
        is_idle(&mut client).await;
    }
    // The count of docs/hub.md.
    let position_of = |opened: &Value| {
        let at = position(opened);
        let (epoch, seq) = at.split_once('.').unwrap();
        (epoch.to_owned(), seq.parse::<u64>().unwrap())
    };
    let (epoch, mut seq) = position_of(&opened);
    for message in &client.seen {
        let params = &message["params"];
        let at = match message["method"] == "_attache/position" {
            true => &params["at"],
            false => &params["_meta"]["attache"]["at"],
        };
        match (at.as_str(), params["_meta"]["attache"].is_object()) {
            (Some(at), _) => seq = at.split_once('.').unwrap().1.parse().unwrap(),
            (None, true) => {}
            (None, false) => seq += 1,
        }
    }
    let mut other = rig.v2_client().await;
    let resumed = resume(&mut other, &session, start()).await;
    assert_eq!(position_of(&resumed), (epoch, seq));
}

#[tokio::test]
async fn settings_reach_clients_of_both_versions() {
    // shows V2-40, CONF-13
    let rig = Rig::new();
    let (mut old, mut new, mut third) = (rig.client().await, rig.v2_client().await, rig.v2_client().await);
    let params = json!({"cwd": "/", "mcpServers": [], "_meta": {"options": true}});
    let opened = old.call("session/new", params).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let joined = resume(&mut new, &session, start()).await;
    resume(&mut third, &session, start()).await;
    let ids = |options: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        options
            .as_array()
            .unwrap()
            .iter()
            .map(|option| (text(&option["configId"]), text(&option["currentValue"])))
            .collect()
    };
    let pairs = |speed: &str, mode: &str| {
        vec![("speed".to_owned(), speed.to_owned()), ("mode".to_owned(), mode.to_owned())]
    };
    assert_eq!(ids(&joined["result"]["configOptions"]), pairs("fast", "ask"));

    let set =
        |id: &str, value: &str| json!({"sessionId": session, "configId": id, "type": "id", "value": value});
    let changed = new.call("session/set_config_option", set("speed", "good")).await;
    assert_eq!(ids(&changed["result"]["configOptions"]), pairs("good", "ask"), "{changed}");
    let told = old.until(|message| message["method"] == "session/update").await;
    assert_eq!(told["params"]["update"]["configOptions"][0]["currentValue"], "good");
    let changed = new.call("session/set_config_option", set("mode", "code")).await;
    assert_eq!(ids(&changed["result"]["configOptions"]), pairs("good", "code"), "{changed}");
    let told = old.until(|message| message["method"] == "session/update").await;
    assert_eq!(told["params"]["update"]["currentModeId"], "code");
    third.until(|message| message["params"]["update"]["configOptions"][1]["currentValue"] == "code").await;
    for bad in [
        json!({"sessionId": session, "configId": "mode", "value": "code"}),
        json!({"sessionId": session, "configId": "mode", "type": "_x", "value": 1}),
    ] {
        assert_eq!(new.call("session/set_config_option", bad).await["error"]["code"], -32602);
    }

    // Who comes later sees the present settings.
    let loaded = rig.client().await.load(&session).await;
    assert_eq!(loaded["result"]["configOptions"][0]["currentValue"], "good");
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "code");
    let joined = resume(&mut rig.v2_client().await, &session, start()).await;
    assert_eq!(ids(&joined["result"]["configOptions"]), pairs("good", "code"));
}

#[tokio::test]
async fn a_cancel_ends_with_a_state() {
    // shows V2-14, V2-15
    let rig = Rig::new();
    let mut client = rig.v2_client().await;
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    client.call("session/prompt", prompt(&session, "wait")).await;
    let queued = client.start_prompt(&session, "next").await;
    // The list shows that it is queued, so that the cancel comes after it.
    loop {
        let list = client.call("session/list", json!({})).await;
        if list["result"]["sessions"][0]["_meta"]["attache"]["queued"] == 1 {
            break;
        }
    }
    client.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(client.response(queued).await["error"]["code"], -32800);
    assert_eq!(is_idle(&mut client).await["params"]["update"]["stopReason"], "cancelled");
    assert_eq!(rig.record.of("prompt"), ["wait"]);
}

#[tokio::test]
async fn a_close_ends_the_work_before_its_response() {
    // shows V2-28, V2-29
    let rig = Rig::new();
    let mut client = rig.v2_client().await;
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    client.call("session/prompt", prompt(&session, "wait")).await;
    client.seen.clear();
    for _ in 0..2 {
        let closed = client.call("session/close", json!({"sessionId": session})).await;
        assert_eq!(closed["result"], json!({}));
    }
    assert_eq!(shown(&client).last().unwrap(), "idle cancelled");
}

#[tokio::test]
async fn a_prompt_that_is_sent_again_runs_once() {
    let rig = Rig::new();
    let mut client = rig.v2_client().await;
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let first = client.start_named(&session, "wait", "p1").await;
    let id = client.response(first).await["result"]["messageId"].clone();
    drop(client);
    let mut back = rig.v2_client().await;
    resume(&mut back, &session, start()).await;
    assert_eq!(shown(&back).last().unwrap(), "running");
    let again = back.start_named(&session, "wait", "p1").await;
    assert_eq!(back.response(again).await["result"]["messageId"], id);
    back.notify("session/cancel", json!({"sessionId": session})).await;
    is_idle(&mut back).await;
    // After its end too, and by a client that did not see it.
    let mut late = rig.v2_client().await;
    late.call("session/resume", json!({"sessionId": session, "cwd": "/"})).await;
    let again = late.start_named(&session, "wait", "p1").await;
    assert_eq!(late.response(again).await["result"]["messageId"], id);
    assert_eq!(rig.record.of("prompt"), ["wait"]);
}

#[tokio::test]
async fn an_agent_that_dies_is_told_by_a_state() {
    // shows V2-09
    let rig = Rig::new();
    let mut client = rig.v2_client().await;
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let response = client.call("session/prompt", prompt(&session, "die")).await;
    assert!(response["result"]["messageId"].is_string(), "{response}");
    let idle = is_idle(&mut client).await;
    let update = &idle["params"]["update"];
    assert_eq!(update["stopReason"], "error");
    assert_eq!(update["error"]["data"]["attache"]["interrupted"], true, "{update}");
}

#[tokio::test]
async fn the_version_belongs_to_the_connection() {
    // shows V2-01, V2-03, V2-04, V2-39
    let rig = Rig::new();
    let mut client = rig.connect(Identity::new("me"));
    let info = json!({"name": "test", "version": "1"});
    let unnamed = client.call("initialize", json!({"protocolVersion": 2})).await;
    assert_eq!(unnamed["error"]["code"], -32602);
    let newer = client.call("initialize", json!({"protocolVersion": 3, "info": info})).await;
    assert_eq!(newer["result"]["protocolVersion"], 2);
    let capabilities = &newer["result"]["capabilities"];
    assert!(
        capabilities["session"]["delete"].is_object()
            && capabilities["session"]["prompt"]["image"].is_object()
    );
    assert_eq!(capabilities["_meta"]["attache"]["role"], "admin", "{newer}");
    assert_eq!(newer["result"]["info"]["name"], "scripted");
    let older = client.call("initialize", json!({"protocolVersion": 1})).await;
    assert_eq!(older["error"]["data"]["supported"], json!([2]), "{older}");
    for method in ["session/load", "session/set_mode", "session/fork", "authenticate", "fs/read_text_file"] {
        let refused = client.call(method, json!({"sessionId": "s", "cwd": "/"})).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}");
    }
    client.send(json!({"jsonrpc": "2.0", "id": null, "method": "session/list", "params": {}})).await;
    let refused = client.until(|message| message["error"].is_object()).await;
    assert_eq!(refused["error"]["code"], -32600);
    let again = client.call("initialize", json!({"protocolVersion": 2, "info": info})).await;
    assert_eq!(again["error"]["code"], -32600);
    let opened = client.call("session/new", json!({"cwd": "/"})).await;
    let session = opened["result"]["sessionId"].as_str().unwrap();
    let unknown = client.call("tool_call/cancel", json!({"sessionId": session, "toolCallId": "t"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let server = json!({"type": "sse", "name": "x", "url": "http://x"});
    let refused = client.call("session/new", json!({"cwd": "/", "mcpServers": [server]})).await;
    assert_eq!(refused["error"]["code"], -32602);
}
