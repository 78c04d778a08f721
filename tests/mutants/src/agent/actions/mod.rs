//! The actions of a turn.

pub(crate) mod ask;
pub(crate) mod extra;
pub(crate) mod files;
pub(crate) mod plan;
mod shell;
pub(crate) mod show;

use super::intent::Intent;
use super::turn::{Cancelled, Context, Turn};
use super::wire::Refusal;
use serde_json::json;
use std::time::Duration;

/// The duration of a long turn.
const LONG: Duration = Duration::from_secs(5);

/// Performs the intent and returns the stop reason or the error of the prompt.
pub(crate) async fn perform(turn: &Turn, intent: Intent) -> Result<Result<&'static str, Refusal>, Cancelled> {
    // A cancel may have come before anything was done.
    turn.wait(tokio::task::yield_now()).await?;
    if turn.agent.is("EXT-05") {
        turn.agent.notify("mutants/hello", json!({})).await;
    }
    match intent {
        // PROMPT-20: an internal failure is an error, not a stop reason.
        Intent::Fail if turn.agent.is("PROMPT-20") => return Ok(Ok("max_tokens")),
        Intent::Fail => return Ok(Err(Refusal::new(-32603, "Internal error"))),
        // INIT-16, ELIC-03 broken: fails without the client's capability.
        Intent::Say(_) if turn.agent.is("INIT-16") && !turn.client_has("terminal") => {
            return Ok(Err(Refusal::new(-32603, "Internal error")));
        }
        Intent::Form if turn.agent.is("ELIC-03") && !turn.client_has("elicitation.form") => {
            return Ok(Err(Refusal::new(-32603, "Internal error")));
        }
        Intent::Background => turn.say("That is of version 2").await,
        Intent::Say(text) => show::say(turn, &text).await?,
        Intent::Read(path) => files::read(turn, &path).await?,
        Intent::Write { path, text } => files::write(turn, &path, &text).await?,
        Intent::Compare(paths) => files::compare(turn, &paths).await?,
        Intent::Run(words) => shell::run(turn, &words).await?,
        Intent::Ask => ask::permission(turn).await?,
        Intent::Think => think(turn).await?,
        Intent::Plan => plan::plan(turn).await?,
        Intent::Carry(paths) => plan::carry(turn, &paths).await?,
        Intent::Show => show::everything(turn).await,
        Intent::Form => ask::form(turn).await?,
        Intent::Visit => ask::visit(turn).await?,
        Intent::Secret => ask::secret(turn).await?,
        Intent::Notice => return Ok(extra::notice(turn).await.map(|()| "end_turn")),
        Intent::Compact => extra::compact(turn).await,
        Intent::Subagent => extra::delegate(turn).await,
        Intent::Title => extra::title(turn).await,
        Intent::Mode => extra::mode(turn).await?,
        Intent::Option => extra::option(turn).await,
        Intent::Mcp => extra::mcp(turn).await?,
    }
    Ok(Ok("end_turn"))
}

/// PROMPT-10: a long turn reports progress.
async fn think(turn: &Turn) -> Result<(), Cancelled> {
    if !turn.agent.is("PROMPT-10") {
        let thought = json!({ "type": "text", "text": "This will take a while" });
        turn.tell(
            json!({ "sessionUpdate": "agent_thought_chunk", "content": thought, "messageId": "thought" }),
        )
        .await;
    }
    let waited = turn.wait(tokio::time::sleep(LONG)).await;
    // CANCEL-05 broken: the cancel is ignored.
    if waited.is_ok() {
        turn.say("That took a while").await;
    }
    waited
}
