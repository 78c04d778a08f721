//! The bench agent on attache. `--multi-thread` runs it on the runtime that a bare `#[tokio::main]` gives.

use attache::agent::{Agent, OpenedSession, AgentSession, Turn};
use attache::wire::v1::{ContentBlock, PermissionOption, PermissionOptionKind};
use attache::{Error, Link, Prompt, Result, StopReason};
use bench_probe::{Order, chunk, padding};
use std::sync::atomic::{AtomicU64, Ordering};

struct Bench;

impl AgentSession for Bench {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let command = prompt.blocks().iter().find_map(ContentBlock::as_text);
        match Order::parse(command.unwrap_or_default()) {
            Order::Stream { n, len } => {
                let padding = padding(len);
                for i in 0..n {
                    turn.say(chunk(i, &padding)).await?;
                }
            }
            Order::Streamy { n, len } => {
                let padding = padding(len);
                for i in 0..n {
                    turn.say(chunk(i, &padding)).await?;
                    tokio::task::yield_now().await;
                }
            }
            Order::Read { n } => {
                let files = turn.read_files().ok_or(Error::Unsupported("reading files"))?;
                for _ in 0..n {
                    files.read("/tmp/x.txt").await?;
                }
            }
            Order::Perm { n } => {
                let tool = turn.tool("edit").start().await?;
                for _ in 0..n {
                    let options = vec![
                        PermissionOption::new("a", "Allow", PermissionOptionKind::AllowOnce),
                        PermissionOption::new("r", "Reject", PermissionOptionKind::RejectOnce),
                    ];
                    turn.ask(&tool, options).await?;
                }
            }
            Order::Nothing => {}
        }
        Ok(StopReason::EndTurn)
    }
}

async fn serve() -> Result<()> {
    let sessions = AtomicU64::new(0);
    let open = move |_| {
        let number = sessions.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(OpenedSession::new(Bench).id(format!("s-{number}"))) }
    };
    Agent::new(open).info("bench", env!("CARGO_PKG_VERSION")).serve(Link::stdio()).await
}

fn main() -> Result<()> {
    let mut runtime = match bench_probe::multi_thread() {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    runtime.enable_all().build().map_err(Error::internal)?.block_on(serve())
}
