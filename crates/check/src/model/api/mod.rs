//! The four APIs: how a request is read and how a reply is written.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::{Value, json};

use crate::model::http::Request;
use crate::model::talk::{Ask, Reply};

/// Events of a stream: a name, empty where the API has none, and the data.
pub(crate) type Sent = Vec<(&'static str, String)>;

/// A reply that is being streamed: `begin_text`, `text`… or `call`, then `end`.
pub(crate) trait Stream {
    fn begin_text(&mut self) -> Sent;
    fn text(&mut self, piece: &str) -> Sent;
    fn call(&mut self, tool: &str, input: &crate::model::talk::Input) -> Sent;
    fn end(&mut self, reply: &Reply) -> Sent;
}

/// The model of a reply and its number.
struct ReplyHead {
    model: String,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
}

impl Api {
    /// Which API a request is for, if it is for a model at all.
    pub(crate) fn of(request: &Request) -> Option<Api> {
        let path = request.path();
        if request.method != "POST" {
            return None;
        }
        Some(match path {
            _ if path.ends_with("/chat/completions") => Api::Chat,
            _ if path.ends_with("/responses") => Api::Responses,
            _ if path.ends_with("/messages") => Api::Messages,
            _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
                Api::Gemini
            }
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Responses => "responses",
            Api::Messages => "messages",
            Api::Gemini => "gemini",
        }
    }

    pub(crate) fn read(self, request: &Request, body: &Value) -> Ask {
        match self {
            Api::Chat => chat::read(body),
            Api::Responses => responses::read(body),
            Api::Messages => messages::read(body),
            Api::Gemini => gemini::read(request.path(), body),
        }
    }

    /// The reply in one piece.
    pub(crate) fn whole(self, model: &str, number: u64, reply: &Reply) -> Value {
        match self {
            Api::Chat => chat::whole(model, number, reply),
            Api::Responses => responses::whole(model, number, reply),
            Api::Messages => messages::whole(model, number, reply),
            Api::Gemini => gemini::whole(model, number, reply),
        }
    }

    /// The reply as a stream.
    pub(crate) fn stream(self, model: &str, number: u64) -> Box<dyn Stream> {
        let head = ReplyHead { model: model.to_owned(), number };
        match self {
            Api::Chat => Box::new(chat::Streamed(head)),
            Api::Responses => Box::new(responses::Streamed::new(model, number)),
            Api::Messages => Box::new(messages::Streamed(head)),
            Api::Gemini => Box::new(gemini::Streamed(head)),
        }
    }
}

/// What is asked beside replies: which models there are, how many tokens something has.
pub(crate) fn catalogue(request: &Request) -> Option<Value> {
    let path = request.path();
    match request.method.as_str() {
        "GET" if path.ends_with("/models") => Some(json!({
            "object": "list",
            "data": [{"id": "fake-model", "object": "model", "created": 0, "owned_by": "nobody"}],
            "models": [],
            "has_more": false,
        })),
        "POST" if path.ends_with("/count_tokens") => Some(json!({"input_tokens": 10})),
        "POST" if path.ends_with(":countTokens") => Some(json!({"totalTokens": 10})),
        _ => None,
    }
}

/// A member that is a text.
fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// A member that is a list.
fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}
