//! A server on loopback that speaks exactly the bytes that a test wants, faults included.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What is done with one connection after its request has been read.
#[derive(Clone)]
pub(crate) enum Step {
    /// These bytes at once.
    Send(Vec<u8>),
    /// These bytes, each by itself.
    Bytewise(Vec<u8>),
    /// Nothing more, until the other side hangs up.
    Hold,
    /// These bytes again and again, until the other side hangs up.
    Flood(Vec<u8>),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    gone: mpsc::Receiver<()>,
}

impl Server {
    /// Answers the first connection with the first of these, and so on; after the last, hangs up at
    /// once.
    pub(crate) async fn start(replies: Vec<Vec<Step>>) -> Self {
        let replies = Mutex::new(replies.into_iter());
        Server::answering(move |_| replies.lock().unwrap().next().unwrap_or_default()).await
    }

    /// Answers as `answer` says.
    pub(crate) async fn answering(answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (tell, gone) = mpsc::channel(16);
        let (known, answer) = (seen.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (known, answer, tell) = (known.clone(), answer.clone(), tell.clone());
                tokio::spawn(async move {
                    serve(stream, &known, &*answer).await;
                    let _ = tell.send(()).await;
                });
            }
        });
        Server { url: format!("http://127.0.0.1:{port}"), port, seen, gone }
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until a connection has ended.
    pub(crate) async fn gone(&mut self) {
        self.gone.recv().await.unwrap();
    }
}

/// One connection: reads the request, then does the steps.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    seen: &Mutex<Vec<Seen>>,
    answer: &(impl Fn(&Seen) -> Vec<Step> + Send + Sync + ?Sized),
) {
    let Some(request) = read(&mut stream).await else { return };
    seen.lock().unwrap().push(request.clone());
    for step in answer(&request) {
        match step {
            Step::Send(bytes) => {
                let _ = stream.write_all(&bytes).await;
            }
            Step::Bytewise(bytes) => {
                for byte in bytes {
                    if stream.write_all(&[byte]).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            }
            Step::Hold => while matches!(stream.read(&mut [0; 64]).await, Ok(1..)) {},
            Step::Flood(bytes) => while stream.write_all(&bytes).await.is_ok() {},
        }
        let _ = stream.flush().await;
    }
    let _ = stream.shutdown().await;
}

async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Seen> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let mut seen = Seen { head: String::from_utf8(bytes).unwrap(), body: Value::Null };
    let length: usize = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    seen.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(seen)
}

/// The head of an answer whose end marks its length.
pub(crate) fn head(status: u16, kind: &str, more: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{more}connection: close\r\n\r\n").into_bytes()
}

/// A stream of events, and its head.
pub(crate) fn events(text: &str) -> Vec<Step> {
    vec![Step::Send(head(200, "text/event-stream", "")), Step::Send(text.as_bytes().to_vec())]
}

/// A whole answer with a length.
pub(crate) fn whole(status: u16, more: &str, body: &str) -> Vec<Step> {
    let length = format!("content-length: {}\r\n{more}", body.len());
    vec![Step::Send(head(status, "application/json", &length)), Step::Send(body.as_bytes().to_vec())]
}
