//! WebSocket frames by hand, valid and invalid ones.

use std::io;

use attache_http::client::RawStream;
use attache_http::ws;
use attache_http::ws::frame::{self, Header, Opcode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Endpoint;
use super::http1::{Request, Response};

/// A mask. Its value is of no importance to a checker.
const MASK: [u8; 4] = [0x5a, 0x13, 0xc7, 0x28];
/// The longest frame that is read.
const MAX_FRAME: u64 = 64 << 20;

/// The result of an upgrade.
pub(crate) enum Upgrade {
    /// The server responded 101.
    Switched(Socket),
    /// Any other response.
    Refused(Response),
}

/// An open WebSocket on the side of the client.
pub(crate) struct Socket {
    stream: RawStream,
    input: Vec<u8>,
    /// The value of `Acp-Connection-Id`.
    pub(crate) connection: Option<String>,
    /// Whether `Sec-WebSocket-Accept` fits the key.
    pub(crate) is_key_accepted: bool,
    /// The subprotocol and the extensions that the server chose.
    pub(crate) subprotocol: Option<String>,
    pub(crate) extensions: Option<String>,
}

/// A received frame; its payload is unmasked.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

impl Socket {
    /// The request for a WebSocket with this key.
    pub(crate) fn request(key: &str) -> Request {
        Request::new("GET")
            .with("connection", "Upgrade")
            .with("upgrade", "websocket")
            .with("sec-websocket-version", "13")
            .with("sec-websocket-key", key)
    }

    /// Asks for a WebSocket with further headers.
    pub(crate) async fn open(endpoint: &Endpoint, headers: &[(&str, &str)]) -> io::Result<Upgrade> {
        let key = ws::random_key()?;
        let request = Socket::request(&key);
        let request = headers.iter().fold(request, |request, (name, value)| request.with(name, value));
        let response = request.send(endpoint).await?;
        if response.status != 101 {
            return Ok(Upgrade::Refused(response));
        }
        let text = |name: &str| response.header(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let is_key_accepted = response.header("sec-websocket-accept") == Some(ws::accept_key(&key).as_str());
        let (subprotocol, extensions) = (text("sec-websocket-protocol"), text("sec-websocket-extensions"));
        let connection = text("acp-connection-id");
        let (stream, input) = response.into_stream();
        Ok(Upgrade::Switched(Socket { stream, input, connection, is_key_accepted, subprotocol, extensions }))
    }

    /// Sends bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Sends a masked frame.
    pub(crate) async fn send(&mut self, opcode: Opcode, is_final: bool, payload: &[u8]) -> io::Result<()> {
        self.write(&encode(opcode, is_final, Some(MASK), payload)).await
    }

    /// Reads a frame; `None` at the end of the connection.
    pub(crate) async fn frame(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let invalid =
                |error: frame::Violation| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
            if let Some((header, used)) = frame::read_header(&self.input).map_err(invalid)? {
                if header.len > MAX_FRAME {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
                }
                let end = used + usize::try_from(header.len).unwrap_or(usize::MAX);
                if self.input.len() >= end {
                    let mut payload: Vec<u8> = self.input.drain(..end).skip(used).collect();
                    if let Some(mask) = header.mask {
                        frame::apply_mask(&mut payload, mask, 0);
                    }
                    return Ok(Some(Frame { header, payload }));
                }
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// The bytes of a frame.
pub(crate) fn encode(opcode: Opcode, is_final: bool, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + frame::MAX_HEADER);
    frame::write_header(&mut bytes, &Header { is_final, opcode, mask, len: payload.len() as u64 });
    let start = bytes.len();
    bytes.extend_from_slice(payload);
    if let Some(mask) = mask {
        frame::apply_mask(&mut bytes[start..], mask, 0);
    }
    bytes
}
