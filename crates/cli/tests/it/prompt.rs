//! `attache prompt` and the process behind it.

use std::process::Command;

use crate::world::{World, eventually, is_running};

/// An agent that can be found again, and says which turn it is over all of its lives.
const STORED: &str = r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true}}
on session/load
  update {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"what was said"}}
  update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"what was answered"}}
  reply {}
on session/prompt
  say $prompt: turn $turn of $pid\n
  done end_turn
"#;

const SLOW: &str = "on session/prompt\n  say begun\\n\n  wait nothing\n";

fn owner(world: &World) -> String {
    let status = world.run(&["--format", "json", "status"]);
    status.json()[0]["pid"].to_string()
}

#[test]
fn a_prompt_needs_a_session() {
    let world = World::new().agent(STORED);
    let run = world.run(&["hello"]).code(4);
    assert!(run.stderr.contains("start one: attache sessions new"), "{}", run.stderr);
    let run = world.run(&["scripted", "-s", "api", "hello"]).code(4);
    assert!(run.stderr.contains("start one: attache scripted sessions new --name api"), "{}", run.stderr);
    let run = world.run(&["--format", "json", "prompt", "hello"]).code(4);
    assert_eq!(run.json()[0]["error"]["code"], -32002);
}

#[test]
fn one_agent_serves_many_prompts() {
    let world = World::new().agent(STORED);
    world.run(&["sessions", "new"]).ok();
    let first = world.run(&["--format", "quiet", "one"]).ok();
    let second = world.run(&["--format", "quiet", "prompt", "two"]).ok();
    assert!(first.starts_with("one: turn 1 of "), "{first}");
    assert!(second.starts_with("two: turn 2 of "), "{second}");
    assert_eq!(first.split(" of ").last(), second.split(" of ").last());
    // Piped in without a command, the text goes to the session that is open here.
    let third = world.pipe(&["--format", "quiet"], "three").ok();
    assert!(third.starts_with("three: turn 3"), "{third}");
}

#[test]
fn a_session_continues_in_another_process() {
    let world = World::new().agent(STORED);
    world.run(&["sessions", "new"]).ok();
    let first = world.run(&["--format", "quiet", "one"]).ok();
    let pid = owner(&world);
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    eventually("the owner's end", || world.run(&["--format", "quiet", "status"]).ok() == "idle\n");
    let run = world.run(&["two"]).code(0);
    assert!(run.stdout.starts_with("two: turn 2 of "), "{}", run.stdout);
    assert_ne!(first.split(" of ").last(), run.stdout.lines().next().unwrap().split(" of ").last());
    // The history is not printed again, in no format.
    assert!(!run.stdout.contains("what was"), "{}", run.stdout);
    let prompts: Vec<_> = world.log().into_iter().filter(|line| line["method"] == "session/prompt").collect();
    assert_eq!(prompts[0]["params"]["sessionId"], prompts[1]["params"]["sessionId"]);
    assert!(world.methods().contains(&"session/load".to_owned()));
}

#[test]
fn resuming_comes_before_loading() {
    let both =
        STORED.replace(r#""loadSession":true"#, r#""loadSession":true,"sessionCapabilities":{"resume":{}}"#);
    let world = World::new().agent(&both);
    world.run(&["sessions", "new"]).ok();
    world.run(&["one"]).ok();
    assert!(world.methods().contains(&"session/resume".to_owned()));
    assert!(!world.methods().contains(&"session/load".to_owned()));
}

#[test]
fn a_missing_session_is_replaced_with_a_notice() {
    let world = World::new().agent("on session/prompt\n  say $turn\n  done end_turn\n");
    world.run(&["sessions", "new"]).ok();
    // Nothing is lost before anything was said.
    let run = world.run(&["one"]).code(0);
    assert!(!run.stderr.contains("could not be restored"), "{}", run.stderr);
    assert!(Command::new("kill").args(["-9", &owner(&world)]).status().unwrap().success());
    eventually("the owner's end", || world.run(&["--format", "quiet", "status"]).ok() == "idle\n");
    // In every format, and never among the messages.
    let run = world.run(&["--format", "json", "two"]).code(0);
    assert!(run.stderr.contains("could not be restored"), "{}", run.stderr);
    run.json();
}

#[test]
fn an_agent_that_dies_is_started_again() {
    let world = World::new()
        .agent(&STORED.replace("on session/prompt", "on session/prompt 2\n  exit 3\non session/prompt"));
    world.run(&["sessions", "new"]).ok();
    world.run(&["one"]).ok();
    let run = world.run(&["two"]).code(1);
    assert!(run.stdout.contains("exit code 3"), "{}", run.stdout);
    let show = world.run(&["--format", "json", "sessions", "show"]);
    assert_eq!(show.json()[0]["lastAgentExitCode"], 3);
    assert!(world.run(&["three"]).ok().starts_with("three: turn 3"));
}

#[test]
fn cancel_reaches_the_prompt_of_another_process() {
    let world = World::new().agent(SLOW);
    world.run(&["sessions", "new"]).ok();
    assert_eq!(world.run(&["cancel"]).ok(), "nothing to cancel\n");
    let mut running = world.start(&["prompt", "go"]);
    running.until("begun");
    let run = world.run(&["--format", "json", "cancel"]);
    assert_eq!(run.json()[0]["cancelled"], true);
    let run = running.end().code(0);
    assert!(run.stdout.ends_with("[done] cancelled\n"), "{}", run.stdout);
}

#[test]
fn an_interrupted_prompt_is_cancelled_and_the_session_lives_on() {
    let world = World::new().agent("on session/prompt 1\n  say begun\\n\n  wait nothing\non session/prompt\n  say fine\n  done end_turn\n");
    world.run(&["sessions", "new"]).ok();
    let mut running = world.start(&["prompt", "go"]);
    running.until("begun");
    running.signal("INT");
    running.end().code(130);
    assert_eq!(world.run(&["--format", "quiet", "prompt", "again"]).ok(), "fine\n");
    assert_eq!(world.methods().iter().filter(|method| *method == "session/new").count(), 2);
}

#[test]
fn a_killed_command_or_owner_ends_the_prompt() {
    let world = World::new().agent(SLOW);
    world.run(&["sessions", "new"]).ok();
    let mut running = world.start(&["prompt", "go"]);
    running.until("begun");
    running.signal("KILL");
    running.end();
    eventually("the cancel", || world.methods().contains(&"session/cancel".to_owned()));
}

#[test]
fn prompts_wait_for_their_turn() {
    let world = World::new().agent(
        "on session/prompt\n  say begun $prompt\\n\n  wait session/cancel\n  say over\n  done end_turn\n",
    );
    world.run(&["sessions", "new"]).ok();
    let mut first = world.start(&["prompt", "first"]);
    first.until("begun first");
    let queued = world.run(&["--format", "json", "prompt", "--no-wait", "second"]).code(0);
    assert_eq!(queued.json()[0]["action"], "prompt_queued");
    let mut third = world.start(&["prompt", "third"]);
    for _ in 0..2 {
        let before = world.methods().iter().filter(|method| *method == "session/prompt").count();
        world.run(&["cancel"]).ok();
        eventually("the next prompt", || {
            world.methods().iter().filter(|method| *method == "session/prompt").count() > before
        });
    }
    third.until("begun third");
    world.run(&["cancel"]).ok();
    first.end().code(0);
    third.end().code(0);
    let prompts = world.log().into_iter().filter(|line| line["method"] == "session/prompt");
    let texts: Vec<String> =
        prompts.map(|line| line["params"]["prompt"][0]["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(texts, ["first", "second", "third"]);
}

#[test]
fn no_wait_queues_the_prompt() {
    let world = World::new().agent(STORED);
    world.run(&["sessions", "new"]).ok();
    assert!(world.run(&["--no-wait", "later"]).ok().starts_with("[queued] "));
    eventually("the answer", || {
        world.run(&["--format", "quiet", "sessions", "history"]).ok().contains("later: turn 1")
    });
}

#[test]
fn an_idle_owner_leaves() {
    let world = World::new().agent(STORED);
    world.run(&["sessions", "new"]).ok();
    world.run(&["--ttl", "0.05", "one"]).ok();
    eventually("the owner's end", || world.run(&["--format", "quiet", "status"]).ok() == "idle\n");
    eventually("the agent's end", || !is_running(world.path("scripted.script").to_str().unwrap()));
    assert!(world.run(&["two"]).ok().starts_with("two: turn 2"));
}

#[test]
fn a_closed_session_takes_its_process_along() {
    let can_close =
        STORED.replace(r#""loadSession":true"#, r#""loadSession":true,"sessionCapabilities":{"close":{}}"#);
    let world = World::new().agent(&can_close);
    world.run(&["sessions", "new"]).ok();
    world.run(&["one"]).ok();
    world.run(&["sessions", "close"]).ok();
    assert!(world.methods().contains(&"session/close".to_owned()));
    eventually("the agent's end", || !is_running(world.path("scripted.script").to_str().unwrap()));
    world.run(&["two"]).code(4);
}

#[test]
fn permissions_are_those_of_the_prompt() {
    let world = World::new().agent(
        "on session/prompt\n  call fs/write_text_file {\"path\":\"$cwd/b.txt\",\"content\":\"$prompt\"}\n  done end_turn\n",
    );
    world.run(&["sessions", "new"]).ok();
    world.run(&["--approve-all", "one"]).ok();
    assert_eq!(world.read("b.txt"), "one");
    world.run(&["two"]).code(5);
    assert_eq!(world.read("b.txt"), "one");
}

#[test]
fn time_runs_out_for_a_prompt_and_not_for_the_session() {
    let world = World::new()
        .agent("on session/prompt 1\n  wait nothing\non session/prompt\n  say fine\n  done end_turn\n");
    world.run(&["sessions", "new"]).ok();
    world.run(&["--timeout", "0.3", "one"]).code(3);
    assert_eq!(world.run(&["--format", "quiet", "two"]).ok(), "fine\n");
}

#[test]
fn a_limit_on_turns() {
    let world = World::new().agent(STORED);
    world.run(&["sessions", "new"]).ok();
    world.run(&["--max-turns", "1", "one"]).ok();
    let run = world.run(&["--max-turns", "1", "two"]).code(1);
    assert!(run.stdout.contains("the limit is 1"), "{}", run.stdout);
}

#[test]
fn settings_are_kept_when_the_agent_is_restarted() {
    let script = r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true}}
on session/new
  reply {"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]},"configOptions":[{"id":"effort","name":"Effort","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]}
on session/load
  reply {"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]},"configOptions":[{"id":"effort","name":"Effort","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]}
on session/set_config_option
  reply {"configOptions":[{"id":"effort","name":"Effort","type":"select","currentValue":"high","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]}
"#;
    let world = World::new().agent(script);
    world.run(&["sessions", "new"]).ok();
    assert_eq!(world.run(&["set-mode", "code"]).ok(), "mode set: code\n");
    let set = world.run(&["--format", "json", "set", "effort", "high"]).code(0);
    assert_eq!(set.json()[0]["configOptions"][0]["currentValue"], "high");
    let wrong = world.run(&["set-mode", "fly"]).code(1);
    assert!(wrong.stderr.contains("it offers: ask, code"), "{}", wrong.stderr);
    world.run(&["set", "nothing", "x"]).code(1);
    world.run(&["set-mode"]).code(2);
    assert!(Command::new("kill").args(["-9", &owner(&world)]).status().unwrap().success());
    eventually("the owner's end", || {
        !is_running("__owner") || world.run(&["--format", "quiet", "status"]).ok() == "idle\n"
    });
    let before = world.log().len();
    world.run(&["one"]).ok();
    let after: Vec<String> = world
        .methods()
        .split_off(world.log()[..before].iter().filter(|line| line.get("method").is_some()).count());
    assert!(
        after.contains(&"session/set_mode".to_owned())
            && after.contains(&"session/set_config_option".to_owned()),
        "{after:?}"
    );
    let status = world.run(&["--format", "json", "status"]);
    assert_eq!(status.json()[0]["mode"], "code");
}

#[test]
fn an_option_that_is_not_listed_again_can_be_set() {
    let script = r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}
on session/new
  reply {"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}
on session/set_model
  reply {}
on session/set_config_option
  reply {"configOptions":[]}
"#;
    let world = World::new().agent(script);
    world.run(&["sessions", "new"]).ok();
    // The agent of `sessions new` is gone; the next one is asked to resume and answers without
    // modes.
    assert_eq!(world.run(&["set-mode", "code"]).ok(), "mode set: code\n");
    assert_eq!(world.run(&["set", "model", "large"]).ok(), "model set: large\n");
    assert_eq!(world.run(&["set", "effort", "high"]).ok(), "config set: effort=high (0 options)\n");
    let sent = world.log();
    let params = |method: &str| sent.iter().find(|line| line["method"] == method).unwrap()["params"].clone();
    assert_eq!(params("session/set_mode")["modeId"], "code");
    assert_eq!(params("session/set_model")["modelId"], "large");
    assert_eq!(params("session/set_config_option")["value"], "high");
    // An agent without the ability is reported in plain words.
    let world = World::new().agent("");
    world.run(&["sessions", "new"]).ok();
    let run = world.run(&["set", "model", "large"]).code(1);
    assert!(run.stderr.contains("the agent offers no choice of models"), "{}", run.stderr);
}

#[test]
fn settings_can_be_made_while_a_prompt_runs() {
    let world = World::new().agent(
        r#"on session/new
  reply {"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}
on session/prompt
  say begun\n
  wait session/set_mode
  say switched
  wait nothing
"#,
    );
    world.run(&["sessions", "new"]).ok();
    let mut running = world.start(&["prompt", "go"]);
    running.until("begun");
    let setter = world.start(&["set-mode", "code"]);
    eventually("the request", || world.methods().contains(&"session/set_mode".to_owned()));
    world.run(&["cancel"]).ok();
    running.end().code(0);
    // The agent has answered the prompt and never the other; its end, with the session's, answers
    // that.
    world.run(&["sessions", "close"]).ok();
    setter.end();
}

#[test]
fn options_of_every_type_can_be_set_while_a_prompt_runs() {
    let options = r#""configOptions":[{"id":"brain","name":"Model","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]},{"id":"web","name":"Web","type":"boolean","currentValue":false}]"#;
    let script = format!(
        "on session/new\n  reply {{\"sessionId\":\"s\",{options}}}\non session/prompt\n  say begun\\n\n  wait session/set_config_option\n  wait session/set_config_option\n  done end_turn\n"
    );
    let world = World::new().agent(&script);
    world.run(&["sessions", "new"]).ok();
    let mut running = world.start(&["prompt", "go"]);
    running.until("begun");
    let model = world.start(&["set", "model", "b"]);
    let web = world.start(&["set", "web", "true"]);
    running.end().code(0);
    let set: Vec<_> =
        world.log().into_iter().filter(|line| line["method"] == "session/set_config_option").collect();
    let value = |id: &str| {
        set.iter().find(|line| line["params"]["configId"] == id).unwrap()["params"]["value"].clone()
    };
    assert_eq!((value("brain"), value("web")), ("b".into(), true.into()));
    // The agent never answered them; the end of the session does.
    world.run(&["sessions", "close"]).ok();
    model.end();
    web.end();
}
