//! Agents that do what they should not.

use crate::world::{World, eventually, is_running};

#[test]
fn one_that_never_answers_runs_out_of_time() {
    let world = World::new().agent("on session/prompt\n  say half an answer\n  wait nothing\n");
    let run = world.run(&["--timeout", "0.5", "exec", "x"]).code(3);
    assert!(run.stdout.starts_with("half an answer\n"), "{}", run.stdout);
    assert!(run.stdout.contains("[error] TIMEOUT"), "{}", run.stdout);
    assert!(world.methods().contains(&"session/cancel".to_owned()));
    let run = world.run(&["--timeout", "0.5", "--format", "json", "exec", "x"]).code(3);
    assert_eq!(run.json().last().unwrap()["error"]["code"], -32070);
    for wrong in ["0", "-1", "soon"] {
        world.run(&["--timeout", wrong, "exec", "x"]).code(2);
    }
}

#[test]
fn one_that_ignores_the_cancel_is_left() {
    let world = World::new()
        .agent("on session/prompt\n  deaf\n  wait nothing\n")
        .env("ATTACHE_CANCEL_TIMEOUT", "0.2");
    world.run(&["--timeout", "0.2", "exec", "x"]).code(3);
    eventually("the agent's end", || !is_running(world.path("scripted.script").to_str().unwrap()));
}

#[test]
fn one_that_says_nothing_at_the_start() {
    let world = World::new()
        .agent("on initialize\n  stderr waiting for godot\n  hang\n")
        .env("ATTACHE_START_TIMEOUT", "0.5");
    let run = world.run(&["exec", "x"]).code(1);
    assert!(run.stdout.contains("did not answer `initialize`"), "{}", run.stdout);
    assert!(run.stdout.contains("waiting for godot"), "{}", run.stdout);
    assert!(run.stdout.contains("start_timeout"), "{}", run.stdout);
}

#[test]
fn one_that_ends_in_the_middle() {
    let world = World::new().agent("on session/prompt\n  say so far\n  stderr boom at line 7\n  exit 3\n");
    let run = world.run(&["exec", "x"]).code(1);
    assert!(
        run.stdout.contains("so far\n\n[error] RUNTIME: the agent ended (exit code 3)"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("boom at line 7"), "{}", run.stdout);
    let half = World::new().agent("on session/prompt\n  half {\"jsonrpc\":\n  exit 0\n");
    let run = half.run(&["exec", "x"]).code(1);
    assert!(run.stdout.contains("in the middle of a line"), "{}", run.stdout);
}

#[test]
fn one_that_prints_on_the_wrong_stream() {
    let world = World::new().agent(
        "on initialize\n  raw Welcome to the agent!\n  reply {\"protocolVersion\":1}\non session/prompt\n  raw {broken\n  raw [debug] thinking\n  say fine\n  done end_turn\n",
    );
    assert_eq!(world.run(&["--format", "quiet", "exec", "x"]).ok(), "fine\n");
    let run = world.run(&["--format", "json", "exec", "x"]).code(0);
    run.json();
}

#[test]
fn one_that_speaks_another_version() {
    let world = World::new().agent("on initialize\n  reply {\"protocolVersion\":7}\n");
    let run = world.run(&["exec", "x"]).code(1);
    assert!(run.stdout.contains("version 7"), "{}", run.stdout);
}

#[test]
fn one_that_leaves_processes_behind() {
    let world = World::new().agent("on session/prompt\n  fork\n  say $pid\n  done end_turn\n");
    let script = world.path("scripted.script");
    let pid = world.run(&["--format", "quiet", "exec", "x"]).ok();
    eventually("the end of everything", || !is_running(script.to_str().unwrap()));
    eventually("the end of what it left behind", || !is_running(&format!("sleep 1000.{}", pid.trim())));
}

#[test]
fn one_that_floods() {
    let world = World::new().agent("on session/prompt\n  flood 20000 word \n  done end_turn\n");
    let text = world.run(&["--format", "quiet", "exec", "x"]).ok();
    assert_eq!(text.matches("word").count(), 20_000);
}

#[test]
fn updates_before_the_session_and_after_the_answer() {
    let world = World::new().agent(
        r#"on session/new
  raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"early","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}
  reply {"sessionId":"early"}
on session/prompt
  done end_turn
  say too late
"#,
    );
    let run = world.run(&["exec", "x"]).code(0);
    assert!(run.stdout.starts_with("[done] end_turn"), "{}", run.stdout);
}

#[test]
fn an_interrupted_turn_is_cancelled() {
    let world = World::new().agent("on session/prompt\n  say working\\n\n  wait nothing\n");
    let mut running = world.start(&["exec", "x"]);
    running.until("working");
    running.signal("INT");
    running.end().code(130);
    assert!(world.methods().contains(&"session/cancel".to_owned()));
    let running = world.start(&["--format", "quiet", "exec", "x"]);
    eventually("the prompt", || {
        world.methods().iter().filter(|method| *method == "session/prompt").count() == 2
    });
    running.signal("TERM");
    let run = running.end();
    assert_eq!(run.code, Some(130));
    assert!(run.stdout.contains("working"));
}
