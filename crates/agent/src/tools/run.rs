//! `run`: a command line, in a terminal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::agent::block;
use attache::wire::v1::{Terminal, ToolCallContent, ToolKind};
use attache_host::policy::{CommandLine, Confined, Effect, FilePath, Run};
use attache_host::sandbox::Network;
use attache_host::shell;
use attache_host::survey::Survey;
use serde_json::json;

use super::{
    Arguments, Boxed, CANCELLED, Cx, Job, Output, Progress, Tool, flag, head_and_tail, number, spec, text,
};
use crate::ground::{Ended, Place, Running};
use crate::model::{Part, ToolSpec};
use crate::store::{Snapshot, SnapshotLimits};
use crate::turn::permit::permit;

/// How long a command may take unless told, and at most.
const TIME: u32 = 120;
const MOST_TIME: u32 = 3600;
/// How long a command may take that runs without a question.
const READ_ONLY_TIME: Duration = Duration::from_secs(60);
/// How much of its output the model gets.
const OUTPUT: usize = 30 << 10;
/// Changes of protected files that are shown with their text.
const SHOWN_CHANGES: usize = 50;
/// How often the output is shown while it runs, where there is no terminal that shows it.
const SHOWN_EVERY: Duration = Duration::from_millis(250);

pub(crate) struct RunCommand;

impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        spec(
            "run",
            "Runs a command line with `sh` in the working directory and tells its output and exit code. Each call is a shell of \
             its own. There is nobody to type: give flags that answer questions. To look at files use the other tools.",
            &[
                ("command", text("the command line"), true),
                ("cwd", text("another directory to run it in"), false),
                ("timeout", number("seconds after which it is ended; 120 unless given, at most 3600"), false),
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

    fn kind(&self) -> ToolKind {
        ToolKind::Execute
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let line = arguments.text("command")?.trim().to_owned();
            if line.is_empty() {
                return Err("`command` is empty".to_owned());
            }
            // They could hide from the user what is run.
            if line.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
                return Err("`command` contains control characters; use printf to make them".to_owned());
            }
            let cwd = cx.place(arguments.text_if("cwd")?.unwrap_or("."))?;
            let seconds = arguments.number("timeout")?.unwrap_or(TIME).min(MOST_TIME);
            let isolation = isolation(cx, &line, &cwd, arguments.flag("outside_sandbox")?).await?;
            let run = Run { confined: isolation.judged, ..Run::new(CommandLine::shell(&line), cwd.path()) };
            let mut shown = format!("```sh\n{line}\n```");
            if cx.short(&cwd) != "." {
                shown.push_str(&format!("\nin {}", cwd.named.display()));
            }
            let title = format!("`{}`", title(&line));
            let limit = Duration::from_secs(seconds.into());
            let effects = vec![Effect::Run(run)];
            let work = move |cx, progress| async move {
                execute(cx, progress, line, cwd, limit, isolation.enforced).await
            };
            // A cancelled command must not leave changes of protected files behind.
            Ok(Job::new(title, ToolKind::Execute, effects, work).showing(block(shown)).finishing())
        })
    }
}

/// How a command is confined.
#[derive(Clone, Copy)]
struct Isolation {
    /// What the permission engine is told. A sandbox that cannot keep protected files from a change does not count there.
    judged: Confined,
    /// How the command runs.
    enforced: Confined,
}

impl Isolation {
    const fn same(confined: Confined) -> Self {
        Isolation { judged: confined, enforced: confined }
    }
}

async fn isolation(cx: &Cx, line: &str, cwd: &Place, outside: bool) -> Result<Isolation, String> {
    let (live, line, cwd) = (cx.live.clone(), line.to_owned(), cwd.clone());
    let detect = move || {
        let Some(confiner) = live.house.confiner()? else { return Ok(Isolation::same(Confined::No)) };
        let roots = live.ground.roots();
        Ok(match () {
            () if outside || !cwd.inside => Isolation::same(Confined::No),
            () if shell::is_read_only(&line, &cwd.real, roots) => Isolation::same(Confined::ReadOnly),
            () if confiner.protects_files() => Isolation::same(Confined::Workspace),
            () => Isolation { judged: Confined::No, enforced: Confined::Workspace },
        })
    };
    tokio::task::spawn_blocking(detect).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The first line, not too long.
fn title(line: &str) -> String {
    let first = line.lines().next().unwrap_or_default();
    let (first, cut) = super::clip(first, 100);
    let more = cut || line.lines().nth(1).is_some();
    format!("{first}{}", if more { " …" } else { "" })
}

async fn execute(
    cx: Cx,
    progress: Progress,
    line: String,
    cwd: Place,
    limit: Duration,
    confined: Confined,
) -> Result<Output, String> {
    let roots = cx.live.ground.roots();
    let shell = ["/bin/sh", "-c", &line];
    let confiner = cx.live.house.confiner()?.filter(|_| confined != Confined::No);
    let Some(confiner) = confiner else {
        let argv = shell.map(str::to_owned).to_vec();
        return recorded(&cx, attend(&cx, &progress, argv, &cwd, limit)).await;
    };
    if confined == Confined::ReadOnly {
        let argv = confiner.command(&confiner.read_only(roots), shell)?;
        return attend(&cx, &progress, argv, &cwd, limit.min(READ_ONLY_TIME)).await;
    }
    let has_network = cx.live.house.has_network() && confiner.has_proxy();
    let access = if has_network { Some(cx.live.network.allow(&cx).await?) } else { None };
    let network = access.as_ref().map_or(Network::Off, |(_, socket)| Network::Proxy(socket.clone()));
    let denied = cx.live.policy.denied_programs();
    let argv = confiner.command(&confiner.workspace(roots, network, denied), shell)?;
    let before = survey(&cx).await?;
    let ended = recorded(&cx, attend(&cx, &progress, argv, &cwd, limit)).await;
    drop(access);
    let kept = keep_changes(&cx, before).await;
    match (ended, kept) {
        (Ok(mut output), Some(note)) => {
            output.parts.push(Part::Text(note));
            Ok(output)
        }
        (ended, _) => ended,
    }
}

/// Runs a command that may change files so that `/undo` can take the changes back.
async fn recorded(cx: &Cx, run: impl Future<Output = Result<Output, String>>) -> Result<Output, String> {
    let before = keep_all(cx).await?;
    let ended = run.await;
    settle(cx, before).await?;
    ended
}

/// Looks for protected files.
async fn survey(cx: &Cx) -> Result<Survey, String> {
    let roots = cx.live.ground.roots().to_vec();
    tokio::task::spawn_blocking(move || Survey::take(&roots)).await.map_err(|error| error.to_string())
}

/// Asks about protected files that a command has created, changed or removed, and takes that back if the user says no. The sandbox
/// keeps those directly below a root from a change, but cannot know all that may come.
async fn keep_changes(cx: &Cx, before: Survey) -> Option<String> {
    let changes = match tokio::task::spawn_blocking(move || before.changes()).await {
        Ok(changes) if changes.is_empty() => return None,
        Ok(changes) => changes,
        Err(error) => return Some(format!("\n(protected files could not be compared: {error})")),
    };
    let changed: Vec<PathBuf> = changes.paths().map(Path::to_owned).collect();
    let names = changed.iter().map(|path| cx.live.ground.short(path)).collect::<Vec<_>>().join(", ");
    let effects: Vec<Effect> = changed.iter().map(|path| Effect::Keep(FilePath::from_real(path))).collect();
    let input = attache::Json::from(json!({ "protected": changed }));
    let tool = {
        let turn = cx.turn.turn();
        let call = turn.tool(format!("Keep {names}")).kind(ToolKind::Edit).input(input);
        // What is agreed to is shown, as far as it is text.
        let files = changes.files();
        let call = files.iter().take(SHOWN_CHANGES).fold(call, |call, file| match (&file.old, &file.new) {
            (None, None) => call,
            (old, new) => call.diff(&file.path, old.clone(), new.clone().unwrap_or_default()),
        });
        files.iter().fold(call, |call, file| call.location(file.path.to_string_lossy().into_owned(), None))
    };
    let call = cx.live.voice.start(tool).await.ok();
    let kept = permit(cx, call.as_ref(), &effects).await;
    let mut problem = String::new();
    if kept.is_err() {
        let taken_back = tokio::task::spawn_blocking(move || changes.take_back()).await;
        let failed = taken_back.unwrap_or_else(|error| Err(error.to_string())).err();
        problem = failed.map(|failed| format!("; not possible: {failed}")).unwrap_or_default();
    }
    if let Some(call) = call {
        let _ = cx.live.voice.end(&call, call.change(), kept.is_err()).await;
    }
    kept.err().map(|_| {
        format!("\n(the user did not want to keep {names}, which the command created, changed or removed; taken back{problem})")
    })
}

/// Keeps the project's files before a command runs that may change any of them, for `/undo`.
async fn keep_all(cx: &Cx) -> Result<Arc<Snapshot>, String> {
    let live = cx.live.clone();
    let taken = tokio::task::spawn_blocking(move || {
        let last = live.state().snapshot.clone();
        let taken =
            live.store().snapshot(live.id(), live.ground.roots(), SnapshotLimits::default(), last.as_deref());
        let taken = Arc::new(taken.map_err(|error| error.to_string())?);
        live.state().snapshot = Some(taken.clone());
        Ok(taken)
    });
    taken.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn settle(cx: &Cx, before: Arc<Snapshot>) -> Result<(), String> {
    let live = cx.live.clone();
    let settled = tokio::task::spawn_blocking(move || {
        live.store()
            .settle(live.id(), live.ground.roots(), &before)
            .map(drop)
            .map_err(|error| error.to_string())
    });
    settled.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn attend(
    cx: &Cx,
    progress: &Progress,
    argv: Vec<String>,
    cwd: &Place,
    limit: Duration,
) -> Result<Output, String> {
    let turn = cx.turn.turn();
    let cancelled = |_| CANCELLED.to_owned();
    let start = cx.live.ground.start(&cx.turn, argv, &cwd.named);
    let command = turn.until_cancelled(start).await.map_err(cancelled)??;
    match turn.until_cancelled(follow(&command, progress, limit)).await {
        Ok(output) => {
            command.release().await;
            output
        }
        Err(error) => {
            command.kill().await;
            Err(cancelled(error))
        }
    }
}

/// Follows a command to its end, or ends it when its time is over.
async fn follow(command: &Running, progress: &Progress, limit: Duration) -> Result<Output, String> {
    let terminal = command.terminal_id().cloned();
    if let Some(id) = &terminal {
        // TOOL-16: embedded before it is released.
        progress.show(vec![ToolCallContent::Terminal(Terminal::new(id.clone()))]).await;
    }
    let in_time = match tokio::time::timeout(limit, watch(command, progress, terminal.is_some())).await {
        Ok(ended) => ended.map(|()| true)?,
        Err(_) => {
            command.kill().await;
            false
        }
    };
    let ended = command.so_far().await?;
    Ok(tell(&ended, in_time.then_some(()).ok_or(limit), terminal.is_some()))
}

/// Waits for the end, and shows the output meanwhile unless a terminal does.
async fn watch(command: &Running, progress: &Progress, is_shown: bool) -> Result<(), String> {
    if is_shown {
        return command.wait().await;
    }
    let mut waiting = std::pin::pin!(command.wait());
    let mut last = String::new();
    loop {
        tokio::select! {
            ended = &mut waiting => return ended,
            () = tokio::time::sleep(SHOWN_EVERY) => {
                let now = command.so_far().await?.output;
                if now != last {
                    progress.show(vec![fenced(&head_and_tail(&now, OUTPUT))]).await;
                    last = now;
                }
            }
        }
    }
}

/// Output as a block of code, whatever it holds.
fn fenced(output: &str) -> ToolCallContent {
    let fence = "`".repeat(output.split(|char| char != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    block(format!("{fence}\n{}\n{fence}", output.trim_end()))
}

fn tell(ended: &Ended, in_time: Result<(), Duration>, is_shown: bool) -> Output {
    let how = match (in_time, ended.exit_code, &ended.signal) {
        (Err(limit), ..) => format!("ended after {} seconds because it took too long", limit.as_secs()),
        (_, Some(code), _) => format!("exit code {code}"),
        (_, None, Some(signal)) => format!("ended by {signal}"),
        (_, None, None) => "ended".to_owned(),
    };
    let output = head_and_tail(ended.output.trim_end(), OUTPUT);
    let cut = if ended.cut { "[… the beginning is left out …]\n" } else { "" };
    let told = match output.is_empty() {
        true => format!("({how}, no output)"),
        false => format!("{cut}{output}\n({how})"),
    };
    let failed = ended.exit_code != Some(0);
    Output {
        parts: vec![Part::Text(told)],
        content: (!is_shown).then(|| match output.is_empty() {
            true => vec![block(how)],
            false => vec![fenced(&output)],
        }),
        raw: Some(json!({"exitCode": ended.exit_code, "signal": ended.signal, "output": output})),
        failed,
        ..Output::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let text = serde_json::to_string(&fenced("a ```` b")).unwrap_or_default();
        assert!(text.contains("`````\\na ```` b\\n`````"), "{text}");
    }

    #[test]
    fn ends_are_told() {
        let told = |ended: &Ended, in_time| match tell(ended, in_time, false).parts.as_slice() {
            [Part::Text(text)] => text.clone(),
            _ => String::new(),
        };
        let ok = Ended { output: "x\n".into(), exit_code: Some(0), ..Ended::default() };
        assert_eq!(told(&ok, Ok(())), "x\n(exit code 0)");
        assert!(!tell(&ok, Ok(()), false).failed);
        let late =
            Ended { signal: Some("SIGTERM".into()), cut: true, output: "y".into(), ..Ended::default() };
        assert!(told(&late, Err(Duration::from_secs(3))).contains("ended after 3 seconds"));
        assert!(tell(&late, Err(Duration::from_secs(3)), false).failed);
        assert_eq!(
            told(&Ended { exit_code: Some(2), ..Ended::default() }, Ok(())),
            "(exit code 2, no output)"
        );
    }
}
