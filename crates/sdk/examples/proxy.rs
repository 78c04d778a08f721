//! A proxy that makes an agent answer in French: it stands where the agent would stand, starts the agent itself, and changes
//! prompts on their way. Everything else passes as it came.
//!
//! `cargo run --example proxy -- PROGRAM [ARGS…]`

use attache::proxy::{PushText, Relay};
use attache::wire::v1::PromptRequest;
use attache::{Command, Error, Link, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or_else(|| Error::internal("usage: proxy PROGRAM [ARGS…]"))?;
    let agent = Link::command(Command::new(program).args(args))?;
    Relay::new(Link::stdio(), agent)
        .edit(|request: &mut PromptRequest| request.prompt.push_text("Answer in French."))
        .run()
        .await
}
