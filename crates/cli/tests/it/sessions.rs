//! `attache sessions …`

use std::fs;

use crate::clean_tty::{WITH_KEYS, run};
use crate::world::World;

const PLAIN: &str = "on session/prompt\n  say you said $prompt\n  done end_turn\n";

#[test]
fn new_ensure_close_and_list() {
    let world = World::new().agent(PLAIN);
    let first = world.run(&["--format", "json", "sessions", "new"]).code(0);
    assert_eq!(first.json()[0]["action"], "session_ensured");
    assert_eq!(first.json()[0]["created"], true);
    assert!(first.stderr.contains("[attache] created session cwd ("), "{}", first.stderr);
    let id = first.json()[0]["acpxRecordId"].as_str().unwrap().to_owned();
    assert_eq!(world.run(&["sessions", "ensure"]).ok(), format!("{id}\t(existing)\n"));
    let second = world.run(&["--format", "quiet", "sessions", "new"]).ok();
    let list = world.run(&["sessions", "list", "--local"]).ok();
    assert!(list.contains(&format!("{id} [closed]\t-\t")), "{list}");
    assert!(list.contains(second.trim()), "{list}");
    assert_eq!(world.run(&["sessions", "close"]).ok(), second);
    world.run(&["sessions", "close"]).code(1);
    let ensured = world.run(&["sessions", "ensure"]).ok();
    assert!(ensured.ends_with("\t(created)\n"), "{ensured}");
}

#[test]
fn names_and_directories_are_kept_apart() {
    let world = World::new().agent(PLAIN);
    world.run(&["sessions", "new", "--name", "api"]).ok();
    world.run(&["-s", "docs", "hello"]).code(4);
    world.run(&["-s", "api", "hello"]).ok();
    world.run(&["hello"]).code(4);
    // From a directory below the way leads up to the root of the repository.
    let inner = world.dir.join("src/deep");
    fs::create_dir_all(&inner).unwrap();
    let run = world.run(&["--cwd", "src/deep", "prompt", "-s", "api", "hello"]).code(0);
    assert!(run.stderr.contains("(routed from ./src/deep)"), "{}", run.stderr);
    // Another agent is another session.
    world.named_agent("other", PLAIN);
    world.run(&["other", "-s", "api", "hello"]).code(4);
    let outside = world.path("elsewhere");
    fs::create_dir(&outside).unwrap();
    world.run(&["--cwd", outside.to_str().unwrap(), "-s", "api", "hello"]).code(4);
}

#[test]
fn show_history_and_read() {
    let world = World::new().agent(PLAIN);
    world.run(&["sessions", "new"]).ok();
    world.run(&["first"]).ok();
    world.run(&["second"]).ok();
    let history = world.run(&["--format", "json", "sessions", "history", "--limit", "2"]).code(0);
    let history = &history.json()[0];
    assert_eq!(history["count"], 2);
    assert_eq!(history["entries"][0]["textPreview"], "second");
    assert_eq!(history["entries"][1]["role"], "assistant");
    let all = world.run(&["sessions", "read"]).ok();
    assert!(all.starts_with("session: ") && all.contains("(4/4 shown)"), "{all}");
    assert!(all.contains("\tassistant\tyou said first\n"), "{all}");
    let show = world.run(&["sessions", "show"]).ok();
    assert!(show.contains("\nclosed: no\n") && show.contains("\nhistoryEntries: 4\n"), "{show}");
    world.run(&["sessions", "show", "nothing"]).code(1);
    world.run(&["sessions", "history", "--limit", "0"]).code(2);
}

#[test]
fn a_session_moves_to_another_home() {
    let stored =
        "on initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}\n";
    let world = World::new().agent(&format!("{stored}{PLAIN}"));
    world.run(&["sessions", "new", "--name", "api"]).ok();
    world.run(&["-s", "api", "hello"]).ok();
    // Also while its agent runs: what was said so far.
    assert_eq!(world.run(&["--format", "quiet", "status", "-s", "api"]).ok(), "running\n");
    world.run(&["sessions", "export", "api", "--output", "busy.json"]).ok();
    world.run(&["sessions", "close", "api"]).ok();
    world.run(&["sessions", "export", "api", "--output", "a.json"]).ok();
    let archive = |name: &str| serde_json::from_str::<serde_json::Value>(&world.read(name)).unwrap();
    assert_eq!(archive("busy.json")["history"], archive("a.json")["history"]);
    assert!(archive("busy.json")["session"].get("pid").is_none());
    world.run(&["sessions", "export", "api"]).code(2);
    let here = world.run(&["sessions", "import", "a.json"]).code(2);
    assert!(here.stderr.contains("is here already"), "{}", here.stderr);
    world.run(&["sessions", "delete", "api"]).ok();
    let dir = world.dir.to_str().unwrap().to_owned();
    let run = world
        .run(&["--format", "json", "sessions", "import", "a.json", "--name", "copy", "--cwd", &dir])
        .code(0);
    assert_eq!(run.json()[0]["action"], "session_imported");
    let history = world.run(&["--format", "quiet", "sessions", "history", "copy"]).ok();
    assert_eq!(history, "hello\nyou said hello\n");
    world.run(&["-s", "copy", "again"]).ok();
    assert!(world.methods().contains(&"session/load".to_owned()));
    world.write("broken.json", "{}");
    world.run(&["sessions", "import", "broken.json"]).code(2);
}

#[test]
fn an_imported_session_is_never_replaced() {
    let world = World::new().agent(PLAIN);
    world.run(&["sessions", "new"]).ok();
    world.run(&["sessions", "export", "--output", "a.json"]).ok();
    world.run(&["sessions", "delete"]).ok();
    let dir = world.dir.to_str().unwrap().to_owned();
    world.run(&["sessions", "import", "a.json", "--cwd", &dir]).ok();
    let run = world.run(&["hello"]).code(1);
    assert!(run.stdout.contains("cannot be restored"), "{}", run.stdout);
}

#[test]
fn the_agents_own_list() {
    let world = World::new().agent(
        r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"list":{}}}}
on session/list
  reply {"sessions":[{"sessionId":"one","cwd":"/a","title":"First"}],"nextCursor":"more"}
"#,
    );
    assert_eq!(world.run(&["sessions"]).ok(), "one\tFirst\t/a\t-\t-\nNext cursor: more\n");
    let json =
        world.run(&["--format", "json", "sessions", "list", "--cursor", "c", "--filter-cwd", "."]).code(0);
    assert_eq!(json.json()[0]["source"], "agent");
    assert_eq!(json.json()[0]["nextCursor"], "more");
    let asked = world.log().into_iter().rev().find(|line| line["method"] == "session/list").unwrap();
    assert_eq!(
        (&asked["params"]["cursor"], &asked["params"]["cwd"]),
        (&"c".into(), &world.dir.to_str().unwrap().into())
    );
    world.run(&["sessions", "list", "--local", "--cursor", "c"]).code(2);

    let plain = World::new().agent(PLAIN);
    assert_eq!(plain.run(&["sessions"]).ok(), "No sessions\n");
    plain.run(&["sessions", "list", "--filter-cwd", "."]).code(1);
    assert_eq!(plain.run(&["--agent", "/nowhere/agent", "sessions"]).ok(), "No sessions\n");
}

#[test]
fn sessions_that_the_agent_has_stored_can_be_taken_over() {
    let world = World::new().agent(
        "on initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}\n",
    );
    let id = world.run(&["--format", "quiet", "sessions", "new", "--resume-session", "old-one"]).ok();
    assert_eq!(id, "old-one\n");
    let plain = World::new().agent(PLAIN);
    plain.run(&["sessions", "new", "--resume-session", "old-one"]).code(1);
}

#[test]
fn delete_notifies_the_agent() {
    let world = World::new().agent("on initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"delete\":{}}}}\n");
    world.run(&["sessions", "new"]).ok();
    world.run(&["hello"]).ok();
    let run = world.run(&["--format", "json", "sessions", "delete"]).code(0);
    assert_eq!(run.json()[0]["agent"], true);
    assert!(world.methods().contains(&"session/delete".to_owned()));
    assert_eq!(world.run(&["sessions", "list", "--local"]).ok(), "No sessions\n");
}

#[test]
fn fork() {
    let world = World::new().agent(
        "on initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,\"sessionCapabilities\":{\"fork\":{}}}}\non session/fork\n  reply {\"sessionId\":\"copy-1\"}\n",
    );
    world.run(&["sessions", "new"]).ok();
    world.run(&["sessions", "fork"]).code(2);
    assert_eq!(world.run(&["--format", "quiet", "sessions", "fork", "--as", "try"]).ok(), "copy-1\n");
    world.run(&["-s", "try", "hello"]).ok();
    World::new().agent(PLAIN).run(&["sessions", "fork", "--as", "x"]).code(1);
}

#[test]
fn prune() {
    let world = World::new().agent(PLAIN);
    world.run(&["sessions", "new"]).ok();
    let id = world.run(&["--format", "quiet", "sessions", "show"]).ok();
    world.run(&["sessions", "close"]).ok();
    let dry = world.run(&["--format", "json", "sessions", "prune", "--dry-run"]).code(0);
    assert_eq!((&dry.json()[0]["dryRun"], &dry.json()[0]["pruned"][0]), (&true.into(), &id.trim().into()));
    assert_eq!(world.run(&["sessions", "prune", "--older-than", "7"]).ok(), "No sessions pruned\n");
    assert_eq!(world.run(&["--format", "quiet", "sessions", "prune", "--before", "2999-01-01"]).ok(), id);
    assert_eq!(world.run(&["sessions", "list", "--local"]).ok(), "No sessions\n");
    world.run(&["sessions", "prune", "--before", "yesterday"]).code(2);
    world.run(&["sessions", "prune", "--older-than", "0"]).code(2);
}

#[test]
fn a_record_that_is_broken_costs_only_itself() {
    let world = World::new().agent(PLAIN);
    world.run(&["sessions", "new"]).ok();
    fs::write(world.home().join("state/sessions/broken.json"), "{\"acpx").unwrap();
    world.run(&["hello"]).ok();
}

#[test]
fn agents_that_give_the_same_id_twice() {
    let world = World::new().agent("on session/new\n  reply {\"sessionId\":\"session-1\"}\n");
    let first = world.run(&["--format", "quiet", "sessions", "new", "--name", "a"]).ok();
    let second = world.run(&["--format", "quiet", "sessions", "new", "--name", "b"]).ok();
    assert_ne!(first, second);
    world.run(&["-s", "a", "hello"]).ok();
    world.run(&["-s", "b", "hello"]).ok();
    assert_eq!(world.run(&["--format", "quiet", "sessions", "history", "a"]).ok().lines().count(), 2);
}

#[test]
fn a_session_is_reached_however_deep_everything_is() {
    let world = World::new().agent("on session/prompt\n  say here\n  done end_turn\n");
    let deep = world.home().join("d".repeat(120));
    let temporary = deep.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("ATTACHE_HOME", &deep).env("TMPDIR", &temporary).stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    std::fs::copy(world.home().join("config.toml"), deep.join("config.toml")).unwrap();
    run(&["sessions", "new", "--name", "deep"]);
    assert!(run(&["--format", "quiet", "prompt", "-s", "deep", "hi"]).contains("here"));
    run(&["sessions", "close", "deep"]);
}

#[test]
fn every_list_and_every_command_take_the_same_ids() {
    let world = World::new().agent("");
    world.named_agent("other", "");
    world.run(&["sessions", "new"]).ok();
    world.run(&["prompt", "the first question"]).ok();
    world.run(&["other", "sessions", "new", "--name", "api"]).ok();
    world.run(&["other", "prompt", "-s", "api", "the second question"]).ok();
    // One that was never used.
    world.run(&["other", "sessions", "new", "--name", "idle"]).ok();
    world.run(&["other", "sessions", "close", "idle"]).ok();
    let ids: Vec<String> = ["scripted", "other"]
        .map(|agent| world.run(&[agent, "--format", "quiet", "sessions", "list", "--local"]).ok())
        .iter()
        .flat_map(|list| list.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|id| !id.contains("[closed]"))
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    for (id, said) in ids.iter().zip(["the first question", "the second question"]) {
        // From any directory, and whichever agent is the default.
        let shown = world.run(&["--cwd", "/", "sessions", "show", id]).ok();
        assert!(shown.contains(&format!("id: {id}\n")), "{shown}");
        let told = world.run(&["--cwd", "/", "sessions", "history", id]).ok();
        assert!(told.contains(said), "{told}");
    }
    world.run(&["--cwd", "/", "sessions", "close", &ids[1]]).ok();
    assert!(world.run(&["sessions", "show", &ids[1]]).ok().contains("closed: yes"));
    let unknown = world.run(&["sessions", "show", "nothing"]).code(1);
    assert!(unknown.stderr.contains("no session `nothing`"), "{}", unknown.stderr);
    // For a person: all agents in one list, short ids, ages, and nothing that was never used.
    let text = String::from_utf8(run(&world, WITH_KEYS, &["sessions", "list"], &[])).unwrap();
    for part in ["scripted", "other", "api", "just now", "resume one: attache -r ID"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("idle") && !text.contains("T20"), "{text}");
    let text = String::from_utf8(run(&world, WITH_KEYS, &["sessions", "show", &ids[0]], &[])).unwrap();
    assert!(text.contains("created: just now"), "{text}");
}
