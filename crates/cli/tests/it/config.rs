//! Settings, their layers and where they come from.

use std::fs;

use crate::world::World;

const ECHO: &str = "on session/prompt\n  say fine\n  done end_turn\n";

#[track_caller]
fn setting(world: &World, args: &[&str], key: &str) -> (serde_json::Value, String) {
    let args: Vec<&str> = args.iter().copied().chain(["--format", "json", "config", "show"]).collect();
    let run = world.run(&args).code(0);
    let setting = &run.json()[0]["settings"][key];
    (setting["value"].clone(), setting["source"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn flags_over_environment_over_project_over_user_over_built_in() {
    let world = World::new();
    assert_eq!(setting(&world, &[], "timeout"), (serde_json::Value::Null, String::new()));
    assert_eq!(setting(&world, &[], "ttl").0, 20);
    world.settings("timeout = 10\nmodel = \"m\"");
    let (value, source) = setting(&world, &[], "timeout");
    assert_eq!(value, 10);
    assert!(source.ends_with("home/config.toml"), "{source}");
    world.write(".attache.toml", "timeout = 5\n");
    let (value, source) = setting(&world, &[], "timeout");
    assert_eq!(value, 5);
    assert!(source.ends_with("work/.attache.toml"), "{source}");
    let world = world.env("ATTACHE_TIMEOUT", "4");
    assert_eq!(setting(&world, &[], "timeout"), (4.into(), "environment ATTACHE_TIMEOUT".to_owned()));
    assert_eq!(setting(&world, &["--timeout", "3"], "timeout"), (3.into(), "flag --timeout".to_owned()));
    assert_eq!(setting(&world, &[], "model").0, "m");
    assert_eq!(setting(&world, &["--approve-all"], "permissions").0, "approve-all");
    let text = world.run(&["config"]).ok();
    assert!(text.contains("timeout = 4"), "{text}");
}

#[test]
fn a_project_cannot_allow_itself_more_than_the_user_does() {
    let world = World::new().agent(ECHO);
    world.write(".attache.toml", "permissions = \"approve-all\"\nlog = \"/tmp/x\"\n[agents.scripted]\ncommand = \"/bin/evil\"\n[auth]\nk = \"v\"\n");
    let run = world.run(&["exec", "x"]).code(0);
    assert!(run.stdout.starts_with("fine"), "{}", run.stdout);
    assert!(run.stderr.contains("`agents`, `auth`, `log`, `permissions`"), "{}", run.stderr);
    assert!(run.stderr.contains("attache trust add"), "{}", run.stderr);
    assert_eq!(setting(&world, &[], "permissions").0, "ask");
    // Less is always possible.
    world.write(".attache.toml", "permissions = \"deny-all\"\nfs = false\n");
    assert_eq!(setting(&world, &[], "permissions").0, "deny-all");
    assert_eq!(setting(&world, &[], "fs").0, false);
    world.settings("max_cost = 1.0\nterminal = false");
    world.write(".attache.toml", "max_cost = 5\nterminal = true\n");
    assert_eq!(setting(&world, &[], "max_cost").0, 1);
    assert_eq!(setting(&world, &[], "terminal").0, false);
}

#[test]
fn consent_is_to_a_text() {
    let world = World::new();
    world.write(".attache.toml", "permissions = \"approve-all\"\n");
    world.run(&["trust", "add"]).ok();
    assert_eq!(setting(&world, &[], "permissions").0, "approve-all");
    world.write(".attache.toml", "permissions = \"approve-all\"\n# changed\n");
    assert_eq!(setting(&world, &[], "permissions").0, "ask");
    world.run(&["trust", "add"]).ok();
    world.run(&["trust", "remove"]).ok();
    assert_eq!(setting(&world, &[], "permissions").0, "ask");
    let run = world.run(&["--cwd", "/", "trust", "add"]).ok();
    assert!(run.contains("no files that would take effect"), "{run}");
}

#[test]
fn init_set_and_path() {
    let world = World::new();
    let created = world.run(&["config", "init"]).ok();
    assert!(created.starts_with("Created "), "{created}");
    assert!(world.run(&["config", "init"]).ok().starts_with("Config already exists"));
    world.run(&["config", "set", "timeout", "90"]).ok();
    world.run(&["config", "set", "agents.mine.command", "my-agent --acp"]).ok();
    assert_eq!(setting(&world, &[], "timeout").0, 90);
    let text = fs::read_to_string(world.home().join("config.toml")).unwrap();
    assert!(text.contains("# Settings of attache."), "comments stay: {text}");
    assert!(text.contains("[agents.mine]\ncommand = \"my-agent --acp\"\n"), "{text}");
    assert!(world.run(&["agents", "--all"]).ok().contains("my-agent --acp"));
    world.run(&["config", "set", "timeout", "soon"]).code(2);
    let run = world.run(&["config", "set", "timeot", "1"]).code(2);
    assert!(run.stderr.contains("did you mean `timeout`?"), "{}", run.stderr);
    world.run(&["config", "set", "--project", "format", "json"]).ok();
    assert_eq!(world.read(".attache.toml"), "format = \"json\"\n");
    assert!(world.run(&["--format", "text", "config", "path"]).ok().contains("config.toml"));
}

#[test]
fn settings_are_read_removed_and_edited() {
    let world = World::new();
    world.settings("# mine\ntimeout = 90\nmodel = \"m\"\n\n[agents.mine]\ncommand = \"my-agent --acp\"\nenv = { A = \"sekret\" }\n");
    assert_eq!(world.run(&["config", "get", "timeout"]).ok(), "90\n");
    assert_eq!(world.run(&["config", "get", "model"]).ok(), "m\n");
    // The value that holds, wherever it comes from.
    assert_eq!(world.run(&["--timeout", "3", "config", "get", "timeout"]).ok(), "3\n");
    assert_eq!(world.run(&["config", "get", "ttl"]).ok(), "20\n");
    assert_eq!(world.run(&["config", "get", "agents.mine.command"]).ok(), "my-agent --acp\n");
    let json = world.run(&["--format", "json", "config", "get", "model"]).code(0).json();
    assert_eq!((&json[0]["key"], &json[0]["value"]), (&"model".into(), &"m".into()));
    let run = world.run(&["config", "get", "log"]).code(1);
    assert!(run.stderr.contains("`log` is not set"), "{}", run.stderr);
    let run = world.run(&["config", "get", "timeot"]).code(2);
    assert!(run.stderr.contains("did you mean `timeout`?"), "{}", run.stderr);
    for secret in [
        "agents.mine.env.A",
        "auth.mine.key",
        "agents.mine.env",
        "providers.mine.apiKey",
        "mcp_servers.mine.Authorization",
    ] {
        let run = world.run(&["config", "get", secret]).code(2);
        assert!(run.stderr.contains("may be a credential"), "{}", run.stderr);
    }
    let run = world.run(&["config", "get", "agents.mine"]).code(2);
    assert!(
        run.stderr.contains("its keys: command, env") && !run.stderr.contains("sekret"),
        "{}",
        run.stderr
    );

    let removed = world.run(&["config", "unset", "timeout"]).ok();
    assert!(removed.starts_with("timeout removed from "), "{removed}");
    let text = fs::read_to_string(world.home().join("config.toml")).unwrap();
    assert!(text.starts_with("# mine\nmodel") || text.starts_with("model"), "{text}");
    assert!(!text.contains("timeout"), "{text}");
    let run = world.run(&["config", "unset", "timeout"]).code(1);
    assert!(run.stderr.contains("`timeout` is not set in "), "{}", run.stderr);
    world.write(".attache.toml", "format = \"json\"\n");
    world.run(&["--format", "text", "config", "unset", "--project", "format"]).ok();
    assert_eq!(world.read(".attache.toml"), "");

    let world = world.env("VISUAL", "sed -i s/my-agent/other/");
    let edited = world.run(&["config", "edit"]).ok();
    assert!(edited.ends_with("config.toml is valid\n"), "{edited}");
    assert_eq!(world.run(&["config", "get", "agents.mine.command"]).ok(), "other --acp\n");
    let world = world.env("VISUAL", "sh -c 'echo ttl = soon >> \"$1\"' sh");
    let run = world.run(&["config", "edit", "--project"]).code(2);
    assert!(
        run.stderr.contains(".attache.toml") && run.stderr.contains("attache config edit --project"),
        "{run:?}"
    );
    let world = world.env("VISUAL", "false");
    let run = world.run(&["config", "edit"]).code(1);
    assert!(run.stderr.contains("the editor failed"), "{}", run.stderr);
}

#[test]
fn mistakes_in_files_are_reported() {
    let world = World::new();
    world.settings("timeout = \"soon\"");
    let run = world.run(&["exec", "x"]).code(2);
    assert!(run.stderr.contains("config.toml: `timeout` is a number above 0"), "{}", run.stderr);
    let run = world.run(&["--format", "json", "exec", "x"]).code(2);
    assert_eq!(run.json()[0]["error"]["data"]["acpxCode"], "USAGE");
    // Commands that are needed to fix it still work.
    let run = world.run(&["config", "set", "timeout", "3"]).code(0);
    assert!(
        run.stderr.contains("warning: ") && run.stderr.contains("`timeout` is a number"),
        "{}",
        run.stderr
    );
    assert_eq!(setting(&world, &[], "timeout").0, 3);
    fs::write(world.home().join("config.toml"), "timeout = ").unwrap();
    world.run(&["exec", "x"]).code(2);
    assert!(world.run(&["config", "path"]).ok().contains("config.toml"));
    world.run(&["completions", "bash"]).ok();
    let world = World::new().agent(ECHO);
    world.settings("timeot = 3");
    let run = world.run(&["exec", "x"]).code(0);
    assert!(run.stderr.contains("there is no setting `timeot`, did you mean `timeout`?"), "{}", run.stderr);
    world.settings("[agents.x]\ncommand = 3\n");
    world.run(&["exec", "x"]).code(2);
}

#[test]
fn a_policy_is_validated_when_it_is_set() {
    let world = World::new().agent(ECHO);
    world.write("bad.json", r#"{"autoDenny":[]}"#);
    world.write("good.json", r#"{"autoDeny":["edit"]}"#);
    for wrong in ["bad.json", "missing.json", "{"] {
        world.run(&["config", "set", "permission_policy", wrong]).code(2);
    }
    // A file is kept by where it is, so that it is found from everywhere.
    let set = world.run(&["config", "set", "permission_policy", "good.json"]).ok();
    assert!(set.contains(world.dir.join("good.json").to_str().unwrap()), "{set}");
    world.run(&["--cwd", "/", "exec", "x"]).ok();
    // It changed meanwhile: commands that need it report that, others continue.
    world.write("good.json", "{");
    let run = world.run(&["exec", "x"]).code(2);
    assert!(run.stderr.contains("`permission_policy` in ") && run.stderr.contains("config.toml"), "{run:?}");
    assert!(run.stderr.contains("good.json"), "{run:?}");
    world.run(&["sessions", "new"]).ok();
    world.run(&["status"]).ok();
    world.run(&["sessions", "close"]).ok();
}

#[test]
fn credentials_are_never_shown() {
    let world = World::new();
    world.settings(
        "[auth]\nkey = \"sekret-12345\"\n[agents.a]\ncommand = \"a\"\nenv = { TOKEN = \"sekret-12345\" }\n",
    );
    for args in [&["config", "show"][..], &["--format", "json", "config", "show"], &["agents", "--all"]] {
        let shown = world.run(args).ok();
        assert!(!shown.contains("sekret"), "{shown}");
    }
}

#[test]
fn an_unwritable_directory_is_reported_with_an_alternative() {
    let world = World::new().agent(ECHO);
    // Root may write anywhere, but cannot make a directory where a file is.
    fs::write(world.home().join("state"), "a file").unwrap();
    for args in [&["exec", "x"][..], &["sessions", "new"]] {
        let run = world.run(args).code(1);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains("/state is not a directory") && said.contains("ATTACHE_HOME"), "{said}");
    }
}
