//! What every line must be, whatever it is about: JSON-RPC 2.0, one message per line.

use serde_json::Value;

use super::{Book, Findings, Kind, Said, Watcher};
use crate::Role;
use crate::trace::End;

/// The longest error message that is still called short.
const SHORT: usize = 300;

/// Judges envelopes and ids.
#[derive(Debug, Default)]
pub(super) struct Envelope;

impl Watcher for Envelope {
    fn rules(&self) -> &'static [&'static str] {
        &[
            "RPC-01", "RPC-02", "RPC-03", "RPC-04", "RPC-05", "RPC-06", "RPC-07", "RPC-08", "RPC-17",
            "RPC-23", "RPC-24",
        ]
    }

    fn see(&mut self, book: &Book, said: &Said<'_>, out: &mut Findings) {
        if !said.json.is_object() {
            return;
        }
        match said.kind {
            Kind::Broken { why } if said.json.get("id").is_some() && said.json.get("method").is_none() => {
                out.fail("RPC-02", said, format!("an answer has neither `result` nor `error`: {why}"));
            }
            Kind::Broken { why } => out.fail("RPC-01", said, why),
            _ => {
                out.check("RPC-01", said, said.json["jsonrpc"] == "2.0", || match said.json.get("jsonrpc") {
                    Some(other) => format!("`jsonrpc` is {other} in place of \"2.0\""),
                    None => "`jsonrpc` is missing".to_owned(),
                })
            }
        }
        match said.kind {
            Kind::Request { id, method, .. } => request(book, said, id, method, out),
            Kind::Answer { id, .. } => {
                answer(said, out);
                matched(book, said, id, out);
            }
            _ => {}
        }
    }
}

fn request(book: &Book, said: &Said<'_>, id: &Value, method: &str, out: &mut Findings) {
    let whole = id.is_i64() || id.is_u64();
    out.check("RPC-06", said, id.is_string() || whole || id.is_null(), || {
        format!("the id {id} is neither a string, an integer nor null")
    });
    if !matches!(id, Value::Object(_) | Value::Array(_) | Value::Bool(_)) {
        out.check("RPC-07", said, id.is_string() || whole, || format!("{method} has the id {id}"));
    }
    match book.open(said.from, id) {
        Some(open) => out.fail_at(
            "RPC-08",
            said.from,
            &[open.index, said.index],
            format!("the id {id} is used again while {} waits for its answer", open.method),
        ),
        None => out.pass("RPC-08", said),
    }
}

fn answer(said: &Said<'_>, out: &mut Findings) {
    let (result, error) = (said.json.get("result"), said.json.get("error"));
    out.check("RPC-23", said, result.is_none() || error.is_none(), || {
        "an answer has both `result` and `error`".to_owned()
    });
    if result.is_some() {
        out.pass("RPC-02", said);
        return;
    }
    let Some(error) = error else { return };
    let code = error["code"].is_i64() || error["code"].is_u64();
    out.check("RPC-03", said, code && error["message"].is_string(), || {
        format!("the error {error} has no integer `code` and string `message`")
    });
    if let Some(message) = error["message"].as_str() {
        let short = message.chars().count() <= SHORT && !message.trim_end().contains('\n');
        out.check("RPC-17", said, short, || "the message of an error is not one short sentence".to_owned());
    }
}

/// Whom an answer answers.
fn matched(book: &Book, said: &Said<'_>, id: &Value, out: &mut Findings) {
    let asker = said.from.other();
    if let Some(asked) = book.open(asker, id) {
        out.pass_at("RPC-05", said.from, &[asked.index, said.index]);
        out.pass_at("RPC-24", said.from, &[asked.index, said.index]);
        return;
    }
    if let Some(asked) = book.done(asker, id) {
        let why = format!("{} (id {id}) is answered a second time", asked.method);
        return out.fail_at("RPC-24", said.from, &[asked.index, said.index], why);
    }
    if !id.is_null() {
        // Error answers to lines that were no good may name whatever id they could make out.
        if book.odd[usize::from(asker == Role::Client)] == 0 {
            out.fail("RPC-05", said, unasked(book, asker, id));
        }
        return;
    }
    // RPC-09, RPC-10: an error without an id answers a line that was no message. If there was none, it can only be the answer to a
    // notification.
    if book.odd[usize::from(asker == Role::Client)] == 0 {
        out.fail(
            "RPC-04",
            said,
            "an answer without an id, although every request had one: only a notification is left",
        );
    }
}

fn unasked(book: &Book, asker: Role, id: &Value) -> String {
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let alike = book.open.iter().find(|asked| asked.who == asker && text(&asked.id) == text(id));
    match alike {
        Some(asked) => format!("the request had the id {}, its answer has {id}", asked.id),
        None => format!("nothing was asked with the id {id}"),
    }
}

/// Judges bytes: UTF-8, one message per line, nothing else.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Lines that may be the beginning of a message which goes on in the next line, agent first.
    pending: [Option<Pending>; 2],
}

#[derive(Debug)]
struct Pending {
    text: String,
    at: Vec<usize>,
}

impl Watcher for Lines {
    fn rules(&self) -> &'static [&'static str] {
        &["STDIO-01", "STDIO-04", "STDIO-05", "STDIO-08", "STDIO-09"]
    }

    fn see(&mut self, _: &Book, said: &Said<'_>, out: &mut Findings) {
        let Ok(text) = std::str::from_utf8(said.line) else {
            return out.fail("STDIO-01", said, "the line is not UTF-8");
        };
        out.pass("STDIO-01", said);
        if said.json.is_null() {
            return self.garbage(said, text, out);
        }
        self.give_up(said.from, out);
        if said.json.is_array() {
            return out.fail("STDIO-04", said, "a line holds several messages (a batch)");
        }
        out.check("STDIO-04", said, said.end != End::Open, || {
            "the message does not end with a line feed".to_owned()
        });
        out.pass("STDIO-05", said);
        out.pass(only_messages(said.from), said);
    }

    fn end(&mut self, _: &Book, _: bool, out: &mut Findings) {
        self.give_up(Role::Agent, out);
        self.give_up(Role::Client, out);
    }
}

impl Lines {
    fn garbage(&mut self, said: &Said<'_>, text: &str, out: &mut Findings) {
        if is_several(text) {
            return out.fail("STDIO-04", said, "a line holds several messages");
        }
        let slot = &mut self.pending[usize::from(said.from == Role::Client)];
        let (before, mut at) = slot.take().map_or((String::new(), Vec::new()), |was| (was.text, was.at));
        at.push(said.index);
        // A line break in a string must be escaped there, one between members is only white space.
        for joint in ["\\n", " "] {
            let joined = if before.is_empty() { text.to_owned() } else { format!("{before}{joint}{text}") };
            match serde_json::from_str::<Value>(&joined) {
                Ok(_) => {
                    let why = format!("one message is spread over {} lines", at.len());
                    return out.fail_at("STDIO-05", said.from, &at, why);
                }
                Err(error) if error.is_eof() && joined.trim_start().starts_with(['{', '[']) => {
                    *slot = Some(Pending { text: joined, at });
                    return;
                }
                Err(_) => {}
            }
        }
        let shown: String = text.chars().take(60).collect();
        for index in at {
            out.fail_at(only_messages(said.from), said.from, &[index], format!("`{shown}` is not a message"));
        }
    }

    /// What looked like a beginning had no end.
    fn give_up(&mut self, role: Role, out: &mut Findings) {
        if let Some(pending) = self.pending[usize::from(role == Role::Client)].take() {
            out.fail_at(only_messages(role), role, &pending.at, "a message that breaks off");
        }
    }
}

fn only_messages(role: Role) -> &'static str {
    match role {
        Role::Agent => "STDIO-08",
        Role::Client => "STDIO-09",
    }
}

/// Two or more JSON texts one behind the other.
fn is_several(text: &str) -> bool {
    let mut texts = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let good = texts
        .by_ref()
        .take_while(Result::is_ok)
        .filter(|value| matches!(value, Ok(Value::Object(_))))
        .count();
    good > 1
}
