//! The providers' protocols: how a request is written in each, and how a response is read.
//!
//! Nothing here does I/O: a request becomes a URL and a JSON body, and the messages of a response
//! become events. `http_model.rs` sends, receives and retries.

mod anthropic;
mod call_assembler;
mod chat;
mod gemini;
mod ollama;
mod responses;
mod think_tags;

use serde_json::{Value, json};

use super::{Event, ModelError, ModelInfo, Part, Request, Stop, Usage};
use call_assembler::{CallAssembler, Piece};

/// The protocols that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, which most providers speak.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Google's `streamGenerateContent`.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

impl Api {
    /// All protocols.
    pub const ALL: [Api; 5] = [Api::Anthropic, Api::Chat, Api::Responses, Api::Gemini, Api::Ollama];

    /// The name in settings.
    pub fn id(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic",
            Api::Chat => "chat",
            Api::Responses => "responses",
            Api::Gemini => "gemini",
            Api::Ollama => "ollama",
        }
    }

    /// The protocol with this name in settings.
    pub fn from_id(id: &str) -> Option<Self> {
        Api::ALL.into_iter().find(|api| api.id() == id)
    }

    /// The URL of a request. A base URL may end with a version or not.
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

    /// The headers of every request.
    pub(crate) fn headers(self, key: Option<&str>) -> Vec<(String, String)> {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = Vec::new();
        if self == Api::Anthropic {
            headers.push(header("anthropic-version", "2023-06-01"));
        }
        headers.extend(key.map(|key| match self {
            Api::Anthropic => header("x-api-key", key),
            Api::Gemini => header("x-goog-api-key", key),
            Api::Chat | Api::Responses | Api::Ollama => header("authorization", &format!("Bearer {key}")),
        }));
        headers
    }

    /// The body of a request.
    pub(crate) fn body(self, info: &ModelInfo, request: &Request) -> Value {
        let request = &super::normalize::normalized(request, info);
        match self {
            Api::Anthropic => anthropic::body(info, request),
            Api::Chat => chat::body(info, request),
            Api::Responses => responses::body(info, request),
            Api::Gemini => gemini::body(info, request),
            Api::Ollama => ollama::body(info, request),
        }
    }

    /// A decoder for the response to a request.
    pub(crate) fn decoder(self, info: &ModelInfo, request: &Request) -> Decoder {
        let protocol: Box<dyn Decode> = match self {
            Api::Anthropic => Box::<anthropic::Decoder>::default(),
            Api::Chat => Box::new(chat::Decoder::new(&info.provider)),
            Api::Responses => Box::<responses::Decoder>::default(),
            Api::Gemini => Box::new(gemini::Decoder),
            Api::Ollama => Box::new(ollama::Decoder),
        };
        let calls = CallAssembler::new(request);
        let decoded = Decoded { provider: info.provider.clone(), calls, stop: None, events: Vec::new() };
        Decoder { protocol, decoded }
    }
}

/// Reads a response, message by message.
pub(crate) struct Decoder {
    protocol: Box<dyn Decode>,
    decoded: Decoded,
}

impl Decoder {
    /// Reads one message of the stream. Events before an error are valid.
    pub(crate) fn take(&mut self, message: &Value, out: &mut Vec<Event>) -> Result<(), ModelError> {
        let is_error = message.get("error").is_some_and(|error| !error.is_null())
            || message.get("type").and_then(Value::as_str) == Some("error");
        if is_error {
            return Err(ModelError::from_stream(message));
        }
        let result = self.protocol.take(message, &mut self.decoded);
        out.append(&mut self.decoded.events);
        result
    }

    /// Whether the response is complete; at most a token count may follow.
    pub(crate) fn is_complete(&self) -> bool {
        self.decoded.stop.is_some()
    }

    /// The last events of a complete response.
    pub(crate) fn finish(&mut self, out: &mut Vec<Event>) {
        self.protocol.finish(&mut self.decoded);
        let Decoded { calls, stop, events, .. } = &mut self.decoded;
        calls.finish(stop.take(), events);
        out.append(events);
    }
}

/// A protocol's side of a [`Decoder`].
trait Decode: Send {
    fn take(&mut self, message: &Value, out: &mut Decoded) -> Result<(), ModelError>;

    /// Called at the end of the response.
    fn finish(&mut self, _: &mut Decoded) {}
}

/// The result of decoding so far.
struct Decoded {
    provider: String,
    calls: CallAssembler,
    stop: Option<Stop>,
    events: Vec<Event>,
}

impl Decoded {
    fn text(&mut self, text: Option<&str>) {
        self.events.extend(text.map(|text| Event::Text(text.to_owned())));
    }

    fn thought(&mut self, text: Option<&str>) {
        self.events.extend(text.map(|text| Event::Thought(text.to_owned())));
    }

    fn signature(&mut self, value: Value) {
        self.events.push(Event::Signature(signed_by(&self.provider, value)));
    }

    /// A web search of the provider, of which nothing is sent back.
    fn search(&mut self, arguments: &Value) {
        self.search_text(arguments);
        // Ends the thought, so that a later one with a signature of the provider stays by itself.
        self.signature(json!({ "search": true }));
    }

    /// Shows the query of a web search as a thought.
    fn search_text(&mut self, arguments: &Value) {
        let query = text(arguments, "query").or(arguments["queries"][0].as_str());
        self.thought(query.map(|query| format!("Web search: {query}\n")).as_deref());
    }

    fn call_piece(&mut self, piece: Piece<'_>) {
        self.calls.take(piece, &mut self.events);
    }

    fn end_call(&mut self, index: u64, json: Option<&str>) {
        self.calls.end(index, json, &mut self.events);
    }

    fn usage(&mut self, usage: Usage) {
        self.events.push(Event::Usage(usage));
    }

    /// Tokens as OpenAI and Google count them: cached input is part of the input.
    fn usage_with_cache(&mut self, input: u64, cached: u64, output: u64, thought: u64) {
        self.usage(Usage {
            input: input.saturating_sub(cached),
            output,
            cache_read: cached.min(input),
            cache_write: 0,
            thought,
        });
    }
}

/// A string member, if it is not empty.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// A number; 0 if it is missing.
fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// The elements of an array member.
fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// A signature that only this provider gets back.
fn signed_by(provider: &str, mut value: Value) -> Value {
    value["of"] = json!(provider);
    value
}

/// A member of the signature, if the signature is this provider's.
fn own_signature<'a>(signature: &'a Option<Value>, info: &ModelInfo, member: &str) -> Option<&'a Value> {
    let signature = signature.as_ref()?;
    (signature.get("of").and_then(Value::as_str) == Some(&info.provider)).then(|| signature.get(member))?
}

/// The limit for the response's tokens, if the request has one.
fn max_output(info: &ModelInfo, request: &Request) -> Option<u32> {
    request.max_output.map(|max| max.min(info.max_output))
}

/// Media as a data URL.
fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// The text of a tool's result.
fn result_text(parts: &[Part], failed: bool) -> String {
    let text = super::text_of(parts);
    match (text.is_empty(), failed) {
        (true, true) => "failed".to_owned(),
        (true, false) => "(no output)".to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
