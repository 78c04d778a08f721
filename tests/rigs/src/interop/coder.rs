//! Our coding agent, `attache agent`, with clients that are not ours: those of the official SDKs,
//! npm's acpx, and neovim with CodeCompanion.
//!
//! Its model is a script, `tests/interop/coder.script`, which answers the prompts of the usual
//! scenarios by means of the agent's own tools. What the clients must then observe is in
//! `coder.json`: the same scenarios, as far as they are not about what only the agent for the
//! scenarios does.

mod acpx;
mod neovim;
mod played;

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::pair::{self, Ended};
use super::report::Report;
use super::shipped::{self, Run};
use super::tap::Log;
use super::{Program, home, install, version_2};

const NAME: &str = "attache_agent";

/// Runs it with the clients of the wanted SDKs, with acpx, and with neovim.
pub(super) fn run(only: &[&'static str], cache: &Path, report: &mut Report) -> Result<(), String> {
    let agent = agent(cache)?;
    let scenarios = pair::scenarios("coder.json")?;
    let script = home().join("coder.script").display().to_string();
    let tidy = |line: String| tidy(&line, &script, &scenarios);
    for sdk in only {
        let (client, _) = install::official(sdk, cache)?;
        pair::play(&client, &agent, &scenarios, &tidy, cache, report)?;
    }
    if only.contains(&"ts") {
        version_2::coder(&agent.command, cache, report)?;
    }
    if only.contains(&"rust") {
        rust_example(&agent, cache, report)?;
    }
    if only.contains(&"py") {
        python_example(&agent, cache, report)?;
    }
    acpx::run(&agent.command, cache, report)?;
    neovim::run(&agent.command, cache, report)
}

/// Runs it with neovim alone.
pub(super) fn neovim(cache: &Path, report: &mut Report) -> Result<(), String> {
    neovim::run(&agent(cache)?.command, cache, report)
}

fn agent(cache: &Path) -> Result<Program, String> {
    println!("build   ours: the program, for its agent");
    Ok(Program { name: NAME, command: command(&install::program()?, cache)? })
}

/// The agent with a home of its own, and the script for its model.
fn command(program: &str, cache: &Path) -> Result<Vec<String>, String> {
    let place = cache.join("runs").join(format!("{NAME}-home"));
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    let place = format!("ATTACHE_HOME={}", place.display());
    let model = format!("script:{}", home().join("coder.script").display());
    Ok(["env", &place, program, "agent", "--model", &model].map(str::to_owned).to_vec())
}

/// The client that approves everything and says one thing.
fn rust_example(agent: &Program, cache: &Path, report: &mut Report) -> Result<(), String> {
    let [_, yolo] = install::rust_examples(cache, ["simple_agent", "yolo_one_shot_client"])?;
    let client = "rust yolo_one_shot";
    let edited = cache.join("runs").join(format!("rust_yolo_one_shot-{NAME}")).join("work/draft.txt");
    let judge = |ended: &Ended, log: &Log| {
        let text = fs::read_to_string(&edited).unwrap_or_default();
        vec![
            ("the file is edited", text == "one\nTWO\n"),
            ("the client shows the words", ended.stdout.join("\n").contains("applied")),
            ("the turn ends on the wire", shipped::stop(log) == "end_turn"),
            ("the client ends well", ended.code == Some(0)),
        ]
    };
    let command = |agent: &[String]| {
        vec![yolo.clone(), "--command".into(), shipped::quoted(agent), "edit draft.txt".into()]
    };
    let run = Run {
        is_v1: true,
        client,
        agent: NAME,
        command: &command,
        agent_command: &agent.command,
        input: "",
        judge: &judge,
    };
    shipped::play(cache, report, &run)
}

/// The client that provides nothing and cannot be asked.
fn python_example(agent: &Program, cache: &Path, report: &mut Report) -> Result<(), String> {
    let (_, peer) = install::official("py", cache)?;
    let example = install::python_examples(cache)?.join("client.py").display().to_string();
    let judge = |ended: &Ended, log: &Log| {
        let shown = ended.stdout.join("\n");
        vec![
            ("the client shows the answer", shown.contains("| Agent: one")),
            ("the client shows what was read", shown.contains("gamma")),
            ("an edit that nobody can allow is not made", shown.contains("| Agent: denied")),
            ("the turn ends on the wire", shipped::stop(log) == "end_turn"),
            ("the client ends well", ended.code == Some(0)),
        ]
    };
    let command = |agent: &[String]| [&[peer.command[0].clone(), example.clone()], agent].concat();
    let run = Run {
        is_v1: true,
        client: "py client.py",
        agent: NAME,
        command: &command,
        agent_command: &agent.command,
        input: "say one\nread lines.txt\nedit draft.txt\n",
        judge: &judge,
    };
    shipped::play(cache, report, &run)
}

/// What a client observed, without what differs from run to run or from SDK to SDK, and only if it
/// is asked for.
fn tidy(line: &str, script: &str, scenarios: &[Value]) -> Option<String> {
    let Ok(mut seen) = serde_json::from_str::<Map<String, Value>>(line) else { return Some(line.to_owned()) };
    if let Some(check) = seen.get("check").and_then(Value::as_str) {
        let scenario = scenarios.iter().find(|scenario| Some(&scenario["id"]) == seen.get("scenario"))?;
        scenario["expect"].get(check)?;
    }
    if let Some(got) = seen.get_mut("got") {
        simplify(got, script);
    }
    Some(Value::Object(seen).to_string())
}

fn simplify(value: &mut Value, script: &str) {
    match value {
        // Titles have times, and what something cost depends on the length of a path.
        Value::Array(items) => {
            let is_chance = |item: &Value| {
                item.as_str().is_some_and(|line| line.starts_with("info:") || line.starts_with("usage:"))
            };
            items.retain(|item| !is_chance(item));
            items.iter_mut().for_each(|item| simplify(item, script));
        }
        Value::Object(members) => members.values_mut().for_each(|member| simplify(member, script)),
        Value::String(text) => *text = plain(&text.replace(script, "SCRIPT")),
        _ => {}
    }
}

/// A line without the ids of tool calls, and with one word for what is not there.
fn plain(line: &str) -> String {
    let absent = ["undefined", "None", "null", "?"];
    let word = |word: &str| match word {
        _ if word.starts_with("call-") && word.len() == 29 => "ID".to_owned(),
        _ if absent.contains(&word) => "-".to_owned(),
        _ => word.to_owned(),
    };
    // The side that notices the cancel first says why a call has failed.
    let line = line.trim_end_matches(":content(text:cancelled)");
    let words = |text: &str, at: char| text.split(at).map(word).collect::<Vec<_>>().join(&at.to_string());
    words(&words(line, ':'), '|')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chance_is_taken_away() {
        let scenarios = [serde_json::json!({"id": "a", "expect": {"events": []}})];
        let line = r#"{"scenario":"a","check":"events","got":["info:x:undefined","tool_call_update:call-4f2c07d62a12518200000004:None:diff(a|None|b)","text:model=/s"]}"#;
        let tidied: Value =
            serde_json::from_str(&tidy(line, "/s", &scenarios).unwrap_or_default()).unwrap_or_default();
        assert_eq!(tidied["got"][0], "tool_call_update:ID:-:diff(a|-|b)");
        assert_eq!(tidied["got"][1], "text:model=SCRIPT");
        let other = r#"{"scenario":"a","check":"other","got":1}"#;
        assert_eq!(tidy(other, "/s", &scenarios), None);
        let error = r#"{"scenario":"b","error":"timed out"}"#;
        assert!(tidy(error, "/s", &scenarios).is_some_and(|line| line.contains("timed out")));
    }
}
