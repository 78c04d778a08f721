//! The conformant agent and its variants.
//!
//! `wire` is the connection, `dispatch` routes messages, `sessions` and `account` hold the methods,
//! `turn` the context of a turn and `actions` what it does, selected by `intent`. A variant is a
//! name: behaviour asks `Agent::is`; `mutation` changes outgoing messages. `v2` is the agent for clients
//! that offer version 2.

mod account;
mod actions;
mod dispatch;
mod intent;
mod mutation;
mod nes;
mod params;
mod sessions;
mod state;
mod turn;
mod v2;
mod variants;
mod wire;

pub use variants::{variants, variants_v2};

use attache_conn::{CancelToken, Link};
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::task::JoinSet;
use wire::Agent;

/// Plays the agent on `link` until its input ends: the good one, or a variant of it.
pub async fn agent(link: Link, variant: Option<&str>) {
    play(link, variant, false).await;
}

/// [`agent`](fn@agent) before a login: sessions are refused until then.
pub async fn locked_agent(link: Link, variant: Option<&str>) {
    play(link, variant, true).await;
}

async fn play(link: Link, variant: Option<&str>, locked: bool) {
    let (mut reader, writer) = link.split();
    let gone = CancelToken::new();
    let agent = Arc::new(Agent::new(writer, variant, gone.clone()));
    agent.state().locked_out = locked;
    let mut tasks = JoinSet::new();
    agent.start().await;
    loop {
        while tasks.try_join_next().is_some() {}
        let line = tokio::select! {
            line = reader.next() => line,
            () = gone.cancelled() => break,
        };
        match line {
            Ok(Some(line)) => {
                let line = line.to_vec();
                if let Some(rest) = agent.receive(&line).await {
                    tasks.spawn(rest);
                }
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => agent.unreadable().await,
            Ok(None) | Err(_) => break,
        }
    }
    drop(tasks);
    agent.hang_up().await;
}
