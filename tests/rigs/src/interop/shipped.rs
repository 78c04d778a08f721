//! The example programs that the official SDKs carry, against ours. The npm package carries none.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use super::install;
use super::pair::{self, Ended, short};
use super::report::{Report, Row};
use super::tap::{self, From, Log};
use super::wire;

/// What their clients are asked to say; ours has words of its own.
const WORDS: &str = "good morning";

/// What was looked at, and whether it was so.
pub(super) type Checks = Vec<(&'static str, bool)>;

/// One run: who plays what, and what must have been exchanged.
pub(super) struct Run<'a> {
    pub(super) client: &'a str,
    pub(super) agent: &'a str,
    /// The client's command, given the agent's.
    pub(super) command: &'a dyn Fn(&[String]) -> Vec<String>,
    pub(super) agent_command: &'a [String],
    pub(super) input: &'a str,
    pub(super) judge: &'a dyn Fn(&Ended, &Log) -> Checks,
    /// Whether the messages are those of version 1, whose order is checked.
    pub(super) is_v1: bool,
}

/// Runs the examples of the wanted SDKs.
pub(super) fn run(only: &[&str], cache: &Path, report: &mut Report) -> Result<(), String> {
    println!("build   ours: the examples that users see first");
    let [echo_agent, client] = install::our_examples(["echo_agent", "client"])?;
    let echo_agent = &[echo_agent];
    let one_shot = |agent: &[String]| [std::slice::from_ref(&client), agent].concat();
    if only.contains(&"rust") {
        let [simple_agent, yolo] = install::rust_examples(cache, ["simple_agent", "yolo_one_shot_client"])?;
        play(
            cache,
            report,
            &Run {
                client: "rust yolo_one_shot",
                agent: "ours echo_agent",
                command: &|agent| {
                    [&[yolo.clone(), "--command".into(), quoted(agent)], &[WORDS.to_owned()][..]].concat()
                },
                agent_command: echo_agent,
                input: "",
                is_v1: true,
                judge: &|ended, log| {
                    vec![
                        ("the client shows the words", shown(ended, log)),
                        (
                            "the client sees the end of the turn",
                            ended.stderr.contains("Stop reason: EndTurn"),
                        ),
                        ("the turn ends on the wire", stop(log) == "end_turn"),
                        ("the client ends well", ended.code == Some(0)),
                    ]
                },
            },
        )?;
        play(
            cache,
            report,
            &Run {
                client: "ours client",
                agent: "rust simple_agent",
                command: &one_shot,
                agent_command: &[simple_agent],
                input: "",
                is_v1: true,
                // This agent knows `initialize` and nothing else.
                judge: &|ended, log| {
                    let refused =
                        answer(log, "session/new").is_some_and(|answer| answer["error"]["code"] == -32601);
                    vec![
                        ("version 1 is agreed on", version(log) == 1),
                        ("session/new is refused with -32601", refused),
                        ("the client says so and ends", ended.code.is_some_and(|code| code != 0)),
                    ]
                },
            },
        )?;
    }
    if only.contains(&"py") {
        let (_, agent) = install::official("py", cache)?;
        let python = agent.command[0].clone();
        let examples = install::python_examples(cache)?;
        let script = |name: &str| vec![python.clone(), examples.join(name).to_string_lossy().into_owned()];
        for (name, file) in [("py echo_agent.py", "echo_agent.py"), ("py agent.py", "agent.py")] {
            play(
                cache,
                report,
                &Run {
                    client: "ours client",
                    agent: name,
                    command: &one_shot,
                    agent_command: &script(file),
                    input: "",
                    is_v1: true,
                    judge: &|ended, log| {
                        vec![
                            ("the client shows the words", shown(ended, log)),
                            ("the turn ends on the wire", stop(log) == "end_turn"),
                            ("the client ends well", ended.code == Some(0)),
                        ]
                    },
                },
            )?;
        }
        play(
            cache,
            report,
            &Run {
                client: "py client.py",
                agent: "ours echo_agent",
                command: &|agent| [&*script("client.py"), agent].concat(),
                agent_command: echo_agent,
                input: &format!("{WORDS}\n"),
                is_v1: true,
                judge: &|ended, log| {
                    let shown = format!("| Agent: {WORDS}");
                    vec![
                        ("the client shows the words", ended.stdout.iter().any(|line| line.contains(&shown))),
                        ("the turn ends on the wire", stop(log) == "end_turn"),
                        ("the client ends well", ended.code == Some(0)),
                    ]
                },
            },
        )?;
    }
    Ok(())
}

/// Runs one, and looks at what was exchanged.
pub(super) fn play(cache: &Path, report: &mut Report, run: &Run<'_>) -> Result<(), String> {
    Report::start(run.client, run.agent);
    let started = Instant::now();
    let dir = pair::workspace(cache, &format!("{}-{}", run.client, run.agent).replace([' ', '/'], "_"))?;
    let log = dir.join("wire.log");
    let command = (run.command)(&tap::command(&log, run.agent_command)?);
    let ended = pair::finish(&command, &dir.join("work"), run.input)?;
    let exchange = tap::read(&log)?;
    let checks = (run.judge)(&ended, &exchange);
    let good = checks.iter().filter(|(_, held)| *held).count();
    let mut bad: Vec<String> =
        checks.iter().filter(|(_, held)| !held).map(|(what, _)| format!("not so: {what}")).collect();
    if run.is_v1 {
        bad.extend(wire::check(&exchange));
    }
    if !bad.is_empty() {
        bad.push(format!("the client ended with {:?}; stderr: {}", ended.code, short(ended.stderr.trim())));
    }
    bad.extend(ended.problems);
    report.add(Row {
        client: run.client.to_owned(),
        agent: run.agent.to_owned(),
        good,
        messages: exchange.lines.len(),
        bad,
        traces: dir,
        left_out: Vec::new(),
        took: started.elapsed(),
    });
    Ok(())
}

/// The agent's answer to the first request of that method.
fn answer(log: &Log, method: &str) -> Option<Value> {
    let message = |line: &String| serde_json::from_str::<Value>(line).ok();
    let of = |wanted: From| log.lines.iter().filter(move |(from, _)| *from == wanted).map(|(_, line)| line);
    let request = of(From::Client).filter_map(message).find(|request| request["method"] == method)?;
    of(From::Agent)
        .filter_map(message)
        .find(|answer| answer.get("method").is_none() && answer["id"] == request["id"])
}

/// Whether the client showed the echo of its prompt.
fn shown(ended: &Ended, log: &Log) -> bool {
    let prompt = log.lines.iter().filter(|(from, _)| *from == From::Client).find_map(|(_, line)| {
        let message = serde_json::from_str::<Value>(line).ok()?;
        Some(message["params"]["prompt"][0]["text"].as_str()?.to_owned())
    });
    prompt.is_some_and(|words| !words.is_empty() && ended.stdout.join("\n").contains(&words))
}

/// How the first turn ended.
pub(super) fn stop(log: &Log) -> String {
    let answer = answer(log, "session/prompt").unwrap_or_default();
    answer["result"]["stopReason"].as_str().unwrap_or_default().to_owned()
}

fn version(log: &Log) -> i64 {
    answer(log, "initialize").unwrap_or_default()["result"]["protocolVersion"].as_i64().unwrap_or(0)
}

/// A command as one shell word each, for programs that take it as one argument.
pub(crate) fn quoted(command: &[String]) -> String {
    let words: Vec<String> =
        command.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    words.join(" ")
}
