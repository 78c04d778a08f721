//! Terminals that the client provides. Commands are scripts for `sh`, which every platform with one
//! runs alike.

use std::time::Duration;

use serde_json::{Value, json};

use super::steps::{Turn, answer_to, describe_answer, end, open_turn};
use crate::scenarios::scenario_table;
use crate::{Need, Stage, Step, Stop};

const NEEDS: &[Need] = &[Need::Client("terminal")];

scenario_table! { Client:
    "terminal-run": "a terminal is there at once, shows output, and ends",
        ["TERM-04", "TERM-08", "TERM-09", "TERM-17"] needs NEEDS => run;
    "terminal-cut": "output beyond the limit is cut from its beginning",
        ["TERM-06", "TERM-08"] needs NEEDS => cut;
    "terminal-letters": "the cut leaves whole characters", ["TERM-07", "TERM-19"] needs NEEDS => letters;
    "terminal-kill": "killing ends the command and keeps the terminal",
        ["TERM-10", "TERM-16"] needs NEEDS => kill;
    "terminal-release": "releasing ends the command and the terminal",
        ["TERM-11", "TERM-21"] needs NEEDS => release;
    "terminal-env": "variables, directory and programs that are not there",
        ["TERM-14", "TERM-15", "TERM-18"] needs NEEDS => env;
}

/// Starts a script and gives back the terminal's id.
pub(super) async fn start(stage: &mut Stage, turn: &Turn, script: &str, more: Value) -> Result<String, Stop> {
    let mut params = turn.with(more);
    params["command"] = json!("sh");
    params["args"] = json!(["-c", script]);
    let answer = stage.call("terminal/create", params).await?;
    let id = answer.as_ref().ok().and_then(|result| result["terminalId"].as_str());
    id.map(str::to_owned).ok_or_else(|| {
        Stop::NotExercised(format!(
            "the client starts no terminal: {answer}",
            answer = describe_answer(&answer)
        ))
    })
}

async fn ask(
    stage: &mut Stage,
    turn: &Turn,
    method: &str,
    terminal: &str,
) -> Result<Result<Value, i64>, Stop> {
    let method = format!("terminal/{method}");
    let id = stage.request(&method, turn.with(json!({ "terminalId": terminal }))).await?;
    // How long a command runs is its own business.
    let waits = method == "terminal/wait_for_exit";
    let answer = if waits { answer_to(stage, &id).await? } else { stage.expect(&id).await? };
    Ok(answer.map_err(|error| error.code))
}

fn has_ended(status: &Value) -> bool {
    status["exitCode"].is_u64() || status["signal"].is_string()
}

async fn run(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    // A client that asks its user first answers neither this nor the next.
    let first = start(stage, &turn, "true", json!({})).await?;
    let _ = ask(stage, &turn, "release", &first).await?;
    let terminal = match start(stage, &turn, "echo begun; sleep 600; echo done", json!({})).await {
        Err(Stop::Deadline(_)) => {
            stage.fail("TERM-04", "terminal/create was not answered while the command ran");
            return Err(Stop::Deadline("the answer to terminal/create".to_owned()));
        }
        terminal => terminal?,
    };
    stage.pass("TERM-04");
    let output = ask(stage, &turn, "output", &terminal).await?;
    if let Ok(output) = &output {
        let running = output["exitStatus"].is_null()
            && output["output"].is_string()
            && output["truncated"].is_boolean();
        stage.check("TERM-08", running, format!("while the command runs its output is {output}"));
    }
    still_waits(stage, &turn, &terminal).await?;
    let _ = ask(stage, &turn, "release", &terminal).await?;
    end(stage, &turn).await
}

/// Two waiting requests are answered when the command ends, not before.
// TERM-09, TERM-17
async fn still_waits(stage: &mut Stage, turn: &Turn, terminal: &str) -> Step {
    let params = || turn.with(json!({ "terminalId": terminal }));
    let one = stage.request("terminal/wait_for_exit", params()).await?;
    let two = stage.request("terminal/wait_for_exit", params()).await?;
    let mark = stage.mark();
    stage.quiet(Duration::from_millis(200)).await?;
    let early =
        stage.received(mark).iter().any(|message| message.id() == Some(&one) || message.id() == Some(&two));
    if early {
        stage.fail("TERM-09", "terminal/wait_for_exit was answered while the command ran");
        return Ok(());
    }
    let _ = ask(stage, turn, "kill", terminal).await?;
    for (id, rule) in [(one, "TERM-09"), (two, "TERM-17")] {
        match answer_to(stage, &id).await {
            Ok(Ok(status)) => stage.check(rule, has_ended(&status), format!("the command ended as {status}")),
            Ok(Err(error)) => {
                stage.fail(rule, format!("waiting for the end failed: {} {}", error.code, error.message))
            }
            Err(Stop::Deadline(_)) => stage.fail(rule, "the end of the command was not reported"),
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// Runs a script to its end and returns the result of terminal/output.
async fn output_of(stage: &mut Stage, turn: &Turn, script: &str, more: Value) -> Result<Value, Stop> {
    let terminal = start(stage, turn, script, more).await?;
    let _ = ask(stage, turn, "wait_for_exit", &terminal).await?;
    let output = ask(stage, turn, "output", &terminal).await?;
    let _ = ask(stage, turn, "release", &terminal).await?;
    output.map_err(|code| Stop::NotExercised(format!("terminal/output failed with {code}")))
}

async fn cut(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let output = output_of(stage, &turn, "seq 1 5000", json!({ "outputByteLimit": 1000 })).await?;
    let text = output["output"].as_str().unwrap_or_default();
    let kept = text.trim_end().ends_with("5000") && text.len() <= 1000 && !text.starts_with("1\n");
    stage.check(
        "TERM-06",
        kept,
        format!("of 5000 numbered lines in 1000 bytes the rest is {} bytes: {}", text.len(), ends(text)),
    );
    let said = output["truncated"] == true && has_ended(&output["exitStatus"]);
    stage.check(
        "TERM-08",
        said,
        format!("truncated and exitStatus are {} and {}", output["truncated"], output["exitStatus"]),
    );
    end(stage, &turn).await
}

/// How a long text begins and ends.
fn ends(text: &str) -> String {
    let head: String = text.chars().take(20).collect();
    let tail: String = text.chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{head:?} … {tail:?}")
}

async fn letters(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    // Five letters of two bytes each; the limit falls into the middle of one.
    let script = "printf '\\303\\244\\303\\266\\303\\274\\303\\204\\303\\226'";
    let output = output_of(stage, &turn, script, json!({ "outputByteLimit": 5 })).await?;
    let text = output["output"].as_str().unwrap_or_default();
    let kept = text == "ÄÖ" || (!text.is_empty() && "äöüÄÖ".ends_with(text) && text.len() <= 5);
    // One that keeps the beginning is said so elsewhere (TERM-06).
    if !text.starts_with('ä') {
        stage.check("TERM-07", kept, format!("of äöüÄÖ in 5 bytes {text:?} is left"));
    }
    let output = output_of(stage, &turn, "printf 'a\\377b'", json!({})).await?;
    let text = output["output"].as_str().unwrap_or_default();
    let kept = text.starts_with('a') && text.ends_with('b') && text.contains('\u{FFFD}');
    stage.check("TERM-19", kept, format!("a byte that is no text was shown as {text:?}"));
    end(stage, &turn).await
}

async fn kill(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let terminal = start(stage, &turn, "echo begun; sleep 600", json!({})).await?;
    let killed = ask(stage, &turn, "kill", &terminal).await?;
    let status = ask(stage, &turn, "wait_for_exit", &terminal).await?;
    let output = ask(stage, &turn, "output", &terminal).await?;
    let kept = killed.is_ok() && status.is_ok() && output.is_ok();
    stage.check(
        "TERM-10",
        kept,
        format!(
            "kill, wait_for_exit and output answered {killed}, {status}, {output}",
            killed = describe_answer(&killed),
            status = describe_answer(&status),
            output = describe_answer(&output)
        ),
    );
    if let Ok(status) = &status {
        let kept = status["signal"].is_string() != status["exitCode"].is_u64();
        stage.check("TERM-16", kept, format!("a killed command ended as {status}"));
    }
    let _ = ask(stage, &turn, "release", &terminal).await?;
    end(stage, &turn).await
}

async fn release(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let terminal = start(stage, &turn, "sleep 600", json!({})).await?;
    let released = ask(stage, &turn, "release", &terminal).await?;
    stage.check(
        "TERM-11",
        released.is_ok(),
        format!("terminal/release answered {released}", released = describe_answer(&released)),
    );
    for method in ["output", "wait_for_exit", "kill"] {
        match ask(stage, &turn, method, &terminal).await {
            Ok(answer) => stage.check(
                "TERM-11",
                answer.is_err(),
                format!(
                    "terminal/{method} works after the release: {answer}",
                    answer = describe_answer(&answer)
                ),
            ),
            Err(Stop::Deadline(_)) => {
                stage.fail("TERM-11", format!("terminal/{method} waits on a released terminal"))
            }
            Err(stop) => return Err(stop),
        }
    }
    let again = ask(stage, &turn, "release", &terminal).await?;
    let kept = again.is_ok() || again == Err(-32002);
    stage.check(
        "TERM-21",
        kept,
        format!("a second release answered {again}", again = describe_answer(&again)),
    );
    end(stage, &turn).await
}

async fn env(stage: &mut Stage) -> Step {
    let turn = open_turn(stage).await?;
    let env = json!({ "env": [{ "name": "ATTACHE_WORD", "value": "sesame" }] });
    let output = output_of(stage, &turn, "echo \"$ATTACHE_WORD\"", env).await?;
    let text = output["output"].as_str().unwrap_or_default();
    stage.check("TERM-15", text.trim() == "sesame", format!("a variable that was set shows as {text:?}"));
    let params = turn.with(json!({ "command": "echo", "args": ["a; echo b"] }));
    if let Ok(made) = stage.call("terminal/create", params).await? {
        let terminal = made["terminalId"].as_str().unwrap_or_default().to_owned();
        let _ = ask(stage, &turn, "wait_for_exit", &terminal).await?;
        if let Ok(output) = ask(stage, &turn, "output", &terminal).await? {
            let text = output["output"].as_str().unwrap_or_default();
            stage.check(
                "TERM-14",
                text.trim() == "a; echo b",
                format!("an argument was run by a shell: {text:?}"),
            );
        }
    }
    let params = turn.with(json!({ "command": "/nonexistent/attache-program", "args": [] }));
    let missing = stage.call("terminal/create", params).await?;
    stage.check("TERM-18", missing.is_err(), "a program that is not there got a terminal");
    end(stage, &turn).await
}
