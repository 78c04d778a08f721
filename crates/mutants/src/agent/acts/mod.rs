//! What the agent does in a turn.

mod ask;
mod extra;
mod files;
mod plan;
mod shell;
mod show;

use super::turn::{Cancelled, Turn};
use super::wire::Refusal;
use super::wish::Wish;
use serde_json::json;
use std::time::Duration;

/// How long the agent thinks if nobody stops it.
const LONG: Duration = Duration::from_secs(5);

/// Does what is wished; gives the stop reason back, or the error that the prompt is answered with.
pub(crate) async fn perform(turn: &Turn, wish: Wish) -> Result<Result<&'static str, Refusal>, Cancelled> {
    // A cancel may have come before anything was done.
    turn.wait(tokio::task::yield_now()).await?;
    if turn.agent.is("EXT-05") {
        turn.agent.notify("mutants/hello", json!({})).await;
    }
    match wish {
        // PROMPT-20: what broke within is an error, not a stop reason.
        Wish::Fail if turn.agent.is("PROMPT-20") => return Ok(Ok("max_tokens")),
        Wish::Fail => return Ok(Err(Refusal::new(-32603, "Internal error"))),
        // INIT-16, ELIC-03 broken: without what the client lacks nothing works.
        Wish::Say(_) if turn.agent.is("INIT-16") && !turn.client_has("terminal") => {
            return Ok(Err(Refusal::new(-32603, "Internal error")));
        }
        Wish::Form if turn.agent.is("ELIC-03") && !turn.client_has("elicitation.form") => {
            return Ok(Err(Refusal::new(-32603, "Internal error")));
        }
        Wish::Say(text) => show::say(turn, &text).await?,
        Wish::Read(path) => files::read(turn, &path).await?,
        Wish::Write { path, text } => files::write(turn, &path, &text).await?,
        Wish::Compare(paths) => files::compare(turn, &paths).await?,
        Wish::Run(words) => shell::run(turn, &words).await?,
        Wish::Ask => ask::permission(turn).await?,
        Wish::Think => think(turn).await?,
        Wish::Plan => plan::plan(turn).await?,
        Wish::Carry(paths) => plan::carry(turn, &paths).await?,
        Wish::Show => show::everything(turn).await,
        Wish::Form => ask::form(turn).await?,
        Wish::Visit => ask::visit(turn).await?,
        Wish::Secret => ask::secret(turn).await?,
        Wish::Notice => return Ok(extra::notice(turn).await.map(|()| "end_turn")),
        Wish::Compact => extra::compact(turn).await,
        Wish::Subagent => extra::delegate(turn).await,
        Wish::Title => extra::title(turn).await,
        Wish::Mode => extra::mode(turn).await?,
        Wish::Option => extra::option(turn).await,
        Wish::Mcp => extra::mcp(turn).await?,
    }
    Ok(Ok("end_turn"))
}

/// PROMPT-10: a long turn is heard of while it lasts.
async fn think(turn: &Turn) -> Result<(), Cancelled> {
    if !turn.agent.is("PROMPT-10") {
        let thought = json!({ "type": "text", "text": "This will take a while" });
        turn.tell(
            json!({ "sessionUpdate": "agent_thought_chunk", "content": thought, "messageId": "thought" }),
        )
        .await;
    }
    let waited = turn.wait(tokio::time::sleep(LONG)).await;
    // CANCEL-05: one who does not hear goes on to the end.
    if waited.is_ok() {
        turn.say("That took a while").await;
    }
    waited
}
