//! What the program prints: answers on stdout in one of three formats, everything else on stderr.
//!
//! A turn is rendered from the raw lines of the wire, whichever process it runs in: `screen.rs` takes lines, `text.rs`, `json.rs` and
//! `quiet.rs` make of them what the format wants. What comes out is bytes in a buffer; whoever runs the turn writes them, so that
//! a slow reader slows the agent down and nothing else.

mod json;
mod quiet;
mod screen;
mod text;
mod tool;

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use serde_json::{Value, json};

pub(crate) use screen::Screen;

use crate::error::{Failure, Kind};

/// `1 prompt`, `2 prompts`.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The formats of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    Quiet,
}

impl Format {
    pub(crate) fn from_name(name: &str) -> Format {
        match name {
            "json" => Format::Json,
            "quiet" => Format::Quiet,
            _ => Format::Text,
        }
    }
}

/// Why something that was printed did not get to where it should.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// The failure that printing has met, if it has met one.
pub(crate) fn unwritten() -> Option<Failure> {
    UNWRITTEN.get().map(Failure::unwritten)
}

/// How things are printed.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    /// Nothing but JSON, on stderr neither.
    pub(crate) strict: bool,
    /// Show the wire on stderr.
    pub(crate) verbose: bool,
    pub(crate) suppress_reads: bool,
    /// Whether stdout shows colours.
    pub(crate) color: bool,
    /// Whether stderr shows colours.
    pub(crate) color_stderr: bool,
}

impl Output {
    /// Before anything is known: text, and colours where there is a terminal.
    pub(crate) fn plain() -> Output {
        Output {
            format: Format::Text,
            strict: false,
            verbose: false,
            suppress_reads: false,
            color: false,
            color_stderr: false,
        }
    }

    /// Finds out whether there are colours: a terminal, no NO_COLOR, not a dumb one.
    pub(crate) fn find_colors(&mut self, forbidden: bool) {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let may = !forbidden && !set("NO_COLOR") && !dumb;
        self.color = may && io::stdout().is_terminal();
        self.color_stderr = may && io::stderr().is_terminal();
    }

    /// Prints on stdout. Whoever closed it does not want to hear more; what else goes wrong is kept for [`unwritten`].
    pub(crate) fn print(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => drop(UNWRITTEN.set(error)),
            _ => {}
        }
    }

    /// Prints a line on stdout.
    pub(crate) fn line(&self, text: impl Display) {
        self.print(&format!("{text}\n"));
    }

    /// Prints a document on stdout.
    pub(crate) fn json(&self, value: &Value) {
        self.line(value);
    }

    /// Tells something beside the answer, on stderr.
    pub(crate) fn note(&self, text: impl Display) {
        if self.format != Format::Quiet && !self.strict {
            self.tell(format_args!("[attache] {text}"));
        }
    }

    /// Warns, on stderr: also where notes are not wanted.
    pub(crate) fn warn(&self, text: impl Display) {
        if !self.strict {
            self.tell(format_args!("[attache] warning: {text}"));
        }
    }

    /// Prints a question on stderr; the answer is typed behind it.
    pub(crate) fn ask(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// Prints a line on stderr.
    pub(crate) fn tell(&self, text: impl Display) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Shows a failure that no stream has shown.
    pub(crate) fn fail(&self, failure: &Failure) {
        if failure.shown {
            return;
        }
        let failure = &without_secrets(failure);
        match self.format {
            _ if failure.is_unwritten() => self.tell(format_args!("error: {}", failure.message)),
            // What the agent answered is in the stream already.
            Format::Json if failure.answered.is_some() => {}
            Format::Json => self.json(&failure_json(failure, None)),
            Format::Quiet => self.tell(quiet_line(failure)),
            Format::Text if failure.kind == Kind::Interrupted => {}
            Format::Text => {
                self.tell(format_args!("{} {}", self.red("error:"), failure.message));
                for hint in &failure.hints {
                    self.tell(format_args!("hint: {hint}"));
                }
            }
        }
    }

    fn red(&self, text: &str) -> String {
        if self.color_stderr { format!("\x1b[1;31m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Failures quote what the agent printed, and that may be anything.
pub(crate) fn without_secrets(failure: &Failure) -> Failure {
    let mask = attache_host::secrets::Mask::from_env();
    let mut failure = failure.clone();
    failure.message = mask.text(&failure.message).into_owned();
    failure
}

/// The one line that a failure is in `--format quiet`.
fn quiet_line(failure: &Failure) -> String {
    let detail = failure.detail.as_ref().map(|detail| format!(" {detail}")).unwrap_or_default();
    let message = failure.message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("[attache] error: {}{detail} {message}", failure.kind.name())
}

/// A failure as a JSON-RPC error without an id.
fn failure_json(failure: &Failure, session: Option<&str>) -> Value {
    let mut data = json!({
        "acpxCode": failure.kind.name(),
        "origin": if failure.answered.is_some() { "acp" } else { "cli" },
        "sessionId": session.unwrap_or("unknown"),
    });
    if let (Some(object), Some(detail)) = (data.as_object_mut(), &failure.detail) {
        object.insert("detailCode".to_owned(), json!(detail));
    }
    let (code, message) = match &failure.answered {
        Some(answer) => (answer.code, &answer.message),
        None => (failure.kind.json_code(), &failure.message),
    };
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message, "data": data } })
}
