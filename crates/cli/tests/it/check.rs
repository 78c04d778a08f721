//! `attache check` on real processes: scripted agents, this program as a client, recordings.

use serde_json::Value;

use crate::world::{World, eventually, is_running, test_agent};

const GOOD: &str = "on session/prompt\n  say It is a parser.\n  done end_turn\n";

/// Writes a file, whether the client provides files or not.
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
    assert!(text.contains("\nnothing broken, "), "{text}");
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
    assert_eq!(report["conclusion"], "nothing broken");
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
    assert!(run.stdout.contains("FS-02 MUST NOT") && run.stdout.contains("binding rule"), "{}", run.stdout);
}

#[test]
fn known_failures_do_not_fail_and_fixed_ones_must_leave_the_list() {
    let world = World::new().agent(RUDE);
    let args = ["check", "agent", "scripted", "--scenario", "bare-client"];
    world.run(&[&args[..], &["--report", "baseline=known.txt"]].concat()).code(1);
    assert!(world.read("known.txt").contains("\nFS-02 # "), "{}", world.read("known.txt"));
    let known = ["--baseline", "known.txt", "--report", "junit=r.xml"];
    let text = world.run(&[&args[..], &known].concat()).ok();
    assert!(text.contains("FS-02 MUST NOT (known)") && text.contains(" of them known"), "{text}");
    assert!(!world.read("r.xml").contains("<failure"), "{}", world.read("r.xml"));
    world.write("less.txt", "FS-05\n");
    world.run(&[&args[..], &["--baseline", "less.txt"]].concat()).code(1);
    world.write("more.txt", &format!("{}RPC-01\n", world.read("known.txt")));
    let run = world.run(&[&args[..], &["--baseline", "more.txt"]].concat()).code(1);
    assert!(run.stderr.contains("rules that are kept: RPC-01"), "{}", run.stderr);
    world.write("typo.txt", "\nFS-2\n");
    let run = world.run(&[&args[..], &["--baseline", "typo.txt"]].concat()).code(2);
    assert!(run.stderr.contains("line 2: no rule `FS-2`"), "{}", run.stderr);
}

#[test]
fn the_verdict_says_how_much_was_seen() {
    let world = World::new().agent(GOOD);
    let args = ["check", "agent", "scripted", "--scenario", "baseline", "--require-coverage"];
    let run = world.run(&[&args[..], &["99"]].concat()).code(1);
    assert!(run.stderr.contains("--require-coverage asks for 99 %"), "{}", run.stderr);
    let text = world.run(&[&args[..], &["5"]].concat()).ok();
    assert!(text.contains("nothing broken, ") && text.contains(" mandatory rules seen"), "{text}");
}

/// The command in a report shows the failure again.
#[test]
fn a_failure_can_be_shown_again() {
    let world = World::new().agent(RUDE);
    let report = world
        .run(&["check", "agent", "--deadline", "20", "--only", "FS-02,RPC-01", "scripted"])
        .code(1)
        .stdout;
    let again = report.lines().find_map(|line| line.trim().strip_prefix("again: attache ")).unwrap();
    assert!(again.ends_with("--deadline 20 scripted") && again.contains("--only FS-02"), "{again}");
    let words: Vec<&str> = again.split(' ').collect();
    let report = world.run(&words).code(1).stdout;
    assert!(report.contains("FS-02 MUST NOT\n") && !report.contains("RPC-01"), "{report}");
}

/// The script of the GitHub action, run as a runner runs it.
#[test]
fn the_action_checks_and_keeps_its_reports() {
    let action = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../action.yml")).unwrap();
    let (_, check) = action.split_once("- name: Check\n").unwrap();
    let (_, script) = check.split_once("run: |\n").unwrap();
    let script: String = script
        .lines()
        .map_while(|line| line.strip_prefix("        "))
        .flat_map(|line| [line, "\n"])
        .collect();
    let world = World::new();
    let (good, rude) = (world.write("good.script", GOOD), world.write("rude.script", RUDE));
    let path = std::env::join_paths(
        std::iter::once(std::path::Path::new(env!("CARGO_BIN_EXE_attache")).parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let run = |script_of_agent: &std::path::Path, baseline: &str| {
        let like = world.command(&[]);
        let mut command = std::process::Command::new("bash");
        command
            .args(["-eo", "pipefail", "-c", &script])
            .current_dir(like.get_current_dir().unwrap())
            .envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("PATH", path.as_ref().unwrap())
            .env("ACP_COMMAND", format!("{:?} {script_of_agent:?}", test_agent()))
            .env("ACP_ROLE", "agent")
            .env("ACP_OPTIONS", "--scenario baseline  --scenario bare-client")
            .env("ACP_BASELINE", baseline)
            .env("ACP_REPORTS", "the reports")
            .env("GITHUB_STEP_SUMMARY", world.dir.join("summary.md"));
        command.output().unwrap().status.code()
    };
    assert_eq!(run(&good, ""), Some(0));
    assert!(world.read("summary.md").contains("\nnothing broken, "), "{}", world.read("summary.md"));
    assert!(world.read("the reports/badge.svg").contains("ACP agent v1: nothing broken, "));
    assert_eq!(run(&rude, ""), Some(1));
    assert!(world.read("the reports/badge.svg").contains("broken</title>"));
    assert!(world.read("the reports/check.xml").contains("FS-02"));
    let (agent, rude_script) = (test_agent(), rude.to_str().unwrap());
    let scenarios = ["check", "agent", "--scenario", "baseline", "--scenario", "bare-client"];
    let known = ["--report", "baseline=known.txt", "--", agent.to_str().unwrap(), rude_script];
    world.run(&[&scenarios[..], &known].concat()).code(1);
    assert_eq!(run(&rude, "known.txt"), Some(0));
}

#[test]
fn an_interrupted_run_reports_what_was_seen() {
    let world = World::new();
    let script = world.write("good.script", GOOD);
    let program = test_agent();
    let (first, second) = (world.dir.join("first"), world.dir.join("second"));
    // The agent of the first scenario plays its part, that of the second says nothing.
    let wrapper = format!(
        "if [ -e {first:?} ]; then touch {second:?}; exec sleep 1000; fi\ntouch {first:?}\nexec {program:?} {script:?}\n"
    );
    let wrapper = world.write("agent.sh", &wrapper);
    let scenarios = ["--scenario", "baseline", "--scenario", "version-1"];
    let command = ["--deadline", "600", "--", "sh", wrapper.to_str().unwrap()];
    let run = world.start(&[&["check", "agent", "-j", "1"][..], &scenarios, &command].concat());
    eventually("the second scenario", || second.exists());
    run.signal("INT");
    let run = run.end().code(130);
    assert!(run.stdout.contains("interrupted, 1 more scenarios to run: nothing broken"), "{}", run.stdout);
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

/// Programs that are no agents: each is recognised soon, and none is left behind.
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
    // A path is one from here, although each scenario has a directory of its own.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_attache"), world.dir.join("client")).unwrap();
    let exec = ["--", "./client", "--agent", "{agent}", "--approve-all", "exec", "{prompt}"];
    let args =
        ["check", "client", "--scenario", "first-words", "--scenario", "terminal-run", "--format", "json"];
    let run = world.run(&[&args[..], &exec].concat());
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["conclusion"], "nothing broken", "{}", run.stdout);
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
    assert!(text.contains("nothing broken"), "{text}");
    world.write("bad.jsonl", &format!("{head}{ask}{}{answer}", line("agent", "starting...")));
    let run = world.run(&["check", "trace", "bad.jsonl"]).code(1);
    assert!(run.stdout.contains("STDIO-08"), "{}", run.stdout);
    world.run(&["check", "trace", "bad.jsonl", "--party", "client"]).ok();
    world.write("none.jsonl", "{}\n");
    let run = world.run(&["check", "trace", "none.jsonl"]).code(2);
    assert!(run.stderr.contains("not a recording"), "{}", run.stderr);
}
