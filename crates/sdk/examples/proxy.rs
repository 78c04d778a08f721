//! A proxy that makes an agent answer in French. It runs in the agent's place, starts the agent and
//! edits prompts; everything else passes unchanged.
//!
//! `cargo run --example proxy -- PROGRAM [ARGS…]`

#![allow(clippy::print_stderr, reason = "a program: it prints")]

use std::process::ExitCode;

use attache::proxy::Relay;
use attache::wire::v1::PromptRequest;
use attache::{Command, Error, Link, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or_else(|| Error::internal("usage: proxy PROGRAM [ARGS…]"))?;
    let agent = Link::command(Command::new(program).args(args))?;
    let end = Relay::new(Link::stdio(), agent)
        .edit(|request: &mut PromptRequest| request.prompt.push("Answer in French.".into()))
        .run()
        .await?;
    // The client sees our stderr and our exit code instead of the agent's.
    if end.agent_failed() {
        eprint!("{}", end.stderr_tail);
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
