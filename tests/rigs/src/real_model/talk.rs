//! The two processes: the server of the model, and our agent, spoken to line by line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// No answer takes for ever, and every one comes out the same.
const SETTINGS: &str = "[providers.openai]\ntemperature = 0\nmax_tokens = 160\n";
/// For one message of the agent. A small model on a busy machine takes its time to read.
const PATIENCE: Duration = Duration::from_secs(300);

/// llama.cpp with its model. It ends when its standard input does, so also with us.
pub(crate) struct ModelServer {
    child: Child,
    pub(crate) url: String,
}

/// How a model is served.
pub(crate) struct ServerOptions<'a> {
    /// Python with `xllamacpp`.
    pub(crate) python: &'a Path,
    pub(crate) weights: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) window: u64,
    pub(crate) threads: u64,
    pub(crate) log: &'a Path,
}

impl ModelServer {
    pub(crate) fn start(options: &ServerOptions<'_>) -> Result<Self, String> {
        let ServerOptions { python, weights, log, .. } = options;
        let script = crate::repo::root().join("tests/rigs/src/real_model/serve.py");
        let log = std::fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let mut child = Command::new(python)
            .arg(script)
            .arg(weights)
            .arg(options.name)
            .args([options.window.to_string(), options.threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", python.display()))?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut url).map_err(|error| error.to_string())?;
        }
        match url.trim() {
            "" => Err("the server of the model did not start; see its log".to_owned()),
            url => Ok(ModelServer { child, url: url.to_owned() }),
        }
    }

    /// Whether it is making an answer.
    pub(super) fn is_busy(&self) -> Result<bool, String> {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        let request = format!("GET /slots HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        let told = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        told.map_err(|error| format!("{address}: {error}"))?;
        match (answer.contains("\"is_processing\":true"), answer.contains("\"is_processing\":false")) {
            (busy, free) if busy || free => Ok(busy),
            _ => Err(format!("the server does not say what it does: {answer}")),
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Our agent.
pub(super) struct Agent {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<(Instant, String)>,
    last: u64,
    /// Every update, and when it came.
    pub(super) updates: Vec<(Instant, Value)>,
}

impl Agent {
    pub(super) fn start(program: &str, server: &ModelServer, place: &Path) -> Result<Self, String> {
        let home = place.join("home");
        std::fs::write(home.join("config.toml"), SETTINGS)
            .map_err(|error| format!("{}: {error}", home.display()))?;
        let mut child = Command::new(program)
            .args(["agent", "--mode", "plan", "--max-steps", "2", "--model", "openai/smollm2"])
            .env("ATTACHE_HOME", home)
            .env("OPENAI_BASE_URL", format!("{}/v1", server.url))
            .env("OPENAI_API_KEY", "none-is-needed")
            .current_dir(place.join("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the agent has no pipes".to_owned());
        };
        let (tell, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if tell.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        let mut agent = Agent { child, stdin, lines, last: 0, updates: Vec::new() };
        agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        Ok(agent)
    }

    pub(super) fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, params)?;
        self.answer(id)
    }

    pub(super) fn send(&mut self, method: &str, params: Value) -> Result<u64, String> {
        self.last += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))?;
        Ok(self.last)
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) -> Result<(), String> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn write(&mut self, message: &Value) -> Result<(), String> {
        writeln!(self.stdin, "{message}").map_err(|error| format!("the agent is gone: {error}"))
    }

    /// Waits for the answer to a request. A question is answered with no: nothing here needs a
    /// permission.
    pub(super) fn answer(&mut self, id: u64) -> Result<Value, String> {
        loop {
            let message = self.next()?;
            if message.get("method").is_none() && message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(format!("the agent answers {error}")),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// Reads one message.
    pub(super) fn next(&mut self) -> Result<Value, String> {
        let (when, line) =
            self.lines.recv_timeout(PATIENCE).map_err(|_| "the agent says nothing more".to_owned())?;
        let message: Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        match message["method"].as_str() {
            Some("session/update") => self.updates.push((when, message["params"]["update"].clone())),
            Some("session/request_permission") => {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": "reject"}});
                self.write(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}))?;
            }
            _ => {}
        }
        Ok(message)
    }

    /// The pieces of text since an earlier length of `updates`, and when they came.
    pub(super) fn pieces(&self, since: usize) -> Vec<(Instant, String)> {
        let text = |(when, update): &(Instant, Value)| {
            let is_text = update["sessionUpdate"] == "agent_message_chunk";
            let text = update["content"]["text"].as_str().filter(|_| is_text)?;
            Some((*when, text.to_owned()))
        };
        self.updates[since..].iter().filter_map(text).collect()
    }

    /// Hangs up and waits for its end.
    pub(super) fn end(self) -> Result<(), String> {
        let Agent { mut child, stdin, .. } = self;
        drop(stdin);
        let status = child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the agent ended with {status}")) }
    }
}
