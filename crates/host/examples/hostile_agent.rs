//! An agent for tests that attacks its client, in the way that its first argument names. By hand,
//! since no SDK lets one do this.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let attack = std::env::args().nth(1).unwrap_or_default();
    let mut agent =
        Agent { input: BufReader::new(std::io::stdin()), output: BufWriter::new(std::io::stdout()), id: 0 };
    loop {
        let request = agent.read();
        let id = &request["id"];
        match request["method"].as_str() {
            Some("initialize") => agent.answer(id, &json!({ "protocolVersion": 1, "agentCapabilities": {} })),
            Some("session/new") => {
                if attack == "early" {
                    agent.early();
                }
                agent.answer(id, &json!({ "sessionId": "s" }));
            }
            Some("session/prompt") => {
                agent.attack(&attack);
                agent.answer(id, &json!({ "stopReason": "end_turn" }));
                agent.flush();
                // Deaf until the client ends it.
                if attack.starts_with("unread") {
                    loop {
                        std::thread::park();
                    }
                }
            }
            _ => {}
        }
        agent.flush();
    }
}

struct Agent {
    input: BufReader<std::io::Stdin>,
    output: BufWriter<std::io::Stdout>,
    id: u64,
}

impl Agent {
    fn read(&mut self) -> Value {
        let mut line = String::new();
        if self.input.read_line(&mut line).unwrap() == 0 {
            std::process::exit(0);
        }
        serde_json::from_str(&line).unwrap()
    }

    fn line(&mut self, line: impl std::fmt::Display) {
        writeln!(self.output, "{line}").unwrap();
    }

    fn flush(&mut self) {
        self.output.flush().unwrap();
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        self.line(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn ask(&mut self, method: &str, params: Value) {
        self.id += 1;
        let id = self.id;
        self.line(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn update(&mut self, session: &str, update: Value) {
        self.line(json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } }));
    }

    /// An update whose text is made by hand, of about so many bytes.
    fn raw_update(&mut self, kind: &str, member: &str, entry: &str, bytes: usize) {
        let entries = vec![entry; bytes / (entry.len() + 1)].join(",");
        self.line(format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}","toolCallId":"c","title":"t","{member}":[{entries}]}}}}}}"#
        ));
    }

    /// Waits until the client has done what was asked of it before, by something that it does for
    /// us on the disk.
    fn await_client(&mut self) {
        let done = here().join("done");
        let touch = json!({ "sessionId": "s", "command": "touch", "args": [done] });
        self.ask("terminal/create", touch);
        self.flush();
        while !done.exists() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Reads answers, as many as were asked for, without looking at them.
    fn drain(&mut self, answers: u64) {
        self.flush();
        for _ in 0..answers {
            assert!(self.input.skip_until(b'\n').unwrap() > 0, "the client hung up");
        }
    }

    fn early(&mut self) {
        for n in 0..20_000 {
            let text = json!({ "type": "text", "text": "x".repeat(2_000) });
            self.update(
                &format!("early-{n}"),
                json!({ "sessionUpdate": "agent_message_chunk", "content": text }),
            );
        }
    }

    fn attack(&mut self, attack: &str) {
        let big = || here().join("big");
        match attack {
            "unread-reads" => {
                for _ in 0..4_000 {
                    self.ask("fs/read_text_file", json!({ "sessionId": "s", "path": big() }));
                }
                self.await_client();
            }
            "reads" => {
                for _ in 0..8 {
                    self.ask("fs/read_text_file", json!({ "sessionId": "s", "path": big() }));
                }
                self.drain(8);
            }
            "unread-outputs" => self.outputs(),
            "contents" => {
                for n in 0..20 {
                    for megabytes in [10, 20] {
                        let text = json!({ "type": "text", "text": "x".repeat(megabytes << 20) });
                        let content = json!([{ "type": "content", "content": text }]);
                        self.update("s", json!({ "sessionUpdate": "tool_call", "toolCallId": format!("{n}"), "title": "t", "content": content }));
                    }
                }
            }
            "orphans" => {
                for n in 0..100 {
                    let text = json!({ "type": "text", "text": "x".repeat(2 << 20) });
                    let content = json!([{ "type": "content", "content": text }]);
                    self.update("s", json!({ "sessionUpdate": "tool_call_update", "toolCallId": format!("{n}"), "content": content }));
                }
            }
            "calls" => {
                for n in 0..100_000 {
                    let id = format!("{n}-{}", "i".repeat(300));
                    self.update("s", json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "t" }));
                }
            }
            "sessions" => {
                for n in 0..20_000 {
                    let text = json!({ "type": "text", "text": "x".repeat(500) });
                    self.update(
                        &format!("stray-{n}"),
                        json!({ "sessionUpdate": "agent_message_chunk", "content": text }),
                    );
                    self.update(
                        "s",
                        json!({ "sessionUpdate": "subagent_update", "sessionId": format!("child-{n}") }),
                    );
                    self.update(
                        &format!("child-{n}"),
                        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t" }),
                    );
                }
            }
            "lists" => {
                self.raw_update("tool_call", "locations", r#"{"path":"/"}"#, 11 << 20);
                self.raw_update("tool_call", "content", r#"{"type":"terminal","terminalId":""}"#, 11 << 20);
                self.raw_update(
                    "available_commands_update",
                    "availableCommands",
                    r#"{"name":"","description":""}"#,
                    11 << 20,
                );
                self.raw_update(
                    "available_commands_update",
                    "availableCommands",
                    r#"{"name":"","description":""}"#,
                    1_000_000,
                );
                self.raw_update(
                    "plan",
                    "entries",
                    r#"{"content":"","priority":"low","status":"pending"}"#,
                    11 << 20,
                );
                self.raw_update(
                    "config_option_update",
                    "configOptions",
                    r#"{"id":"","name":"","type":"boolean","currentValue":true}"#,
                    1_000_000,
                );
                self.raw_update("subagent_update", "additionalDirectories", r#""""#, 11 << 20);
                // Not even an update.
                self.raw_update("7", "x", "1", 11 << 20);
                self.line(format!(
                    r#"{{"jsonrpc":"2.0","method":"session/update","params":{{{}"x":1}}}}"#,
                    r#""y":1,"#.repeat(1 << 20)
                ));
                self.line(format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{{}"sessionUpdate":"plan","entries":[]}}}}}}"#, r#""y":1,"#.repeat(1 << 20)));
            }
            "forms" => {
                for fields in [1_000_000, 400_000, 9_000, 500] {
                    let fields: Vec<String> =
                        (0..fields).map(|n| format!(r#""f{n}":{{"type":"string"}}"#)).collect();
                    let fields = fields.join(",");
                    self.id += 1;
                    self.line(format!(
                        r#"{{"jsonrpc":"2.0","id":{},"method":"elicitation/create","params":{{"sessionId":"s","mode":"form","message":"m","requestedSchema":{{"type":"object","properties":{{{fields}}}}}}}}}"#,
                        self.id
                    ));
                }
                self.drain(4);
            }
            "permissions" => {
                let option = r#"{"optionId":"","name":"","kind":"allow_once"}"#;
                for megabytes in [11, 5] {
                    let options = vec![option; (megabytes << 20) / (option.len() + 1)].join(",");
                    self.id += 1;
                    self.line(format!(
                        r#"{{"jsonrpc":"2.0","id":{},"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"c"}},"options":[{options}]}}}}"#,
                        self.id
                    ));
                }
                for _ in 0..3_000 {
                    let options =
                        json!([{ "optionId": "o", "name": "x".repeat(10_000), "kind": "allow_once" }]);
                    self.ask(
                        "session/request_permission",
                        json!({ "sessionId": "s", "toolCall": { "toolCallId": "c" }, "options": options }),
                    );
                }
                self.drain(3_002);
            }
            "writes" => {
                let content = "x".repeat(4 << 20);
                for n in 0..60 {
                    let path = here().join(format!("written-{}", n % 4));
                    self.ask(
                        "fs/write_text_file",
                        json!({ "sessionId": "s", "path": path, "content": content }),
                    );
                }
                self.drain(60);
            }
            "notifications" => {
                for n in 0..40_000 {
                    self.line(json!({ "jsonrpc": "2.0", "method": format!("_x/{n}"), "params": { "x": "x".repeat(200) } }));
                }
                for _ in 0..3 {
                    self.line("\u{ff}".repeat(5 << 20));
                    self.line(json!({ "jsonrpc": "2.0", "method": "_x/big", "params": { "x": "x".repeat(11 << 20) } }));
                }
            }
            "unread-unknown" => {
                for _ in 0..100_000 {
                    self.ask("_x/unknown", json!({}));
                }
                self.await_client();
            }
            "early" => {}
            other => panic!("unknown attack: {other}"),
        }
    }

    /// Terminals that print much, whose output is asked for again and again.
    fn outputs(&mut self) {
        let before = self.id;
        for _ in 0..64 {
            let print = "head -c 6000000 /dev/zero | tr '\\0' '\\1'";
            self.ask("terminal/create", json!({ "sessionId": "s", "command": "sh", "args": ["-c", print], "outputByteLimit": 100_000_000 }));
        }
        self.flush();
        let mut terminals = Vec::new();
        while terminals.len() < 64 {
            let answer = self.read();
            if answer["id"].as_u64().is_some_and(|id| id > before) {
                terminals.push(answer["result"]["terminalId"].clone());
            }
        }
        for terminal in &terminals {
            self.ask("terminal/wait_for_exit", json!({ "sessionId": "s", "terminalId": terminal }));
        }
        self.drain(64);
        self.ask("terminal/release", json!({ "sessionId": "s", "terminalId": terminals[0] }));
        self.drain(1);
        for n in 0..3_000 {
            self.ask("terminal/output", json!({ "sessionId": "s", "terminalId": terminals[1 + n % 63] }));
        }
        self.await_client();
    }
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap()
}
