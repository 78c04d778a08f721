//! The actions of the client.

use super::wire::Halt;
use super::{Client, nes};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Performs the act of the setup. Every act but a few ends with a prompt, as a user would.
pub(super) async fn perform(client: &Client) -> Result<(), Halt> {
    if client.is("STDIO-03") {
        client.stop().await;
    }
    client.initialize().await?;
    // INIT-15: what the agent does not say that it can, it cannot.
    if client.is("INIT-15") && !client.agent_has("/auth/status") {
        let _ = client.call("auth/status", json!({})).await;
    }
    if client.is("EXT-05") {
        let _ = client.call("attache/hello", json!({})).await;
    }
    // INIT-10: version 1 was agreed, and has no such method.
    if client.is("INIT-10/later") {
        let _ = client.call("auth/login", json!({ "methodId": "none" })).await;
    }
    let has_sessions = !client.speaks_2() || client.agent_has("/sessionCapabilities/list");
    if client.is("PROMPT-01") && client.acts("prompt") && has_sessions {
        let prompt = json!([{ "type": "text", "text": client.setup.prompt }]);
        let _ = client.call("session/prompt", json!({ "sessionId": "sess-early", "prompt": prompt })).await;
    }
    match client.setup.act.as_str() {
        "login" => {
            client.login().await?;
            once(client).await
        }
        "logout" => client.logout().await,
        "auth_status" => {
            client.auth_status().await?;
            once(client).await
        }
        "list" => client.list().await.map(drop),
        "delete" => client.delete().await,
        "load" | "load_roots" | "load_system" | "resume" | "resume_roots" | "attach" | "archived" => {
            let session = client.reopen().await?;
            // SESS-18: what was loaded is what goes on.
            let session = if client.is("SESS-18") { client.new_session().await?.0 } else { session };
            client.prompt(&session, Vec::new()).await
        }
        "fork" => {
            let session = client.fork().await?;
            client.prompt(&session, Vec::new()).await
        }
        "providers" | "disable" => {
            client.providers().await?;
            once(client).await
        }
        "nes" => nes::perform(client).await,
        "two" => two(client).await,
        _ => once(client).await,
    }
}

/// A session, what the act wants of it, a prompt.
async fn once(client: &Client) -> Result<(), Halt> {
    let (session, opened) = client.new_session().await?;
    if client.is("INIT-10") {
        // A method that only clients serve.
        client.tell("session/update", json!({ "sessionId": session, "update": {} })).await;
    }
    match client.setup.act.as_str() {
        "mode" => client.change_mode(&session, &opened).await?,
        "config" => client.change_option(&session, &opened).await?,
        "model" => client.change_model(&session, &opened).await?,
        "title" => client.retitle(&session).await?,
        "extension" => greet(client).await,
        "command" => client.heard_commands.notified().await,
        _ => {}
    }
    let prompted = client.prompt(&session, client.extras()).await;
    match client.setup.act.as_str() {
        "again" => {
            // AUTH-19, PROMPT-14: what became of one turn is no reason not to try the next.
            let _ = prompted;
            client.prompt(&session, Vec::new()).await
        }
        "close" => {
            prompted?;
            client.close(&session).await
        }
        _ => prompted,
    }
}

/// Two sessions at work at the same time.
async fn two(client: &Client) -> Result<(), Halt> {
    let (one, _) = client.new_session().await?;
    let (two, _) = client.new_session().await?;
    let (first, second) = tokio::join!(client.prompt(&one, Vec::new()), client.prompt(&two, Vec::new()));
    first.and(second)
}

/// EXT-06, EXT-09, INIT-28: a request of an extension, to an agent that announces it.
async fn greet(client: &Client) {
    let pointers = ["/agentCapabilities/_meta/attache.dev", "/capabilities/_meta/attache.dev"];
    let announced = pointers.iter().any(|pointer| client.state().agent.pointer(pointer).is_some());
    if announced || client.is("EXT-09") || client.is("INIT-28") {
        let _ = client.call("_attache.dev/hello", json!({})).await;
    }
}

/// Performs the acts of the user meanwhile.
pub(super) async fn user(client: &Client, cues: Option<mpsc::Receiver<String>>) {
    if let Some(mut cues) = cues {
        while let Some(cue) = cues.recv().await {
            match cue.as_str() {
                "cancel" => client.cancel().await,
                "allow" => client.allow_questions(),
                _ => {}
            }
        }
    }
    std::future::pending::<()>().await;
}

impl Client {
    /// CANCEL-01, CANCEL-03: the turns at work are cancelled, and what they ask is answered.
    async fn cancel(&self) {
        let sessions: Vec<String> = {
            let mut state = self.state();
            let prompting = state.sessions.iter_mut().filter(|(_, session)| session.prompting);
            prompting
                .map(|(id, session)| {
                    session.cancelled = true;
                    id.clone()
                })
                .collect()
        };
        for session in sessions {
            let named = if self.is("CANCEL-01") { "sess-another" } else { &*session };
            self.tell("session/cancel", json!({ "sessionId": named })).await;
            self.cancel_questions(&session);
        }
    }

    /// One turn, from the prompt to its end.
    pub(super) async fn prompt(&self, session: &str, extras: Vec<Value>) -> Result<(), Halt> {
        let text = match self.state().commands.first() {
            // CMD-04: a command is a text that begins with its name.
            Some(name) if self.acts("command") && !self.is("CMD-04") => {
                format!("/{name} {}", self.setup.prompt)
            }
            Some(name) if self.acts("command") => format!("{name}: {}", self.setup.prompt),
            _ => self.setup.prompt.clone(),
        };
        // PROMPT-05: a list of blocks, of kinds that the agent takes (PROMPT-02).
        let mut blocks = vec![json!({ "type": "text", "text": text })];
        blocks.extend(extras);
        // V2-22: nothing but types of the protocol, or with an underscore.
        if self.is("V2-22") {
            blocks.push(json!({ "type": "hologram" }));
        }
        // SESS-02: the id that the agent gave.
        let other = self.state().agent.pointer("/agentInfo/name").is_some_and(|name| name == "another-agent");
        let named = match self.setup.variant.as_deref() {
            Some("SESS-02") if session == "sess-attache-new" => "sess-made-up",
            // SESS-04: an id is worth something only to who gave it.
            Some("SESS-04") if other => "sess-attache-new",
            _ => session,
        };
        let prompt = if self.is("PROMPT-05") { json!(text) } else { Value::Array(blocks) };
        if let Some(session) = self.state().sessions.get_mut(session) {
            (session.prompting, session.cancelled) = (true, false);
        }
        // EXT-10: a trace that the turn belongs to.
        let trace = match self.is("EXT-10") {
            true => "the user's",
            false => "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        };
        let params = json!({ "sessionId": named, "prompt": prompt, "_meta": { "traceparent": trace } });
        let before = self.idles(session);
        let mut outcome = self.call_known("session/prompt", params).await;
        if self.speaks_2() && outcome.is_ok() {
            self.until_idle(session, before).await;
            outcome = Ok(Value::Null);
        }
        if let Some(session) = self.state().sessions.get_mut(session) {
            session.prompting = false;
        }
        let outcome = outcome?;
        if self.is("PROMPT-14") && outcome.get("stopReason").is_some_and(|reason| reason == "refusal") {
            self.stop().await;
        }
        Ok(())
    }

    /// Blocks beside the text, each only if the agent takes its kind (CONT-02).
    fn extras(&self) -> Vec<Value> {
        let data = if self.is("CONT-03") { "not base64!" } else { "aGVsbG8=" };
        let block = match self.setup.act.as_str() {
            "image" if self.agent_has("/promptCapabilities/image") => {
                json!({ "type": "image", "data": data, "mimeType": "image/png" })
            }
            "audio" if self.agent_has("/promptCapabilities/audio") => {
                json!({ "type": "audio", "data": data, "mimeType": "audio/wav" })
            }
            "resource" if self.agent_has("/promptCapabilities/embeddedContext") => {
                let mut resource =
                    json!({ "uri": "file:///notes.txt", "text": "a note", "mimeType": "text/plain" });
                if self.is("CONT-04") {
                    drop(resource.as_object_mut().map(|resource| resource.remove("text")));
                }
                json!({ "type": "resource", "resource": resource })
            }
            "link" if self.is("CONT-05") => json!({ "type": "resource_link", "uri": "file:///notes.txt" }),
            "link" if self.is("CONT-01") => json!({ "type": "file", "path": "/notes.txt" }),
            "link" => json!({ "type": "resource_link", "uri": "file:///notes.txt", "name": "notes.txt" }),
            _ => return Vec::new(),
        };
        vec![block]
    }
}
