//! Logs: `ATTACHE_LOG` and `--log`.

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
