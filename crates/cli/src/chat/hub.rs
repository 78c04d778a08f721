//! Everything that can happen besides the session's own events, and when the screen is drawn.
//!
//! There is no clock that ticks: the hub sleeps until something happens, until a change is due on the screen, or, while a
//! spinner is to be seen, until its next picture.

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
use crate::client_services::GuardEvent;
use crate::client_services::TerminalOutputs;
use crate::run::{ChatCommand, Setting};
use attache_term::device::Raw;
use attache_term::screen::Screen;

/// No more pictures than this: streams come faster than anybody reads.
const FRAME: Duration = Duration::from_millis(33);
const BEAT: Duration = Duration::from_millis(120);

/// What something that ran beside the chat came to.
#[derive(Debug)]
pub(crate) enum Outcome {
    Listed(attache::Result<Vec<SessionInfo>>),
    /// Something was set; the text says so.
    Set(attache::Result<(Setting, String)>),
    Browsed(Result<(), String>),
}

#[derive(Debug)]
pub(crate) enum Happening {
    Terminal(TermEvent),
    Guard(GuardEvent),
    News(ConnectionEvent),
    Outcome(Outcome),
    /// A terminal that is lent has something new.
    Printed,
    Wished(ChatCommand),
    /// The question in front has no use any more.
    Withdrawn,
    Expired,
    /// The budget's time is over.
    TimeUp,
    /// The program was stopped, and goes on.
    Continued,
    /// The program is to end.
    Ended,
}

pub(crate) struct Hub {
    pub(crate) keys: mpsc::Receiver<TermEvent>,
    pub(crate) guard: mpsc::Receiver<GuardEvent>,
    pub(crate) news: Option<ConnectionEvents>,
    pub(crate) terminal_outputs: TerminalOutputs,
    pub(crate) outcomes: (mpsc::Sender<Outcome>, mpsc::Receiver<Outcome>),
    pub(crate) traffic: Option<Traffic>,
    /// What other commands want, if the session is one that they know.
    pub(crate) wishes: Option<mpsc::Receiver<ChatCommand>>,
    pub(crate) signals: Signals,
    pub(crate) screen: Screen<Stdout>,
    pub(crate) dirty: bool,
    pub(crate) drawn: Instant,
    /// When the time of the turn that runs is over.
    pub(crate) deadline: Option<Instant>,
    /// The terminal is given back when the hub goes.
    pub(crate) raw: Raw,
}

impl Hub {
    /// Waits for the next thing. Nothing is lost if this is dropped.
    pub(crate) async fn next(&mut self, app: &mut App) -> io::Result<Happening> {
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
            let expiry = app.expiry();
            let ready = app.answers_at().filter(|ready| *ready > now);
            tokio::select! {
                biased;
                happening = self.signals.next() => return Ok(happening),
                event = self.keys.recv() => return Ok(event.map_or(Happening::Ended, Happening::Terminal)),
                Some(outcome) = self.outcomes.1.recv() => return Ok(Happening::Outcome(outcome)),
                () = withdrawn(app.questions.front_mut()) => return Ok(Happening::Withdrawn),
                () = at(expiry) => return Ok(Happening::Expired),
                () = at(ready) => self.dirty = true,
                () = at(self.deadline) => return Ok(Happening::TimeUp),
                Some(event) = self.guard.recv() => return Ok(Happening::Guard(event)),
                Some(event) = next_news(&mut self.news) => return Ok(Happening::News(event)),
                Some(wish) = next_wish(&mut self.wishes) => return Ok(Happening::Wished(wish)),
                traffic = moved(&mut self.traffic) => {
                    traffic.take();
                    if app.verbose {
                        app.wire.clone_from(&traffic.last);
                        self.dirty = true;
                    }
                }
                () = self.terminal_outputs.changed() => return Ok(Happening::Printed),
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
        self.screen.draw(app.frame(self.drawn))
    }

    /// Takes in what happened. `true` if the program is to end.
    pub(crate) fn happened(&mut self, happening: Happening, app: &mut App) -> bool {
        self.dirty = true;
        match happening {
            Happening::Terminal(TermEvent::Key(key)) if key.kind != KeyEventKind::Release => {
                app.key(key);
                if std::mem::take(&mut app.away) {
                    self.suspend(app);
                }
            }
            Happening::Terminal(TermEvent::Paste(text)) => app.paste(&text),
            Happening::Terminal(TermEvent::Resize(columns, rows)) => Self::resize(columns, rows, app),
            Happening::Terminal(_) => {}
            Happening::Guard(GuardEvent::Question(question, reply)) => {
                app.ask(Question::Choice(Box::new(Choice::guard(*question, reply))));
            }
            Happening::Guard(GuardEvent::Notice(notice)) => app.guard_notice(&notice),
            Happening::News(event) => news(event, app),
            Happening::Outcome(outcome) => outcome_of(outcome, app),
            Happening::Wished(ChatCommand::Cancel) => app.cancel(),
            Happening::Wished(ChatCommand::Leave) => {
                app.notice(Severity::Warning, "the session was closed by another command");
                app.effects.push_back(Effect::Quit(0));
            }
            Happening::Printed | Happening::TimeUp => {}
            Happening::Withdrawn => app.prune(),
            Happening::Expired => app.expire(),
            Happening::Continued => self.continued(app),
            Happening::Ended => return true,
        }
        false
    }

    /// Stops until somebody continues the job.
    fn suspend(&mut self, app: &mut App) {
        // A terminal that cannot be given back is kept.
        let _ = self.screen.leave().and_then(|()| self.raw.suspend());
        self.continued(app);
    }

    /// Somebody else had the terminal.
    fn continued(&mut self, app: &mut App) {
        // In the background the terminal is not ours; the system stops us again, and we are here again when it is.
        let _ = self.raw.again();
        if let Ok((columns, rows)) = crossterm::terminal::size() {
            Self::resize(columns, rows, app);
        }
        app.anew = true;
        self.dirty = true;
    }

    pub(crate) fn resize(columns: u16, rows: u16, app: &mut App) {
        let (columns, rows) = (usize::from(columns).max(1), usize::from(rows).max(1));
        app.canvas.columns = usable(columns);
        app.canvas.rows = rows;
        app.anew = true;
    }
}

/// The last column stays free: what is written there makes some terminals wrap.
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

async fn next_wish(wishes: &mut Option<mpsc::Receiver<ChatCommand>>) -> Option<ChatCommand> {
    match wishes {
        Some(wishes) => wishes.recv().await,
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

async fn next_news(events: &mut Option<ConnectionEvents>) -> Option<ConnectionEvent> {
    match events {
        Some(events) => match events.next().await {
            Some(event) => Some(event),
            // The connection is over; the session says so too.
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

fn news(event: ConnectionEvent, app: &mut App) {
    match event {
        ConnectionEvent::Elicitation(ask) => app.elicitation(ask),
        ConnectionEvent::ElicitationComplete(id) => app.visited(&id),
        // Lines on the wrong stream and messages of other sessions are no part of the conversation.
        _ if !app.verbose => {}
        ConnectionEvent::Noise { line, why } => {
            app.notice(Severity::Info, format!("not a message: {line} ({why})"))
        }
        ConnectionEvent::Notification { method, .. } => {
            app.notice(Severity::Info, format!("a notification that is not known: {method}"));
        }
        ConnectionEvent::Stray { session_id, .. } => {
            app.notice(Severity::Info, format!("an update of another session: {session_id}"));
        }
        _ => {}
    }
}

fn outcome_of(outcome: Outcome, app: &mut App) {
    match outcome {
        Outcome::Listed(Ok(sessions)) => app.listed(sessions),
        Outcome::Set(Ok((_, text))) => app.notice(Severity::Info, text),
        Outcome::Listed(Err(error)) | Outcome::Set(Err(error)) => {
            app.notice(Severity::Error, crate::error::Failure::from(error).message)
        }
        Outcome::Browsed(Ok(())) => {}
        Outcome::Browsed(Err(error)) => {
            app.notice(
                Severity::Error,
                format!("the browser could not be started ({error}); open the page yourself"),
            );
        }
    }
}

/// Signals that end the program in good order, and the one that continues it.
pub(crate) struct Signals {
    #[cfg(unix)]
    all: Vec<tokio::signal::unix::Signal>,
    #[cfg(unix)]
    continued: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let continued = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        Ok(Signals {
            all: kinds.into_iter().map(signal).collect::<io::Result<_>>()?,
            continued: signal(continued)?,
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(unix)]
    async fn next(&mut self) -> Happening {
        use std::task::Poll;
        std::future::poll_fn(|cx| {
            if self.all.iter_mut().any(|signal| signal.poll_recv(cx).is_ready()) {
                return Poll::Ready(Happening::Ended);
            }
            self.continued.poll_recv(cx).map(|_| Happening::Continued)
        })
        .await
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Happening {
        std::future::pending().await
    }
}
