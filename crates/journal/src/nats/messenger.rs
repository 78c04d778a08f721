//! Messages to other programs on the same journal. The server does not store them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::client::{Client, Event, Message};
use super::record::encode;
use crate::error::{Error, Result};

/// The status of a request to a subject without subscriptions.
const NO_RESPONDERS: u16 = 503;

/// Requests, replies and subscriptions on the connection of a journal. Cheap to clone.
///
/// A message is delivered at most once, to the subscriptions of that moment. It is lost with the
/// connection.
///
/// Example: [`Nats::messenger`](super::Nats::messenger).
#[derive(Clone)]
pub struct Messenger {
    client: Client,
    /// The first word of all subjects.
    name: Arc<str>,
}

/// The reason why a request has no reply.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RequestError {
    /// The subject has no subscriptions, so the request reached none.
    NoResponders,
    /// The server does not accept messages of this length. The request was not sent.
    TooLarge {
        /// The most bytes of a message.
        limit: usize,
    },
    /// The time is over.
    TimedOut,
    /// The connection failed. The request may have been received.
    Failed(Error),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::NoResponders => f.write_str("the request has no receiver"),
            RequestError::TooLarge { limit } => {
                write!(f, "the message is too large: the NATS server takes {limit} bytes")
            }
            RequestError::TimedOut => f.write_str("no reply came in time"),
            RequestError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RequestError::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl Messenger {
    pub(super) fn new(client: Client, name: Arc<str>) -> Self {
        Messenger { client, name }
    }

    /// The subject of these words, below the name of the journal. A word may be any text.
    pub fn subject(&self, words: &[&str]) -> String {
        words.iter().fold(self.name.to_string(), |subject, word| format!("{subject}.{}", encode(word)))
    }

    /// The most bytes of a message.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a connection.
    pub async fn max_payload(&self) -> Result<usize> {
        self.client.max_payload().await
    }

    /// Sends a request and waits for the first reply.
    ///
    /// # Errors
    /// All of [`RequestError`].
    pub async fn request(
        &self,
        subject: &str,
        payload: Bytes,
        wait: Duration,
    ) -> std::result::Result<Message, RequestError> {
        self.check(&payload).await?;
        // The connection gives up by itself after some seconds.
        match timeout(wait, self.client.request(subject, String::new(), payload)).await {
            Err(_) => Err(RequestError::TimedOut),
            Ok(Ok(message)) if message.status() == Some(NO_RESPONDERS) => Err(RequestError::NoResponders),
            Ok(Ok(message)) => Ok(message),
            Ok(Err(error)) => Err(RequestError::Failed(error)),
        }
    }

    /// Sends a message, or a reply to [`Message::reply_to`].
    ///
    /// # Errors
    /// [`RequestError::TooLarge`]; [`RequestError::Failed`] without a connection.
    pub async fn publish(&self, subject: &str, payload: Bytes) -> std::result::Result<(), RequestError> {
        self.check(&payload).await?;
        self.client.publish(subject, payload).await.map_err(RequestError::Failed)
    }

    /// Receives the messages of a subject until the subscription is dropped. After a lost
    /// connection it is made again. While `capacity` messages wait, new ones are dropped.
    ///
    /// # Errors
    /// [`Error::Closed`] if the runtime ends.
    pub async fn subscribe(&self, subject: &str, capacity: usize) -> Result<Subscription> {
        let (sender, messages) = mpsc::channel(capacity.max(1));
        let id = self.client.delivery_subject().0;
        let events = move |event| {
            if let Event::Message(message) = event
                && let Err(mpsc::error::TrySendError::Full(_)) = sender.try_send(message)
            {
                tracing::warn!("a message is dropped because too many wait");
            }
        };
        self.client.subscribe(id, subject.to_owned(), Box::new(events)).await?;
        Ok(Subscription { client: self.client.clone(), id, messages })
    }

    /// Fails for a message that would end the connection.
    async fn check(&self, payload: &Bytes) -> std::result::Result<(), RequestError> {
        let limit = self.client.max_payload().await.map_err(RequestError::Failed)?;
        match payload.len() > limit {
            true => Err(RequestError::TooLarge { limit }),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Messenger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messenger({})", self.name)
    }
}

/// The messages of a subject.
pub struct Subscription {
    client: Client,
    id: u64,
    messages: mpsc::Receiver<Message>,
}

impl Subscription {
    /// The next message. `None` if the connection's task has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Message> {
        self.messages.recv().await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.client.unsubscribe(self.id);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
