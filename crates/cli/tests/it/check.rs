//! `attache check` on real processes: scripted agents, this program as a client, recordings.

use serde_json::Value;

use crate::world::{World, eventually, is_running};

const GOOD: &str = "on session/prompt\n  say It is a parser.\n  done end_turn\n";

/// Writes a file, whether the client lends files or not.
const RUDE: &str = "on session/prompt\n  call fs/write_text_file {\"path\":\"$cwd/notes.md\",\"content\":\"x\"}\n  say done\n  done end_turn\n";

fn rule<'a>(report: &'a Value, id: &str) -> &'a Value {
    let rules = report["rules"].as_array().unwrap();
    rules.iter().find(|rule| rule["id"] == id).unwrap_or_else(|| panic!("no {id} in {report}"))
}

#[test]
fn a_good_agent_is_conformant_in_every_format() {
    let world = World::new().agent(GOOD);
    let args = ["check", "agent", "scripted", "--scenario", "baseline", "--scenario", "version-1"];
    let text = world.run(&args).ok();
    assert!(text.contains("\nconformant: "), "{text}");
    let more = [
        "--report",
        "json=r.json",
        "--report",
        "junit=r.xml",
        "--report",
        "html=r.html",
        "--traces",
        "talks",
    ];
    world.run(&[&args[..], &more].concat()).ok();
    let report: Value = serde_json::from_str(&world.read("r.json")).unwrap();
    assert_eq!(report["conclusion"], "conformant");
    assert_eq!(rule(&report, "PROMPT-08")["status"], "pass");
    assert_eq!(rule(&report, "TERM-05")["status"], "not exercised", "what was not seen is no pass");
    assert!(world.read("r.xml").starts_with("<?xml"));
    assert!(world.read("r.html").contains("class=\"seq\""));
    assert!(world.read("talks/baseline.jsonl").starts_with("{\"attache\":\"recording\""));
}

#[test]
fn a_broken_duty_is_shown_with_its_lines_and_fails() {
    let world = World::new().agent(RUDE);
    let run =
        world.run(&["check", "agent", "scripted", "--scenario", "bare-client", "--format", "json"]).code(1);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let broken = rule(&report, "FS-02");
    assert_eq!(broken["status"], "fail");
    let line = broken["failures"][0]["lines"][0]["text"].as_str().unwrap();
    assert!(line.contains("fs/write_text_file"), "{line}");
    let run = world.run(&["check", "agent", "scripted", "--only", "FS-02"]).code(1);
    assert!(run.stdout.contains("FS-02 MUST NOT") && run.stdout.contains("not conformant"), "{}", run.stdout);
}

#[test]
fn a_program_that_does_not_start_is_not_judged() {
    let world = World::new();
    let run =
        world.run(&["check", "agent", "--scenario", "baseline", "--", "/no/such/agent", "--acp"]).code(2);
    assert!(run.stdout.contains("could not run"), "{}", run.stdout);
    world.run(&["check", "agent", "--scenario", "baseline", "--", "true"]).code(2);
    world.run(&["check", "agent"]).code(2);
    let run = world.run(&["check", "client", "--", "true"]).code(2);
    assert!(run.stderr.contains("{agent}"), "{}", run.stderr);
}

/// Whatever is wrong with a report, it is no verdict of the peer.
#[test]
fn a_report_that_cannot_be_written_is_no_verdict() {
    let world = World::new().agent(GOOD);
    let args = ["check", "agent", "scripted", "--scenario", "version-1"];
    for (more, why) in [
        (["--report", "pdf=x"], "not `pdf`"),
        (["--report", "html"], "FORMAT=FILE"),
        (["--report", "html=no/such/x.html"], "cannot be written"),
        (["--out", "no/such/x.txt"], "cannot be written"),
        (["--traces", "/dev/null/x"], "cannot be written"),
    ] {
        let run = world.run(&[&args[..], &more].concat()).code(2);
        assert!(run.stderr.contains(why), "{}", run.stderr);
    }
}

/// Programs that are no agents: each is told apart soon, and none is left behind.
#[test]
fn a_silent_peer_is_given_up() {
    let world = World::new();
    let mark = world.dir.join("no-agent").display().to_string();
    let silent = format!("sleep 1000 # {mark}");
    let chatty = format!("yes # {mark}");
    let garbage = format!("cat /dev/zero # {mark}");
    // One that leaves is not waited for.
    let run = world.run(&["check", "agent", "--", "sh", "-c", "exit 3"]).code(2);
    assert!(run.stdout.contains("closed the connection and ended with status 3"), "{}", run.stdout);
    let deadline = ["check", "agent", "--deadline", "0.2"];
    for (program, flags, why) in [
        (&*silent, &[][..], "did not come in time; it took part in no scenario, so "),
        ("exec cat", &["--scenario", "baseline"], "could not run"),
        (&chatty, &["--scenario", "baseline"], "could not run"),
        (&garbage, &["--scenario", "baseline"], "could not run"),
    ] {
        let run = world.run(&[&deadline[..], flags, &["--", "sh", "-c", program]].concat()).code(2);
        assert!(run.stdout.contains(why), "{program}: {}", run.stdout);
    }
    let run =
        world.run(&["check", "client", "--deadline", "0.2", "--", "sh", "-c", &silent, "{agent}"]).code(2);
    assert!(run.stdout.contains("the client did not start the agent"), "{}", run.stdout);
    eventually("the end of all of them", || !is_running(&mark));
}

#[test]
fn rules_and_scenarios_can_be_asked_about() {
    let world = World::new();
    let text = world.run(&["check", "agent", "--explain", "cancel-05"]).ok();
    assert!(text.starts_with("CANCEL-05 (MUST, mandatory)"), "{text}");
    let run = world.run(&["check", "agent", "--explain", "CANCEL-9"]).code(2);
    assert!(run.stderr.contains("no rule `CANCEL-9`"), "{}", run.stderr);
    assert!(world.run(&["check", "client", "--list"]).ok().lines().count() > 50);
    let run = world.run(&["check", "agent", "--scenario", "basline", "--", "x"]).code(2);
    assert!(run.stderr.contains("did you mean `baseline`?"), "{}", run.stderr);
    let run = world.run(&["check", "agent", "--prompt", "sing=la", "--", "x"]).code(2);
    assert!(run.stderr.contains("--prompt is for say, read"), "{}", run.stderr);
}

#[test]
fn this_program_is_a_client_like_any_other() {
    let world = World::new();
    let program = env!("CARGO_BIN_EXE_attache");
    let exec = ["--", program, "--agent", "{agent}", "--approve-all", "exec", "{prompt}"];
    let args =
        ["check", "client", "--scenario", "first-words", "--scenario", "terminal-run", "--format", "json"];
    let run = world.run(&[&args[..], &exec].concat());
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["conclusion"], "conformant", "{}", run.stdout);
    assert_eq!(rule(&report, "INIT-02")["status"], "pass");
}

#[test]
fn a_recording_can_be_judged() {
    let world = World::new();
    let line =
        |from: &str, text: &str| format!("{}\n", serde_json::json!({ "t": 0, "from": from, "text": text }));
    let head =
        "{\"attache\":\"recording\",\"version\":1,\"started\":\"\",\"command\":[\"a\"],\"masked\":false}\n";
    let ask = line(
        "client",
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    let answer = line(
        "agent",
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"a","version":"1"}}}"#,
    );
    world.write("good.jsonl", &format!("{head}{ask}{answer}"));
    let text = world.run(&["check", "trace", "good.jsonl"]).ok();
    assert!(text.contains("conformant"), "{text}");
    world.write("bad.jsonl", &format!("{head}{ask}{}{answer}", line("agent", "starting...")));
    let run = world.run(&["check", "trace", "bad.jsonl"]).code(1);
    assert!(run.stdout.contains("STDIO-08"), "{}", run.stdout);
    world.run(&["check", "trace", "bad.jsonl", "--party", "client"]).ok();
    world.write("none.jsonl", "{}\n");
    let run = world.run(&["check", "trace", "none.jsonl"]).code(2);
    assert!(run.stderr.contains("not a recording"), "{}", run.stderr);
}
