//! A connection to a NATS server: requests, subscriptions, reconnection.
//!
//! One task owns the socket. It connects when there is something to do, answers pings, and matches
//! replies to requests. When the connection is lost all open requests fail, and subscriptions are
//! made again.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::server::ServerAddress;
use crate::error::{Error, Result};

/// How long a request waits for its reply, and a connection for its handshake.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect while there are subscriptions.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);
/// The most commands that wait for the task.
const QUEUE: usize = 256;
/// The longest line of the protocol; payloads have lengths of their own.
const MAX_LINE: usize = 64 << 10;
/// The largest payload that a server may announce.
const MAX_PAYLOAD: usize = 128 << 20;

/// A message from the server.
#[derive(Debug, Clone)]
pub struct Message {
    headers: Bytes,
    pub(super) payload: Bytes,
    pub(super) reply_to: Option<String>,
}

impl Message {
    /// The content.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The subject of a reply, if the sender waits for one.
    pub fn reply_to(&self) -> Option<&str> {
        self.reply_to.as_deref()
    }

    /// The status code of a message without content, such as 404.
    pub(super) fn status(&self) -> Option<u16> {
        let line = self.headers.split(|byte| *byte == b'\r').next()?;
        std::str::from_utf8(line).ok()?.split(' ').nth(1)?.parse().ok()
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(&self.headers).ok()?.split("\r\n").find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

enum Command {
    Request { subject: String, headers: String, payload: Bytes, reply: oneshot::Sender<Result<Message>> },
    Publish { subject: String, payload: Bytes },
    Subscribe { id: u64, subject: String, events: Handler },
    Unsubscribe { id: u64 },
    MaxPayload { reply: oneshot::Sender<Result<usize>> },
}

/// Receives the events of a subscription; called by the connection's task, so it must not wait.
pub(super) type Handler = Box<dyn FnMut(Event) + Send>;

/// What a subscription reports.
#[derive(Debug)]
pub(super) enum Event {
    Message(Message),
    /// The subscription exists on the server, at first or again.
    Subscribed,
}

/// A handle to the connection. The task ends when all are dropped.
#[derive(Clone)]
pub(super) struct Client {
    commands: mpsc::Sender<Command>,
    next_id: Arc<std::sync::atomic::AtomicU64>,
    /// The beginning of all reply subjects.
    inbox: Arc<str>,
}

impl Client {
    /// A client; it connects with the first request. Must be called in a tokio runtime.
    pub(super) fn new(address: ServerAddress) -> Self {
        let (commands, receiver) = mpsc::channel(QUEUE);
        let random = || RandomState::new().hash_one(std::process::id());
        let inbox: Arc<str> = format!("_INBOX.{:016x}{:016x}", random(), random()).into();
        tokio::spawn(Task { address, inbox: inbox.clone(), subscriptions: HashMap::new() }.run(receiver));
        Client { commands, next_id: Arc::default(), inbox }
    }

    /// Sends a message and waits for the reply.
    pub(super) async fn request(&self, subject: &str, headers: String, payload: Bytes) -> Result<Message> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Request { subject: subject.to_owned(), headers, payload, reply }).await?;
        timeout(TIMEOUT, answer).await.map_err(|_| timed_out())?.unwrap_or(Err(Error::Closed))
    }

    /// Sends a message. It is lost if there is no connection.
    pub(super) async fn publish(&self, subject: &str, payload: Bytes) -> Result<()> {
        self.send(Command::Publish { subject: subject.to_owned(), payload }).await
    }

    /// The largest payload that the server accepts.
    pub(super) async fn max_payload(&self) -> Result<usize> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::MaxPayload { reply }).await?;
        timeout(TIMEOUT, answer).await.map_err(|_| timed_out())?.unwrap_or(Err(Error::Closed))
    }

    /// A subject of this connection for deliveries.
    pub(super) fn delivery_subject(&self) -> (u64, String) {
        let id = 2 + self.next_id.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (id, format!("{}.d{id}", self.inbox))
    }

    /// Subscribes until [`Self::unsubscribe`].
    pub(super) async fn subscribe(&self, id: u64, subject: String, events: Handler) -> Result<()> {
        self.send(Command::Subscribe { id, subject, events }).await
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&self, id: u64) {
        if let Err(mpsc::error::TrySendError::Full(command)) =
            self.commands.try_send(Command::Unsubscribe { id })
        {
            let commands = self.commands.clone();
            tokio::spawn(async move { commands.send(command).await });
        }
    }

    async fn send(&self, command: Command) -> Result<()> {
        self.commands.send(command).await.map_err(|_| Error::Closed)
    }
}

fn timed_out() -> Error {
    io::Error::new(io::ErrorKind::TimedOut, "the NATS server does not answer").into()
}

struct Subscription {
    subject: String,
    events: Handler,
}

struct Task {
    address: ServerAddress,
    inbox: Arc<str>,
    subscriptions: HashMap<u64, Subscription>,
}

impl Task {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut last_attempt: Option<Instant> = None;
        loop {
            // Without subscriptions a connection is made when it is needed.
            let first = match self.subscriptions.is_empty() {
                true => match commands.recv().await {
                    Some(command) => Some(command),
                    None => return,
                },
                false => {
                    if let Some(at) = last_attempt {
                        tokio::time::sleep_until(at + RECONNECT_PAUSE).await;
                    }
                    None
                }
            };
            last_attempt = Some(Instant::now());
            let connected = timeout(TIMEOUT, Connection::open(&self.address, &self.inbox)).await;
            let error = match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(mut connection) => match self.serve(&mut connection, &mut commands, first).await {
                    Ok(()) => return,
                    Err(error) => {
                        connection.fail_requests(&error);
                        error
                    }
                },
                Err(error) => {
                    first.into_iter().for_each(|command| self.refuse(command, &error));
                    error
                }
            };
            tracing::debug!(%error, "the connection to the NATS server is lost");
            while let Ok(command) = commands.try_recv() {
                self.refuse(command, &error);
            }
        }
    }

    /// Answers a command without a connection.
    fn refuse(&mut self, command: Command, error: &io::Error) {
        let error = || io::Error::new(error.kind(), error.to_string()).into();
        match command {
            Command::Request { reply, .. } => drop(reply.send(Err(error()))),
            Command::MaxPayload { reply } => drop(reply.send(Err(error()))),
            Command::Publish { .. } => {}
            Command::Subscribe { id, subject, events } => {
                self.subscriptions.insert(id, Subscription { subject, events });
            }
            Command::Unsubscribe { id } => drop(self.subscriptions.remove(&id)),
        }
    }

    /// Serves commands until all clients are dropped (`Ok`) or the connection is lost.
    async fn serve(
        &mut self,
        connection: &mut Connection,
        commands: &mut mpsc::Receiver<Command>,
        first: Option<Command>,
    ) -> io::Result<()> {
        for (id, subscription) in &mut self.subscriptions {
            connection.subscribe(*id, subscription);
        }
        connection.flush().await?;
        if let Some(command) = first {
            self.execute(connection, command);
        }
        loop {
            while let Some((id, subject, message)) = connection.next_message()? {
                if !connection.answer(&subject, &message) {
                    self.deliver(id, message);
                }
            }
            connection.flush().await?;
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.execute(connection, command),
                    None => return Ok(()),
                },
                read = connection.fill() => read?,
            }
        }
    }

    fn execute(&mut self, connection: &mut Connection, command: Command) {
        match command {
            Command::Request { subject, headers, payload, reply } => {
                connection.request(&subject, &headers, &payload, reply);
            }
            Command::Publish { subject, payload } => connection.publish(&subject, None, "", &payload),
            Command::MaxPayload { reply } => drop(reply.send(Ok(connection.max_payload))),
            Command::Subscribe { id, subject, events } => {
                let mut subscription = Subscription { subject, events };
                connection.subscribe(id, &mut subscription);
                self.subscriptions.insert(id, subscription);
            }
            Command::Unsubscribe { id } => {
                self.subscriptions.remove(&id);
                connection.unsubscribe(id);
            }
        }
    }

    fn deliver(&mut self, id: u64, message: Message) {
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            (subscription.events)(Event::Message(message));
        }
    }
}

struct Connection {
    stream: TcpStream,
    input: BytesMut,
    output: BytesMut,
    inbox: Arc<str>,
    max_payload: usize,
    next_request: u64,
    requests: HashMap<u64, oneshot::Sender<Result<Message>>>,
}

impl Connection {
    async fn open(address: &ServerAddress, inbox: &Arc<str>) -> io::Result<Self> {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        stream.set_nodelay(true)?;
        let mut connection = Connection {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            inbox: inbox.clone(),
            max_payload: 0,
            next_request: 0,
            requests: HashMap::new(),
        };
        let line = connection.line().await?;
        let info: serde_json::Value = line
            .strip_prefix("INFO ")
            .and_then(|info| serde_json::from_str(info).ok())
            .ok_or_else(|| invalid("this is not a NATS server"))?;
        if info["tls_required"] == true {
            return Err(invalid("the NATS server requires TLS, which is not supported"));
        }
        if info["headers"] != true {
            return Err(invalid("the NATS server is older than 2.2"));
        }
        connection.max_payload =
            info["max_payload"].as_u64().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(1 << 20);
        let hello = format!("CONNECT {}\r\nSUB {inbox}.r.* 1\r\nPING\r\n", address.connect_options());
        connection.output.extend_from_slice(hello.as_bytes());
        connection.flush().await?;
        loop {
            let line = connection.line().await?;
            match line.split(' ').next() {
                Some("PONG") => return Ok(connection),
                Some("-ERR") => return Err(server_error(&line)),
                _ => {}
            }
        }
    }

    /// The next line of the handshake.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(line) = self.take_line()? {
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    fn take_line(&mut self) -> io::Result<Option<String>> {
        match self.input.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => {
                let line = String::from_utf8_lossy(&self.input[..end]).into_owned();
                self.input.advance(end + 2);
                Ok(Some(line))
            }
            None if self.input.len() > MAX_LINE => Err(invalid("the NATS server sent too long a line")),
            None => Ok(None),
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        while self.output.has_remaining() {
            self.stream.write_buf(&mut self.output).await?;
        }
        Ok(())
    }

    /// The next message that was received completely: subscription, subject, message.
    fn next_message(&mut self) -> io::Result<Option<(u64, String, Message)>> {
        loop {
            let Some(end) = self.input.windows(2).position(|pair| pair == b"\r\n") else {
                return match self.input.len() > MAX_LINE {
                    true => Err(invalid("the NATS server sent too long a line")),
                    false => Ok(None),
                };
            };
            let line = String::from_utf8_lossy(&self.input[..end]).into_owned();
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words.first().copied() {
                Some("MSG" | "HMSG") => return self.take_message(&words, end + 2),
                Some("PING") => self.output.extend_from_slice(b"PONG\r\n"),
                Some("-ERR") => return Err(server_error(&line)),
                Some("INFO" | "PONG" | "+OK") => {}
                _ => return Err(invalid("the NATS server sent an unknown operation")),
            }
            self.input.advance(end + 2);
        }
    }

    /// `MSG subject sid [reply] bytes` or `HMSG subject sid [reply] header-bytes bytes`, then the
    /// bytes.
    fn take_message(&mut self, words: &[&str], start: usize) -> io::Result<Option<(u64, String, Message)>> {
        let bad = || invalid("the NATS server sent a malformed message");
        let number = |word: Option<&&str>| word.and_then(|word| word.parse::<usize>().ok()).ok_or_else(bad);
        let total = number(words.last())?;
        let headers = match words[0] {
            "HMSG" => number(words.iter().rev().nth(1))?,
            _ => 0,
        };
        if total > MAX_PAYLOAD || headers > total || words.len() < 4 {
            return Err(bad());
        }
        if self.input.len() < start + total + 2 {
            return Ok(None);
        }
        let (subject, id) = (words[1].to_owned(), words[2].parse().map_err(|_| bad())?);
        let numbers = if words[0] == "HMSG" { 2 } else { 1 };
        let reply_to =
            words.get(3..words.len() - numbers).and_then(<[_]>::first).map(|word| (*word).to_owned());
        self.input.advance(start);
        let headers = self.input.split_to(headers).freeze();
        let payload = self.input.split_to(total - headers.len()).freeze();
        self.input.advance(2);
        Ok(Some((id, subject, Message { headers, payload, reply_to })))
    }

    fn request(
        &mut self,
        subject: &str,
        headers: &str,
        payload: &[u8],
        reply: oneshot::Sender<Result<Message>>,
    ) {
        // Requests whose callers have given up.
        self.requests.retain(|_, reply| !reply.is_closed());
        self.next_request += 1;
        self.requests.insert(self.next_request, reply);
        let inbox = format!("{}.r.{}", self.inbox, self.next_request);
        self.publish(subject, Some(&inbox), headers, payload);
    }

    fn publish(&mut self, subject: &str, reply_to: Option<&str>, headers: &str, payload: &[u8]) {
        let reply_to = reply_to.map_or_else(String::new, |subject| format!("{subject} "));
        let head = match headers.is_empty() {
            true => format!("PUB {subject} {reply_to}{}\r\n", payload.len()),
            false => {
                let headers = format!("NATS/1.0\r\n{headers}\r\n");
                let total = headers.len() + payload.len();
                format!("HPUB {subject} {reply_to}{} {total}\r\n{headers}", headers.len())
            }
        };
        self.output.extend_from_slice(head.as_bytes());
        self.output.extend_from_slice(payload);
        self.output.extend_from_slice(b"\r\n");
    }

    /// Gives a reply to its request, if it is one.
    fn answer(&mut self, subject: &str, message: &Message) -> bool {
        let number = subject.strip_prefix(&*self.inbox).and_then(|rest| rest.strip_prefix(".r."));
        let Some(number) = number.and_then(|number| number.parse().ok()) else { return false };
        if let Some(reply) = self.requests.remove(&number) {
            let _ = reply.send(Ok(message.clone()));
        }
        true
    }

    fn subscribe(&mut self, id: u64, subscription: &mut Subscription) {
        self.output.extend_from_slice(format!("SUB {} {id}\r\n", subscription.subject).as_bytes());
        (subscription.events)(Event::Subscribed);
    }

    fn unsubscribe(&mut self, id: u64) {
        self.output.extend_from_slice(format!("UNSUB {id}\r\n").as_bytes());
    }

    fn fail_requests(&mut self, error: &io::Error) {
        for (_, reply) in self.requests.drain() {
            let _ = reply.send(Err(io::Error::new(error.kind(), error.to_string()).into()));
        }
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn server_error(line: &str) -> io::Error {
    invalid(&format!("the NATS server refused: {}", line.trim_start_matches("-ERR").trim()))
}
