//! Single entries, one line each.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::{span, visible};
use crate::Role;
use crate::trace::{Entry, EntryKind};

/// Which entries are shown.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only of this session.
    pub session: Option<String>,
    /// Only this method, its answers too; a `*` at the end stands for anything.
    pub method: Option<String>,
    /// Only this kind of update.
    pub kind: Option<String>,
    /// Only from this role.
    pub from: Option<Role>,
}

/// Looks at entries in order.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    wanted: Wanted,
    /// Requests that passed, so that their answers pass.
    asked: HashSet<(Role, String)>,
}

impl Wanted {
    /// Whether everything is shown.
    pub fn is_everything(&self) -> bool {
        self.session.is_none() && self.method.is_none() && self.kind.is_none() && self.from.is_none()
    }
}

impl Filter {
    /// Takes what is wanted.
    pub fn new(wanted: Wanted) -> Filter {
        Filter { wanted, asked: HashSet::new() }
    }

    /// Whether this entry is shown.
    pub fn takes(&mut self, entry: &Entry) -> bool {
        if self.wanted.is_everything() {
            return true;
        }
        let EntryKind::Line { from, text, .. } = &entry.kind else { return false };
        let Ok(message) = serde_json::from_slice::<Value>(text) else { return false };
        let (method, id) =
            (message.get("method").and_then(Value::as_str), message.get("id").map(Value::to_string));
        let passes = match (method, &id) {
            (None, Some(id)) => self.asked.remove(&(from.other(), id.clone())),
            (None, None) => false,
            (Some(method), _) => self.takes_call(method, &message["params"]),
        };
        if let (true, Some(_), Some(id)) = (passes, method, id) {
            self.asked.insert((*from, id));
        }
        passes && self.wanted.from.is_none_or(|wanted| wanted == *from)
    }

    fn takes_call(&self, method: &str, params: &Value) -> bool {
        let named = |wanted: &str| {
            wanted.strip_suffix('*').map_or(wanted == method, |start| method.starts_with(start))
        };
        self.wanted.method.as_deref().is_none_or(named)
            && self.wanted.session.as_deref().is_none_or(|wanted| params["sessionId"] == wanted)
            && self.wanted.kind.as_deref().is_none_or(|wanted| params["update"]["sessionUpdate"] == wanted)
    }
}

/// An entry on one line of at most `width` characters.
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
