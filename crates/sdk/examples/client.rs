//! A client in twenty lines: starts an agent, sends a prompt, prints the answer and allows each
//! tool call once.
//!
//! `cargo run --example client -- PROGRAM [ARGS…]`

#![allow(clippy::print_stdout, reason = "it is a program")]

use attache::client::{Client, Event};
use attache::model::PermissionOptionKind::AllowOnce;
use attache::{Command, Error, Link, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or_else(|| Error::internal("usage: client PROGRAM [ARGS…]"))?;
    let agent = Client::new().connect(Link::command(Command::new(program).args(args))?).await?;
    let mut session = agent.new_session(std::env::current_dir()?).await?;
    let mut turn = session.prompt("What is 2 + 2?").await?;
    while let Some(event) = turn.next().await? {
        match event {
            Event::Text(text) => print!("{text}"),
            Event::ToolCall(call) => println!("[{:?} {:?}]", call.update.title, call.update.status),
            Event::Permission(ask) => ask.choose_kind(AllowOnce),
            _ => {}
        }
    }
    println!("\n{:?}", turn.stop_reason());
    Ok(())
}
