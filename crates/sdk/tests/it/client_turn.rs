//! Turns: order, ends, and what comes between them.

use attache::client::{Client, Event};
use attache::{Error, Prompt, StopReason};
use serde_json::json;

use crate::script::{connect, open};
use crate::turn_events::SkipStates;

#[tokio::test(start_paused = true)]
async fn a_turn_yields_events_in_wire_order() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("hello").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    assert_eq!(prompt["params"], json!({"sessionId": "s1", "prompt": [{"type": "text", "text": "hello"}]}));
    agent.say("s1", "one ").await;
    let thought = json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}});
    agent.update("s1", thought).await;
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    agent
        .update("s1", json!({"sessionUpdate": "agent_message_chunk", "content": image, "messageId": "m1"}))
        .await;
    agent.say("s1", "two").await;
    agent.answer(&prompt, json!({"stopReason": "max_tokens", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}})).await;

    let Some(Event::Text(text)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(&*text, "one ");
    let Some(Event::Thought(text)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(text.to_string(), "hm");
    let Some(Event::Content(piece)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(piece.message_id.unwrap(), "m1");
    let Some(Event::Text(text)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(text.text, "two");
    assert_eq!(turn.stop_reason(), None);
    assert!(turn.after_states().await.unwrap().is_none());
    assert_eq!(turn.stop_reason(), Some(StopReason::MaxTokens));
    assert_eq!(turn.usage().unwrap().total_tokens, 3);
    // shows PROMPT-15: nothing was answered to the updates, and the end stays the end
    assert!(turn.after_states().await.unwrap().is_none());
    drop(turn);
    agent.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_is_never_seen_before_the_updates_nor_an_update_after_the_end() {
    let (mut session, mut agent) = open(Client::new()).await;
    for round in 0..3 {
        let mut turn = session.prompt("go").await.unwrap();
        let prompt = agent.expect("session/prompt").await;
        let work = async {
            for count in 0..1000 {
                agent.say("s1", &count.to_string()).await;
            }
            agent.end_turn(&prompt).await;
            agent.say("s1", "late").await;
        };
        let read = async {
            for count in 0..1000 {
                let Some(Event::Text(text)) = turn.after_states().await.unwrap() else {
                    panic!("round {round}")
                };
                assert_eq!(&*text, count.to_string());
            }
            assert!(turn.after_states().await.unwrap().is_none());
        };
        tokio::join!(work, read);
        drop(turn);
        let Event::Text(late) = session.next_update().await.unwrap() else { panic!() };
        assert_eq!(&*late, "late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_prompt_is_an_error_of_the_turn() {
    // shows PROMPT-20, AUTH-19
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.say("s1", "before").await;
    agent.refuse(&prompt, -32000, "log in").await;
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    let error = turn.after_states().await.unwrap_err();
    assert!(error.is_auth_required());
    assert!(turn.after_states().await.unwrap().is_none());
    assert_eq!(turn.stop_reason(), None);
    drop(turn);
    let mut turn = session.prompt("again").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.end_turn(&prompt).await;
    assert!(turn.after_states().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_agent_ends_the_turn() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    agent.say("s1", "final text").await;
    drop(agent);
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    assert!(matches!(turn.after_states().await, Err(Error::Closed(_))));
    drop(turn);
    assert!(matches!(session.prompt("more").await, Err(Error::Closed(_))));
    assert!(matches!(session.next_update().await, Err(Error::Closed(_))));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_with_unsupported_content_is_not_sent() {
    // shows PROMPT-02, CONT-02
    let (mut session, mut agent) = open(Client::new()).await;
    for prompt in [
        Prompt::new().image("AA==", "image/png"),
        Prompt::new().audio("AA==", "audio/wav"),
        Prompt::from("look").embed("file:///a", "text"),
    ] {
        assert!(matches!(session.prompt(prompt).await, Err(Error::Unsupported(_))));
    }
    let turn = session.prompt(Prompt::from("look").link("a", "file:///a")).await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    assert_eq!(prompt["params"]["prompt"][1]["type"], "resource_link");
    agent.end_turn(&prompt).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn);

    let all = json!({"promptCapabilities": {"image": true, "audio": true, "embeddedContext": true}});
    let (handle, mut agent) = connect(Client::new(), all).await;
    let (session, _) = tokio::join!(handle.new_session("/work"), agent.new_session("s1"));
    let mut session = session.unwrap();
    let prompt =
        Prompt::from("look").image("AA==", "image/png").audio("AA==", "audio/wav").embed("file:///a", "t");
    let _turn = session.prompt(prompt).await.unwrap();
    assert_eq!(agent.expect("session/prompt").await["params"]["prompt"].as_array().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn tool_calls_are_upserts() {
    // shows TOOL-04, TOOL-05, TOOL-07, TOOL-12, TOOL-21
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent
        .update("s1", json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "A", "kind": "paint"}))
        .await;
    agent.update("s1", json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "title": null, "status": "completed"})).await;
    agent.update("s1", json!({"sessionUpdate": "tool_call_update", "toolCallId": "b", "title": "B"})).await;
    agent
        .update("s1", json!({"sessionUpdate": "tool_call_update", "toolCallId": "ghost", "status": "failed"}))
        .await;
    agent.end_turn(&prompt).await;

    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(change.created && *change.id() == "a");
    assert_eq!(change.update.kind.unwrap().as_str(), "other");
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(!change.created && change.update.title.is_none());
    assert_eq!(change.update.status.unwrap().as_str(), "completed");
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(change.created && *change.id() == "b");
    assert!(turn.after_states().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_under_a_known_id_replaces_the_older_one() {
    // shows TOOL-02, TOOL-04
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    let diff = json!([{"type": "diff", "path": "/f", "oldText": "1", "newText": "2"}]);
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Edit", "kind": "edit",
        "status": "completed", "content": diff, "rawInput": {"path": "/f"}});
    agent.update("s1", call).await;
    agent.update("s1", json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Look"})).await;
    agent.end_turn(&prompt).await;
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(change.call.edits.len(), 1);
    let Some(Event::ToolCall(change)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(change.update.content.as_deref(), Some(&[][..]));
    let call = &change.call;
    assert!(call.edits.is_empty() && call.content.is_empty() && call.raw_input.is_none());
    assert_eq!((&*call.title, call.status.as_str(), call.kind.as_str()), ("Look", "pending", "other"));
}

#[tokio::test(start_paused = true)]
async fn state_updates_are_kept_in_the_session() {
    // shows CMD-02, LIST-12, CONF-16, MSG-05, PLAN-04
    let (mut session, mut agent) = open(Client::new()).await;
    let command = |name: &str| json!({"name": name, "description": "d"});
    agent.update("s1", json!({"sessionUpdate": "available_commands_update", "availableCommands": [command("a"), command("b")]})).await;
    agent
        .update(
            "s1",
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [command("c"), 5]}),
        )
        .await;
    agent
        .update(
            "s1",
            json!({"sessionUpdate": "session_info_update", "title": "T", "updatedAt": "2026-01-01"}),
        )
        .await;
    agent.update("s1", json!({"sessionUpdate": "session_info_update", "title": null})).await;
    agent.update("s1", json!({"sessionUpdate": "usage_update", "used": 5, "size": 10})).await;
    let option = json!({"id": "o", "name": "O", "type": "select", "currentValue": "x", "options": [{"value": "x", "name": "X"}]});
    agent.update("s1", json!({"sessionUpdate": "config_option_update", "configOptions": [option, {"id": "s", "name": "S", "type": "slider"}]})).await;
    agent.update("s1", json!({"sessionUpdate": "plan", "entries": [{"content": "c", "priority": "high", "status": "pending"}, {"bad": 1}]})).await;
    let mut events = Vec::new();
    // of two lists of commands only the newer one is kept
    for _ in 0..6 {
        events.push(session.next_update().await.unwrap());
    }
    let Some(Event::Plan(plan)) = events.pop() else { panic!() };
    assert_eq!(plan.entries.len(), 1); // shows PLAN-10
    assert_eq!(session.commands().iter().map(|command| &*command.name).collect::<Vec<_>>(), ["c"]);
    assert_eq!(session.title(), None);
    assert_eq!(session.updated_at().as_deref(), Some("2026-01-01"));
    assert_eq!(session.usage().unwrap().used, 5);
    assert_eq!(session.config_options().len(), 1); // shows CONF-06
}

#[tokio::test(start_paused = true)]
async fn an_unread_stream_is_bounded() {
    let (mut session, mut agent) = open(Client::new()).await;
    for count in 0..5000 {
        agent.say("s1", &format!("{count:0100}")).await;
    }
    agent.ask(7, "s1").await;
    agent.say("s1", "newest").await;
    agent.expect_silence().await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    // the unread question belongs to the turn now
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!() };
    ask.cancel();
    assert_eq!(agent.result(7).await["outcome"]["outcome"], "cancelled");
    agent.end_turn(&prompt).await;
    assert!(turn.after_states().await.unwrap().is_none());
    drop(turn);
    let mut last = String::new();
    let mut count = 0;
    while last != "newest" {
        let Event::Text(text) = session.next_update().await.unwrap() else { panic!() };
        last = text.text;
        count += 1;
    }
    assert!(count < 500, "{count}");
}

#[tokio::test(start_paused = true)]
async fn an_unread_turn_holds_back_the_agent() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    let text = "x".repeat(10_000);
    // far more than the budget of one connection; the writer has to wait until the session is read
    let write = async {
        for _ in 0..1000 {
            agent.say("s1", &text).await;
        }
        agent.end_turn(&prompt).await;
    };
    let mut write = std::pin::pin!(write);
    let stuck = tokio::time::timeout(std::time::Duration::from_secs(5), &mut write).await;
    assert!(stuck.is_err(), "ten megabytes were taken in without a reader");
    let read = async {
        let mut count = 0;
        while turn.after_states().await.unwrap().is_some() {
            count += 1;
        }
        count
    };
    assert_eq!(tokio::join!(write, read).1, 1000);
}
