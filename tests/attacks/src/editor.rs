//! An editor that drives `attache agent`: a client that provides nothing and answers every question
//! in one way.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{PATIENCE, World, high_water, wait_until};

/// How the user answers questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Reject,
    AllowOnce,
    AllowAlways,
    /// Yes to a question that contains this, no to all others.
    AllowOnly(&'static str),
}

/// A running agent with a session.
pub(crate) struct Editor {
    child: Child,
    /// `None` after the end.
    input: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
    next: u64,
    session: String,
    /// The mode that the session began in.
    pub(crate) mode: String,
    memory: u64,
}

/// What happened in a turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Titles of the calls that the agent asked about.
    pub(crate) asked: Vec<Value>,
    /// All messages of the agent.
    pub(crate) messages: Vec<Value>,
    /// The answer to the prompt.
    pub(crate) end: Value,
}

impl Turn {
    pub(crate) fn text(&self) -> String {
        let all: Vec<String> = self.messages.iter().map(Value::to_string).collect();
        format!("{}\n{}", all.join("\n"), self.end)
    }
}

impl Editor {
    /// Starts the agent and a session in the project.
    pub(crate) fn start(world: &World<'_>, args: &[&str]) -> Result<Editor, String> {
        Editor::start_with(world, args, json!([]))
    }

    /// The same with MCP servers.
    pub(crate) fn start_with(world: &World<'_>, args: &[&str], servers: Value) -> Result<Editor, String> {
        let mut line = vec!["agent", "--model", "openai/attack", "--max-steps", "1000"];
        line.extend(args);
        let mut command = world.command(&line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let input = child.stdin.take();
        let output = child.stdout.take().unwrap();
        let (send, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, mode) = (String::new(), String::new());
        let mut editor = Editor { child, input, messages, next: 0, session, mode, memory: 0 };
        let files = json!({ "readTextFile": false, "writeTextFile": false });
        let initialize = json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": files, "terminal": false, "elicitation": { "form": {}, "url": {} } },
        });
        editor.request("initialize", initialize, Answer::Reject)?;
        let opened = editor.request(
            "session/new",
            json!({ "cwd": world.dir, "mcpServers": servers }),
            Answer::Reject,
        )?;
        let opened = &opened.end["result"];
        editor.session = opened["sessionId"].as_str().ok_or(format!("no session: {opened}"))?.to_owned();
        editor.mode = opened["modes"]["currentModeId"].as_str().unwrap_or_default().to_owned();
        Ok(editor)
    }

    /// Sends a prompt and answers the agent's questions until the turn ends.
    pub(crate) fn prompt(&mut self, text: &str, answer: Answer) -> Result<Turn, String> {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request("session/prompt", json!({ "sessionId": self.session, "prompt": prompt }), answer)
    }

    /// Sends a prompt and cancels it as soon as a condition holds.
    pub(crate) fn prompt_until(
        &mut self,
        text: &str,
        mut condition: impl FnMut() -> bool,
    ) -> Result<Turn, String> {
        let id = self.next;
        self.next += 1;
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params }))?;
        wait_until(PATIENCE, &mut condition);
        let params = json!({ "sessionId": self.session });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }))?;
        self.receive(id, "session/prompt", Answer::Reject)
    }

    /// Sends any request of the session.
    pub(crate) fn request(&mut self, method: &str, params: Value, answer: Answer) -> Result<Turn, String> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        self.receive(id, method, answer)
    }

    /// Reads up to the answer of a request.
    fn receive(&mut self, id: u64, method: &str, answer: Answer) -> Result<Turn, String> {
        let mut turn = Turn::default();
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            self.memory = self.memory.max(high_water(self.child.id()));
            let message = message.map_err(|error| format!("no answer to {method}: {error}"))?;
            if message.get("method").is_none() && message["id"] == id {
                turn.end = message;
                return Ok(turn);
            }
            if message["method"] == "session/request_permission" {
                turn.asked.push(message["params"].clone());
                let outcome = choose(&message["params"], answer);
                self.send(
                    &json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "outcome": outcome } }),
                )?;
            } else if message.get("id").is_some() && message.get("method").is_some() {
                let reply = json!({ "action": "decline" });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": reply }))?;
            }
            turn.messages.push(message);
        }
    }

    /// The most memory that the agent had so far.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.max(high_water(self.child.id()))
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the agent has ended")?;
        writeln!(input, "{message}").map_err(|error| format!("the agent is gone: {error}"))
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // The end of its input ends the agent.
        self.input = None;
        if !wait_until(Duration::from_secs(10), || self.child.try_wait().is_ok_and(|status| status.is_some()))
        {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn choose(params: &Value, answer: Answer) -> Value {
    let allowed = match answer {
        Answer::Reject => false,
        Answer::AllowOnce | Answer::AllowAlways => true,
        Answer::AllowOnly(text) => params.to_string().contains(text),
    };
    let kinds: &[&str] = match (allowed, answer) {
        (false, _) => &["reject_once"],
        (true, Answer::AllowAlways) => &["allow_always", "allow_once"],
        (true, _) => &["allow_once"],
    };
    let options = params["options"].as_array().cloned().unwrap_or_default();
    let option = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == *kind));
    match option {
        Some(option) => json!({ "outcome": "selected", "optionId": option["optionId"] }),
        None => json!({ "outcome": "cancelled" }),
    }
}
