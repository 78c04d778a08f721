//! Clients that read bytes: over the Unix socket, or over a WebSocket whose frames are not looked
//! into.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// A hub that says nothing for this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client over the Unix socket.
pub(crate) struct Client {
    pub(crate) socket: UnixStream,
    /// Bytes of the line that is not complete.
    rest: Vec<u8>,
    next_id: i64,
}

impl Client {
    /// A client that has sent `initialize`.
    pub(crate) fn connect(directory: &Path) -> io::Result<Client> {
        let socket = UnixStream::connect(directory.join("hub.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut client = Client { socket, rest: Vec::new(), next_id: 0 };
        client.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        Ok(client)
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> io::Result<i64> {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.socket.write_all(format!("{message}\n").as_bytes())?;
        Ok(self.next_id)
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> io::Result<Value> {
        let id = self.request(method, &params)?;
        self.response(id)
    }

    /// Reads up to the response of a request.
    pub(crate) fn response(&mut self, id: i64) -> io::Result<Value> {
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        let mut response = None;
        while response.is_none() {
            self.read_lines(|line| {
                if line.starts_with(start.as_bytes()) {
                    response = serde_json::from_slice(line).ok();
                }
            })?;
        }
        Ok(response.unwrap_or_default())
    }

    /// Reads what is there, at least a byte, and calls `on_line` with each complete line.
    pub(crate) fn read_lines(&mut self, mut on_line: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = [0; 64 << 10];
        let length = self.socket.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = buffer.get(..length).unwrap_or_default();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end + 1);
            match self.rest.is_empty() {
                true => on_line(line),
                false => {
                    self.rest.extend_from_slice(line);
                    on_line(&self.rest);
                    self.rest.clear();
                }
            }
            bytes = rest;
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn new_session(&mut self) -> io::Result<String> {
        let created = self.call("session/new", json!({"cwd": "/", "mcpServers": []}))?;
        let session = created["result"]["sessionId"].as_str();
        session.map(str::to_owned).ok_or_else(|| io::Error::other(format!("no session: {created}")))
    }

    pub(crate) fn open(&mut self, method: &str, session: &str, after: Option<&str>) -> io::Result<Value> {
        let mut params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
        if let Some(after) = after {
            params["_meta"] = json!({"attache": {"after": after, "strict": true}});
        }
        self.call(method, params)
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> io::Result<i64> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }
}

/// A held WebSocket: connected, initialized, and silent.
pub(crate) fn hold_websocket(address: &str) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let hello = format!(
        "GET /acp HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(hello.as_bytes())?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    if !head.starts_with(b"HTTP/1.1 101") {
        return Err(io::Error::other(String::from_utf8_lossy(&head).into_owned()));
    }
    let message = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": 1, "clientCapabilities": {}},
    });
    // A text frame with a mask of zeros, which leaves the text as it is.
    let text = message.to_string();
    let length = u16::try_from(text.len()).map_err(io::Error::other)?;
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text.as_bytes());
    socket.write_all(&frame)?;
    let mut start = [0; 4];
    socket.read_exact(&mut start)?;
    let [_, size, high, low] = start;
    if size == 126 {
        let mut answer = vec![0; usize::from(u16::from_be_bytes([high, low]))];
        socket.read_exact(&mut answer)?;
    } else {
        let mut answer = vec![0; usize::from(size).saturating_sub(2)];
        socket.read_exact(&mut answer)?;
    }
    Ok(socket)
}
