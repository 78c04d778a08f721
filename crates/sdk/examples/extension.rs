//! An extension: a request of one's own, served by an agent and called by a client, both in this process.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people: it prints")]

use attache::agent::{Agent, AgentSession, Turn};
use attache::client::Client;
use attache::{Link, Prompt, Request, Result, StopReason};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many files are to be indexed again. Extensions start with an underscore.
struct Reindex(u32);

impl Request for Reindex {
    const METHOD: &'static str = "_acme.dev/reindex";
    type Response = u32;
}

// Usually `#[derive(Serialize, Deserialize)]`; by hand here so that the example needs no further crate.
impl Serialize for Reindex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [("files", self.0)].into_iter().collect::<std::collections::BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Reindex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = std::collections::BTreeMap::<String, u32>::deserialize(deserializer)?;
        members
            .get("files")
            .map(|files| Reindex(*files))
            .ok_or_else(|| serde::de::Error::missing_field("files"))
    }
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
        .on_request(|request: Reindex, _client| async move { Ok(request.0 * 2) })
        .serve(far);
    let serving = tokio::spawn(agent);

    let agent = Client::new().connect(near).await?;
    println!("indexed {} entries", agent.request(&Reindex(21)).await?);
    agent.shutdown().await;
    serving.await.map_err(attache::Error::internal)?
}
