//! What real agents do, one test for each: none of it may hurt.

use attache::client::{Client, ConnectionEvent, Event};
use attache::wire::v1::PermissionOptionKind;
use attache::{Error, StopReason};
use serde_json::{Value, json};

use crate::script::{Script, connect, open};
use crate::turn_events::SkipStates;

/// A turn that works, whatever came before.
async fn still_works(session: &mut attache::client::Session, agent: &mut Script) {
    let mut turn = session.prompt("still there?").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.say("s1", "yes").await;
    agent.end_turn(&prompt).await;
    assert_eq!(turn.text().await.unwrap(), "yes");
    assert_eq!(turn.stop_reason(), Some(StopReason::EndTurn));
}

#[tokio::test(start_paused = true)]
async fn errors_for_notifications_without_an_id_or_with_null() {
    let (mut session, mut agent) = open(Client::new()).await;
    let error = json!({"code": -32601, "message": "method not found"});
    agent.send(json!({"jsonrpc": "2.0", "error": error})).await;
    agent.send(json!({"jsonrpc": "2.0", "id": null, "error": error})).await;
    agent.expect_silence().await;
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn parse_errors_with_a_null_id() {
    let (mut session, mut agent) = open(Client::new()).await;
    agent
        .send(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "parse error"}}))
        .await;
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn both_sides_use_the_same_ids_and_uuids() {
    let client = Client::new().read_files(|_, _| async { Ok("text".to_owned()) });
    let (mut session, mut agent) = open(client).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    let read = json!({"sessionId": "s1", "path": "/a"});
    for id in [prompt["id"].clone(), json!(0), json!("7b0c6f1e-0000-4000-8000-000000000000"), json!("0")] {
        agent.request(id.clone(), "fs/read_text_file", read.clone()).await;
        assert_eq!(agent.result(id).await["content"], "text");
    }
    agent.end_turn(&prompt).await;
    assert!(turn.after_states().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn error_codes_outside_of_json_rpc_and_messages_that_are_json() {
    let (mut session, mut agent) = open(Client::new()).await;
    for (code, message) in [
        (400, "{\"type\":\"error\"}"),
        (-32042, "ELIC-34"),
        (-32602, "unknown session"),
        (-32603, "unknown session"),
    ] {
        let mut turn = session.prompt("go").await.unwrap();
        let prompt = agent.expect("session/prompt").await;
        agent.refuse(&prompt, code, message).await;
        let Err(Error::Refused(error)) = turn.after_states().await else { panic!() };
        assert_eq!((error.code, &*error.message), (code, message));
    }
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn null_for_results() {
    // RPC-22: where nothing is required null will do, elsewhere it is an error and no more
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    let (session, ()) = tokio::join!(handle.new_session("/work"), async {
        let request = agent.expect("session/new").await;
        agent.answer(&request, json!(null)).await;
    });
    assert!(matches!(session, Err(Error::Decode { .. })));
    let (session, _) = tokio::join!(handle.new_session("/work"), agent.new_session("s1"));
    let mut session = session.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.answer(&prompt, json!(null)).await;
    assert!(matches!(turn.after_states().await, Err(Error::Decode { .. })));
    drop(turn);
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn half_a_megabyte_of_commands_right_after_the_session() {
    let (session, mut agent) = open(Client::new()).await;
    let description = "d".repeat(1000);
    let commands: Vec<Value> =
        (0..561).map(|n| json!({"name": format!("c{n}"), "description": description})).collect();
    agent
        .update("s1", json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}))
        .await;
    let mut session = session;
    assert!(
        matches!(session.next_update().await.unwrap(), Event::Commands(commands) if commands.len() == 561)
    );
    assert_eq!(session.commands().len(), 561);
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    let big = "x".repeat(200_000);
    let write = async {
        agent.say("s1", &big).await;
        agent.end_turn(&prompt).await;
    };
    let (text, ()) = tokio::join!(turn.text(), write);
    assert_eq!(text.unwrap().len(), 200_000);
}

#[tokio::test(start_paused = true)]
async fn line_separators_inside_of_texts() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("a\u{2028}b\u{85}c\nd").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    assert_eq!(prompt["params"]["prompt"][0]["text"], "a\u{2028}b\u{85}c\nd");
    agent.say("s1", "x\u{2028}y\u{2029}z\u{c}").await;
    agent.end_turn(&prompt).await;
    assert_eq!(turn.text().await.unwrap(), "x\u{2028}y\u{2029}z\u{c}");
}

#[tokio::test(start_paused = true)]
async fn the_kind_of_an_update_as_its_last_member() {
    let (mut session, mut agent) = open(Client::new()).await;
    agent
        .raw(r#"{"params":{"update":{"content":{"text":"hi","type":"text"},"sessionUpdate":"agent_message_chunk"},"sessionId":"s1"},"method":"session/update","jsonrpc":"2.0"}"#)
        .await;
    assert!(matches!(session.next_update().await.unwrap(), Event::Text(text) if &*text == "hi"));
}

#[tokio::test(start_paused = true)]
async fn no_capabilities_at_all() {
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().connect(link).await });
    let hello = agent.expect("initialize").await;
    agent.answer(&hello, json!({"protocolVersion": 1})).await;
    let handle = connecting.await.unwrap().unwrap();
    assert!(handle.loader().is_none() && handle.info().is_none() && handle.auth_methods().is_empty());

    // INIT-20: malformed ones are absent ones
    let (link, mut agent) = Script::pair();
    let connecting = tokio::spawn(async move { Client::new().connect(link).await });
    let hello = agent.expect("initialize").await;
    agent
        .answer(
            &hello,
            json!({"protocolVersion": 1, "agentCapabilities": "x", "authMethods": 5, "agentInfo": []}),
        )
        .await;
    assert!(connecting.await.unwrap().unwrap().loader().is_none());
}

#[tokio::test(start_paused = true)]
async fn files_written_although_that_was_not_offered() {
    let client = Client::new().read_files(|_, _| async { Ok(String::new()) });
    let (mut session, mut agent) = open(client).await;
    agent.request(1, "fs/write_text_file", json!({"sessionId": "s1", "path": "/a", "content": ""})).await;
    agent.error(1, -32601).await;
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn updates_and_questions_before_the_answer_of_the_session() {
    let client = Client::new().elicitation_forms().read_files(|_, _| async { Ok("early".to_owned()) });
    let (handle, mut agent) = connect(client, json!({"sessionCapabilities": {"fork": {}}})).await;
    let mut events = handle.events().unwrap();
    let (session, ()) = tokio::join!(handle.new_session("/work"), async {
        let request = agent.expect("session/new").await;
        let commands = json!([{"name": "c", "description": "d"}]);
        agent
            .update(
                "s1",
                json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
            )
            .await;
        agent.update("s1", json!({"sessionUpdate": "usage_update", "used": 1, "size": 2})).await;
        agent.update("other", json!({"sessionUpdate": "usage_update", "used": 1, "size": 2})).await;
        agent.request(1, "fs/read_text_file", json!({"sessionId": "s1", "path": "/a"})).await;
        agent.request(2, "fs/read_text_file", json!({"sessionId": "other", "path": "/a"})).await;
        agent.ask(3, "s1").await;
        let form = json!({"sessionId": "s1", "mode": "form", "message": "m", "requestedSchema": {}});
        agent.request(4, "elicitation/create", form).await;
        agent.expect_silence().await;
        agent.answer(&request, json!({"sessionId": "s1"})).await;
    });
    let mut session = session.unwrap();
    assert!(matches!(session.next_update().await.unwrap(), Event::Commands(_)));
    assert!(matches!(session.next_update().await.unwrap(), Event::Usage(_)));
    let Event::Permission(ask) = session.next_update().await.unwrap() else { panic!() };
    assert_eq!((session.commands().len(), session.usage().unwrap().used), (1, 1));
    let mut answers = [agent.line().await, agent.line().await];
    answers.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(answers[0]["result"]["content"], "early");
    assert_eq!(answers[1]["error"]["code"], -32002);
    ask.cancel();
    agent.result(3).await;
    assert!(matches!(session.next_update().await.unwrap(), Event::Elicitation(_)));
    assert_eq!(agent.result(4).await, json!({"action": "cancel"}));
    assert!(
        matches!(events.next().await, Some(ConnectionEvent::Stray { session_id, .. }) if session_id == "other")
    );

    // a fork's history before the fork's answer
    let (fork, ()) = tokio::join!(handle.forker().unwrap().fork("s1", "/work"), async {
        let request = agent.expect("session/fork").await;
        for _ in 0..100 {
            agent.say("s2", "history").await;
        }
        agent.answer(&request, json!({"sessionId": "s2"})).await;
    });
    let mut fork = fork.unwrap();
    for _ in 0..100 {
        assert!(matches!(fork.next_update().await.unwrap(), Event::Text(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_permission_request_before_any_prompt() {
    let (mut session, mut agent) = open(Client::new()).await;
    agent.ask(1, "s1").await;
    let Event::Permission(ask) = session.next_update().await.unwrap() else { panic!() };
    ask.choose_kind(PermissionOptionKind::AllowOnce);
    assert_eq!(agent.result(1).await["outcome"]["optionId"], "yes");
    // and one that only a turn finds
    agent.ask(2, "s1").await;
    agent.expect_silence().await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    ask.choose_kind(PermissionOptionKind::RejectOnce);
    assert_eq!(agent.result(2).await["outcome"]["optionId"], "no");
    agent.end_turn(&prompt).await;
    assert!(turn.after_states().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn updates_after_the_answer_of_a_prompt_and_of_a_load() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.end_turn(&prompt).await;
    agent.say("s1", "late").await;
    assert!(turn.after_states().await.unwrap().is_none());
    drop(turn);
    assert!(matches!(session.next_update().await.unwrap(), Event::Text(text) if &*text == "late"));
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn unannounced_tool_calls() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    // only the permission request, then an update
    let call = json!({"toolCallId": "a", "title": "Edit", "kind": "edit"});
    let options = json!([{"optionId": "y", "name": "Y", "kind": "allow_once"}]);
    agent
        .request(
            1,
            "session/request_permission",
            json!({"sessionId": "s1", "toolCall": call, "options": options}),
        )
        .await;
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(change.created && change.update.title.as_deref() == Some("Edit"));
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    ask.choose_kind(PermissionOptionKind::AllowOnce);
    agent.result(1).await;
    agent
        .update("s1", json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed"}))
        .await;
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(!change.created && *change.id() == "a");

    // the updates first and the announcement last
    agent
        .update(
            "s1",
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "in_progress"}),
        )
        .await;
    let diff = json!([{"type": "diff", "path": "/a", "oldText": null, "newText": "x"}]);
    agent.update("s1", json!({"sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "completed", "content": diff})).await;
    agent.update("s1", json!({"sessionUpdate": "tool_call", "toolCallId": "b", "title": "B"})).await;
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(change.created && change.update.content.as_ref().unwrap().len() == 1);
    assert_eq!(change.update.status.unwrap().as_str(), "completed");
    agent.end_turn(&prompt).await;
    assert!(turn.after_states().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_permission_request_with_nothing_but_an_id() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    agent.ask(1, "s1").await;
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(ask.tool_call().title.is_none());
    ask.choose(&"no".into()).unwrap();
    assert_eq!(agent.result(1).await["outcome"]["optionId"], "no");
}

#[tokio::test(start_paused = true)]
async fn two_options_of_the_same_kind() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    let option = |id: &str, kind: &str| json!({"optionId": id, "name": id, "kind": kind});
    let options = json!([
        option("a", "allow_always"),
        option("b", "allow_always"),
        option("c", "allow_once"),
        option("d", "allow_once")
    ]);
    agent
        .request(
            1,
            "session/request_permission",
            json!({"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": options}),
        )
        .await;
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(ask.options().len(), 4);
    ask.choose(&"d".into()).unwrap();
    assert_eq!(agent.result(1).await["outcome"]["optionId"], "d");
}

#[tokio::test(start_paused = true)]
async fn terminals_that_the_client_never_made() {
    let (mut session, mut agent) = open(Client::new()).await;
    let content = json!([{"type": "terminal", "terminalId": "ghost"}, {"type": "text", "text": "bare"}]);
    agent
        .update(
            "s1",
            json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "A", "content": content}),
        )
        .await;
    let Event::ToolCall(change) = session.next_update().await.unwrap() else { panic!() };
    // CONT-07, TOOL-14: the item that is none is skipped
    assert_eq!(change.update.content.as_ref().unwrap().len(), 1);
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_permission_that_cancels_the_turn() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.ask(1, "s1").await;
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    ask.choose_kind(PermissionOptionKind::RejectOnce);
    agent.result(1).await;
    agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::Cancelled);
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn models_that_are_offered_and_then_refused() {
    let (handle, mut agent) = connect(Client::new(), json!({})).await;
    let models = json!({"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M", "description": null}]});
    let (session, ()) = tokio::join!(handle.new_session("/work"), async {
        let request = agent.expect("session/new").await;
        agent.answer(&request, json!({"sessionId": "s1", "models": models})).await;
    });
    let mut session = session.unwrap();
    assert_eq!(session.models().unwrap().available_models.len(), 1);
    let control = session.control();
    let (refused, ()) = tokio::join!(control.set_model("m"), async {
        let request = agent.expect("session/set_model").await;
        agent.refuse(&request, -32601, "method not found").await;
    });
    assert!(matches!(refused, Err(Error::Refused(_))));
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn methods_of_their_own_with_and_without_an_underscore() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut events = session.agent().events().unwrap();
    for method in ["craft/ping", "qwen/notify/x", "_session/retrying", "_auth/status_update"] {
        agent.notify(method, json!({"x": 1})).await;
        assert!(
            matches!(events.next().await, Some(ConnectionEvent::Notification { method: received, .. }) if received == method)
        );
    }
    agent.request("q", "craft/ask", json!({})).await;
    agent.error("q", -32601).await;
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn nulls_where_nothing_would_do_and_the_wrong_name_of_a_mode() {
    let (handle, mut agent) =
        connect(Client::new(), json!({"loadSession": null, "sessionCapabilities": {"resume": null}})).await;
    assert!(handle.loader().is_none() && handle.resumer().is_none()); // INIT-19
    let modes =
        json!({"currentModeId": "a", "availableModes": [{"id": "a", "name": "A", "description": null}]});
    let (session, ()) = tokio::join!(handle.new_session("/work"), async {
        let request = agent.expect("session/new").await;
        agent.answer(&request, json!({"sessionId": "s1", "modes": modes, "configOptions": null})).await;
    });
    let mut session = session.unwrap();
    agent.update("s1", json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a", "description": "d", "input": null}]})).await;
    agent.update("s1", json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "locations": [{"path": "/a", "line": null}]})).await;
    // MODE-07: the page of the documentation writes `modeId`
    agent.update("s1", json!({"sessionUpdate": "current_mode_update", "modeId": "b"})).await;
    assert!(matches!(session.next_update().await.unwrap(), Event::Commands(_)));
    assert!(matches!(session.next_update().await.unwrap(), Event::ToolCall(_)));
    assert!(matches!(session.next_update().await.unwrap(), Event::Mode(mode) if mode == "b"));
    assert_eq!(session.modes().unwrap().current_mode_id, "b");
    let turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.answer(&prompt, json!({"stopReason": "end_turn", "usage": null})).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn updates_that_are_unknown_or_malformed() {
    // shows PROMPT-16, PROMPT-18, CONT-07
    let (mut session, mut agent) = open(Client::new()).await;
    let mut events = session.agent().events().unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.update("s1", json!({"sessionUpdate": "future_update", "x": [1, 2]})).await;
    agent
        .update("s1", json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}}))
        .await;
    agent.notify("session/update", json!({"sessionId": "s1", "kind": "agent-text", "content": "x"})).await;
    agent.notify("session/update", json!([1, 2])).await;
    agent.notify("session/update", json!(null)).await;
    agent.say("s1", "fine").await;
    agent.end_turn(&prompt).await;
    let Some(Event::Other(unknown)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(unknown.tag, "future_update");
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    assert!(turn.after_states().await.unwrap().is_none());
    assert!(
        matches!(events.next().await, Some(ConnectionEvent::Noise { why, .. }) if why.contains("session/update"))
    );
    drop(turn);
    still_works(&mut session, &mut agent).await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_file_that_has_to_be_an_empty_one() {
    for (empty, client) in [false, true].map(|yes| (yes, Client::new().missing_files_are_empty(yes))) {
        let client = client.read_files(|_, _| async { Err::<String, _>(Error::not_found("no such file")) });
        let (_session, mut agent) = open(client).await;
        agent.request(1, "fs/read_text_file", json!({"sessionId": "s1", "path": "/new"})).await;
        if empty {
            assert_eq!(agent.result(1).await, json!({"content": ""}));
        } else {
            agent.error(1, -32002).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_can_only_create_files_that_are_empty() {
    for (name, version, setting, empty) in [
        ("gemini-cli", "0.61.0", None, true),
        ("gemini-cli", "0.62.0", None, false),
        ("another", "0.61.0", None, false),
        ("gemini-cli", "0.61.0", Some(false), false),
    ] {
        let mut client =
            Client::new().read_files(|_, _| async { Err::<String, _>(Error::not_found("no file")) });
        if let Some(setting) = setting {
            client = client.missing_files_are_empty(setting);
        }
        let info = json!({"name": name, "version": version});
        let (link, mut agent) = Script::pair();
        let answer_initialize = async {
            let hello = agent.expect("initialize").await;
            agent.answer(&hello, json!({"protocolVersion": 1, "agentInfo": info})).await;
        };
        let (connected, ()) = tokio::join!(client.connect(link), answer_initialize);
        let connected = connected.unwrap();
        let (session, _) = tokio::join!(connected.new_session("/work"), agent.new_session("s1"));
        let _session = session.unwrap();
        agent.request(1, "fs/read_text_file", json!({"sessionId": "s1", "path": "/new"})).await;
        if empty {
            assert_eq!(agent.result(1).await, json!({"content": ""}), "{name} {version}");
        } else {
            agent.error(1, -32002).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_session_that_is_a_refusal() {
    let (mut session, mut agent) = open(Client::new()).await;
    let turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.answer(&prompt, json!({"stopReason": "refusal"})).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::Refusal); // shows PROMPT-14
}
