//! `attache import`: what other programs know about agents.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::world::{Run, World};

const ZED: &str = r#"// My settings.
{
  "theme": "One Dark", /* nice */
  "agent_servers": {
    "My Agent": {
      "type": "custom",
      "command": "my-agent",
      "args": ["--acp", "a b"],
      "env": { "LEVEL": "debug", "MY_API_KEY": "sekrit-123456" },
    },
    "claude-acp": { "type": "registry", "env": {} },
    "gemini": { "command": "gemini", "args": ["--acp"] },
  },
}
"#;

fn world() -> World {
    let world = World::new();
    let home = world.path("user").to_string_lossy().into_owned();
    fs::create_dir_all(&home).unwrap();
    world.env("HOME", &home).env("XDG_CONFIG_HOME", "")
}

fn put(world: &World, path: &str, text: &str) {
    let path = world.path("user").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn settings(world: &World) -> String {
    fs::read_to_string(world.home().join("config.toml")).unwrap_or_default()
}

fn changes(run: Run) -> Vec<(String, String)> {
    let report: Value = run.code(0).json().pop().unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    report["changes"].as_array().unwrap().iter().map(|row| (text(row, "name"), text(row, "change"))).collect()
}

#[test]
fn from_zed_with_comments_on_both_sides() {
    let world = world();
    put(&world, ".config/zed/settings.json", ZED);
    world.settings("# My own.\nttl = 10 # short");
    let before = settings(&world);
    let text = world.run(&["import", "zed", "--dry-run"]).ok();
    assert!(text.contains("+ agent my-agent = my-agent --acp 'a b'"), "{text}");
    assert!(text.contains("= agent gemini"), "{text}");
    assert!(text.contains("attache registry install claude-acp"), "{text}");
    assert!(!text.contains("sekrit"), "{text}");
    assert_eq!(settings(&world), before, "a dry run writes nothing");
    assert!(!world.home().join("credentials.json").exists());
    let text = world.run(&["import", "zed"]).ok();
    assert!(!text.contains("sekrit"), "{text}");
    let after = settings(&world);
    assert!(after.starts_with("# My own.\nttl = 10 # short\n"), "{after}");
    assert!(
        after.contains(
            "[agents.my-agent]\nargv = [\"my-agent\", \"--acp\", \"a b\"]\nenv = { LEVEL = \"debug\" }\n"
        ),
        "{after}"
    );
    assert!(!after.contains("sekrit"), "{after}");
    let file = world.home().join("credentials.json");
    assert!(fs::read_to_string(&file).unwrap().contains("sekrit-123456"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // Known from now on, and not taken twice.
    assert!(world.run(&["agents", "--all"]).ok().contains("my-agent"));
    let again = changes(world.run(&["--format", "json", "import", "zed"]));
    assert!(again.iter().all(|(_, change)| change == "same"), "{again:?}");
    assert_eq!(settings(&world), after);
}

#[test]
fn the_secret_reaches_its_agent() {
    let world = world();
    let script = world.path("agent.script");
    fs::write(&script, "on session/prompt\n  say key $env.MY_API_KEY level $env.LEVEL\n  done end_turn\n")
        .unwrap();
    let zed = json!({ "agent_servers": { "Mine": {
        "command": super::world::test_agent(), "args": [script],
        "env": { "MY_API_KEY": "sekrit-123456", "LEVEL": "9" },
    } } });
    put(&world, ".config/zed/settings.json", &zed.to_string());
    world.run(&["import", "zed"]).ok();
    assert_eq!(world.run(&["--format", "quiet", "mine", "exec", "hi"]).ok(), "key sekrit-123456 level 9\n");
}

#[test]
fn existing_settings_stay_unless_forced() {
    let world = world();
    put(
        &world,
        ".jetbrains/acp.json",
        r#"{"agent_servers":{"Mine":{"command":"theirs","args":[],"env":{}}}}"#,
    );
    world.settings("[agents.mine] # keep\ncommand = \"ours\"\n[agents.mine.env]\nA = \"1\"\n\n# another\n[agents.other]\ncommand = \"x\"");
    let before = settings(&world);
    let run = changes(world.run(&["--format", "json", "import", "jetbrains"]));
    assert_eq!(run, [("mine".to_owned(), "kept".to_owned())]);
    assert_eq!(settings(&world), before);
    world.run(&["import", "jetbrains", "--force"]).ok();
    let after = settings(&world);
    assert!(after.contains("[agents.mine]\nargv = [\"theirs\"]\n") && !after.contains("ours"), "{after}");
    assert!(after.contains("[agents.other]\ncommand = \"x\""), "{after}");
}

#[test]
fn from_acpx_with_all_its_settings() {
    let world = world();
    let config = json!({
        "defaultAgent": "mine", "defaultPermissions": "approve-all", "nonInteractivePermissions": "deny", "authPolicy": "skip",
        "ttl": 60, "timeout": null, "queueMaxDepth": 16, "format": "text", "disableExec": true,
        "agents": { "mine": { "argv": ["mine", "--acp"] }, "line": { "command": "line --acp" } },
        "auth": { "openai-api-key": "sk-secret-1" },
        "mcpServers": [{ "name": "files", "command": "mcp-files", "args": ["/"], "env": [{ "name": "A", "value": "1" }] }],
    });
    put(&world, ".acpx/config.json", &config.to_string());
    let run = world.run(&["import", "acpx"]);
    assert!(
        run.stdout.contains("without asking") && run.stdout.contains("setting exec = false"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("sk-secret-1"), "{}", run.stdout);
    let text = settings(&world);
    let table: toml::Table = text.parse().unwrap();
    assert_eq!(table["default_agent"].as_str(), Some("mine"));
    assert_eq!(table["permissions"].as_str(), Some("approve-all"));
    assert_eq!(table["ttl"].as_integer(), Some(60));
    assert!(!table.contains_key("queue_max_depth"), "what holds anyway is not written: {text}");
    assert_eq!(table["agents"]["line"]["argv"][1].as_str(), Some("--acp"));
    assert_eq!(table["mcp_servers"][0]["command"].as_str(), Some("mcp-files"));
    assert!(!text.contains("sk-secret-1"), "{text}");
    // acpx does not say for which agent a credential is, so it is kept and not used.
    assert!(run.stdout.contains("`openai-api-key` names no agent"), "{}", run.stdout);
    let kept = fs::read_to_string(world.home().join("credentials.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["unassigned"]["openai-api-key"], "sk-secret-1");
    assert!(!world.run(&["config", "show"]).ok().contains("openai-api-key"));
}

#[test]
fn a_project_of_acpx_becomes_a_project() {
    let world = world();
    world.write(".acpxrc.json", r#"{"defaultAgent":"gemini","agents":{"mine":{"command":"mine","args":[],"env":{"MY_TOKEN":"sekrit-1"}}},"auth":{"a":"sekrit-2"}}"#);
    let run = world.run(&["import", "acpx", "--project"]).code(0);
    assert!(run.stdout.contains("not imported from a project"), "{}", run.stdout);
    let text = world.read(".attache.toml");
    assert!(text.contains("default_agent = \"gemini\"") && text.contains("[agents.mine]"), "{text}");
    assert!(!text.contains("sekrit") && !world.home().join("credentials.json").exists());
}

#[test]
fn an_unreadable_recording_is_reported() {
    let world = world();
    let run = world.run(&["import", "zed"]).code(1);
    assert!(
        run.stderr.contains(".config/zed/settings.json") && run.stderr.contains("--from FILE"),
        "{}",
        run.stderr
    );
    let file = world.write("zed.json", "{ \"agent_servers\": { \"x\" } }");
    let run = world.run(&["import", "zed", "--from", &file.to_string_lossy()]).code(1);
    assert!(run.stderr.contains("line 1"), "{}", run.stderr);
    assert!(world.run(&["import", "emacs"]).code(2).stderr.contains("zed, jetbrains, acpx"));
    // A file of settings that is a link stays one.
    put(&world, ".config/zed/settings.json", ZED);
    fs::create_dir_all(world.home()).unwrap();
    fs::write(world.path("dotfiles.toml"), "ttl = 1\n").unwrap();
    std::os::unix::fs::symlink(world.path("dotfiles.toml"), world.home().join("config.toml")).unwrap();
    world.run(&["import", "zed"]).ok();
    assert!(fs::symlink_metadata(world.home().join("config.toml")).unwrap().is_symlink());
    assert!(fs::read_to_string(world.path("dotfiles.toml")).unwrap().contains("[agents.my-agent]"));
}

#[test]
fn initial_modes_and_models_are_imported_from_zed() {
    let world = world();
    let script = world.path("mine.script");
    fs::write(
        &script,
        r#"on session/new
  reply {"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"plan","name":"Plan"}]}}
on session/set_model
  reply {}
"#,
    )
    .unwrap();
    let agent = super::world::test_agent();
    let zed = json!({
        "agent_servers": { "Mine": {
            "command": agent, "args": [script], "default_mode": "plan", "default_model": "large",
        } },
        "context_servers": { "files": { "command": "mcp-files", "args": ["/"], "env": { "A": "1" } } },
    });
    put(&world, ".config/zed/settings.json", &zed.to_string());
    world.run(&["import", "zed"]).ok();
    world.run(&["mine", "exec", "x"]).ok();
    let log = fs::read_to_string(world.path("mine.log")).unwrap();
    let sent: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let params = |method: &str| sent.iter().find(|line| line["method"] == method).unwrap()["params"].clone();
    assert_eq!(params("session/set_mode")["modeId"], "plan");
    assert_eq!(params("session/set_model")["modelId"], "large");
    assert_eq!(params("session/new")["mcpServers"][0]["command"], "mcp-files");
    // A mode that the agent does not offer is reported with its origin.
    let settings = settings(&world).replace("mode = \"plan\"", "mode = \"fly\"");
    fs::write(world.home().join("config.toml"), settings).unwrap();
    let run = world.run(&["mine", "exec", "x"]).code(1);
    assert!(
        run.stdout.contains("`mode` of the agent `mine`") && run.stdout.contains("it offers: ask, plan"),
        "{run:?}"
    );
}
