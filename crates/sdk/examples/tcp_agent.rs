//! An agent over TCP, with one client for each connection and a count that all of them share. It
//! prints its address; a client connects with `Link::tcp(address)`.

#![allow(clippy::print_stdout, reason = "a program for people: it prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache::agent::{Agent, AgentSession, Turn};
use attache::{Prompt, Result, StopReason};

/// A session that counts the prompts of all clients.
struct Counter(Arc<AtomicUsize>);

impl AgentSession for Counter {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        turn.say(format!("This is prompt number {number}.")).await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = attache::listen_tcp(address).await?;
    if let Some(address) = listener.local_addr() {
        println!("{address}");
    }
    let agent = Agent::with_state(AtomicUsize::new(0), |count, _| async { Ok(Counter(count)) });
    agent.serve_clients(listener).await
}
