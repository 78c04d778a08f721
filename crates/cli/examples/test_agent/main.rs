//! An agent that does what a script says, for tests. It is not part of the program.
//!
//! `test_agent SCRIPT` reads a file of sections. A section says what to do when a method arrives:
//!
//! ```text
//! # a comment
//! on session/prompt            every time, unless a numbered section fits
//!   say Hello $name            a piece of the answer; \n is a line feed
//!   done end_turn
//! on session/prompt 2          the second time
//!   fail -32603 out of luck
//! ```
//!
//! What can be done:
//!
//! | command | what happens |
//! |---|---|
//! | `say TEXT`, `think TEXT` | a piece of the answer, of a thought |
//! | `update JSON` | `session/update` with this update |
//! | `reply JSON`, `fail CODE TEXT`, `done REASON` | the answer to the request; `done` is that of a prompt |
//! | `call METHOD JSON` | a request to the client; its answer, or error, is `$last` from then on |
//! | `notify METHOD JSON` | a notification |
//! | `raw TEXT` | a line as it is, `$id` and all |
//! | `half TEXT` | the same without an end |
//! | `stderr TEXT` | a line on stderr |
//! | `wait METHOD` | reads on until this notification or request comes; what comes meanwhile is kept |
//! | `sleep MILLISECONDS` | does nothing for a while |
//! | `hang` | does nothing more, and does not read |
//! | `exit CODE`, `abort` | ends |
//! | `fork` | leaves a process behind that would outlive us |
//! | `flood COUNT TEXT` | so many pieces of the answer |
//! | `ignore` | no answer |
//! | `deaf` | from now on `session/cancel` is not heard |
//!
//! In texts, `$session`, `$cwd`, `$prompt`, `$last`, `$id`, `$pid`, `$turn` (of this session, over
//! all processes) and `$env.NAME` stand for what they say. What is not scripted has a plain answer:
//! `initialize` says that nothing special can be done, `session/new` gives an id, `session/prompt`
//! says the prompt again. A prompt that waits for something is answered `cancelled` when
//! `session/cancel` comes.
//!
//! All that arrives is written to `SCRIPT.log`, one message per line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, clippy::zombie_processes)]

mod script;

use std::collections::{HashMap, VecDeque};
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::exit;
use std::time::Duration;

use script::{Act, Script};
use serde_json::{Value, json};

fn main() {
    let path = PathBuf::from(std::env::args().nth(1).expect("a script"));
    let script = Script::read(&std::fs::read_to_string(&path).expect("the script"));
    let log = path.with_extension("log");
    let stdin = std::io::stdin();
    let mut agent = Agent {
        script,
        log,
        lines: stdin.lock().lines(),
        kept: VecDeque::new(),
        times: HashMap::new(),
        session: String::new(),
        cwd: String::new(),
        prompt: String::new(),
        last: Value::Null,
        id: Value::Null,
        cancelled: false,
        deaf: false,
        next: 1000,
    };
    while let Some(message) = agent.read() {
        agent.handle(message);
    }
}

struct Agent<L> {
    script: Script,
    log: PathBuf,
    lines: L,
    /// Requests that came while something else was waited for.
    kept: VecDeque<Value>,
    times: HashMap<String, usize>,
    session: String,
    cwd: String,
    prompt: String,
    last: Value,
    /// The id of the request that is being answered.
    id: Value,
    cancelled: bool,
    deaf: bool,
    next: i64,
}

impl<L: Iterator<Item = std::io::Result<String>>> Agent<L> {
    fn read(&mut self) -> Option<Value> {
        if let Some(kept) = self.kept.pop_front() {
            return Some(kept);
        }
        self.read_new()
    }

    fn read_new(&mut self) -> Option<Value> {
        let line = self.lines.next()?.ok()?;
        let mut log = OpenOptions::new().create(true).append(true).open(&self.log).expect("the log");
        writeln!(log, "{line}").expect("the log");
        Some(serde_json::from_str(&line).unwrap_or(Value::Null))
    }

    fn handle(&mut self, message: Value) {
        let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else { return };
        let params = message.get("params").cloned().unwrap_or_default();
        if method == "session/cancel" {
            self.cancelled = !self.deaf;
        }
        if let Some(session) = params.get("sessionId").and_then(Value::as_str) {
            self.session = session.to_owned();
        }
        if let Some(cwd) = params.get("cwd").and_then(Value::as_str) {
            self.cwd = cwd.to_owned();
        }
        if method == "session/prompt" {
            let blocks = params.get("prompt").and_then(Value::as_array).cloned().unwrap_or_default();
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            self.prompt = texts.collect::<Vec<_>>().join(" ");
            self.cancelled = false;
        }
        let Some(id) = message.get("id").cloned() else { return };
        self.id = id;
        let time = self.times.entry(method.clone()).or_default();
        *time += 1;
        let time = *time;
        match self.script.section(&method, time) {
            Some(acts) => self.act(&acts),
            None => self.plain(&method),
        }
    }

    /// What an agent does that nobody has told anything.
    fn plain(&mut self, method: &str) {
        match method {
            "initialize" => self.reply(json!({ "protocolVersion": 1, "agentCapabilities": {} })),
            "session/new" => {
                self.session = format!("session-{}-{}", std::process::id(), self.next);
                self.next += 1;
                self.reply(json!({ "sessionId": self.session }));
            }
            "session/prompt" => {
                let text = self.prompt.clone();
                self.say("agent_message_chunk", &text);
                self.reply(json!({ "stopReason": "end_turn" }));
            }
            "session/load" | "session/resume" | "session/close" | "session/delete" | "session/set_mode" => {
                self.reply(json!({}));
            }
            _ => self.write(&json!({
                "jsonrpc": "2.0", "id": self.id, "error": { "code": -32601, "message": format!("no {method}") },
            })),
        }
    }

    fn act(&mut self, acts: &[Act]) {
        for Act { name, rest } in acts {
            let text = self.fill(rest);
            let (first, second) = text.split_once(' ').unwrap_or((&text, ""));
            match name.as_str() {
                "say" => self.say("agent_message_chunk", &text),
                "think" => self.say("agent_thought_chunk", &text),
                "update" => self.update(json_of(&text)),
                "reply" => self.reply(json_of(&text)),
                "fail" => self.write(&json!({
                    "jsonrpc": "2.0",
                    "id": self.id,
                    "error": { "code": first.parse::<i64>().expect("a code"), "message": second },
                })),
                "done" if self.cancelled => self.reply(json!({ "stopReason": "cancelled" })),
                "done" => self.reply(json!({ "stopReason": text })),
                "call" => self.call(first, json_of(second)),
                "notify" => {
                    self.write(&json!({ "jsonrpc": "2.0", "method": first, "params": json_of(second) }))
                }
                "raw" => self.print(&format!("{text}\n")),
                "half" => self.print(&text),
                "stderr" => eprintln!("{text}"),
                "wait" => {
                    if !self.wait(first) {
                        return;
                    }
                }
                "sleep" => std::thread::sleep(Duration::from_millis(first.parse().expect("milliseconds"))),
                "hang" => loop {
                    std::thread::park();
                },
                "exit" => exit(first.parse().expect("a code")),
                "abort" => std::process::abort(),
                "fork" => {
                    // Gone from our process group and from our hands.
                    let child = std::process::Command::new("setsid")
                        .args(["sleep", &format!("1000.{}", std::process::id())])
                        .spawn();
                    child.expect("a process");
                }
                "flood" => {
                    for _ in 0..first.parse::<usize>().expect("a count") {
                        self.say("agent_message_chunk", second);
                    }
                }
                "deaf" => self.deaf = true,
                "ignore" => {}
                other => panic!("the script says `{other}`"),
            }
        }
    }

    /// Reads on until a method comes; what else comes is kept. `false` if the prompt was cancelled
    /// and is answered.
    fn wait(&mut self, method: &str) -> bool {
        let waiting = self.id.clone();
        loop {
            let Some(message) = self.read_new() else { exit(0) };
            let name = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
            if name == method {
                self.handle_notification(&name);
                return true;
            }
            if name == "session/cancel" && !self.deaf {
                self.id = waiting;
                self.cancelled = true;
                self.reply(json!({ "stopReason": "cancelled" }));
                return false;
            }
            if message.get("id").is_some() {
                self.kept.push_back(message);
            }
        }
    }

    fn handle_notification(&mut self, method: &str) {
        if method == "session/cancel" && !self.deaf {
            self.cancelled = true;
        }
    }

    /// A request to the client, and its answer.
    fn call(&mut self, method: &str, mut params: Value) {
        // What belongs to a request belongs to no session.
        if let Some(object) = params.as_object_mut().filter(|object| !object.contains_key("requestId")) {
            object.entry("sessionId").or_insert(json!(self.session));
        }
        self.next += 1;
        let id = json!(self.next);
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let Some(message) = self.read_new() else { exit(0) };
            if message.get("method").is_none() && message.get("id") == Some(&id) {
                self.last =
                    message.get("result").or_else(|| message.get("error")).cloned().unwrap_or_default();
                return;
            }
            match message.get("method").and_then(Value::as_str) {
                Some("session/cancel") => self.cancelled = !self.deaf,
                Some(_) if message.get("id").is_some() => self.kept.push_back(message),
                _ => {}
            }
        }
    }

    fn say(&mut self, kind: &str, text: &str) {
        let text = text.replace("\\n", "\n");
        self.update(json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }));
    }

    fn update(&mut self, update: Value) {
        let params = json!({ "sessionId": self.session, "update": update });
        self.write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn reply(&mut self, result: Value) {
        if let Some(session) = result.get("sessionId").and_then(Value::as_str) {
            self.session = session.to_owned();
        }
        self.write(&json!({ "jsonrpc": "2.0", "id": self.id, "result": result }));
    }

    fn write(&mut self, message: &Value) {
        self.print(&format!("{message}\n"));
    }

    fn print(&mut self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            exit(0);
        }
    }

    /// Puts in what the variables stand for. In JSON they stand between quotes, so what they hold
    /// is written as JSON would.
    fn fill(&self, text: &str) -> String {
        let quoted = |text: &str| {
            let json = json!(text).to_string();
            json.trim_matches('"').to_owned()
        };
        let mut text = text.to_owned();
        while let Some(at) = text.find("$env.") {
            let name: String = text[at + 5..]
                .chars()
                .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                .collect();
            let value = std::env::var(&name).unwrap_or_default();
            text.replace_range(at..at + 5 + name.len(), &quoted(&value));
        }
        let turn = std::fs::read_to_string(&self.log).unwrap_or_default();
        let turn = turn.lines().filter(|line| line.contains("\"method\":\"session/prompt\"")).count();
        let last = match &self.last {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for (name, value) in [
            ("$session", self.session.as_str()),
            ("$cwd", &self.cwd),
            ("$prompt", &self.prompt),
            ("$turn", &turn.to_string()),
            ("$pid", &std::process::id().to_string()),
            ("$id", &self.id.to_string()),
            ("$last", &last),
        ] {
            let json = text.trim_start().starts_with(['{', '[']) && name != "$id";
            text = text.replace(name, &if json { quoted(value) } else { value.to_owned() });
        }
        text
    }
}

fn json_of(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
