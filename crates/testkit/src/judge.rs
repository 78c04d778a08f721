//! Whether an example behaves as it says it should, as far as envelope and types can tell.

use attache_rpc::{Event, Frame, Id, Limits, Machine, encode};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalogue::Catalogue;
use crate::line::Line;
use crate::registry::{Reader, reader};

/// What came of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It behaves as it should.
    Good,
    /// It does not.
    Bad(String),
    /// Not for these crates.
    OutOfScope(&'static str),
}

impl From<Result<(), String>> for Verdict {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Verdict::Bad, |()| Verdict::Good)
    }
}

/// Judges one line; `semantic` is asked about lines whose error lies in the context.
pub fn judge(line: &Line, semantic: impl FnOnce(&Line) -> Verdict) -> Verdict {
    if line.version != 1 {
        return Verdict::OutOfScope("protocol version 2");
    }
    match line.class.as_deref() {
        None => valid(line).into(),
        Some("raw" | "envelope") => envelope(line).into(),
        Some("schema" | "lenient") => payload(line).into(),
        Some("semantic") => semantic(line),
        Some("transport") => Verdict::OutOfScope("HTTP transport"),
        Some(_) => Verdict::Bad("a class of examples that is not known here".to_owned()),
    }
}

/// How the payload of a line is read: strictly, or, for the forms of earlier drafts, as a tolerant receiver would.
struct Payload {
    /// The type's name in the catalogue.
    name: String,
    read: Reader,
}

impl Payload {
    fn of(line: &Line) -> Result<Payload, String> {
        let drafts = ["aug", "seed000", "seed001", "seed003"];
        let draft = drafts.contains(&line.tier.as_str());
        let named = match (line.tier.as_str(), line.ty.as_str()) {
            // What travelled as `mcp/message` in August is a type of its own here.
            ("aug", "MessageMcpRequest") => "ConnectedMcpRequest",
            ("aug", "MessageMcpNotification") => "ConnectedMcpNotification",
            ("aug", "MessageMcpResponse") => "ExtResponse",
            (_, name) => name,
        };
        let shape = Catalogue::v1().get(named).ok_or_else(|| format!("the catalogue has no type {named}"))?;
        let tolerant = match line.kind.as_str() {
            "request" if draft => crate::registry::tolerant(&line.method),
            "response" if draft => crate::registry::tolerant_result(&line.method),
            _ => None,
        };
        let read = tolerant.or_else(|| reader(&shape.name));
        let read = read.ok_or_else(|| format!("no wire type for {}", shape.name))?;
        Ok(Payload { name: shape.name.clone(), read })
    }

    /// Reads the payload, writes it, and gives both as JSON.
    fn read(&self, line: &Line) -> Result<Value, String> {
        let text = (self.read)(&line.payload())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }
}

/// A valid line is read, loses nothing, and is written again as an equal message.
fn valid(line: &Line) -> Result<(), String> {
    let catalogue = Catalogue::v1();
    let payload = Payload::of(line)?;
    let came: Value = serde_json::from_str(&line.payload()).map_err(|error| error.to_string())?;
    let came = as_today(&payload.name, came);
    let written = payload.read(line).map_err(|error| format!("refused: {error}"))?;
    catalogue.same(&payload.name, &came, &written)?;
    catalogue.says_no_nulls(&payload.name, &written)?;
    whole_message(line, &payload.name, &written)
}

/// The key of providers was `id` once; it is read so and written as `providerId`.
fn as_today(name: &str, mut value: Value) -> Value {
    let rename = |object: &mut Value| {
        if let Some(object) = object.as_object_mut()
            && !object.contains_key("providerId")
            && let Some(id) = object.remove("id")
        {
            object.insert("providerId".to_owned(), id);
        }
    };
    match name {
        "SetProviderRequest" | "DisableProviderRequest" => rename(&mut value),
        "ListProvidersResponse" => value["providers"].as_array_mut().into_iter().flatten().for_each(rename),
        _ => {}
    }
    value
}

/// The envelope is opened, the payload put into a new one, and that compared with the message that came.
fn whole_message(line: &Line, name: &str, written: &Value) -> Result<(), String> {
    let mut out = Vec::new();
    let encoded = match Frame::parse(line.text.as_bytes(), 1024) {
        Frame::Request { id, method, .. } if line.kind == "request" => {
            encode::request(&mut out, &id, &method, written)
        }
        Frame::Notification { method, .. } if line.kind == "notification" => {
            encode::notification(&mut out, &method, written)
        }
        Frame::Response { id, outcome: Ok(_) } if line.kind == "response" => {
            encode::result(&mut out, &id, written)
        }
        Frame::Response { id, outcome: Err(error) } if line.kind == "error" => {
            encode::error(&mut out, &id, &error)
        }
        frame => return Err(format!("the envelope is read as {frame:?}")),
    };
    encoded.map_err(|error| error.to_string())?;
    let mut again: Value = serde_json::from_slice(&out).map_err(|error| error.to_string())?;
    let mut came = line.message.clone();
    for message in [&mut again, &mut came] {
        for member in ["params", "result", "error"] {
            if let Some(payload) = message.get_mut(member) {
                *payload = Catalogue::v1().normal(name, &as_today(name, payload.take()));
            }
        }
        // RPC-21: absent params are empty params.
        let empty =
            message.get("params").is_some_and(|params| params.is_null() || params == &serde_json::json!({}));
        if empty && let Some(message) = message.as_object_mut() {
            message.remove("params");
        }
    }
    if again == came { Ok(()) } else { Err(format!("the message {came} is written as {again}")) }
}

/// One end of a connection that waits for answers to the ids 0 and 1.
fn machine(answer_noise: bool) -> Machine<(), ()> {
    let mut machine = Machine::new(Limits { answer_noise, ..Limits::default() });
    let mut out = Vec::new();
    for _ in 0..2 {
        let sent = machine.request("session/list", &serde_json::json!({}), (), &mut out);
        debug_assert!(sent.is_ok(), "a fresh machine has room");
    }
    machine
}

/// What a receiver of the line answers by itself, and what it hands on.
pub fn envelope(line: &Line) -> Result<(), String> {
    let log = matches!(
        Frame::parse(line.text.as_bytes(), 1024),
        Frame::Malformed(malformed) if malformed.fault == attache_rpc::Fault::Log
    );
    expect_any(&line.expect, |expect| {
        // A client does not answer log lines of an agent; everything else both sides treat alike.
        let sides: &[bool] = if log { &[true] } else { &[true, false] };
        sides.iter().try_for_each(|answer_noise| envelope_of(line, expect, *answer_noise))
    })
}

fn envelope_of(line: &Line, expect: &Value, answer_noise: bool) -> Result<(), String> {
    let mut machine = machine(answer_noise);
    let mut out = Vec::new();
    let event = machine.receive(line.text.as_bytes(), &mut out, || ());
    if let Event::Request { .. } | Event::Notification { .. } = event {
        return Err("it is handed on as a message".to_owned());
    }
    answered(expect, &out)?;
    // The connection goes on.
    out.clear();
    let next = br#"{"jsonrpc":"2.0","id":"next","method":"session/list"}"#;
    match machine.receive(next, &mut out, || ()) {
        Event::Request { .. } => Ok(()),
        event => Err(format!("the next request is not served: {event:?}")),
    }
}

/// Compares what was written with what should have been.
pub fn answered(expect: &Value, out: &[u8]) -> Result<(), String> {
    let written = String::from_utf8_lossy(out);
    let lines: Vec<&str> = written.split('\n').filter(|line| !line.is_empty()).collect();
    if expect["ignored"] == true {
        return if lines.is_empty() { Ok(()) } else { Err(format!("answered: {written}")) };
    }
    let Some(code) = expect["code"].as_i64() else {
        return Err(format!("an expectation that is not known here: {expect}"));
    };
    let [line] = lines[..] else { return Err(format!("{} answers instead of one", lines.len())) };
    let answer: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    let id_as_asked = expect.get("id").is_none_or(|id| answer.get("id") == Some(id));
    if answer["error"]["code"] == code && id_as_asked && answer["jsonrpc"] == "2.0" {
        return Ok(());
    }
    Err(format!("answered {answer}, expected {expect}"))
}

/// Tries each alternative of `either`.
pub fn expect_any(expect: &Value, mut test: impl FnMut(&Value) -> Result<(), String>) -> Result<(), String> {
    let Some(list) = expect["either"].as_array() else { return test(expect) };
    let mut failures = Vec::new();
    for expect in list {
        match test(expect) {
            Ok(()) => return Ok(()),
            Err(failure) => failures.push(failure),
        }
    }
    Err(failures.join("; "))
}

/// A payload that does not fit its type, or fits only for a lenient reader.
pub fn payload(line: &Line) -> Result<(), String> {
    let mut machine = machine(true);
    let mut out = Vec::new();
    let event = machine.receive(line.text.as_bytes(), &mut out, || ());
    let refused = matches!(event, Event::Noise { .. } | Event::Ignored { .. });
    expect_any(&line.expect, |expect| {
        if refused {
            return answered(expect, &out);
        }
        let read = Payload::of(line)?.read(line);
        fits(line, expect, read)
    })
}

/// Whether what the type made of the payload is what was expected.
fn fits(line: &Line, expect: &Value, read: Result<Value, String>) -> Result<(), String> {
    let catalogue = Catalogue::v1();
    let lenient = line.class.as_deref() == Some("lenient");
    let name = &Payload::of(line)?.name;
    if expect["accept"] == true {
        let written = read.map_err(|error| format!("refused: {error}"))?;
        catalogue.says_no_nulls(name, &written)?;
        return line.reads_as.as_ref().map_or(Ok(()), |other| catalogue.same(name, &written, other));
    }
    if expect.get("code").is_some() {
        // Invalid params are all that a type can find; for a lenient line refusing and tolerating are both right.
        let code = expect["code"] == -32602;
        return match read {
            Err(_) if code => Ok(()),
            Ok(_) if lenient => Ok(()),
            Err(error) => Err(format!("refused as invalid params, expected {expect}: {error}")),
            Ok(written) => Err(format!("read as {written}")),
        };
    }
    if expect["ignored"] == true {
        // A notification is dropped, or kept whole as something unknown; half of it is never taken.
        return match read {
            Err(_) => Ok(()),
            Ok(written) if line.kind == "notification" && written == line.message["params"] => Ok(()),
            Ok(written) => Err(format!("read as {written}")),
        };
    }
    match (expect["treat_as"].as_str(), read) {
        (Some("failed request" | "not approved" | "cancel"), Err(_)) => Ok(()),
        // An unknown action is kept; it is neither an approval nor a refusal.
        (Some("cancel"), Ok(written))
            if !["accept", "decline"].iter().any(|known| written["action"] == *known) =>
        {
            Ok(())
        }
        (Some("not approved"), Ok(written)) if written["outcome"]["outcome"] != "selected" => Ok(()),
        (Some("failed request" | "not approved" | "cancel"), Ok(written)) => {
            Err(format!("read as {written}"))
        }
        (_, _) => Err(format!("an expectation that is not known here: {expect}")),
    }
}

/// The id of a message, for those who answer it by hand.
pub fn id_of(text: &str) -> Option<Id> {
    let members: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    Id::from_raw(members.get("id")?)
}
