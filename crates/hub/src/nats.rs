//! The way to other hubs over the NATS server of the journal.
//!
//! A hub receives the subjects `to.<node>` and `all`. A request that exceeds the server's limit for
//! messages goes in parts, each with a reply, so that one part at a time is under way.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use attache_journal::nats::{Message, Messenger, RequestError, Subscription};
use bytes::{Bytes, BytesMut};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

use crate::Hub;
use crate::network::{Network, NoReply, Requested};

/// How long a request waits for its reply.
const WAIT: Duration = Duration::from_secs(5);
/// The age of requests that are dropped. Their senders have given up, and a cancel must not reach a
/// later turn.
const STALE: Duration = Duration::from_secs(15);
/// Requests that are answered at once, and those that wait.
const CONCURRENT: usize = 64;
const WAITING: usize = 256;
/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// The most bytes of a request, and of all requests that are received in parts.
const MAX_REQUEST: usize = 64 << 20;
const MAX_PARTIAL: usize = 128 << 20;
/// Room for the line before the content.
const HEAD: usize = 256;

/// The beginning of a reply: the request was taken, or not.
const TAKEN: u8 = b'+';
const REFUSED: u8 = b'-';

/// A [`Network`] of hubs whose journal is on NATS.
///
/// ```no_run
/// use attache_conn::Link;
/// use attache_hub::{Hub, NatsNetwork, Options};
/// use attache_journal::{Journal, nats};
///
/// # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
/// let nats = nats::Nats::connect("nats://127.0.0.1", nats::Options::default()).await?;
/// let network = NatsNetwork::new(nats.messenger(), "laptop");
/// let options = Options::new("laptop", || async { Link::spawn("my-agent") }).network(network.clone());
/// let hub = Hub::new(Journal::new(nats), options);
/// let _responder = network.respond(hub.clone()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NatsNetwork(Arc<Inner>);

struct Inner {
    messenger: Messenger,
    node: String,
    /// Distinguishes the requests of this process from others.
    origin: u64,
    requests: AtomicU64,
}

impl NatsNetwork {
    /// The network of the hub `node`, the name in its [`Options`](crate::Options).
    pub fn new(messenger: Messenger, node: impl Into<String>) -> NatsNetwork {
        let origin = RandomState::new().hash_one(std::process::id());
        NatsNetwork(Arc::new(Inner { messenger, node: node.into(), origin, requests: AtomicU64::new(0) }))
    }

    /// Answers other hubs until the responder is dropped.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another hub answers to the name of this one; if the
    /// connection has ended.
    pub async fn respond(&self, hub: Hub) -> io::Result<Responder> {
        let (messenger, node) = (&self.0.messenger, &self.0.node);
        let subject = self.subject_of(node);
        // An empty request does nothing. One that was stopped or lost its connection does not
        // answer, and does no harm.
        if self.send(&subject, Bytes::new()).await.is_ok_and(|reply| reply.first() == Some(&TAKEN)) {
            let text = format!("another hub of this journal has the name \"{node}\"");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        let own = messenger.subscribe(&subject, WAITING).await.map_err(io::Error::other)?;
        let all =
            messenger.subscribe(&messenger.subject(&["all"]), WAITING).await.map_err(io::Error::other)?;
        let task = tokio::spawn(receive(messenger.clone(), hub, own, all));
        Ok(Responder { task })
    }

    fn subject_of(&self, node: &str) -> String {
        self.0.messenger.subject(&["to", node])
    }

    /// Sends a request in as many parts as it needs, and returns the reply to the last one with its
    /// first byte.
    async fn send(&self, subject: &str, request: Bytes) -> Result<Bytes, NoReply> {
        if request.len() > MAX_REQUEST {
            return Err(NoReply::TooLarge);
        }
        let max_payload = self.0.messenger.max_payload().await.map_err(|_| NoReply::Unreachable)?;
        let room = max_payload.saturating_sub(HEAD).max(1);
        let parts = request.len().div_ceil(room).max(1);
        let number = self.0.requests.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:016x}.{number}", self.0.origin);
        for part in 1..=parts {
            let is_last = part == parts;
            let content = request.slice((part - 1) * room..(part * room).min(request.len()));
            let head = Head { sent: now(), id: id.clone(), part, parts };
            match self.0.messenger.request(subject, head.with(&content), WAIT).await {
                Ok(reply) if reply.payload().first() == Some(&REFUSED) => return Err(NoReply::Unreachable),
                Ok(reply) if is_last => return Ok(reply.payload().clone()),
                Ok(_) => {}
                Err(RequestError::NoResponders | RequestError::TooLarge { .. }) => {
                    return Err(NoReply::Unreachable);
                }
                // A hub does nothing before it has the last part.
                Err(error) => {
                    debug!(%error, "another hub does not answer");
                    return Err(if is_last { NoReply::Unknown } else { NoReply::Unreachable });
                }
            }
        }
        Err(NoReply::Unknown)
    }

    async fn ask(&self, subject: &str, request: Bytes) -> Result<Bytes, NoReply> {
        let mut reply = self.send(subject, request).await?;
        match reply.len() {
            0 | 1 => Err(NoReply::Unknown),
            _ => Ok(reply.split_off(1)),
        }
    }
}

impl Network for NatsNetwork {
    fn request<'a>(&'a self, node: &'a str, request: Bytes) -> Requested<'a> {
        Box::pin(async move { self.ask(&self.subject_of(node), request).await })
    }

    fn ask_all(&self, request: Bytes) -> Requested<'_> {
        Box::pin(async move { self.ask(&self.0.messenger.subject(&["all"]), request).await })
    }
}

impl fmt::Debug for NatsNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NatsNetwork({})", self.0.node)
    }
}

/// Answers other hubs while it lives.
#[derive(Debug)]
pub struct Responder {
    task: JoinHandle<()>,
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The line before the content of a message.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    /// Milliseconds since 1970.
    sent: u64,
    /// The id of the request.
    id: String,
    /// From 1.
    part: usize,
    parts: usize,
}

impl Head {
    fn with(&self, content: &[u8]) -> Bytes {
        let Head { sent, id, part, parts } = self;
        [format!("{sent} {id} {part} {parts}\n").as_bytes(), content].concat().into()
    }

    /// The head of a message, and its content.
    fn parse(mut message: Bytes) -> Option<(Head, Bytes)> {
        let end = message.iter().position(|byte| *byte == b'\n')?;
        let content = message.split_off(end + 1);
        let mut words = std::str::from_utf8(&message[..end]).ok()?.split(' ');
        let (sent, id) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        let (part, parts) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let is_valid = words.next().is_none() && (1..=parts).contains(&part);
        is_valid.then_some((Head { sent, id, part, parts }, content))
    }
}

/// Receives requests, and answers some at a time.
async fn receive(messenger: Messenger, hub: Hub, mut own: Subscription, mut all: Subscription) {
    let slots = Arc::new(Semaphore::new(CONCURRENT));
    let mut parts = Parts::default();
    let mut answers = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let (message, is_to_all) = tokio::select! {
            Some(message) = own.next() => (message, false),
            Some(message) = all.next() => (message, true),
            Some(_) = answers.join_next() => continue,
            else => return,
        };
        let Some(reply_to) = message.reply_to().map(str::to_owned) else { continue };
        let messenger = messenger.clone();
        match parts.take(&message) {
            Received::Whole(request) => {
                let hub = hub.clone();
                answers.spawn(async move {
                    let Ok(answer) = timeout(ANSWER_TIME, hub.answer(&request)).await else { return };
                    // The first reply counts, so a hub that has nothing to say is silent.
                    if !(is_to_all && answer.is_empty()) {
                        reply(&messenger, &reply_to, TAKEN, &answer).await;
                    }
                    drop(slot);
                });
            }
            Received::Part => reply(&messenger, &reply_to, TAKEN, b"").await,
            Received::Refused => reply(&messenger, &reply_to, REFUSED, b"").await,
            Received::Stale => debug!("an old request of another hub is dropped"),
        }
    }
}

async fn reply(messenger: &Messenger, reply_to: &str, first: u8, content: &[u8]) {
    let payload = [&[first], content].concat();
    if let Err(error) = messenger.publish(reply_to, payload.into()).await {
        warn!(%error, "another hub cannot be answered");
    }
}

/// Requests that were received in part.
#[derive(Default)]
struct Parts {
    partial: HashMap<String, Partial>,
    bytes: usize,
}

struct Partial {
    next: usize,
    content: BytesMut,
    since: Instant,
}

enum Received {
    Whole(Bytes),
    Part,
    Refused,
    Stale,
}

impl Parts {
    fn take(&mut self, message: &Message) -> Received {
        match Head::parse(message.payload().clone()) {
            Some((head, _)) if head.sent.saturating_add(millis(STALE)) < now() => Received::Stale,
            Some((head, content)) => self.add(head, content),
            None => Received::Refused,
        }
    }

    fn add(&mut self, head: Head, content: Bytes) -> Received {
        if head.parts == 1 {
            return Received::Whole(content);
        }
        let oldest = Instant::now().checked_sub(STALE);
        self.partial.retain(|_, partial| oldest.is_none_or(|oldest| partial.since > oldest));
        let partial = match self.partial.remove(&head.id) {
            Some(partial) if partial.next == head.part => Some(partial),
            None if head.part == 1 => {
                Some(Partial { next: 1, content: BytesMut::new(), since: Instant::now() })
            }
            _ => None,
        };
        self.bytes = self.partial.values().map(|partial| partial.content.len()).sum();
        let Some(mut partial) = partial else { return Received::Refused };
        let length = partial.content.len() + content.len();
        if length > MAX_REQUEST || self.bytes + length > MAX_PARTIAL {
            warn!("requests of other hubs need too much memory");
            return Received::Refused;
        }
        partial.content.extend_from_slice(&content);
        partial.since = Instant::now();
        if head.part == head.parts {
            return Received::Whole(partial.content.freeze());
        }
        partial.next += 1;
        self.partial.insert(head.id, partial);
        Received::Part
    }
}

fn now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Head, Parts, Received};

    fn head(id: &str, part: usize, parts: usize) -> Head {
        Head { sent: 7, id: id.to_owned(), part, parts }
    }

    #[test]
    fn heads_are_read_as_written() {
        let message = head("a.1", 2, 3).with(b"x\ny");
        assert_eq!(Head::parse(message), Some((head("a.1", 2, 3), Bytes::from_static(b"x\ny"))));
        for bad in ["", "\n", "7 a 1 1", "7 a 0 1\n", "7 a 2 1\n", "7 a 1 1 1\n", "x a 1 1\n"] {
            assert_eq!(Head::parse(Bytes::from(bad)), None, "{bad}");
        }
    }

    #[test]
    fn requests_are_put_together_from_their_parts_in_order() {
        let mut parts = Parts::default();
        let mut add = |id, part, count, content: &'static str| match parts
            .add(head(id, part, count), Bytes::from_static(content.as_bytes()))
        {
            Received::Whole(content) => String::from_utf8(content.to_vec()).unwrap_or_default(),
            Received::Part => "part".to_owned(),
            Received::Refused | Received::Stale => "refused".to_owned(),
        };
        assert_eq!(add("a", 1, 1, "whole"), "whole");
        assert_eq!(add("a", 1, 3, "x"), "part");
        assert_eq!(add("b", 1, 2, "1"), "part");
        assert_eq!(add("a", 2, 3, "y"), "part");
        assert_eq!(add("b", 2, 2, "2"), "12");
        assert_eq!(add("a", 3, 3, "z"), "xyz");
        // One without its beginning, and one with a gap, which is given up.
        assert_eq!(add("c", 2, 2, "x"), "refused");
        assert_eq!(add("d", 1, 3, "x"), "part");
        assert_eq!(add("d", 3, 3, "x"), "refused");
        assert_eq!(add("d", 2, 3, "x"), "refused");
    }
}
