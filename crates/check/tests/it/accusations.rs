//! Peers that do nothing wrong and look as if they did. Nothing may be held against them.

use attache_check::run::{Options, Report, Status, run};
use attache_check::target::Memory;
use attache_check::{Role, StartOptions};
use attache_conn::Link;
use serde_json::{Value, json};

use crate::matrix::failure_list;

/// An agent whose turns are scripts: `turn` gets the number of each message that comes after the
/// prompt, an answer of the client or the prompt itself, and returns the lines to send.
fn agent(turn: fn(&Value, &Value) -> Vec<Value>) -> Memory {
    Memory::new(move |link: Link, _: &StartOptions| async move {
        let (mut reader, mut writer) = link.split();
        let mut prompt = Value::Null;
        while let Ok(Some(line)) = reader.next().await {
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            let reply = |result: Value| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let lines = match message["method"].as_str() {
                Some("initialize") => {
                    vec![reply(json!({ "protocolVersion": 1, "agentCapabilities": {} }))]
                }
                Some("session/new") => vec![reply(json!({ "sessionId": "s" }))],
                Some("session/prompt") => {
                    prompt = message["id"].clone();
                    turn(&prompt, &message)
                }
                None => turn(&prompt, &message),
                Some(_) if message.get("id").is_none() => Vec::new(),
                Some(_) => {
                    let error = json!({ "code": -32601, "message": "Method not found" });
                    vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })]
                }
            };
            for line in lines {
                if writer.send(line.to_string().as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
}

fn question(id: u64, title: &str) -> Value {
    let call = json!({ "toolCallId": format!("t{id}"), "title": title });
    let option = |id: &str, kind: &str| json!({ "optionId": id, "name": id, "kind": kind });
    let options = [option("yes", "allow_once"), option("no", "reject_once")];
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params })
}

fn write(id: u64) -> Value {
    let params = json!({ "sessionId": "s", "path": "/w/out.txt", "content": "done" });
    json!({ "jsonrpc": "2.0", "id": id, "method": "fs/write_text_file", "params": params })
}

fn end(prompt: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": prompt, "result": { "stopReason": "end_turn" } })
}

async fn check(agent: &Memory, scenario: &str) -> Report {
    let options = Options { scenarios: vec![scenario.to_owned()], ..Options::new(Role::Agent) };
    run(agent, &options, &mut |_| {}).await
}

fn status(report: &Report, id: &str) -> Status {
    report.rules.iter().find(|outcome| outcome.rule.id == id).unwrap().status.clone()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_one_tool_forbids_no_other() {
    // It asks before it lists the directory. It may write without asking.
    let writes = agent(|prompt, message| match message["id"].as_u64() {
        _ if message["method"] == "session/prompt" => vec![question(7, "ls")],
        Some(7) => vec![write(8)],
        Some(8) => vec![end(prompt)],
        _ => Vec::new(),
    });
    let report = check(&writes, "permission-refused").await;
    assert!(matches!(status(&report, "PERM-15"), Status::NotExercised(_)), "{}", failure_list(&[report]));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_forbids_the_tool_whatever_was_asked_before() {
    let writes = agent(|prompt, message| match message["id"].as_u64() {
        _ if message["method"] == "session/prompt" => vec![question(7, "ls")],
        Some(7) => vec![question(8, "write out.txt")],
        Some(8) => vec![write(9)],
        Some(9) => vec![end(prompt)],
        _ => Vec::new(),
    });
    assert_eq!(status(&check(&writes, "permission-refused").await, "PERM-15"), Status::Fail);
}

#[tokio::test(start_paused = true)]
async fn capabilities_that_are_left_out_are_none() {
    let bare = Memory::new(|link: Link, _: &StartOptions| async move {
        let (mut reader, mut writer) = link.split();
        while let Ok(Some(line)) = reader.next().await {
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "protocolVersion": 1 } });
            if message.get("id").is_some() && writer.send(answer.to_string().as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let report = check(&bare, "version-1").await;
    assert_eq!(status(&report, "INIT-11"), Status::Pass);
    assert_eq!(status(&report, "INIT-31"), Status::Fail);
    assert_eq!(report.broken().count(), 0, "{}", failure_list(&[report]));
}
