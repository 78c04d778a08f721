//! The other end of a link, by hand: it writes lines and reads lines.

use attache::Link;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};

use super::Responses;
use crate::example::Example;

/// A scripted peer.
pub(super) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    asked: u64,
    /// Requests that came while something else was waited for.
    requests: Vec<Value>,
}

/// A link for the real side, and the peer at its other end.
pub(super) fn pair() -> (Link, Peer) {
    let (near, far) = duplex(1 << 20);
    let (reader, writer) = split(near);
    let (far_reader, far_writer) = split(far);
    let peer = Peer { lines: BufReader::new(reader).lines(), writer, asked: 0, requests: Vec::new() };
    (Link::from_io(far_reader, far_writer), peer)
}

impl Peer {
    /// Writes one line.
    pub(super) async fn send(&mut self, text: &str) -> Result<(), String> {
        let line = format!("{text}\n");
        self.writer.write_all(line.as_bytes()).await.map_err(|error| error.to_string())
    }

    /// The next line, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, String> {
        let Some(line) = self.lines.next_line().await.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        serde_json::from_str(&line).map(Some).map_err(|error| format!("{line}: {error}"))
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.asked += 1;
        let id = json!(format!("peer-{}", self.asked));
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request.to_string()).await?;
        loop {
            let message =
                self.next().await?.ok_or_else(|| format!("it left instead of answering {method}"))?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
            self.keep(message);
        }
    }

    /// The same for a request that must succeed.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let answer = self.call(method, params).await?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(format!("{method} while setting up: {answer}")),
        }
    }

    fn keep(&mut self, message: Value) {
        if message.get("method").is_some() && message.get("id").is_some() {
            self.requests.push(message);
        }
    }

    /// Waits for a request of a method.
    pub(super) async fn requested(&mut self, method: &str) -> Result<Value, String> {
        loop {
            if let Some(place) = self.requests.iter().position(|request| request["method"] == method) {
                return Ok(self.requests.remove(place));
            }
            let message = self.next().await?.ok_or_else(|| format!("it left without asking for {method}"))?;
            self.keep(message);
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&mut self, request: &Value, result: Value) -> Result<(), String> {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send(&answer.to_string()).await
    }

    /// Sends the line, then a request for an unknown method. All messages up to the answer of the
    /// latter, and for a request up to its own answer, are responses to the line (RPC-04).
    pub(super) async fn exchange(&mut self, line: &Example, text: &str) -> Result<Responses, String> {
        let id = &line.message["id"];
        self.send(text).await?;
        self.send(r#"{"jsonrpc":"2.0","id":"probe","method":"_attache.test/probe"}"#).await?;
        let mut responses = Responses::default();
        let mut probed = false;
        while !probed || (line.is_request() && responses.answer.is_none()) {
            let message = self.next().await?.ok_or("it left instead of answering")?;
            if message.get("method").is_some() {
                self.keep(message);
            } else if message["id"] == "probe" {
                probed = true;
            } else if line.is_request() && message["id"] == *id {
                responses.answer = Some(message);
            } else {
                responses.stray.push(message);
            }
        }
        Ok(responses)
    }
}
