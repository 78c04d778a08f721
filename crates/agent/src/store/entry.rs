//! What a session's log is made of.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::model::Message;

/// The log of one session, oldest first. What it means is asked of it (`fold.rs`, `leftovers.rs`), so that it is read from disk once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log(pub(super) Vec<Logged>);

impl std::ops::Deref for Log {
    type Target = [Logged];

    fn deref(&self) -> &[Logged] {
        &self.0
    }
}

impl IntoIterator for Log {
    type Item = Logged;
    type IntoIter = std::vec::IntoIter<Logged>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// An entry with its place and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    /// Its place in the session's log, from 1.
    pub seq: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// What it says.
    pub entry: Entry,
}

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// The `update` of a `session/update`: what the client saw, or said itself (`user_message_chunk`).
    Update(Value),
    /// A whole message to or from the model.
    Message(Message),
    /// A turn began or ended.
    Mark(Mark),
    /// A setting of the session took a value: mode, model, thinking.
    Setting {
        /// Its name.
        key: String,
        /// Its value.
        value: Value,
    },
    /// A file is about to change; written before it does.
    Change(Change),
    /// All files as they were before a command ran: the hash of a list in the store.
    Snapshot(String),
    /// The command after the last [`Entry::Snapshot`] ended, and what it changed stands before this.
    Settled,
    /// The changes of turn `n` were taken back.
    Undone(i64),
    /// Messages up to an entry are told to the model as this summary from now on.
    Compacted {
        /// The last entry that the summary stands for.
        upto: i64,
        /// The summary.
        summary: String,
    },
}

/// The borders of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A prompt was taken.
    Began,
    /// It was answered so.
    Ended {
        /// The stop reason as the client was told, or `error`.
        stop: String,
        /// What the turn used.
        usage: Value,
    },
}

/// One change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which file.
    pub path: PathBuf,
    /// As it was; `None`: it was not there.
    pub before: Option<FileState>,
    /// As it is to be; `None`: it goes away.
    pub after: Option<FileState>,
    /// How many directories above it were not there.
    pub new_directories: u32,
}

/// A file's bytes, by hash, and its permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// Of its bytes, which the store holds for what was there before.
    pub hash: String,
    /// The permission bits, where there are any.
    pub mode: Option<u32>,
}

impl Entry {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Entry::Update(_) => "update",
            Entry::Message(_) => "message",
            Entry::Mark(_) => "mark",
            Entry::Setting { .. } => "setting",
            Entry::Change(_) => "change",
            Entry::Snapshot(_) => "snapshot",
            Entry::Settled => "settled",
            Entry::Undone(_) => "undone",
            Entry::Compacted { .. } => "compacted",
        }
    }

    pub(super) fn body(&self) -> String {
        match self {
            Entry::Update(update) => update.to_string(),
            // A message is made of strings and trees: there is nothing in it that JSON cannot hold.
            Entry::Message(message) => serde_json::to_string(message).unwrap_or_default(),
            Entry::Mark(Mark::Began) => json!({ "began": true }).to_string(),
            Entry::Mark(Mark::Ended { stop, usage }) => json!({ "ended": stop, "usage": usage }).to_string(),
            Entry::Setting { key, value } => json!({ "key": key, "value": value }).to_string(),
            Entry::Change(change) => {
                let mut body = json!({ "path": path_json(&change.path), "before": state_json(change.before.as_ref()), "after": state_json(change.after.as_ref()) });
                if change.new_directories > 0 {
                    body["newDirectories"] = change.new_directories.into();
                }
                body.to_string()
            }
            Entry::Settled => "{}".to_owned(),
            Entry::Snapshot(list) => json!({ "list": list }).to_string(),
            Entry::Undone(turn) => json!({ "turn": turn }).to_string(),
            Entry::Compacted { upto, summary } => json!({ "upto": upto, "summary": summary }).to_string(),
        }
    }

    /// `None`: a kind that this version does not know.
    pub(super) fn read(kind: &str, body: &str) -> Result<Option<Entry>, String> {
        let value: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
        let text = |name: &str| {
            value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| format!("no {name}"))
        };
        let number = |name: &str| value.get(name).and_then(Value::as_i64).ok_or_else(|| format!("no {name}"));
        Ok(Some(match kind {
            "update" => Entry::Update(value),
            "message" => Entry::Message(serde_json::from_value(value).map_err(|error| error.to_string())?),
            "mark" if value.get("began").is_some() => Entry::Mark(Mark::Began),
            "mark" => Entry::Mark(Mark::Ended {
                stop: text("ended")?,
                usage: value.get("usage").cloned().unwrap_or(Value::Null),
            }),
            "setting" => Entry::Setting {
                key: text("key")?,
                value: value.get("value").cloned().unwrap_or(Value::Null),
            },
            "change" => Entry::Change(Change {
                path: path_from(value.get("path")).ok_or("no path")?,
                before: state_from(value.get("before")),
                after: state_from(value.get("after")),
                new_directories: value
                    .get("newDirectories")
                    .and_then(Value::as_u64)
                    .and_then(|n| u32::try_from(n).ok())
                    .unwrap_or(0),
            }),
            "settled" => Entry::Settled,
            "snapshot" => Entry::Snapshot(text("list")?),
            "undone" => Entry::Undone(number("turn")?),
            "compacted" => Entry::Compacted { upto: number("upto")?, summary: text("summary")? },
            _ => return Ok(None),
        }))
    }
}

pub(super) fn state_json(state: Option<&FileState>) -> Value {
    state.map_or(Value::Null, |state| {
        let mut map = Map::new();
        map.insert("hash".into(), state.hash.clone().into());
        if let Some(mode) = state.mode {
            map.insert("mode".into(), mode.into());
        }
        map.into()
    })
}

pub(super) fn state_from(value: Option<&Value>) -> Option<FileState> {
    let value = value?;
    let mode = value.get("mode").and_then(Value::as_u64).and_then(|mode| u32::try_from(mode).ok());
    Some(FileState { hash: value.get("hash")?.as_str()?.to_owned(), mode })
}

/// A path is text where it can be, else its bytes: files must be restored by the very name that they had.
#[cfg(unix)]
pub(super) fn path_json(path: &std::path::Path) -> Value {
    use std::os::unix::ffi::OsStrExt as _;
    path.to_str().map_or_else(|| json!(path.as_os_str().as_bytes()), |text| json!(text))
}

#[cfg(not(unix))]
pub(super) fn path_json(path: &std::path::Path) -> Value {
    json!(path.to_string_lossy())
}

#[cfg(unix)]
pub(super) fn path_from(value: Option<&Value>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    match value? {
        Value::String(text) => Some(PathBuf::from(text)),
        Value::Array(bytes) => {
            let bytes: Option<Vec<u8>> =
                bytes.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect();
            Some(PathBuf::from(std::ffi::OsString::from_vec(bytes?)))
        }
        _ => None,
    }
}

#[cfg(not(unix))]
pub(super) fn path_from(value: Option<&Value>) -> Option<PathBuf> {
    value?.as_str().map(PathBuf::from)
}

pub(super) fn paths_json(paths: &[PathBuf]) -> String {
    Value::Array(paths.iter().map(|path| path_json(path)).collect()).to_string()
}

pub(super) fn paths_from(text: &str) -> Vec<PathBuf> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    value.as_array().into_iter().flatten().filter_map(|path| path_from(Some(path))).collect()
}
