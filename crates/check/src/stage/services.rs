//! The services of the checker as a client: files, terminals, a person who answers questions.

mod terminals;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use terminals::Terminals;

/// The answer to a request of the peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A result.
    Result(Value),
    /// An error with code and message.
    Error(i64, String),
    /// None: the request stays in the inbox for the scenario.
    Hold,
}

/// The answer to permission requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The first option that allows, `allow_once` preferred; cancelled if there is none.
    Allow,
    /// The first option that rejects; cancelled if there is none.
    Reject,
    /// `cancelled`.
    Cancelled,
    /// An option that was not offered.
    Unknown,
    /// An error.
    Error,
}

impl Permission {
    /// The answer to a question with these params.
    pub(crate) fn reply(self, params: &Value) -> Reply {
        let options: Vec<&Value> = params["options"].as_array().into_iter().flatten().collect();
        let first = |kinds: &[&str]| {
            kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == *kind)).map(
                |option| {
                    Reply::Result(
                        json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }),
                    )
                },
            )
        };
        let cancelled = Reply::Result(json!({ "outcome": { "outcome": "cancelled" } }));
        match self {
            Permission::Allow => first(&["allow_once", "allow_always"]).unwrap_or(cancelled),
            Permission::Reject => first(&["reject_once", "reject_always"]).unwrap_or(cancelled),
            Permission::Cancelled => cancelled,
            Permission::Unknown => Reply::Result(
                json!({ "outcome": { "outcome": "selected", "optionId": "attache-never-offered" } }),
            ),
            Permission::Error => Reply::Error(-32603, "the question could not be shown".to_owned()),
        }
    }
}

type Answerer = Box<dyn FnMut(&Value) -> Reply>;

/// Answers the requests of an agent while a scenario waits. For a client under test everything is
/// held.
pub struct Services {
    /// The answer to permission requests.
    pub permission: Permission,
    /// The answer to `elicitation/create`.
    pub elicitation: Value,
    held: Vec<String>,
    own: BTreeMap<String, Answerer>,
    files: Files,
    terminals: Terminals,
}

/// Files in the session's directory; those in memory come first.
struct Files {
    texts: BTreeMap<PathBuf, String>,
    dir: PathBuf,
    real: bool,
}

impl Services {
    /// `real`: files are on disk and commands are run.
    pub(super) fn new(dir: &Path, real: bool) -> Services {
        let texts = if real {
            BTreeMap::new()
        } else {
            [("notes.txt", NOTES), ("old.txt", "old\n")]
                .map(|(name, text)| (dir.join(name), text.to_owned()))
                .into()
        };
        Services {
            permission: Permission::Allow,
            elicitation: json!({ "action": "accept", "content": {} }),
            held: Vec::new(),
            own: BTreeMap::new(),
            files: Files { texts, dir: dir.to_owned(), real },
            terminals: Terminals::new(dir, real),
        }
    }

    /// Leaves requests for `method` to the scenario.
    pub fn hold(&mut self, method: &str) {
        self.held.push(method.to_owned());
    }

    /// Serves requests for `method` again.
    pub fn release(&mut self, method: &str) {
        self.held.retain(|held| held != method);
    }

    /// Answers requests for `method` with `answer`, which gets the params.
    pub fn answer_with(&mut self, method: &str, answer: impl FnMut(&Value) -> Reply + 'static) {
        self.own.insert(method.to_owned(), Box::new(answer));
    }

    /// The text of a file, as an agent reads it.
    pub fn file(&self, path: &Path) -> Option<String> {
        self.files.read(path)
    }

    /// Sets the text of a file like an unsaved editor buffer.
    pub fn set_file(&mut self, path: PathBuf, text: impl Into<String>) {
        self.files.texts.insert(path, text.into());
    }

    /// The ids of terminals whose command has ended and that were not released.
    pub(crate) fn ended_terminals(&self) -> Vec<String> {
        self.terminals.ended()
    }

    /// The answer to a request.
    pub(super) fn reply(&mut self, method: &str, params: &Value) -> Reply {
        if self.held.iter().any(|held| held == method) {
            return Reply::Hold;
        }
        if let Some(answer) = self.own.get_mut(method) {
            return answer(params);
        }
        match method {
            "fs/read_text_file" => self.files.serve_read(params),
            "fs/write_text_file" => self.files.serve_write(params),
            "session/request_permission" => self.permission.reply(params),
            "elicitation/create" => Reply::Result(self.elicitation.clone()),
            _ if method.starts_with("terminal/") => self.terminals.reply(method, params),
            // Requests of a client are for the scenario to answer.
            _ if is_for_agents(method) => Reply::Hold,
            _ => Reply::Error(-32601, format!("method not found: {method}")),
        }
    }

    /// Whether a held request may become answerable without a message.
    pub(super) fn waits(&self) -> bool {
        self.terminals.waits()
    }

    pub(super) async fn end(&mut self) {
        self.terminals.end().await;
    }
}

/// The content of `notes.txt`.
pub(crate) const NOTES: &str = "alpha beta\nsecond line\nthird line\n";

fn is_for_agents(method: &str) -> bool {
    matches!(method, "initialize" | "authenticate" | "logout")
        || ["auth/", "providers/", "mcp/"].iter().any(|prefix| method.starts_with(prefix))
        || (method.starts_with("session/") && method != "session/request_permission")
}

impl Files {
    fn read(&self, path: &Path) -> Option<String> {
        if let Some(text) = self.texts.get(path) {
            return Some(text.clone());
        }
        if self.real && path.starts_with(&self.dir) { std::fs::read_to_string(path).ok() } else { None }
    }

    fn serve_read(&self, params: &Value) -> Reply {
        let Some(path) = params["path"].as_str() else {
            return Reply::Error(-32602, "`path` is missing".to_owned());
        };
        let Some(text) = self.read(Path::new(path)) else {
            return Reply::Error(-32002, format!("no such file: {path}"));
        };
        let count = |key: &str| params[key].as_u64().and_then(|count| usize::try_from(count).ok());
        let (skip, limit) = (count("line").unwrap_or(1).max(1) - 1, count("limit").unwrap_or(usize::MAX));
        let content: String = text.split_inclusive('\n').skip(skip).take(limit).collect();
        Reply::Result(json!({ "content": content }))
    }

    fn serve_write(&mut self, params: &Value) -> Reply {
        let (Some(path), Some(text)) = (params["path"].as_str(), params["content"].as_str()) else {
            return Reply::Error(-32602, "`path` or `content` is missing".to_owned());
        };
        let path = PathBuf::from(path);
        if !path.starts_with(&self.dir) {
            return Reply::Error(-32602, "the path is outside of the session's directory".to_owned());
        }
        if self.real
            && let Err(error) = std::fs::write(&path, text)
        {
            return Reply::Error(-32603, format!("cannot write: {error}"));
        }
        self.texts.insert(path, text.to_owned());
        Reply::Result(json!({}))
    }
}
