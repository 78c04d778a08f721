//! Heads of HTTP messages: a first line and fields, up to an empty line.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The head of a request or a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// The first line.
    pub(super) line: String,
    /// Names and values, in their order.
    pub(super) fields: Vec<(String, Vec<u8>)>,
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads a head. `buffer` is what has been read already; what follows the head stays in it.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    most: usize,
) -> io::Result<Head> {
    loop {
        if let Some(end) = end_of_head(buffer) {
            let rest = buffer.split_off(end);
            return parse(&std::mem::replace(buffer, rest));
        }
        if buffer.len() >= most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the head is too long"));
        }
        let mut limited = (&mut *stream).take((most - buffer.len()) as u64);
        if limited.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Where the content begins.
fn end_of_head(buffer: &[u8]) -> Option<usize> {
    buffer.windows(4).position(|part| part == b"\r\n\r\n").map(|at| at + 4)
}

fn parse(bytes: &[u8]) -> io::Result<Head> {
    let text = bytes.strip_suffix(b"\r\n\r\n").unwrap_or(bytes);
    // A line that ends in any other way would be read differently by others.
    if text.windows(2).any(|pair| (pair[0] == b'\r') != (pair[1] == b'\n')) || text.starts_with(b"\n") {
        return Err(invalid("a line does not end with CR LF"));
    }
    let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = lines.next().filter(|line| line.iter().all(|byte| (b' '..=b'~').contains(byte)));
    let line = line.and_then(|line| String::from_utf8(line.to_vec()).ok());
    let line = line.ok_or_else(|| invalid("the first line is not text"))?;
    let mut fields = Vec::new();
    for line in lines {
        let colon =
            line.iter().position(|byte| *byte == b':').ok_or_else(|| invalid("a field has no colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        if name.is_empty() || !name.iter().all(is_token) || value.contains(&0) {
            return Err(invalid("a field is not valid"));
        }
        fields.push((String::from_utf8_lossy(name).into_owned(), value.to_vec()));
    }
    Ok(Head { line, fields })
}

impl Head {
    /// The values of a field.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.fields
            .iter()
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// Removes a field.
    pub(super) fn remove(&mut self, name: &str) {
        self.fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    }

    /// Removes the fields that are meant for one connection, also those that `Connection` names.
    pub(super) fn remove_hop_fields(&mut self) {
        let named: Vec<String> = self
            .values("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned())
            .collect();
        let usual = [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "Proxy-Authorization",
            "Proxy-Authenticate",
            "Upgrade",
            "TE",
        ];
        // Without these two the end of the content is unknown.
        let framing = ["transfer-encoding", "content-length"];
        for name in usual.into_iter().chain(named.iter().map(String::as_str)) {
            if !framing.contains(&name.to_ascii_lowercase().as_str()) {
                self.remove(name);
            }
        }
    }

    pub(super) fn add(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.fields.push((name.to_owned(), value.into()));
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.line).into_bytes();
        for (name, value) in &self.fields {
            bytes.extend(name.as_bytes());
            bytes.extend(b": ");
            bytes.extend(value);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"\r\n");
        bytes
    }

    /// How long the content of a request is.
    pub(super) fn content(&self) -> io::Result<Content> {
        let lengths: Vec<&[u8]> = self.values("content-length").collect();
        let codings: Vec<&[u8]> = self.values("transfer-encoding").collect();
        match (&lengths[..], &codings[..]) {
            ([], []) => Ok(Content::Sized(0)),
            ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Content::Chunked),
            ([length], []) if !length.is_empty() && length.iter().all(u8::is_ascii_digit) => {
                let length = std::str::from_utf8(length).ok().and_then(|length| length.parse().ok());
                length.map(Content::Sized).ok_or_else(|| invalid("the content is too long"))
            }
            _ => Err(invalid("the length of the content is not clear")),
        }
    }
}

/// How the end of a content is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// It has this many bytes.
    Sized(u64),
    /// It comes in chunks, the last of which is empty.
    Chunked,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    async fn of(text: &[u8]) -> io::Result<(Head, Vec<u8>)> {
        let mut buffer = Vec::new();
        let head = read(&mut &text[..], &mut buffer, 1000).await?;
        Ok((head, buffer))
    }

    #[tokio::test]
    async fn a_head_ends_with_an_empty_line() {
        let (head, rest) = of(b"GET / HTTP/1.1\r\nHost: a\r\nX:  b \r\n\r\nbody").await.unwrap();
        assert_eq!(head.line, "GET / HTTP/1.1");
        assert_eq!(head.fields, [("Host".to_owned(), b"a".to_vec()), ("X".to_owned(), b"b".to_vec())]);
        assert_eq!(rest, b"body");
        assert_eq!(head.to_bytes(), b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\n");
    }

    #[tokio::test]
    async fn ambiguous_heads_are_refused() {
        for text in [
            &b"GET / HTTP/1.1\nHost: a\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            b"GET / HTTP/1.1\r\n: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
            b"GET \xff HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n",
        ] {
            let error = of(text).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{}", String::from_utf8_lossy(text));
        }
        let long = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 2000]].concat();
        assert_eq!(of(&long).await.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(of(b"GET /").await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn the_length_of_a_content_is_clear_or_refused() {
        for (fields, expected) in [
            ("", Some(Content::Sized(0))),
            ("Content-Length: 5\r\n", Some(Content::Sized(5))),
            ("Transfer-Encoding: chunked\r\n", Some(Content::Chunked)),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", None),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", None),
            ("Content-Length: +5\r\n", None),
            ("Content-Length: 5, 5\r\n", None),
            ("Content-Length:\r\n", None),
            ("Content-Length: 99999999999999999999\r\n", None),
            ("Transfer-Encoding: gzip, chunked\r\n", None),
        ] {
            let (head, _) = of(format!("POST / HTTP/1.1\r\n{fields}\r\n").as_bytes()).await.unwrap();
            assert_eq!(head.content().ok(), expected, "{fields}");
        }
    }

    #[tokio::test]
    async fn fields_for_one_connection_are_removed() {
        let text = b"GET / HTTP/1.1\r\nConnection: close, X-Own, Content-Length\r\nx-own: 1\r\nProxy-Authorization: secret\r\nContent-Length: 1\r\nKept: 1\r\n\r\n";
        let (mut head, _) = of(text).await.unwrap();
        head.remove_hop_fields();
        assert_eq!(head.to_bytes(), b"GET / HTTP/1.1\r\nContent-Length: 1\r\nKept: 1\r\n\r\n");
    }
}
