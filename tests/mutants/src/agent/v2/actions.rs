//! The actions of a turn in version 2.

use super::turn::{Cancelled, Context, Turn};
use crate::agent::actions::files::Directories;
use crate::agent::actions::{ask as elicit, extra, plan, show};
use crate::agent::intent::Intent;
use crate::agent::wire::Refusal;
use attache_conn::CancelToken;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How a turn ends: well, with an error, or cancelled.
type End = Result<Result<(), Refusal>, Cancelled>;

pub(super) async fn perform(turn: &Turn, intent: Intent) -> End {
    match intent {
        // INIT-16 broken: fails without the client's capability.
        Intent::Say(_) if turn.agent.is("INIT-16") && !turn.client_has("elicitation") => {
            return Ok(Err(Refusal::new(-32603, "Internal error")));
        }
        Intent::Say(text) => {
            if turn.agent.is("EXT-05") {
                turn.agent.notify("mutants/said", json!({})).await;
            }
            turn.say(&text).await;
        }
        Intent::Think => {
            for number in 0..500 {
                turn.say(&number.to_string()).await;
                turn.wait(tokio::time::sleep(Duration::from_millis(100))).await?;
            }
        }
        Intent::Ask => ask(turn).await?,
        Intent::Read(path) => read(turn, &path).await,
        Intent::Write { path, .. } => write(turn, &path).await,
        Intent::Run(words) if words.first().is_some_and(|word| word == "sleep") => long(turn).await?,
        Intent::Run(words) => run(turn, &words.join(" ")).await,
        Intent::Background => background(turn).await,
        Intent::Plan => {
            // EXT-10: under this name nothing but the context of a trace.
            let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
            let parent = if turn.agent.is("EXT-10") { "the plan before" } else { parent };
            let meta = json!({ "traceparent": parent });
            for (at, step) in plan::steps().iter().enumerate() {
                let entries = plan::entries(&turn.agent, at, step);
                let plan = json!({ "type": "items", "planId": "plan-1", "entries": entries });
                turn.tell(json!({ "sessionUpdate": "plan_update", "plan": plan, "_meta": meta })).await;
            }
        }
        // ELIC-03 broken: fails without the client's capability.
        Intent::Form if turn.agent.is("ELIC-03") && !turn.client_has("elicitation.form") => {
            return Ok(Err(Refusal::new(-32603, "Internal error")));
        }
        Intent::Form => elicit::form(turn).await?,
        Intent::Visit => elicit::visit(turn).await?,
        Intent::Secret => elicit::secret(turn).await?,
        Intent::Notice => return Ok(extra::notice(turn).await),
        Intent::Compact => extra::compact(turn).await,
        Intent::Subagent => extra::delegate(turn).await,
        Intent::Mcp => extra::mcp(turn).await?,
        Intent::Show => show::everything(turn).await,
        Intent::Title => extra::title(turn).await,
        Intent::Option => extra::option(turn).await,
        Intent::Fail => return Ok(Err(Refusal::new(-32603, "Internal error"))),
        _ => turn.say("That is of version 1").await,
    }
    Ok(Ok(()))
}

/// Reads a file of the session's directories.
async fn read(turn: &Turn, path: &str) {
    let agent = &turn.agent;
    let kind = if agent.is("V2-22") { "dance" } else { "read" };
    let directories = Directories { agent, cwd: &turn.cwd, roots: &turn.roots };
    let place = directories.resolve(path);
    // ROOT-05: lines count from 1.
    let line = u64::from(!agent.is("ROOT-05"));
    let locations = json!([{ "path": place, "line": line }]);
    let tool = turn.tool(kind, &format!("Read {path}"), json!({ "locations": locations })).await;
    if !directories.contain(&place) {
        turn.tool_end(&tool, "failed").await;
        return turn.say("That is not mine to read").await;
    }
    let Ok(text) = std::fs::read_to_string(&place) else {
        turn.tool_end(&tool, "failed").await;
        return turn.say("There is no such file").await;
    };
    let first = text.lines().next().unwrap_or_default();
    // TOOL-14: an item of its type is whole.
    let content = match agent.is("TOOL-14") {
        true => json!({ "type": "content" }),
        false => json!({ "type": "content", "content": { "type": "text", "text": first } }),
    };
    turn.tell(json!({ "sessionUpdate": "tool_call_content_chunk", "toolCallId": tool, "content": content }))
        .await;
    turn.tool_end(&tool, "completed").await;
    turn.say(first).await;
}

/// Deletes a file once that is allowed.
async fn ask(turn: &Turn) -> Result<(), Cancelled> {
    let agent = &turn.agent;
    let tool = turn.tool("delete", "Delete old.txt", json!({ "status": "pending" })).await;
    if !agent.is("V2-13") {
        turn.state("requires_action", json!({})).await;
    }
    let options = [("yes", "Allow", "allow_once"), ("no", "Reject", "reject_once")];
    let params = json!({
        "sessionId": turn.session,
        "title": "Delete old.txt?",
        "subject": { "type": "tool_call", "toolCall": { "toolCallId": tool } },
        "options": options.map(|(id, name, kind)| json!({ "optionId": id, "name": name, "kind": kind })),
    });
    // PERM-13 broken: acts first and asks then.
    if agent.is("PERM-13/file") {
        std::fs::remove_file(Path::new(&turn.cwd).join("old.txt")).ok();
    }
    // V2-46: a cancelled turn does not wait for the answer.
    let patient = agent.is("V2-46");
    let (id, answer) = agent.ask_id("session/request_permission", params).await;
    if agent.is("PERM-13") {
        turn.tool_end(&tool, "completed").await;
    }
    let waits = async {
        match patient {
            true => {
                let answer = answer.await;
                let told = agent.state().session_2(&turn.session).is_some_and(|kept| kept.told_to_stop);
                if told || !turn.cancel.is_cancelled() { Ok(answer) } else { Err(Cancelled) }
            }
            false => turn.wait(answer).await,
        }
    };
    // Closing ends the work of the patient one too.
    let closed = async {
        loop {
            let told = agent.state().session_2(&turn.session).is_some_and(|kept| kept.told_to_stop);
            if turn.cancel.is_cancelled() && !told {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let answer = tokio::select! {
        biased;
        answer = waits => answer,
        () = closed => Err(Cancelled),
    };
    let Ok(answer) = answer else {
        agent.notify("$/cancel_request", json!({ "requestId": id })).await;
        turn.tool_end(&tool, "cancelled").await;
        return Err(Cancelled);
    };
    if answer.as_ref().is_err_and(|error| error["code"] == -31_999) && agent.is("RPC-16") {
        agent.die();
    }
    turn.state("running", json!({})).await;
    let outcome = answer.map(|answer| answer["outcome"].clone()).unwrap_or_default();
    let allowed = outcome["outcome"] == "selected" && outcome["optionId"] == "yes";
    // V2-23: nothing else allows.
    let odd = outcome["outcome"] == "_attache" || outcome["optionId"] == "attache-never-offered";
    if allowed || (agent.is("V2-23") && odd) {
        std::fs::remove_file(Path::new(&turn.cwd).join("old.txt")).ok();
        turn.tool_end(&tool, "completed").await;
    } else {
        turn.tool_end(&tool, "failed").await;
    }
    Ok(())
}

/// V2-33: a change with its patch.
async fn write(turn: &Turn, path: &str) {
    let path = Path::new(&turn.cwd).join(path).to_string_lossy().into_owned();
    let tool = turn.tool("edit", &format!("Edit {path}"), json!({})).await;
    let (old, new) = match turn.agent.is("V2-33/patch") {
        true => (format!("a{path}"), format!("b{path}")),
        false => (path.clone(), path.clone()),
    };
    let patch = format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-old\n+done\n");
    let listed = if turn.agent.is("V2-33") { path.trim_start_matches('/').to_owned() } else { path };
    let patch = json!({ "format": "git_patch", "text": patch });
    let mut diff = json!({ "type": "diff", "changes": [{ "operation": "modify", "path": listed }] });
    if !turn.agent.is("V2-33") {
        diff["patch"] = patch;
    }
    turn.tell(json!({ "sessionUpdate": "tool_call_update", "toolCallId": tool, "content": [diff] })).await;
    turn.tool_end(&tool, "completed").await;
}

/// V2-32: a terminal whose bytes are base64.
async fn run(turn: &Turn, command: &str) {
    let terminal = format!("term-{}", turn.count());
    turn.tell(json!({
        "sessionUpdate": "terminal_update", "terminalId": terminal, "command": command, "cwd": turn.cwd,
    }))
    .await;
    let content = json!([{ "type": "terminal", "terminalId": terminal }]);
    let tool = turn.tool("execute", command, json!({ "content": content })).await;
    // "attache\n"
    let data = if turn.agent.is("V2-32") { "attache\n" } else { "YXR0YWNoZQo=" };
    turn.tell(json!({ "sessionUpdate": "terminal_output_chunk", "terminalId": terminal, "data": data }))
        .await;
    let exit = json!({ "exitCode": 0 });
    turn.tell(json!({ "sessionUpdate": "terminal_update", "terminalId": terminal, "exitStatus": exit }))
        .await;
    turn.tool_end(&tool, "completed").await;
}

/// A tool call that lasts until it is cancelled.
async fn long(turn: &Turn) -> Result<(), Cancelled> {
    let cancel = CancelToken::new();
    let tool = turn.tool("execute", "sleep 600", json!({ "capabilities": { "cancel": {} } })).await;
    let keep = |token: Option<CancelToken>| {
        if let Some(kept) = turn.agent.state().session_2(&turn.session) {
            match token {
                Some(token) => kept.tools.insert(tool.clone(), token),
                None => kept.tools.remove(&tool),
            };
        }
    };
    keep(Some(cancel.clone()));
    let ended = turn.wait(cancel.cancelled()).await;
    keep(None);
    turn.tool_end(&tool, "cancelled").await;
    ended
}

/// V2-36: a terminal that goes on, announced before it is listed.
async fn background(turn: &Turn) {
    let terminal = format!("term-{}", turn.count());
    if !turn.agent.is("V2-36/announce") {
        turn.tell(
            json!({ "sessionUpdate": "terminal_update", "terminalId": terminal, "command": "sleep 600" }),
        )
        .await;
    }
    if let Some(kept) = turn.agent.state().session_2(&turn.session) {
        kept.background.push(terminal);
    }
}
