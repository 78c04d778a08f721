//! Lines and envelopes: JSON-RPC 2.0, one message per line.

use serde_json::Value;

use super::{EventLog, Findings, Kind, Message, Watcher};
use crate::trace::LineEnd;
use crate::{Role, Version};

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

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if !message.json.is_object() {
            return;
        }
        match &message.kind {
            Kind::Invalid { why }
                if message.json.get("id").is_some() && message.json.get("method").is_none() =>
            {
                out.fail("RPC-02", message, format!("an answer has neither `result` nor `error`: {why}"));
            }
            Kind::Invalid { why } => out.fail("RPC-01", message, why.as_str()),
            _ => out.check("RPC-01", message, message.json["jsonrpc"] == "2.0", || {
                match message.json.get("jsonrpc") {
                    Some(other) => format!("`jsonrpc` is {other} instead of \"2.0\""),
                    None => "`jsonrpc` is missing".to_owned(),
                }
            }),
        }
        match &message.kind {
            Kind::Request { id, method, .. } => request(log, message, id, method, out),
            Kind::Response { id, .. } => {
                answer(message, out);
                matched(log, message, id, out);
            }
            _ => {}
        }
    }
}

fn request(log: &EventLog, message: &Message, id: &Value, method: &str, out: &mut Findings) {
    let whole = id.is_i64() || id.is_u64();
    let fits = !matches!(id, Value::Object(_) | Value::Array(_) | Value::Bool(_));
    out.check("RPC-06", message, fits, || format!("the id {id} is neither a string, a number nor null"));
    // A fraction is only advised against.
    if fits {
        out.check("RPC-07", message, id.is_string() || whole, || format!("{method} has the id {id}"));
    }
    match log.open(message.from, id) {
        Some(open) => out.fail_at(
            "RPC-08",
            message.from,
            &[open.index, message.index],
            format!("the id {id} is used again while {} waits for its answer", open.method),
        ),
        None => out.pass("RPC-08", message),
    }
}

fn answer(message: &Message, out: &mut Findings) {
    let (result, error) = (message.json.get("result"), message.json.get("error"));
    out.check("RPC-23", message, result.is_none() || error.is_none(), || {
        "an answer has both `result` and `error`".to_owned()
    });
    if result.is_some() {
        out.pass("RPC-02", message);
        return;
    }
    let Some(error) = error else { return };
    let code = error["code"].is_i64() || error["code"].is_u64();
    out.check("RPC-03", message, code && error["message"].is_string(), || {
        format!("the error {error} has no integer `code` and string `message`")
    });
    if let Some(prose) = error["message"].as_str() {
        let short = prose.chars().count() <= SHORT && !prose.trim_end().contains('\n');
        out.check("RPC-17", message, short, || {
            "the message of an error is not one short sentence".to_owned()
        });
    }
}

/// Whom an answer answers.
fn matched(log: &EventLog, message: &Message, id: &Value, out: &mut Findings) {
    let asker = message.from.other();
    if let Some(asked) = log.open(asker, id) {
        out.pass_at("RPC-05", message.from, &[asked.index, message.index]);
        out.pass_at("RPC-24", message.from, &[asked.index, message.index]);
        return;
    }
    if let Some(asked) = log.done(asker, id) {
        let why = format!("{} (id {id}) is answered a second time", asked.method);
        return out.fail_at("RPC-24", message.from, &[asked.index, message.index], why);
    }
    if !id.is_null() {
        // Error responses to malformed lines may have any id that could be read.
        if log.odd[usize::from(asker == Role::Client)] == 0 {
            out.fail("RPC-05", message, unasked(log, asker, id));
        }
        return;
    }
    // RPC-09, RPC-10: an error without an id answers a line that was no message. If there was none,
    // it can only be the answer to a notification, or to a request that the peer could not read:
    // that one stays open (RPC-05, RPC-24).
    let unread = matches!(message.json["error"]["code"].as_i64(), Some(-32700 | -32600));
    if unread && log.open.iter().any(|asked| asked.from == asker) {
        return;
    }
    if log.odd[usize::from(asker == Role::Client)] == 0 {
        out.fail(
            "RPC-04",
            message,
            "an answer without an id, although every request had one: only a notification is left",
        );
    }
}

fn unasked(log: &EventLog, asker: Role, id: &Value) -> String {
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let alike = log.open.iter().find(|asked| asked.from == asker && text(&asked.id) == text(id));
    match alike {
        Some(asked) => format!("the request had the id {}, its answer has {id}", asked.id),
        None => format!("nothing was asked with the id {id}"),
    }
}

/// Judges bytes: UTF-8, one message per line, nothing else.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Lines that may be the beginning of a message that continues in the next line, agent first.
    pending: [Option<Pending>; 2],
}

#[derive(Debug)]
struct Pending {
    text: String,
    at: Vec<usize>,
}

impl Watcher for Lines {
    fn rules(&self) -> &'static [&'static str] {
        &["STDIO-01", "STDIO-04", "STDIO-05", "STDIO-08", "STDIO-09", "V2-38"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let Ok(text) = std::str::from_utf8(&message.line) else {
            return out.fail("STDIO-01", message, "the line is not UTF-8");
        };
        out.pass("STDIO-01", message);
        if message.json.is_null() {
            return self.garbage(message, text, out);
        }
        self.give_up(message.from, out);
        if message.json.is_array() {
            // Drafts of version 2 allowed batches for a while.
            let rule = if log.version() == Version::V2 { "V2-38" } else { "STDIO-04" };
            return out.fail(rule, message, "a line holds several messages (a batch)");
        }
        out.check("STDIO-04", message, message.end != LineEnd::Open, || {
            "the message does not end with a line feed".to_owned()
        });
        out.pass("STDIO-05", message);
        out.pass(only_messages(message.from), message);
    }

    fn end(&mut self, _: &EventLog, _: bool, out: &mut Findings) {
        self.give_up(Role::Agent, out);
        self.give_up(Role::Client, out);
    }
}

impl Lines {
    fn garbage(&mut self, message: &Message, text: &str, out: &mut Findings) {
        if is_several(text) {
            return out.fail("STDIO-04", message, "a line holds several messages");
        }
        let slot = &mut self.pending[usize::from(message.from == Role::Client)];
        let (before, mut at) = slot.take().map_or((String::new(), Vec::new()), |was| (was.text, was.at));
        at.push(message.index);
        // A line break in a string must be escaped there, one between members is only white space.
        for joint in ["\\n", " "] {
            let joined = if before.is_empty() { text.to_owned() } else { format!("{before}{joint}{text}") };
            match serde_json::from_str::<Value>(&joined) {
                Ok(_) => {
                    let why = format!("one message is spread over {} lines", at.len());
                    return out.fail_at("STDIO-05", message.from, &at, why);
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
            out.fail_at(
                only_messages(message.from),
                message.from,
                &[index],
                format!("`{shown}` is not a message"),
            );
        }
    }

    /// Ends the search for the end of a pending message.
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

/// Two or more JSON texts in a row.
fn is_several(text: &str) -> bool {
    let mut texts = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let good = texts
        .by_ref()
        .take_while(Result::is_ok)
        .filter(|value| matches!(value, Ok(Value::Object(_))))
        .count();
    good > 1
}
