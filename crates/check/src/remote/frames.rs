//! The frames of a WebSocket with a client under test.

use std::io;

use attache_http::ws::frame::{self, Header, Opcode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::behaviour::{Behaviour, cut_at, is_fault};
use super::listener::Shared;
use super::socket::encode;

/// The payload of pings.
const PING: &[u8] = b"attache-check";

/// Carries messages until the connection ends, the `early` ones first. The end of `outgoing` closes
/// it.
pub(super) async fn carry(
    shared: &Shared,
    mut stream: TcpStream,
    input: Vec<u8>,
    early: Vec<Vec<u8>>,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    for line in early {
        stream.write_all(&frames(shared.behaviour, &line)).await?;
    }
    let mut socket = Incoming { shared, input, message: None, is_begun: false };
    let (mut is_closing, mut is_wrong) = (false, false);
    loop {
        while let Some(Frame { opcode, payload, message }) = socket.take()? {
            if let Some(message) = message {
                shared.received(&message).await;
            }
            match opcode {
                Opcode::Ping => stream.write_all(&encode(Opcode::Pong, true, None, &payload)).await?,
                Opcode::Close => {
                    if is_wrong {
                        shared.observations.add(ending_rule(shared.behaviour), true, "a close frame", "");
                    } else if is_closing {
                        shared.observations.add("WS-12", true, "a close frame", "");
                    } else {
                        // A client that closes the connection waits for the answer.
                        stream.write_all(&encode(Opcode::Close, true, None, &payload)).await?;
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        tokio::select! {
            line = outgoing.recv(), if !is_closing => match line {
                Some(line) => match wrong(shared.behaviour, &line) {
                    Some(bytes) => {
                        stream.write_all(&bytes).await?;
                        if shared.behaviour == Behaviour::Cut {
                            return Ok(());
                        }
                        is_wrong = true;
                    }
                    None => stream.write_all(&frames(shared.behaviour, &line)).await?,
                },
                None => {
                    stream.write_all(&encode(Opcode::Close, true, None, &1000_u16.to_be_bytes())).await?;
                    is_closing = true;
                }
            },
            read = stream.read_buf(&mut socket.input) => if !matches!(read, Ok(1..)) {
                if is_wrong {
                    shared.observations.add(ending_rule(shared.behaviour), true, "the end of the connection", "");
                } else if is_closing {
                    shared.observations.add("WS-12", false, "a close frame", "the client does not answer a close frame");
                }
                return Ok(());
            },
        }
    }
}

/// The rule that a client keeps when it ends the connection.
fn ending_rule(behaviour: Behaviour) -> &'static str {
    match behaviour {
        Behaviour::Oversized => "WS-21",
        _ => "WS-20",
    }
}

/// What is sent in the place of a fault. A part of a frame, or a frame that ends the connection of
/// a client that looks.
fn wrong(behaviour: Behaviour, line: &[u8]) -> Option<Vec<u8>> {
    // Messages of other servers are not read.
    let is_wrong = matches!(
        behaviour,
        Behaviour::Cut
            | Behaviour::Compressed
            | Behaviour::Masked
            | Behaviour::UnknownOpcode
            | Behaviour::Oversized
    );
    if !is_wrong || !is_fault(line) {
        return None;
    }
    let mut whole = encode(Opcode::Text, true, None, line);
    match behaviour {
        Behaviour::Cut => whole.truncate(cut_at(line, whole.len())),
        Behaviour::Oversized => {
            let head = Header { is_final: true, opcode: Opcode::Text, mask: None, len: 1 << 40 };
            whole.clear();
            frame::write_header(&mut whole, &head);
            whole.extend(line);
        }
        // RSV1 says that the payload is compressed, which was not agreed on.
        Behaviour::Compressed => whole[0] |= 0x40,
        Behaviour::Masked => whole = encode(Opcode::Text, true, Some([1, 2, 3, 4]), line),
        Behaviour::UnknownOpcode => whole[0] = whole[0] & 0xF0 | 0x3,
        _ => return None,
    }
    Some(whole)
}

/// The frames of an outgoing message.
fn frames(behaviour: Behaviour, line: &[u8]) -> Vec<u8> {
    let whole = encode(Opcode::Text, true, None, line);
    match behaviour {
        Behaviour::Binary => [encode(Opcode::Binary, true, None, b"{\"binary\":"), whole].concat(),
        Behaviour::Pings => [encode(Opcode::Ping, true, None, PING), whole].concat(),
        Behaviour::Fragments => {
            let (one, rest) = line.split_at(line.len() / 3);
            let (two, three) = rest.split_at(rest.len() / 2);
            [
                encode(Opcode::Text, false, None, one),
                encode(Opcode::Ping, true, None, PING),
                encode(Opcode::Continuation, false, None, two),
                encode(Opcode::Continuation, true, None, three),
            ]
            .concat()
        }
        _ => whole,
    }
}

/// A frame of the client, and the message that ends with it.
struct Frame {
    opcode: Opcode,
    payload: Vec<u8>,
    message: Option<Vec<u8>>,
}

/// Reads and judges the frames of the client.
struct Incoming<'a> {
    shared: &'a Shared,
    input: Vec<u8>,
    message: Option<(Opcode, Vec<u8>)>,
    /// Whether the first message came.
    is_begun: bool,
}

impl Incoming<'_> {
    /// Takes the next frame off the input.
    fn take(&mut self) -> io::Result<Option<Frame>> {
        let observations = &self.shared.observations;
        let violation =
            |error: frame::Violation| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let Some((header, used)) = frame::read_header(&self.input).map_err(violation)? else {
            return Ok(None);
        };
        let Some(end) = usize::try_from(header.len).ok().map(|len| used + len) else {
            return Err(io::Error::other("a frame is too long"));
        };
        if self.input.len() < end {
            return Ok(None);
        }
        let mut payload: Vec<u8> = self.input.drain(..end).skip(used).collect();
        let shown = || format!("{:?} frame", header.opcode);
        observations.add("WS-10", header.mask.is_some(), &shown(), "a frame of the client is not masked");
        if let Some(mask) = header.mask {
            frame::apply_mask(&mut payload, mask, 0);
        }
        match header.opcode {
            Opcode::Text | Opcode::Binary => self.message = Some((header.opcode, payload.clone())),
            Opcode::Continuation => {
                if let Some((_, message)) = &mut self.message {
                    message.extend(&payload);
                }
            }
            Opcode::Pong => {
                observations.add("WS-08", payload == PING, &shown(), "a pong does not repeat its ping")
            }
            Opcode::Ping | Opcode::Close => {}
        }
        let mut whole = None;
        if header.is_final
            && !header.opcode.is_control()
            && let Some((opcode, message)) = self.message.take()
        {
            self.observe(opcode, &message);
            whole = Some(message);
        }
        Ok(Some(Frame { opcode: header.opcode, payload, message: whole }))
    }

    /// Judges a message.
    fn observe(&mut self, opcode: Opcode, message: &[u8]) {
        let observations = &self.shared.observations;
        let shown: String = String::from_utf8_lossy(message).chars().take(400).collect();
        let parsed = serde_json::from_slice::<Value>(message);
        let is_one = opcode == Opcode::Text && matches!(parsed, Ok(Value::Object(_)));
        observations.add("WS-04", is_one, &shown, "a message is not one JSON-RPC message in a text frame");
        if !self.is_begun {
            let is_first = parsed.is_ok_and(|message| message["method"] == "initialize");
            observations.add("WS-03", is_first, &shown, "the first message is not initialize");
            self.is_begun = true;
        }
    }
}
