//! Sockets in the place of pipes: the subject is a server that prints its port, and the lines
//! travel over WebSocket or Streamable HTTP. As cheap as it can be: frames are masked with zeros,
//! and nothing is parsed but lengths and the ids of sessions.

use crate::line::text_member;
use crate::socket::connect;
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

/// How the lines travel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    WebSocket,
    SecureWebSocket,
    Http,
    SecureHttp,
}

pub type Halves = (Box<dyn Write + Send>, Box<dyn Read + Send>);

/// Reads the head of a response, without the empty line.
fn head(from: &mut impl BufRead) -> io::Result<String> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if from.read_line(&mut head)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        if head[before..].trim().is_empty() {
            return Ok(head);
        }
    }
}

/// The value of a header.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn expect(head: &str, status: &str) -> io::Result<()> {
    match head.split(' ').nth(1) == Some(status) {
        true => Ok(()),
        false => {
            Err(io::Error::other(format!("the server answered {}", head.lines().next().unwrap_or_default())))
        }
    }
}

/// Opens a WebSocket.
fn websocket(port: u16) -> io::Result<Halves> {
    let stream = connect(port)?;
    upgrade(port, stream.clone(), stream)
}

/// Opens a WebSocket with TLS.
fn secure_websocket(port: u16) -> io::Result<Halves> {
    let (writer, reader) = crate::tls::connect(connect(port)?)?;
    upgrade(port, writer, reader)
}

fn upgrade(
    port: u16,
    mut stream: impl Write + Send + 'static,
    reader: impl Read + Send + 'static,
) -> io::Result<Halves> {
    let request = format!(
        "GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut reader = BufReader::with_capacity(64 << 10, reader);
    expect(&head(&mut reader)?, "101")?;
    Ok((
        Box::new(Frames { stream, out: Vec::new() }),
        Box::new(Unframed { reader, left: 0, is_final: false, newline: false }),
    ))
}

/// Lines to masked frames. The mask is zero, so the payload stays as it is.
struct Frames<S> {
    stream: S,
    out: Vec<u8>,
}

impl<S: Write> Write for Frames<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.clear();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            self.out.push(0x81);
            match line.len() {
                len @ ..=125 => self.out.push(0x80 | len as u8),
                len @ ..=0xFFFF => {
                    self.out.push(0x80 | 126);
                    self.out.extend_from_slice(&(len as u16).to_be_bytes());
                }
                len => {
                    self.out.push(0x80 | 127);
                    self.out.extend_from_slice(&(len as u64).to_be_bytes());
                }
            }
            self.out.extend_from_slice(&[0; 4]);
            self.out.extend_from_slice(line);
        }
        self.stream.write_all(&self.out)?;
        self.stream.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames to lines. Control frames are left out.
struct Unframed<R> {
    reader: BufReader<R>,
    left: u64,
    is_final: bool,
    newline: bool,
}

impl<R: Read> Read for Unframed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            if self.newline {
                buf[filled] = b'\n';
                filled += 1;
                self.newline = false;
                continue;
            }
            if self.left == 0 {
                // Whatever is complete is passed on before the next read of the socket.
                if filled > 0 && self.reader.buffer().len() < 14 {
                    return Ok(filled);
                }
                self.next_frame()?;
                continue;
            }
            if filled > 0 && self.reader.buffer().is_empty() {
                return Ok(filled);
            }
            let end = buf.len().min(filled + usize::try_from(self.left).unwrap_or(usize::MAX));
            let count = self.reader.read(&mut buf[filled..end])?;
            if count == 0 {
                return Ok(filled);
            }
            filled += count;
            self.left -= count as u64;
            self.newline = self.left == 0 && self.is_final;
        }
        Ok(filled)
    }
}

impl<R: Read> Unframed<R> {
    fn next_frame(&mut self) -> io::Result<()> {
        loop {
            let mut start = [0; 2];
            self.reader.read_exact(&mut start)?;
            self.left = match start[1] & 0x7F {
                126 => {
                    let mut len = [0; 2];
                    self.reader.read_exact(&mut len)?;
                    u16::from_be_bytes(len).into()
                }
                127 => {
                    let mut len = [0; 8];
                    self.reader.read_exact(&mut len)?;
                    u64::from_be_bytes(len)
                }
                short => short.into(),
            };
            self.is_final = start[0] & 0x80 != 0;
            if start[0] & 0x0F >= 8 {
                io::copy(&mut (&mut self.reader).take(self.left), &mut io::sink())?;
                self.left = 0;
                continue;
            }
            return Ok(());
        }
    }
}

impl Transport {
    /// Does the server need a certificate?
    pub fn is_secure(self) -> bool {
        matches!(self, Transport::SecureWebSocket | Transport::SecureHttp)
    }

    /// Opens a connection to a server.
    pub fn open(self, port: u16) -> io::Result<Halves> {
        match self {
            Transport::WebSocket => websocket(port),
            Transport::SecureWebSocket => secure_websocket(port),
            Transport::Http | Transport::SecureHttp => http(port, self.is_secure()),
            Transport::Stdio => Err(io::Error::other("only servers have connections")),
        }
    }
}

/// Opens a socket, with TLS or without.
fn socket(port: u16, is_secure: bool) -> io::Result<Halves> {
    let socket = connect(port)?;
    if !is_secure {
        return Ok((Box::new(socket.clone()), Box::new(socket)));
    }
    let (writer, reader) = crate::tls::connect(socket)?;
    Ok((Box::new(writer), Box::new(reader)))
}

/// Opens a connection over Streamable HTTP. Its streams are opened with the first message, and with
/// the first of each session.
fn http(port: u16, is_secure: bool) -> io::Result<Halves> {
    let (stream, reader) = socket(port, is_secure)?;
    let reader = BufReader::new(reader);
    let (sender, lines) = channel();
    let (connection, sessions) = (String::new(), HashSet::new());
    let posts = Posts { port, is_secure, stream, reader, connection, sessions, sender };
    Ok((Box::new(posts), Box::new(Lines { lines, current: Vec::new(), at: 0 })))
}

/// Lines to POST requests, one at a time.
struct Posts {
    port: u16,
    is_secure: bool,
    stream: Box<dyn Write + Send>,
    reader: BufReader<Box<dyn Read + Send>>,
    connection: String,
    sessions: HashSet<Vec<u8>>,
    sender: Sender<io::Result<Vec<u8>>>,
}

impl Posts {
    fn post(&mut self, line: &[u8]) -> io::Result<()> {
        let session = text_member(line, "sessionId").map(<[u8]>::to_vec);
        if let Some(session) = session.as_ref().filter(|session| !self.sessions.contains(*session)) {
            self.listen(Some(session))?;
            self.sessions.insert(session.clone());
        }
        let mut request = format!(
            "POST /acp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            self.port,
            line.len()
        );
        if !self.connection.is_empty() {
            request.push_str(&format!("Acp-Connection-Id: {}\r\n", self.connection));
        }
        if let Some(session) = &session {
            request.push_str(&format!("Acp-Session-Id: {}\r\n", String::from_utf8_lossy(session)));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(line);
        self.stream.write_all(&bytes)?;
        let head = head(&mut self.reader)?;
        let mut body = Vec::new();
        match header(&head, "content-length").and_then(|len| len.parse().ok()) {
            Some(len) => {
                body.resize(len, 0);
                self.reader.read_exact(&mut body)?;
            }
            None if header(&head, "transfer-encoding").is_some() => {
                while chunk(&mut self.reader, &mut body)? > 0 {}
            }
            None => {}
        }
        if !self.connection.is_empty() {
            return expect(&head, "202");
        }
        expect(&head, "200")?;
        self.connection = header(&head, "acp-connection-id").unwrap_or_default().to_owned();
        body.push(b'\n');
        let _ = self.sender.send(Ok(body));
        self.listen(None)
    }

    /// Opens a stream and reads it in a thread.
    fn listen(&self, session: Option<&[u8]>) -> io::Result<()> {
        let (mut stream, reader) = socket(self.port, self.is_secure)?;
        let mut request = format!(
            "GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept: text/event-stream\r\nAcp-Connection-Id: {}\r\n",
            self.port, self.connection
        );
        if let Some(session) = session {
            request.push_str(&format!("Acp-Session-Id: {}\r\n", String::from_utf8_lossy(session)));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::with_capacity(64 << 10, reader);
        expect(&head(&mut reader)?, "200")?;
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            // The two halves of TLS are one connection.
            let _stream = stream;
            let ended = events(&mut reader, &sender);
            let _ = sender.send(Err(ended.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())));
        });
        Ok(())
    }
}

/// Reads a chunk and adds it to `body`. Returns its length; the last one is empty.
fn chunk(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<usize> {
    let mut size = String::new();
    reader.read_line(&mut size)?;
    let len = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
    let start = body.len();
    body.resize(start + len, 0);
    reader.read_exact(&mut body[start..])?;
    reader.read_exact(&mut [0; 2])?;
    Ok(len)
}

/// Reads chunks of events and passes on their data as lines.
fn events(reader: &mut impl BufRead, sender: &Sender<io::Result<Vec<u8>>>) -> io::Result<()> {
    let mut text = Vec::new();
    loop {
        if chunk(reader, &mut text)? == 0 {
            return Ok(());
        }
        // Whole events only; the rest waits for the next chunk.
        let Some(end) = text.windows(2).rposition(|pair| pair == b"\n\n").map(|at| at + 2) else { continue };
        let mut lines = Vec::with_capacity(end);
        for line in text[..end].split_inclusive(|byte| *byte == b'\n') {
            if let Some(data) = line.strip_prefix(b"data: ").or_else(|| line.strip_prefix(b"data:")) {
                lines.extend_from_slice(data);
            }
        }
        text.drain(..end);
        if !lines.is_empty() && sender.send(Ok(lines)).is_err() {
            return Ok(());
        }
    }
}

impl Write for Posts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.post(line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of all streams.
struct Lines {
    lines: Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    at: usize,
}

impl Read for Lines {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() {
            self.current = self.lines.recv().map_err(|_| io::ErrorKind::UnexpectedEof)??;
            self.at = 0;
        }
        let count = buf.len().min(self.current.len() - self.at);
        buf[..count].copy_from_slice(&self.current[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
