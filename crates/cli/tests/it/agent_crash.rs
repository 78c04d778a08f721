//! `kill -9` at any point of a conversation: what the client had seen is there again, the
//! conversation continues, and the changes of files can be taken back.
//!
//! `ATTACHE_RUNS` says how often, `ATTACHE_SEED` where the chances begin; a failure names both.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};

use crate::agent_wire::{AgentWire, Fault};
use crate::world::{World, eventually};

/// Few enough for every day; the whole number is for the gate.
const RUNS: u64 = 40;
const SEED: u64 = 20_251_115;
/// Agents that write to the same store at the same time.
const AT_ONCE: u64 = 2;

const SCRIPT: &str = r#"
name: Crash
pace: 1ms
== when "first task"
think Two files and a command, in this order.
say I will make a file and change another one.
call plan {"entries": [{"content": "files", "status": "in_progress"}, {"content": "command", "status": "pending"}]}
call read {"path": "notes.txt"}
call write {"path": "made/deep/new.txt", "content": "one\ntwo\n"}
call edit {"path": "notes.txt", "old": "beta", "new": "BETA"}
--
say Now a command that leaves something behind.
call run {"command": "echo left > left.txt; rm gone.txt; echo more >> notes.txt; seq 1 50"}
call read {"path": "notes.txt"}
call search {"pattern": "BETA"}
--
say The first task
  is done, and this is said in some more words than needed.
== when "second task"
say Once more the same file.
call edit {"path": "notes.txt", "old": "alpha", "new": "ALPHA"}
call delete {"path": "kept.txt"}
--
say The second task is done.
== when "still there"
say Still here.
"#;

#[test]
fn nothing_is_lost_whenever_the_agent_is_killed() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (runs, seed) = (number("ATTACHE_RUNS").unwrap_or(RUNS), number("ATTACHE_SEED").unwrap_or(SEED));
    let world = World::new();
    fs::write(world.path("script"), SCRIPT).unwrap();
    let messages = undisturbed(&world);
    assert!(messages > 60, "there is too little to interrupt: {messages}");
    thread::scope(|scope| {
        for lane in 0..AT_ONCE {
            let world = &world;
            scope.spawn(move || {
                for run in (lane..runs).step_by(AT_ONCE as usize) {
                    // Every fourth is killed once more, when it has just got over the first time.
                    let again = chance(seed, run).is_multiple_of(4).then(|| chance(!seed, run));
                    let kills = std::iter::once(chance(seed, run) >> 8).chain(again);
                    let kills: Vec<usize> = kills.map(|kill| (kill % messages + 1) as usize).collect();
                    let told =
                        format!("ATTACHE_SEED={seed}, run {run}, killed after so many messages: {kills:?}");
                    killed(world, run, &kills, &told);
                }
            });
        }
    });
}

/// How many messages come after `session/new` when nothing interferes.
fn undisturbed(world: &World) -> u64 {
    let dir = project(world, "undisturbed");
    let before = files(&dir);
    let mut agent = start(world);
    let session = agent.open(&dir);
    let first = agent.received;
    converse(&mut agent, &session).unwrap();
    let messages = agent.received - first;
    assert_ne!(files(&dir), before);
    take_all_back(&mut agent, &session);
    assert_eq!(files(&dir), before);
    agent.end();
    messages as u64
}

fn killed(world: &World, run: u64, kills: &[usize], told: &str) {
    let dir = project(world, &format!("run-{run}"));
    let before = files(&dir);
    let mut agent = start(world);
    let session = agent.open(&dir);
    for after in kills {
        agent.kill_after(*after);
        match converse(&mut agent, &session) {
            // The last message was the one; or it came in fewer pieces than usual.
            Ok(()) => agent.kill(),
            Err(Fault::Gone) => {}
            Err(Fault::Refused(error)) => panic!("{told}: {error}"),
        }
        agent.drain();
        let seen = history(&agent.history);
        // What it had started is ended by its guardian.
        eventually("the end of its commands", || !is_anybody_in(&dir));
        agent = start(world);
        let place = json!({"sessionId": session, "cwd": dir, "mcpServers": []});
        agent.call("session/load", place).unwrap_or_else(|fault| panic!("{told}: {fault:?}"));
        compare(&seen, &history(&agent.history), told);
    }
    let said = agent.history.len();
    let stop =
        agent.prompt(&session, "are you still there").unwrap_or_else(|fault| panic!("{told}: {fault:?}"));
    assert_eq!(stop["stopReason"], "end_turn", "{told}");
    assert_eq!(agent.said(said), "Still here.", "{told}");
    take_all_back(&mut agent, &session);
    assert_eq!(files(&dir), before, "{told}");
    agent.end();
}

/// Two tasks, and one of them taken back.
fn converse(agent: &mut AgentWire, session: &str) -> Result<(), Fault> {
    for prompt in ["do the first task", "do the second task", "/undo"] {
        let stop = agent.prompt(session, prompt)?;
        assert_eq!(stop["stopReason"], "end_turn");
    }
    Ok(())
}

fn take_all_back(agent: &mut AgentWire, session: &str) {
    // Each turn at most once.
    for _ in 0..6 {
        let said = agent.history.len();
        agent.prompt(session, "/undo").unwrap();
        let said = agent.said(said);
        if said == "There is nothing to revert." {
            return;
        }
        assert!(said.contains("were reverted"), "{said}");
    }
    panic!("there is always something to take back");
}

/// What was seen comes first and in order; a text may continue, since more was written down than
/// arrived.
fn compare(seen: &[Value], replay: &[Value], told: &str) {
    let text = |update: &Value| update["content"]["text"].as_str().unwrap_or_default().to_owned();
    for (at, update) in seen.iter().enumerate() {
        let again = replay.get(at).unwrap_or_else(|| panic!("{told}: lost: {update}\nreplay: {replay:#?}"));
        let goes_on = at + 1 == seen.len()
            && again["sessionUpdate"] == update["sessionUpdate"]
            && !text(update).is_empty()
            && text(again).starts_with(&text(update));
        assert!(goes_on || again == update, "{told}: seen: {update}\nagain: {again}");
    }
    let mut open = BTreeMap::new();
    for update in replay.iter().filter(|update| update.get("toolCallId").is_some()) {
        let status = update["status"].as_str();
        let is_over = matches!(status, Some("completed" | "failed"));
        let known = open.entry(update["toolCallId"].to_string()).or_insert(false);
        *known |= is_over;
    }
    assert!(open.values().all(|is_over| *is_over), "{told}: a call is still open: {replay:#?}");
}

/// What belongs to the history of a conversation, texts in one piece. A prompt that nothing
/// followed may not have arrived.
fn history(updates: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().unwrap();
        let is_text = matches!(kind, "agent_message_chunk" | "agent_thought_chunk");
        let is_history = is_text
            || matches!(
                kind,
                "user_message_chunk" | "tool_call" | "tool_call_update" | "plan" | "usage_update"
            );
        match joined.last_mut() {
            _ if !is_history => {}
            Some(last) if is_text && last["sessionUpdate"] == kind => {
                let text = format!(
                    "{}{}",
                    last["content"]["text"].as_str().unwrap(),
                    update["content"]["text"].as_str().unwrap()
                );
                last["content"]["text"] = text.into();
            }
            _ => joined.push(update.clone()),
        }
    }
    joined.pop_if(|last| last["sessionUpdate"] == "user_message_chunk");
    joined
}

fn start(world: &World) -> AgentWire {
    let model = format!("script:{}", world.path("script").display());
    AgentWire::start(world, &["--model", &model])
}

fn project(world: &World, name: &str) -> PathBuf {
    let dir = world.path(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("notes.txt"), "alpha\nbeta\n").unwrap();
    fs::write(dir.join("gone.txt"), "this goes\n").unwrap();
    fs::write(dir.join("kept.txt"), "this too\n").unwrap();
    dir
}

/// Every file below a directory, hidden ones too.
fn files(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), "a directory".to_owned());
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// Whether a process works in this directory.
fn is_anybody_in(dir: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut places = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    places.any(|place| place == dir)
}

/// The n-th number of a sequence that looks like chance (SplitMix64).
fn chance(seed: u64, n: u64) -> u64 {
    let mut word = seed.wrapping_add((n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[test]
#[should_panic(expected = "lost")]
fn a_loss_would_be_noticed() {
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "completed"});
    compare(&history(&[chunk("a "), chunk("b"), call]), &[chunk("a b")], "");
}
