//! Our client on a WebSocket to a hub that is cut: nothing is lost, nothing comes twice, and a
//! prompt runs once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attache::client::{Client, Event, Protocol};
use attache_conn::Link;
use attache_http::client::remote::{Options, Transport, connect};
use attache_http::client::{Backoff, HttpClient};
use attache_http::server::{self, Server};
use attache_hub::Identity;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::rig::{Rig, TestClient, stop_reason};

/// A test that hangs fails after this time.
const DEADLINE: Duration = Duration::from_secs(60);
/// A direction without an end.
const ENDLESS: usize = usize::MAX;

/// The bytes that the connections of a proxy still carry. At the end of either direction they are
/// cut, once.
struct Budget {
    up: AtomicUsize,
    down: AtomicUsize,
    cuts: watch::Sender<u32>,
}

/// A hub behind a proxy.
struct Remote {
    rig: Rig,
    address: SocketAddr,
    budget: Arc<Budget>,
}

impl Remote {
    async fn start() -> Remote {
        let rig = Rig::new();
        let mut server = Server::bind("127.0.0.1:0", server::Options::default()).await.unwrap();
        let to = server.local_addr();
        let hub = rig.hub.clone();
        tokio::spawn(async move {
            while let Ok(client) = server.accept().await {
                let hub = hub.clone();
                tokio::spawn(async move { hub.serve(client.link, Identity::new("me")).await });
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let budget = Arc::new(Budget {
            up: AtomicUsize::new(ENDLESS),
            down: AtomicUsize::new(ENDLESS),
            cuts: watch::channel(0).0,
        });
        let shared = Arc::clone(&budget);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(proxy(client, to, Arc::clone(&shared)));
            }
        });
        Remote { rig, address, budget }
    }

    async fn link(&self, transport: Transport) -> Link {
        let options = Options {
            client: Some(HttpClient::new(None).unwrap()),
            transport: Some(transport),
            reconnect: Backoff {
                attempts: 10,
                first: Duration::from_millis(1),
                max: Duration::from_millis(50),
            },
            ..Options::default()
        };
        connect(&format!("http://{}", self.address), &options).await.unwrap()
    }

    async fn client(&self, counts: bool) -> TestClient {
        TestClient::over(self.link(Transport::WebSocket).await, counts).await
    }

    fn cut_up_after(&self, bytes: usize) {
        self.budget.up.store(bytes, Ordering::Relaxed);
    }

    fn cut_down_after(&self, bytes: usize) {
        self.budget.down.store(bytes, Ordering::Relaxed);
    }

    /// Cuts at once.
    fn cut(&self) {
        self.budget.cuts.send_modify(|cuts| *cuts += 1);
    }

    fn was_cut(&self) -> bool {
        *self.budget.cuts.borrow() > 0
    }
}

async fn proxy(client: TcpStream, to: SocketAddr, budget: Arc<Budget>) {
    let mut cuts = budget.cuts.subscribe();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = TcpStream::connect(to).await.unwrap().into_split();
    let is_cut = tokio::select! {
        is_cut = carry(from_client, to_server, &budget.up) => is_cut,
        is_cut = carry(from_server, to_client, &budget.down) => is_cut,
        _ = cuts.changed() => false,
    };
    if is_cut {
        budget.up.store(ENDLESS, Ordering::Relaxed);
        budget.down.store(ENDLESS, Ordering::Relaxed);
        budget.cuts.send_modify(|cuts| *cuts += 1);
    }
}

/// Carries bytes until the end, or until the budget is used up.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    budget: &AtomicUsize,
) -> bool {
    let mut bytes = vec![0; 4096];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else { return false };
        let left = budget.load(Ordering::Relaxed);
        if to.write_all(&bytes[..count.min(left)]).await.is_err() {
            return false;
        }
        if left != ENDLESS {
            if count >= left {
                return true;
            }
            budget.store(left - count, Ordering::Relaxed);
        }
    }
}

fn numbers(upto: u32) -> Vec<String> {
    (1..=upto).map(|number| number.to_string()).collect()
}

/// Plays a turn on a link that is cut after some bytes. Returns whether it was cut.
async fn turn(remote: &Remote, counts: bool, arm: impl FnOnce(&Remote)) -> bool {
    let mut client = remote.client(counts).await;
    let session = client.new_session().await;
    client.seen.clear();
    arm(remote);
    let response = client.prompt(&session, "count 30").await;
    assert_eq!(stop_reason(&response), "end_turn");
    // The rest of the turn, in order.
    let after = client.prompt(&session, "bye").await;
    assert_eq!(stop_reason(&after), "end_turn");
    let mut expected = numbers(30);
    expected.push("bye".to_owned());
    let texts = client.texts();
    // A client that counts knows its prompts by their ids.
    let texts: Vec<_> = texts.into_iter().filter(|text| !counts || !text.starts_with('>')).collect();
    assert_eq!(texts, expected);
    let is_own =
        |message: &Value| message["method"].as_str().is_some_and(|method| method.starts_with("_attache/"));
    assert_eq!(client.seen.iter().any(is_own), counts, "{:?}", client.seen);
    assert_eq!(remote.rig.record.of("prompt"), ["count 30", "bye"]);
    remote.was_cut()
}

/// 1 and 2 of `complaints.rs`, for our own client: wherever the connection is cut in the course of
/// a turn.
#[tokio::test]
async fn a_cut_in_a_turn_is_not_noticed() {
    let mut at = 0;
    while turn(&Remote::start().await, false, |remote| remote.cut_down_after(at)).await {
        at += 53;
    }
    assert!(at > 1000, "the cuts did not reach the turn");
    let mut at = 0;
    while turn(&Remote::start().await, false, |remote| remote.cut_up_after(at)).await {
        at += 37;
    }
    assert!(at > 100);
}

/// A client that counts positions itself keeps its count: it gets everything that a hub sends.
#[tokio::test]
async fn a_client_that_counts_gets_its_positions() {
    for at in [0, 200, 900, 2000] {
        assert!(turn(&Remote::start().await, true, |remote| remote.cut_down_after(at)).await);
    }
}

/// The question is taken back and asked again, and an answer to the first one counts no more.
#[tokio::test]
async fn a_question_is_asked_again_after_a_cut() {
    let remote = Remote::start().await;
    let mut client = remote.client(false).await;
    let session = client.new_session().await;
    let turn = client.start_prompt(&session, "ask may I").await;
    let first = client.question().await;
    remote.cut();
    let withdrawn = client.until(|message| message["method"] == "$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], first);
    client.choose(&first, "no").await;
    let second = client.question().await;
    assert_ne!(first, second);
    client.choose(&second, "yes").await;
    assert_eq!(stop_reason(&client.response(turn).await), "end_turn");
    assert_eq!(remote.rig.record.of("answered"), ["yes"]);
    assert_eq!(remote.rig.record.of("prompt"), ["ask may I"]);
    assert_eq!(client.texts(), ["answer yes"]);
}

#[tokio::test]
async fn a_cancel_that_is_lost_with_the_connection_is_repeated() {
    let remote = Remote::start().await;
    let mut client = remote.client(false).await;
    let session = client.new_session().await;
    let turn = client.start_prompt(&session, "wait").await;
    client.until(|message| message["method"] == "session/update").await;
    remote.cut_up_after(5);
    client.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(stop_reason(&client.response(turn).await), "cancelled");
    assert!(remote.was_cut());
    assert_eq!(remote.rig.record.of("prompt"), ["wait"]);
}

/// A line of the agent that names no session is a position all the same.
#[tokio::test]
async fn a_message_without_a_session_does_not_disturb_the_count() {
    let remote = Remote::start().await;
    let mut client = remote.client(false).await;
    let session = client.new_session().await;
    client.prompt(&session, "note 3").await;
    let noted =
        |client: &TestClient| client.seen.iter().filter(|message| message["method"] == "_note").count();
    assert_eq!((noted(&client), client.texts()), (3, vec!["noted".to_owned()]));
    remote.cut();
    client.prompt(&session, "hello").await;
    assert_eq!((noted(&client), client.texts()), (3, vec!["noted".to_owned(), "hello".to_owned()]));
}

/// Plays a turn of the SDK's client on a connection that is cut after some bytes.
async fn sdk_turn(transport: Transport, protocol: Protocol, at: usize) {
    let remote = Remote::start().await;
    let link = remote.link(transport).await;
    let agent = Client::new().protocol(protocol).connect(link).await.unwrap();
    let mut session = agent.new_session("/").await.unwrap();
    remote.cut_down_after(at);
    let mut turn = session.prompt("count 30").await.unwrap();
    let mut text = String::new();
    while let Some(event) = turn.next().await.unwrap() {
        if let Event::Text(chunk) = event {
            text.push_str(&chunk.text);
        }
    }
    drop(turn);
    assert_eq!(text, numbers(30).concat(), "{transport:?} {protocol:?} {at}");
    assert!(remote.was_cut(), "{transport:?} {protocol:?} {at}");
    assert_eq!(remote.rig.record.of("prompt"), ["count 30"]);
}

#[tokio::test]
async fn a_turn_of_the_sdk_survives_a_cut() {
    for protocol in [Protocol::V1, Protocol::V2] {
        for at in [0, 700, 1500, 3000] {
            let turn = sdk_turn(Transport::WebSocket, protocol, at);
            let in_time = tokio::time::timeout(DEADLINE, turn).await;
            in_time.unwrap_or_else(|_| panic!("{protocol:?} {at}"));
        }
    }
}

#[tokio::test]
async fn a_turn_over_http_survives_a_cut() {
    for protocol in [Protocol::V1, Protocol::V2] {
        for at in [0, 700, 1500, 3000] {
            let turn = sdk_turn(Transport::StreamableHttp, protocol, at);
            let in_time = tokio::time::timeout(DEADLINE, turn).await;
            in_time.unwrap_or_else(|_| panic!("{protocol:?} {at}"));
        }
    }
}
