//! Shows the messages of a turn and asks for permission.

use std::future::Future;
use std::io::{self, IsTerminal as _};
use std::pin::pin;

use super::ask::{Answered, Ask};
use super::asker::Asker;
#[cfg(unix)]
use super::protocol::Reply;
use super::spinner::Spinner;
use crate::error::Failure;
use crate::forms::{self, Person};
use crate::log::WireLog;
use crate::output::{Mark, Output, TurnRenderer};
use crate::session_store::Recorder;
use crate::wire::{Lines, Wire};
use attache::Flow;

/// The destination of the messages of a turn.
pub(crate) enum Renderer {
    /// Standard output of this process.
    Local(Box<Local>),
    /// Another process.
    #[cfg(unix)]
    Remote(super::socket::RemoteRenderer),
    /// Collects the answer.
    Summary(Box<super::compare::Summary>),
    /// Drops everything.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no owner process here"))]
    Discard,
}

/// This terminal.
pub(crate) struct Local {
    pub(crate) screen: TurnRenderer,
    log: WireLog,
    asker: Option<Asker>,
    /// Only JSON is printed.
    strict: bool,
    /// Turns until something is written.
    spinner: Option<Spinner>,
}

impl Local {
    pub(crate) fn new(output: &Output, log: WireLog) -> Local {
        let attended = io::stdin().is_terminal() && output.stderr.terminal;
        Local {
            screen: TurnRenderer::new(output),
            log,
            asker: attended.then(|| Asker::new(output)),
            strict: output.strict,
            spinner: None,
        }
    }

    /// Whether a user can be asked.
    pub(crate) fn is_attended(&self) -> bool {
        self.asker.is_some()
    }

    /// Takes a message between agent and client.
    pub(crate) fn line(&mut self, flow: Flow, line: &[u8]) {
        self.log.line(flow, line);
        self.screen.line(flow, line);
    }

    /// Writes the output of the screen and waits for a slow reader. After an error every later call
    /// fails, too.
    pub(crate) async fn write(&mut self) -> io::Result<()> {
        if !self.screen.out.is_empty() {
            self.spinner = None;
        }
        self.screen.out.flush().await
    }

    /// Shows a spinner until something is written.
    pub(super) fn wait_for(&mut self, spinner: Option<Spinner>) {
        self.spinner = spinner;
    }

    /// Turns the spinner once; never returns without one. Cancel-safe.
    pub(super) async fn turn(&mut self) {
        match &mut self.spinner {
            Some(spinner) => spinner.turn().await,
            None => std::future::pending().await,
        }
    }

    /// Asks the person at the terminal. `None` if there is none, or no answer.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Option<Answered> {
        self.spinner = None;
        self.screen.finish();
        // The question must not precede the messages that led to it.
        let _ = self.write().await;
        self.asker.as_mut()?.ask(ask, &mut self.screen.out.stderr).await
    }

    /// Waits until a question can be read.
    pub(crate) async fn pause(&mut self) {
        self.spinner = None;
        let _ = self.write().await;
        if let Some(asker) = &mut self.asker {
            asker.pause().await;
        }
    }

    /// Asks for a line. `None` without a user, or at the end of the input.
    pub(crate) async fn line_for(&mut self, question: &str) -> Option<String> {
        self.spinner = None;
        self.screen.finish();
        let _ = self.write().await;
        self.asker.as_mut()?.line_for(question, &mut self.screen.out.stderr).await
    }

    /// Shows a line before a question.
    pub(crate) async fn tell(&mut self, text: &str) {
        self.spinner = None;
        self.screen.finish();
        self.screen.out.stderr.one_line(text);
        let _ = self.write().await;
    }

    /// Opens a page that the user has agreed to.
    pub(crate) async fn open(&mut self, url: &str) {
        if let Err(program) = forms::open(url) {
            self.tell(&format!("`{program}` cannot be started; open the page yourself")).await;
        }
    }

    /// Shows a note in every format, on stderr.
    pub(crate) async fn note(&mut self, text: &str) {
        if !self.strict {
            self.screen.out.stderr.line(&Mark::Note.then(text));
            let _ = self.write().await;
        }
    }

    /// Shows a failure.
    pub(crate) async fn failure(&mut self, failure: &mut Failure) {
        self.spinner = None;
        self.screen.failure(failure);
        let _ = self.write().await;
    }

    /// The turn is over. An error means that not all of it could be written.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        self.spinner = None;
        self.screen.finish();
        self.write().await
    }
}

impl Renderer {
    /// Whether a user can be asked.
    pub(crate) fn is_attended(&self) -> bool {
        match self {
            Renderer::Local(local) => local.is_attended(),
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.is_attended(),
            Renderer::Summary(_) | Renderer::Discard => false,
        }
    }

    /// Shows a spinner on this terminal until something is written.
    pub(super) fn wait_for(&mut self, spinner: Option<Spinner>) {
        if let Renderer::Local(local) = self {
            local.wait_for(spinner);
        }
    }

    /// Turns the spinner once; never returns without one. Cancel-safe.
    pub(super) async fn turn(&mut self) {
        match self {
            Renderer::Local(local) => local.turn().await,
            _ => std::future::pending().await,
        }
    }

    /// Shows lines. An error means that the reader is gone.
    async fn show(&mut self, lines: &Lines) -> io::Result<()> {
        match self {
            Renderer::Local(local) => {
                for (flow, line) in lines.iter() {
                    local.line(flow, line);
                }
                local.write().await
            }
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.lines(lines).await,
            Renderer::Summary(summary) => {
                summary.lines(lines);
                Ok(())
            }
            Renderer::Discard => Ok(()),
        }
    }

    /// Asks for permission. `None` without an answer.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Option<Answered> {
        match self {
            Renderer::Local(local) => local.ask(ask).await,
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.ask(ask).await,
            Renderer::Summary(_) | Renderer::Discard => None,
        }
    }

    /// Shows a note in every format.
    pub(crate) async fn note(&mut self, text: &str) {
        match self {
            Renderer::Local(local) => local.note(text).await,
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.send(Reply::Note(text.to_owned())).await,
            Renderer::Summary(_) | Renderer::Discard => {}
        }
    }

    /// Shows a decision about a permission.
    pub(crate) async fn permission(&mut self, notice: &str) {
        match self {
            Renderer::Local(local) => {
                local.screen.permission(notice);
                let _ = local.write().await;
            }
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.send(Reply::Permission(notice.to_owned())).await,
            Renderer::Summary(_) | Renderer::Discard => {}
        }
    }
}

impl Person for Renderer {
    async fn tell(&mut self, text: &str) {
        match self {
            Renderer::Local(local) => local.tell(text).await,
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.send(Reply::Tell(text.to_owned())).await,
            Renderer::Summary(_) | Renderer::Discard => {}
        }
    }

    async fn pause(&mut self) {
        match self {
            Renderer::Local(local) => local.pause().await,
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.send(Reply::Pause).await,
            Renderer::Summary(_) | Renderer::Discard => {}
        }
    }

    async fn line(&mut self, question: &str) -> Option<String> {
        match self {
            Renderer::Local(local) => local.line_for(question).await,
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.line_for(question).await,
            Renderer::Summary(_) | Renderer::Discard => None,
        }
    }

    async fn open(&mut self, url: &str) {
        match self {
            Renderer::Local(local) => local.open(url).await,
            #[cfg(unix)]
            Renderer::Remote(remote) => remote.send(Reply::Open(url.to_owned())).await,
            Renderer::Summary(_) | Renderer::Discard => {}
        }
    }
}

/// Lines are written together until there are this many bytes of them.
const MUCH: usize = 32 << 10;

/// A renderer, and the recorder of the history.
pub(crate) struct View<'a> {
    pub(crate) renderer: &'a mut Renderer,
    pub(crate) recorder: Option<&'a mut Recorder>,
    pub(crate) wire: Wire,
    lines: Lines,
}

impl<'a> View<'a> {
    pub(crate) fn new(
        renderer: &'a mut Renderer,
        recorder: Option<&'a mut Recorder>,
        wire: Wire,
    ) -> View<'a> {
        View { renderer, recorder, wire, lines: Lines::default() }
    }

    /// Shows the buffered lines.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        self.wire.take(&mut self.lines);
        if self.lines.is_empty() {
            return Ok(());
        }
        if let Some(recorder) = &mut self.recorder {
            for (flow, line) in self.lines.iter() {
                recorder.line(flow, line, crate::time::now);
            }
            // A full disk must not end the turn; the history is then not complete.
            let _ = recorder.flush();
        }
        let shown = self.renderer.show(&self.lines).await;
        self.lines.clear();
        shown
    }

    /// Shows the buffered lines if there are many; few are shown when there is nothing else to do.
    pub(crate) async fn drain_if_much(&mut self) -> io::Result<()> {
        if self.wire.gathered() < MUCH { Ok(()) } else { self.drain().await }
    }

    /// Shows lines while a future runs.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let wire = self.wire.clone();
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    let _ = self.drain().await;
                    return done;
                }
                () = wire.changed() => {
                    let _ = self.drain().await;
                }
            }
        }
    }
}
