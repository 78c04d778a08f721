//! `attache agent` as an editor starts it: a process that speaks ACP on its standard streams, line
//! by line.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::World;

/// Nothing here takes as long; what does, hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The agent answered with this error.
    Refused(Value),
    /// The agent is gone.
    Gone,
}

pub(crate) struct AgentWire {
    child: Child,
    stdin: ChildStdin,
    lines: mpsc::Receiver<Vec<u8>>,
    stderr: JoinHandle<String>,
    last_id: u64,
    /// Every `session/update` so far, and the prompts among them, as an editor keeps its history.
    pub(crate) history: Vec<Value>,
    /// The tool calls that permission was asked for.
    pub(crate) asked: Vec<Value>,
    /// What the question about a tool call is answered with: the kind of an option.
    pub(crate) answer: fn(&Value) -> &'static str,
    /// How many messages have come.
    pub(crate) received: usize,
    /// After how many messages the agent is killed.
    fuse: Option<usize>,
}

impl AgentWire {
    /// Starts the agent and says hello.
    pub(crate) fn start(world: &World, args: &[&str]) -> AgentWire {
        let mut command = world.command(&[&["agent"], args].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = whole_lines(child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = errors.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let mut wire = AgentWire {
            child,
            stdin,
            lines,
            stderr,
            last_id: 0,
            history: Vec::new(),
            asked: Vec::new(),
            answer: |_| "allow_once",
            received: 0,
            fuse: None,
        };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        wire.call("initialize", hello).unwrap();
        wire
    }

    /// Kills the agent once so many more messages have come. What it wrote before its death still
    /// arrives.
    pub(crate) fn kill_after(&mut self, messages: usize) {
        self.fuse = Some(self.received + messages);
    }

    /// Opens a session in a directory.
    pub(crate) fn open(&mut self, dir: &Path) -> String {
        self.open_with(dir, json!([]))
    }

    /// As [`open`](Self::open), with these MCP servers.
    pub(crate) fn open_with(&mut self, dir: &Path, servers: Value) -> String {
        let opened = self.call("session/new", json!({"cwd": dir, "mcpServers": servers})).unwrap();
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt and waits for the end of the turn.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Result<Value, Fault> {
        let id = self.begin(session, text);
        self.wait(id)
    }

    /// Sends a prompt.
    pub(crate) fn begin(&mut self, session: &str, text: &str) -> u64 {
        let block = json!({"type": "text", "text": text});
        self.history.push(json!({"sessionUpdate": "user_message_chunk", "content": block}));
        self.send("session/prompt", json!({"sessionId": session, "prompt": [block]}))
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Fault> {
        let id = self.send(method, params);
        self.wait(id)
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Waits for the answer to a request, and does as an editor does with what comes before it.
    pub(crate) fn wait(&mut self, id: u64) -> Result<Value, Fault> {
        loop {
            let mut message = self.next().ok_or(Fault::Gone)?;
            if message.get("method").is_some() || message["id"] != id {
                continue;
            }
            if message.get("error").is_some() {
                return Err(Fault::Refused(message["error"].take()));
            }
            return Ok(message["result"].take());
        }
    }

    /// Reads on until an update is so.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut is: impl FnMut(&Value) -> bool) {
        loop {
            let message = self.next().unwrap_or_else(|| panic!("the agent ended before {what}"));
            if is(&message["params"]["update"]) {
                return;
            }
        }
    }

    /// The next message; `None` when the agent is gone and nothing is left.
    fn next(&mut self) -> Option<Value> {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the agent is silent; so far: {:?}", self.history),
        };
        let message: Value = serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)));
        self.received += 1;
        match message["method"].as_str() {
            Some("session/update") => self.history.push(message["params"]["update"].clone()),
            Some("session/request_permission") => self.choose(&message),
            _ => {}
        }
        if self.fuse.is_some_and(|fuse| self.received >= fuse) {
            self.fuse = None;
            self.kill();
        }
        Some(message)
    }

    fn choose(&mut self, question: &Value) {
        let params = &question["params"];
        self.asked.push(params["toolCall"].clone());
        let options = params["options"].as_array().unwrap();
        let kind = (self.answer)(&params["toolCall"]);
        let option = options.iter().find(|option| option["kind"] == kind).unwrap();
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
        self.write(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
    }

    fn write(&mut self, message: &Value) {
        // A killed process no longer reads.
        let _ = writeln!(self.stdin, "{message}");
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Reads what is left after a kill.
    pub(crate) fn drain(&mut self) {
        while self.next().is_some() {}
        self.child.wait().unwrap();
    }

    /// Hangs up, and returns what the agent wrote to stderr. It must end well.
    pub(crate) fn end(self) -> String {
        let AgentWire { mut child, stdin, stderr, .. } = self;
        drop(stdin);
        let status = child.wait().unwrap();
        let errors = stderr.join().unwrap();
        assert!(status.success(), "{status}: {errors}");
        errors
    }

    /// What the agent has said since an earlier length of the history, without thoughts.
    pub(crate) fn said(&self, since: usize) -> String {
        let chunks =
            self.history[since..].iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }
}

/// Lines with their ends: what a killed process did not finish is no message.
fn whole_lines(stream: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            match stream.read_until(b'\n', &mut line) {
                Ok(1..) if line.ends_with(b"\n") && send.send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    lines
}
