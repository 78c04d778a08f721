//! Clients that are cut off, stall, flood or send garbage. The server must answer others meanwhile.

use std::collections::HashSet;
use std::io;

use attache_http::client::RawStream;
use attache_http::ws::frame::Opcode;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, timeout};

use super::client::{Client, Events, GLANCE, send, within};
use super::ws::Peer;
use super::{HTTP, WEB_SOCKET};
use crate::prompts::PromptKind;
use crate::remote::http1::{KeptConnection, Request, Response};
use crate::remote::socket::{Socket, encode};
use crate::scenarios::scenario_table;
use crate::{Stage, Step, Stop};

scenario_table! { Agent, faults in BOTH:
    "http-fault-cut": "requests that end at any byte", ["HTTP-37"] needs [HTTP] => cut;
    "http-fault-stall": "requests whose rest never comes", ["HTTP-37"] needs [HTTP] => stall;
    "http-fault-half-open": "streams whose reader is gone", ["HTTP-37"] needs [HTTP] => half_open;
    "http-fault-slow-reader": "streams that the client does not read during turns", ["HTTP-37"] needs [HTTP] => slow_reader;
    "http-fault-repeated": "a POST that is sent twice", ["HTTP-37"] needs [HTTP] => repeated;
    "http-fault-garbage": "bytes that are not HTTP", ["HTTP-37"] needs [HTTP] => garbage;
    "http-fault-headers": "a head that is too long", ["HTTP-38"] needs [HTTP] => headers;
    "http-fault-sessions": "many sessions on one connection", ["HTTP-37"] needs [HTTP] => sessions;
    "ws-fault-cut": "frames that end at any byte", ["WS-16"] needs [WEB_SOCKET] => ws_cut;
    "ws-fault-stall": "a frame whose rest never comes", ["WS-16"] needs [WEB_SOCKET] => ws_stall;
    "ws-fault-fragments": "a message in very many frames", ["WS-16"] needs [WEB_SOCKET] => ws_fragments;
    "ws-fault-bomb": "compressed frames, with the extension granted or not", ["WS-16"] needs [WEB_SOCKET] => ws_bomb;
}

/// Numbers that are the same in every run, so that a failure can be repeated (xorshift).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap_or_default()
    }
}

const SEED: u64 = 0x5eed_ac9d;
/// The number of connections that fail in one scenario.
const COUNT: usize = 40;

/// Judges whether another client is still served.
pub(super) async fn lives(stage: &mut Stage, rule: &'static str, after: &str) -> Step {
    let served = match rule {
        "WS-16" => Peer::begin(stage).await.map(drop),
        _ => Client::open(stage).await.map(drop),
    };
    match served {
        Ok(()) => stage.pass(rule),
        Err(stop) => stage.fail(rule, format!("another client is not served after {after}: {stop}")),
    }
    Ok(())
}

/// Judges whether another client is still served after a fault that the server answered until it
/// `stopped`.
pub(super) async fn survives(stage: &mut Stage, rule: &'static str, after: &str, stopped: Step) -> Step {
    match stopped {
        Err(stop @ (Stop::NotApplicable(_) | Stop::NotExercised(_))) => Err(stop),
        Ok(()) | Err(_) => lives(stage, rule, after).await,
    }
}

/// Opens a connection and sends bytes on it; a server may close it at any time.
async fn half_sent(stage: &Stage, bytes: &[u8]) -> Result<RawStream, Stop> {
    let endpoint = stage.endpoint()?;
    within(stage, "a connection", async {
        let mut stream = endpoint.open().await?;
        // The server may be done with us before it has read everything.
        let _ = stream.write_all(bytes).await;
        let _ = stream.flush().await;
        io::Result::Ok(stream)
    })
    .await
}

async fn cut(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let bytes = Request::post(&Client::initialize(stage)).bytes(&client.endpoint);
    for end in 0..bytes.len() {
        drop(half_sent(stage, &bytes[..end]).await?);
    }
    stage.note(format!("{} requests were cut off, one at each byte", bytes.len()));
    lives(stage, "HTTP-37", "requests that were cut off").await
}

async fn stall(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let bytes = Request::post(&Client::initialize(stage)).bytes(&client.endpoint);
    let mut random = Seeded(SEED);
    let mut held = Vec::new();
    for _ in 0..COUNT {
        let end = random.below(bytes.len());
        held.push(half_sent(stage, &bytes[..end]).await?);
    }
    stage.note(format!("{COUNT} requests stall"));
    lives(stage, "HTTP-37", "requests that stall").await?;
    drop(held);
    Ok(())
}

async fn half_open(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let left = leave_streams(stage, client).await;
    survives(stage, "HTTP-37", "streams whose readers are gone", left).await
}

async fn leave_streams(stage: &mut Stage, mut client: Client) -> Step {
    for _ in 0..COUNT / 4 {
        // Dropped at once: the server learns it when it writes.
        drop(client.stream(stage, None).await?);
        let probe = json!({ "jsonrpc": "2.0", "id": 1, "method": "_attache/probe", "params": {} });
        client.accept(stage, None, &probe).await?;
        client = Client::open(stage).await?;
    }
    Ok(())
}

/// Requests whose responses are not read.
const UNREAD: usize = 400;
/// The length of their names, which most agents repeat in the error.
const NAME: usize = 32 << 10;

async fn slow_reader(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut events = client.stream(stage, None).await?;
    let session = client.new_session(stage, &mut events).await?;
    let own = client.stream(stage, Some(&session)).await?;
    for _ in 0..5 {
        let (_, prompt) = client.prompt(stage, &session, PromptKind::Lines);
        client.post(stage, Some(&session), &prompt).await?;
    }
    let name = format!("_attache/{}", "x".repeat(NAME));
    let mut sent = 0;
    while sent < UNREAD {
        let (_, probe) = client.message(&name, json!({}));
        let post = client.of(Request::post(&probe), None);
        // A server may make the client wait, or refuse.
        match timeout(GLANCE, post.send(&client.endpoint)).await {
            Ok(Ok(response)) if response.status < 300 => sent += 1,
            _ => break,
        }
    }
    stage.note(format!("the client does not read the answers to {sent} requests of {NAME} bytes"));
    lives(stage, "HTTP-37", "turns and answers whose streams are not read").await?;
    drop((own, events));
    client.delete(stage).await?;
    Ok(())
}

async fn repeated(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut events = client.stream(stage, None).await?;
    let (id, probe) = client.message("_attache/probe", json!({}));
    for _ in 0..2 {
        client.post(stage, None, &probe).await?;
    }
    if events.answer(stage, &client, &id).await.is_err() {
        stage.fail("HTTP-37", "a request that was sent twice is not answered at all");
        return Ok(());
    }
    // Also on this connection.
    let (id, probe) = client.message("_attache/probe", json!({}));
    let again = match client.accept(stage, None, &probe).await {
        Ok(()) => events.answer(stage, &client, &id).await,
        Err(stop) => Err(stop),
    };
    match again {
        Ok(_) => stage.pass("HTTP-37"),
        Err(stop) => {
            stage.fail("HTTP-37", format!("nothing is answered after a request that was sent twice: {stop}"));
            return Ok(());
        }
    }
    client.delete(stage).await?;
    Ok(())
}

async fn garbage(stage: &mut Stage) -> Step {
    Client::open(stage).await?;
    let mut random = Seeded(SEED);
    for _ in 0..COUNT {
        let length = random.below(2_000) + 1;
        let bytes: Vec<u8> = (0..length).map(|_| u8::try_from(random.below(256)).unwrap_or(0)).collect();
        drop(half_sent(stage, &bytes).await?);
    }
    lives(stage, "HTTP-37", "bytes that are not HTTP").await
}

async fn headers(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let request = client.of(Request::stream(), None);
    let mut request = request.with("x-attache-check", &"x".repeat(256 << 10));
    for number in 0..2_000 {
        request.headers.push((format!("x-attache-{number}"), "x".repeat(100)));
    }
    let stream = half_sent(stage, &request.bytes(&client.endpoint)).await?;
    let status = match timeout(stage.deadline(), Response::read(stream)).await {
        Ok(Ok(response)) => Some(response.status),
        // Closed.
        Ok(Err(_)) => None,
        Err(_) => {
            stage.fail("HTTP-38", "a head that is too long is neither refused nor is its connection closed");
            return Ok(());
        }
    };
    stage.exchanged(format!("GET with 2,001 headers of 456 KiB → {status:?}"));
    let kept = status.is_none_or(|status| (400..500).contains(&status));
    stage.check("HTTP-38", kept, format!("a head of 456 KiB gets {}", status.unwrap_or_default()));
    let served = send(stage, &client.endpoint, &client.of(Request::new("DELETE"), None)).await;
    stage.check("HTTP-38", served.is_ok(), "other requests are not answered after a head that is too long");
    Ok(())
}

async fn sessions(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let opened = open_sessions(stage, &mut client).await;
    survives(stage, "HTTP-37", "many sessions", opened).await
}

/// The number of `session/new` that are sent before their answers are awaited.
const AT_ONCE: usize = 32;
/// The time for opening sessions, in deadlines: the rest of the scenario needs some too.
const OPENING: u32 = 20;

/// Opens the sessions until a limit of the server or the end of the time. Both are noted.
async fn open_sessions(stage: &mut Stage, client: &mut Client) -> Step {
    let mut events = client.stream(stage, None).await?;
    // The first one logs in, and shows in the trace; the others would fill it.
    client.new_session(stage, &mut events).await?;
    let (wanted, end) = (stage.sessions().max(1), Instant::now() + stage.deadline() * OPENING);
    let mut posts = KeptConnection::default();
    let (mut opened, mut limit) = (1, None);
    while opened < wanted && limit.is_none() {
        if Instant::now() > end {
            limit = Some("the time was over; --deadline gives more".to_owned());
            break;
        }
        let (ids, refused) = post_sessions(stage, client, &mut posts, AT_ONCE.min(wanted - opened)).await;
        let (count, failed) = count_sessions(stage, &mut events, ids).await?;
        opened += count;
        limit = refused.or(failed);
    }
    let limit = limit.map_or(String::new(), |limit| format!(": {limit}"));
    stage.note(format!("{opened} of {wanted} sessions were opened{limit}"));
    client.delete(stage).await?;
    Ok(())
}

/// Posts some `session/new`. Returns the ids of those that were accepted, and why the next was not.
async fn post_sessions(
    stage: &Stage,
    client: &mut Client,
    posts: &mut KeptConnection,
    count: usize,
) -> (HashSet<Option<u64>>, Option<String>) {
    let mut ids = HashSet::new();
    while ids.len() < count {
        let (id, message) = client.session_message(stage);
        let request = client.of(Request::post(&message), None);
        // A limit is a good answer.
        match within(stage, "the response to session/new", posts.send(request, &client.endpoint)).await {
            Ok(200..300) => ids.insert(id.as_u64()),
            Ok(status) => return (ids, Some(format!("session/new was refused with {status}"))),
            Err(stop) => return (ids, Some(stop.to_string())),
        };
    }
    (ids, None)
}

/// Waits for the answers to `session/new`. Returns the number of sessions, and why one was refused.
async fn count_sessions(
    stage: &Stage,
    events: &mut Events,
    mut ids: HashSet<Option<u64>>,
) -> Result<(usize, Option<String>), Stop> {
    let (mut opened, mut refused) = (0, None);
    while !ids.is_empty() {
        let Some(data) = events.receive(stage, "the answer to session/new").await? else {
            return Ok((opened, Some("the stream of the connection ended".to_owned())));
        };
        let message: Value = serde_json::from_str(&data).unwrap_or_default();
        if message.get("method").is_some() || !ids.remove(&message["id"].as_u64()) {
            continue;
        }
        match message["result"]["sessionId"].as_str() {
            Some(_) => opened += 1,
            None => refused = Some(format!("session/new was refused: {}", message["error"])),
        }
    }
    Ok((opened, refused))
}

/// Bytes of an upgrade with a request after it.
fn conversation(stage: &Stage) -> Result<Vec<u8>, Stop> {
    let endpoint = stage.endpoint()?;
    let mut bytes = Socket::request("dGhlIHNhbXBsZSBub25jZQ==").bytes(&endpoint);
    let message = Client::initialize(stage).to_string();
    bytes.extend(encode(Opcode::Text, true, Some([1, 2, 3, 4]), message.as_bytes()));
    Ok(bytes)
}

async fn ws_cut(stage: &mut Stage) -> Step {
    drop(Peer::begin(stage).await?);
    let bytes = conversation(stage)?;
    for end in 0..bytes.len() {
        drop(half_sent(stage, &bytes[..end]).await?);
    }
    stage.note(format!("{} connections were cut off, one at each byte", bytes.len()));
    lives(stage, "WS-16", "connections that were cut off").await
}

async fn ws_stall(stage: &mut Stage) -> Step {
    drop(Peer::begin(stage).await?);
    let bytes = conversation(stage)?;
    let mut random = Seeded(SEED);
    let mut held = Vec::new();
    for _ in 0..COUNT {
        let end = random.below(bytes.len());
        held.push(half_sent(stage, &bytes[..end]).await?);
    }
    lives(stage, "WS-16", "connections that stall").await?;
    drop(held);
    Ok(())
}

async fn ws_fragments(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    let mut frames = encode(Opcode::Text, false, Some([9, 9, 9, 9]), b"{");
    for _ in 0..100_000 {
        frames.extend(encode(Opcode::Continuation, false, Some([9, 9, 9, 9]), b""));
    }
    let _ = timeout(stage.deadline(), peer.socket.write(&frames)).await;
    lives(stage, "WS-16", "a message in 100,000 frames").await
}

async fn ws_bomb(stage: &mut Stage) -> Step {
    let mut peer = Peer::open(stage, &[("sec-websocket-extensions", "permessage-deflate")]).await?;
    if peer.socket.extensions.is_none() {
        // Without the extension the bit is a violation, which closes the connection.
        stage.note("the server grants no compression");
    }
    let mut payload =
        vec![0xec, 0xc1, 0x01, 0x01, 0x00, 0x00, 0x00, 0x80, 0x90, 0xfe, 0xaf, 0xee, 0x08, 0x0a];
    payload.resize(64 << 10, 0);
    let mut frame = encode(Opcode::Text, true, Some([0; 4]), &payload);
    frame[0] |= 0x40;
    for _ in 0..64 {
        if !matches!(timeout(stage.deadline(), peer.socket.write(&frame)).await, Ok(Ok(()))) {
            break;
        }
    }
    let _ = timeout(GLANCE, peer.next(stage, "the end of the connection")).await;
    lives(stage, "WS-16", "compressed frames").await
}
