//! Frames of WebSockets.

use std::io;

use attache_http::ws::frame::Opcode;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::WEB_SOCKET;
use super::client::within;
use super::faults::lives;
use crate::remote::socket::{Socket, Upgrade, encode};
use crate::scenarios::scenario_table;
use crate::{Stage, Step, Stop};

scenario_table! { Agent in BOTH:
    "ws-upgrade": "two upgrades at the URL", ["WS-01", "WS-02"] needs [WEB_SOCKET] => upgrade;
    "ws-messages": "the frames of a short conversation", ["WS-04"] needs [WEB_SOCKET] => messages;
    "ws-binary": "a binary message before a request", ["WS-05"] needs [WEB_SOCKET] => binary;
    "ws-batch": "a message that is an array", ["WS-07"] needs [WEB_SOCKET] => batch;
    "ws-ping": "pings and an unsolicited pong", ["WS-08"] needs [WEB_SOCKET] => ping;
    "ws-unmasked": "a frame without a mask", ["WS-09", "WS-16"] needs [WEB_SOCKET] => unmasked;
    "ws-fragments": "a message in three frames with a ping between them", ["WS-11"] needs [WEB_SOCKET] => fragments;
    "ws-close": "the closing handshake", ["WS-12"] needs [WEB_SOCKET] => close;
    "ws-negotiation": "subprotocols and extensions, offered or not", ["WS-13"] needs [WEB_SOCKET] => negotiation;
    "ws-malformed": "frames that RFC 6455 forbids", ["WS-14", "WS-16"] needs [WEB_SOCKET] => malformed;
    "ws-version": "an upgrade to an unknown version", ["WS-15"] needs [WEB_SOCKET] => version;
}

/// A message from the server.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Text(Vec<u8>),
    Binary,
    Pong(Vec<u8>),
    /// The status of a close frame; 1005 if there is none.
    Close(u16),
    /// The end of the connection.
    End,
}

/// An open WebSocket.
pub(super) struct Peer {
    pub(super) socket: Socket,
    next_id: u64,
    /// All text messages that came.
    seen: Vec<Vec<u8>>,
    /// Whether a frame was masked.
    is_masked: bool,
}

impl Peer {
    /// A WebSocket on which nothing was sent yet.
    pub(super) fn new(socket: Socket) -> Peer {
        Peer { socket, next_id: 0, seen: Vec::new(), is_masked: false }
    }

    /// Opens a WebSocket.
    ///
    /// # Errors
    /// [`Stop::NotExercised`] if the server refuses.
    pub(super) async fn open(stage: &mut Stage, headers: &[(&str, &str)]) -> Result<Peer, Stop> {
        let endpoint = stage.endpoint()?;
        match within(stage, "the response to an upgrade", Socket::open(&endpoint, headers)).await? {
            Upgrade::Switched(socket) => {
                stage.exchanged(format!("GET upgrade: websocket; {} → 101", shown(headers)));
                Ok(Peer::new(socket))
            }
            Upgrade::Refused(response) => {
                stage.exchanged(format!("GET upgrade: websocket; {} → {}", shown(headers), response.status));
                Err(Stop::NotExercised(format!("the upgrade is refused with {}", response.status)))
            }
        }
    }

    /// Opens a WebSocket and initializes.
    pub(super) async fn begin(stage: &mut Stage) -> Result<Peer, Stop> {
        let mut peer = Peer::open(stage, &[]).await?;
        let params = stage.offer(json!({}));
        peer.call(stage, "initialize", params).await?;
        Ok(peer)
    }

    pub(super) async fn send(
        &mut self,
        stage: &mut Stage,
        opcode: Opcode,
        is_final: bool,
        payload: &[u8],
    ) -> Step {
        stage.exchanged(format!("frame {opcode:?}: {}", text(payload)));
        let sent = timeout(stage.deadline(), self.socket.send(opcode, is_final, payload)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Stop::PeerGone),
            Err(_) => Err(Stop::Deadline("room to write".to_owned())),
        }
    }

    /// A request, and its id.
    pub(super) fn message(&mut self, method: &str, params: Value) -> (Value, Value) {
        let id = json!(self.next_id);
        self.next_id += 1;
        (id.clone(), json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Sends a request and waits for the answer.
    pub(super) async fn call(
        &mut self,
        stage: &mut Stage,
        method: &str,
        params: Value,
    ) -> Result<Value, Stop> {
        let (id, message) = self.message(method, params);
        self.send(stage, Opcode::Text, true, message.to_string().as_bytes()).await?;
        self.answer(stage, &id).await
    }

    /// Waits for the answer to the request with this id.
    pub(super) async fn answer(&mut self, stage: &mut Stage, id: &Value) -> Result<Value, Stop> {
        loop {
            let what = format!("the answer to request {id}");
            match self.next(stage, &what).await? {
                Incoming::Text(text) => {
                    let message: Value = serde_json::from_slice(&text).unwrap_or_default();
                    if message.get("method").is_none() && message["id"] == *id {
                        return Ok(message);
                    }
                }
                Incoming::Close(_) | Incoming::End => return Err(Stop::PeerGone),
                Incoming::Binary | Incoming::Pong(_) => {}
            }
        }
    }

    /// Waits for the next message of the server. Pings are answered.
    pub(super) async fn next(&mut self, stage: &mut Stage, what: &str) -> Result<Incoming, Stop> {
        let limit = stage.deadline();
        let came = timeout(limit, self.receive()).await;
        let came = match came {
            Err(_) => return Err(Stop::Deadline(what.to_owned())),
            Ok(Ok(came)) => came,
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Stop::Broken(error.to_string()));
            }
            // A connection that is reset has ended too.
            Ok(Err(_)) => Incoming::End,
        };
        let shown = match &came {
            Incoming::Text(text) => self::text(text),
            other => format!("{other:?}"),
        };
        stage.exchanged(format!("server: {shown}"));
        if let Incoming::Text(text) = &came {
            self.seen.push(text.clone());
        }
        Ok(came)
    }

    /// Waits for the next message of the server, without a limit.
    pub(super) async fn receive(&mut self) -> io::Result<Incoming> {
        let mut message: Option<(Opcode, Vec<u8>)> = None;
        loop {
            let Some(frame) = self.socket.frame().await? else { return Ok(Incoming::End) };
            self.is_masked |= frame.header.mask.is_some();
            match frame.header.opcode {
                Opcode::Ping => self.socket.send(Opcode::Pong, true, &frame.payload).await?,
                Opcode::Pong => return Ok(Incoming::Pong(frame.payload)),
                Opcode::Close => {
                    let code =
                        frame.payload.first_chunk::<2>().map_or(1005, |code| u16::from_be_bytes(*code));
                    return Ok(Incoming::Close(code));
                }
                Opcode::Text | Opcode::Binary => message = Some((frame.header.opcode, frame.payload)),
                Opcode::Continuation => match &mut message {
                    Some((_, bytes)) => bytes.extend(frame.payload),
                    None => {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            "a continuation frame has no message",
                        ));
                    }
                },
            }
            if frame.header.is_final
                && !frame.header.opcode.is_control()
                && let Some((opcode, bytes)) = message.take()
            {
                return Ok(if opcode == Opcode::Text { Incoming::Text(bytes) } else { Incoming::Binary });
            }
        }
    }

    /// Waits until the server closes the connection, with a close frame or without.
    async fn is_closed(&mut self, stage: &mut Stage) -> Result<bool, Stop> {
        loop {
            match self.next(stage, "the end of the connection").await {
                Ok(Incoming::Close(_) | Incoming::End) => return Ok(true),
                Ok(_) => {}
                Err(Stop::Deadline(_)) => return Ok(false),
                Err(stop) => return Err(stop),
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(400).collect()
}

fn shown(headers: &[(&str, &str)]) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value};")).collect::<Vec<_>>().join(" ")
}

async fn upgrade(stage: &mut Stage) -> Step {
    let mut peer = match Peer::open(stage, &[]).await {
        Ok(peer) => peer,
        Err(Stop::NotExercised(why)) => {
            stage.fail("WS-01", why.clone());
            return Err(Stop::NotExercised(why));
        }
        Err(stop) => return Err(stop),
    };
    stage.check(
        "WS-01",
        peer.socket.is_key_accepted,
        "the 101 has no Sec-WebSocket-Accept that fits the key",
    );
    let id = peer.socket.connection.clone();
    stage.check("WS-02", id.is_some(), "the 101 has no Acp-Connection-Id");
    let params = stage.offer(json!({}));
    peer.call(stage, "initialize", params).await?;
    let other = Peer::begin(stage).await?;
    if id.is_some() {
        let differ = id != other.socket.connection;
        stage.check("WS-02", differ, "two WebSockets have the same Acp-Connection-Id");
    }
    stage.pass("WS-01");
    Ok(())
}

async fn messages(stage: &mut Stage) -> Step {
    let mut peer = Peer::open(stage, &[]).await?;
    let params = stage.offer(json!({}));
    let (id, message) = peer.message("initialize", params);
    peer.send(stage, Opcode::Text, true, message.to_string().as_bytes()).await?;
    let mut answered = false;
    while !answered {
        match peer.next(stage, "the answer to initialize").await {
            Ok(Incoming::Text(text)) => match serde_json::from_slice::<Value>(&text) {
                Ok(Value::Object(message)) => answered = message.get("id") == Some(&id),
                _ => {
                    stage.fail("WS-04", "a text message is not one JSON-RPC message");
                    return Ok(());
                }
            },
            Ok(Incoming::Binary) => {
                stage.fail("WS-04", "a message comes in a binary frame");
                return Ok(());
            }
            Ok(Incoming::Pong(_)) => {}
            Ok(Incoming::Close(_) | Incoming::End) => return Err(Stop::PeerGone),
            Err(stop) => return Err(stop),
        }
    }
    let (one, first) = peer.message("_attache/probe", json!({}));
    let (two, second) = peer.message("_attache/probe", json!({}));
    for message in [first, second] {
        peer.send(stage, Opcode::Text, true, message.to_string().as_bytes()).await?;
    }
    let mut waiting = vec![one, two];
    while !waiting.is_empty() {
        match peer.next(stage, "the answers to two requests").await? {
            Incoming::Text(text) => {
                let Ok(Value::Object(message)) = serde_json::from_slice::<Value>(&text) else {
                    stage.fail("WS-04", "a text message is not one JSON-RPC message");
                    return Ok(());
                };
                waiting.retain(|id| message.get("id") != Some(id));
            }
            Incoming::Close(_) | Incoming::End => return Err(Stop::PeerGone),
            Incoming::Binary | Incoming::Pong(_) => {}
        }
    }
    stage.check("WS-04", !peer.is_masked, "a frame of the server is masked");
    Ok(())
}

async fn binary(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    let before = peer.seen.len();
    let (_, hidden) = peer.message("_attache/probe", json!({ "binary": true }));
    peer.send(stage, Opcode::Binary, true, hidden.to_string().as_bytes()).await?;
    peer.send(stage, Opcode::Binary, true, &[0, 159, 146, 150]).await?;
    match peer.call(stage, "_attache/probe", json!({})).await {
        Ok(_) => {
            let came = peer.seen.len() - before;
            stage.check("WS-05", came == 1, "a binary frame is answered");
        }
        Err(Stop::PeerGone) => stage.fail("WS-05", "the server closes the connection at a binary frame"),
        Err(Stop::Deadline(_)) => stage.fail("WS-05", "nothing is answered after a binary frame"),
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn batch(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    let before = peer.seen.len();
    let (_, one) = peer.message("_attache/probe", json!({}));
    let (_, two) = peer.message("_attache/probe", json!({}));
    peer.send(stage, Opcode::Text, true, json!([one, two]).to_string().as_bytes()).await?;
    match peer.call(stage, "_attache/probe", json!({})).await {
        Ok(_) => {}
        Err(Stop::PeerGone | Stop::Deadline(_)) => {
            stage.fail("WS-07", "the connection does not survive a batch");
            return Ok(());
        }
        Err(stop) => return Err(stop),
    }
    let came: Vec<Value> =
        peer.seen[before..].iter().filter_map(|text| serde_json::from_slice(text).ok()).collect();
    // The last is the answer to the probe.
    let kept = match came.as_slice() {
        [error, _] => error["error"]["code"] == -32600 && error["id"].is_null(),
        _ => false,
    };
    let answer = match came.as_slice() {
        [answer, _] => answer.to_string(),
        _ => format!("{} messages", came.len() - 1),
    };
    stage.check("WS-07", kept, format!("a batch is answered with {answer}, not with one error -32600"));
    Ok(())
}

async fn ping(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    peer.send(stage, Opcode::Pong, true, b"unsolicited").await?;
    for payload in [&b""[..], b"attache-check"] {
        peer.send(stage, Opcode::Ping, true, payload).await?;
        loop {
            match peer.next(stage, "the answer to a ping").await {
                Ok(Incoming::Pong(answer)) => {
                    stage.check("WS-08", answer == payload, "a pong does not repeat the payload of its ping");
                    break;
                }
                Ok(Incoming::Close(_) | Incoming::End) => {
                    stage.fail("WS-08", "the server closes the connection at a ping or pong");
                    return Ok(());
                }
                Ok(Incoming::Text(_) | Incoming::Binary) => {}
                Err(Stop::Deadline(_)) => {
                    stage.fail("WS-08", "a ping is not answered");
                    return Ok(());
                }
                Err(stop) => return Err(stop),
            }
        }
    }
    Ok(())
}

async fn unmasked(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    let (_, message) = peer.message("_attache/probe", json!({}));
    let frame = encode(Opcode::Text, true, None, message.to_string().as_bytes());
    stage.exchanged(format!("frame without a mask: {message}"));
    within(stage, "room to write", peer.socket.write(&frame)).await?;
    let closed = peer.is_closed(stage).await?;
    stage.check("WS-09", closed, "the connection stays open after a frame without a mask");
    lives(stage, "WS-16", "a frame without a mask").await
}

async fn fragments(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    let (id, message) = peer.message("_attache/probe", json!({ "text": "grüße" }));
    let bytes = message.to_string().into_bytes();
    // The middle of a letter is no border of anything.
    let cut = bytes.iter().position(|byte| *byte >= 0x80).map_or(8, |at| at + 1);
    peer.send(stage, Opcode::Text, false, &bytes[..4]).await?;
    peer.send(stage, Opcode::Ping, true, b"between").await?;
    peer.send(stage, Opcode::Continuation, false, &bytes[4..cut]).await?;
    peer.send(stage, Opcode::Continuation, true, &bytes[cut..]).await?;
    let mut ponged = false;
    loop {
        match peer.next(stage, "the answer to a fragmented request").await {
            Ok(Incoming::Pong(_)) => ponged = true,
            Ok(Incoming::Text(text)) => {
                let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
                if answer["id"] == id {
                    stage.check(
                        "WS-11",
                        ponged,
                        "a ping between two fragments is not answered before the message",
                    );
                    return Ok(());
                }
            }
            Ok(Incoming::Close(_) | Incoming::End) => {
                stage.fail("WS-11", "the server closes the connection at a fragmented message");
                return Ok(());
            }
            Ok(Incoming::Binary) => {}
            Err(Stop::Deadline(_)) => {
                stage.fail("WS-11", "a request in three frames is not answered");
                return Ok(());
            }
            Err(stop) => return Err(stop),
        }
    }
}

async fn close(stage: &mut Stage) -> Step {
    let mut peer = Peer::begin(stage).await?;
    peer.send(stage, Opcode::Close, true, &1000_u16.to_be_bytes()).await?;
    loop {
        match peer.next(stage, "the answer to a close frame").await {
            Ok(Incoming::Close(_)) => {
                stage.pass("WS-12");
                return Ok(());
            }
            Ok(Incoming::End) => {
                stage.fail("WS-12", "the connection ends without a close frame");
                return Ok(());
            }
            Ok(_) => {}
            Err(Stop::Deadline(_)) => {
                stage.fail("WS-12", "a close frame is not answered");
                return Ok(());
            }
            Err(stop) => return Err(stop),
        }
    }
}

async fn negotiation(stage: &mut Stage) -> Step {
    let bare = Peer::open(stage, &[]).await?;
    let chosen = bare.socket.subprotocol.or(bare.socket.extensions);
    stage.check("WS-13", chosen.is_none(), format!("the server uses {} unasked", chosen.unwrap_or_default()));
    let offers = ["acp.v1", "attache-check"];
    let offering = Peer::open(stage, &[("sec-websocket-protocol", &offers.join(", "))]).await;
    match offering {
        Ok(peer) => {
            let chosen = peer.socket.subprotocol;
            let kept = chosen.as_deref().is_none_or(|chosen| offers.contains(&chosen));
            stage.check(
                "WS-13",
                kept,
                format!("the server names the subprotocol {}", chosen.unwrap_or_default()),
            );
        }
        // A server may insist on a subprotocol of its own.
        Err(Stop::NotExercised(_)) => {}
        Err(stop) => return Err(stop),
    }
    Ok(())
}

async fn malformed(stage: &mut Stage) -> Step {
    // Reserved bits, an opcode that does not exist, a fragmented ping, a continuation of nothing.
    let frames: [(&str, &[u8]); 4] = [
        ("reserved bits", &[0xF1, 0x80, 0, 0, 0, 0]),
        ("an unknown opcode", &[0x83, 0x80, 0, 0, 0, 0]),
        ("a fragmented ping", &[0x09, 0x80, 0, 0, 0, 0]),
        ("a continuation of no message", &[0x80, 0x80, 0, 0, 0, 0]),
    ];
    for (what, frame) in frames {
        let mut peer = Peer::begin(stage).await?;
        stage.exchanged(format!("frame with {what}"));
        within(stage, "room to write", peer.socket.write(frame)).await?;
        let closed = peer.is_closed(stage).await?;
        stage.check("WS-14", closed, format!("the connection stays open after {what}"));
    }
    lives(stage, "WS-16", "frames that RFC 6455 forbids").await
}

async fn version(stage: &mut Stage) -> Step {
    match Peer::open(stage, &[("sec-websocket-version", "12")]).await {
        Ok(_) => stage.fail("WS-15", "version 12 of the WebSocket is accepted"),
        Err(Stop::NotExercised(_)) => stage.pass("WS-15"),
        // A server that closes the connection has not accepted it either.
        Err(Stop::Broken(_)) => stage.pass("WS-15"),
        Err(stop) => return Err(stop),
    }
    Ok(())
}
