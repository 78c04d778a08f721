//! Conversations kept, played again and looked at.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Lines, World, eventually, is_running, test_agent};

const SCRIPT: &str = "on session/prompt\n  say you said $prompt\n  done end_turn\n";

/// A world, and the command of its scripted agent.
fn world() -> (World, String) {
    let world = World::new().agent(SCRIPT);
    let agent = format!("{} {}", test_agent().display(), world.path("scripted.script").display());
    (world, agent)
}

fn attache() -> &'static str {
    env!("CARGO_BIN_EXE_attache")
}

#[test]
fn a_recorded_agent_is_the_same_agent() {
    let (world, agent) = world();
    let plain = world.run(&["exec", "hello"]).ok();
    let command = format!("{} record talk.jsonl -- {agent}", attache());
    assert_eq!(world.run(&["--agent", &command, "exec", "hello"]).ok(), plain);
    let lines: Vec<Value> =
        world.read("talk.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["attache"], "recording");
    assert!(lines.iter().any(
        |line| line["from"] == "client" && line["text"].as_str().unwrap().contains("\"session/prompt\"")
    ));
    assert!(
        lines
            .iter()
            .any(|line| line["from"] == "agent" && line["text"].as_str().unwrap().contains("you said hello"))
    );
    assert_eq!(lines.last().unwrap()["exit"], 0);
}

#[test]
fn a_recording_stands_in_for_its_agent() {
    let (world, agent) = world();
    let command = format!("{} record talk.jsonl -- {agent}", attache());
    let plain = world.run(&["--agent", &command, "exec", "hello"]).ok();
    let replay = format!("{} replay talk.jsonl --report report.json", attache());
    assert_eq!(world.run(&["--agent", &replay, "exec", "hello"]).ok(), plain);
    let report: Value = serde_json::from_str(&world.read("report.json")).unwrap();
    assert_eq!((&report["faithful"], &report["matched"]), (&Value::Bool(true), &report["expected"]));
    // Other words are other content, which counts only if it is asked for.
    let strict = format!("{} replay talk.jsonl --strict --report strict.json", attache());
    assert_eq!(world.run(&["--agent", &strict, "exec", "good bye"]).ok(), plain);
    let report: Value = serde_json::from_str(&world.read("strict.json")).unwrap();
    assert_eq!(report["faithful"], false);
}

#[test]
fn a_recording_stands_in_for_its_client() {
    let (world, agent) = world();
    let command = format!("{} record talk.jsonl -- {agent}", attache());
    world.run(&["--agent", &command, "exec", "hello"]).ok();
    let mut args = vec!["replay", "talk.jsonl", "--patience", "1", "--as", "client", "--"];
    args.extend(agent.split(' '));
    world.run(&args).code(0);
    // An agent that does something else is noticed.
    fs::write(world.path("scripted.script"), "on session/prompt\n  call session/request_permission {\"sessionId\":\"$session\",\"toolCall\":{\"toolCallId\":\"t\"},\"options\":[{\"optionId\":\"y\",\"name\":\"Y\",\"kind\":\"allow_once\"}]}\n  done end_turn\n").unwrap();
    let run = world.run(&args).code(1);
    assert!(run.stderr.contains("not in the recording: session/request_permission"), "{}", run.stderr);
}

/// A peer that does not stop talking, does not read or is silent gets no more time than was set.
#[test]
fn a_peer_that_does_something_else_altogether_is_given_up() {
    let (world, _) = world();
    let head = r#"{"attache":"recording","version":1,"started":"","command":["a"],"masked":false}"#;
    let said = |from: &str, message: Value| {
        format!("{}\n", serde_json::json!({ "t": 0, "from": from, "text": message.to_string() }))
    };
    let ask = serde_json::json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "x": "y".repeat(1 << 20) } });
    let answer = serde_json::json!({ "jsonrpc": "2.0", "id": 0, "result": {} });
    world.write("talk.jsonl", &format!("{head}\n{}{}", said("client", ask), said("agent", answer)));
    let mark = world.dir.join("another-agent").display().to_string();
    for script in ["yes", "sleep 1000", "exit 0", "cat"] {
        let script = format!("{script} # {mark}");
        let args = ["replay", "talk.jsonl", "--patience", "0.2", "--as", "client", "--", "sh", "-c", &script];
        let run = world.run(&args).code(1);
        assert!(run.stderr.contains("missing: the answer to initialize"), "{script}: {}", run.stderr);
    }
    let run = world.run(&["replay", "talk.jsonl", "--as", "client", "--", "/no/such/agent"]).code(2);
    assert!(run.stderr.contains("cannot start"), "{}", run.stderr);
    eventually("the end of all of them", || !is_running(&mark));
}

#[test]
fn the_exit_code_and_the_last_words_are_the_agents() {
    let (world, _) = world();
    let run = world.run(&["record", "a.jsonl", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]).code(7);
    assert_eq!((run.stdout.as_str(), run.stderr.trim_end()), ("out\n", "err"));
    let text = world.read("a.jsonl");
    assert!(text.contains("\"stderr\":\"err\"") && text.contains("\"exit\":7"), "{text}");
    world.run(&["record", "b.jsonl", "--", "sh", "-c", "kill -9 $$"]).code(137);
}

#[test]
fn a_failed_recording_is_reported() {
    let (world, _) = world();
    world.run(&["record"]).code(2);
    world.run(&["record", "a.jsonl"]).code(2);
    let run = world.run(&["record", "a.jsonl", "--", "no-such-agent"]).code(1);
    assert!(run.stderr.contains("no-such-agent"), "{}", run.stderr);
    let run = world.run(&["record", "a.jsonl", "--", "true"]).code(1);
    assert!(run.stderr.contains("--overwrite"), "{}", run.stderr);
    world.run(&["record", "--overwrite", "a.jsonl", "--", "true"]).code(0);
    let run = world.run(&["record", "no/such/directory/a.jsonl", "--", "true"]).code(1);
    assert!(run.stderr.contains("cannot create"), "{}", run.stderr);
}

/// A device is no file to be replaced: one that is always full reports it.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_reported_and_a_device_stays() {
    let (world, _) = world();
    let link = world.dir.join("full");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    for flag in [&[][..], &["--overwrite"]] {
        let run = world.run(&[&["record"], flag, &["full", "--", "true"]].concat()).code(1);
        assert!(run.stderr.contains("No space left"), "{}", run.stderr);
        assert!(link.is_symlink());
    }
}

#[test]
fn a_directory_takes_one_recording_per_run() {
    let (world, _) = world();
    fs::create_dir(world.dir.join("talks")).unwrap();
    world.run(&["record", "talks", "--", "true"]).code(0);
    world.run(&["record", "talks", "--", "true"]).code(0);
    assert_eq!(fs::read_dir(world.dir.join("talks")).unwrap().count(), 2);
}

#[test]
fn secrets_of_the_environment_can_be_left_out() {
    let world = World::new().agent(SCRIPT).env("MY_API_KEY", "s3cret-value-of-mine");
    let run = world
        .pipe(&["record", "--mask", "a.jsonl", "--", "cat"], "{\"a\":\"s3cret-value-of-mine\"}\n")
        .code(0);
    assert!(run.stdout.contains("s3cret-value-of-mine"));
    assert!(!world.read("a.jsonl").contains("s3cret-value-of-mine"));
    assert!(world.read("a.jsonl").contains("\"masked\":true"));
}

#[test]
fn a_killed_recorder_leaves_no_agent_and_a_readable_recording() {
    let (world, _) = world();
    let mark = world.dir.join("agent-of-the-killed").display().to_string();
    let script = format!("echo one; sleep 1000 # {mark}");
    let mut child = world
        .command(&["record", "a.jsonl", "--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the first line", || {
        fs::read_to_string(world.dir.join("a.jsonl")).unwrap_or_default().contains("\"one\"")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the agent's end", || !is_running(&mark));
    let shown = world.run(&["trace", "--lines", "a.jsonl"]).ok();
    assert!(shown.contains("one"), "{shown}");
}

#[test]
fn a_recording_is_shown_in_every_way() {
    let (world, agent) = world();
    let command = format!("{} record talk.jsonl -- {agent}", attache());
    world.run(&["--agent", &command, "exec", "hello"]).ok();
    let all = world.run(&["trace", "talk.jsonl"]).ok();
    assert!(
        all.contains("user     hello") && all.contains("agent    you said hello") && all.contains("1 turn"),
        "{all}"
    );
    let summary = world.run(&["trace", "--summary", "talk.jsonl"]).ok();
    assert!(summary.contains("session/prompt") && !summary.contains("you said"), "{summary}");
    assert!(world.run(&["trace", "--timing", "talk.jsonl"]).ok().contains("session/prompt of the client"));
    let lines = world.run(&["trace", "--method", "session/prompt", "talk.jsonl"]).ok();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let raw = world.run(&["--format", "json", "trace", "--kind", "agent_message_chunk", "talk.jsonl"]);
    assert!(raw.json().iter().all(|line| line["from"] == "agent") && !raw.json().is_empty());
    assert!(world.run(&["trace", "--follow", "talk.jsonl"]).ok().contains("the agent ended with 0"));
    let run = world.run(&["trace", "--html", "talk.html", "talk.jsonl"]).code(0);
    assert_eq!(run.stdout, "saved in talk.html\n");
    let page = world.read("talk.html");
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("you said hello") && !page.contains("http://"),
        "{page}"
    );
}

#[test]
fn a_file_that_is_no_recording_is_reported() {
    let (world, _) = world();
    world.write("other.txt", "hello\n");
    for args in [
        &["trace", "other.txt"][..],
        &["replay", "other.txt"],
        &["check", "trace", "other.txt"],
        &["trace", "--follow", "other.txt"],
        &["trace", "missing"],
        &["replay", "missing"],
    ] {
        let run = world.run(args).code(2);
        assert!(
            run.stderr.contains("other.txt: line 1") || run.stderr.contains("cannot be read"),
            "{}",
            run.stderr
        );
    }
    world.run(&["trace"]).code(2);
    world.run(&["replay", "--patience", "long", "other.txt"]).code(2);
    let head = r#"{"attache":"recording","version":1,"started":"","command":["a"],"masked":false}"#;
    let line = r#"{"t":0,"from":"client","text":"{}"}"#;
    fs::write(world.dir.join("binary"), [0, 0xff, 0xfe, b'\n', 0x80]).unwrap();
    for (name, text, why) in [
        ("empty", String::new(), "nothing in it"),
        ("later", head.replace("\"version\":1", "\"version\":9"), "version 9"),
        ("broken", format!("{head}\n{line}\nhello\n{line}\n"), "line 3: not an entry"),
    ] {
        world.write(name, &text);
        for verb in [&["replay"][..], &["trace"], &["check", "trace"]] {
            let run = world.run(&[verb, &[name]].concat()).code(2);
            assert!(run.stderr.contains(why), "{name}: {}", run.stderr);
        }
    }
    for name in ["binary", "."] {
        let run = world.run(&["check", "trace", name]).code(2);
        assert!(run.stderr.contains("line 1: "), "{}", run.stderr);
    }
    // What a crash left is whole up to its last line.
    world.write("cut", &format!("{head}\n{line}\n{}", &line[..20]));
    world.run(&["trace", "cut"]).ok();
    world.write("silent", &format!("{head}\n"));
    assert!(world.run(&["replay", "silent"]).code(2).stderr.contains("the recording is empty"));
    assert!(world.run(&["check", "trace", "silent"]).code(2).stdout.contains("could not run"));
}

/// A client of version 2: one prompt to the program `args` start, all questions answered yes.
fn prompt_over_version_2(world: &World, args: &[&str]) {
    use std::io::Write as _;

    let mut agent = world.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut lines) = (agent.stdin.take().unwrap(), Lines::of(agent.stdout.take().unwrap()));
    let mut send = |message: Value| writeln!(stdin, "{message}").unwrap();
    let mut receive = || serde_json::from_str::<Value>(&lines.next()).unwrap();
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": 2, "info": info, "capabilities": {} });
    send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    assert_eq!(receive()["result"]["protocolVersion"], 2);
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": world.dir } }));
    let session = loop {
        let message = receive();
        if message["id"] == 1 {
            break message["result"]["sessionId"].clone();
        }
    };
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt }));
    loop {
        let message = receive();
        if message["method"] == "session/request_permission" {
            let option = message["params"]["options"][0]["optionId"].clone();
            let outcome = json!({ "outcome": "selected", "optionId": option });
            send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "outcome": outcome } }));
        }
        if message["params"]["update"]["state"] == "idle" {
            break;
        }
    }
    drop(stdin);
    assert!(agent.wait().unwrap().success());
}

#[test]
fn recordings_of_version_2_are_shown_and_replayed() {
    let world = World::new();
    let script = world.path("model.script");
    let calls = "call write {\"path\": \"a.txt\", \"content\": \"one\\n\"}";
    fs::write(&script, format!("==\n--\nsay first\n{calls}\n--\nsay done\n")).unwrap();
    let model = format!("script:{}", script.display());
    let agent = [attache(), "agent", "--no-store", "--no-sandbox", "--model", &model];
    prompt_over_version_2(&world, &[&["record", "talk.jsonl", "--"], &agent[..]].concat());
    assert_eq!(world.read("a.txt"), "one\n");

    let shown = world.run(&["trace", "talk.jsonl"]).ok();
    for part in [
        "protocol  version 2\n",
        "user     go\n",
        "agent    first\n",
        "state    running\n",
        "end      end_turn\n",
        "1 turn, 1 tool call",
    ] {
        assert!(shown.contains(part), "{part:?} in\n{shown}");
    }
    assert!(world.run(&["trace", "--kind", "state_update", "talk.jsonl"]).ok().contains("idle"));
    world.run(&["check", "trace", "talk.jsonl"]).code(0);

    // As the agent for the same client, and as the client for the same agent.
    prompt_over_version_2(&world, &["replay", "talk.jsonl"]);
    fs::remove_file(world.dir.join("a.txt")).unwrap();
    let as_client = ["replay", "talk.jsonl", "--as", "client", "--"];
    world.run(&[&as_client[..], &agent[..]].concat()).code(0);
    assert_eq!(world.read("a.txt"), "one\n");
}
