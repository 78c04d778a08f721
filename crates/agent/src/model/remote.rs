//! A model behind HTTP: asks, reads, and asks again where that is safe.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use serde_json::Value;

use super::api::Decode;
use super::fault::{self, Fault};
use super::lines::{Lines, Sse, TooLong};
use super::provider::{Provider, Providers};
use super::{Event, Events, Model, ModelError, ModelInfo, Request, Stream};
use crate::http::{self, Http, HttpError};

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until the head of the answer is there. Some providers think before they say anything.
    pub first: Duration,
    /// Between two pieces of an answer; signs of life without content count.
    pub idle: Duration,
    /// For what may follow an answer that is complete.
    pub tail: Duration,
    /// How often to ask again.
    pub retries: u32,
    /// The pause before the first of these; each further one is twice as long.
    pub pause: Duration,
    /// For servers on this machine to say what they have. Nobody shall wait for one that is not there.
    pub look: Duration,
}

impl Patience {
    /// The same, but no longer than this for a sign of life, at first and later.
    pub fn for_silence(self, limit: Duration) -> Self {
        Patience { first: limit, idle: limit, ..self }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            first: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            tail: Duration::from_secs(3),
            retries: 4,
            pause: Duration::from_secs(1),
            look: Duration::from_millis(700),
        }
    }
}

/// A model of a provider.
pub(crate) struct Remote {
    pub(crate) info: ModelInfo,
    pub(crate) providers: Providers,
    pub(crate) http: Http,
    pub(crate) patience: Patience,
}

impl Model for Remote {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn start(&self, request: Request) -> Stream {
        // Looked up anew each time: PROV-04, a provider that was disabled gets no more requests.
        let provider = match self.providers.get(&self.info.provider) {
            Some(provider) if provider.enabled => provider,
            _ => {
                let message = format!("the provider `{}` is disabled", self.info.provider);
                return Stream::failed(ModelError::Auth(message));
            }
        };
        if !provider.is_ready() {
            let vars = provider.key_vars.join(" or ");
            return Stream::failed(ModelError::Auth(format!(
                "there is no key for {}, see {vars}",
                provider.name
            )));
        }
        let patience = provider.timeout.map_or(self.patience, |limit| self.patience.for_silence(limit));
        let (info, http) = (self.info.clone(), self.http.clone());
        Stream::new(|events| Asking { info, http, patience, provider, request, events }.run())
    }
}

/// One question, asked until it is answered or cannot be.
struct Asking {
    info: ModelInfo,
    http: Http,
    patience: Patience,
    provider: Provider,
    request: Request,
    events: Events,
}

impl Asking {
    async fn run(self) -> Result<(), ModelError> {
        let body = self.provider.api.body(&self.info, &self.request);
        let mut message =
            http::Request::post_json(self.provider.api.url(&self.provider.base_url, &self.info.id), &body);
        message.headers.extend(self.provider.request_headers());
        message.headers.push(("accept".to_owned(), "text/event-stream, application/json".to_owned()));
        message.headers.push(("accept-encoding".to_owned(), "identity".to_owned()));
        let mut attempt = 0;
        loop {
            let mut shown = false;
            let Err(mut fault) = self.once(message.clone(), &mut shown).await else { return Ok(()) };
            fault.error = fault.error.map_text(|text| self.provider.mask(text));
            // What was shown cannot be taken back, so asking again would show it twice or show something else.
            let pause = if shown || attempt >= self.patience.retries {
                None
            } else {
                fault::pause(&fault, attempt, self.patience.pause, chance())
            };
            let Some(after) = pause else { return Err(fault.error) };
            self.events.send(Event::Retry { after, why: fault.error.to_string() }).await;
            tokio::time::sleep(after).await;
            attempt += 1;
        }
    }

    async fn once(&self, message: http::Request, shown: &mut bool) -> Result<(), Fault> {
        let sending = self.http.send(message);
        let mut answer = match tokio::time::timeout(self.patience.first, sending).await {
            Ok(answer) => answer.map_err(|error| self.unreachable(error))?,
            Err(_) => return Err(silent(self.patience.first)),
        };
        if !(200..300).contains(&answer.status) {
            let reading = tokio::time::timeout(self.patience.idle, answer.body.bytes(LONGEST_ERROR));
            // Without its text an error is still an error.
            let body = reading.await.ok().and_then(Result::ok).unwrap_or_default();
            let body = String::from_utf8_lossy(&body);
            return Err(fault::of_answer(answer.status, &body, |name| answer.header(name)));
        }
        let encoding = answer.header("content-encoding").unwrap_or("identity");
        if !encoding.eq_ignore_ascii_case("identity") {
            let why = format!("it is compressed ({}), which was not asked for", fault::tidy(encoding));
            return Err(Fault::last(ModelError::Protocol(why)));
        }
        let form = Form::of(answer.header("content-type").unwrap_or_default())?;
        self.read(answer.body, form, shown).await
    }

    async fn read(&self, mut body: http::Body, mut form: Form, shown: &mut bool) -> Result<(), Fault> {
        let mut decoder = self.provider.api.decoder(&self.info, &self.request);
        loop {
            let limit = if decoder.is_complete() { self.patience.tail } else { self.patience.idle };
            let chunk = match tokio::time::timeout(limit, body.chunk()).await {
                Ok(Ok(chunk)) => chunk,
                // An answer that is complete does not depend on how its connection ends.
                Ok(Err(_)) | Err(_) if decoder.is_complete() => None,
                Ok(Err(error)) => return Err(broken(&error)),
                Err(_) => return Err(silent(limit)),
            };
            let messages = match &chunk {
                Some(bytes) => form.push(bytes).map_err(endless)?,
                None => form.rest().map_err(endless)?,
            };
            let done = self.take(&mut *decoder, &messages, shown).await?;
            if done || chunk.is_none() {
                if !done && !decoder.is_complete() {
                    return Err(cut_off());
                }
                let mut events = Vec::new();
                decoder.finish(&mut events);
                self.hand_out(events, shown).await;
                return Ok(());
            }
        }
    }

    /// Reads messages; whether the stream says that it ends here.
    async fn take(
        &self,
        decoder: &mut dyn Decode,
        messages: &[String],
        shown: &mut bool,
    ) -> Result<bool, Fault> {
        for message in messages {
            let message = message.trim();
            if message == "[DONE]" {
                return Ok(true);
            }
            if message.is_empty() {
                continue;
            }
            let value: Value = serde_json::from_str(message).map_err(|_| no_json(message))?;
            let list = match value {
                Value::Array(list) => list,
                value => vec![value],
            };
            for value in &list {
                let mut events = Vec::new();
                let read = decoder.take(value, &mut events);
                // What came before the error was said, and is handed out.
                self.hand_out(events, shown).await;
                read?;
            }
        }
        Ok(false)
    }

    async fn hand_out(&self, events: Vec<Event>, shown: &mut bool) {
        for event in events {
            // Counts of tokens are replaced by later ones, so they may come twice.
            *shown |= !matches!(event, Event::Usage(_));
            self.events.send(event).await;
        }
    }

    fn unreachable(&self, error: HttpError) -> Fault {
        match error {
            HttpError::Invalid(_) => {
                Fault::last(ModelError::Other { status: None, message: error.to_string() })
            }
            HttpError::Connect(_) if self.provider.is_local() => {
                Fault::last(ModelError::Network(format!("{error}; is {} running?", self.provider.name)))
            }
            error => Fault::again(ModelError::Network(error.to_string())),
        }
    }
}

/// The most that is read of an error's text.
const LONGEST_ERROR: usize = 256 * 1024;

fn broken(error: &HttpError) -> Fault {
    Fault::again(ModelError::Network(format!("the answer was cut off: {error}")))
}

fn cut_off() -> Fault {
    Fault::again(ModelError::Network("the answer was cut off: the provider hung up".to_owned()))
}

fn silent(limit: Duration) -> Fault {
    let seconds = limit.as_secs_f32();
    Fault::again(ModelError::Network(format!(
        "the provider has been silent for {seconds} s; if it needs longer, raise --model-timeout"
    )))
}

fn endless(_: TooLong) -> Fault {
    Fault::last(ModelError::Protocol("a message of it does not end".to_owned()))
}

fn no_json(message: &str) -> Fault {
    let front: String = message.chars().take(60).collect();
    Fault::last(ModelError::Protocol(format!("a message is no JSON: {}", fault::tidy(&front))))
}

/// A number between 0 and 1. The standard library seeds its hash maps at random, which is good enough to scatter.
fn chance() -> f64 {
    let number = RandomState::new().build_hasher().finish();
    (number >> 11) as f64 / (1u64 << 53) as f64
}

/// How the messages of an answer are told apart.
enum Form {
    Events(Sse),
    Lines(Lines),
    /// One message only, from servers that do not stream.
    Whole(Vec<u8>),
}

impl Form {
    fn of(kind: &str) -> Result<Self, Fault> {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_lowercase();
        match kind.as_str() {
            // Some forget to say what it is, and mean what they were asked for.
            "text/event-stream" | "" | "text/plain" | "application/octet-stream" => {
                Ok(Form::Events(Sse::default()))
            }
            "application/x-ndjson" | "application/jsonl" => Ok(Form::Lines(Lines::default())),
            "application/json" => Ok(Form::Whole(Vec::new())),
            other => {
                let why = format!("it is {} instead of a stream of events", fault::tidy(other));
                Err(Fault::last(ModelError::Protocol(why)))
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        // Some call a stream of events JSON.
        if let Form::Whole(all) = self
            && all.is_empty()
            && !bytes.trim_ascii_start().starts_with(b"{")
            && !bytes.trim_ascii_start().starts_with(b"[")
        {
            *self = Form::Events(Sse::default());
        }
        let mut messages = Vec::new();
        match self {
            Form::Events(sse) => {
                sse.push(bytes)?;
                while let Some(message) = sse.next()? {
                    messages.push(message);
                }
            }
            Form::Lines(lines) => {
                lines.push(bytes)?;
                messages.extend(std::iter::from_fn(|| lines.next()));
            }
            Form::Whole(all) if all.len() + bytes.len() > LONGEST_WHOLE => return Err(TooLong),
            Form::Whole(all) => all.extend_from_slice(bytes),
        }
        Ok(messages)
    }

    fn rest(&mut self) -> Result<Vec<String>, TooLong> {
        let rest = match self {
            Form::Events(sse) => sse.rest()?,
            Form::Lines(lines) => lines.rest(),
            Form::Whole(all) => Some(String::from_utf8_lossy(all).into_owned()),
        };
        Ok(rest.into_iter().collect())
    }
}

const LONGEST_WHOLE: usize = 64 * 1024 * 1024;
