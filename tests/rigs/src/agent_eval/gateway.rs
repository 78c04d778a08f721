//! A gateway between an agent and the model: same sampling for every agent, and a record of what
//! was said.
//!
//! It is an HTTP server on the loopback. Requests are forwarded with `curl`, which speaks TLS. Chat
//! requests get the seed of the run and a limit for the answer; requests through a proxy to other
//! hosts are refused.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::exchange::Exchange;

/// The model behind the gateway.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    /// Without `/v1`.
    pub(super) url: String,
    pub(super) key: Option<String>,
}

/// Settings of requests, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    pub(super) seed: u64,
    /// Replaces the temperature of the agent.
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: u64,
}

/// A running gateway. The record is complete once the agent has ended.
pub(super) struct Gateway {
    pub(super) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    upstream: Upstream,
    sampling: Sampling,
    dir: PathBuf,
    count: AtomicUsize,
    exchanges: Mutex<Vec<Exchange>>,
}

pub(super) struct Incoming {
    method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

impl Gateway {
    /// Listens on a free port. Bodies and the record are written to `dir`.
    pub(super) fn start(upstream: Upstream, sampling: Sampling, dir: &Path) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let dir = dir.to_owned();
        let shared = Arc::new(Shared {
            upstream,
            sampling,
            dir,
            count: AtomicUsize::new(0),
            exchanges: Mutex::new(Vec::new()),
        });
        let serving = shared.clone();
        // The thread ends with the process: a run has few gateways.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = serving.clone();
                thread::spawn(move || shared.serve(stream));
            }
        });
        Ok(Self { url: format!("http://{address}"), shared })
    }

    /// Whether a request has arrived, finished or not.
    pub(super) fn was_asked(&self) -> bool {
        self.shared.count.load(Ordering::Relaxed) > 0
    }

    /// The exchanges so far, in the order of their ends.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.shared.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let Ok(read) = stream.try_clone() else { return };
        let Some(request) = incoming(&mut BufReader::new(read)) else { return };
        if !request.path.starts_with('/') {
            let _ =
                stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            return;
        }
        if let Err(why) = self.forward(&request, &mut stream) {
            let text = format!("HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n{why}");
            let _ = stream.write_all(text.as_bytes());
        }
    }

    fn forward(&self, request: &Incoming, stream: &mut TcpStream) -> Result<(), String> {
        let started = Instant::now();
        let is_chat = request.path.ends_with("/chat/completions");
        let (body, value) = match serde_json::from_slice::<Value>(&request.body) {
            Ok(value) if is_chat => {
                let value = sampled(value, self.sampling);
                (value.to_string().into_bytes(), value)
            }
            other => (request.body.clone(), other.unwrap_or_default()),
        };
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let file = self.dir.join(format!("body-{number}"));
        fs::write(&file, body).map_err(|error| format!("{}: {error}", file.display()))?;
        let (mut curl, mut output) = curl(&self.upstream, request, &file)?;
        let head = head(&mut output)?;
        let mut answer = Vec::new();
        let mut buffer = [0; 8192];
        let mut is_open = stream.write_all(head.as_bytes()).is_ok();
        while is_open {
            let count = output.read(&mut buffer).unwrap_or(0);
            if count == 0 {
                break;
            }
            answer.extend_from_slice(&buffer[..count]);
            is_open = stream.write_all(&buffer[..count]).is_ok();
        }
        // An agent that hangs up cancels the request.
        let _ = curl.kill();
        let _ = curl.wait();
        let _ = fs::remove_file(&file);
        if is_chat {
            let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
            self.record(Exchange::new(value, &String::from_utf8_lossy(&answer), status, started.elapsed()));
        }
        Ok(())
    }

    fn record(&self, exchange: Exchange) {
        let line = exchange.to_json().to_string() + "\n";
        let log = self.dir.join("model.jsonl");
        let file = fs::File::options().create(true).append(true).open(log);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }
}

/// The body with the sampling of the run.
fn sampled(mut body: Value, sampling: Sampling) -> Value {
    body["seed"] = sampling.seed.into();
    if let Some(temperature) = sampling.temperature {
        body["temperature"] = temperature.into();
    }
    let limit = ["max_tokens", "max_completion_tokens"].into_iter().find(|name| body[*name].is_u64());
    let name = limit.unwrap_or("max_tokens");
    let most = body[name].as_u64().unwrap_or(u64::MAX).min(sampling.max_tokens);
    body[name] = most.into();
    if body["stream"] == true {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

/// Starts `curl`. The key is in its standard input, because arguments are visible to others.
fn curl(
    upstream: &Upstream,
    request: &Incoming,
    body: &Path,
) -> Result<(Child, BufReader<std::process::ChildStdout>), String> {
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--no-buffer",
        "--include",
        "--noproxy",
        "127.0.0.1",
        "--request",
        &request.method,
    ]);
    command.args(["--config", "-", "--header", "expect:", "--header", "content-type: application/json"]);
    if !request.body.is_empty() {
        command.arg("--data-binary").arg(format!("@{}", body.display()));
    }
    command.arg(format!("{}{}", upstream.url, request.path));
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(|error| format!("curl: {error}"))?;
    if let Some(mut stdin) = child.stdin.take()
        && let Some(key) = &upstream.key
    {
        let _ = writeln!(stdin, "header = \"authorization: Bearer {key}\"");
    }
    let stdout = child.stdout.take().ok_or("curl has no output")?;
    Ok((child, BufReader::new(stdout)))
}

/// Reads the head of an answer and returns the one for the agent: the body ends with the
/// connection.
fn head(output: &mut impl BufRead) -> Result<String, String> {
    let mut line = String::new();
    let mut head = String::new();
    while output.read_line(&mut line).map_err(|error| error.to_string())? > 0 {
        let text = line.trim_end();
        if text.is_empty() {
            return Ok(format!("{head}connection: close\r\n\r\n"));
        }
        if let Some(status) = text.strip_prefix("HTTP/") {
            head = format!(
                "HTTP/1.1{}\r\n",
                status.split_once(' ').map_or(String::new(), |(_, rest)| format!(" {rest}"))
            );
        } else if text.to_ascii_lowercase().starts_with("content-type:") {
            head.push_str(text);
            head.push_str("\r\n");
        }
        line.clear();
    }
    Err("the model does not answer".to_owned())
}

/// Reads a request with its body, which has a length or comes in chunks.
pub(super) fn incoming(input: &mut impl BufRead) -> Option<Incoming> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut is_chunked) = (0, false);
    loop {
        line.clear();
        input.read_line(&mut line).ok()?;
        let header = line.trim_end().to_ascii_lowercase();
        match header.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("transfer-encoding", value)) => is_chunked = value.contains("chunked"),
            _ if header.is_empty() => break,
            _ => {}
        }
    }
    let mut body = Vec::new();
    while is_chunked {
        line.clear();
        input.read_line(&mut line).ok()?;
        let size = u64::from_str_radix(line.trim().split(';').next()?, 16).ok()?;
        input.by_ref().take(size).read_to_end(&mut body).ok()?;
        input.read_line(&mut line).ok()?;
        is_chunked = size > 0;
    }
    input.by_ref().take(length).read_to_end(&mut body).ok()?;
    Some(Incoming { method, path, body })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn requests_get_the_sampling_of_the_run() {
        let sampling = Sampling { seed: 7, temperature: None, max_tokens: 100 };
        let body =
            sampled(json!({"temperature": 0.5, "max_completion_tokens": 500, "stream": true}), sampling);
        assert_eq!((&body["seed"], &body["temperature"]), (&json!(7), &json!(0.5)));
        assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(100), None));
        assert_eq!(body["stream_options"]["include_usage"], true);
        let sampling = Sampling { temperature: Some(0.0), ..sampling };
        let body = sampled(json!({"max_tokens": 50}), sampling);
        assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(50), &json!(0.0)));
    }

    #[test]
    fn bodies_have_a_length_or_chunks() {
        for text in [
            "POST /v1/x HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            "POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ] {
            let request = incoming(&mut text.as_bytes()).unwrap();
            assert_eq!((request.path.as_str(), request.body.as_slice()), ("/v1/x", b"hello".as_slice()));
        }
    }

    #[test]
    fn an_answer_goes_through_and_is_recorded() {
        let model = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", model.local_addr().unwrap());
        let served = thread::spawn(move || {
            let (mut stream, _) = model.accept().unwrap();
            let request = incoming(&mut BufReader::new(stream.try_clone().unwrap())).unwrap();
            let chunk = json!({"choices": [{"delta": {"content": "hi"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {chunk}\n\ndata: [DONE]\n\n"
            )
            .unwrap();
            serde_json::from_slice::<Value>(&request.body).unwrap()
        });
        let dir = std::env::temp_dir().join(format!("attache-gateway-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let sampling = Sampling { seed: 3, temperature: None, max_tokens: 9 };
        let gateway = Gateway::start(Upstream { url, key: None }, sampling, &dir).unwrap();
        let mut stream = TcpStream::connect(gateway.url.trim_start_matches("http://")).unwrap();
        let body = json!({"messages": [], "stream": true}).to_string();
        write!(stream, "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\"hi\""), "{answer}");
        assert_eq!(served.join().unwrap()["seed"], 3);
        // The record is written after the connection is closed.
        while gateway.exchanges().is_empty() {
            thread::yield_now();
        }
        let exchange = &gateway.exchanges()[0];
        assert_eq!((exchange.text.as_str(), exchange.read, exchange.written), ("hi", 3, 1));
        let mut elsewhere = TcpStream::connect(gateway.url.trim_start_matches("http://")).unwrap();
        write!(elsewhere, "CONNECT example.com:443 HTTP/1.1\r\n\r\n").unwrap();
        let mut refused = String::new();
        elsewhere.read_to_string(&mut refused).unwrap();
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
