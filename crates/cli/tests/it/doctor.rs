//! `attache doctor`: what works, what does not, and what to do.

use std::fs;

use serde_json::{Value, json};

use super::registry_server::{Server, binary};
use super::world::{World, is_running, test_agent};

/// The steps of an examination by name, and the whole report.
fn examine(world: &World, args: &[&str], code: i32) -> Value {
    let args: Vec<&str> = ["--format", "json", "doctor"].iter().chain(args).copied().collect();
    world.run(&args).code(code).json().pop().unwrap()
}

fn step<'a>(report: &'a Value, name: &str) -> &'a Value {
    let steps = report["steps"].as_array().unwrap();
    steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

fn says(report: &Value, name: &str, state: &str, text: &str) {
    let step = step(report, name);
    assert_eq!(step["state"], state, "{step}");
    assert!(step.to_string().contains(text), "{step}");
}

#[test]
fn an_agent_that_works() {
    let hello = json!({
        "protocolVersion": 1,
        "agentInfo": { "name": "it", "title": "It", "version": "3.1" },
        "agentCapabilities": { "loadSession": true, "sessionCapabilities": { "close": {} } },
    });
    let world = World::new().agent(&format!("on initialize\n  reply {hello}\n"));
    let report = examine(&world, &[], 0);
    assert_eq!(report["ok"], true);
    assert_eq!(report["agentInfo"]["version"], "3.1");
    for (name, state) in [
        ("settings", "ok"),
        ("program", "ok"),
        ("start", "ok"),
        ("initialize", "ok"),
        ("login", "skipped"),
        ("session", "ok"),
        ("end", "ok"),
    ] {
        assert_eq!(step(&report, name)["state"], state, "{report}");
    }
    says(&report, "initialize", "ok", "It 3.1, version 1");
    says(&report, "capabilities", "ok", "load sessions, close sessions");
    assert!(step(&report, "initialize")["milliseconds"].is_u64());
    // No prompt is sent, and the session is not left open. The other version is offered in a
    // connection of its own.
    assert_eq!(world.methods(), ["initialize", "session/new", "session/close", "initialize"]);
    assert_eq!(report["protocolVersions"], json!([1]));
    says(&report, "protocol", "ok", "it speaks version 1");
    let text = world.run(&["doctor", "scripted"]).ok();
    assert!(text.ends_with("scripted works\n"), "{text}");
    assert_eq!(world.run(&["--format", "quiet", "scripted", "doctor"]).ok(), "ok\n");
}

#[test]
fn an_agent_of_both_versions() {
    let world = World::new();
    let script = world.path("model.script");
    fs::write(&script, "==\n--\nsay hello\n").unwrap();
    let model = format!("script:{}", script.display());
    let agent = format!("{} agent --no-store --model {model}", env!("CARGO_BIN_EXE_attache"));
    let report = examine(&world, &["--agent", &agent], 0);
    assert_eq!(report["protocolVersions"], json!([1, 2]));
    says(&report, "protocol", "ok", "it speaks versions 1 and 2");
}

#[test]
fn a_program_that_is_not_there() {
    let server = Server::new();
    server.agents(&[binary("gemini", "1.0.0", "x.tgz", None)]);
    let world =
        World::new().env("PATH", "/nonexistent").env("ATTACHE_REGISTRY", &server.url("/registry.json"));
    world.run(&["registry", "list"]).ok();
    let report = examine(&world, &["gemini"], 1);
    says(&report, "program", "failed", "npm install -g @google/gemini-cli");
    says(&report, "program", "failed", "attache registry install gemini");
    says(&examine(&world, &["no-such-agent"], 1), "program", "failed", "`no-such-agent` not found");
    let file = world.write("agent", "#!/bin/sh\n");
    says(&examine(&world, &[&file.to_string_lossy()], 1), "program", "failed", "chmod +x");
    says(&examine(&world, &["npx -y some-agent"], 1), "program", "failed", "nodejs.org");
}

#[test]
fn an_agent_that_says_nothing() {
    let world =
        World::new().agent("on initialize\n  raw Please log in:\n  stderr waiting for a key\n  ignore\n");
    let report = examine(&world, &["--timeout", "0.5"], 1);
    says(&report, "initialize", "failed", "no answer within 0.5 s");
    says(&report, "initialize", "failed", "stdout: Please log in:");
    says(&report, "initialize", "failed", "stderr: waiting for a key");
    says(&report, "initialize", "failed", "run it yourself");
}

#[test]
fn an_agent_that_ends_at_once() {
    let world =
        World::new().agent("on initialize\n  stderr error: unexpected argument '--acp' found\n  exit 2\n");
    let report = examine(&world, &[], 1);
    says(&report, "initialize", "failed", "exit code 2");
    says(&report, "initialize", "failed", "unexpected argument");
    says(&report, "initialize", "failed", "update it");
}

#[test]
fn an_agent_that_prints_and_ends() {
    let world = World::new().agent("on initialize\n  raw usage: agent [options]\n  exit 64\n");
    let report = examine(&world, &[], 1);
    says(&report, "initialize", "failed", "it ended before it answered (exit code 64)");
    says(&report, "initialize", "failed", "stdout: usage: agent [options]");
}

#[test]
fn an_agent_that_prints_on_stdout() {
    // shows STDIO-08
    let world = World::new()
        .agent("on session/new\n  raw DEBUG loading\n  raw DEBUG loaded\n  reply {\"sessionId\":\"s\"}\n");
    let report = examine(&world, &[], 0);
    says(&report, "stdout", "warning", "2 lines");
    says(&report, "stdout", "warning", "DEBUG loaded");
    assert!(world.run(&["doctor"]).ok().ends_with("scripted works, with 1 warning\n"));
}

#[test]
fn an_agent_of_another_version() {
    // shows INIT-09
    let world = World::new().agent("on initialize\n  reply {\"protocolVersion\":7}\n");
    says(&examine(&world, &[], 1), "initialize", "failed", "it speaks version 7");
}

#[test]
fn an_agent_whose_answers_are_wrong() {
    let world = World::new().agent("on initialize\n  fail -32603 no model\n");
    says(&examine(&world, &[], 1), "initialize", "failed", "no model");
    let world = World::new().agent("on session/new\n  fail -32603 the disk is full\n  stderr disk\n");
    says(&examine(&world, &[], 1), "session", "failed", "the disk is full");
    let world = World::new().agent("on session/new\n  ignore\n");
    says(&examine(&world, &["--timeout", "0.5"], 1), "session", "failed", "no answer to `session/new`");
    let world = World::new().agent("on session/new\n  stderr boom\n  exit 5\n");
    says(&examine(&world, &[], 1), "session", "failed", "boom");
}

#[test]
fn a_command_after_two_dashes_is_an_agent() {
    let world = World::new();
    let script = world.write("my.script", "");
    let agent = test_agent();
    let words = ["--", agent.to_str().unwrap(), script.to_str().unwrap()];
    assert_eq!(step(&examine(&world, &words, 0), "session")["state"], "ok");
    // Without them a second word is a mistake.
    world.run(&["doctor", "gemini", "codex"]).code(2);
}

#[test]
fn an_agent_that_wants_a_login() {
    let hello = json!({ "protocolVersion": 1, "authMethods": [
        { "id": "a", "name": "First", "description": "the usual way" },
        { "id": "t", "name": "Second", "type": "terminal", "args": ["login"] },
    ] });
    let world = World::new()
        .agent(&format!("on initialize\n  reply {hello}\non session/new\n  fail -32000 log in first\n"));
    let report = examine(&world, &[], 1);
    // Whether a login is needed is not known yet.
    says(&report, "login", "warning", "First: the usual way");
    says(&report, "login", "warning", "Second (in the terminal)");
    says(&report, "session", "failed", "attache auth login scripted");
    assert_eq!(report["authMethods"][0]["type"], "agent");
    assert!(!world.methods().contains(&"authenticate".to_owned()));
}

#[test]
fn an_agent_at_an_address() {
    // A port that was free a moment ago, and that no process listens on.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = World::new();
    let report = examine(&world, &["--agent", &format!("tcp://{address}")], 1);
    says(&report, "program", "skipped", "has an address");
    says(&report, "start", "failed", "is the address right?");
}

#[test]
fn an_agent_that_does_not_leave() {
    // shows STDIO-10
    let world = World::new().agent("on session/close\n  reply {}\n  hang\non initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"close\":{}}}}\n");
    let report = examine(&world, &[], 0);
    says(&report, "end", "warning", "does not exit when its input is closed");
    let script = world.path("scripted.script").to_string_lossy().into_owned();
    assert!(!is_running(&script));
}

#[test]
fn nothing_is_left_of_an_agent_that_forks() {
    let world =
        World::new().agent("on session/new\n  fork\n  stderr pid $pid\n  reply {\"sessionId\":\"s\"}\n");
    let report = examine(&world, &[], 0);
    says(&report, "end", "ok", "nothing is left running");
}

#[test]
fn secrets_stay_secret() {
    let world = World::new()
        .agent("on initialize\n  stderr using key $env.MY_SECRET_TOKEN\n  exit 1\n")
        .env("MY_SECRET_TOKEN", "hush-hush-123456");
    let run = world.run(&["doctor"]).code(1);
    assert!(run.stdout.contains("using key") && !run.stdout.contains("hush-hush-123456"), "{}", run.stdout);
}

#[test]
fn ignored_settings_are_reported() {
    let world = World::new().agent("");
    world.write(".attache.toml", "[agents.scripted]\ncommand = 'evil'\n");
    let report = examine(&world, &[], 0);
    says(&report, "settings", "warning", "agents");
    assert!(fs::read_to_string(world.home().join("config.toml")).unwrap().contains("scripted"));
}
