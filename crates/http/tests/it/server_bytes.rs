//! Limits on received bytes, which all clients of a token and of the server share.

use crate::kit::{Http, Reply, request, serve, upgrade, upgrade_socket};
use attache_conn::{FrameReader, FrameWriter};
use attache_http::server::{Access, Limits, Options, Server, Tokens};
use attache_http::ws::frame::{Header, Opcode, write_header};
use attache_http::ws::{self, Role, Settings};
use hyper::StatusCode;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The length of a large message.
const LARGE: usize = 200_000;

/// One large message has room for each token, and two for all.
fn limits() -> Limits {
    Limits { message: 250_000, received_per_identity: 300_000, received: 590_000, ..Limits::default() }
}

/// Options with three tokens, and their headers.
fn three_tokens(limits: Limits) -> (Options, [String; 3]) {
    let tokens = ["me", "you", "other"].map(|name| Tokens::generate(name).unwrap());
    let entries: String = tokens.iter().map(|(_, entry)| entry.as_str()).collect();
    let access = Access::tokens(Tokens::parse(&entries).unwrap());
    (Options { access, limits, ..Options::default() }, tokens.map(|(token, _)| format!("Bearer {token}")))
}

fn large() -> serde_json::Value {
    json!({"jsonrpc": "2.0", "method": "x", "params": {"text": "x".repeat(LARGE)}})
}

fn assert_refused(reply: &Reply, status: StatusCode) {
    // HTTP-39
    assert_eq!((reply.status, reply.headers.contains_key("retry-after")), (status, true));
}

struct Unread {
    client: Http,
    reader: FrameReader,
    _writer: FrameWriter,
}

impl Unread {
    /// Connects a client whose agent has read `initialize`, and reads nothing more.
    async fn connect(server: &mut Server, bearer: &str) -> Unread {
        let client = Http::new(server.local_addr()).with("authorization", bearer);
        let client = tokio::spawn(async move { client.initialize().await });
        let (mut reader, mut writer) = server.accept().await.unwrap().link.split();
        reader.next().await.unwrap().unwrap();
        writer.send(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#).await.unwrap();
        Unread { client: client.await.unwrap(), reader, _writer: writer }
    }
}

#[tokio::test]
async fn messages_that_wait_for_their_agents() {
    let (options, [me, you, other]) = three_tokens(limits());
    let mut server = Server::bind("127.0.0.1:0", options).await.unwrap();
    let mut first = Unread::connect(&mut server, &me).await;
    let second = Unread::connect(&mut server, &me).await;
    let third = Unread::connect(&mut server, &you).await;
    let fourth = Unread::connect(&mut server, &other).await;
    first.client.accept(large()).await;
    assert_refused(&second.client.post(large()).await, StatusCode::TOO_MANY_REQUESTS);
    third.client.accept(large()).await;
    assert_refused(&fourth.client.post(large()).await, StatusCode::SERVICE_UNAVAILABLE);
    // Small messages have room.
    second.client.accept(request(1, "x", json!({}))).await;
    // The agent holds the message until it reads on.
    assert_eq!(first.reader.next().await.unwrap().unwrap().len(), large().to_string().len());
    assert_refused(&second.client.post(large()).await, StatusCode::TOO_MANY_REQUESTS);
    tokio::select! {
        biased;
        _ = first.reader.next() => panic!("there is no other message"),
        () = std::future::ready(()) => {}
    }
    second.client.accept(large()).await;
    // Those of a connection that ends have room again.
    assert_refused(&fourth.client.post(large()).await, StatusCode::SERVICE_UNAVAILABLE);
    drop(third);
    fourth.client.accept(large()).await;
}

#[tokio::test]
async fn bodies_that_are_incomplete() {
    let (options, [me, you, _]) = three_tokens(limits());
    let address = serve(options).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /acp HTTP/1.1\r\nhost: {address}\r\nauthorization: {me}\r\ncontent-type: application/json\r\n\
         content-length: {LARGE}\r\nexpect: 100-continue\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    let post = |bearer: &str| {
        let client = Http::new(address).with("authorization", bearer);
        async move { client.post(request(0, "initialize", json!({"text": "x".repeat(LARGE)}))).await }
    };
    assert_refused(&post(&me).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(post(&you).await.status, StatusCode::OK);
    drop(socket);
    while post(&me).await.status != StatusCode::OK {
        tokio::task::yield_now().await;
    }
}

/// A message over WebSocket of which a large part was sent.
struct Begun(TokioIo<Upgraded>);

impl Begun {
    /// Sends the part. Returns the status if the server closes the WebSocket instead of taking it.
    async fn send(address: SocketAddr, bearer: &str) -> Result<Begun, u16> {
        let mut socket = upgrade_socket(address, &[("authorization", bearer)]).await.unwrap().0;
        let mut frames = Vec::new();
        let mask = Some([0; 4]);
        let header = Header { is_final: false, opcode: Opcode::Text, mask, len: LARGE as u64 };
        write_header(&mut frames, &header);
        frames.resize(frames.len() + LARGE, b' ');
        // The answer shows that all before it was read.
        write_header(&mut frames, &Header { is_final: true, opcode: Opcode::Ping, mask, len: 0 });
        // A server that refuses the message does not read all of it.
        let _ = socket.write_all(&frames).await;
        loop {
            let mut head = [0; 2];
            socket.read_exact(&mut head).await.unwrap();
            match head {
                [0x8a, 0] => return Ok(Begun(socket)),
                [0x88, _] => return Err(socket.read_u16().await.unwrap()),
                // A ping of the server.
                [0x89, 0] => {}
                other => panic!("{other:x?}"),
            }
        }
    }

    /// Sends the rest, and waits for the answer.
    async fn finish(mut self) {
        let text = request(1, "session/new", json!({})).to_string();
        let mut frame = Vec::new();
        let header = Header {
            is_final: true,
            opcode: Opcode::Continuation,
            mask: Some([0; 4]),
            len: text.len() as u64,
        };
        write_header(&mut frame, &header);
        frame.extend_from_slice(text.as_bytes());
        self.0.write_all(&frame).await.unwrap();
        let (mut reader, _writer) = ws::link(self.0, Role::Client, Settings::default(), Vec::new()).split();
        reader.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn messages_over_websocket_that_are_incomplete() {
    let (options, [me, you, other]) = three_tokens(limits());
    let address = serve(options).await;
    let first = Begun::send(address, &me).await.unwrap();
    assert_eq!(Begun::send(address, &me).await.err(), Some(1013));
    let second = Begun::send(address, &you).await.unwrap();
    assert_eq!(Begun::send(address, &other).await.err(), Some(1013));
    // Both transports share the limits.
    let posting = Http::new(address).with("authorization", &me).post(large()).await;
    assert_refused(&posting, StatusCode::TOO_MANY_REQUESTS);
    // Small messages have room.
    let (mut reader, mut writer, _) = upgrade(address, &[("authorization", &me)]).await.unwrap();
    writer.send(request(1, "session/new", json!({})).to_string().as_bytes()).await.unwrap();
    reader.next().await.unwrap().unwrap();
    // A message that is complete leaves its room to others, and so does one that will never be.
    second.finish().await;
    let third = loop {
        if let Ok(begun) = Begun::send(address, &you).await {
            break begun;
        }
    };
    drop(first);
    while Begun::send(address, &me).await.is_err() {}
    third.finish().await;
}
