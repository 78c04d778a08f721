//! Requests: answered by the proxy, or forwarded and changed.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::broadcast::error::RecvError;

use super::Proxy;
use super::request::{Request, head, parse, read_head};

impl Proxy {
    /// Answers a request that is no upgrade.
    pub(super) async fn respond(&self, mut request: Request, mut client: TcpStream) -> io::Result<()> {
        if self.is("HTTP-37/slow-reader") {
            drop(self.one_at_a_time.lock().await);
        }
        if let Some(token) = request.header("authorization") {
            self.state().authorization = Some(token.to_owned());
        }
        if let Some(answer) = self.own_answer(&request) {
            client.write_all(answer.as_bytes()).await?;
            if answer.contains("event-stream") {
                // A stream without events, open until the client leaves.
                let _ = client.read(&mut [0; 64]).await;
            }
            return Ok(());
        }
        self.change(&mut request);
        let id = request.message()["id"].to_string();
        if request.message()["method"] == "session/close" {
            self.state().closing.insert(id.clone());
        }
        if request.message()["method"] == "session/new" {
            self.die_of_many("HTTP-37/sessions", 20);
        }
        let is_stream = request.is("GET");
        let connection = request.header("acp-connection-id").unwrap_or_default().to_owned();
        if request.is("POST") && id != "null" && !self.state().posted.insert((connection.clone(), id.clone()))
        {
            self.die_of("HTTP-37/repeated");
        }
        let mut is_again = false;
        if is_stream && !connection.is_empty() {
            let session = request.header("acp-session-id").map(str::to_owned);
            let mut state = self.state();
            state.streams.insert(connection.clone());
            is_again = !state.opened.insert((connection, session));
        }
        // Each request has a connection of its own, whatever the client wants.
        request.headers.retain(|(name, _)| name != "connection");
        // The body of a response to HTTP/1.0 has no chunks.
        let mut server = TcpStream::connect(self.upstream).await?;
        server.write_all(&request.bytes("HTTP/1.0")).await?;
        let Some((bytes, rest)) = read_head(&mut server).await? else { return Ok(()) };
        let (line, mut headers) = parse(&bytes);
        let mut status = line.split(' ').nth(1).unwrap_or("500").to_owned();
        if self.is("HTTP-08/late") && request.message()["method"] == "session/prompt" {
            let mut answered = self.answered.subscribe();
            let _ = answered.wait_for(|ids| ids.contains(&id)).await;
        }
        if is_stream && status == "200" {
            if self.is("HTTP-10") {
                headers.retain(|(name, _)| name != "content-type");
                headers.push(("content-type".to_owned(), "text/plain".to_owned()));
            }
            client.write_all(&head("HTTP/1.1 200 OK", &headers)).await?;
            let is_forgetful = is_again && self.is("HTTP-31/again");
            return self.carry_events(&request, server, rest, client, is_forgetful).await;
        }
        let mut body = rest;
        server.read_to_end(&mut body).await?;
        if status == "404" || status == "429" {
            self.die_of_many("HTTP-37/wrong-ids", 50);
        }
        self.change_response(&request, &mut status, &mut headers, &mut body);
        headers.retain(|(name, _)| name != "content-length" && name != "connection");
        headers.push(("content-length".to_owned(), body.len().to_string()));
        headers.push(("connection".to_owned(), "close".to_owned()));
        client.write_all(&head(&format!("HTTP/1.1 {status} Status"), &headers)).await?;
        client.write_all(&body).await?;
        client.shutdown().await?;
        // The rest of a body that was refused; a socket with unread bytes would be reset.
        let mut rest = vec![0; 64 << 10];
        while client.read(&mut rest).await? > 0 {}
        Ok(())
    }

    /// The answers of variants that do not ask the server.
    fn own_answer(&self, request: &Request) -> Option<String> {
        let empty = |status: &str| Some(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n"));
        let stream = || Some("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned());
        let message = request.message();
        let connection = request.header("acp-connection-id");
        let session = request.header("acp-session-id");
        let is_prompt = message["method"] == "session/prompt";
        match self.variant {
            "HTTP-01" if request.is("DELETE") => empty("405 Method Not Allowed"),
            "HTTP-14" if connection.is_none() && message["method"] == "session/list" => empty("202 Accepted"),
            "HTTP-15" if is_prompt && session.is_none() && message["params"].get("sessionId").is_none() => {
                empty("202 Accepted")
            }
            "HTTP-16/params" if session.is_none() && message["params"].get("sessionId").is_some() => {
                empty("400 Bad Request")
            }
            "HTTP-20" if request.is("GET") && session.is_some_and(|id| id.contains("attache-check")) => {
                stream()
            }
            "HTTP-21"
                if request.is("GET") && connection.is_some_and(|id| self.state().streams.contains(id)) =>
            {
                stream()
            }
            "HTTP-22" if request.is("DELETE") && connection.is_some() => empty("202 Accepted"),
            "HTTP-23" if message.is_array() => empty("202 Accepted"),
            "HTTP-30" if request.is_partial => empty("500 Internal Server Error"),
            "HTTP-30/utf8" if std::str::from_utf8(&request.body).is_err() => empty("202 Accepted"),
            "HTTP-31"
                if message["method"] == "_attache/probe"
                    && connection.is_some_and(|id| !self.state().streams.contains(id)) =>
            {
                empty("202 Accepted")
            }
            "HTTP-34"
                if session.is_some()
                    && message["method"].as_str().is_some_and(|name| name.starts_with('$')) =>
            {
                empty("400 Bad Request")
            }
            "HTTP-38" if request.headers.len() > 1_000 => empty("200 OK"),
            _ => None,
        }
    }

    /// The requests of variants that hide a fault from the server.
    fn change(&self, request: &mut Request) {
        match self.variant {
            "HTTP-16" if request.is("POST") => request.set("acp-session-id", None),
            "HTTP-17" => request.set("content-type", Some("application/json")),
            "HTTP-18" if request.is("GET") => request.set("accept", Some("text/event-stream")),
            "HTTP-33" => request.set("origin", None),
            "HTTP-36" => {
                let token = self.state().authorization.clone();
                request.set("authorization", token.as_deref());
            }
            _ => {}
        }
    }

    /// The responses of variants.
    fn change_response(
        &self,
        request: &Request,
        status: &mut String,
        headers: &mut Vec<(String, String)>,
        body: &mut Vec<u8>,
    ) {
        let is_initialize = request.message()["method"] == "initialize";
        let is_new = is_initialize && status == "200";
        match self.variant {
            "HTTP-05" if is_new => *status = "201".to_owned(),
            "HTTP-05/type" if is_new => headers.retain(|(name, _)| name != "content-type"),
            "HTTP-06" if is_new => headers.retain(|(name, _)| name != "acp-connection-id"),
            "HTTP-07" if is_new => {
                let mut answer: Value = serde_json::from_slice(body).unwrap_or_default();
                if answer.get("result").is_some() {
                    answer["result"]["connectionId"] = json!("c");
                    *body = answer.to_string().into_bytes();
                }
            }
            "HTTP-08" if status == "202" && request.is("POST") => {
                *status = "200".to_owned();
                *body = b"{}".to_vec();
            }
            "HTTP-39" => headers.retain(|(name, _)| name != "retry-after"),
            "HTTP-19" if status == "404" => *status = "400".to_owned(),
            "HTTP-29" if is_new && body.windows(7).any(|part| part == b"\"error\"") => {
                *status = "400".to_owned()
            }
            _ => {}
        }
    }

    /// Carries the events of a stream.
    async fn carry_events(
        &self,
        request: &Request,
        mut server: TcpStream,
        mut text: Vec<u8>,
        mut client: TcpStream,
        mut is_forgetful: bool,
    ) -> io::Result<()> {
        let is_session = request.header("acp-session-id").is_some();
        let mut foreign = self.events.subscribe();
        let mut left = [0; 16];
        loop {
            while let Some(end) = text.windows(2).position(|window| window == b"\n\n") {
                let event: Vec<u8> = text.drain(..end + 2).collect();
                let event = String::from_utf8_lossy(&event).into_owned();
                let message: Value = event
                    .strip_prefix("data: ")
                    .and_then(|data| serde_json::from_str(data).ok())
                    .unwrap_or_default();
                if is_session && self.is("HTTP-12") {
                    // Comes back by `foreign`, to this stream too.
                    let _ = self.events.send(event);
                    continue;
                }
                if !message.is_null() && std::mem::take(&mut is_forgetful) {
                    continue;
                }
                if let Some(event) = self.changed_event(is_session, &message, event) {
                    let _alone = match self.is("HTTP-37/slow-reader") {
                        true => Some(self.one_at_a_time.lock().await),
                        false => None,
                    };
                    client.write_all(event.as_bytes()).await?;
                }
                if message.get("method").is_none() && !message["id"].is_null() {
                    let id = message["id"].to_string();
                    self.answered.send_modify(|ids| {
                        ids.insert(id.clone());
                    });
                    if is_session && self.is("HTTP-35") && self.state().closing.contains(&id) {
                        return Ok(());
                    }
                }
            }
            tokio::select! {
                read = server.read_buf(&mut text) => {
                    if read? == 0 {
                        if self.is("HTTP-22/streams") {
                            let _ = client.read(&mut left).await;
                        }
                        return Ok(());
                    }
                }
                event = foreign.recv(), if is_session => match event {
                    Ok(event) => client.write_all(event.as_bytes()).await?,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Ok(()),
                },
                gone = client.read(&mut left) => {
                    if gone? == 0 {
                        self.die_of("HTTP-37/half-open");
                        return Ok(());
                    }
                }
            }
        }
    }

    fn changed_event(&self, is_session: bool, message: &Value, event: String) -> Option<String> {
        let is_answer = message.get("method").is_none() && !message["id"].is_null();
        match self.variant {
            "HTTP-09" if is_answer && !is_session => {
                let mut message = message.clone();
                message["id"] = json!(message["id"].to_string());
                Some(format!("data: {message}\n\n"))
            }
            "HTTP-10/answer" if is_answer && is_session => None,
            "HTTP-11" if is_answer && !is_session => None,
            _ => Some(event),
        }
    }
}
