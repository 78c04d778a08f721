//! Input besides the session's own events, and the decision when to draw.
//!
//! No clock ticks: it sleeps until an event arrives, until a change is due on the screen, or, while
//! a spinner is visible, until its next picture.

use std::io::{self, Stdout};
use std::time::{Duration, Instant};

use attache::client::{ConnectionEvent, ConnectionEvents};
use attache::wire::v1::SessionInfo;
use crossterm::event::{Event as TermEvent, KeyEventKind};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::app::{App, Effect};
use super::ask::Question;
use super::ask::choice::Choice;
use super::traffic::Traffic;
use super::transcript::Severity;
use super::undo::Applied;
use crate::client_services::GuardEvent;
use crate::client_services::TerminalOutputs;
use crate::run::{ChatCommand, Setting};
use attache_term::device::{Keys, Raw};
use attache_term::screen::Screen;
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Shortest time between two pictures: streams arrive faster than people read.
const FRAME: Duration = Duration::from_millis(33);
const BEAT: Duration = Duration::from_millis(120);

/// The result of a task that ran beside the chat.
#[derive(Debug)]
pub(crate) enum TaskResult {
    Listed(attache::Result<Vec<SessionInfo>>),
    /// A setting, and the text for the user.
    Set(attache::Result<(Setting, String)>),
    Browsed(Result<(), String>),
    /// The files of the project, for `@`.
    Files(Vec<String>),
    /// Something that a task has done.
    Apply(Applied),
}

#[derive(Debug)]
pub(crate) enum UiEvent {
    Terminal(TermEvent),
    Guard(GuardEvent),
    Connection(ConnectionEvent),
    TaskResult(TaskResult),
    /// A client terminal has new output.
    TerminalOutput,
    Command(ChatCommand),
    /// The first question was withdrawn.
    Withdrawn,
    Expired,
    /// The time limit of the turn is reached.
    TimeUp,
    /// The program was stopped and continues.
    Continued,
    /// The terminal has another size.
    Resized,
    /// The program was interrupted.
    Interrupted,
    /// The program must end.
    Ended,
}

pub(crate) struct Ui {
    pub(crate) keys: Keys,
    pub(crate) guard: mpsc::Receiver<GuardEvent>,
    pub(crate) connection: Option<ConnectionEvents>,
    pub(crate) terminal_outputs: TerminalOutputs,
    pub(crate) task_results: (mpsc::Sender<TaskResult>, mpsc::Receiver<TaskResult>),
    pub(crate) traffic: Option<Traffic>,
    /// Commands of other processes for a saved session.
    pub(crate) commands: Option<mpsc::Receiver<ChatCommand>>,
    pub(crate) signals: Signals,
    pub(crate) screen: Screen<Stdout>,
    pub(crate) dirty: bool,
    pub(crate) drawn: Instant,
    /// The time limit of the running turn.
    pub(crate) deadline: Option<Instant>,
    /// Whether the next interrupt was meant for a program that had the terminal.
    pub(crate) interrupt_expected: bool,
    /// Restores the terminal on drop.
    pub(crate) raw: Raw,
}

impl Ui {
    /// Waits for the next event and draws meanwhile. Cancel-safe.
    pub(crate) async fn next(&mut self, app: &mut App) -> io::Result<UiEvent> {
        loop {
            let now = Instant::now();
            if self.dirty && now >= self.drawn + FRAME {
                self.draw(app)?;
            }
            let frame = if self.dirty {
                Some(self.drawn + FRAME)
            } else {
                app.animated().then_some(self.drawn + BEAT)
            };
            let (expiry, quit_expiry) = (app.expiry(), app.quit_expiry());
            let ready = app.answers_at().filter(|ready| *ready > now);
            tokio::select! {
                biased;
                event = self.signals.next() => return Ok(event),
                event = self.keys.next() => return Ok(event.map_or(UiEvent::Ended, UiEvent::Terminal)),
                Some(result) = self.task_results.1.recv() => return Ok(UiEvent::TaskResult(result)),
                () = withdrawn(app.questions.front_mut()) => return Ok(UiEvent::Withdrawn),
                () = at(expiry) => return Ok(UiEvent::Expired),
                () = at(ready) => self.dirty = true,
                () = at(quit_expiry) => {
                    app.forget_quit();
                    self.dirty = true;
                }
                () = at(self.deadline) => return Ok(UiEvent::TimeUp),
                Some(event) = self.guard.recv() => return Ok(UiEvent::Guard(event)),
                Some(event) = next_connection_event(&mut self.connection) => return Ok(UiEvent::Connection(event)),
                Some(command) = next_command(&mut self.commands) => return Ok(UiEvent::Command(command)),
                traffic = moved(&mut self.traffic) => {
                    traffic.take();
                    if app.verbose {
                        app.wire.clone_from(&traffic.last);
                        self.dirty = true;
                    }
                }
                () = self.terminal_outputs.changed() => return Ok(UiEvent::TerminalOutput),
                () = at(frame) => {
                    if !self.dirty {
                        app.canvas.beat += 1;
                        self.dirty = true;
                    }
                }
            }
        }
    }

    pub(crate) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        self.drawn = Instant::now();
        self.dirty = false;
        if let Some(text) = app.copied.take() {
            self.screen.copy(&BASE64_STANDARD.encode(text))?;
        }
        self.screen.draw(app.frame(self.drawn))
    }

    /// Handles an event. Returns `true` if the program must end.
    pub(crate) fn happened(&mut self, event: UiEvent, app: &mut App) -> bool {
        self.dirty = true;
        match event {
            UiEvent::Terminal(TermEvent::Key(key)) if key.kind != KeyEventKind::Release => {
                app.key(key);
                if std::mem::take(&mut app.suspend_requested) {
                    self.suspend(app);
                }
            }
            UiEvent::Terminal(TermEvent::Paste(text)) => app.paste(&text),
            UiEvent::Terminal(TermEvent::Resize(columns, rows)) => Self::resize(columns, rows, app),
            UiEvent::Terminal(_) => {}
            UiEvent::Guard(GuardEvent::Question(question, reply)) => {
                app.ask(Question::Choice(Box::new(Choice::guard(*question, reply))));
            }
            UiEvent::Guard(GuardEvent::Notice(notice)) => app.guard_notice(&notice),
            UiEvent::Connection(event) => news(event, app),
            UiEvent::TaskResult(result) => task_result(result, app),
            UiEvent::Command(ChatCommand::Cancel) => app.cancel(),
            UiEvent::Command(ChatCommand::Leave) => {
                app.notice(Severity::Warning, "the session was closed by another command");
                app.effects.push_back(Effect::Quit(0));
            }
            UiEvent::TerminalOutput | UiEvent::TimeUp => {}
            UiEvent::Withdrawn => app.prune(),
            UiEvent::Expired => app.expire(),
            UiEvent::Continued => self.continued(app),
            UiEvent::Resized => Self::measure(app),
            UiEvent::Interrupted => return !std::mem::take(&mut self.interrupt_expected),
            UiEvent::Ended => return true,
        }
        false
    }

    /// Stops until the shell continues the job.
    fn suspend(&mut self, app: &mut App) {
        // A terminal that cannot be restored stays raw.
        let _ = self.screen.leave().and_then(|()| self.raw.suspend());
        self.continued(app);
    }

    /// Takes the terminal again after another program had it.
    pub(super) fn continued(&mut self, app: &mut App) {
        // In the background the system stops us again, and this runs again in the foreground.
        let _ = self.raw.again();
        Self::measure(app);
        app.clear = true;
        self.dirty = true;
    }

    pub(crate) fn resize(columns: u16, rows: u16, app: &mut App) {
        let (columns, rows) = (usable(usize::from(columns).max(1)), usize::from(rows).max(1));
        if (app.canvas.columns, app.canvas.rows) != (columns, rows) {
            (app.canvas.columns, app.canvas.rows) = (columns, rows);
            app.clear = true;
        }
    }

    fn measure(app: &mut App) {
        if let Ok((columns, rows)) = crossterm::terminal::size() {
            Self::resize(columns, rows, app);
        }
    }
}

/// Returns the columns to use: writing to the last one makes some terminals wrap.
pub(crate) fn usable(columns: usize) -> usize {
    columns.saturating_sub(1).max(1)
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

async fn withdrawn(question: Option<&mut Question>) {
    match question {
        Some(question) => question.withdrawn().await,
        None => std::future::pending().await,
    }
}

async fn next_command(commands: &mut Option<mpsc::Receiver<ChatCommand>>) -> Option<ChatCommand> {
    match commands {
        Some(commands) => commands.recv().await,
        None => std::future::pending().await,
    }
}

async fn moved(traffic: &mut Option<Traffic>) -> &mut Traffic {
    match traffic {
        Some(traffic) => {
            traffic.changed().await;
            traffic
        }
        None => std::future::pending().await,
    }
}

async fn next_connection_event(events: &mut Option<ConnectionEvents>) -> Option<ConnectionEvent> {
    match events {
        Some(events) => match events.next().await {
            Some(event) => Some(event),
            // The connection is closed; the session reports it too.
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

fn news(event: ConnectionEvent, app: &mut App) {
    match event {
        ConnectionEvent::Elicitation(ask) => app.elicitation(ask),
        ConnectionEvent::ElicitationComplete(id) => app.visited(&id),
        ConnectionEvent::Noise { line, .. }
            if !app.verbose && !std::mem::replace(&mut app.noise_shown, true) =>
        {
            let line = attache_term::render::text::inline(&line, app.canvas.look);
            let text = format!("the agent prints lines that are no messages (-v shows them all): {line}");
            app.notice(Severity::Warning, text);
        }
        // Messages for other sessions are not part of the conversation.
        _ if !app.verbose => {}
        ConnectionEvent::Noise { line, why } => {
            app.notice(Severity::Info, format!("invalid message: {line} ({why})"))
        }
        ConnectionEvent::Notification { method, .. } => {
            app.notice(Severity::Info, format!("unknown notification: {method}"));
        }
        ConnectionEvent::Stray { session_id, .. } => {
            app.notice(Severity::Info, format!("update for another session: {session_id}"));
        }
        _ => {}
    }
}

fn task_result(result: TaskResult, app: &mut App) {
    match result {
        TaskResult::Listed(Ok(sessions)) => app.listed(sessions),
        TaskResult::Set(Ok((_, text))) => app.notice(Severity::Info, text),
        TaskResult::Listed(Err(error)) | TaskResult::Set(Err(error)) => {
            app.notice(Severity::Error, crate::error::Failure::from(error).message)
        }
        TaskResult::Apply(applied) => applied.apply(app),
        TaskResult::Browsed(Ok(())) => {}
        TaskResult::Files(files) => app.files_found(files),
        TaskResult::Browsed(Err(error)) => {
            app.notice(
                Severity::Error,
                format!("could not start the browser ({error}); open the page yourself"),
            );
        }
    }
}

/// Signals that end the program, and the one that continues it.
pub(crate) struct Signals {
    #[cfg(unix)]
    all: [(tokio::signal::unix::Signal, fn() -> UiEvent); 5],
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let continued = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        Ok(Signals {
            all: [
                (signal(SignalKind::terminate())?, || UiEvent::Ended),
                (signal(SignalKind::hangup())?, || UiEvent::Ended),
                (signal(SignalKind::interrupt())?, || UiEvent::Interrupted),
                (signal(continued)?, || UiEvent::Continued),
                (signal(SignalKind::window_change())?, || UiEvent::Resized),
            ],
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> UiEvent {
        use std::task::Poll;
        std::future::poll_fn(|cx| {
            let mut signals = self.all.iter_mut();
            match signals.find_map(|(signal, event)| signal.poll_recv(cx).is_ready().then_some(event)) {
                Some(event) => Poll::Ready(event()),
                None => Poll::Pending,
            }
        })
        .await
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> UiEvent {
        std::future::pending().await
    }
}
