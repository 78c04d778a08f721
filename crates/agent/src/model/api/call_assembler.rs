//! Assembles tool calls that arrive in pieces, several at once, from servers that are careless
//! about ids and indexes.

use std::collections::HashSet;

use serde_json::Value;

use super::text;
use crate::lenient_json;
use crate::model::{Event, InvalidCall, Message, Request, Stop, ToolCall};

/// The calls of one answer.
pub(super) struct CallAssembler {
    /// Ids that the conversation has used. Careless servers count from zero in every response.
    used: HashSet<String>,
    all: Vec<OpenCall>,
}

#[derive(Default)]
struct OpenCall {
    /// The provider's index and id, if any.
    index: Option<u64>,
    given: String,
    id: String,
    name: String,
    json: String,
    signature: Option<Value>,
    begun: bool,
    ended: bool,
}

/// A piece of a call, and how the provider identifies the call.
#[derive(Default)]
pub(super) struct Piece<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) json: Option<String>,
    pub(super) signature: Option<Value>,
}

impl CallAssembler {
    pub(super) fn new(request: &Request) -> Self {
        let used = request.messages.iter().flat_map(Message::calls).map(|call| call.id.clone());
        CallAssembler { used: used.collect(), all: Vec::new() }
    }

    /// The stop reason of a finished response: some providers report the end of the turn although
    /// there are calls.
    pub(super) fn stop(&self) -> Stop {
        if self.all.is_empty() { Stop::Done } else { Stop::Calls }
    }

    /// Adds a piece to the call with its index or id. A second id with a name under the same index
    /// begins a new call; a piece without either belongs to the last call.
    pub(super) fn take(&mut self, piece: Piece<'_>, out: &mut Vec<Event>) {
        let number = match self.find(&piece) {
            Some(number) => number,
            None => {
                self.open(&piece);
                self.all.len() - 1
            }
        };
        let call = &mut self.all[number];
        if call.name.is_empty() {
            call.name = piece.name.unwrap_or_default().to_owned();
        }
        call.signature = piece.signature.or(call.signature.take());
        let json = piece.json.unwrap_or_default();
        call.json.push_str(&json);
        if !call.begun && !call.name.is_empty() {
            call.begun = true;
            out.push(Event::CallBegins { index: number, id: call.id.clone(), name: call.name.clone() });
            // Arguments before the name were held back.
            if !call.json.is_empty() {
                out.push(Event::CallGrows { index: number, json: call.json.clone() });
            }
        } else if call.begun && !json.is_empty() {
            out.push(Event::CallGrows { index: number, json });
        }
    }

    fn find(&self, piece: &Piece<'_>) -> Option<usize> {
        let id = piece.id.filter(|id| !id.is_empty());
        let named = piece.name.is_some();
        let brings = piece.json.as_ref().is_some_and(|json| !json.is_empty());
        let fits = |call: &OpenCall| {
            // A name with arguments after complete arguments begins another call, whatever its
            // index or id. A name that is repeated earlier is an echo.
            if named && brings && is_whole(&call.json) {
                return false;
            }
            match (piece.index, id) {
                (Some(index), Some(id)) => {
                    call.index == Some(index) && (call.given == id || call.given.is_empty() || !named)
                }
                (Some(index), None) => call.index == Some(index),
                (None, Some(id)) => call.given == id,
                (None, None) => !named,
            }
        };
        self.all.iter().rposition(|call| !call.ended && fits(call))
    }

    fn open(&mut self, piece: &Piece<'_>) {
        let given = piece.id.unwrap_or_default().to_owned();
        let id = self.unique(&given);
        self.all.push(OpenCall { index: piece.index, given, id, ..OpenCall::default() });
    }

    fn unique(&mut self, given: &str) -> String {
        let mut id = given.to_owned();
        let mut number = self.used.len();
        while id.is_empty() || self.used.contains(&id) {
            id = format!("call_{number}");
            number += 1;
        }
        self.used.insert(id.clone());
        id
    }

    /// Ends the call with this index; `json` is its whole arguments, if they did not arrive in
    /// pieces.
    pub(super) fn end(&mut self, index: u64, json: Option<&str>, out: &mut Vec<Event>) {
        if let Some(number) = self.all.iter().rposition(|call| !call.ended && call.index == Some(index)) {
            if let (Some(json), true) = (json, self.all[number].json.is_empty()) {
                self.take(Piece { index: Some(index), json: Some(json.to_owned()), ..Piece::default() }, out);
            }
            self.all[number].end(number, out);
        }
    }

    /// Adds a whole call.
    pub(super) fn whole(
        &mut self,
        call: &Value,
        arguments: &Value,
        signature: Option<Value>,
        out: &mut Vec<Event>,
    ) {
        let json = arguments.is_object().then(|| arguments.to_string());
        // The provider's index is unreliable; the position of the call is used instead.
        let index = self.all.len() as u64;
        let (id, name) = (text(call, "id"), text(call, "name").or_else(|| text(&call["function"], "name")));
        self.take(Piece { index: Some(index), id, name, json, signature }, out);
        self.end(index, None, out);
    }

    /// The last events of a response.
    pub(super) fn finish(&mut self, stop: Option<Stop>, out: &mut Vec<Event>) {
        for (number, call) in self.all.iter_mut().enumerate() {
            call.end(number, out);
        }
        out.push(Event::End(stop.unwrap_or_else(|| self.stop())));
    }
}

impl OpenCall {
    fn end(&mut self, index: usize, out: &mut Vec<Event>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        if !self.begun {
            out.push(Event::CallBegins { index, id: self.id.clone(), name: self.name.clone() });
        }
        let (id, name, raw) = (self.id.clone(), self.name.clone(), std::mem::take(&mut self.json));
        let call = match arguments(&raw) {
            _ if name.is_empty() => {
                Err(InvalidCall { id, name, raw, why: "the call names no tool".to_owned() })
            }
            Ok(arguments) => Ok(ToolCall { id, name, arguments, signature: self.signature.take() }),
            Err(why) => Err(InvalidCall { id, name, raw, why }),
        };
        out.push(Event::CallEnds { index, call });
    }
}

fn is_whole(json: &str) -> bool {
    matches!(serde_json::from_str(json), Ok(Value::Object(_)))
}

/// The arguments as an object. No text is an empty object, some servers wrap the object into a
/// string, and small models write JSON with faults that can be repaired.
fn arguments(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(raw) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(Value::String(inner)) if is_whole(&inner) => arguments(&inner),
        Ok(_) => Err("the arguments must be a JSON object".to_owned()),
        Err(error) => match lenient_json::read(raw) {
            Some(object @ Value::Object(_)) => Ok(object),
            _ => Err(format!("the arguments are not valid JSON: {error}")),
        },
    }
}
