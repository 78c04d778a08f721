//! HTTP/1.1 by hand: one request per connection, or many in turn on one that is kept.

use std::io;

use attache_http::client::RawStream;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Endpoint;

/// The longest head of a response.
const MAX_HEAD: usize = 64 << 10;
/// The longest body or event that is read.
const MAX_BODY: usize = 64 << 20;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &'static str) -> Request {
        Request { method, headers: Vec::new(), body: Vec::new() }
    }

    /// A message as JSON.
    pub(crate) fn post(message: &Value) -> Request {
        let request = Request::new("POST").with("content-type", "application/json");
        Request { body: message.to_string().into_bytes(), ..request }
    }

    /// A stream of events.
    pub(crate) fn stream() -> Request {
        Request::new("GET").with("accept", "text/event-stream")
    }

    /// Sets a header, in place of one of this name.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Request {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The bytes of the request, with the headers that all requests have.
    pub(crate) fn bytes(&self, endpoint: &Endpoint) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, endpoint.path());
        let mut put = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
        let has = |name: &str| self.headers.iter().any(|(known, _)| known == name);
        if !has("host") {
            put("host", endpoint.host());
        }
        if let Some(token) = endpoint.authorization().filter(|_| !has("authorization")) {
            put("authorization", &token);
        }
        if !has("connection") {
            put("connection", "close");
        }
        if self.method == "POST" && !has("content-length") {
            put("content-length", &self.body.len().to_string());
        }
        self.headers.iter().for_each(|(name, value)| put(name, value));
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }

    /// Sends the request on a connection of its own and reads the head of the response.
    pub(crate) async fn send(&self, endpoint: &Endpoint) -> io::Result<Response> {
        let mut stream = endpoint.open().await?;
        stream.write_all(&self.bytes(endpoint)).await?;
        stream.flush().await?;
        Response::read(stream).await
    }
}

/// A connection that is kept between requests. Floods use it, since a connection for each request
/// would use up the ports of this machine.
#[derive(Debug, Default)]
pub(crate) struct KeptConnection {
    stream: Option<RawStream>,
}

impl KeptConnection {
    /// Sends a request, reads the response to its end and returns the status.
    ///
    /// A server may close a kept connection between two requests, so the request is sent again on a
    /// new one then.
    pub(crate) async fn send(&mut self, request: Request, endpoint: &Endpoint) -> io::Result<u16> {
        let bytes = request.with("connection", "keep-alive").bytes(endpoint);
        if let Some(stream) = self.stream.take()
            && let Ok(status) = self.exchange(stream, &bytes).await
        {
            return Ok(status);
        }
        let stream = endpoint.open().await?;
        self.exchange(stream, &bytes).await
    }

    async fn exchange(&mut self, mut stream: RawStream, bytes: &[u8]) -> io::Result<u16> {
        stream.write_all(bytes).await?;
        stream.flush().await?;
        let response = Response::read(stream).await?;
        let status = response.status;
        self.stream = response.finish().await?;
        Ok(status)
    }
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(usize),
    /// Chunks, with the bytes that are left of the current one.
    Chunks(usize),
    Close,
    Ended,
}

/// A response, whose body is read piece by piece.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    stream: RawStream,
    /// Bytes that were received and not used yet.
    input: Vec<u8>,
    framing: Framing,
    /// The part of the body that has no complete event yet.
    text: Vec<u8>,
}

impl Response {
    /// Reads the head of a response.
    pub(crate) async fn read(mut stream: RawStream) -> io::Result<Response> {
        let mut input = Vec::new();
        let head = loop {
            if let Some(end) = find(&input, b"\r\n\r\n") {
                break input.drain(..end + 4).collect::<Vec<u8>>();
            }
            if input.len() > MAX_HEAD {
                return Err(io::Error::other("the head of the response is too long"));
            }
            if stream.read_buf(&mut input).await? == 0 {
                let why = match input.is_empty() {
                    true => "the server closed the connection without a response",
                    false => "the server closed the connection within the head of its response",
                };
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
        };
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| {
            let (version, rest) = line.split_once(' ')?;
            version.starts_with("HTTP/1.").then_some(())?;
            rest.get(..3)?.parse().ok()
        });
        let Some(status) = status else {
            return Err(io::Error::other("the server does not respond with HTTP/1.1"));
        };
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter_map(header).collect();
        let mut response =
            Response { status, headers, stream, input, framing: Framing::Close, text: Vec::new() };
        response.framing = match (response.header("transfer-encoding"), response.header("content-length")) {
            _ if matches!(status, 100..200 | 204 | 304) => Framing::Ended,
            (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunks(0),
            (_, Some(length)) => Framing::Length(length.parse().unwrap_or(0)),
            _ => Framing::Close,
        };
        Ok(response)
    }

    /// The first header of this name, which is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the type of the body is this one; parameters are ignored.
    pub(crate) fn is_type(&self, wanted: &str) -> bool {
        let found = self.header("content-type").and_then(|value| value.split(';').next());
        found.is_some_and(|found| found.trim().eq_ignore_ascii_case(wanted))
    }

    /// The connection after the head, with bytes that were read already.
    pub(crate) fn into_stream(self) -> (RawStream, Vec<u8>) {
        (self.stream, self.input)
    }

    async fn fill(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.input).await? > 0)
    }

    /// The next line of the framing of chunks.
    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = find(&self.input, b"\r\n") {
                let mut line: Vec<u8> = self.input.drain(..end + 2).collect();
                line.truncate(end);
                return Ok(Some(line));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next piece of the body; `None` at its end. A connection that is cut ends it too.
    pub(crate) async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            match self.framing {
                Framing::Ended | Framing::Length(0) => return Ok(None),
                Framing::Chunks(0) => {
                    let Some(line) = self.line().await? else { return Ok(None) };
                    let size = String::from_utf8_lossy(&line);
                    let size = size.split(';').next().unwrap_or_default().trim();
                    if size.is_empty() {
                        // The line end after a chunk.
                        continue;
                    }
                    let size = usize::from_str_radix(size, 16)
                        .map_err(|_| io::Error::other("a chunk of the body has an invalid size"))?;
                    self.framing = if size == 0 { Framing::Ended } else { Framing::Chunks(size) };
                }
                Framing::Length(left) | Framing::Chunks(left) => {
                    if self.input.is_empty() && !self.fill().await? {
                        return Ok(None);
                    }
                    let count = left.min(self.input.len());
                    let piece = self.input.drain(..count).collect();
                    self.framing = match self.framing {
                        Framing::Length(_) => Framing::Length(left - count),
                        _ => Framing::Chunks(left - count),
                    };
                    return Ok(Some(piece));
                }
                Framing::Close => {
                    if self.input.is_empty() && !self.fill().await? {
                        return Ok(None);
                    }
                    return Ok(Some(std::mem::take(&mut self.input)));
                }
            }
        }
    }

    /// Reads the rest of the body and returns the connection, if the server keeps it open.
    async fn finish(mut self) -> io::Result<Option<RawStream>> {
        let is_close = |value: &str| value.eq_ignore_ascii_case("close");
        let is_kept =
            !matches!(self.framing, Framing::Close) && !self.header("connection").is_some_and(is_close);
        let is_chunked = matches!(self.framing, Framing::Chunks(_));
        while self.piece().await?.is_some() {}
        // The trailers, and the blank line after them.
        while is_chunked && self.line().await?.is_some_and(|line| !line.is_empty()) {}
        Ok((is_kept && self.input.is_empty()).then_some(self.stream))
    }

    /// The rest of the body.
    pub(crate) async fn text(&mut self) -> io::Result<String> {
        while let Some(piece) = self.piece().await? {
            self.text.extend(piece);
            if self.text.len() > MAX_BODY {
                return Err(io::Error::other("the body of the response is too long"));
            }
        }
        Ok(String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned())
    }

    /// The data of the next event; `None` at the end of the stream.
    pub(crate) async fn event(&mut self) -> io::Result<Option<String>> {
        loop {
            while let Some((end, len)) = event_end(&self.text) {
                let block: Vec<u8> = self.text.drain(..end + len).collect();
                let block = String::from_utf8_lossy(&block[..end]).into_owned();
                let data: Vec<&str> = block
                    .lines()
                    .filter_map(|line| line.strip_prefix("data:"))
                    .map(|data| data.strip_prefix(' ').unwrap_or(data))
                    .collect();
                if !data.is_empty() {
                    return Ok(Some(data.join("\n")));
                }
            }
            if self.text.len() > MAX_BODY {
                return Err(io::Error::other("an event is too long"));
            }
            match self.piece().await? {
                Some(piece) => self.text.extend(piece),
                None => return Ok(None),
            }
        }
    }
}

/// The end of the first event, and the length of the blank line that ends it.
fn event_end(text: &[u8]) -> Option<(usize, usize)> {
    let ends = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"];
    ends.iter().filter_map(|end| find(text, end).map(|at| (at, end.len()))).min()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::net::TcpListener;

    use super::*;

    /// Answers requests without a body on one connection after the other, and returns how many
    /// requests each had.
    async fn serve(listener: TcpListener, connections: &[&[&str]]) -> Vec<usize> {
        let mut counts = Vec::new();
        for responses in connections {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut input, mut count) = (Vec::new(), 0);
            for response in *responses {
                while find(&input, b"\r\n\r\n").is_none() {
                    if stream.read_buf(&mut input).await.unwrap() == 0 {
                        break;
                    }
                }
                count += usize::from(!input.is_empty());
                input.clear();
                stream.write_all(response.as_bytes()).await.unwrap();
            }
            counts.push(count);
        }
        counts
    }

    #[tokio::test]
    async fn a_connection_is_kept_until_the_server_closes_it() {
        const EMPTY: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
        const CHUNKS: &str =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx: y\r\n\r\n";
        const LAST: &str = "HTTP/1.1 429 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno";
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/acp", listener.local_addr().unwrap());
        let endpoint = Endpoint::new(&url, None).unwrap();
        // The second connection is closed after one request, without notice.
        let served = tokio::spawn(serve(listener, &[&[CHUNKS, EMPTY, LAST], &[EMPTY], &[EMPTY]]));
        let (mut kept, mut statuses) = (KeptConnection::default(), Vec::new());
        for _ in 0..5 {
            statuses.push(kept.send(Request::new("DELETE"), &endpoint).await.unwrap());
        }
        assert_eq!(statuses, [200, 202, 429, 202, 202]);
        assert_eq!(served.await.unwrap(), [3, 1, 1]);
    }
}
