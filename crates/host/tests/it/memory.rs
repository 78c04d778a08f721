//! What is remembered, by whom and for how long.

use std::fs;
use std::os::unix::fs::MetadataExt;

use attache_host::policy::{Answer, Decision, Memory, Mode, Policy, Scope};
use serde_json::json;

use crate::kit::{Scratch, permission};

fn policy(scratch: &Scratch, project: &str, agent: &str) -> Policy {
    let project = scratch.dir(project);
    Policy::new(Mode::ASK)
        .agent(agent)
        .memory(Memory::open(&scratch.join("state"), &project).unwrap())
        .roots([project])
}

fn run(command: &str) -> attache::wire::v1::RequestPermissionRequest {
    permission(json!({ "kind": "execute", "title": "x", "rawInput": { "command": command } }))
}

/// Answers a question about a command.
fn answer(policy: &Policy, command: &str, answer: Answer) {
    let request = run(command);
    let asking = Policy::new(Mode::ASK).roots(policy.session_roots());
    let Decision::Ask(question) = asking.decide(&request) else { panic!() };
    policy.answer(&request, &question, &answer).unwrap();
}

#[test]
fn always_outlives_the_process_and_stays_in_its_project() {
    let scratch = Scratch::new();
    answer(&policy(&scratch, "one", "gemini"), "make", Answer::Project);
    assert!(policy(&scratch, "one", "gemini").decide(&run("make")).allows());
    assert!(!policy(&scratch, "two", "gemini").decide(&run("make")).allows());
    assert!(!policy(&scratch, "one", "codex").decide(&run("make")).allows());
    assert_eq!(Memory::projects(&scratch.join("state")), [scratch.join("one")]);
}

#[test]
fn it_can_be_listed_and_revoked_while_in_use() {
    let scratch = Scratch::new();
    let using = policy(&scratch, "p", "a");
    answer(&using, "make", Answer::Project);
    answer(&using, "ls", Answer::Never);
    let memory = Memory::open(&scratch.join("state"), &scratch.join("p")).unwrap();
    let list = memory.list();
    let lines: Vec<_> = list
        .iter()
        .map(|entry| match &entry.scope {
            Scope::Command { line, .. } => (entry.allow, line.as_str(), entry.agent.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lines, [(true, "make", "a"), (false, "ls", "a")]);
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
    answer(&policy, "make", Answer::Project);
    answer(&policy, "make", Answer::Never);
    assert_eq!(policy.remembered().list().len(), 1);
    assert!(!policy.decide(&run("make")).allows());
}

#[test]
fn concurrent_writers_lose_nothing() {
    let scratch = Scratch::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let policy = policy(&scratch, "p", "a");
            scope.spawn(move || {
                for n in 0..10 {
                    answer(&policy, &format!("make {thread}-{n}"), Answer::Project);
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
    answer(&using, "make", Answer::Project);
    let dir = scratch.join("state/permissions");
    let file = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().unwrap() == "json");
    let file = file.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o077, 0, "readable by its owner only");
    fs::write(&file, "{").unwrap();
    assert!(!using.decide(&run("make")).allows());
    assert!(Memory::open(&scratch.join("state"), &scratch.join("p")).is_err());
    fs::write(&file, r#"{"project":"/somewhere/else","remembered":[]}"#).unwrap();
    assert!(Memory::open(&scratch.join("state"), &scratch.join("p")).is_err());
}

#[test]
fn answers_of_the_first_version_no_longer_count() {
    // They were remembered under an agent's label and without the directory.
    let scratch = Scratch::new();
    let using = policy(&scratch, "p", "a");
    answer(&using, "true", Answer::Project);
    let dir = scratch.join("state/permissions");
    let mut files = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().unwrap() == "json").unwrap();
    let project = scratch.join("p");
    let old = json!({ "project": project, "remembered": [{ "id": 1, "agent": "a", "allow": true, "since": "", "subject": { "command": "make" } }] });
    fs::write(&file, old.to_string()).unwrap();
    assert!(!policy(&scratch, "p", "a").decide(&run("make")).allows());
    answer(&using, "make", Answer::Project);
    assert!(using.decide(&run("make")).allows(), "the file can be used again");
}
