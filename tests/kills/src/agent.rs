//! An agent that writes down each prompt before it acts on it. The text of a prompt says what the
//! turn has.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::log::Log;
use crate::process::Process;
use crate::random::Random;

/// A prompt: its id, the number of its chunks, and whether it asks a question in the middle.
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) chunks: u64,
    pub(crate) asks: bool,
}

impl Task {
    pub(crate) fn text(&self) -> String {
        format!("{} {} {}", self.id, self.chunks, if self.asks { "ask" } else { "-" })
    }

    pub(crate) fn parse(text: &str) -> Option<Task> {
        let mut words = text.split(' ');
        let (id, chunks) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        Some(Task { id, chunks, asks: words.next()? == "ask" })
    }
}

/// `kills agent LOG`
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let log = args.first().ok_or("usage: kills agent LOG")?;
    let mut log = Log::open(Path::new(log))?;
    let own = Process::this();
    let mut random = Random::new(u64::from(own.id));
    log.write(&json!({"start": own.to_json()}))?;
    if random.percent(33) {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("idle").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| error.to_string())?;
        log.write(&json!({"start": Process::of(child.id()).to_json(), "idle": true}))?;
    }
    let mut agent = Agent { log, random, next_id: 0 };
    while let Some(message) = read() {
        agent.handle(&message)?;
    }
    Ok(())
}

struct Agent {
    log: Log,
    random: Random,
    next_id: i64,
}

/// The next message; `None` at the end of input.
fn read() -> Option<Value> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read {
        Ok(length) if length > 0 => serde_json::from_str(&line).ok(),
        _ => None,
    }
}

fn send(message: &Value) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    let sent = output.write_all(format!("{message}\n").as_bytes()).and_then(|()| output.flush());
    sent.map_err(|error| format!("the hub is gone: {error}"))
}

fn respond(id: &Value, result: &Value) -> Result<(), String> {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

impl Agent {
    fn handle(&mut self, message: &Value) -> Result<(), String> {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => {
                let capabilities = json!({"loadSession": true});
                respond(id, &json!({"protocolVersion": 1, "agentCapabilities": capabilities}))
            }
            Some("session/new") => {
                let own = Process::this().to_json();
                let name = format!("s{}-{}", own["id"], own["started"].as_str().unwrap_or_default());
                respond(id, &json!({"sessionId": name}))
            }
            Some("session/load") => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                self.say(session, "replayed by the agent")?;
                respond(id, &json!({}))
            }
            Some("session/prompt") => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                let text = params["prompt"][0]["text"].as_str().unwrap_or_default();
                let task = Task::parse(text).ok_or_else(|| format!("an unknown prompt: {text}"))?;
                self.log.write(&json!({"prompt": task.id, "session": session}))?;
                let reason = self.turn(session, &task)?;
                respond(id, &json!({"stopReason": reason}))
            }
            Some(_) if !id.is_null() => {
                let error = json!({"code": -32601, "message": "method not found"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
            }
            // A cancel that came after its turn, or a notification.
            _ => Ok(()),
        }
    }

    fn say(&self, session: &str, text: &str) -> Result<(), String> {
        let update =
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": session, "update": update});
        send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    }

    fn turn(&mut self, session: &str, task: &Task) -> Result<&'static str, String> {
        for number in 1..=task.chunks {
            if task.asks
                && number == task.chunks.div_ceil(2)
                && let Some(reason) = self.ask(session, task)?
            {
                return Ok(reason);
            }
            self.say(session, &format!("{}:{number}", task.id))?;
            if self.random.percent(20) {
                std::thread::sleep(Duration::from_micros(self.random.below(1500)));
            }
        }
        Ok("end_turn")
    }

    /// Asks for a permission. Returns the stop reason if the turn was cancelled meanwhile.
    fn ask(&mut self, session: &str, task: &Task) -> Result<Option<&'static str>, String> {
        self.next_id += 1;
        let own = self.next_id;
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let call = json!({"toolCallId": task.id, "title": task.id});
        let params = json!({"sessionId": session, "toolCall": call, "options": options});
        self.log.write(&json!({"asked": task.id}))?;
        send(
            &json!({"jsonrpc": "2.0", "id": own, "method": "session/request_permission", "params": params}),
        )?;
        loop {
            let message = read().ok_or("the hub is gone")?;
            if message["id"] != own || !message["method"].is_null() {
                continue;
            }
            let outcome = &message["result"]["outcome"];
            let answer = outcome["optionId"].as_str().or(outcome["outcome"].as_str()).unwrap_or("error");
            self.log.write(&json!({"answered": task.id, "answer": answer}))?;
            return Ok((answer == "cancelled").then_some("cancelled"));
        }
    }
}
