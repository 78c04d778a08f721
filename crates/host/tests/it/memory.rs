//! What is remembered, by whom and for how long.

use std::fs;
use std::os::unix::fs::MetadataExt;

use attache_host::policy::{Memory, Mode, Policy, Subject};
use serde_json::json;

use crate::kit::{Scratch, permission};

fn policy(scratch: &Scratch, project: &str, agent: &str) -> Policy {
    let project = scratch.dir(project);
    Policy::new(Mode::Ask)
        .agent(agent)
        .memory(Memory::open(&scratch.join("state"), &project).unwrap())
        .roots([project])
}

fn run(command: &str) -> attache::wire::v1::RequestPermissionRequest {
    permission(json!({ "kind": "execute", "title": "x", "rawInput": { "command": command } }))
}

#[test]
fn always_outlives_the_process_and_stays_in_its_project() {
    let scratch = Scratch::new();
    policy(&scratch, "one", "gemini").answered(&run("make"), &"allow_always".into()).unwrap();
    assert!(policy(&scratch, "one", "gemini").decide(&run("make")).allows());
    assert!(!policy(&scratch, "two", "gemini").decide(&run("make")).allows());
    assert!(!policy(&scratch, "one", "codex").decide(&run("make")).allows());
    assert_eq!(Memory::projects(&scratch.join("state")), [scratch.join("one")]);
}

#[test]
fn it_can_be_listed_and_revoked_while_somebody_uses_it() {
    let scratch = Scratch::new();
    let using = policy(&scratch, "p", "a");
    using.answered(&run("make"), &"allow_always".into()).unwrap();
    using.answered(&run("ls"), &"reject_always".into()).unwrap();
    let memory = Memory::open(&scratch.join("state"), &scratch.join("p")).unwrap();
    let list = memory.list();
    let said: Vec<_> =
        list.iter().map(|entry| (entry.allow, entry.subject.clone(), entry.agent.as_str())).collect();
    assert_eq!(
        said,
        [(true, Subject::Command("make".into()), "a"), (false, Subject::Command("ls".into()), "a")]
    );
    assert!(list[0].since.ends_with('Z'));
    assert!(using.decide(&run("make")).allows());
    assert!(memory.revoke(list[0].id).unwrap());
    assert!(!memory.revoke(list[0].id).unwrap());
    assert!(!using.decide(&run("make")).allows(), "revoked for those who have read it before");
    memory.clear().unwrap();
    assert!(using.remembered().list().is_empty());
    assert!(Memory::projects(&scratch.join("state")).is_empty());
}

#[test]
fn the_latest_word_counts() {
    let scratch = Scratch::new();
    let policy = policy(&scratch, "p", "a");
    policy.answered(&run("make"), &"allow_always".into()).unwrap();
    policy.answered(&run("make"), &"reject_always".into()).unwrap();
    assert_eq!(policy.remembered().list().len(), 1);
    assert!(!policy.decide(&run("make")).allows());
}

#[test]
fn many_who_remember_at_once_lose_nothing() {
    let scratch = Scratch::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let policy = policy(&scratch, "p", "a");
            scope.spawn(move || {
                for n in 0..10 {
                    policy.answered(&run(&format!("make {thread}-{n}")), &"allow_always".into()).unwrap();
                }
            });
        }
    });
    let list = Memory::open(&scratch.join("state"), &scratch.join("p")).unwrap().list();
    assert_eq!(list.len(), 80);
    let mut ids: Vec<u64> = list.iter().map(|entry| entry.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 80);
}

#[test]
fn a_broken_memory_approves_nothing() {
    let scratch = Scratch::new();
    let using = policy(&scratch, "p", "a");
    using.answered(&run("make"), &"allow_always".into()).unwrap();
    let dir = scratch.join("state/permissions");
    let file = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().unwrap() == "json");
    let file = file.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o077, 0, "for nobody else's eyes");
    fs::write(&file, "{").unwrap();
    assert!(!using.decide(&run("make")).allows());
    assert!(Memory::open(&scratch.join("state"), &scratch.join("p")).is_err());
    fs::write(&file, r#"{"project":"/somewhere/else","remembered":[]}"#).unwrap();
    assert!(Memory::open(&scratch.join("state"), &scratch.join("p")).is_err());
}
