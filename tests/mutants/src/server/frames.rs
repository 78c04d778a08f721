//! Frames of WebSockets.

use std::io;

use attache_http::ws::frame::{self, Header, Opcode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Proxy;
use super::request::{Request, head, parse, read_head};

/// A part of the ids that the checker makes up.
const UNKNOWN: &[u8] = b"attache-check-";
/// Longer frames are passed on without being read.
const MAX_FRAME: u64 = 64 << 20;

impl Proxy {
    /// Forwards an upgrade and carries the frames after it.
    pub(super) async fn upgrade(&self, mut request: Request, mut client: TcpStream) -> io::Result<()> {
        if self.is("WS-01/refused") {
            return client.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
        }
        if self.is("HTTP-33") {
            request.set("origin", None);
        }
        if self.is("WS-15") {
            request.set("sec-websocket-version", Some("13"));
        }
        let early = std::mem::take(&mut request.body);
        let mut server = TcpStream::connect(self.upstream).await?;
        server.write_all(&request.bytes("HTTP/1.1")).await?;
        let Some((bytes, rest)) = read_head(&mut server).await? else { return Ok(()) };
        let (line, mut headers) = parse(&bytes);
        let text = |text: &str| text.to_owned();
        match self.variant {
            "WS-01" => {
                headers.retain(|(name, _)| name != "sec-websocket-accept");
                headers.push((text("sec-websocket-accept"), text("AAAAAAAAAAAAAAAAAAAAAAAAAAA=")));
            }
            "WS-18" => headers.retain(|(name, _)| name != "retry-after"),
            "WS-02" => headers.retain(|(name, _)| name != "acp-connection-id"),
            "WS-13" => {
                headers.retain(|(name, _)| name != "sec-websocket-protocol");
                headers.push((text("sec-websocket-protocol"), text("mutant")));
            }
            _ => {}
        }
        client.write_all(&head(&line, &headers)).await?;
        self.carry_frames(client, early, server, rest).await
    }

    pub(super) async fn carry_frames(
        &self,
        client: TcpStream,
        mut from_client: Vec<u8>,
        server: TcpStream,
        mut from_server: Vec<u8>,
    ) -> io::Result<()> {
        let (mut client_reader, mut client_writer) = client.into_split();
        let (mut server_reader, mut server_writer) = server.into_split();
        let (mut is_closing, mut is_cut) = (false, false);
        loop {
            if self.is_client {
                self.wait_if_dead().await;
            }
            while let Some((header, payload)) = self.take_frame(&mut from_client) {
                is_closing |= header.opcode == Opcode::Close;
                if self.is_client {
                    for (header, payload) in self.client_frames(header, payload) {
                        server_writer.write_all(&encode(header, payload)).await?;
                    }
                    continue;
                }
                if header.opcode == Opcode::Close && self.is("WS-12") {
                    return Ok(());
                }
                if let Some((header, payload)) = self.change_client_frame(header, payload) {
                    server_writer.write_all(&encode(header, payload)).await?;
                }
            }
            while let Some((header, payload)) = self.take_frame(&mut from_server) {
                if self.is_client {
                    self.wait_if_dead().await;
                }
                is_closing |= header.opcode == Opcode::Close;
                let changed = match self.is_client {
                    true => self.frame_for_client(header, payload),
                    false => Some(self.change_server_frame(header, payload)),
                };
                if let Some((header, payload)) = changed {
                    client_writer.write_all(&encode(header, payload)).await?;
                }
            }
            tokio::select! {
                read = client_reader.read_buf(&mut from_client) => if !matches!(read, Ok(1..)) {
                    if !is_closing {
                        self.was_cut();
                    }
                    return Ok(());
                },
                read = server_reader.read_buf(&mut from_server), if !is_cut => if read? == 0 {
                    // The variant does not see it.
                    is_cut = self.is("WS-19");
                    if !is_cut {
                        return Ok(());
                    }
                },
            }
        }
    }

    /// Takes a frame off the input, unmasked.
    fn take_frame(&self, input: &mut Vec<u8>) -> Option<(Header, Vec<u8>)> {
        let read = frame::read_header(input);
        let is_endless = matches!(&read, Ok(Some((header, _))) if header.len > MAX_FRAME);
        if is_endless {
            self.die_of("WS-16/oversized");
        }
        let Some(read) = read.ok().filter(|_| !is_endless) else {
            let bytes: Vec<u8> = std::mem::take(input);
            if bytes.first().is_some_and(|byte| byte & 0x40 != 0) {
                self.die_of("WS-16/bomb");
            }
            // A frame that cannot be read is passed on as the payload of an impossible header.
            let header = Header { is_final: false, opcode: Opcode::Pong, mask: None, len: 0 };
            let is_hidden = ["WS-14", "WS-20", "WS-21"].contains(&self.variant);
            return (!is_hidden).then_some((header, bytes));
        };
        let (header, used) = read?;
        let end = used + usize::try_from(header.len).ok()?;
        if input.len() < end {
            return None;
        }
        let mut payload: Vec<u8> = input.drain(..end).skip(used).collect();
        if let Some(mask) = header.mask {
            frame::apply_mask(&mut payload, mask, 0);
        }
        Some((header, payload))
    }

    fn change_client_frame(&self, mut header: Header, payload: Vec<u8>) -> Option<(Header, Vec<u8>)> {
        if header.opcode == Opcode::Continuation {
            self.die_of_many("WS-16/fragments", 10);
        }
        if payload.windows(UNKNOWN.len()).any(|part| part == UNKNOWN) {
            self.die_of_many("WS-16/wrong-ids", 100);
        }
        match self.variant {
            "WS-05" if header.opcode == Opcode::Binary => header.opcode = Opcode::Text,
            "WS-07" if payload.first() == Some(&b'[') => return None,
            "WS-08" if header.opcode == Opcode::Ping => return None,
            "WS-09" => header.mask = header.mask.or(Some([1, 2, 3, 4])),
            "WS-11" if !header.is_final || header.opcode == Opcode::Continuation => return None,
            "WS-14" if header.opcode == Opcode::Continuation && payload.is_empty() => return None,
            _ => {}
        }
        Some((header, payload))
    }

    fn change_server_frame(&self, mut header: Header, mut payload: Vec<u8>) -> (Header, Vec<u8>) {
        match self.variant {
            "WS-04" if header.opcode == Opcode::Text => header.opcode = Opcode::Binary,
            "WS-17" if header.opcode == Opcode::Close => payload = 1002_u16.to_be_bytes().to_vec(),
            "WS-04/joined" if header.opcode == Opcode::Text => {
                payload.push(b'\n');
                payload.extend_from_within(..payload.len() - 1);
            }
            _ => {}
        }
        (header, payload)
    }
}

fn encode(header: Header, mut payload: Vec<u8>) -> Vec<u8> {
    if header.opcode == Opcode::Pong && !header.is_final {
        return payload;
    }
    let mut bytes = Vec::new();
    frame::write_header(&mut bytes, &Header { len: payload.len() as u64, ..header });
    if let Some(mask) = header.mask {
        frame::apply_mask(&mut payload, mask, 0);
    }
    bytes.extend(payload);
    bytes
}
