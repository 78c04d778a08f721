//! Every decision is written down, and no secret with it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use attache::wire::v1::{CreateTerminalRequest, WriteTextFileRequest};
use attache_host::Host;
use attache_host::policy::{Answer, Audit, Decision, Mode, Policy, Rules, Silence};
use attache_host::secrets::Mask;
use serde_json::{Value, json};

use crate::kit::{Scratch, permission};

fn lines(path: &std::path::Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn decisions_are_audited_with_their_reasons() {
    let scratch = Scratch::new();
    let log = scratch.join("state/audit.jsonl");
    let rules = Rules::parse(r#"{"autoDeny":[{"command":"git push"}]}"#).unwrap();
    let policy = Policy::new(Mode::APPROVE_READS)
        .rules(rules)
        .roots(["/p"])
        .agent("gemini")
        .audit(Audit::open(&log).unwrap());
    policy
        .decide(&permission(json!({ "kind": "read", "title": "Read a", "locations": [{ "path": "/p/a" }] })));
    policy.decide(&permission(
        json!({ "kind": "execute", "title": "x", "rawInput": { "command": "git push" } }),
    ));
    let edit = permission(json!({ "kind": "edit", "title": "Edit b", "locations": [{ "path": "/p/b" }] }));
    let Decision::Ask(question) = policy.decide(&edit) else { panic!() };
    assert_eq!(lines(&log).len(), 2, "what is asked is not decided yet");
    policy.answer(&edit, &question, &Answer::Project).unwrap();
    policy.unanswered(&permission(json!({ "kind": "fetch", "title": "x" })), Silence::TimeLimit);
    policy.withdrawn(&permission(json!({ "kind": "fetch", "title": "x" })));
    let lines = lines(&log);
    let decisions: Vec<_> =
        lines.iter().map(|line| [&line["outcome"], &line["by"], &line["option"]]).collect();
    assert_eq!(
        json!(decisions),
        json!([
            ["allowed", "mode", "allow_once"],
            ["denied", "rule", "reject_once"],
            ["allowed", "person", "allow_once"],
            ["denied", "time_limit", "reject_once"],
            ["cancelled", "person", null],
        ])
    );
    assert_eq!(lines[0]["effects"], json!([{ "read": "/p/a" }]));
    assert_eq!(
        (&lines[0]["agent"], &lines[0]["session"], &lines[0]["toolCall"]),
        (&json!("gemini"), &json!("s1"), &json!("c1"))
    );
    assert_eq!(lines[1]["rule"], json!(r#"{"command":"git push"}"#));
    assert_eq!(lines[2]["remembered"], json!("project: edit files below /p"));
    assert!(fs::read_to_string(&log).unwrap().starts_with("{\"time\":\"20"));
    assert_eq!(fs::metadata(&log).unwrap().mode() & 0o077, 0);
    assert_eq!(policy.audit_error(), None);
}

#[tokio::test]
async fn effects_without_a_question_are_audited() {
    let scratch = Scratch::new();
    let log = scratch.join("audit.jsonl");
    let policy = Policy::new(Mode::DENY_ALL).audit(Audit::open(&log).unwrap());
    let host = Host::new(Arc::new(policy));
    let roots = [scratch.path().to_owned()];
    let write = WriteTextFileRequest::new("s", scratch.join("a").to_str().unwrap(), "text");
    host.files().write_in(Some(&"s".into()), &roots, write).await.unwrap_err();
    host.terminals()
        .create_in(Some(&"s".into()), &roots, CreateTerminalRequest::new("s", "true"))
        .await
        .unwrap_err();
    let lines = lines(&log);
    assert_eq!((&lines[0]["event"], &lines[0]["outcome"]), (&json!("write"), &json!("denied")));
    assert_eq!((&lines[1]["event"], &lines[1]["effects"][0]["run"]), (&json!("terminal"), &json!("true")));
    assert!(!scratch.join("a").exists());
}

#[test]
fn secrets_are_not_written_down() {
    let scratch = Scratch::new();
    let log = scratch.join("audit.jsonl");
    let policy = Policy::new(Mode::APPROVE_ALL)
        .mask(Mask::new().with(["hunter2hunter2"]))
        .audit(Audit::open(&log).unwrap());
    let command = "curl -H 'Authorization: Bearer abcdef123456' https://u:p4ssw0rd@x.org --token=tok_12345678 hunter2hunter2";
    policy.decide(&permission(
        json!({ "kind": "execute", "title": command, "rawInput": { "command": command } }),
    ));
    let text = fs::read_to_string(&log).unwrap();
    for secret in ["abcdef123456", "p4ssw0rd", "tok_12345678", "hunter2"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("curl") && text.contains("x.org"));
}

#[test]
fn an_unwritable_log_is_reported() {
    let scratch = Scratch::new();
    let blocked = scratch.file("file", "");
    assert!(Audit::open(&blocked.join("audit")).is_err());
    // Writing to this device fails as on a full disk.
    let policy = Policy::new(Mode::APPROVE_ALL).audit(Audit::open("/dev/full".as_ref()).unwrap());
    policy.decide(&permission(json!({ "kind": "edit", "title": "x" })));
    assert!(policy.audit_error().unwrap().contains("audit log"));
}
