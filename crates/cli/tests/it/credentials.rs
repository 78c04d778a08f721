//! Stored credentials go to the agent that they were stored for, and to nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use super::world::{World, test_agent};

/// Says which credential it has.
const TELLS: &str = r#"on initialize
  reply {"protocolVersion":1,"authMethods":[{"id":"api-key","name":"Key"}]}
on authenticate
  reply {}
on session/prompt
  say key <$env.API_KEY>\n
  done end_turn
"#;

const NONE: &str = "key <>";

fn world() -> World {
    let world = World::new().agent(TELLS);
    world.named_agent("other", TELLS);
    world
}

/// Keeps the settings from other users, which credentials in them need.
fn close(world: &World) {
    fs::set_permissions(world.home().join("config.toml"), fs::Permissions::from_mode(0o600)).unwrap();
}

fn raw_agent(world: &World) -> String {
    format!("{} {}", test_agent().display(), world.path("scripted.script").display())
}

#[track_caller]
fn says(world: &World, args: &[&str], expected: &str) {
    let run = world.run(&[args, &["exec", "x"]].concat()).code(0);
    assert!(run.stdout.contains(expected), "{args:?}: {run:?}");
}

#[test]
fn a_credential_goes_to_its_agent_only() {
    let world = world();
    world.settings("[auth.scripted]\napi-key = \"stored-1\"\n");
    close(&world);
    says(&world, &["scripted"], "key <stored-1>");
    says(&world, &[], "key <stored-1>");
    says(&world, &["other"], NONE);
    // The same program by its command line is no agent with a name.
    says(&world, &["--agent", &raw_agent(&world)], NONE);
    let run = world.run(&["--format", "json", "config", "show"]);
    assert_eq!(run.json()[0]["authMethods"], json!(["scripted.api-key"]));
    // A prompt is run by another process, which gets no more.
    for (agent, expected) in [("scripted", "key <stored-1>"), ("other", NONE)] {
        world.run(&[agent, "sessions", "new"]).ok();
        assert!(world.run(&[agent, "prompt", "x"]).ok().contains(expected));
        world.run(&[agent, "sessions", "close"]).ok();
    }
}

#[test]
fn a_command_line_in_the_settings_gets_nothing() {
    let world = world().env("ATTACHE_AUTH_API_KEY", "of-the-environment");
    let file = world.home().join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        format!("default_agent = {:?}\n{text}\n[auth.scripted]\napi-key = \"stored-1\"\n", raw_agent(&world)),
    )
    .unwrap();
    close(&world);
    let run = |args: &[&str]| {
        let output = world.command(args).env_remove("ATTACHE_AGENT").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = run(&["exec", "x"]);
    assert!(text.contains(NONE), "{text}");
    // Typed, it is the user's own doing.
    let text = run(&["--agent", &raw_agent(&world), "exec", "x"]);
    assert!(text.contains("key <of-the-environment>"), "{text}");
    let text = run(&["scripted", "exec", "x"]);
    assert!(text.contains("key <of-the-environment>"), "{text}");
}

#[test]
fn an_agent_of_a_project_is_not_the_one_that_was_meant() {
    let world = world();
    world.settings("[auth.scripted]\napi-key = \"stored-1\"\n");
    close(&world);
    let text = format!("[agents.scripted]\nargv = [{:?}, {:?}]\n", test_agent(), world.path("other.script"));
    world.write(".attache.toml", &text);
    world.run(&["trust", "add"]).ok();
    says(&world, &["scripted"], NONE);
    let run = world.run(&["auth", "login", "scripted", "--save"]).code(2);
    assert!(run.stderr.contains("your own settings"), "{run:?}");
}

#[test]
fn one_without_an_agent_is_not_used_until_a_login_moves_it() {
    let world = world();
    world.settings("# mine\nttl = 20\n[auth]\n# the old way\napi-key = \"flat-1\"\nunknown = \"flat-2\"\n");
    close(&world);
    for agent in ["scripted", "other"] {
        let run = world.run(&[agent, "exec", "x"]).code(0);
        assert!(run.stdout.contains(NONE), "{run:?}");
        assert!(
            run.stderr.contains("`api-key`") && run.stderr.contains("attache auth login AGENT"),
            "{run:?}"
        );
        assert!(!run.stderr.contains("flat-1"), "{run:?}");
    }
    let run = world.run(&["auth", "login", "scripted"]).code(0);
    assert!(run.stdout.contains("logged in to scripted"), "{run:?}");
    says(&world, &["scripted"], "key <flat-1>");
    says(&world, &["other"], NONE);
    let settings = fs::read_to_string(world.home().join("config.toml")).unwrap();
    assert!(settings.contains("# mine\nttl = 20\n[auth]\nunknown = \"flat-2\"\n"), "{settings}");
    let kept = world.home().join("credentials.json");
    let stored: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    assert_eq!(stored["auth"], json!({ "scripted": { "api-key": "flat-1" } }));
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    // What is forgotten is gone.
    world.run(&["auth", "logout", "scripted"]).ok();
    says(&world, &["scripted"], NONE);
    assert!(!kept.exists());
}

#[test]
fn the_first_form_of_the_file_is_understood_and_not_used() {
    let world = world();
    let kept = world.home().join("credentials.json");
    fs::write(&kept, r#"{"version":1,"agents":{},"auth":{"api-key":"flat-1"}}"#).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o600)).unwrap();
    says(&world, &["scripted"], NONE);
    world.run(&["auth", "login", "other"]).ok();
    says(&world, &["scripted"], NONE);
    says(&world, &["other"], "key <flat-1>");
}

#[test]
fn settings_that_others_can_read_give_no_credentials() {
    let world = world();
    world.settings("[auth.scripted]\napi-key = \"stored-1\"\n");
    let chmod = |mode: &str| {
        for path in [world.home(), world.home().join("config.toml")] {
            assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
        }
    };
    chmod("755");
    let run = world.run(&["exec", "x"]).code(0);
    assert!(run.stdout.contains(NONE) && run.stderr.contains("chmod 600"), "{run:?}");
    // Other users cannot reach a file in a private directory.
    chmod("700");
    fs::set_permissions(world.home().join("config.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    says(&world, &[], "key <stored-1>");
}

#[test]
fn a_login_of_a_command_line_is_not_kept() {
    let methods = json!([{ "id": "env", "name": "Key", "type": "env_var", "vars": [{ "name": "MY_KEY" }] }]);
    let hello = json!({ "protocolVersion": 1, "authMethods": methods });
    let script = format!(
        "on initialize\n  reply {hello}\non session/prompt\n  say key <$env.MY_KEY>\\n\n  done end_turn\n"
    );
    let world = World::new().agent(&script);
    let raw = raw_agent(&world);
    let login = |agent: &[&str]| {
        world.run(&[agent, &["--env", "MY_KEY=given-1", "auth", "login", "--save"]].concat())
    };
    let run = login(&["--agent", &raw]).code(2);
    assert!(run.stderr.contains("have a name") && run.stderr.contains("agents.NAME.command"), "{run:?}");
    assert!(!world.home().join("credentials.json").exists());
    login(&["scripted"]).ok();
    says(&world, &["scripted"], "key <given-1>");
    says(&world, &["--agent", &raw], NONE);
    // What an earlier version kept for a command line stays unused, and can be forgotten.
    let kept = world.home().join("credentials.json");
    let text = fs::read_to_string(&kept).unwrap();
    let mut stored: Value = serde_json::from_str(&text).unwrap();
    stored["agents"][&raw] = json!({ "MY_KEY": "old-1" });
    fs::write(&kept, stored.to_string()).unwrap();
    says(&world, &["--agent", &raw], NONE);
    let run = world.run(&["--agent", &raw, "auth", "logout"]).code(0);
    assert!(run.stdout.contains("forgot MY_KEY"), "{run:?}");
    says(&world, &["scripted"], "key <given-1>");
}
