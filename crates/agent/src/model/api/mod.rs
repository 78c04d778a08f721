//! The providers' languages: how a request is written in each, and how an answer is read.
//!
//! Everything here is plain: a request becomes a URL and a JSON body, and the pieces of an answer become events. Who
//! sends and when to ask again is `remote`'s business.

mod anthropic;
mod calls;
mod chat;
mod chat_body;
mod gemini;
mod mend;
mod ollama;
mod responses;
mod tags;

use serde_json::{Value, json};

use super::fault::{self, Fault};
use super::{Event, ModelError, ModelInfo, Part, Request, Usage};

/// The languages that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, which everybody else speaks too.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Google's `streamGenerateContent`.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Api {
    /// All of them.
    pub const ALL: [Api; 5] = [Api::Anthropic, Api::Chat, Api::Responses, Api::Gemini, Api::Ollama];

    /// The word for it in settings.
    pub fn word(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic",
            Api::Chat => "chat",
            Api::Responses => "responses",
            Api::Gemini => "gemini",
            Api::Ollama => "ollama",
        }
    }

    /// Reads such a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Api::ALL.into_iter().find(|api| api.word() == word)
    }

    /// Where a request goes, given the provider's base URL as people write it: with or without a version at its end.
    pub(crate) fn url(self, base: &str, model: &str) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Api::Anthropic => format!("{}/v1/messages", base.trim_end_matches("/v1")),
            Api::Chat => format!("{base}/chat/completions"),
            Api::Responses => format!("{base}/responses"),
            Api::Ollama => format!("{}/api/chat", base.trim_end_matches("/v1")),
            Api::Gemini => {
                let version = if base.ends_with("/v1beta") || base.ends_with("/v1") { "" } else { "/v1beta" };
                format!("{base}{version}/models/{model}:streamGenerateContent?alt=sse")
            }
        }
    }

    /// The headers that carry a key.
    pub(crate) fn key_header(self, key: &str) -> (String, String) {
        match self {
            Api::Anthropic => ("x-api-key".to_owned(), key.to_owned()),
            Api::Gemini => ("x-goog-api-key".to_owned(), key.to_owned()),
            Api::Chat | Api::Responses | Api::Ollama => ("authorization".to_owned(), format!("Bearer {key}")),
        }
    }

    /// Headers that are always there.
    pub(crate) fn fixed_headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Api::Anthropic => &[("anthropic-version", "2023-06-01")],
            _ => &[],
        }
    }

    /// The body of a request.
    pub(crate) fn body(self, info: &ModelInfo, request: &Request) -> Value {
        let request = &mend::mended(request, info);
        match self {
            Api::Anthropic => anthropic::body(info, request),
            Api::Chat => chat_body::body(info, request),
            Api::Responses => responses::body(info, request),
            Api::Gemini => gemini::body(info, request),
            Api::Ollama => ollama::body(info, request),
        }
    }

    /// What reads the answer to a request.
    pub(crate) fn decoder(self, info: &ModelInfo, request: &Request) -> Box<dyn Decode> {
        let calls = calls::Calls::new(request);
        let provider = info.provider.clone();
        match self {
            Api::Anthropic => Box::new(anthropic::Decoder::new(provider, calls)),
            Api::Chat => Box::new(chat::Decoder::new(provider, calls)),
            Api::Responses => Box::new(responses::Decoder::new(provider, calls)),
            Api::Gemini => Box::new(gemini::Decoder::new(provider, calls)),
            Api::Ollama => Box::new(ollama::Decoder::new(calls)),
        }
    }
}

/// Reads an answer, message by message.
pub(crate) trait Decode: Send {
    /// One message of the stream, as JSON.
    fn take(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), Fault>;

    /// Whether everything that matters has been said; what may follow is at most a count of tokens.
    fn is_complete(&self) -> bool;

    /// Nothing more comes: the last events, if the answer was complete.
    fn finish(&mut self, out: &mut Vec<Event>);
}

/// Errors inside of a stream look alike everywhere.
fn error_in(message: &Value) -> Option<Fault> {
    let is_error = message.get("error").is_some_and(|error| !error.is_null())
        || message.get("type").and_then(Value::as_str) == Some("error");
    is_error.then(|| fault::of_stream(message))
}

/// Text of a member, if it is text and not empty.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// A number that may be missing.
fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// A seal that only this provider gets back.
fn seal(provider: &str, mut value: Value) -> Value {
    value["of"] = json!(provider);
    value
}

/// The seal, if it is this provider's.
fn own_seal<'a>(seal: Option<&'a Value>, provider: &str) -> Option<&'a Value> {
    seal.filter(|seal| seal.get("of").and_then(Value::as_str) == Some(provider))
}

/// A picture or sound as a data URL.
fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// Text of a tool's result. What is no text goes elsewhere.
fn result_text(parts: &[Part], failed: bool) -> String {
    let text = super::message::text_of(parts);
    match (text.is_empty(), failed) {
        (true, true) => "failed".to_owned(),
        (true, false) => "(no output)".to_owned(),
        _ => text,
    }
}

/// Tokens as OpenAI counts them: what was found in a cache is part of what was read.
fn openai_usage(read: u64, cached: u64, written: u64, thought: u64) -> Event {
    Event::Usage(Usage {
        input: read.saturating_sub(cached),
        output: written,
        cache_read: cached.min(read),
        cache_write: 0,
        thought,
    })
}

/// The fault of a provider that does not keep to its interface.
fn nonsense(what: impl Into<String>) -> Fault {
    Fault::last(ModelError::Protocol(what.into()))
}

#[cfg(test)]
mod tests;
