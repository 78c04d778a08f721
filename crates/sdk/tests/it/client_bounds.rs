//! What an agent may cost a client: answers in turn, messages by what they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache::client::{Client, Event, RequestContext};
use attache::wire::v1::{PermissionOptionKind, ReadTextFileRequest};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::script::open;
use crate::turn_events::SkipStates;

fn read(path: &str) -> Value {
    json!({"sessionId": "s1", "path": path})
}

#[tokio::test(start_paused = true)]
async fn few_handlers_of_large_answers_run_at_once_and_small_answers_do_not_wait() {
    let (running, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, pass) = (running.clone(), gate.clone());
    let client = Client::new().read_files(move |_: RequestContext, request: ReadTextFileRequest| {
        let (count, pass) = (count.clone(), pass.clone());
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            pass.acquire().await.unwrap().forget();
            Ok(request.path)
        }
    });
    let (mut session, mut agent) = open(client).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    for id in 0..20 {
        agent.request(id, "fs/read_text_file", read(&format!("/work/{id}"))).await;
    }
    let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
    let ask = json!({"sessionId": "s1", "toolCall": {"toolCallId": "c"}, "options": options});
    agent.request(100, "session/request_permission", ask).await;
    agent.request(101, "_acme/unknown", json!({})).await;
    let Some(Event::Permission(ask)) = turn.after_states().await.unwrap() else { panic!("no question") };
    ask.choose_kind(PermissionOptionKind::AllowOnce);
    // Both of them are answered although no file is.
    agent.error(101, -32601).await;
    assert_eq!(agent.result(100).await["outcome"]["optionId"], "yes");
    assert_eq!(running.load(Ordering::SeqCst), 4);
    for id in 0..20 {
        gate.add_permits(1);
        assert_eq!(agent.result(id).await["content"], format!("/work/{id}"));
        assert!(running.load(Ordering::SeqCst) <= id + 5);
    }
    agent.end_turn(&prompt).await;
    assert!(turn.after_states().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_pauses_does_not_hold_others_up() {
    let gate = Arc::new(Semaphore::new(0));
    let decided = gate.clone();
    let client = Client::new().read_files(move |cx: RequestContext, request: ReadTextFileRequest| {
        let decided = decided.clone();
        async move {
            if request.path.starts_with("/work/asked") {
                cx.pause(decided.acquire()).await.unwrap().forget();
            }
            Ok(request.path)
        }
    });
    let (_session, mut agent) = open(client).await;
    for id in 0..10 {
        agent.request(id, "fs/read_text_file", read(&format!("/work/asked-{id}"))).await;
    }
    agent.request(10, "fs/read_text_file", read("/work/free")).await;
    assert_eq!(agent.result(10).await["content"], "/work/free");
    gate.add_permits(10);
    for id in 0..10 {
        assert_eq!(agent.result(id).await["content"], format!("/work/asked-{id}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_frees_its_slot() {
    let client = Client::new().read_files(|_: RequestContext, request: ReadTextFileRequest| async move {
        if request.path.ends_with("never") {
            std::future::pending::<()>().await;
        }
        Ok(request.path)
    });
    let (_session, mut agent) = open(client).await;
    for id in 0..6 {
        agent.request(id, "fs/read_text_file", read("/work/never")).await;
    }
    agent.request(6, "fs/read_text_file", read("/work/a")).await;
    // One that runs, one that waits, and the one that has taken the place of the first.
    for id in [0, 5, 4] {
        agent.notify("$/cancel_request", json!({"requestId": id})).await;
        agent.error(id, -32800).await;
    }
    assert_eq!(agent.result(6).await["content"], "/work/a");
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_too_large_for_their_kind_are_refused() {
    let client = Client::new()
        .elicitation_forms()
        .elicitation_urls()
        .read_files(|_: RequestContext, request: ReadTextFileRequest| async move { Ok(request.path) });
    let (mut session, mut agent) = open(client).await;
    agent.request(1, "fs/read_text_file", read(&format!("/{}", "x".repeat(100_000)))).await;
    agent.error(1, -32602).await;
    let form = |fields: usize| {
        let fields: serde_json::Map<String, Value> =
            (0..fields).map(|n| (format!("f{n}"), json!({"type": "string"}))).collect();
        json!({"sessionId": "s1", "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": fields}})
    };
    // One is too large to be read, the other has too many fields.
    agent.request(2, "elicitation/create", form(20_000)).await;
    agent.error(2, -32602).await;
    agent.request(3, "elicitation/create", form(2_000)).await;
    let error = agent.error(3, -32602).await;
    assert!(error.to_string().contains("more than 1024 members"), "{error}");
    let page = json!({"sessionId": "s1", "mode": "url", "message": "m", "url": "https://a.b", "elicitationId": "e".repeat(2_000)});
    agent.request(4, "elicitation/create", page).await;
    agent.error(4, -32602).await;
    // What is kept for the session is small; what is shown and forgotten need not be.
    let commands = json!([{"name": "c", "description": "d".repeat(2 << 20)}]);
    agent
        .update("s1", json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}))
        .await;
    agent.update("s1", json!({"sessionUpdate": "current_mode_update", "currentModeId": "m"})).await;
    assert!(matches!(session.next_update().await.unwrap(), Event::Mode(_)));
    assert!(session.commands().is_empty());
}
