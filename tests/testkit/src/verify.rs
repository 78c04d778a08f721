//! Verification of an example against envelope and types.

use attache_rpc::{Event, Frame, Id, Limits, Machine, encode};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalogue::Catalogue;
use crate::example::Example;
use crate::registry::{Reader, Version};

/// The result of one example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The crates behave as the example expects.
    Pass,
    /// They do not, with the difference.
    Fail(String),
    /// The example is about another part of the protocol.
    OutOfScope(&'static str),
}

impl From<Result<(), String>> for Verdict {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Verdict::Fail, |()| Verdict::Pass)
    }
}

/// Verifies one example; `semantic` verifies examples whose error depends on the context.
pub fn verify(line: &Example, semantic: impl FnOnce(&Example) -> Verdict) -> Verdict {
    let Some(version) = Version::of(line.version) else {
        return Verdict::Fail(format!("an unknown protocol version: {}", line.version));
    };
    match line.class.as_deref() {
        None => valid(line, version).into(),
        // V2-01: valid until version 2 is negotiated, so a running peer decides.
        Some(_) if line.version != 1 && has_null_id(line) => semantic_of_v2(line, version, semantic),
        Some("raw" | "envelope") => envelope(line).into(),
        Some("schema" | "lenient") => payload(line, version).into(),
        Some("semantic") if line.version != 1 => semantic_of_v2(line, version, semantic),
        Some("semantic") => semantic(line),
        Some("transport") => Verdict::OutOfScope("HTTP transport"),
        Some(_) => Verdict::Fail("an unknown class of examples".to_owned()),
    }
}

/// Whether the line is a request with the id `null`.
fn has_null_id(line: &Example) -> bool {
    matches!(Frame::parse(line.text.as_bytes(), 1024), Frame::Request { id: Id::Null, .. })
}

/// Verifies the examples of version 2 that the types alone decide, and those that a peer answers.
fn semantic_of_v2(line: &Example, version: Version, semantic: impl FnOnce(&Example) -> Verdict) -> Verdict {
    let decided_by_type = line.is_answer() || line.dir == "a2c";
    if decided_by_type && line.expect["accept"] == true {
        return payload(line, version).into();
    }
    semantic(line)
}

/// The payload of an example and its reader: strict, or tolerant for the forms of earlier drafts.
struct Payload {
    /// The type's name in the catalogue.
    name: String,
    read: Reader,
    catalogue: &'static Catalogue,
}

impl Payload {
    fn of(line: &Example, version: Version) -> Result<Payload, String> {
        let drafts = ["aug", "seed000", "seed001", "seed003"];
        let draft = drafts.contains(&line.tier.as_str());
        let named = match (line.tier.as_str(), line.ty.as_str()) {
            // The `mcp/message` of August is a separate type.
            ("aug", "MessageMcpRequest") => "ConnectedMcpRequest",
            ("aug", "MessageMcpNotification") => "ConnectedMcpNotification",
            ("aug", "MessageMcpResponse") => "ExtResponse",
            (_, name) => name,
        };
        let catalogue = (version.catalogue)();
        let shape = catalogue.get(named).ok_or_else(|| format!("the catalogue has no type {named}"))?;
        let tolerant = match line.kind.as_str() {
            "request" if draft => crate::registry::tolerant(&line.method),
            "response" if draft => crate::registry::tolerant_result(&line.method),
            _ => None,
        };
        let read = tolerant.or_else(|| version.reader(&shape.name));
        let read = read.ok_or_else(|| format!("no wire type for {}", shape.name))?;
        Ok(Payload { name: shape.name.clone(), read, catalogue })
    }

    /// Reads the payload, writes it, and returns it as JSON.
    fn read(&self, line: &Example) -> Result<Value, String> {
        let text = (self.read)(&line.payload())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }
}

/// Checks that a valid example is read, loses nothing, and is written as an equal message.
fn valid(line: &Example, version: Version) -> Result<(), String> {
    let payload = Payload::of(line, version)?;
    let original: Value = serde_json::from_str(&line.payload()).map_err(|error| error.to_string())?;
    let original = with_current_names(&payload.name, original);
    let written = payload.read(line).map_err(|error| format!("refused: {error}"))?;
    payload.catalogue.same(&payload.name, &original, &written)?;
    payload.catalogue.check_no_nulls(&payload.name, &written)?;
    whole_message(line, &payload, &written)
}

/// Renames `id` of providers, the key in earlier drafts, to `providerId`.
fn with_current_names(name: &str, mut value: Value) -> Value {
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

/// Compares the example with a message that is encoded from its parsed envelope and payload.
fn whole_message(
    line: &Example,
    Payload { name, catalogue, .. }: &Payload,
    written: &Value,
) -> Result<(), String> {
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
    let mut original = line.message.clone();
    for message in [&mut again, &mut original] {
        for member in ["params", "result", "error"] {
            if let Some(payload) = message.get_mut(member) {
                *payload = catalogue.normal(name, &with_current_names(name, payload.take()));
            }
        }
        // RPC-21: absent params are empty params.
        let empty =
            message.get("params").is_some_and(|params| params.is_null() || params == &serde_json::json!({}));
        if empty && let Some(message) = message.as_object_mut() {
            message.remove("params");
        }
    }
    if again == original { Ok(()) } else { Err(format!("the message {original} is written as {again}")) }
}

/// One end of a connection with two open requests, whose ids are 0 and 1.
fn machine(answer_noise: bool) -> Machine<(), ()> {
    let mut machine = Machine::new(Limits::default().answer_noise(answer_noise));
    let mut out = Vec::new();
    for _ in 0..2 {
        let sent = machine.request("session/list", &serde_json::json!({}), (), &mut out);
        debug_assert!(sent.is_ok(), "a fresh machine has room");
    }
    machine
}

/// Checks the response to an invalid envelope, for both sides.
pub fn envelope(line: &Example) -> Result<(), String> {
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

fn envelope_of(line: &Example, expect: &Value, answer_noise: bool) -> Result<(), String> {
    let mut machine = machine(answer_noise);
    let mut out = Vec::new();
    let event = machine.receive(line.text.as_bytes(), &mut out, || ());
    if let Event::Request { .. } | Event::Notification { .. } = event {
        return Err("it is dispatched as a message".to_owned());
    }
    answered(expect, &out)?;
    // The connection still works.
    out.clear();
    let next = br#"{"jsonrpc":"2.0","id":"next","method":"session/list"}"#;
    match machine.receive(next, &mut out, || ()) {
        Event::Request { .. } => Ok(()),
        event => Err(format!("the next request is not served: {event:?}")),
    }
}

/// Compares the written lines with the expected response.
pub fn answered(expect: &Value, out: &[u8]) -> Result<(), String> {
    let written = String::from_utf8_lossy(out);
    let lines: Vec<&str> = written.split('\n').filter(|line| !line.is_empty()).collect();
    if expect["ignored"] == true {
        return if lines.is_empty() { Ok(()) } else { Err(format!("answered: {written}")) };
    }
    let Some(code) = expect["code"].as_i64() else {
        return Err(format!("an unknown expectation: {expect}"));
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

/// Checks a payload that is invalid, or valid only for a lenient reader.
pub fn payload(line: &Example, version: Version) -> Result<(), String> {
    let mut machine = machine(true);
    let mut out = Vec::new();
    let event = machine.receive(line.text.as_bytes(), &mut out, || ());
    let refused = matches!(event, Event::Noise { .. } | Event::Ignored { .. });
    expect_any(&line.expect, |expect| {
        if refused {
            return answered(expect, &out);
        }
        let payload = Payload::of(line, version)?;
        fits(line, expect, &payload, payload.read(line))
    })
}

/// Compares the value that was read with the expectation.
fn fits(
    line: &Example,
    expect: &Value,
    payload: &Payload,
    read: Result<Value, String>,
) -> Result<(), String> {
    let Payload { name, catalogue, .. } = payload;
    let lenient = line.class.as_deref() == Some("lenient");
    if expect["accept"] == true {
        let written = read.map_err(|error| format!("refused: {error}"))?;
        catalogue.check_no_nulls(name, &written)?;
        return line.reads_as.as_ref().map_or(Ok(()), |other| catalogue.same(name, &written, other));
    }
    if expect.get("code").is_some() {
        // A type can only find invalid params; a lenient example may be refused or accepted.
        let code = expect["code"] == -32602;
        return match read {
            Err(_) if code => Ok(()),
            Ok(_) if lenient => Ok(()),
            Err(error) => Err(format!("refused as invalid params, expected {expect}: {error}")),
            Ok(written) => Err(format!("read as {written}")),
        };
    }
    if expect["ignored"] == true {
        // A notification is dropped or kept unchanged as an unknown one, never read in part.
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
        (_, _) => Err(format!("an unknown expectation: {expect}")),
    }
}

/// Returns the id of a message.
pub fn id_of(text: &str) -> Option<Id> {
    let members: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    Id::from_raw(members.get("id")?)
}
