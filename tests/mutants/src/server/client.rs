//! The proxy behind a conformant client, which breaks the client's transport.

use std::io;
use std::sync::atomic::Ordering;

use attache_http::ws::frame::{Header, Opcode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Proxy;
use super::request::{Request, head, parse, read_head};

impl Proxy {
    /// Forwards a request of the client.
    pub(super) async fn forward(&self, mut request: Request, mut client: TcpStream) -> io::Result<()> {
        let message = request.message();
        let is_initialize = message["method"] == "initialize";
        let is_post = request.is("POST") && !is_initialize;
        match self.variant {
            "HTTP-05" if is_initialize => request.set("acp-connection-id", Some("mutant")),
            "HTTP-14" if is_post => request.set("acp-connection-id", None),
            "HTTP-15" if is_post => request.set("acp-session-id", None),
            "HTTP-15/answers" if is_post && message.get("method").is_none() => {
                request.set("acp-session-id", None)
            }
            "HTTP-17" if request.is("POST") => request.set("content-type", Some("text/plain")),
            "HTTP-18" if request.is("GET") && !request.is_upgrade() => request.set("accept", Some("*/*")),
            "HTTP-24" => request.set("cookie", None),
            "HTTP-28" => request.set("acp-protocol-version", None),
            "WS-01" if request.is_upgrade() => request.set("sec-websocket-version", Some("8")),
            _ => {}
        }
        self.wait_if_dead().await;
        let _alone = match self.is("HTTP-44") && is_post {
            true => Some(self.one_at_a_time.lock().await),
            false => None,
        };
        if message["method"] == "session/load" {
            self.state().closing.insert(message["id"].to_string());
        }
        let mut server = TcpStream::connect(self.upstream).await?;
        server.write_all(&request.bytes("HTTP/1.1")).await?;
        let Some((mut bytes, mut rest)) = read_head(&mut server).await? else { return Ok(()) };
        let (mut line, mut headers) = parse(&bytes);
        // In the name of the client: at once, and to the new place.
        if self.is("HTTP-42") && line.contains(" 429 ") || self.is("WS-22") && line.contains(" 307 ") {
            if let Some((_, location)) = headers.iter().find(|(name, _)| name == "location") {
                let path = location.splitn(4, '/').last().unwrap_or_default();
                request.line = format!("GET /{path} HTTP/1.1");
            }
            server = TcpStream::connect(self.upstream).await?;
            server.write_all(&request.bytes("HTTP/1.1")).await?;
            let Some(again) = read_head(&mut server).await? else { return Ok(()) };
            (bytes, rest) = again;
            (line, headers) = parse(&bytes);
        }
        if line.contains(" 404 ") && request.is("GET") {
            self.die_of("HTTP-43");
            self.wait_if_dead().await;
        }
        if line.contains(" 101 ") {
            client.write_all(&bytes).await?;
            return self.carry_frames(client, Vec::new(), server, rest).await;
        }
        headers.retain(|(name, _)| name != "connection");
        headers.push(("connection".to_owned(), "close".to_owned()));
        client.write_all(&head(&line, &headers)).await?;
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let Some(length) = length.and_then(|(_, length)| length.parse::<usize>().ok()) else {
            let is_session = request.header("acp-session-id").is_some();
            return self.carry_stream(server, rest, client, is_session).await;
        };
        while rest.len() < length && server.read_buf(&mut rest).await? > 0 {}
        client.write_all(&rest).await
    }

    /// Carries the events of a stream to the client.
    async fn carry_stream(
        &self,
        mut server: TcpStream,
        mut text: Vec<u8>,
        mut client: TcpStream,
        is_session: bool,
    ) -> io::Result<()> {
        let mut left = [0; 16];
        // The variant does not see it.
        let mut is_cut = false;
        loop {
            let ends = [&b"\r\n\r\n"[..], b"\n\n"];
            let find = |text: &[u8]| {
                let at = |end: &[u8]| {
                    text.windows(end.len()).position(|window| window == end).map(|at| at + end.len())
                };
                ends.iter().filter_map(|end| at(end)).min()
            };
            while let Some(end) = find(&text) {
                let event: Vec<u8> = text.drain(..end).collect();
                let mut event = String::from_utf8_lossy(&event).into_owned();
                if self.is("HTTP-32") {
                    let mut is_first = true;
                    event = event
                        .split_inclusive('\n')
                        .filter(|line| !line.starts_with("data:") || std::mem::take(&mut is_first))
                        .collect();
                }
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
                let message: Value = serde_json::from_str(data).unwrap_or_default();
                self.die_of_message(&message);
                self.wait_if_dead().await;
                if self.is("HTTP-40") && !is_session && message["params"]["sessionId"].is_string() {
                    continue;
                }
                if self.is("HTTP-13")
                    && message.get("method").is_none()
                    && self.state().closing.contains(&message["id"].to_string())
                {
                    continue;
                }
                client.write_all(event.as_bytes()).await?;
            }
            let is_within_character =
                std::str::from_utf8(&text).is_err_and(|error| error.error_len().is_none());
            if self.is("HTTP-45") && is_within_character {
                std::future::pending::<()>().await;
            }
            tokio::select! {
                read = server.read_buf(&mut text), if !is_cut => if read? == 0 {
                    is_cut = self.is("HTTP-41");
                    if !is_cut {
                        return Ok(());
                    }
                },
                gone = client.read(&mut left) => if gone? == 0 {
                    return Ok(());
                },
            }
        }
    }

    /// Serves nobody any more after a message that the variant does not survive.
    fn die_of_message(&self, message: &Value) {
        if message["id"] == "nobody" {
            self.die_of("RPC-14");
        }
        if message["params"]["sessionId"] == "sess-attache-nowhere" {
            self.die_of("SESS-32");
        }
    }

    pub(super) async fn wait_if_dead(&self) {
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// A frame of the client, and one to send before it.
    pub(super) fn client_frames(&self, mut header: Header, payload: Vec<u8>) -> Vec<(Header, Vec<u8>)> {
        match self.variant {
            "WS-03" if !std::mem::replace(&mut self.state().is_begun, true) => {
                let early = br#"{"jsonrpc":"2.0","method":"_attache/early"}"#.to_vec();
                return vec![(header, early), (header, payload)];
            }
            "WS-04" if header.opcode == Opcode::Text => header.opcode = Opcode::Binary,
            "WS-10" => header.mask = None,
            "WS-12" if header.opcode == Opcode::Close => return Vec::new(),
            _ => {}
        }
        vec![(header, payload)]
    }

    /// A frame for the client.
    pub(super) fn frame_for_client(&self, mut header: Header, payload: Vec<u8>) -> Option<(Header, Vec<u8>)> {
        self.die_of_message(&serde_json::from_slice(&payload).unwrap_or_default());
        match self.variant {
            "WS-05" if header.opcode == Opcode::Binary => header.opcode = Opcode::Text,
            "WS-08" if header.opcode == Opcode::Ping => return None,
            "WS-11" if !header.is_final || header.opcode == Opcode::Continuation => return None,
            "WS-20" => header.mask = None,
            _ => {}
        }
        Some((header, payload))
    }
}
