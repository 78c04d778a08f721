//! Logs: `ATTACHE_LOG` and `--log`.

use serde_json::json;

use super::agent_wire::{AgentWire, Fault};
use super::world::World;

/// An agent that needs a credential and repeats it.
const SCRIPT: &str = r#"on initialize
  reply {"protocolVersion":1,"authMethods":[{"id":"api-key","name":"Key"}]}
on authenticate
  reply {}
on session/prompt
  say the key is $env.API_KEY
  done end_turn
"#;

const SECRET: &str = "sekret-12345";

fn world() -> World {
    World::new().agent(SCRIPT).env("ATTACHE_AUTH_API_KEY", SECRET)
}

#[test]
fn the_wire_is_logged_without_secrets() {
    for log in [&[][..], &["--log", "-"]] {
        let run = world().env("ATTACHE_LOG", "trace").run(&[log, &["exec", "x"]].concat()).code(0);
        assert!(run.stdout.contains(SECRET), "the agent did not repeat the secret: {run:?}");
        assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
        assert!(run.stderr.contains("attache::wire: -> {") && run.stderr.contains("***"), "{}", run.stderr);
    }
    let world = world();
    world.run(&["--log", "all.log", "exec", "x"]).code(0);
    let log = world.read("all.log");
    assert!(log.contains("session/prompt") && !log.contains(SECRET), "{log}");
}

#[test]
fn a_filter_selects_events() {
    let run = world().env("ATTACHE_LOG", "warn").run(&["exec", "x"]).code(0);
    assert!(!run.stderr.contains("attache::wire"), "{}", run.stderr);
    let run = world().env("ATTACHE_LOG", "attache::wire=nonsense").run(&["exec", "x"]).code(2);
    assert!(run.stderr.contains("ATTACHE_LOG"), "{run:?}");
    // Without any of them nothing is logged.
    let run = world().run(&["exec", "x"]).code(0);
    assert!(!run.stderr.contains("attache::wire"), "{}", run.stderr);
}

#[test]
fn commands_without_a_prompt_log_their_messages_too() {
    for args in [&["doctor", "scripted"][..], &["sessions", "new"]] {
        let run = world().env("ATTACHE_LOG", "attache::wire=trace").run(args).code(0);
        assert!(run.stderr.contains("\"method\":\"initialize\""), "{args:?}: {}", run.stderr);
        assert!(!run.stderr.contains(SECRET), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_failed_handler_is_found_by_its_id() {
    let world = World::new().env("ATTACHE_LOG", "error");
    std::fs::create_dir_all(world.home()).unwrap();
    std::fs::write(world.home().join("agent-keys.json"), "not a list of keys").unwrap();
    let mut agent = AgentWire::start(&world, &[]);
    let Err(Fault::Refused(error)) = agent.call("logout", json!({})) else { panic!("the keys were read") };
    let id = error["data"]["errorId"].as_str().unwrap_or_else(|| panic!("{error}")).to_owned();
    assert!(!error.to_string().contains("agent-keys"), "{error}");
    let log = agent.end();
    let line = log.lines().find(|line| line.contains(&id)).unwrap_or_else(|| panic!("{id}: {log}"));
    assert!(line.contains("handler failed") && line.contains("logout"), "{line}");
}
