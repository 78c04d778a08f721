//! A hostile agent: `attacks agent SCRIPT` speaks ACP on its standard streams and plays a script
//! for every prompt.
//!
//! A script is a JSON object: `log`, the file for everything that it receives and notices,
//! `initialize` and `new`, members to add to those answers, and `steps`. A step is one of
//!
//! | step | meaning |
//! |---|---|
//! | `{"call": METHOD, "params": …}` | a request; waits for its answer |
//! | `{"ask": METHOD, "params": …, "count": N}` | requests without waiting for the answers |
//! | `{"cancel": true}` | withdraws the last request that was not waited for |
//! | `{"update": …, "count": N}` | `session/update` |
//! | `{"raw": TEXT}` | a line as it is |
//! | `{"stderr": TEXT}` | text on stderr |
//! | `{"sh": LINE}` | runs a command line, as an agent can |
//! | `{"wait": FILE}` | waits until a file exists |
//! | `{"fill": METHOD, "bytes": N, "count": N}` | updates or requests with a text of so many bytes |
//! | `{"kill": WHAT}` | kills its `parent`, or its `parents` |
//! | `{"memory": true}` | logs the memory of the program |
//! | `{"fail": …}` | answers the prompt with this error |
//! | `{"park": true}` | does nothing more |
//!
//! `$cwd`, `$session`, `$prompt` and `$terminal` (the last one) stand for what they say.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio, exit};

use serde_json::{Value, json};

use crate::world::World;

struct Agent {
    script: Value,
    session: String,
    cwd: String,
    prompt: String,
    next: u64,
    /// The id of the last terminal.
    terminal: String,
}

pub(crate) fn run(args: &[String]) -> ExitCode {
    let script = fs::read_to_string(&args[0]).unwrap();
    let script: Value = serde_json::from_str(&script).unwrap();
    let mut agent = Agent {
        script,
        session: String::new(),
        cwd: String::new(),
        prompt: String::new(),
        next: 100,
        terminal: String::new(),
    };
    let environment: serde_json::Map<String, Value> =
        std::env::vars().map(|(name, value)| (name, value.into())).collect();
    agent.log(&json!({ "environment": environment }));
    while let Some(message) = agent.read() {
        agent.handle(&message);
    }
    ExitCode::SUCCESS
}

impl Agent {
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = std::io::stdin().lock().read_line(&mut line).ok()?;
        if count == 0 {
            return None;
        }
        let message = serde_json::from_str(&line).unwrap_or_default();
        self.log(&message);
        Some(message)
    }

    fn log(&self, message: &Value) {
        let Some(path) = self.script["log"].as_str() else { return };
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
            let _ = file.write_all(format!("{message}\n").as_bytes());
        }
    }

    fn handle(&mut self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { return };
        let params = &message["params"];
        if let Some(cwd) = params["cwd"].as_str() {
            self.cwd = cwd.to_owned();
        }
        if let Some(session) = params["sessionId"].as_str() {
            self.session = session.to_owned();
        }
        let result = match method {
            "initialize" => merged(
                json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } }),
                &self.script["initialize"],
            ),
            "session/new" => {
                self.session = format!("s-{}", std::process::id());
                merged(json!({ "sessionId": self.session }), &self.script["new"])
            }
            "session/list" => merged(json!({ "sessions": [] }), &self.script["list"]),
            "session/prompt" => {
                self.prompt = params["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                let steps = self.script["steps"].as_array().cloned().unwrap_or_default();
                for step in steps {
                    if let Some(error) = step.get("fail") {
                        return self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                    }
                    self.play(&step);
                }
                json!({ "stopReason": "end_turn" })
            }
            _ => json!({}),
        };
        let result = self.fill(&result);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn play(&mut self, step: &Value) {
        let count = step["count"].as_u64().unwrap_or(1);
        if let Some(method) = step["call"].as_str() {
            let id = self.ask(method, &step["params"]);
            while let Some(message) = self.read() {
                if message.get("method").is_none() && message["id"] == id {
                    if method == "terminal/create" {
                        self.terminal =
                            message["result"]["terminalId"].as_str().unwrap_or_default().to_owned();
                    }
                    return;
                }
            }
            exit(0);
        } else if let Some(method) = step["ask"].as_str() {
            for _ in 0..count {
                self.ask(method, &step["params"]);
            }
        } else if step.get("cancel").is_some() {
            let params = json!({ "requestId": self.next });
            self.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }));
        } else if let Some(update) = step.get("update") {
            (0..count).for_each(|_| self.update(update));
        } else if let Some(text) = step["raw"].as_str() {
            self.print(text);
        } else if let Some(text) = step["stderr"].as_str() {
            let _ = std::io::stderr().write_all(text.as_bytes());
        } else if let Some(line) = step["sh"].as_str() {
            let _ = Command::new("sh").args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).status();
        } else if let Some(file) = step["wait"].as_str() {
            crate::world::wait_until(crate::world::PATIENCE, || Path::new(file).exists());
        } else if let Some(kind) = step["fill"].as_str() {
            let text = "x".repeat(usize::try_from(step["bytes"].as_u64().unwrap_or(0)).unwrap());
            for at in 0..count {
                self.fill_with(kind, at, &text);
            }
        } else if let Some(what) = step["kill"].as_str() {
            kill(what);
        } else if step.get("memory").is_some() {
            self.log(&json!({ "memory": memory_of_program() }));
        } else if step.get("park").is_some() {
            loop {
                std::thread::park();
            }
        } else {
            panic!("no such step: {step}");
        }
    }

    fn fill_with(&mut self, kind: &str, at: u64, text: &str) {
        match kind {
            "tool" => self.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": format!("t{at}"), "title": "x", "kind": "read", "rawInput": { "text": text } })),
            "title" => self.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": format!("t{at}"), "title": text })),
            "content" => {
                let block = json!({ "type": "content", "content": { "type": "text", "text": text } });
                self.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": format!("t{at}"), "title": "x", "content": [block] }));
            }
            "diff" => {
                let block = json!({ "type": "diff", "path": format!("/x{at}"), "oldText": text, "newText": text });
                self.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": format!("t{at}"), "title": "x", "content": [block] }));
            }
            "message" => self.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })),
            "thought" => self.update(&json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": text } })),
            "plan" => {
                let entries: Vec<Value> = (0..2000).map(|_| json!({ "content": &text[..text.len() / 2000], "priority": "high", "status": "pending" })).collect();
                self.update(&json!({ "sessionUpdate": "plan", "entries": entries }));
            }
            "commands" => {
                let commands: Vec<Value> = (0..1000).map(|n| json!({ "name": format!("c{n}"), "description": &text[..text.len() / 1000] })).collect();
                self.update(&json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands }));
            }
            "unknown" => self.update(&json!({ "sessionUpdate": "no_such_update", "text": text })),
            "line" => self.print(text),
            "permission" => {
                let params = permission(&format!("p{at}"), text);
                self.ask("session/request_permission", &params);
            }
            "extension" => {
                self.ask("_attack/none", &json!({ "text": text }));
            },
            "stderr" => {
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
            other => panic!("nothing to fill with {other}"),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let mut params = self.fill(params);
        if let Some(members) = params.as_object_mut() {
            members.entry("sessionId").or_insert(json!(self.session));
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    fn update(&mut self, update: &Value) {
        let update = self.fill(update);
        let params = json!({ "sessionId": self.session, "update": update });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn send(&self, message: &Value) {
        self.print(&message.to_string());
    }

    fn print(&self, line: &str) {
        let mut output = std::io::stdout().lock();
        if output
            .write_all(line.as_bytes())
            .and_then(|()| output.write_all(b"\n"))
            .and_then(|()| output.flush())
            .is_err()
        {
            exit(0);
        }
    }

    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let text = text.replace("$cwd", &self.cwd).replace("$session", &self.session);
                text.replace("$prompt", &self.prompt).replace("$terminal", &self.terminal).into()
            }
            Value::Array(values) => values.iter().map(|value| self.fill(value)).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), self.fill(value))).collect()
            }
            other => other.clone(),
        }
    }
}

/// Writes a script for the agent and gives its command line.
pub(crate) fn command_line(world: &World<'_>, script: &Value) -> String {
    let number = world.suite.number();
    let path = world.root.join(format!("agent-{number}.json"));
    let mut script = script.clone();
    script["log"] = json!(world.root.join("agent.log"));
    fs::write(&path, script.to_string()).unwrap();
    format!("{} agent {}", world.suite.this.display(), path.display())
}

/// Everything that agents received and noticed.
pub(crate) fn log(world: &World<'_>) -> Vec<Value> {
    let text = fs::read_to_string(world.root.join("agent.log")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The results of the agent's requests, in order. Errors too.
pub(crate) fn answers(world: &World<'_>) -> Vec<Value> {
    let answers = log(world)
        .into_iter()
        .filter(|message| message.get("method").is_none() && message.get("id").is_some());
    answers
        .map(|message| message.get("result").or(message.get("error")).cloned().unwrap_or_default())
        .collect()
}

/// A permission request with the usual options.
pub(crate) fn permission(call: &str, title: &str) -> Value {
    json!({
        "toolCall": { "toolCallId": call, "title": title, "kind": "edit" },
        "options": [
            { "optionId": "once", "name": "Allow", "kind": "allow_once" },
            { "optionId": "always", "name": "Allow all edits during this session", "kind": "allow_always" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ],
    })
}

fn merged(mut base: Value, more: &Value) -> Value {
    if let (Some(base), Some(more)) = (base.as_object_mut(), more.as_object()) {
        base.extend(more.clone());
    }
    base
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The ancestors up to the program, the nearest first; the program is the last one.
fn ancestors() -> Vec<u32> {
    let mut found = Vec::new();
    let mut pid = std::process::id();
    while let Some(parent) = parent_of(pid).filter(|parent| *parent > 1) {
        let name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
        if !name.starts_with("attache") {
            break;
        }
        found.push(parent);
        pid = parent;
    }
    found
}

fn memory_of_program() -> u64 {
    ancestors().last().map_or(0, |pid| crate::world::high_water(*pid))
}

/// Kills the guardians of this agent, not the program itself.
fn kill(what: &str) {
    let mut ancestors = ancestors();
    ancestors.pop();
    if what == "parent" {
        ancestors.truncate(1);
    }
    for pid in ancestors {
        if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
