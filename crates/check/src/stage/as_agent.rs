//! Steps of scenarios in which the checker plays the agent.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{Answer, Id, Stage, Step, Stop};
use crate::judge::Message;
use crate::target::Launch;
use crate::version::Version;

/// Capabilities that version 2 has below `session`: the object of version 1, that of version 2 and
/// the names in it.
const MOVED: [(&str, &str, &[&str]); 3] = [
    ("promptCapabilities", "prompt", &["image", "audio", "embeddedContext"]),
    ("mcpCapabilities", "mcp", &["http", "acp"]),
    (
        "sessionCapabilities",
        "",
        &["delete", "fork", "additionalDirectories", "archive", "status", "title", "systemPrompt"],
    ),
];

impl Stage {
    /// Everything that an agent can advertise in version 1, for [`accept`](Self::accept).
    pub fn all_agent_capabilities() -> Value {
        json!({
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": true },
            "sessionCapabilities": {
                "list": {}, "delete": {}, "resume": {}, "close": {}, "fork": {}, "additionalDirectories": {},
            },
            "auth": { "logout": {} },
        })
    }

    /// Waits for `initialize`, answers it with these capabilities and returns the request. Then
    /// checks the requirements of the scenario.
    ///
    /// # Errors
    /// If the client sends something else first, or lacks a requirement of the scenario.
    pub async fn accept(&mut self, capabilities: Value) -> Result<Rc<Message>, Stop> {
        let result = self.greeting(&capabilities);
        self.accept_with(result).await
    }

    /// The result of `initialize` with these capabilities of version 1, as the version names them.
    pub(crate) fn greeting(&self, capabilities: &Value) -> Value {
        let info = json!({ "name": "attache-check", "title": "Attaché check", "version": env!("CARGO_PKG_VERSION") });
        match self.version() {
            Version::V1 => json!({
                "protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info, "authMethods": [],
            }),
            Version::V2 => {
                let mut session = json!({ "prompt": {}, "mcp": {} });
                // Version 1 has no name for it: every agent starts programs.
                if capabilities["mcpCapabilities"]["stdio"] != false {
                    session["mcp"]["stdio"] = json!({});
                }
                for (old, new, names) in MOVED {
                    for name in names {
                        match &capabilities[old][name] {
                            Value::Bool(true) => session[new][name] = json!({}),
                            Value::Object(marker) if new.is_empty() => session[name] = json!(marker),
                            Value::Null if new.is_empty() && capabilities[old].get(name).is_some() => {
                                session[name] = Value::Null;
                            }
                            _ => {}
                        }
                    }
                }
                let mut able = json!({ "session": session });
                for name in ["auth", "providers", "_meta"] {
                    if capabilities[name].is_object() {
                        able[name] = capabilities[name].clone();
                    }
                }
                if let Some(auth) = able["auth"].as_object_mut() {
                    // V2-07: implied by `authMethods`.
                    auth.remove("logout");
                }
                json!({ "protocolVersion": 2, "capabilities": able, "info": info, "authMethods": [] })
            }
        }
    }

    /// Like [`accept`](Self::accept), with this result.
    ///
    /// # Errors
    /// As there.
    pub async fn accept_with(&mut self, result: Value) -> Result<Rc<Message>, Stop> {
        let asked = self.until_asked("initialize").await?;
        self.must_offer(&asked)?;
        self.reply(&asked, result).await?;
        self.check_needs()?;
        Ok(asked)
    }

    /// Ends the scenario if the client offers an older version than the scenario's.
    ///
    /// # Errors
    /// [`Stop::NotApplicable`] then.
    pub(crate) fn must_offer(&self, initialize: &Message) -> Step {
        let offered = Version::of_json(&initialize.params()["protocolVersion"]);
        if offered >= self.version() {
            return Ok(());
        }
        Err(Stop::NotApplicable(format!("the client does not offer version {}", self.version())))
    }

    /// Waits until the client asks for `method`; other messages stay in the inbox.
    pub async fn until_asked(&mut self, method: &str) -> Result<Rc<Message>, Stop> {
        self.until(&format!("a request for {method}"), |message| message.asks(method)).await
    }

    /// Waits until the client sends this notification.
    pub async fn until_stopped(&mut self, method: &str) -> Result<Rc<Message>, Stop> {
        self.until(&format!("the notification {method}"), |message| {
            message.method() == Some(method) && message.id().is_none()
        })
        .await
    }

    /// Answers a received request.
    pub async fn reply(&mut self, asked: &Message, result: Value) -> Step {
        match asked.id() {
            Some(id) => self.answer(&id.clone(), result).await,
            None => Err(Stop::Broken("a notification cannot be answered".to_owned())),
        }
    }

    /// Waits for `session/new` and answers it with this session id and the members of `more`.
    pub async fn accept_session(&mut self, session: &str, more: Value) -> Result<Rc<Message>, Stop> {
        let asked = self.until_asked("session/new").await?;
        let mut result = more;
        if !result.is_object() {
            result = json!({});
        }
        result["sessionId"] = session.into();
        self.reply(&asked, result).await?;
        Ok(asked)
    }

    /// Waits for a prompt and returns its id and the request.
    pub async fn accept_prompt(&mut self) -> Result<(Id, Rc<Message>), Stop> {
        let asked = self.until_asked("session/prompt").await?;
        let id = asked.id().cloned().unwrap_or_default();
        Ok((id, asked))
    }

    /// Sends a `session/update`; `update` has `sessionUpdate` in it.
    pub async fn update(&mut self, session: &str, update: Value) -> Step {
        self.notify("session/update", json!({ "sessionId": session, "update": update })).await
    }

    /// Sends a message chunk with this text.
    pub async fn say(&mut self, session: &str, text: &str) -> Step {
        let content = json!({ "type": "text", "text": text });
        let mut chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        if self.version() == Version::V2 {
            chunk["messageId"] = json!("msg-agent");
        }
        self.update(session, chunk).await
    }

    /// Requests permission for a tool call with these options. [`expect`](Self::expect) waits for
    /// the answer.
    pub async fn ask_permission(
        &mut self,
        session: &str,
        tool_call: Value,
        options: Value,
    ) -> Result<Id, Stop> {
        let params = match self.version() {
            Version::V1 => json!({ "sessionId": session, "toolCall": tool_call, "options": options }),
            Version::V2 => json!({
                "sessionId": session, "title": tool_call["title"], "options": options,
                "subject": { "type": "tool_call", "toolCall": tool_call },
            }),
        };
        self.request("session/request_permission", params).await
    }

    /// Reads a file of the client.
    pub async fn read_file(&mut self, session: &str, path: &str) -> Result<Answer, Stop> {
        self.call("fs/read_text_file", json!({ "sessionId": session, "path": path })).await
    }

    /// Writes a file of the client.
    pub async fn write_file(&mut self, session: &str, path: &str, content: &str) -> Result<Answer, Stop> {
        self.call("fs/write_text_file", json!({ "sessionId": session, "path": path, "content": content }))
            .await
    }

    /// Waits until the client starts the agent's program again, makes that exit with `code` and
    /// returns how it was started.
    ///
    /// # Errors
    /// [`Stop::NotExercised`] if a second start cannot be observed or does not happen.
    pub async fn relaunched(&mut self, code: u8) -> Result<Launch, Stop> {
        let deadline = self.deadline();
        let Some(process) = &mut self.process else { return Err(Stop::PeerGone) };
        match tokio::time::timeout(deadline, process.relaunched(code)).await {
            Ok(Some(launch)) => Ok(launch),
            Ok(None) => Err(Stop::NotExercised("another start of the agent cannot be seen here".to_owned())),
            Err(_) => {
                self.deadline_passed();
                Err(Stop::NotExercised("the client did not start the agent once more".to_owned()))
            }
        }
    }

    /// Inserts a prompt of version 2: its user message, its answer, the running state.
    pub(crate) async fn insert(&mut self, prompt: &Message) -> Step {
        let session = prompt.params()["sessionId"].as_str().unwrap_or_default().to_owned();
        // V2-10: the answer names the message.
        let message = format!("msg-user-{}", self.mark());
        let content = prompt.params()["prompt"].clone();
        self.update(
            &session,
            json!({ "sessionUpdate": "user_message", "messageId": message, "content": content }),
        )
        .await?;
        self.reply(prompt, json!({ "messageId": message })).await?;
        self.update(&session, json!({ "sessionUpdate": "state_update", "state": "running" })).await
    }

    /// Reports that the work of a session has ended.
    pub(crate) async fn idle(&mut self, session: &str, stop: &str) -> Step {
        self.update(session, json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": stop }))
            .await
    }

    /// Ends the turn of this prompt.
    pub async fn end_turn(&mut self, prompt: &Id, stop: &str) -> Step {
        self.answer(prompt, json!({ "stopReason": stop })).await
    }
}
