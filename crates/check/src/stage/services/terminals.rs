//! Terminals for an agent under test. Real ones run the command. Those in memory simulate it: a
//! command with `sleep` in its words runs until it is killed, any other prints its arguments and
//! exits.

mod running;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Reply;
use running::Running;

pub(super) struct Terminals {
    dir: PathBuf,
    real: bool,
    next: usize,
    all: BTreeMap<String, Terminal>,
    /// A request waits for the end of a real command.
    waits: bool,
}

struct Terminal {
    command: Kind,
    limit: usize,
}

enum Kind {
    StageReport { output: String, exit: Option<Value> },
    Real(Running),
}

impl Terminals {
    pub(super) fn new(dir: &Path, real: bool) -> Terminals {
        Terminals { dir: dir.to_owned(), real, next: 0, all: BTreeMap::new(), waits: false }
    }

    /// Whether a request is held until a real command ends.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    pub(super) fn ended(&self) -> Vec<String> {
        let ended = self.all.iter().filter(|(_, terminal)| terminal.exit().is_some());
        ended.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn reply(&mut self, method: &str, params: &Value) -> Reply {
        if method == "terminal/create" {
            return self.create(params);
        }
        let id = params["terminalId"].as_str().unwrap_or_default();
        let Some(terminal) = self.all.get_mut(id) else {
            return Reply::Error(-32002, format!("no such terminal: {id}"));
        };
        Reply::Result(match method {
            "terminal/output" => terminal.output(),
            "terminal/wait_for_exit" => match terminal.exit() {
                Some(exit) => exit,
                None => {
                    self.waits |= self.real;
                    return Reply::Hold;
                }
            },
            "terminal/kill" => {
                terminal.kill();
                json!({})
            }
            "terminal/release" => {
                self.all.remove(id);
                json!({})
            }
            other => return Reply::Error(-32601, format!("method not found: {other}")),
        })
    }

    fn create(&mut self, params: &Value) -> Reply {
        let Some(command) = params["command"].as_str() else {
            return Reply::Error(-32602, "`command` is missing".to_owned());
        };
        let limit = params["outputByteLimit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let kind = if self.real {
            match Running::start(command, params, &self.dir) {
                Ok(running) => Kind::Real(running),
                Err(error) => return Reply::Error(-32603, error.to_string()),
            }
        } else {
            played(command, params)
        };
        let id = format!("term-{}", self.next);
        self.next += 1;
        self.all.insert(id.clone(), Terminal { command: kind, limit: limit.unwrap_or(1 << 20) });
        Reply::Result(json!({ "terminalId": id }))
    }

    pub(super) async fn end(&mut self) {
        for (_, terminal) in std::mem::take(&mut self.all) {
            if let Kind::Real(running) = terminal.command {
                running.end().await;
            }
        }
    }
}

fn played(command: &str, params: &Value) -> Kind {
    let words: Vec<&str> =
        params["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let sleeps = command.contains("sleep") || words.iter().any(|word| word.contains("sleep"));
    Kind::StageReport {
        output: format!("{}\n", words.join(" ")),
        exit: (!sleeps).then(|| json!({ "exitCode": 0, "signal": null })),
    }
}

impl Terminal {
    fn output(&self) -> Value {
        let text = match &self.command {
            Kind::StageReport { output, .. } => output.clone(),
            Kind::Real(running) => running.output(),
        };
        let over = text.len().saturating_sub(self.limit);
        let cut = (over..=text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(over);
        let mut result = json!({ "output": &text[cut..], "truncated": cut > 0 });
        if let Some(exit) = self.exit() {
            result["exitStatus"] = exit;
        }
        result
    }

    fn exit(&self) -> Option<Value> {
        match &self.command {
            Kind::StageReport { exit, .. } => exit.clone(),
            Kind::Real(running) => running.exit(),
        }
    }

    fn kill(&mut self) {
        match &mut self.command {
            Kind::StageReport { exit, .. } => {
                exit.get_or_insert_with(|| json!({ "exitCode": null, "signal": "SIGKILL" }));
            }
            Kind::Real(running) => running.kill(),
        }
    }
}
