//! A conversation drawn as a sequence between two lines, in HTML and CSS alone. A row can be opened
//! to read its message.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::html::escape;
use super::label;
use crate::judge::{EventLog, Kind, Message};
use crate::trace::EntryKind;
use crate::{Role, Trace};

/// How much of a message a page holds.
const MOST: usize = 8 << 10;
/// How many rows one block has: a page draws only the blocks that are in sight.
const BLOCK: usize = 200;

/// A failure to mark in a drawing.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The entry of the trace.
    pub index: usize,
    /// The rule.
    pub rule: String,
    /// The failure.
    pub why: String,
    /// Whether it is a duty that was broken and not advice.
    pub binding: bool,
}

/// Draws a conversation; `prefix` begins the ids of its rows (`PREFIX12` is the entry 12).
pub fn sequence(trace: &Trace, marks: &[Mark], prefix: &str) -> String {
    let mut by_index: BTreeMap<usize, Vec<&Mark>> = BTreeMap::new();
    for mark in marks {
        by_index.entry(mark.index).or_default().push(mark);
    }
    let mut out = String::from(
        "<div class=\"seq\"><div><i></i><div class=\"head\"><b>client</b><b>agent</b></div></div></div>\n",
    );
    let mut log = EventLog::default();
    for (block, entries) in trace.entries.chunks(BLOCK).enumerate() {
        out.push_str("<div class=\"seq\">\n");
        for (place, entry) in entries.iter().enumerate() {
            let index = block * BLOCK + place;
            let time = format!("<i>{:.3}</i>", entry.at.as_secs_f64());
            match &entry.kind {
                EntryKind::Line { from, text, end } => {
                    let message = Message::read(index, entry.at, *from, text, *end);
                    let marks = by_index.get(&index).map(Vec::as_slice).unwrap_or_default();
                    row(&message, &log, marks, &format!("{prefix}{index}"), &time, &mut out);
                    log.take(&message);
                }
                other => {
                    let _ = writeln!(
                        out,
                        "<div class=\"row\" id=\"{prefix}{index}\">{time}<div class=\"aside\">{}</div></div>",
                        escape(&aside(other))
                    );
                }
            }
        }
        out.push_str("</div>\n");
    }
    out
}

fn row(message: &Message, log: &EventLog, marks: &[&Mark], id: &str, time: &str, out: &mut String) {
    let to = match message.from {
        Role::Agent => "to-client",
        Role::Client => "to-agent",
    };
    let kind = match message.kind {
        Kind::Request { .. } => "ask",
        Kind::Response { .. } => "answer",
        Kind::Notification { .. } => "note",
        Kind::Invalid { .. } => "ask",
    };
    let marked = match (marks.is_empty(), marks.iter().any(|mark| mark.binding)) {
        (true, _) => "",
        (false, true) => " marked",
        (false, false) => " marked advice",
    };
    let _ = write!(
        out,
        "<div class=\"row {to} {kind}{marked}\" id=\"{id}\">{time}<div><details><summary>{}</summary><pre>{}</pre></details>",
        escape(&label(log, message)),
        escape(&shown(message)),
    );
    for mark in marks {
        let class = if mark.binding { "" } else { " class=\"advice\"" };
        let rule = escape(&mark.rule);
        let _ = write!(out, "<p{class}><a href=\"#{rule}\">{rule}</a>: {}</p>", escape(&mark.why));
    }
    out.push_str("</div></div>\n");
}

/// The message, indented if it is JSON, cut if it is long.
fn shown(message: &Message) -> String {
    let text = match &message.json {
        serde_json::Value::Null => String::from_utf8_lossy(&message.line).into_owned(),
        json => serde_json::to_string_pretty(json).unwrap_or_default(),
    };
    if text.len() <= MOST {
        return text;
    }
    let end = (0..=MOST).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0);
    format!("{}\n… {} bytes in all", &text[..end], message.line.len())
}

fn aside(what: &EntryKind) -> String {
    match what {
        EntryKind::Stderr(text) => format!("stderr: {}", String::from_utf8_lossy(text).trim_end()),
        EntryKind::Closed { from } => format!("the {from} closed its side"),
        EntryKind::Exit { code: Some(code), .. } => format!("the program ended with status {code}"),
        EntryKind::Exit { signal: Some(signal), .. } => format!("the program was ended by signal {signal}"),
        EntryKind::Exit { .. } => "the program ended".to_owned(),
        EntryKind::Note(note) => note.clone(),
        EntryKind::Line { .. } => String::new(),
    }
}
