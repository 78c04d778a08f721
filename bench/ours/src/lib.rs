//! The bench agent on attache, for standard streams and for servers.

use attache::agent::{Agent, AgentSession, OpenedSession, Turn};
use attache::wire::v1::{ContentBlock, PermissionOption, PermissionOptionKind};
use attache::{Error, Prompt, Result, StopReason};
use bench_probe::{Order, chunk, padding, stamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
            Order::Paced { n, ms } => {
                let mut clock = tokio::time::interval(Duration::from_millis(ms));
                for _ in 0..n {
                    clock.tick().await;
                    turn.say(stamp()).await?;
                }
            }
            Order::Nothing => {}
        }
        Ok(StopReason::EndTurn)
    }
}

/// The agent; its sessions are `s-1`, `s-2`, ….
pub fn agent() -> Agent {
    let sessions = std::sync::Arc::new(AtomicU64::new(0));
    let open = move |_| {
        let number = sessions.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(OpenedSession::new(Bench).id(format!("s-{number}"))) }
    };
    Agent::new(open).info("bench", env!("CARGO_PKG_VERSION")).protocol_v2()
}
