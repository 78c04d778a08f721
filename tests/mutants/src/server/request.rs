//! Heads of requests and responses.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Longer bodies are forwarded without being read.
const MAX_BODY: usize = 32 << 20;

/// A request with its body.
pub(super) struct Request {
    /// The method, the path and the version.
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Whether the body is longer than what was read of it.
    pub(super) is_partial: bool,
}

/// Reads up to the end of a head. Returns it, and the bytes after it.
pub(super) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok(Some((bytes, rest)));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}

/// The first line and the headers of a head.
pub(super) fn parse(head: &[u8]) -> (String, Vec<(String, String)>) {
    let head = String::from_utf8_lossy(head).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    (line, lines.filter_map(header).collect())
}

/// The bytes of a head.
pub(super) fn head(line: &str, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("{line}\r\n");
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    head.push_str("\r\n");
    head.into_bytes()
}

impl Request {
    /// Reads a request; `None` if it was cut off.
    pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Request>> {
        let Some((head, mut body)) = read_head(stream).await? else { return Ok(None) };
        let (line, headers) = parse(&head);
        let mut request = Request { line, headers, body: Vec::new(), is_partial: false };
        let length: usize = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        request.is_partial = length > MAX_BODY;
        while !request.is_partial && body.len() < length {
            if stream.read_buf(&mut body).await? == 0 {
                return Ok(None);
            }
        }
        request.body = body;
        Ok(Some(request))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets a header, or takes it away.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) {
        self.headers.retain(|(known, _)| known != name);
        self.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }

    pub(super) fn is(&self, method: &str) -> bool {
        self.line.split(' ').next() == Some(method)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.line.starts_with("PRI ")
    }

    pub(super) fn is_upgrade(&self) -> bool {
        self.header("upgrade").is_some()
    }

    /// The message in the body.
    pub(super) fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The bytes of the request, with this version of HTTP.
    pub(super) fn bytes(&self, version: &str) -> Vec<u8> {
        let line = match self.is_http2() {
            true => self.line.clone(),
            false => self.line.replace("HTTP/1.1", version),
        };
        [head(&line, &self.headers), self.body.clone()].concat()
    }
}
