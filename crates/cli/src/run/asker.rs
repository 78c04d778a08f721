//! Asks the user at the terminal of a command: with keys, as the chat does, or line by line where
//! keys cannot be read.

use attache_term::answers::Outcome;
use attache_term::device;
use attache_term::dialog::{Dialog, DialogKeys, Input};
use attache_term::render::style::{Colour, Line, Style};
use tokio::time::{Instant, sleep_until};

use super::ask::{Answered, Ask, answers};
use crate::output::{
    Channel, Document, GRACE, Mark, Output, Reading, Stream, Surface, revealed, show_pages, wait_unanswered,
};

/// Follows the mark of a question.
const PROMPT: &str = "your answer: ";

/// Asks questions on stderr.
pub(super) struct Asker {
    /// `None` if the terminal cannot draw an answer in place; then each answer is a line.
    keys: Option<DialogKeys>,
    /// Lines of a system that cannot wait for one.
    #[cfg(not(unix))]
    lines: Option<tokio::sync::mpsc::Receiver<String>>,
}

impl Asker {
    pub(super) fn new(output: &Output) -> Asker {
        // Raw mode writes to stdout, which must not reach a pipe.
        let has_keys = cfg!(unix) && output.stdout.terminal && device::can_move_cursor();
        Asker {
            keys: has_keys.then(DialogKeys::default),
            #[cfg(not(unix))]
            lines: None,
        }
    }

    /// Asks for permission. `None` without an answer.
    pub(super) async fn ask(&mut self, ask: &Ask, channel: &mut Channel) -> Option<Answered> {
        channel.line(&Line::new());
        if let Reading::Stopped { shown, total } = self.read(&ask.document(), channel).await {
            let left = match total - shown {
                1 => "1 line was not read".to_owned(),
                lines => format!("{lines} lines were not read"),
            };
            channel.line(&Mark::Permission.then(left));
        }
        let _ = channel.write();
        match &mut self.keys {
            Some(keys) => {
                let answered = with_keys(keys, ask, channel).await;
                let said = match &answered {
                    Some(Answered::Choice(at)) => ask.choices.get(*at).map(|choice| choice.label.clone()),
                    Some(Answered::Instead(prompt)) => {
                        Some(format!("{}: {prompt}", attache_term::answers::INSTEAD))
                    }
                    None => None,
                };
                let said = said.unwrap_or_else(|| "no answer".to_owned());
                channel.line(&Mark::Permission.then(revealed(&said)));
                let _ = channel.write();
                answered
            }
            None => self.with_lines(ask, channel).await.map(Answered::Choice),
        }
    }

    async fn with_lines(&mut self, ask: &Ask, channel: &mut Channel) -> Option<usize> {
        for (key, choice) in ask.menu() {
            let colour = if choice.allows { Colour::Green } else { Colour::Red };
            let line = Line::styled(format!("  [{key}] "), Style::BOLD.colour(colour));
            channel.line(&line.with(revealed(&choice.label), Style::PLAIN));
        }
        let _ = channel.write();
        self.pause().await;
        loop {
            let line = self.line_for(&format!("{} {PROMPT}", Mark::Question.text()), channel).await?;
            let choice = ask.choice(&line);
            if choice.is_some() || line.trim().is_empty() {
                return choice;
            }
            channel.line(&Line::from("no such answer; an empty line denies"));
        }
    }

    /// Shows a document, page by page.
    async fn read(&mut self, document: &Document, channel: &mut Channel) -> Reading {
        let surface = channel.surface();
        show_pages(document, channel, async || match &mut self.keys {
            Some(keys) => page_key(keys, surface).await,
            None => self.line().await,
        })
        .await
    }

    /// Waits until the question can be read. Input typed before that is discarded.
    pub(super) async fn pause(&mut self) {
        wait_unanswered().await;
        #[cfg(not(unix))]
        if let Some(lines) = &mut self.lines {
            while lines.try_recv().is_ok() {}
        }
    }

    /// Asks for a line. `None` at the end of the input.
    pub(super) async fn line_for(&mut self, question: &str, channel: &mut Channel) -> Option<String> {
        channel.part(&Line::from(question));
        let _ = channel.write();
        let line = self.line().await;
        channel.answered();
        line
    }

    /// Reads a line; `None` at the end of the input.
    #[cfg(unix)]
    async fn line(&mut self) -> Option<String> {
        device::read_line().await
    }

    #[cfg(not(unix))]
    async fn line(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(read_lines).recv().await
    }
}

/// Lets the user choose with keys.
async fn with_keys(keys: &mut DialogKeys, ask: &Ask, channel: &Channel) -> Option<Answered> {
    let look = channel.surface().look();
    let mut answers = answers(&ask.choices);
    let mut dialog = Dialog::open(keys, Stream::Stderr, look).ok()?;
    let ready_at = Instant::now() + GRACE;
    let mut ready = false;
    loop {
        let (columns, rows) = dialog.size();
        let mut rendered = answers.render(columns, rows.saturating_sub(1), look, ready);
        let prompt =
            if ready { Line::from(format!("{} {PROMPT}", Mark::Question.text())) } else { Line::new() };
        let cursor = rendered.cursor.unwrap_or((rendered.lines.len(), prompt.width()));
        rendered.lines.push(prompt);
        dialog.draw(rendered.lines, Some(cursor)).ok()?;
        let input = tokio::select! {
            input = dialog.next() => input,
            () = sleep_until(ready_at), if !ready => {
                dialog.discard();
                ready = true;
                continue;
            }
        };
        let outcome = match input {
            Input::Interrupt => Outcome::Interrupt,
            Input::End => return None,
            Input::Key(key) if ready => answers.key(key),
            Input::Paste(text) if ready => {
                answers.paste(&text);
                Outcome::Changed
            }
            // A key that was typed before the question appeared must not answer it.
            Input::Key(_) | Input::Paste(_) | Input::Redraw => Outcome::Ignored,
        };
        match outcome {
            Outcome::Ignored | Outcome::Changed => {}
            Outcome::Chosen(at) => return Some(Answered::Choice(at)),
            Outcome::Instead(prompt) => return Some(Answered::Instead(prompt)),
            Outcome::Interrupt => {
                drop(dialog);
                return interrupted().await;
            }
        }
    }
}

/// Waits for the key after a page, and returns what it would be as a line.
async fn page_key(keys: &mut DialogKeys, surface: Surface) -> Option<String> {
    let mut dialog = Dialog::open(keys, Stream::Stderr, surface.look()).ok()?;
    let line = loop {
        match dialog.next().await {
            Input::Interrupt => {
                drop(dialog);
                return interrupted().await;
            }
            Input::End => break None,
            Input::Key(key) => match key.code {
                crossterm::event::KeyCode::Enter => break Some(String::new()),
                crossterm::event::KeyCode::Esc => break Some("q".to_owned()),
                crossterm::event::KeyCode::Char(c) => break Some(c.to_string()),
                _ => {}
            },
            Input::Paste(_) | Input::Redraw => {}
        }
    };
    dialog.end_line(surface);
    line
}

/// Ends the command as Ctrl-C does elsewhere; whatever waits for signals drops this future.
async fn interrupted<T>() -> Option<T> {
    #[cfg(unix)]
    if device::interrupt().is_ok() {
        return std::future::pending().await;
    }
    None
}

#[cfg(not(unix))]
fn read_lines() -> tokio::sync::mpsc::Receiver<String> {
    use std::io::BufRead as _;

    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
