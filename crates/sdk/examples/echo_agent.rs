//! The smallest agent: it repeats the prompt.

use attache::agent::{AgentSession, Turn, serve};
use attache::{Link, Prompt, Result, StopReason};

struct Echo;

impl AgentSession for Echo {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        turn.say(prompt.text()).await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    serve(|_| async { Ok(Echo) }, Link::stdio()).await
}
