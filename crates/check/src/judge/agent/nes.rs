//! Next-edit suggestions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{EventLog, Findings, Kind, Message, Watcher};
use super::{items, text};
use crate::Role;

// NES-04, NES-09, NES-14
#[derive(Default)]
pub(super) struct Nes {
    /// How many lines each open document has, by session and URI.
    lines: BTreeMap<(String, String), usize>,
    ids: BTreeSet<(String, String)>,
}

impl Watcher for Nes {
    fn rules(&self) -> &'static [&'static str] {
        &["NES-04", "NES-09", "NES-14"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        let name = |params: &Value, key: &str| params[key].as_str().unwrap_or_default().to_owned();
        if let Kind::Notification { method, params } = &message.kind {
            let document = (name(params, "sessionId"), name(params, "uri"));
            match method.as_str() {
                "document/didOpen" => {
                    self.lines.insert(document, text(&params["text"]).split('\n').count());
                }
                // How an edit changes the lines depends on the kind of synchronisation, so nothing
                // is judged after one.
                "document/didChange" => {
                    self.lines.remove(&document);
                }
                _ => {}
            }
        }
        let Some((asked, result)) = log.result_of(message, "nes/suggest") else { return };
        let session = name(&asked.params, "sessionId");
        for suggestion in items(&result["suggestions"]) {
            let kind = suggestion["kind"].as_str().unwrap_or_default();
            let known = kind == "edit" || log.can(Role::Client, &format!("nes.{kind}"));
            out.check("NES-04", message, known, || {
                format!("a suggestion of kind {kind:?}, which the client does not announce")
            });
            let id = suggestion["id"].as_str().unwrap_or_default().to_owned();
            out.check("NES-14", message, self.ids.insert((session.clone(), id.clone())), || {
                format!("the suggestion id {id:?} was used before")
            });
            if let Some(lines) = self.lines.get(&(session.clone(), name(suggestion, "uri"))) {
                positions(message, suggestion, *lines, out);
            }
        }
    }
}

/// Counted from 0, the last line of a document is one less than their number.
// NES-09
fn positions(message: &Message, suggestion: &Value, lines: usize, out: &mut Findings) {
    let edits = items(&suggestion["edits"]).flat_map(|edit| [&edit["range"]["start"], &edit["range"]["end"]]);
    let places = edits.chain(std::iter::once(&suggestion["position"]));
    for place in places.filter(|place| !place.is_null()) {
        let line = place["line"].as_u64().and_then(|line| usize::try_from(line).ok());
        out.check("NES-09", message, line.is_some_and(|line| line < lines), || {
            format!("line {} of a document with {lines} lines, counted from 0", place["line"])
        });
    }
}
