//! Output of the program: answers on stdout in one of three formats, everything else on stderr.
//!
//! All of it goes through the channels of `attache-term`, which keep control characters away from
//! terminals.
//!
//! A turn is rendered from the raw lines of the wire, whichever process it runs in: `renderer`
//! takes lines, `text`, `json` and `quiet` render them. Channels keep the result until the turn
//! writes it, so that a slow reader slows down the agent and nothing else.

mod answer;
mod json;
mod quiet;
mod renderer;
mod text;
mod tool;

use std::fmt::Display;
use std::io;
use std::sync::OnceLock;

use serde_json::{Value, json};

pub(crate) use attache_term::output::{
    Channel, Document, GRACE, Mark, Reading, Relay, StatusLine, Stream, Surface, Written, in_gutter,
    locale_is_unicode, quoted, revealed, show_pages, wait_unanswered, wait_unanswered_blocking,
};
pub(crate) use renderer::TurnRenderer;

use crate::error::{Failure, Kind};
use attache_term::render::style::{Colour, Line, Style};

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

/// The first error of writing to stdout.
static WRITE_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Returns the first error of writing to stdout.
pub(crate) fn write_error() -> Option<Failure> {
    WRITE_ERROR.get().map(Failure::write_error)
}

/// The format and the streams of the output.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    /// Print only JSON; silence stderr.
    pub(crate) strict: bool,
    /// Show the wire on stderr.
    pub(crate) verbose: bool,
    pub(crate) suppress_reads: bool,
    pub(crate) stdout: Surface,
    pub(crate) stderr: Surface,
}

impl Output {
    /// Text without colours, before flags and settings are read.
    pub(crate) fn plain() -> Output {
        Output {
            format: Format::Text,
            strict: false,
            verbose: false,
            suppress_reads: false,
            stdout: Surface::plain(Stream::Stdout),
            stderr: Surface::plain(Stream::Stderr),
        }
    }

    /// Detects colours: a terminal that is not dumb, and no NO_COLOR.
    pub(crate) fn find_colors(&mut self, forbidden: bool) {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let may = !forbidden && !set("NO_COLOR") && !dumb;
        self.stdout = self.stdout.colours(may);
        self.stderr = self.stderr.colours(may);
    }

    /// Writes to stdout. A closed pipe is not an error; other errors are kept for [`write_error`].
    fn out(&self, fill: impl FnOnce(&mut Channel)) {
        let mut channel = Channel::new(self.stdout);
        fill(&mut channel);
        match channel.write() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => drop(WRITE_ERROR.set(error)),
            _ => {}
        }
    }

    /// Prints static text of the program on stdout: help, manuals, scripts.
    pub(crate) fn page(&self, text: &str) {
        self.out(|channel| channel.own_text(text));
    }

    /// Prints text on stdout. The first line begins with text of the program; the others may begin
    /// with foreign text.
    pub(crate) fn print(&self, text: &str) {
        self.out(|channel| channel.text(text));
    }

    /// Prints a line on stdout that begins with text of the program.
    pub(crate) fn line(&self, text: impl Display) {
        self.out(|channel| channel.one_line(&text.to_string()));
    }

    /// Prints a line of data on stdout, which may begin with foreign text.
    pub(crate) fn row(&self, text: impl Display) {
        self.out(|channel| channel.row(&Line::from(text.to_string())));
    }

    /// Prints rows of data on stdout: aligned columns on a terminal, tabs elsewhere.
    pub(crate) fn columns(&self, rows: &[Vec<String>]) {
        let wide = |text: &str| attache_term::render::text::width(text);
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest: Vec<usize> = (0..count)
            .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| wide(cell)).max().unwrap_or(0))
            .collect();
        for row in rows {
            if !self.stdout.terminal {
                self.row(row.join("\t"));
                continue;
            }
            let cells = row.iter().zip(&widest);
            let line: String = cells
                .map(|(cell, widest)| format!("{cell}{}", " ".repeat(widest - wide(cell) + 2)))
                .collect();
            self.row(line.trim_end());
        }
    }

    /// Returns a time for a list: how long ago on a terminal, in full elsewhere.
    pub(crate) fn when(&self, time: &str) -> String {
        match self.stdout.terminal {
            true => crate::time::ago(time, std::time::SystemTime::now()),
            false => time.to_owned(),
        }
    }

    /// Prints lines with their styles on stdout.
    pub(crate) fn styled(&self, lines: &[Line]) {
        self.out(|channel| lines.iter().for_each(|line| channel.line(line)));
    }

    /// Prints lines of data with their styles on stdout.
    pub(crate) fn rows(&self, lines: &[Line]) {
        self.out(|channel| lines.iter().for_each(|line| channel.row(line)));
    }

    /// Prints a JSON document on stdout.
    pub(crate) fn json(&self, value: &Value) {
        self.json_line(&value.to_string());
    }

    /// Prints a line of JSON on stdout.
    pub(crate) fn json_line(&self, line: &str) {
        self.out(|channel| channel.json(line.as_bytes()));
    }

    /// Prints a remark on stderr.
    pub(crate) fn note(&self, text: impl Display) {
        if self.format != Format::Quiet && !self.strict {
            self.err(|channel| channel.line(&Mark::Note.then(text.to_string())));
        }
    }

    /// Prints a warning on stderr, also where remarks are not wanted.
    pub(crate) fn warn(&self, text: impl Display) {
        if !self.strict {
            self.err(|channel| channel.line(&Mark::Note.then(format!("warning: {text}"))));
        }
    }

    /// Prints a prompt on stderr; the answer is typed after it.
    pub(crate) fn ask(&self, text: &str) {
        self.err(|channel| channel.part(&Line::from(text)));
    }

    /// Prints a line on stderr.
    pub(crate) fn tell(&self, text: impl Display) {
        self.err(|channel| channel.one_line(&text.to_string()));
    }

    /// Prints a foreign line on stderr.
    pub(crate) fn tell_row(&self, text: &str) {
        self.err(|channel| channel.row(&Line::from(text)));
    }

    /// Prints a line with its styles on stderr.
    pub(crate) fn tell_line(&self, line: &Line) {
        self.err(|channel| channel.line(line));
    }

    fn err(&self, fill: impl FnOnce(&mut Channel)) {
        let mut channel = Channel::new(self.stderr);
        fill(&mut channel);
        // A failure to write stderr cannot be reported anywhere.
        let _ = channel.write();
    }

    /// Prints a failure, unless it was printed before.
    pub(crate) fn fail(&self, failure: &Failure) {
        if failure.shown {
            return;
        }
        let failure = &without_secrets(failure);
        match self.format {
            _ if failure.is_write_error() => self.tell_line(&Mark::Error.then(&*failure.message)),
            // The agent's error is in the stream already.
            Format::Json if failure.answered.is_some() => {}
            Format::Json => self.json(&failure_json(failure, None)),
            Format::Quiet => self.tell_line(&quiet_line(failure)),
            Format::Text if failure.kind == Kind::Interrupted => {}
            Format::Text => {
                let head = Mark::Error.line(Style::BOLD.colour(Colour::Red)).with(" ", Style::PLAIN);
                let document = failure_document(head, Style::PLAIN, failure);
                self.err(|channel| document.write(channel));
            }
        }
    }
}

/// Renders a failure: head and message, the agent's stderr, hints.
fn failure_document(mut head: Line, style: Style, failure: &Failure) -> Document {
    let mut lines = failure.message.lines();
    head.push(lines.next().unwrap_or_default(), style);
    let rest: Vec<&str> = lines.collect();
    let mut document = Document::new().own(head);
    if !rest.is_empty() {
        document = document.printed(rest.join("\n"));
    }
    if !failure.stderr.is_empty() {
        document = document.own(Mark::Stderr.line(Style::DIM)).printed(failure.stderr.join("\n"));
    }
    failure.hints.iter().fold(document, |document, hint| {
        document.own(Mark::Hint.line(Style::DIM).with(format!(" {hint}"), Style::DIM))
    })
}

/// Masks secrets in a failure, which may quote any output of the agent.
pub(crate) fn without_secrets(failure: &Failure) -> Failure {
    let mask = attache_host::secrets::Mask::from_env();
    let mut failure = failure.clone();
    failure.message = mask.text(&failure.message).into_owned();
    for line in &mut failure.stderr {
        *line = mask.text(line).into_owned();
    }
    failure
}

/// Renders a failure as one line for `--format quiet`.
fn quiet_line(failure: &Failure) -> Line {
    let detail = failure.detail.map(|detail| format!(" {}", detail.name())).unwrap_or_default();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut message = one_line(&failure.message);
    if !failure.stderr.is_empty() {
        message.push_str(&format!("; {} {}", Mark::Stderr.text(), one_line(&failure.stderr.join(" "))));
    }
    Line::from(format!("{} error: {}{detail} {message}", Mark::Note.text(), failure.kind.name()))
}

/// Renders a failure as a JSON-RPC error without an id.
fn failure_json(failure: &Failure, session: Option<&str>) -> Value {
    let mut data = json!({
        "acpxCode": failure.kind.name(),
        "origin": if failure.answered.is_some() { "acp" } else { "cli" },
        "sessionId": session.unwrap_or("unknown"),
    });
    if let (Some(object), Some(detail)) = (data.as_object_mut(), failure.detail) {
        object.insert("detailCode".to_owned(), json!(detail));
    }
    if let Some(object) = data.as_object_mut().filter(|_| !failure.stderr.is_empty()) {
        object.insert("stderr".to_owned(), json!(failure.stderr));
    }
    let (code, message) = match &failure.answered {
        Some(answer) => (answer.code, &answer.message),
        None => (failure.kind.json_code(), &failure.message),
    };
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message, "data": data } })
}

/// Formats a number of bytes: `12.3 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}
