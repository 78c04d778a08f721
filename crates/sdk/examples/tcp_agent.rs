//! An agent over TCP, with one client for each connection. It prints its address; a client connects with
//! `Link::tcp(address)`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people: it prints")]

use attache::agent::{AgentSession, Turn, serve};
use attache::{Prompt, Result, StopReason};

struct Echo;

impl AgentSession for Echo {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        turn.say(prompt.text()).await?;
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
    loop {
        let link = listener.accept().await?;
        tokio::spawn(async move {
            if let Err(error) = serve(|_| async { Ok(Echo) }, link).await {
                eprintln!("a client left: {error}");
            }
        });
    }
}
