//! The same conversation over every kind of link.

use crate::kit::connect;
use attache_conn::{Flow, Limits, Link, Reason, Side, listen_tcp};
use serde_json::json;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Requests, answers and notifications in both directions, then an orderly end. (STDIO-13: the same
/// over every transport.)
async fn converse(client: Link, agent: Link) {
    let (client, client_driver, mut at_client) = connect(client, Limits::default(), Side::Client);
    let client_driver = tokio::spawn(client_driver);
    let (agent, agent_driver, mut at_agent) = connect(agent, Limits::default(), Side::Agent);
    let agent_driver = tokio::spawn(agent_driver);
    let big = "x".repeat(300_000);
    let call = client.call("ask", &json!({ "big": big }));
    let (_, params, responder) = at_agent.request().await;
    assert_eq!(params.len(), big.len() + 10);
    let updates = tokio::spawn(async move {
        for n in 0..1000 {
            agent.notify("update", &json!({ "n": n })).await.unwrap();
        }
        responder.ok(&json!({ "done": true }));
    });
    for n in 0..1000 {
        assert_eq!(at_client.notification().await.1, format!("{{\"n\":{n}}}"));
    }
    assert_eq!(call.await.unwrap().get(), r#"{"done":true}"#);
    updates.await.unwrap();
    client.close();
    assert_eq!(client_driver.await.unwrap().reason, Reason::LocalClose);
    assert_eq!(agent_driver.await.unwrap().reason, Reason::Eof);
}

#[tokio::test]
async fn memory() {
    let (a, b) = Link::pair();
    converse(a, b).await;
}

#[tokio::test]
async fn a_tap_gets_every_line_in_wire_order() {
    let (link, mut other) = crate::kit::Wire::new();
    let received = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let tape = received.clone();
    let link = link.tap(move |flow, line| {
        tape.lock().unwrap().push((flow, String::from_utf8(line.to_vec()).unwrap()));
    });
    let (peer, driver, mut at_client) = connect(link, Limits::default(), Side::Client);
    let driver = tokio::spawn(driver);
    let call = peer.call("ask", &json!({}));
    assert_eq!(other.line().await, r#"{"jsonrpc":"2.0","id":0,"method":"ask","params":{}}"#);
    // A line that is no message is received too, and the end of a line is not.
    other.write("a log line\r\n{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":1}\n").await;
    at_client.noise().await;
    assert_eq!(call.await.unwrap().get(), "1");
    peer.close();
    driver.await.unwrap();
    let received = received.lock().unwrap();
    let expected = [
        (Flow::Out, r#"{"jsonrpc":"2.0","id":0,"method":"ask","params":{}}"#),
        (Flow::In, "a log line"),
        (Flow::In, r#"{"jsonrpc":"2.0","id":0,"result":1}"#),
    ];
    let received: Vec<(Flow, &str)> = received.iter().map(|(flow, line)| (*flow, line.as_str())).collect();
    assert_eq!(received, expected);
}

#[tokio::test]
async fn tcp() {
    let listener = listen_tcp("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (a, b) = tokio::join!(Link::tcp(address), listener.accept());
    converse(a.unwrap(), b.unwrap()).await;
}

#[cfg(unix)]
#[tokio::test]
async fn unix_socket() {
    let dir = std::env::temp_dir().join(format!("attache-conn-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("socket");
    // A stale socket is replaced; one that is in use is an error.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listener = attache_conn::listen_unix(&path).unwrap();
    let (a, b) = tokio::join!(Link::unix(&path), listener.accept());
    converse(a.unwrap(), b.unwrap()).await;
    assert_eq!(attache_conn::listen_unix(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    drop(listener);
    assert!(!path.exists());
    std::fs::remove_dir(&dir).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_several_threads() {
    let (a, b) = Link::pair();
    converse(a, b).await;
}

struct Frames(mpsc::Receiver<Vec<u8>>);

impl futures_core::Stream for Frames {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

/// Holds one frame until the channel has room, as sinks do.
struct Outbox {
    sender: Option<mpsc::Sender<Vec<u8>>>,
    reserving: Option<Pin<Box<dyn Future<Output = Option<Permit>> + Send>>>,
    permit: Option<Permit>,
}

type Permit = mpsc::OwnedPermit<Vec<u8>>;

impl futures_sink::Sink<Vec<u8>> for Outbox {
    type Error = io::Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.permit.is_some() {
            return Poll::Ready(Ok(()));
        }
        let Some(sender) = self.sender.clone() else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let reserving =
            self.reserving.get_or_insert_with(|| Box::pin(async { sender.reserve_owned().await.ok() }));
        let permit = std::task::ready!(reserving.as_mut().poll(cx));
        self.reserving = None;
        self.permit = permit;
        match self.permit {
            Some(_) => Poll::Ready(Ok(())),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Vec<u8>) -> io::Result<()> {
        assert!(!frame.contains(&b'\n'), "a frame is one message");
        self.permit.take().unwrap().send(frame);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sender = None;
        self.permit = None;
        Poll::Ready(Ok(()))
    }
}

fn frames() -> (Link, Link) {
    let (to_b, from_a) = mpsc::channel(2);
    let (to_a, from_b) = mpsc::channel(2);
    let outbox = |sender| Outbox { sender: Some(sender), reserving: None, permit: None };
    (Link::from_frames(Frames(from_b), outbox(to_b)), Link::from_frames(Frames(from_a), outbox(to_a)))
}

#[tokio::test]
async fn whole_frames() {
    let (a, b) = frames();
    converse(a, b).await;
}

#[tokio::test]
async fn a_link_splits_into_halves() {
    let (a, b) = Link::pair();
    let (mut reader, _writer) = a.split();
    let (_reader, mut writer) = b.split();
    let long = vec![b'x'; 2000];
    writer.feed(b"one");
    writer.feed(b"");
    writer.feed(&long);
    writer.feed(b"two\r");
    writer.flush().await.unwrap();
    writer.send(b"three").await.unwrap();
    writer.close().await.unwrap();
    reader = reader.with_limit(1000);
    assert_eq!(reader.next().await.unwrap(), Some(&b"one"[..]));
    assert_eq!(reader.next().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(reader.next().await.unwrap(), Some(&b"two\r"[..]), "bytes are passed on as they are");
    assert_eq!(reader.next().await.unwrap(), Some(&b"three"[..]));
    assert_eq!(reader.next().await.unwrap(), None);
}

#[cfg(unix)]
mod child {
    use super::*;
    use attache_conn::CallError;
    use attache_conn::process::Command;

    fn shell(script: &str) -> Link {
        Link::command(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[tokio::test]
    async fn a_failed_child_is_reported_with_its_stderr() {
        let link = shell("echo 'no such model' >&2; exit 3");
        let (peer, driver, mut received) = connect(link, Limits::default(), Side::Client);
        let driver = tokio::spawn(driver);
        let Err(CallError::Closed(closed)) = peer.call("initialize", &()).await else { panic!() };
        assert_eq!(closed.exit.unwrap().code(), Some(3));
        assert_eq!(closed.to_string(), "the agent ended (exit code 3); stderr: no such model");
        assert_eq!(received.closed().await.exit.unwrap().code(), Some(3));
        assert_eq!(driver.await.unwrap().exit.unwrap().code(), Some(3));
    }

    #[tokio::test]
    async fn a_child_that_is_killed_in_the_middle_of_a_line() {
        let link = shell("printf '{\"jsonrpc\":'; kill -9 $$");
        let (peer, driver, _heard) = connect(link, Limits::default(), Side::Client);
        tokio::spawn(driver);
        let closed = peer.closed().await;
        assert_eq!(closed.reason, Reason::HalfLine("{\"jsonrpc\":".to_owned()));
        assert_eq!(closed.exit.unwrap().code(), None);
        assert!(closed.to_string().starts_with("the agent ended (signal: 9 (SIGKILL))"), "{closed}");
    }

    #[tokio::test]
    async fn a_child_exits_when_the_link_is_closed() {
        // shows STDIO-10: its input ends, and it may say a last word
        let link = shell(
            "cat >/dev/null; i=0; while [ $i -lt 3000 ]; do echo '{\"jsonrpc\":\"2.0\",\"method\":\"bye\"}'; i=$((i+1)); done",
        );
        let (peer, driver, _heard) = connect(link, Limits::default(), Side::Client);
        let driver = tokio::spawn(driver);
        peer.notify("a", &()).await.unwrap();
        peer.close();
        let closed = driver.await.unwrap();
        assert_eq!(closed.reason, Reason::LocalClose);
        assert!(closed.exit.unwrap().success());
    }

    #[tokio::test]
    async fn output_before_the_first_message_is_skipped() {
        // shows STDIO-07 on the way: much stderr, and log lines on stdout
        let script = "head -c 1000000 /dev/zero | tr '\\0' e >&2; echo 'loading…'; read line; \
                      echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}'; cat >/dev/null";
        let (peer, driver, mut received) = connect(shell(script), Limits::default(), Side::Client);
        tokio::spawn(driver);
        assert_eq!(peer.call("initialize", &()).await.unwrap().get(), "{}");
        assert_eq!(received.noise().await.0, "loading…");
        peer.close();
        peer.closed().await;
    }
}
