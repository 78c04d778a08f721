//! Programs that get the terminal for a while: an editor for the prompt, `!` commands, the login of
//! an agent.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use attache_conn::private;
use attache_term::render::sgr::coloured;
use attache_term::render::style::{Line, Style};
use attache_term::render::text::{Look, clean, wrap_hard};
use parking_lot::Mutex;

use super::app::{App, Effect, OpenTarget, Phase};
use super::transcript::Severity;
use super::ui::{Ui, UiEvent};
use super::undo::Carried;

/// Bytes of output that go to the agent: the end of it.
const MAX_SHARED: usize = 32 << 10;
/// Lines of output on the screen.
const SHOWN: usize = 40;
/// How long output is awaited after the end of its command.
const LINGER: Duration = Duration::from_millis(500);

/// A program that needs the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Foreground {
    /// The user's editor with the text of the prompt.
    Editor,
    /// A command of the user in a shell.
    Shell(String),
    /// The same; its output goes along with the next prompt.
    Share(String),
    /// This program with other arguments; the agent is restarted after it.
    Login(Vec<String>),
}

impl Ui {
    /// Gives the terminal to a program and waits for its end. Agents keep working meanwhile.
    pub(crate) async fn foreground(&mut self, job: Foreground, app: &mut App) -> io::Result<()> {
        match job {
            Foreground::Editor => self.edit(app).await,
            Foreground::Shell(line) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &line]).current_dir(&app.canvas.cwd);
                match self.run_program(shell, app).await {
                    Ok(status) if status.success() => {}
                    Ok(status) => {
                        app.notice(Severity::Warning, format!("the command failed ({})", ended(status)))
                    }
                    Err(error) => app.notice(Severity::Error, format!("cannot start a shell: {error}")),
                }
                Ok(())
            }
            Foreground::Share(line) => {
                let mut shell = Command::new("sh");
                // The brace of its own line stays out of a comment at the end of the command.
                shell.args(["-c", "{ eval \"$1\"\n} 2>&1", "sh", &line]).current_dir(&app.canvas.cwd);
                shell.stdout(Stdio::piped());
                match self.run_captured(shell, app).await {
                    Ok((status, output)) => app.share(&line, status, &output),
                    Err(error) => app.notice(Severity::Error, format!("cannot start a shell: {error}")),
                }
                Ok(())
            }
            Foreground::Login(args) => {
                let mut program = Command::new(std::env::current_exe()?);
                program.args(args);
                match self.run_program(program, app).await {
                    Ok(status) if !status.success() => app.notice(Severity::Warning, "not logged in"),
                    Ok(_) if app.phase == Phase::Idle => {
                        app.effects.push_back(Effect::Open(OpenTarget::Restart))
                    }
                    Ok(_) => {}
                    Err(error) => app.notice(Severity::Error, format!("cannot start the login: {error}")),
                }
                Ok(())
            }
        }
    }

    /// Opens the text of the prompt in the user's editor and takes it back when the editor ends
    /// well.
    async fn edit(&mut self, app: &mut App) -> io::Result<()> {
        app.editor.expand();
        let directory = private::TempDir::new("attache-prompt")?;
        let file = directory.path().join("prompt.md");
        std::fs::write(&file, app.editor.text())?;
        let mut program = crate::runtime::editor(&file);
        program.current_dir(&app.canvas.cwd);
        match self.run_program(program, app).await {
            Ok(status) if status.success() => {
                let text = std::fs::read_to_string(&file)?;
                app.editor.replace(text.trim_end_matches('\n'));
            }
            Ok(status) => {
                app.notice(
                    Severity::Warning,
                    format!("the editor failed ({}); the text is unchanged", ended(status)),
                );
            }
            Err(error) => {
                app.notice(Severity::Error, format!("cannot start the editor: {error}; set $EDITOR"))
            }
        }
        Ok(())
    }

    async fn run_program(&mut self, program: Command, app: &mut App) -> io::Result<ExitStatus> {
        self.run_captured(program, app).await.map(|(status, _)| status)
    }

    /// Runs a program. If its output is a pipe, the end of it is returned.
    async fn run_captured(
        &mut self,
        mut program: Command,
        app: &mut App,
    ) -> io::Result<(ExitStatus, Vec<u8>)> {
        self.keys.pause()?;
        let result = async {
            // The command stands above its output.
            self.draw(app)?;
            self.screen.leave()?;
            self.raw.release();
            let mut child = program.spawn()?;
            let id = child.id();
            let copy = child.stdout.take().map(Copied::start);
            let mut end = tokio::task::spawn_blocking(move || child.wait());
            let mut interrupted = false;
            loop {
                tokio::select! {
                    biased;
                    event = self.signals.next() => match event {
                        // Ctrl-C is for the program that has the terminal.
                        UiEvent::Interrupted => interrupted = true,
                        // A signal that ends us ends the program too.
                        UiEvent::Ended => {
                            terminate(id);
                            app.effects.push_back(Effect::Quit(130));
                        }
                        _ => {}
                    },
                    status = &mut end => {
                        let status = status.map_err(io::Error::other)??;
                        // Ours may arrive later than the end of the program.
                        self.interrupt_expected = is_interrupted(status) && !interrupted;
                        let output = copy.map_or_else(Vec::new, Copied::finish);
                        return Ok((status, output));
                    }
                }
            }
        }
        .await;
        self.keys.resume();
        self.continued(app);
        // What the program printed stays above the prompt.
        app.clear = false;
        result
    }
}

/// The end of a program's output.
struct Copied {
    kept: Arc<Mutex<VecDeque<u8>>>,
    done: mpsc::Receiver<()>,
    stopped: Arc<AtomicBool>,
}

impl Copied {
    fn start(mut output: impl Read + Send + 'static) -> Copied {
        let (kept, stopped) = (Arc::new(Mutex::new(VecDeque::new())), Arc::new(AtomicBool::new(false)));
        let (finished, done) = mpsc::channel::<()>();
        let (keep, stop) = (kept.clone(), stopped.clone());
        std::thread::spawn(move || {
            // Dropped with the thread, which is what the receiver waits for.
            let _finished = finished;
            let mut bytes = [0; 8192];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let bytes = bytes.get(..count).unwrap_or_default();
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let mut kept = keep.lock();
                kept.extend(bytes);
                let over = kept.len().saturating_sub(MAX_SHARED);
                kept.drain(..over);
            }
        });
        Copied { kept, done, stopped }
    }

    /// Returns what was printed. A descendant that still runs does not hold it up.
    fn finish(self) -> Vec<u8> {
        let _ = self.done.recv_timeout(LINGER);
        self.stopped.store(true, Ordering::Relaxed);
        self.kept.lock().iter().copied().collect()
    }
}

impl App {
    /// Shows what a command printed and keeps it for the next prompt.
    fn share(&mut self, line: &str, status: ExitStatus, output: &[u8]) {
        let output = String::from_utf8_lossy(output);
        let count = output.lines().count();
        let above = count.saturating_sub(SHOWN);
        let mut lines = Vec::new();
        if above > 0 {
            lines.push(Line::styled(
                format!("({} above)", crate::output::count(above as u64, "line")),
                Style::DIM,
            ));
        }
        for line in output.lines().skip(above) {
            let line = coloured(line, Style::PLAIN, self.canvas.look);
            lines.extend(wrap_hard(&line, self.canvas.columns, &Line::new(), &Line::new()));
        }
        self.aside(lines);
        let text = clean(&output, Look { colours: false, unicode: true }).into_owned();
        let lines = crate::output::count(count as u64, "line");
        let how = if status.success() { String::new() } else { format!(" ({})", ended(status)) };
        let cut = if output.len() >= MAX_SHARED { " Only its end is here." } else { "" };
        self.carried.push(Carried {
            label: format!("{lines} of output of `{line}`"),
            text: format!("The user ran `{line}`{how}. Its output follows.{cut}\n\n{text}"),
        });
    }
}

#[cfg(unix)]
fn terminate(id: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    // It may have ended already.
    let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
}

#[cfg(not(unix))]
fn terminate(_: u32) {}

fn is_interrupted(status: ExitStatus) -> bool {
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(rustix::process::Signal::INT.as_raw()) {
        return true;
    }
    status.code() == Some(130)
}

fn ended(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or("no exit code".to_owned(), |code| format!("exit code {code}"))
}
