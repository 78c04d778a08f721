//! A dispatch that records messages and lets the test respond.

use attache_conn::{
    Closed, Dispatch, Driver, IncomingNotification, IncomingRequest, Limits, Link, Peer, Responder, Side,
    open,
};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

#[derive(Debug)]
pub enum Said {
    Request(String, String, Responder),
    Notification(String, String),
    Noise(String, String),
    Closed(Closed),
}

pub struct Recorder(mpsc::Sender<Said>);

/// More than any test lets pile up.
const RECORDED: usize = 10_000;

impl Recorder {
    fn record(&self, said: Said) {
        match self.0.try_send(said) {
            // The test has received enough.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(said)) => panic!("the queue of the test is full: {said:?}"),
        }
    }
}

fn text(params: Option<&RawValue>) -> String {
    params.map_or_else(String::new, |params| params.get().to_owned())
}

impl Dispatch for Recorder {
    fn request(&mut self, request: IncomingRequest<'_>) {
        let method = request.method().to_owned();
        if let Some((params, responder)) = request.open() {
            self.record(Said::Request(method, text(params), responder));
        }
    }

    fn notification(&mut self, notification: IncomingNotification<'_>) {
        let method = notification.method().to_owned();
        if let Some(params) = notification.open() {
            self.record(Said::Notification(method, text(params)));
        }
    }

    fn noise(&mut self, line: &[u8], why: &str) {
        self.record(Said::Noise(String::from_utf8_lossy(line).into_owned(), why.to_owned()));
    }

    fn closed(&mut self, why: &Closed) {
        self.record(Said::Closed(why.clone()));
    }
}

/// What the other end said, in order.
pub struct Received(mpsc::Receiver<Said>);

impl Received {
    pub async fn next(&mut self) -> Said {
        self.0.recv().await.expect("the dispatch is gone")
    }

    pub fn try_next(&mut self) -> Option<Said> {
        self.0.try_recv().ok()
    }

    pub async fn request(&mut self) -> (String, String, Responder) {
        match self.next().await {
            Said::Request(method, params, responder) => (method, params, responder),
            other => panic!("expected a request, got {other:?}"),
        }
    }

    pub async fn notification(&mut self) -> (String, String) {
        match self.next().await {
            Said::Notification(method, params) => (method, params),
            other => panic!("expected a notification, got {other:?}"),
        }
    }

    pub async fn noise(&mut self) -> (String, String) {
        match self.next().await {
            Said::Noise(line, why) => (line, why),
            other => panic!("expected noise, got {other:?}"),
        }
    }

    pub async fn closed(&mut self) -> Closed {
        match self.next().await {
            Said::Closed(closed) => closed,
            other => panic!("expected the end, got {other:?}"),
        }
    }
}

pub fn connect(link: Link, limits: Limits, side: Side) -> (Peer, Driver, Received) {
    let (sender, receiver) = mpsc::channel(RECORDED);
    let (peer, driver) = open(link, limits, side, |_| Recorder(sender));
    (peer, driver, Received(receiver))
}

/// A connection whose other end is the test itself, byte by byte.
pub struct Wire {
    pub input: BufReader<ReadHalf<DuplexStream>>,
    pub output: WriteHalf<DuplexStream>,
}

impl Wire {
    pub fn new() -> (Link, Wire) {
        Wire::with_room(64 << 10)
    }

    pub fn with_room(bytes: usize) -> (Link, Wire) {
        let (ours, theirs) = tokio::io::duplex(bytes);
        let (reader, writer) = tokio::io::split(theirs);
        let (input, output) = tokio::io::split(ours);
        (Link::from_io(reader, writer), Wire { input: BufReader::new(input), output })
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.output.write_all(bytes.as_ref()).await.unwrap();
    }

    /// The next line without its line feed; empty at the end.
    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    pub async fn json(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.line().await).unwrap()
    }
}
