//! The stage and the runner, with peers of a few lines.

use std::time::Duration;

use attache_check::prompts::Prompts;
use attache_check::run::{Conclusion, Options, Outcome, Status};
use attache_check::stage::StageConfig;
use attache_check::target::Memory;
use attache_check::{Role, Stage, StartOptions, Stop, Target, Version};
use attache_conn::Link;
use serde_json::{Value, json};

/// An agent that answers each line by what `answer` makes of it.
fn agent(answer: fn(&Value) -> Vec<String>) -> Memory {
    Memory::new(move |link: Link, _: &StartOptions| async move {
        let (mut reader, mut writer) = link.split();
        while let Ok(Some(line)) = reader.next().await {
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            for line in answer(&message) {
                if writer.send(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
}

fn result(message: &Value, result: Value) -> Vec<String> {
    vec![json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()]
}

async fn stage(target: &Memory) -> Stage {
    let fresh = StartOptions {
        scenario: "x",
        act: "prompt",
        then: None,
        prompt: String::new(),
        cwd: "/w".into(),
        transport: None,
    };
    let setup = StageConfig {
        plays: Role::Client,
        version: Version::V1,
        deadline: Duration::from_secs(5),
        startup: Duration::from_secs(5),
        prompts: Prompts::names(),
        login: None,
        cwd: "/w".into(),
        real: false,
        needs: &[],
        endpoint: None,
        sessions: 1,
    };
    Stage::new(setup, target.open(&fresh).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_found_behind_other_messages() {
    let target = agent(|message| match message["method"].as_str() {
        Some("initialize") => {
            let mut lines = vec![json!({ "jsonrpc": "2.0", "method": "_hello", "params": {} }).to_string()];
            lines.extend(result(message, json!({ "protocolVersion": 1, "agentCapabilities": {} })));
            lines
        }
        _ => Vec::new(),
    });
    let mut stage = stage(&target).await;
    stage.initialize(json!({})).await.unwrap();
    let left = stage.next().await.unwrap();
    assert_eq!(left.method(), Some("_hello"));
    assert_eq!(stage.received(0).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unanswered_requests_break_rpc_24_except_turns() {
    let target = agent(|_| Vec::new());
    let mut stage = stage(&target).await;
    let silent = stage.call("session/list", json!({})).await;
    assert_eq!(silent, Err(Stop::Deadline("the answer to session/list".to_owned())));
    let prompt = stage.prompt("s", attache_check::prompts::PromptKind::Say).await.unwrap();
    assert!(stage.expect(&prompt).await.is_err());
    let played = stage.finish().await;
    assert_eq!(played.findings.len(), 1);
    assert_eq!(played.findings[0].rule, "RPC-24");
}

#[tokio::test(start_paused = true)]
async fn requests_of_the_peer_are_served_unless_they_are_held() {
    let target = agent(|message| {
        let ask = |id: u64, method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
        };
        match message["method"].as_str() {
            Some("go") => {
                vec![ask(7, "fs/read_text_file", json!({ "path": "/w/notes.txt", "line": 2, "limit": 1 }))]
            }
            Some("ask") => vec![ask(8, "session/request_permission", json!({ "options": [] }))],
            None if message["id"] == 7 => {
                vec![json!({ "jsonrpc": "2.0", "id": 0, "result": message["result"]["content"] }).to_string()]
            }
            _ => Vec::new(),
        }
    });
    let mut stage = stage(&target).await;
    let content = stage.call("go", json!({})).await.unwrap().unwrap();
    assert_eq!(content, "second line\n");
    stage.services.hold("session/request_permission");
    stage.notify("ask", json!({})).await.unwrap();
    let question = stage.until("a question", |heard| heard.asks("session/request_permission")).await.unwrap();
    assert_eq!(question.id(), Some(&json!(8)));
}

#[tokio::test(start_paused = true)]
async fn a_probe_shows_the_forbidden_message() {
    let target = agent(|message| match message["id"] {
        Value::Null => vec![json!({ "jsonrpc": "2.0", "id": null, "result": {} }).to_string()],
        _ => result(message, Value::Null),
    });
    let mut stage = stage(&target).await;
    stage.notify("_x", json!({})).await.unwrap();
    let said = stage.probe().await.unwrap();
    assert_eq!(said.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn bytes_are_sent_as_they_are_and_written_down_as_lines() {
    let target = agent(|message| result(message, json!({})));
    let mut stage = stage(&target).await;
    stage.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":0,").await.unwrap();
    assert!(stage.trace().entries.is_empty(), "half a line is none");
    stage
        .send_bytes(b"\"method\":\"_a\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_b\"}\n")
        .await
        .unwrap();
    stage.expect(&json!(0)).await.unwrap().unwrap();
    stage.expect(&json!(1)).await.unwrap().unwrap();
    let mut text = Vec::new();
    stage.finish().await.trace.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(r#""end":"\r\n""#) && text.contains("_b"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_not_there_is_nothing_to_judge() {
    let target = Memory::new(|link: Link, _: &StartOptions| async move { drop(link) });
    let options = Options { faults: true, ..Options::new(Role::Agent) };
    if attache_check::run::choose(&options).is_empty() {
        return;
    }
    let report = attache_check::run::run(&target, &options, &mut |_| {}).await;
    assert!(matches!(report.conclusion, Conclusion::CouldNotRun(_)), "{:?}", report.conclusion);
    assert!(
        report.rules.iter().all(|outcome| outcome.status != Status::Pass),
        "what was never exercised never passes"
    );
}

/// Whether an agent that answers every `initialize` with this version breaks INIT-05.
async fn takes_a_text_for_a_version(version: fn(&Value) -> Value) -> bool {
    let target = Memory::new(move |link: Link, _: &StartOptions| async move {
        let (mut reader, mut writer) = link.split();
        while let Ok(Some(line)) = reader.next().await {
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            let answer = json!({ "protocolVersion": version(&message), "agentCapabilities": {} });
            for line in result(&message, answer) {
                if writer.send(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    });
    let options = Options { scenarios: vec!["version-text".to_owned()], ..Options::new(Role::Agent) };
    let report = attache_check::run::run(&target, &options, &mut |_| {}).await;
    report.rules.iter().any(|outcome| outcome.rule.id == "INIT-05" && outcome.status == Status::Fail)
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_offer_its_version_to_a_client_that_names_none() {
    assert!(!takes_a_text_for_a_version(|_| json!(1)).await);
    assert!(takes_a_text_for_a_version(|message| message["params"]["protocolVersion"].clone()).await);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_has_another_reason_is_no_matter_of_meta() {
    // It keeps one session: prompts of the older ones are refused, with `_meta` and without it.
    let target = Memory::new(move |link: Link, _: &StartOptions| async move {
        let (mut reader, mut writer) = link.split();
        let mut sessions = 0;
        while let Ok(Some(line)) = reader.next().await {
            let message: Value = serde_json::from_slice(line).unwrap_or_default();
            let lines = match message["method"].as_str() {
                Some("initialize") => {
                    result(&message, json!({ "protocolVersion": 1, "agentCapabilities": {} }))
                }
                Some("session/new") => {
                    sessions += 1;
                    result(&message, json!({ "sessionId": format!("s{sessions}") }))
                }
                Some("session/prompt") if message["params"]["sessionId"] == format!("s{sessions}") => {
                    result(&message, json!({ "stopReason": "end_turn" }))
                }
                _ if message.get("id").is_none() => Vec::new(),
                _ => {
                    let error = json!({ "code": -32602, "message": "Unknown session" });
                    vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()]
                }
            };
            for line in lines {
                if writer.send(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    });
    let options = Options { scenarios: vec!["meta".to_owned()], ..Options::new(Role::Agent) };
    let report = attache_check::run::run(&target, &options, &mut |_| {}).await;
    let is_about_meta = |outcome: &&Outcome| outcome.rule.id.starts_with("EXT-");
    let failed = report.rules.iter().filter(is_about_meta).filter(|outcome| outcome.failed());
    assert_eq!(failed.map(|outcome| outcome.rule.id).collect::<Vec<_>>(), Vec::<&str>::new());
}

/// An agent whose answer to an unknown method takes longer than a deadline: `is_slow` gets the
/// number of the connection.
fn hesitant(is_slow: fn(usize) -> bool, wait: Duration) -> Memory {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    Memory::new(move |link: Link, _: &StartOptions| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move {
            let (mut reader, mut writer) = link.split();
            while let Ok(Some(line)) = reader.next().await {
                let message: Value = serde_json::from_slice(line).unwrap_or_default();
                let lines = match message["method"].as_str() {
                    Some("initialize") => {
                        result(&message, json!({ "protocolVersion": 1, "agentCapabilities": {} }))
                    }
                    _ if message.get("id").is_none() => Vec::new(),
                    _ => {
                        if is_slow(number) {
                            tokio::time::sleep(wait).await;
                        }
                        let error = json!({ "code": -32601, "message": "Method not found" });
                        vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()]
                    }
                };
                for line in lines {
                    if writer.send(line.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        }
    })
}

/// Runs a scenario. Returns the report and the scenarios that ran again.
async fn with_repeats(target: &Memory, known: &[&str]) -> (attache_check::run::Report, Vec<String>) {
    let options = Options {
        scenarios: vec!["unknown-method".to_owned()],
        only: vec!["RPC-24".to_owned()],
        known: known.iter().map(|&rule| rule.to_owned()).collect(),
        ..Options::new(Role::Agent)
    };
    let mut again = Vec::new();
    let report = attache_check::run::run(target, &options, &mut |progress| {
        if let attache_check::run::Progress::Repeats(scene, deadline) = progress {
            again.push(format!("{} {}", scene.name, deadline.as_secs()));
        }
    })
    .await;
    (report, again)
}

fn is_broken(report: &attache_check::run::Report, id: &str) -> bool {
    report.rules.iter().any(|outcome| outcome.rule.id == id && outcome.failed())
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passed_is_tried_again_with_more_time() {
    // Slow once, or slower than the deadline and quicker than three of them.
    for (is_slow, wait) in [((|number| number == 0) as fn(usize) -> bool, 600), (|_| true, 20)] {
        let (report, again) = with_repeats(&hesitant(is_slow, Duration::from_secs(wait)), &[]).await;
        assert_eq!(again, ["unknown-method 30"]);
        assert!(!is_broken(&report, "RPC-24"));
        assert_eq!(report.scenes.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_late_again_is_broken() {
    let never = hesitant(|_| true, Duration::from_secs(6000));
    let (report, again) = with_repeats(&never, &[]).await;
    assert!(is_broken(&report, "RPC-24") && again.len() == 1);
    let outcome = report.rules.iter().find(|outcome| outcome.rule.id == "RPC-24").unwrap();
    let why = &outcome.failures().next().unwrap().1.why;
    assert!(why.contains("within 30 seconds"), "{why}");
    // A failure that is known needs no second look.
    let (report, again) = with_repeats(&never, &["RPC-24"]).await;
    assert!(is_broken(&report, "RPC-24") && again.is_empty());
}
