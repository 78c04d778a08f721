//! Commands in the background. `run` starts them, `output` returns what they have printed since the
//! last look, `stop` ends them. They end with the session.
//!
//! They run in terminals of the agent, also if the client provides terminals: a client may keep a
//! terminal for longer than the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use attache::wire::v1::ToolKind;
use parking_lot::Mutex;
use serde_json::json;

use super::live_output::{MAX_OUTPUT, code_block};
use super::{Arguments, Job, Output as ToolOutput, Result, Tool, ToolContext, ToolInfo, number, text};
use crate::model::Part;
use crate::text::{clip_marked, head_and_tail};
use crate::workspace::{CommandOutput, RunningCommand};

/// The most commands that run at a time.
const MAX_RUNNING: usize = 8;
/// The most commands that are kept, ended ones among them.
const MAX_KEPT: usize = 16;
/// The longest time that `output` waits, in seconds.
const MAX_WAIT: u32 = 300;

/// The background commands of a session. Dropping it kills them.
#[derive(Default)]
pub(super) struct BackgroundCommands {
    commands: Mutex<Vec<Arc<BackgroundCommand>>>,
    last: AtomicU32,
}

pub(super) struct BackgroundCommand {
    pub(super) id: String,
    line: String,
    command: RunningCommand,
    since: Instant,
    /// The output that the model has seen.
    seen: Mutex<String>,
}

impl BackgroundCommands {
    /// Adds a running command.
    pub(super) fn add(&self, line: &str, command: RunningCommand) -> Arc<BackgroundCommand> {
        let id = format!("bg{}", self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let seen = Mutex::default();
        let added =
            Arc::new(BackgroundCommand { id, line: line.to_owned(), command, since: Instant::now(), seen });
        self.commands.lock().push(added.clone());
        added
    }

    /// Removes the oldest ended commands, and fails if too many are running.
    pub(super) async fn make_room(&self) -> Result<()> {
        let all = self.commands.lock().clone();
        let mut running = 0;
        let mut ended = Vec::new();
        for command in &all {
            match command.command.output().await {
                Ok(output) if !output.ended => running += 1,
                _ => ended.push(command.id.clone()),
            }
        }
        if running >= MAX_RUNNING {
            return Err(format!("{running} commands run in the background already; `stop` one first").into());
        }
        ended.truncate((all.len() + 1).saturating_sub(MAX_KEPT));
        self.commands.lock().retain(|command| !ended.contains(&command.id));
        Ok(())
    }

    /// Removes a command, which is killed unless it has ended.
    pub(super) fn remove(&self, id: &str) {
        self.commands.lock().retain(|command| command.id != id);
    }

    fn is_empty(&self) -> bool {
        self.commands.lock().is_empty()
    }

    fn find(&self, id: &str) -> Result<Arc<BackgroundCommand>> {
        let commands = self.commands.lock();
        let found = commands.iter().find(|command| command.id == id).cloned();
        found.ok_or_else(|| {
            let ids: Vec<&str> = commands.iter().map(|command| command.id.as_str()).collect();
            format!("no background command `{id}`; there are: {}", ids.join(", ")).into()
        })
    }

    /// Kills all commands and waits for their ends.
    pub(super) async fn close(&self) {
        let commands = std::mem::take(&mut *self.commands.lock());
        let mut killed = tokio::task::JoinSet::new();
        for command in commands {
            killed.spawn(async move { command.command.kill().await });
        }
        killed.join_all().await;
    }
}

impl BackgroundCommand {
    fn title(&self) -> String {
        format!("{} (`{}`)", self.id, clip_marked(self.line.lines().next().unwrap_or_default(), 60, " …"))
    }

    /// Waits for the end, at most this long. Returns whether the command has ended.
    pub(super) async fn wait(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.command.wait()).await.is_ok()
    }

    pub(super) async fn output(&self) -> Result<CommandOutput> {
        Ok(self.command.output().await?)
    }

    /// The output since the last report, and the state.
    async fn report(&self) -> Result<ToolOutput> {
        let now = self.output().await?;
        let new = {
            let mut seen = self.seen.lock();
            let before = std::mem::replace(&mut *seen, now.output.clone());
            // The beginning was dropped, or a line was overwritten: then all of it is new.
            now.output.strip_prefix(before.as_str()).unwrap_or(&now.output).trim_end().to_owned()
        };
        let new = head_and_tail(&new, MAX_OUTPUT);
        let seconds = self.since.elapsed().as_secs();
        let state = match (now.ended, now.exit_code, &now.signal) {
            (false, ..) => format!("running for {seconds} s"),
            (true, Some(code), _) => format!("ended with exit code {code}"),
            (true, None, Some(signal)) => format!("killed by {signal}"),
            (true, None, None) => "ended".to_owned(),
        };
        let (text, shown) = match new.is_empty() {
            true => (format!("(no new output; {state})"), state.clone().into()),
            false => (format!("{new}\n({state})"), code_block(&new)),
        };
        Ok(ToolOutput {
            parts: vec![Part::Text(text)],
            content: Some(vec![shown]),
            raw: Some(
                json!({"id": self.id, "running": !now.ended, "exitCode": now.exit_code, "output": new}),
            ),
            ..ToolOutput::default()
        })
    }
}

/// The tool `output`.
pub(super) struct Output(pub(super) Arc<BackgroundCommands>);

impl Tool for Output {
    fn info(&self) -> ToolInfo {
        // Its result changes by itself, so it is no `Read`, which is answered from memory.
        ToolInfo::new(
            ToolKind::Execute,
            "output",
            "Returns what a background command has printed since the last call, and whether it still runs.",
            &[
                ("id", text("the id that `run` returned"), true),
                ("wait", number("seconds to wait for its end; default: none, at most 300"), false),
            ],
        )
    }

    fn is_offered(&self) -> bool {
        !self.0.is_empty()
    }

    async fn prepare(&self, _: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let command = self.0.find(arguments.text("id")?)?;
        let wait = arguments.number("wait")?.unwrap_or(0).min(MAX_WAIT);
        Ok(Job::new(format!("Output of {}", command.title()), Vec::new(), move |_, _| async move {
            if wait > 0 {
                command.wait(Duration::from_secs(wait.into())).await;
            }
            command.report().await
        }))
    }
}

/// The tool `stop`.
pub(super) struct Stop(pub(super) Arc<BackgroundCommands>);

impl Tool for Stop {
    fn info(&self) -> ToolInfo {
        let about = "Ends a background command and returns the rest of its output.";
        ToolInfo::new(ToolKind::Execute, "stop", about, &[("id", text("the id that `run` returned"), true)])
    }

    fn is_offered(&self) -> bool {
        !self.0.is_empty()
    }

    async fn prepare(&self, _: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let command = self.0.find(arguments.text("id")?)?;
        Ok(Job::new(format!("Stop {}", command.title()), Vec::new(), move |_, _| async move {
            command.command.kill().await;
            command.report().await
        }))
    }
}
