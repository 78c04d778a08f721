//! `run`: a command line, in a terminal.

use std::sync::Arc;
use std::time::Duration;

use attache::agent::block;
use attache::wire::v1::ToolKind;
use attache_host::policy::{CommandLine, Confined, Effect, Run as RunEffect};
use attache_host::sandbox::Network;
use attache_host::shell;
use parking_lot::Mutex;
use serde_json::json;

use super::background::BackgroundCommands;
use super::live_output::{LiveOutput, MAX_OUTPUT, code_block};
use super::network::CommandNetwork;
use super::{
    Arguments, Job, Output, Progress, Result, Tool, ToolContext, ToolInfo, flag, number, protected, text,
};
use crate::blocking;
use crate::model::Part;
use crate::store::{Snapshot, SnapshotLimits};
use crate::text::{clip_marked, head_and_tail};
use crate::workspace::{CommandOutput, RunningCommand, WorkspacePath};

/// The default and the longest time limit of a command, in seconds.
const DEFAULT_TIMEOUT: u32 = 120;
const MAX_TIMEOUT: u32 = 3600;
/// The time limit of a command that runs without a permission.
const READ_ONLY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a background command is watched before its id is returned.
const START_WAIT: Duration = Duration::from_millis(500);
/// How often the output is shown while the command runs, if no terminal shows it.
const REFRESH: Duration = Duration::from_millis(250);

#[derive(Default)]
pub(crate) struct Run(Arc<CommandState>);

/// State that the commands of a session share.
#[derive(Default)]
struct CommandState {
    network: CommandNetwork,
    /// The project's files before the last command; unchanged ones are not read again.
    last_snapshot: Mutex<Option<Arc<Snapshot>>>,
    background: Arc<BackgroundCommands>,
}

impl Run {
    pub(super) fn new(background: Arc<BackgroundCommands>) -> Self {
        Run(Arc::new(CommandState { background, ..CommandState::default() }))
    }
}

impl Tool for Run {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Execute,
            "run",
            "Runs a command line with `sh` in the working directory and returns its output and exit code. Each call starts a new \
             shell. There is no input: pass flags that answer questions. To look at files use the other tools.",
            &[
                ("command", text("the command line"), true),
                ("cwd", text("another directory to run it in"), false),
                (
                    "background",
                    flag("whether it goes on while you do other things, such as a server; returns an id"),
                    false,
                ),
                ("timeout", number("seconds after which it is killed; default: 120, at most 3600"), false),
                (
                    "outside_sandbox",
                    flag(
                        "whether it must run outside the sandbox, for example to push with git; the user is asked",
                    ),
                    false,
                ),
            ],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let line = arguments.text("command")?.trim().to_owned();
        if line.is_empty() {
            return Err("`command` is empty".into());
        }
        // They could hide the command from the user.
        if line.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
            return Err("`command` contains control characters; create them with printf".into());
        }
        let cwd = cx.resolve(arguments.text_if("cwd")?.unwrap_or("."))?;
        let seconds = arguments.number("timeout")?.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
        let mut isolation = isolation(cx, &line, &cwd, arguments.flag("outside_sandbox")?).await?;
        let in_background = arguments.flag("background")?;
        if in_background {
            self.0.background.make_room().await?;
            // Changes of protected files are found when a command ends, which is too late here.
            if isolation.judged == Confined::Workspace {
                isolation.judged = Confined::No;
            }
        }
        let effect = RunEffect {
            confined: isolation.judged,
            ..RunEffect::new(CommandLine::shell(&line), cwd.for_policy())
        };
        let mut shown = format!("```sh\n{line}\n```");
        if cx.short(&cwd) != "." {
            shown.push_str(&format!("\nin {}", cwd.named.display()));
        }
        if in_background {
            shown.push_str("\nin the background, until it ends or the session does");
        }
        let title = format!("`{}`", title(&line));
        let state = self.0.clone();
        let command = Command { line, cwd, timeout: Duration::from_secs(seconds.into()) };
        let work = move |cx, progress| async move {
            match in_background {
                true => command.start_in_background(&cx, &state, isolation.enforced).await,
                false => command.execute(&cx, &progress, &state, isolation.enforced).await,
            }
        };
        let job = Job::new(title, vec![Effect::Run(effect)], work).content(block(shown));
        // A cancelled command must not leave changes of protected files behind.
        Ok(Job { handles_cancel: true, ..job })
    }
}

/// How a command is confined.
#[derive(Clone, Copy)]
struct Isolation {
    /// For the permission engine. A sandbox that cannot guard protected files does not count there.
    judged: Confined,
    /// How the command runs.
    enforced: Confined,
}

async fn isolation(cx: &ToolContext, line: &str, cwd: &WorkspacePath, outside: bool) -> Result<Isolation> {
    let (session, line, cwd) = (cx.session.clone(), line.to_owned(), cwd.clone());
    let same = |confined| Isolation { judged: confined, enforced: confined };
    let detect = move || {
        let Some(confiner) = session.agent.confiner()? else { return Ok(same(Confined::No)) };
        Ok::<_, &str>(match () {
            () if outside || !cwd.inside => same(Confined::No),
            () if shell::is_read_only(&line, &cwd.real, session.workspace.roots()) => {
                same(Confined::ReadOnly)
            }
            () if confiner.protects_files() => same(Confined::Workspace),
            () => Isolation { judged: Confined::No, enforced: Confined::Workspace },
        })
    };
    Ok(blocking::run(detect).await?)
}

/// The first line, shortened.
fn title(line: &str) -> String {
    let first = clip_marked(line.lines().next().unwrap_or_default(), 100, " …");
    match line.lines().nth(1) {
        Some(_) if !first.ends_with(" …") => format!("{first} …"),
        _ => first,
    }
}

struct Command {
    line: String,
    cwd: WorkspacePath,
    timeout: Duration,
}

impl Command {
    async fn execute(
        &self,
        cx: &ToolContext,
        progress: &Progress,
        state: &CommandState,
        confined: Confined,
    ) -> Result<Output> {
        let roots = cx.session.workspace.roots();
        let shell = ["/bin/sh", "-c", &self.line];
        let confiner = cx.session.agent.confiner()?.filter(|_| confined != Confined::No);
        let Some(confiner) = confiner else {
            let argv = shell.map(str::to_owned).to_vec();
            return state.recorded(cx, self.run(cx, progress, argv, self.timeout)).await;
        };
        if confined == Confined::ReadOnly {
            let argv = confiner.command(&confiner.read_only(roots), shell)?;
            return self.run(cx, progress, argv, self.timeout.min(READ_ONLY_TIMEOUT)).await;
        }
        let has_network = cx.session.agent.has_network() && confiner.has_proxy();
        let access = if has_network { Some(state.network.allow(cx).await?) } else { None };
        let network = access.as_ref().map_or(Network::Off, |(_, socket)| Network::Proxy(socket.clone()));
        let denied = cx.session.policy.denied_programs();
        let argv = confiner.command(&confiner.workspace(roots, network, denied), shell)?;
        let before = protected::survey(cx).await?;
        let result = state.recorded(cx, self.run(cx, progress, argv, self.timeout)).await;
        drop(access);
        let note = protected::keep_or_revert(cx, before).await;
        let mut output = result?;
        output.parts.extend(note.map(Part::Text));
        Ok(output)
    }

    /// Starts the command in the background. One that ends at once is reported like any other.
    async fn start_in_background(
        &self,
        cx: &ToolContext,
        state: &CommandState,
        confined: Confined,
    ) -> Result<Output> {
        let argv = self.background_argv(cx, confined)?;
        let start = async {
            let mut words = argv.into_iter();
            let program = words.next().unwrap_or_default();
            let workspace = &cx.session.workspace;
            let command = workspace
                .start_local(&cx.turn, program, words.collect(), &self.cwd.named, &cx.command_env)
                .await?;
            let command = state.background.add(&self.line, command);
            match cx.turn.turn().until_cancelled(command.wait(START_WAIT)).await {
                Ok(false) => {
                    Ok(Output::visible(format!("runs in the background as {}; see `output`", command.id)))
                }
                Ok(true) => {
                    state.background.remove(&command.id);
                    Ok(output(&command.output().await?, End::Exited))
                }
                Err(error) => {
                    state.background.remove(&command.id);
                    Err(error.into())
                }
            }
        };
        // Changes that it makes later are not reverted by `/undo`, but the old files are stored.
        match confined {
            Confined::ReadOnly => start.await,
            _ => state.recorded(cx, start).await,
        }
    }

    /// The command line in its sandbox. There is no network: there is no turn in which the user
    /// could be asked about hosts later.
    fn background_argv(&self, cx: &ToolContext, confined: Confined) -> Result<Vec<String>> {
        let shell = ["/bin/sh", "-c", &self.line];
        let roots = cx.session.workspace.roots();
        let Some(confiner) = cx.session.agent.confiner()?.filter(|_| confined != Confined::No) else {
            return Ok(shell.map(str::to_owned).to_vec());
        };
        let confinement = match confined {
            Confined::ReadOnly => confiner.read_only(roots),
            _ => confiner.workspace(roots, Network::Off, cx.session.policy.denied_programs()),
        };
        Ok(confiner.command(&confinement, shell)?)
    }

    async fn run(
        &self,
        cx: &ToolContext,
        progress: &Progress,
        argv: Vec<String>,
        timeout: Duration,
    ) -> Result<Output> {
        let turn = cx.turn.turn();
        let start = cx.session.workspace.start(&cx.turn, argv, &self.cwd.named, &cx.command_env);
        let command = turn.until_cancelled(start).await??;
        let mut live = LiveOutput::open(cx, progress, &command, &self.line, &self.cwd.named).await;
        match turn.until_cancelled(follow(&command, progress, timeout, &mut live)).await {
            Ok(output) => {
                live.finish(&command, progress).await;
                command.release().await;
                output
            }
            Err(error) => {
                command.kill().await;
                live.finish(&command, progress).await;
                Err(error.into())
            }
        }
    }
}

impl CommandState {
    /// Runs a command that may change files, so that `/undo` can revert them.
    async fn recorded(&self, cx: &ToolContext, run: impl Future<Output = Result<Output>>) -> Result<Output> {
        let last = self.last_snapshot.lock().clone();
        let session = cx.session.clone();
        let before = blocking::run(move || {
            let roots = session.workspace.roots();
            session.store().snapshot(session.id(), roots, SnapshotLimits::default(), last.as_deref())
        });
        let before = Arc::new(before.await?);
        *self.last_snapshot.lock() = Some(before.clone());
        let output = run.await;
        let session = cx.session.clone();
        blocking::run(move || session.store().settle(session.id(), session.workspace.roots(), &before))
            .await?;
        output
    }
}

/// How a command came to its end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Exited,
    /// Killed at its time limit.
    TimedOut(Duration),
    /// Killed because the user cancelled it alone.
    Cancelled,
}

/// Follows a command to its end, or kills it at its time limit.
async fn follow(
    command: &RunningCommand,
    progress: &Progress,
    timeout: Duration,
    live: &mut LiveOutput,
) -> Result<Output> {
    let end = match tokio::time::timeout(timeout, watch(command, progress, live)).await {
        Ok(end) => end?,
        Err(_) => End::TimedOut(timeout),
    };
    if end != End::Exited {
        command.kill().await;
    }
    let mut output = output(&command.output().await?, end);
    if live.is_terminal() {
        output.content_v2 = matches!(live, LiveOutput::Own(..)).then(Vec::new);
        output.content = output.content.filter(|_| output.content_v2.is_some());
    }
    Ok(output)
}

/// Waits for the end, and shows the output in the meantime.
async fn watch(command: &RunningCommand, progress: &Progress, live: &mut LiveOutput) -> Result<End> {
    if matches!(live, LiveOutput::Client) {
        return Ok(command.wait().await.map(|()| End::Exited)?);
    }
    let mut waiting = std::pin::pin!(command.wait());
    loop {
        tokio::select! {
            ended = &mut waiting => return Ok(ended.map(|()| End::Exited)?),
            () = live.cancelled() => return Ok(End::Cancelled),
            () = tokio::time::sleep(REFRESH) => {}
        }
        live.refresh(command, progress).await?;
    }
}

fn output(ended: &CommandOutput, end: End) -> Output {
    let status = match (end, ended.exit_code, &ended.signal) {
        (End::TimedOut(limit), ..) => {
            format!("killed after {} seconds because it took too long", limit.as_secs())
        }
        (End::Cancelled, ..) => "cancelled by the user".to_owned(),
        (_, Some(code), _) => format!("exit code {code}"),
        (_, None, Some(signal)) => format!("killed by {signal}"),
        (_, None, None) => "ended".to_owned(),
    };
    let output = head_and_tail(ended.output.trim_end(), MAX_OUTPUT);
    let cut = if ended.truncated { "[… the beginning is left out …]\n" } else { "" };
    let (text, content) = match output.is_empty() {
        true => (format!("({status}, no output)"), block(status)),
        false => (format!("{cut}{output}\n({status})"), code_block(&output)),
    };
    Output {
        parts: vec![Part::Text(text)],
        content: Some(vec![content]),
        raw: Some(json!({"exitCode": ended.exit_code, "signal": ended.signal, "output": output})),
        failed: ended.exit_code != Some(0),
        ..Output::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_command_is_reported() {
        let text = |ended: &CommandOutput, end| match output(ended, end).parts.as_slice() {
            [Part::Text(text)] => text.clone(),
            _ => String::new(),
        };
        let ok = CommandOutput { output: "x\n".into(), exit_code: Some(0), ..CommandOutput::default() };
        assert_eq!(text(&ok, End::Exited), "x\n(exit code 0)");
        assert!(!output(&ok, End::Exited).failed);
        let late = CommandOutput {
            signal: Some("SIGTERM".into()),
            truncated: true,
            output: "y".into(),
            ..CommandOutput::default()
        };
        let limit = End::TimedOut(Duration::from_secs(3));
        assert!(text(&late, limit).contains("killed after 3 seconds"));
        assert!(output(&late, limit).failed);
        assert_eq!(
            text(&late, End::Cancelled),
            "[… the beginning is left out …]\ny\n(cancelled by the user)"
        );
        let quiet = CommandOutput { exit_code: Some(2), ..CommandOutput::default() };
        assert_eq!(text(&quiet, End::Exited), "(exit code 2, no output)");
    }
}
