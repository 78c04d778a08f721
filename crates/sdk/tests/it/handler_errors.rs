//! Errors of handlers: the peer gets an id, the author the cause. Recorded history. Permissions
//! that a handler decides.

use std::sync::{Arc, Mutex};

use attache::agent::{Agent, usual_options};
use attache::client::{Client, Event};
use attache::wire::v1::{PermissionOptionKind, SessionUpdate};
use attache::{Error, Link, StopReason};
use serde_json::{Value, json};

use crate::agent_rig::agent;
use crate::script::{Script, open};
use crate::turn_events::SkipStates;

type Reports = Arc<Mutex<Vec<(String, Option<String>, String, String)>>>;

fn reports() -> (Reports, impl Fn(&attache::HandlerError<'_>) + Send + Sync + 'static) {
    let reports = Reports::default();
    let sink = reports.clone();
    let hook = move |failure: &attache::HandlerError<'_>| {
        sink.lock().unwrap().push((
            failure.method.to_owned(),
            failure.session_id.map(ToString::to_string),
            failure.to_string(),
            failure.error_id.to_owned(),
        ));
    };
    (reports, hook)
}

/// The hook saw this method and session, with a cause that the peer did not see, and the same id.
fn matches(reports: &Reports, error: &Value, method: &str, session: Option<&str>, cause: &str) {
    let (seen_method, seen_session, text, id) = reports.lock().unwrap().pop().unwrap();
    assert_eq!((seen_method.as_str(), seen_session.as_deref()), (method, session));
    assert!(text.contains(cause) && text.contains(method) && text.contains(&id), "{text}");
    assert_eq!(error["message"], "internal error");
    assert_eq!(error["data"]["errorId"], id.as_str());
    assert!(!error.to_string().contains(cause), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_reports_errors_of_its_handlers() {
    let (seen, hook) = reports();
    let failing = agent(|_, prompt| {
        Box::pin(async move {
            match &*prompt.text() {
                "panic" => panic!("as asked"),
                "refuse" => Err(Error::invalid_params("not this")),
                _ => Err(Error::internal(std::io::Error::other("disk on fire"))),
            }
        })
    })
    .list(|_| async { Err(Error::internal("no index")) })
    .load(|_| async { Err::<crate::agent_rig::Acts, _>(Error::internal("not stored")) })
    .on_error(hook);
    let (link, mut client) = Script::pair();
    tokio::spawn(failing.serve(link));
    client.request(1, "initialize", json!({"protocolVersion": 1})).await;
    client.result(1).await;
    client.request(2, "session/new", json!({"cwd": "/work", "mcpServers": []})).await;
    client.result(2).await;
    let mut prompt = async |id: u32, text: &str, code: i32| {
        let blocks = json!([{"type": "text", "text": text}]);
        client.request(id, "session/prompt", json!({"sessionId": "s1", "prompt": blocks})).await;
        client.error(id, code).await
    };
    let error = prompt(3, "fail", -32603).await;
    matches(&seen, &error, "session/prompt", Some("s1"), "disk on fire");
    let error = prompt(4, "panic", -32603).await;
    matches(&seen, &error, "session/prompt", Some("s1"), "a handler panicked");
    // a refusal is an answer, not a failure
    assert_eq!(prompt(5, "refuse", -32602).await["message"], "not this");
    assert!(seen.lock().unwrap().is_empty());
    client.request(6, "session/list", json!({})).await;
    let error = client.error(6, -32603).await;
    matches(&seen, &error, "session/list", None, "no index");
    client.request(7, "session/load", json!({"sessionId": "old", "cwd": "/work", "mcpServers": []})).await;
    let error = client.error(7, -32603).await;
    matches(&seen, &error, "session/load", Some("old"), "not stored");
}

#[tokio::test(start_paused = true)]
async fn a_client_reports_errors_of_its_handlers() {
    let (seen, hook) = reports();
    let client =
        Client::new().read_files(|_, _| async { Err(Error::internal("disk on fire")) }).on_error(hook);
    let (_session, mut agent) = open(client).await;
    agent.request(9, "fs/read_text_file", json!({"sessionId": "s1", "path": "/work/a"})).await;
    let error = agent.error(9, -32603).await;
    matches(&seen, &error, "fs/read_text_file", Some("s1"), "disk on fire");
}

#[tokio::test(start_paused = true)]
async fn lines_that_are_no_messages_reach_the_hook_of_the_agent() {
    let noise = Arc::new(Mutex::new(Vec::new()));
    let sink = noise.clone();
    let agent = crate::agent_rig::echo()
        .on_noise(move |line, _| sink.lock().unwrap().push(String::from_utf8_lossy(line).into_owned()));
    let (link, mut client) = Script::pair();
    tokio::spawn(agent.serve(link));
    client.raw("hello?").await;
    client.line().await;
    assert_eq!(*noise.lock().unwrap(), ["hello?"]);
}

#[tokio::test(start_paused = true)]
async fn the_history_is_recorded_in_wire_order_and_a_replay_is_not() {
    let history = Arc::new(Mutex::new(Vec::new()));
    let sink = history.clone();
    let recorded = agent(|turn, _| {
        Box::pin(async move {
            turn.think("hm").await?;
            let tool = turn.tool("look").start().await?;
            turn.say("one").await?;
            tool.complete([]).await?;
            Ok(StopReason::EndTurn)
        })
    })
    .load(|request| async move {
        request.session.set_title(Some("replayed".into())).await?;
        Ok(crate::agent_rig::acts(|_, _| Box::pin(async { Ok(StopReason::EndTurn) })))
    })
    .record(move |session, update| {
        let kind = match update {
            SessionUpdate::UserMessageChunk(chunk) => format!("user {}", chunk.content.as_text().unwrap()),
            SessionUpdate::AgentMessageChunk(chunk) => format!("agent {}", chunk.content.as_text().unwrap()),
            SessionUpdate::AgentThoughtChunk(_) => "thought".to_owned(),
            SessionUpdate::ToolCall(call) => format!("call {}", call.title),
            SessionUpdate::ToolCallUpdate(call) => format!("{:?}", call.status.as_ref().unwrap()),
            other => format!("{other:?}"),
        };
        sink.lock().unwrap().push(format!("{session}: {kind}"));
    });
    let (near, far) = Link::pair();
    tokio::spawn(recorded.serve(far));
    let agent = Client::new().connect(near).await.unwrap();
    let mut session = agent.new_session("/work").await.unwrap();
    session.prompt("go").await.unwrap().finish().await.unwrap();
    agent.loader().unwrap().load("old", "/work").await.unwrap().finish().await.unwrap();
    assert_eq!(
        *history.lock().unwrap(),
        ["s1: user go", "s1: thought", "s1: call look", "s1: agent one", "s1: Completed"]
    );
}

fn asks() -> Agent {
    agent(|turn, _| {
        Box::pin(async move {
            let tool = turn.tool("rm").start().await?;
            let allowed = turn.ask(&tool, usual_options()).await?.is_allowed();
            turn.say(if allowed { "done" } else { "denied" }).await?;
            Ok(StopReason::EndTurn)
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_permissions_lets_one_liners_approve() {
    // shows PERM-05
    for (kind, answer) in [
        (Some(PermissionOptionKind::AllowOnce), "done"),
        (Some(PermissionOptionKind::RejectOnce), "denied"),
        (None, "denied"),
    ] {
        let client = Client::new().on_permission(move |ask, context| async move {
            assert_eq!(context.session_id().unwrap().as_str(), "s1");
            match kind {
                Some(kind) => ask.choose_kind(kind),
                None => drop(ask),
            }
        });
        let (near, far) = Link::pair();
        tokio::spawn(asks().serve(far));
        let mut session = client.connect(near).await.unwrap().new_session("/work").await.unwrap();
        let mut turn = session.prompt("go").await.unwrap();
        let mut text = String::new();
        while let Some(event) = turn.after_states().await.unwrap() {
            match event {
                Event::Permission(_) => panic!("the handler has it"),
                Event::Text(chunk) => text.push_str(&chunk),
                _ => {}
            }
        }
        assert_eq!(text, answer);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_answers_a_permission_that_the_handler_holds() {
    // shows CANCEL-03
    let client = Client::new().on_permission(|ask, _| async move { ask.withdrawn().await });
    let (mut session, mut agent) = open(client).await;
    let turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.ask(5, "s1").await;
    agent.expect_silence().await;
    turn.cancel();
    agent.expect("session/cancel").await;
    assert_eq!(agent.result(5).await["outcome"]["outcome"], "cancelled");
    agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::Cancelled);
}
