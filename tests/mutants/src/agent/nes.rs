//! Next-edit suggestions.

use super::dispatch::Rest;
use super::params::text;
use super::state::Nes;
use super::wire::{Agent, Refusal, Reply};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The duration of an automatic suggestion.
const SLOW: Duration = Duration::from_secs(5);

impl Agent {
    /// NES-05, NES-06: a session of its own kind.
    pub(crate) fn start_nes(&self) -> Reply {
        let mut state = self.state();
        let id = format!("nes-{}", state.count());
        state.nes.insert(id.clone(), Nes::default());
        Ok(json!({ "sessionId": id }))
    }

    /// NES-08: running work is cancelled, then the session is closed.
    pub(crate) fn close_nes(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        let mut state = self.state();
        if self.is("NES-08") {
            return state.nes.contains_key(id).then(|| json!({})).ok_or_else(|| Refusal::session(id));
        }
        let closed = state.nes.remove(id).ok_or_else(|| Refusal::session(id))?;
        closed.cancel.cancel();
        Ok(json!({}))
    }

    /// NES-16: notifications for an unknown session are ignored.
    pub(crate) fn document(&self, method: &str, params: &Value) {
        let mut state = self.state();
        let session = params["sessionId"].as_str().unwrap_or_default();
        let Some(nes) = state.nes.get_mut(session) else {
            return;
        };
        let uri = params["uri"].as_str().unwrap_or_default().to_owned();
        let version = params["version"].as_i64().unwrap_or_default();
        match method {
            "document/didOpen" => {
                nes.documents.insert(uri, (version, params["text"].as_str().unwrap_or_default().to_owned()));
            }
            // The whole text comes each time, as `syncKind` says.
            "document/didChange" => {
                let text = params["contentChanges"][0]["text"].as_str().unwrap_or_default();
                nes.documents.insert(uri, (version, text.to_owned()));
            }
            "document/didClose" => {
                nes.documents.remove(&uri);
            }
            _ => {}
        }
    }

    pub(crate) async fn suggest(self: Arc<Self>, id: Value, params: Value) -> Option<Rest> {
        let found = text(&params, "sessionId").and_then(|session| {
            let state = self.state();
            let ghost = self.is("NES-16").then(Nes::default);
            state.nes.get(session).cloned().or(ghost).ok_or_else(|| Refusal::session(session))
        });
        let nes = match found {
            Ok(nes) => nes,
            Err(refusal) => {
                self.answer(&id, "nes/suggest", Err(refusal)).await;
                return None;
            }
        };
        Some(Box::pin(async move {
            if params["triggerKind"] != "manual" {
                tokio::select! {
                    () = tokio::time::sleep(SLOW) => {}
                    () = nes.cancel.cancelled() => {
                        self.answer(&id, "nes/suggest", Err(Refusal::new(-32800, "Request cancelled"))).await;
                        return;
                    }
                }
            }
            let reply = self.suggestions(&nes, &params);
            self.answer(&id, "nes/suggest", reply).await;
        }))
    }

    /// NES-04, NES-09, NES-20: edits always, other kinds if the client supports them, nothing for
    /// an old version.
    fn suggestions(&self, nes: &Nes, params: &Value) -> Reply {
        let uri = text(params, "uri")?;
        let fresh = nes.documents.get(uri).is_some_and(|(version, _)| params["version"] == *version);
        if !fresh {
            return if self.is("NES-20") {
                Err(Refusal::params("an old version"))
            } else {
                Ok(json!({ "suggestions": [] }))
            };
        }
        let mut place = params["position"].clone();
        if self.is("NES-09") {
            place["line"] = json!(place["line"].as_u64().unwrap_or_default() + 1);
        }
        let edit = json!({ "kind": "edit", "uri": uri, "edits": [{
            "range": { "start": place, "end": place }, "newText": "next",
        }] });
        let mut list = vec![edit];
        let others = [
            ("jump", json!({ "kind": "jump", "uri": uri, "position": place })),
            ("rename", json!({ "kind": "rename", "uri": uri, "position": place, "newName": "other" })),
            (
                "searchAndReplace",
                json!({ "kind": "searchAndReplace", "uri": uri, "search": "a", "replace": "b" }),
            ),
        ];
        let mut state = self.state();
        for (kind, suggestion) in others {
            if state.client_has(&format!("nes.{kind}")) || self.is("NES-04") {
                list.push(suggestion);
            }
        }
        for suggestion in &mut list {
            let number = if self.is("NES-14") { 0 } else { state.count() };
            suggestion["id"] = json!(format!("suggestion-{number}"));
        }
        Ok(json!({ "suggestions": list }))
    }
}
