//! Calls that come in pieces, several at once, from servers that are careless about which is which.

use std::collections::HashSet;

use serde_json::Value;

use super::text;
use crate::model::{BadCall, Event, Part, Request, Stop, ToolCall};

/// The calls of one answer.
pub(super) struct Calls {
    /// Ids that the conversation has used already. Careless servers count from zero in every answer.
    used: HashSet<String>,
    all: Vec<Open>,
}

struct Open {
    /// What the provider calls it: an index, an id, or nothing.
    index: Option<u64>,
    given: String,
    id: String,
    name: String,
    json: String,
    seal: Option<Value>,
    begun: bool,
    ended: bool,
}

/// A piece of a call, with whatever the provider says about where it belongs.
#[derive(Default)]
pub(super) struct Piece<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) json: Option<String>,
    pub(super) seal: Option<Value>,
}

impl Calls {
    pub(super) fn new(request: &Request) -> Self {
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let used = parts.filter_map(|part| match part {
            Part::Call(call) => Some(call.id.clone()),
            _ => None,
        });
        Calls { used: used.collect(), all: Vec::new() }
    }

    /// How an answer ended that its provider says is done: some forget that they called.
    pub(super) fn stop(&self) -> Stop {
        if self.all.is_empty() { Stop::Done } else { Stop::Calls }
    }

    /// Takes a piece. It belongs to the call with its index or id; a second id with a name under the same index begins a
    /// call of its own; a piece that says nothing belongs to the last call.
    pub(super) fn take(&mut self, piece: Piece<'_>, out: &mut Vec<Event>) {
        let place = self.place(&piece);
        let number = match place {
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
        call.seal = piece.seal.or(call.seal.take());
        let json = piece.json.unwrap_or_default();
        call.json.push_str(&json);
        if !call.begun && !call.name.is_empty() {
            call.begun = true;
            out.push(Event::CallBegins { index: number, id: call.id.clone(), name: call.name.clone() });
            // What came before the name was held back.
            if !call.json.is_empty() {
                out.push(Event::CallGrows { index: number, json: call.json.clone() });
            }
        } else if call.begun && !json.is_empty() {
            out.push(Event::CallGrows { index: number, json });
        }
    }

    fn place(&self, piece: &Piece<'_>) -> Option<usize> {
        let id = piece.id.filter(|id| !id.is_empty());
        let named = piece.name.is_some();
        let brings = piece.json.as_ref().is_some_and(|json| !json.is_empty());
        let fits = |call: &Open| {
            // Whoever names a tool and brings arguments although they are complete means another call, under whatever
            // index or id. A name that comes again in the middle is an echo.
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
        self.all.push(Open {
            index: piece.index,
            given,
            id,
            name: String::new(),
            json: String::new(),
            seal: None,
            begun: false,
            ended: false,
        });
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

    /// The call with this index is complete; `json` is all of its arguments, if they were not told in pieces.
    pub(super) fn end(&mut self, index: u64, json: Option<&str>, out: &mut Vec<Event>) {
        if let Some(number) = self.all.iter().rposition(|call| !call.ended && call.index == Some(index)) {
            if let (Some(json), true) = (json, self.all[number].json.is_empty()) {
                self.take(Piece { index: Some(index), json: Some(json.to_owned()), ..Piece::default() }, out);
            }
            self.all[number].end(number, out);
        }
    }

    /// A call that comes whole.
    pub(super) fn whole(
        &mut self,
        call: &Value,
        arguments: &Value,
        seal: Option<Value>,
        out: &mut Vec<Event>,
    ) {
        let json = arguments.is_object().then(|| arguments.to_string());
        // An index that its provider may give is not relied on: it is the place at which the call came.
        let index = self.all.len() as u64;
        let (id, name) = (text(call, "id"), text(call, "name").or_else(|| text(&call["function"], "name")));
        self.take(Piece { index: Some(index), id, name, json, seal }, out);
        self.end(index, None, out);
    }

    /// The last events of an answer, given how it says that it ends.
    pub(super) fn finish(&mut self, stop: Option<Stop>, out: &mut Vec<Event>) {
        self.end_all(out);
        let stop = stop.unwrap_or_else(|| self.stop());
        out.push(Event::End(stop));
    }

    /// All calls are complete.
    fn end_all(&mut self, out: &mut Vec<Event>) {
        for (number, call) in self.all.iter_mut().enumerate() {
            call.end(number, out);
        }
    }
}

impl Open {
    fn end(&mut self, index: usize, out: &mut Vec<Event>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        if !self.begun {
            out.push(Event::CallBegins { index, id: self.id.clone(), name: self.name.clone() });
        }
        let (id, name, raw) = (self.id.clone(), self.name.clone(), std::mem::take(&mut self.json));
        let call = match arguments(&raw) {
            _ if name.is_empty() => Err(BadCall { id, name, raw, why: "the call names no tool".to_owned() }),
            Ok(arguments) => Ok(ToolCall { id, name, arguments, seal: self.seal.take() }),
            Err(why) => Err(BadCall { id, name, raw, why }),
        };
        out.push(Event::CallEnds { index, call });
    }
}

fn is_whole(json: &str) -> bool {
    matches!(serde_json::from_str(json), Ok(Value::Object(_)))
}

/// The arguments as an object. Nothing at all is an empty one, and some servers wrap it into a string once more.
fn arguments(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(raw) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(Value::String(inner)) if is_whole(&inner) => arguments(&inner),
        Ok(_) => Err("the arguments must be a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}
