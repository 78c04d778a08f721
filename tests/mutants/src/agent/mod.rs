//! The conformant agent and its variants.
//!
//! `wire` is the connection, `dispatch` routes messages, `sessions` and `account` hold the methods,
//! `turn` the life of a turn, `context` what its actions see and `actions` what it does, selected
//! by `intent`. A variant is a name: behaviour asks `Agent::is`; `mutation` changes outgoing
//! messages. `v2` is the agent for clients that offer version 2.

mod account;
mod actions;
mod context;
mod dispatch;
mod intent;
mod mutation;
mod nes;
mod params;
mod sessions;
mod state;
mod turn;
mod v2;
mod wire;

crate::variants!();

use attache_conn::{CancelToken, Link};
use state::State;
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::task::JoinSet;
use wire::Agent;

/// Plays the agent on `link` until its input ends: the good one, or a variant of it.
pub async fn agent(link: Link, variant: Option<&str>) {
    play(link, variant, |_| {}).await;
}

/// [`agent`](fn@agent) before a login: sessions are refused until then.
pub async fn locked_agent(link: Link, variant: Option<&str>) {
    play(link, variant, |state| state.locked_out = true).await;
}

/// [`agent`](fn@agent) that does not speak version 1.
pub async fn newer_agent(link: Link, variant: Option<&str>) {
    play(link, variant, |state| state.only_2 = true).await;
}

async fn play(link: Link, variant: Option<&str>, prepare: impl FnOnce(&mut State)) {
    let (mut reader, writer) = link.split();
    let gone = CancelToken::new();
    let agent = Arc::new(Agent::new(writer, variant, gone.clone()));
    prepare(&mut agent.state());
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
