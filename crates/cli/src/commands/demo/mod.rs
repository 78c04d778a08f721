//! `attache demo`: everything at once, for real, on a project that is made for it.
//!
//! A client starts this program once more as an agent, in a process of its own. The agent's model
//! is played from `script.txt`, and says so; files, search, permission, terminal and test are real.

mod show;

use std::cell::OnceCell;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use attache::client::{Client, Event, PermissionAsk};
use attache::wire::v1::{PermissionOptionKind, ToolKind};
use attache::{Command, Link};
use attache_conn::private::TempDir;
use attache_host::Host;
use attache_host::policy::{Mode, Policy};
use attache_host::terminals::PtyTerminals;

use self::show::Printer;
use crate::connect::remembers_answers;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::{Output, wait_unanswered};
use crate::runtime::{runtime, until_interrupted};

const SCRIPT: &str = include_str!("script.txt");

const PROMPT: &str = "The test fails. Find out why, fix it, and run the test.";

const PROJECT: &[(&str, &str)] = &[
    (
        "temperature.sh",
        "# Temperatures in whole degrees.\n\nto_fahrenheit() {\n    echo $(($1 * 9 / 5 - 32))\n}\n",
    ),
    (
        "test.sh",
        "# Run with: sh test.sh\n. ./temperature.sh\n\nfailed=0\n\ncheck() {\n    got=$(to_fahrenheit \"$1\")\n    \
         if [ \"$got\" = \"$2\" ]; then\n        echo \"ok      $1 °C is $2 °F\"\n    else\n        \
         echo \"FAILED  $1 °C should be $2 °F, got $got\"\n        failed=1\n    fi\n}\n\n\
         check 0 32\ncheck 100 212\ncheck -40 -40\n\nexit $failed\n",
    ),
];

pub(crate) fn demo(cx: &Cx) -> Result<()> {
    // Removed last, after the agent has ended, however the demo ends.
    let scratch = OnceCell::new();
    runtime(until_interrupted(perform(&cx.output, &scratch)))
}

async fn perform(out: &Output, scratch: &OnceCell<TempDir>) -> Result<()> {
    let began = Instant::now();
    let temporary = TempDir::new("attache-demo").context("a directory for the demo")?;
    let scratch = scratch.get_or_init(|| temporary).path();
    let project = scratch.join("project");
    let script = scratch.join("script.txt");
    std::fs::create_dir(&project).context("the demo's project")?;
    for (name, text) in PROJECT {
        std::fs::write(project.join(name), text).context("the demo's project")?;
    }
    std::fs::write(&script, SCRIPT).context("the demo's script")?;

    out.line("A demonstration. The model is scripted: there is no language model, no key and no network.");
    out.line("Everything else is real: an agent in a process of its own, its tools, your permission, a terminal, a test.");
    out.line(format_args!("\nThe project is {}, and its test fails:\n", project.display()));
    let before = test(&project, out).await?;
    if before {
        return Err(Failure::runtime("the demo's test passes before anything was done"));
    }
    let watched = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match watched {
        true => chat(out, &project, &script).await?,
        false => play(out, &project, &script).await?,
    }
    out.line("\nThe same test, once more:\n");
    if !test(&project, out).await? {
        if watched {
            out.line("\nThe test still fails: the edit was not made. Next: `attache` for a chat with a real agent.");
            return Ok(());
        }
        return Err(Failure::runtime("the test still fails").hint("allow the edit and the command next time"));
    }
    out.line(format_args!(
        "\nGreen, after {:.1} seconds. Next: `attache` for a chat.",
        began.elapsed().as_secs_f32()
    ));
    Ok(())
}

/// Runs the project's test and shows what it says. Whether it passes.
async fn test(project: &Path, out: &Output) -> Result<bool> {
    let mut command = std::process::Command::new("sh");
    command.arg("test.sh").current_dir(project).stdin(std::process::Stdio::null());
    let run = blocking(move || command.output()).await.context("sh, which the demo needs")?;
    for line in String::from_utf8_lossy(&run.stdout).lines() {
        out.line(format_args!("    {line}"));
    }
    Ok(run.status.success())
}

/// Waits on a thread of its own, so that signals are handled meanwhile.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)?
}

/// Plays in the chat, where the person at the terminal answers.
async fn chat(out: &Output, project: &Path, script: &Path) -> Result<()> {
    out.line(
        "\nThe chat opens with a prompt. Answer its questions with arrows and Enter; Ctrl-D leaves it.\n",
    );
    wait_unanswered().await;
    let program = std::env::current_exe().context("the path of this program")?;
    // The agent's command line is split at blanks like a shell's.
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    let model = format!("script:{}", script.display());
    let agent = format!("{} agent --no-store --model {}", quoted(&program), quoted(Path::new(&model)));
    let mut command = std::process::Command::new(program);
    // Quiet: how to resume is not said of a conversation that is removed with the demo.
    command.arg("--cwd").arg(project).args(["--ask", "--format", "quiet", "--agent", &agent, "chat", PROMPT]);
    // The demo leaves nothing among the conversations of the user.
    command.env("ATTACHE_HOME", script.with_file_name("home"));
    let status = ChatProcess::start(command).context("the chat")?.wait().await.context("the chat")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(130) => Err(Failure { shown: true, ..Failure::interrupted() }),
        _ => Err(Failure { shown: true, ..Failure::runtime("the chat ended with an error") }),
    }
}

/// The process of the chat. It is ended and waited for when dropped, because it works in the demo's
/// directory.
struct ChatProcess {
    child: Arc<Mutex<Child>>,
    id: u32,
}

impl ChatProcess {
    fn start(mut command: std::process::Command) -> io::Result<ChatProcess> {
        let child = command.spawn()?;
        Ok(ChatProcess { id: child.id(), child: Arc::new(Mutex::new(child)) })
    }

    async fn wait(&self) -> io::Result<ExitStatus> {
        let child = Arc::clone(&self.child);
        blocking(move || child.lock().unwrap_or_else(PoisonError::into_inner).wait()).await
    }
}

impl Drop for ChatProcess {
    fn drop(&mut self) {
        // The thread that waits holds the lock until the process has ended.
        if let Ok(mut child) = self.child.try_lock()
            && matches!(child.try_wait(), Ok(Some(_)))
        {
            return;
        }
        if let Some(id) = i32::try_from(self.id).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

async fn play(out: &Output, project: &Path, script: &Path) -> Result<()> {
    let program = std::env::current_exe().context("the path of this program")?;
    let model = format!("script:{}", script.display());
    let agent = Command::new(&program).args(["agent", "--no-store", "--model", &model]);
    let link = Link::command(agent).context("starting the agent")?;
    let show = Printer::new(out.clone());
    // The jail of the host keeps the agent inside of the project; what else it does, it asks for.
    let host = Host::new(Policy::new(Mode::APPROVE_ALL));
    let watch = show.clone();
    let terminals = PtyTerminals::new(host.guard().clone())
        .sandbox(program, Vec::new())
        .on_event(move |event| watch.terminal(event));
    let client = Client::new()
        .info("attache-demo", env!("CARGO_PKG_VERSION"))
        .read_files(host.files())
        .write_files(host.files())
        .terminals(terminals);
    // Nothing is remembered, so only yes and no are offered.
    let client = remembers_answers(client);
    let agent = client.connect(link).await.map_err(Failure::runtime)?;
    let mut session = agent.new_session(project).await.map_err(Failure::runtime)?;
    show.prompt(PROMPT);
    let mut turn = session.prompt(PROMPT).await.map_err(Failure::runtime)?;
    while let Some(event) = turn.next().await.map_err(Failure::runtime)? {
        match event {
            Event::Permission(ask) => decide(out, &show, ask),
            event => show.event(event),
        }
    }
    show.end();
    agent.shutdown().await;
    Ok(())
}

/// Follows the policy that it prints, because it cannot ask.
fn decide(out: &Output, show: &Printer, ask: PermissionAsk) {
    show.question(ask.tool_call());
    let kind = ask.tool_call().kind;
    let allowed = matches!(kind, Some(ToolKind::Edit | ToolKind::Execute));
    out.line(
        "? not a terminal, so the demo's policy answers: edits and tests of the demo's own project, once",
    );
    out.line(if allowed { "  allowed" } else { "  rejected" });
    ask.choose_kind(match allowed {
        true => PermissionOptionKind::AllowOnce,
        false => PermissionOptionKind::RejectOnce,
    });
}
