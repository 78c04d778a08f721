//! Requests to JetStream.

use bytes::Bytes;
use serde_json::{Value, json};

use super::client::{Client, Message};
use super::record::StoredRecord;
use super::unavailable;
use crate::error::{Error, Result};

/// The expected position is not that of the last message of the subject.
const WRONG_LAST_POSITION: u64 = 10071;
/// The stream exists with other settings.
const STREAM_EXISTS: u64 = 10058;
/// The stream, the account or the disk has no room.
const FULL: [u64; 4] = [10077, 10023, 10047, 10028];

/// A stream of the server.
#[derive(Clone)]
pub(super) struct Stream {
    pub(super) client: Client,
    pub(super) name: String,
    /// The beginning of its subjects.
    pub(super) prefix: String,
}

/// The outcome of a conditional publication.
pub(super) enum Published {
    /// The position of the message.
    At(u64),
    /// Another message is the last one of the subject.
    Superseded,
}

impl Stream {
    /// Creates the stream; one that exists is used as it is.
    pub(super) async fn create(&self, mut settings: Value) -> Result<()> {
        settings["name"] = self.name.as_str().into();
        settings["subjects"] = json!([format!("{}.>", self.prefix)]);
        settings["storage"] = "file".into();
        settings["allow_direct"] = true.into();
        match self.call("STREAM.CREATE", &settings).await {
            Err(Failure::Code(STREAM_EXISTS, _)) => Ok(()),
            other => other.map(drop).map_err(Error::from),
        }
    }

    /// Publishes a message if the last one of the subject is at `last` (0: there is none).
    pub(super) async fn publish(
        &self,
        subject: &str,
        headers: &str,
        payload: Bytes,
        last: Option<u64>,
    ) -> Result<Published> {
        let mut headers = headers.to_owned();
        if let Some(last) = last {
            headers.push_str(&format!("Nats-Expected-Last-Subject-Sequence: {last}\r\n"));
        }
        let subject = format!("{}.{subject}", self.prefix);
        match reply(self.client.request(&subject, headers, payload).await?) {
            Ok(answer) => answer["seq"]
                .as_u64()
                .map(Published::At)
                .ok_or_else(|| unavailable("the NATS server acknowledged without a position")),
            Err(Failure::Code(WRONG_LAST_POSITION, _)) => Ok(Published::Superseded),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The last message of a subject, undecoded.
    pub(super) async fn last_message(&self, subject: &str) -> Result<Message> {
        self.get(&json!({ "last_by_subj": format!("{}.{subject}", self.prefix) })).await
    }

    /// The last record of a session.
    pub(super) async fn last(&self, subject: &str) -> Result<Option<StoredRecord>> {
        StoredRecord::from_message(self.last_message(subject).await?)
    }

    /// The first record of a session at or behind a position.
    pub(super) async fn next(&self, subject: &str, position: u64) -> Result<Option<StoredRecord>> {
        let query = json!({ "seq": position.max(1), "next_by_subj": format!("{}.{subject}", self.prefix) });
        StoredRecord::from_message(self.get(&query).await?)
    }

    async fn get(&self, query: &Value) -> Result<Message> {
        let subject = format!("$JS.API.DIRECT.GET.{}", self.name);
        self.client.request(&subject, String::new(), query.to_string().into()).await
    }

    /// Removes the messages of a subject, or those before a position.
    pub(super) async fn purge(&self, subject: &str, before: Option<u64>) -> Result<()> {
        let mut query = json!({ "filter": format!("{}.{subject}", self.prefix) });
        if let Some(before) = before {
            query["seq"] = before.into();
        }
        Ok(self.call("STREAM.PURGE", &query).await.map(drop)?)
    }

    /// The subjects that match a filter, without the prefix.
    pub(super) async fn subjects(&self, filter: &str) -> Result<Vec<String>> {
        let prefix = format!("{}.", self.prefix);
        let mut subjects = Vec::new();
        loop {
            let query = json!({ "subjects_filter": format!("{prefix}{filter}"), "offset": subjects.len() });
            let info = self.call("STREAM.INFO", &query).await?;
            let Some(found) = info["state"]["subjects"].as_object() else { return Ok(subjects) };
            let known = subjects.len();
            subjects
                .extend(found.keys().filter_map(|subject| Some(subject.strip_prefix(&prefix)?.to_owned())));
            if subjects.len() == known || subjects.len() as u64 >= info["total"].as_u64().unwrap_or_default()
            {
                return Ok(subjects);
            }
        }
    }

    /// Lets the server announce new messages of a subject at `deliver`, without their payloads.
    pub(super) async fn announce(&self, subject: &str, deliver: &str) -> Result<()> {
        let query = json!({
            "stream_name": self.name,
            "config": {
                "deliver_subject": deliver,
                "deliver_policy": "new",
                "ack_policy": "none",
                "replay_policy": "instant",
                "filter_subject": format!("{}.{subject}", self.prefix),
                "headers_only": true,
                "idle_heartbeat": 1_000_000_000_u64,
                "mem_storage": true,
            },
        });
        Ok(self.call("CONSUMER.CREATE", &query).await.map(drop)?)
    }

    async fn call(&self, method: &str, query: &Value) -> std::result::Result<Value, Failure> {
        let subject = format!("$JS.API.{method}.{}", self.name);
        let answer = self.client.request(&subject, String::new(), query.to_string().into()).await;
        reply(answer.map_err(Failure::Client)?)
    }
}

enum Failure {
    Client(Error),
    Code(u64, String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Client(error) => error,
            Failure::Code(code, _) if FULL.contains(&code) => Error::Full,
            Failure::Code(code, text) => unavailable(&format!("JetStream: {text} ({code})")),
        }
    }
}

/// The content of an answer of JetStream.
fn reply(message: Message) -> std::result::Result<Value, Failure> {
    if message.status() == Some(503) {
        return Err(Failure::Client(unavailable("JetStream is not enabled on the NATS server")));
    }
    let answer: Value = serde_json::from_slice(&message.payload)
        .map_err(|_| Failure::Client(unavailable("the NATS server sent an invalid answer")))?;
    match answer["error"]["err_code"].as_u64() {
        Some(code) => {
            Err(Failure::Code(code, answer["error"]["description"].as_str().unwrap_or_default().to_owned()))
        }
        None => Ok(answer),
    }
}
