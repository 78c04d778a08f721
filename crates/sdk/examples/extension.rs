//! An extension: a method of one's own, served by an agent and called by a client, both in this
//! process.

#![allow(clippy::print_stdout, reason = "a program: it prints")]

use attache::agent::{Agent, AgentSession, Turn};
use attache::client::Client;
use attache::{Link, Prompt, Result, StopReason};

attache::extension! {
    /// Indexes files again. Methods of extensions start with an underscore.
    pub request Reindex("_acme.dev/reindex") { path: String, depth: Option<u32> } -> Reindexed { files: u64 }
}

struct Indexer;

impl AgentSession for Indexer {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        turn.say("Call `_acme.dev/reindex`.").await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (near, far) = Link::pair();
    let agent = Agent::new(|_| async { Ok(Indexer) })
        .on_request(|request: Reindex, _client| async move {
            Ok(Reindexed { files: 21 * u64::from(request.depth.unwrap_or(1)) })
        })
        .serve(far);
    let serving = tokio::spawn(agent);

    let agent = Client::new().connect(near).await?;
    let done = agent.request(&Reindex { path: "/work".into(), depth: Some(2) }).await?;
    println!("indexed {} entries", done.files);
    agent.shutdown().await;
    serving.await.map_err(attache::Error::internal)?
}
