//! Single entries, one line each.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::{span, visible};
use crate::Role;
use crate::trace::{Entry, EntryKind};

/// Selects entries by their members; absent members select all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only of this session.
    pub session: Option<String>,
    /// Only this method and its responses; a `*` at the end matches anything.
    pub method: Option<String>,
    /// Only this kind of update.
    pub kind: Option<String>,
    /// Only from this role.
    pub from: Option<Role>,
}

/// Selects entries in the order of the recording.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    selection: Selection,
    /// Selected requests, whose responses are selected too.
    requests: HashSet<(Role, String)>,
}

impl Selection {
    /// Whether all entries are selected.
    pub fn is_everything(&self) -> bool {
        self.session.is_none() && self.method.is_none() && self.kind.is_none() && self.from.is_none()
    }
}

impl Filter {
    /// Creates a filter.
    pub fn new(selection: Selection) -> Filter {
        Filter { selection, requests: HashSet::new() }
    }

    /// Whether an entry is selected.
    pub fn matches(&mut self, entry: &Entry) -> bool {
        if self.selection.is_everything() {
            return true;
        }
        let EntryKind::Line { from, text, .. } = &entry.kind else { return false };
        let Ok(message) = serde_json::from_slice::<Value>(text) else { return false };
        let (method, id) =
            (message.get("method").and_then(Value::as_str), message.get("id").map(Value::to_string));
        let passes = match (method, &id) {
            (None, Some(id)) => self.requests.remove(&(from.other(), id.clone())),
            (None, None) => false,
            (Some(method), _) => self.matches_call(method, &message["params"]),
        };
        if let (true, Some(_), Some(id)) = (passes, method, id) {
            self.requests.insert((*from, id));
        }
        passes && self.selection.from.is_none_or(|wanted| wanted == *from)
    }

    fn matches_call(&self, method: &str, params: &Value) -> bool {
        let named = |wanted: &str| {
            wanted.strip_suffix('*').map_or(wanted == method, |start| method.starts_with(start))
        };
        self.selection.method.as_deref().is_none_or(named)
            && self.selection.session.as_deref().is_none_or(|wanted| params["sessionId"] == wanted)
            && self.selection.kind.as_deref().is_none_or(|wanted| params["update"]["sessionUpdate"] == wanted)
    }
}

/// Returns an entry as one line of at most `width` characters.
pub fn line(entry: &Entry, width: usize) -> String {
    let mut line = format!("{:>10}  ", span(entry.at));
    match &entry.kind {
        EntryKind::Line { from, text, .. } => {
            line.push_str(if *from == Role::Client { "client → " } else { "agent  → " });
            line.push_str(&message(text));
        }
        EntryKind::Stderr(text) => _ = write!(line, "stderr   {}", String::from_utf8_lossy(text)),
        EntryKind::Closed { from } => _ = write!(line, "{from} closed its side"),
        EntryKind::Exit { code: Some(code), .. } => _ = write!(line, "the agent ended with {code}"),
        EntryKind::Exit { signal, .. } => {
            _ = write!(line, "the agent was ended by signal {}", signal.unwrap_or(0))
        }
        EntryKind::Note(note) => _ = write!(line, "note     {note}"),
    }
    let line = visible(&line).replace(['\n', '\t'], " ");
    if line.chars().count() <= width {
        return line;
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn message(text: &[u8]) -> String {
    let Ok(message) = serde_json::from_slice::<Value>(text) else {
        return format!("(no message) {}", String::from_utf8_lossy(text));
    };
    let id = message.get("id").map(|id| format!(" #{id}")).unwrap_or_default();
    let part = |name: &str| message.get(name).map(Value::to_string).unwrap_or_default();
    match message.get("method").and_then(Value::as_str) {
        Some("session/update") => {
            let update = &message["params"]["update"];
            format!("session/update {} {update}", update["sessionUpdate"].as_str().unwrap_or("?"))
        }
        Some(method) => format!("{method}{id} {}", part("params")),
        None if message.get("error").is_some() => format!("error{id} {}", part("error")),
        None => format!("result{id} {}", part("result")),
    }
}
