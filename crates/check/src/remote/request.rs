//! Requests of a client under test.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// The longest body of a request.
const MAX_BODY: usize = 256 << 20;

/// A request of the client.
pub(super) struct ReceivedRequest {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl ReceivedRequest {
    /// Reads a request; `None` at the end of the connection. `input` keeps bytes of the next one.
    pub(super) async fn read(
        stream: &mut TcpStream,
        input: &mut Vec<u8>,
    ) -> io::Result<Option<ReceivedRequest>> {
        let end = loop {
            if let Some(end) = input.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(input).await? == 0 {
                return Ok(None);
            }
        };
        let head: Vec<u8> = input.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter_map(header).collect();
        let mut request = ReceivedRequest { method, path, headers, body: Vec::new() };
        let is_chunked =
            request.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if length > MAX_BODY {
            return Err(io::Error::other("the body of a request is too long"));
        }
        request.body = match is_chunked {
            true => chunks(stream, input).await?,
            false => take(stream, input, length).await?,
        };
        Ok(Some(request))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The request in one line, without secrets.
    pub(super) fn shown(&self) -> String {
        let mut text = self.method.clone();
        for (name, value) in &self.headers {
            if name.starts_with("acp-") || name == "content-type" || name == "accept" {
                text.push_str(&format!(" {name}: {value};"));
            }
        }
        let body: String = String::from_utf8_lossy(&self.body).chars().take(400).collect();
        if body.is_empty() { text } else { format!("{text} {body}") }
    }
}

async fn take(stream: &mut TcpStream, input: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    while input.len() < length {
        if stream.read_buf(input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(input.drain(..length).collect())
}

/// Reads a body in chunks.
async fn chunks(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = input.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            if stream.read_buf(input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let line: Vec<u8> = input.drain(..end + 2).collect();
        let size = String::from_utf8_lossy(&line);
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|_| io::Error::other("a chunk has an invalid size"))?;
        if body.len() + size > MAX_BODY {
            return Err(io::Error::other("the body of a request is too long"));
        }
        body.extend(take(stream, input, size).await?);
        take(stream, input, 2).await?;
        if size == 0 {
            return Ok(body);
        }
    }
}
