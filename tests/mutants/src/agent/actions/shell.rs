//! Running commands.

use crate::agent::turn::{Act, Cancelled, Context, Turn};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long the client may take to put a terminal away.
const TIDY: Duration = Duration::from_secs(5);

pub(super) async fn run(turn: &Turn, words: &[String]) -> Act {
    let command = words.join(" ");
    let title = format!("Run `{command}`");
    let tool = turn.tool("execute", &title, json!({ "rawInput": { "command": command } })).await;
    if turn.agent.is("PERM-13/run") && is_short(words) {
        in_terminal(turn, &tool, words).await?;
    }
    if turn.agent.is("PERM-13/shell") && is_short(words) {
        in_own_shell(turn, words);
    }
    let ended = match turn.permitted(&tool, &title).await {
        Ok(true) => in_terminal(turn, &tool, words).await,
        Ok(false) => {
            if turn.agent.is("PERM-15/run") {
                in_terminal(turn, &tool, words).await?;
            }
            if turn.agent.is("PERM-15/shell") {
                in_own_shell(turn, words);
            }
            turn.tool_end(&tool, false, "not allowed").await;
            return Ok(());
        }
        Err(cancelled) => Err(cancelled),
    };
    match ended {
        Ok(Some(output)) => {
            turn.tool_end(&tool, true, &output).await;
            turn.say(output.trim()).await;
            Ok(())
        }
        Ok(None) => {
            turn.tool_end(&tool, false, "the command could not be run").await;
            Ok(())
        }
        Err(cancelled) => {
            turn.tool_end(&tool, false, "cancelled").await;
            Err(cancelled)
        }
    }
}

/// Whether the command ends by itself.
fn is_short(words: &[String]) -> bool {
    words.first().is_some_and(|word| word != "sleep")
}

/// Runs the command without the client. There is nothing on the wire to see of it.
fn in_own_shell(turn: &Turn, words: &[String]) {
    let Some((program, args)) = words.split_first() else { return };
    Command::new(program).args(args).current_dir(&turn.cwd).stdout(Stdio::null()).status().ok();
}

/// TERM-01, TERM-02: only in a terminal that the client offers.
async fn in_terminal(turn: &Turn, tool: &str, words: &[String]) -> Result<Option<String>, Cancelled> {
    let agent = &turn.agent;
    if !(turn.client_has("terminal") || agent.is("TERM-02")) {
        return Ok(None);
    }
    let params = json!({
        "sessionId": turn.session, "command": words.first(), "args": words.get(1..), "cwd": turn.cwd,
        "env": [{ "name": "ATTACHE", "value": "1" }], "outputByteLimit": 4096,
    });
    let Ok(made) = turn.ask("terminal/create", params).await? else {
        return Ok(None);
    };
    let terminal = made["terminalId"].clone();
    let content = json!([{ "type": "terminal", "terminalId": terminal }]);
    // TOOL-16: shown before its release; later updates may repeat it.
    let shown = if agent.is("TOOL-16/released") { json!([]) } else { content.clone() };
    turn.tool_update(tool, json!({ "status": "in_progress", "content": shown })).await;
    let which = json!({ "sessionId": turn.session, "terminalId": terminal });
    if agent.is("TERM-05/left") || (agent.is("TERM-22") && !is_short(words)) {
        return Ok(Some(String::new()));
    }
    let polls = agent.is("TERM-05/polled") && is_short(words);
    let ended = match polls {
        true => Ok(Ok(Value::Null)),
        false => turn.ask("terminal/wait_for_exit", which.clone()).await,
    };
    // CANCEL-04: a cancelled turn leaves no command behind.
    if ended.is_err() && agent.is("CANCEL-04/terminal") {
        return Err(Cancelled);
    }
    if ended.is_err() {
        tidy(turn, "terminal/kill", &which).await;
    }
    let output = tidy(turn, "terminal/output", &which).await;
    // TERM-05: put away, however it ended.
    if !(agent.is("TERM-05") || polls || (ended.is_err() && agent.is("TERM-05/killed"))) {
        tidy(turn, "terminal/release", &which).await;
        turn.tool_update(tool, json!({ "content": content })).await;
    }
    ended?.ok();
    Ok(Some(output["output"].as_str().unwrap_or_default().to_owned()))
}

/// Cleanup that also runs when the turn is cancelled.
async fn tidy(turn: &Turn, method: &str, params: &Value) -> Value {
    let asked = turn.agent.ask(method, params.clone());
    tokio::time::timeout(TIDY, asked).await.ok().and_then(Result::ok).unwrap_or_default()
}
