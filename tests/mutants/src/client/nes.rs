//! Next edit suggestions: a document with an emoji in it, opened, changed, asked about and closed.

use super::Client;
use super::wire::Halt;
use serde_json::{Value, json};

const BEFORE: &str = "let a = 1;\nlet smile = \"😀\";";
const ADDED: &str = " // é";

pub(super) async fn perform(client: &Client) -> Result<(), Halt> {
    // NES-01: only with an agent that can.
    client.require("/nes")?;
    // NES-07: by way of a login, where one is asked for.
    let started = client.call_known("nes/start", json!({ "workspaceUri": "file:///work" })).await?;
    let session = started.get("sessionId").and_then(Value::as_str).unwrap_or_default();
    let document = Document { client, session, uri: "file:///work/a.rs" };
    document.event("didOpen", json!({ "languageId": "rust", "version": 1, "text": BEFORE })).await;
    let end = position(client, BEFORE);
    let zero = json!({ "line": 0, "character": 0 });
    let range = json!({ "start": zero, "end": end });
    document.event("didFocus", json!({ "version": 1, "position": end, "visibleRange": range })).await;
    document.event("didChange", json!({ "version": 2, "contentChanges": [changed(client)] })).await;
    let after = format!("{BEFORE}{ADDED}");
    let trigger = if client.is("NES-17") { "typing" } else { "automatic" };
    // NES-12: about the version that was sent last.
    let mut question = json!({
        "sessionId": session, "uri": document.uri, "version": if client.is("NES-12") { 1 } else { 2 },
        "position": position(client, &after), "triggerKind": trigger,
    });
    let context = context(client);
    if context.as_object().is_some_and(|context| !context.is_empty()) {
        question["context"] = context;
    }
    let answer = client.call("nes/suggest", question).await?;
    // NES-13: the fate of each suggestion is reported.
    for suggestion in answer.get("suggestions").and_then(Value::as_array).into_iter().flatten() {
        client.tell("nes/accept", json!({ "sessionId": session, "id": suggestion["id"] })).await;
    }
    document.event("didSave", json!({})).await;
    document.event("didClose", json!({})).await;
    client.call("nes/close", json!({ "sessionId": session })).await.map(drop)
}

struct Document<'a> {
    client: &'a Client,
    session: &'a str,
    uri: &'a str,
}

impl Document<'_> {
    /// NES-02: events that the agent wants to hear.
    async fn event(&self, name: &str, more: Value) {
        if !self.client.agent_has(&format!("/nes/events/document/{name}")) {
            return;
        }
        let mut params = json!({ "sessionId": self.session, "uri": self.uri });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.client.tell(&format!("document/{name}"), params).await;
    }
}

/// NES-11: the whole text or the change, as the agent asks.
fn changed(client: &Client) -> Value {
    let state = client.state();
    let kind = state.agent.pointer("/agentCapabilities/nes/events/document/didChange/syncKind").cloned();
    drop(state);
    let incremental = (kind == Some(json!("incremental"))) != client.is("NES-11");
    if !incremental {
        return json!({ "text": format!("{BEFORE}{ADDED}") });
    }
    let end = position(client, BEFORE);
    json!({ "range": { "start": end, "end": end }, "text": ADDED })
}

/// Where `text` ends. NES-09: counted from 0; NES-10: in units of UTF-16 unless something else was
/// agreed.
fn position(client: &Client, text: &str) -> Value {
    let line = text.matches('\n').count();
    let last = text.rsplit('\n').next().unwrap_or_default();
    let character = if client.is("NES-10") { last.len() } else { last.encode_utf16().count() };
    let first = usize::from(client.is("NES-09"));
    json!({ "line": line + first, "character": character + first })
}

/// NES-03, NES-18: only the requested context, within its limits.
fn context(client: &Client) -> Value {
    let mut context = json!({});
    if client.agent_has("/nes/context/diagnostics") {
        let zero = json!({ "line": 0, "character": 0 });
        context["diagnostics"] = json!([{
            "uri": "file:///work/a.rs", "range": { "start": zero, "end": zero }, "severity": "warning", "message": "unused",
        }]);
    }
    if client.agent_has("/nes/context/recentFiles") {
        let most = client
            .state()
            .agent
            .pointer("/agentCapabilities/nes/context/recentFiles/maxCount")
            .and_then(Value::as_u64);
        let files = ["b.rs", "c.rs", "d.rs"].map(|name| {
            json!({ "uri": format!("file:///work/{name}"), "languageId": "rust", "text": "fn x() {}" })
        });
        let most = most.filter(|_| !client.is("NES-18")).and_then(|most| usize::try_from(most).ok());
        context["recentFiles"] = json!(files.get(..most.unwrap_or(3).min(3)));
    }
    context
}
