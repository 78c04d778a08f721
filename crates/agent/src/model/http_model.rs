//! A model behind HTTP: sends requests, reads responses, and retries where that is safe.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use serde_json::Value;
use tracing::Instrument as _;

use super::api::Decoder;
use super::error::tidy;
use super::provider::{Provider, Providers};
use super::{ErrorKind, Event, Events, Model, ModelError, ModelInfo, Request, Stream};
use attache_http::client::sse::{Lines, Sse, TooLong};
use attache_http::client::{self as http, ErrorKind as HttpErrorKind, HttpClient, HttpError};

/// Time limits and retries of requests to models.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Until the head of the response. Some providers think before they send anything.
    pub first: Duration,
    /// Between two chunks of a response, keep-alives included.
    pub idle: Duration,
    /// After a complete response, for a token count that may follow.
    pub tail: Duration,
    /// How often to retry.
    pub retries: u32,
    /// The pause before the first retry; it doubles each time.
    pub pause: Duration,
    /// For model servers to list their models when the agent starts.
    pub discovery: Duration,
    /// For the server of the model in use to report the model's window, if it did not answer
    /// before.
    pub lookup: Duration,
}

impl Timeouts {
    /// With this limit for silence, before and during a response.
    pub fn for_silence(self, limit: Duration) -> Self {
        Timeouts { first: limit, idle: limit, ..self }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            first: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            tail: Duration::from_secs(3),
            retries: 4,
            pause: Duration::from_secs(1),
            discovery: Duration::from_millis(700),
            lookup: Duration::from_secs(5),
        }
    }
}

/// A model of a provider.
pub(super) struct HttpModel {
    pub(super) info: ModelInfo,
    pub(super) providers: Providers,
    pub(super) http: HttpClient,
    pub(super) timeouts: Timeouts,
}

impl Model for HttpModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn start(&self, request: Request) -> Stream {
        // PROV-04: looked up each time, because a disabled provider gets no more requests.
        let provider = match self.providers.get(&self.info.provider) {
            Some(provider) if provider.enabled => provider,
            _ => {
                let message = format!("the provider `{}` is disabled", self.info.provider);
                return Stream::failed(ModelError::new(ErrorKind::Auth, message));
            }
        };
        let sampling = provider.sampling_of(&self.info);
        let request = Request {
            temperature: request.temperature.or(sampling.temperature),
            max_output: request.max_output.or(sampling.max_tokens),
            web_search: request.web_search && provider.web_search,
            ..request
        };
        if !provider.is_ready() {
            let message = format!("no key for {}, see {}", provider.name, provider.key_vars.join(" or "));
            return Stream::failed(ModelError::new(ErrorKind::Auth, message));
        }
        let timeouts = provider.timeout.map_or(self.timeouts, |limit| self.timeouts.for_silence(limit));
        let (info, http) = (self.info.clone(), self.http.clone());
        let span = tracing::info_span!("model_request", provider = info.provider, model = info.id);
        Stream::new(|events| {
            Exchange { info, http, timeouts, provider, request, events, sent: false }.run().instrument(span)
        })
    }
}

/// A request until it is answered or has failed.
struct Exchange {
    info: ModelInfo,
    http: HttpClient,
    timeouts: Timeouts,
    provider: Provider,
    request: Request,
    events: Events,
    /// Whether the reader got content, which a retry would repeat or contradict.
    sent: bool,
}

impl Exchange {
    async fn run(mut self) -> Result<(), ModelError> {
        let body = self.provider.api.body(&self.info, &self.request);
        let url = self.provider.api.url(&self.provider.base_url, &self.info.id);
        let mut message = http::Request::post_json(url, &body)
            .header("accept", "text/event-stream, application/json")
            .header("accept-encoding", "identity");
        message.headers.extend(self.provider.request_headers());
        let mut attempt = 0;
        loop {
            tracing::debug!(attempt, bytes = message.body.len(), "sending a request");
            let Err(mut error) = self.attempt(message.clone()).await else { return Ok(()) };
            error.message = self.provider.mask(&error.message);
            let (kind, status) = (error.kind, error.status);
            tracing::warn!(attempt, ?kind, status, %error, "the request failed");
            let pause = if self.sent || attempt >= self.timeouts.retries {
                None
            } else {
                error.pause(attempt, self.timeouts.pause, random())
            };
            let Some(after) = pause else { return Err(error) };
            self.events.send(Event::Retry { after, why: error.to_string() }).await;
            tokio::time::sleep(after).await;
            attempt += 1;
        }
    }

    async fn attempt(&mut self, message: http::Request) -> Result<(), ModelError> {
        let sending = self.http.send(message);
        let mut response = match tokio::time::timeout(self.timeouts.first, sending).await {
            Ok(response) => response.map_err(|error| self.unreachable(error))?,
            Err(_) => return Err(silent(self.timeouts.first)),
        };
        if !(200..300).contains(&response.status) {
            let reading = tokio::time::timeout(self.timeouts.idle, response.body.bytes(MAX_ERROR));
            // An error without its text is still an error.
            let body = reading.await.ok().and_then(Result::ok).unwrap_or_default();
            let body = String::from_utf8_lossy(&body);
            return Err(ModelError::from_response(response.status, &body, |name| response.header(name)));
        }
        let encoding = response.header("content-encoding").unwrap_or("identity");
        if !encoding.eq_ignore_ascii_case("identity") {
            let why = format!("it is compressed ({}), which was not requested", tidy(encoding));
            return Err(ModelError::protocol(why));
        }
        let framing = Framing::of(response.header("content-type").unwrap_or_default())?;
        self.read(response.body, framing).await
    }

    async fn read(&mut self, mut body: http::Body, mut framing: Framing) -> Result<(), ModelError> {
        let mut decoder = self.provider.api.decoder(&self.info, &self.request);
        loop {
            let limit = if decoder.is_complete() { self.timeouts.tail } else { self.timeouts.idle };
            let chunk = match tokio::time::timeout(limit, body.chunk()).await {
                Ok(Ok(chunk)) => chunk,
                // A complete response does not depend on how its connection ends.
                Ok(Err(_)) | Err(_) if decoder.is_complete() => None,
                Ok(Err(error)) => {
                    return Err(ModelError::network(format!("the response was cut off: {error}")));
                }
                Err(_) => return Err(silent(limit)),
            };
            let messages = match &chunk {
                Some(bytes) => framing.push(bytes),
                None => framing.finish(),
            };
            let messages = messages.map_err(|error| ModelError::protocol(error.to_string()))?;
            let done = self.decode(&mut decoder, &messages).await?;
            if done || chunk.is_none() {
                if !done && !decoder.is_complete() {
                    let why = "the response was cut off: the provider closed the connection";
                    return Err(ModelError::network(why));
                }
                let mut events = Vec::new();
                decoder.finish(&mut events);
                self.send(events).await;
                return Ok(());
            }
        }
    }

    /// Decodes messages. Returns whether the stream ends with them.
    async fn decode(&mut self, decoder: &mut Decoder, messages: &[String]) -> Result<bool, ModelError> {
        for message in messages {
            let message = message.trim();
            if message == "[DONE]" {
                return Ok(true);
            }
            if message.is_empty() {
                continue;
            }
            let value: Value = serde_json::from_str(message).map_err(|_| {
                let start: String = message.chars().take(60).collect();
                ModelError::protocol(format!("a message is not JSON: {}", tidy(&start)))
            })?;
            let values = match value {
                Value::Array(values) => values,
                value => vec![value],
            };
            for value in &values {
                let mut events = Vec::new();
                let decoded = decoder.take(value, &mut events);
                self.send(events).await;
                decoded?;
            }
        }
        Ok(false)
    }

    async fn send(&mut self, events: Vec<Event>) {
        for event in events {
            match &event {
                // A later token count replaces an earlier one, so a retry may repeat it.
                Event::Usage(usage) => {
                    tracing::debug!(input = usage.context(), output = usage.output, "usage")
                }
                _ => self.sent = true,
            }
            self.events.send(event).await;
        }
    }

    fn unreachable(&self, error: HttpError) -> ModelError {
        match error {
            _ if error.kind() == HttpErrorKind::Invalid => {
                ModelError::new(ErrorKind::Other, error.to_string())
            }
            _ if error.is_connect() && self.provider.is_self_hosted() => {
                ModelError::new(ErrorKind::Network, format!("{error}; is {} running?", self.provider.name))
            }
            error => ModelError::network(error.to_string()),
        }
    }
}

/// The most bytes of an error body.
const MAX_ERROR: usize = 256 * 1024;

fn silent(limit: Duration) -> ModelError {
    let seconds = limit.as_secs_f32();
    ModelError::network(format!(
        "the provider has been silent for {seconds} s; if it needs longer, raise --model-timeout"
    ))
}

/// A number between 0 and 1. The standard library seeds its hash maps at random, which is good
/// enough for jitter.
fn random() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1u64 << 53) as f64
}

/// How the messages of a response are separated.
enum Framing {
    Events(Sse),
    Lines(Lines),
    /// One message, from servers that do not stream.
    Whole(Vec<u8>),
}

impl Framing {
    fn of(content_type: &str) -> Result<Self, ModelError> {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_lowercase();
        match kind.as_str() {
            // Some servers omit the type and send what was requested.
            "text/event-stream" | "" | "text/plain" | "application/octet-stream" => {
                Ok(Framing::Events(Sse::default()))
            }
            "application/x-ndjson" | "application/jsonl" => Ok(Framing::Lines(Lines::default())),
            "application/json" => Ok(Framing::Whole(Vec::new())),
            other => Err(ModelError::protocol(format!("it is {} instead of an event stream", tidy(other)))),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        // Some servers declare an event stream as JSON.
        if let Framing::Whole(all) = self
            && all.is_empty()
            && !bytes.trim_ascii_start().starts_with(b"{")
            && !bytes.trim_ascii_start().starts_with(b"[")
        {
            *self = Framing::Events(Sse::default());
        }
        let mut messages = Vec::new();
        match self {
            Framing::Events(sse) => {
                sse.push(bytes);
                while let Some(event) = sse.next_event()? {
                    messages.push(event.data);
                }
            }
            Framing::Lines(lines) => {
                lines.push(bytes);
                while let Some(line) = lines.next_line()? {
                    messages.push(String::from_utf8_lossy(line).into_owned());
                }
            }
            Framing::Whole(all) if all.len() + bytes.len() > MAX_WHOLE => {
                return Err(TooLong { head: String::new() });
            }
            Framing::Whole(all) => all.extend_from_slice(bytes),
        }
        Ok(messages)
    }

    fn finish(&mut self) -> Result<Vec<String>, TooLong> {
        let rest = match self {
            Framing::Events(sse) => sse.finish()?.map(|event| event.data),
            Framing::Lines(lines) => lines.finish().map(|line| String::from_utf8_lossy(&line).into_owned()),
            Framing::Whole(all) => Some(String::from_utf8_lossy(all).into_owned()),
        };
        Ok(rest.into_iter().collect())
    }
}

/// The longest response that is not streamed, in bytes.
const MAX_WHOLE: usize = 64 * 1024 * 1024;
