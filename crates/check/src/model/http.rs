//! As much HTTP/1.1 as the clients of model APIs use.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// More than any agent sends; a larger body is not read.
const LARGEST: usize = 32 << 20;

/// The most header lines of a request.
const MOST_HEADERS: usize = 200;

pub(super) struct Request {
    pub(crate) method: String,
    /// As it stood in the request line: a path, or a whole address if the client takes us for a
    /// proxy.
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The next request of a connection; `None` at its end.
    pub(crate) fn read(from: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
        let Some(first) = line(from)? else { return Ok(None) };
        let mut words = first.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut request = Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        while let Some(header) = line(from)?.filter(|line| !line.is_empty()) {
            if request.headers.len() >= MOST_HEADERS {
                return Err(io::Error::other("too many headers"));
            }
            if let Some((name, value)) = header.split_once(':') {
                request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        if request.header("expect").eq_ignore_ascii_case("100-continue") {
            from.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if request.header("transfer-encoding").eq_ignore_ascii_case("chunked") {
            request.body = chunked(from)?;
        } else {
            let length = request.header("content-length").parse().unwrap_or(0);
            request.body = exactly(from, length)?;
        }
        Ok(Some(request))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The path without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Whether the request is for another host, with this server as the proxy.
    pub(crate) fn is_for_elsewhere(&self) -> bool {
        self.method == "CONNECT" || self.target.contains("://")
    }
}

fn line(from: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if from.take(1 << 16).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}

fn exactly(from: &mut BufReader<TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    if length > LARGEST {
        return Err(io::Error::other("the request is too large"));
    }
    let mut body = Vec::new();
    if from.take(length as u64).read_to_end(&mut body)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

fn chunked(from: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(from)?.unwrap_or_default();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|_| io::Error::other("a chunk without a size"))?;
        if size > LARGEST - body.len() {
            return Err(io::Error::other("the request is too large"));
        }
        body.extend(exactly(from, size)?);
        line(from)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Answers with one JSON value.
pub(super) fn answer(to: &mut TcpStream, status: &str, value: &Value) -> io::Result<()> {
    let body = value.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    to.write_all((head + &body).as_bytes())
}

/// An answer that is sent event by event.
pub(super) struct Events<'a>(&'a mut TcpStream);

impl<'a> Events<'a> {
    pub(crate) fn begin(to: &'a mut TcpStream) -> io::Result<Self> {
        to.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
        )?;
        Ok(Self(to))
    }

    /// One event; `name` is left out where the API has none.
    pub(crate) fn send(&mut self, name: &str, data: &str) -> io::Result<()> {
        let event = if name.is_empty() {
            format!("data: {data}\n\n")
        } else {
            format!("event: {name}\ndata: {data}\n\n")
        };
        self.0.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
    }

    pub(crate) fn end(self) -> io::Result<()> {
        self.0.write_all(b"0\r\n\r\n")
    }
}
