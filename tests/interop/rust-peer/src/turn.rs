//! What a turn does: the first word of the prompt decides.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{Client, Error, Result, UntypedMessage};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::sessions::{Session, Sessions, typed};
use crate::{Ping, Reverse, number};

/// One turn, and the way to speak in it.
pub struct Turn {
    pub sessions: Sessions,
    pub client: ConnectionTo<Client>,
    pub session: Session,
    pub prompt: PromptRequest,
}

impl Turn {
    fn id(&self) -> SessionId {
        SessionId::new(self.session.id.clone())
    }

    fn send(&self, update: Value) -> Result<()> {
        let notification =
            typed::<SessionNotification>(json!({"sessionId": self.session.id, "update": update}))?;
        self.client.send_notification(notification)
    }

    fn say(&self, text: impl Into<String>) -> Result<()> {
        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text.into())));
        self.client
            .send_notification(SessionNotification::new(self.id(), SessionUpdate::AgentMessageChunk(chunk)))
    }

    async fn ask(&self, tool_call: &str) -> Result<RequestPermissionOutcome> {
        let request = RequestPermissionRequest::new(
            self.id(),
            ToolCallUpdate::new(tool_call.to_owned(), ToolCallUpdateFields::new()),
            vec![
                PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
                PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
            ],
        );
        Ok(self.client.send_request(request).block_task().await?.outcome)
    }

    async fn read(&self, path: &str, window: &[&str]) -> Result<String> {
        let mut request = ReadTextFileRequest::new(self.id(), path);
        if let [line, limit] = window {
            request = request.line(line.parse::<u32>().ok()).limit(limit.parse::<u32>().ok());
        }
        Ok(self.client.send_request(request).block_task().await?.content)
    }

    async fn write(&self, path: &str, content: &str) -> Result<()> {
        let request = WriteTextFileRequest::new(self.id(), path, content);
        self.client.send_request(request).block_task().await.map(|_| ())
    }

    pub async fn run(self) -> Result<StopReason> {
        let text = match self.prompt.prompt.first() {
            Some(ContentBlock::Text(text)) => text.text.clone(),
            _ => String::new(),
        };
        let (verb, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match verb {
            "say" => {
                self.say(rest)?;
                self.sessions.kept(&self.id(), |s| s.history.push((text.clone(), rest.to_owned())))?;
            }
            "count" => self.say(self.session.history.len().to_string())?,
            "stream" => {
                for i in 0..rest.parse().unwrap_or(0) {
                    self.say(format!("{i}:é\u{2028}😀;"))?;
                }
            }
            "stop" => return typed(json!(rest)),
            "think" => self.think()?,
            "edit" => return self.edit(rest).await,
            "read" => {
                let words: Vec<&str> = rest.split(' ').collect();
                match self.read(words[0], &words[1..]).await {
                    Ok(content) => self.say(content.trim_end())?,
                    Err(error) => self.say(format!("error {}", number(&error)))?,
                }
            }
            "write" => {
                let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
                self.write(path, content).await?;
                self.say("written")?;
            }
            "run" => self.terminal().await?,
            "runkill" => self.terminal_kill().await?,
            "forever" => {
                for i in 0.. {
                    if self.session.cancelled.load(Ordering::SeqCst) {
                        return Ok(StopReason::Cancelled);
                    }
                    self.say(format!("tick {i};"))?;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            "ask" => {
                self.send(json!({"sessionUpdate": "tool_call", "toolCallId": "ask-1", "title": "Ask", "status": "pending"}))?;
                let outcome = self.ask("ask-1").await?;
                self.send(
                    json!({"sessionUpdate": "tool_call_update", "toolCallId": "ask-1", "status": "failed"}),
                )?;
                if matches!(outcome, RequestPermissionOutcome::Cancelled) {
                    return Ok(StopReason::Cancelled);
                }
            }
            "mode" => self.say(&self.session.mode)?,
            "switch" => {
                self.sessions.kept(&self.id(), |s| s.mode = rest.to_owned())?;
                self.send(json!({"sessionUpdate": "current_mode_update", "currentModeId": rest}))?;
            }
            "config" => self.say(&self.session.model)?,
            "reconfigure" => {
                let options = self.sessions.kept(&self.id(), |s| {
                    s.model = rest.to_owned();
                    s.config_options()
                })?;
                self.send(json!({"sessionUpdate": "config_option_update", "configOptions": options}))?;
            }
            "callback-unknown" => {
                let request = UntypedMessage::new("_interop/nothing", json!({}))?;
                match self.client.send_request(request).block_task().await {
                    Ok(_) => self.say("no error")?,
                    Err(error) => self.say(format!("error {}", number(&error)))?,
                }
            }
            "ext" => {
                self.client.send_notification(Ping { n: 1 })?;
                let answer = self.client.send_request(Reverse { text: "abc".into() }).block_task().await?;
                self.say(answer["text"].as_str().unwrap_or("no text"))?;
            }
            "size" => self.say(rest.len().to_string())?,
            "big" => self.say("y".repeat(rest.parse().unwrap_or(0)))?,
            "meet" => self.meet().await?,
            "elicit" => self.elicit().await?,
            "elicit-url" => {
                let request = typed::<CreateElicitationRequest>(json!({
                    "sessionId": self.session.id, "mode": "url", "message": "Please sign in",
                    "elicitationId": "link-1", "url": "https://example.com/sign-in",
                }))?;
                let answer = serde_json::to_value(self.client.send_request(request).block_task().await?)?;
                self.client
                    .send_notification(CompleteElicitationNotification::new(ElicitationId::new("link-1")))?;
                self.say(answer["action"].as_str().unwrap_or("no action"))?;
            }
            "blocks" => {
                let briefs: Vec<String> = self.prompt.prompt.iter().map(brief).collect();
                self.say(briefs.join(" "))?;
                for block in self.prompt.prompt.iter().skip(1) {
                    self.send(json!({"sessionUpdate": "agent_message_chunk", "content": block}))?;
                }
            }
            "info" => {
                self.send(json!({
                    "sessionUpdate": "session_info_update", "title": "A fine title", "updatedAt": "2026-01-02T03:04:05Z",
                }))?;
                self.send(json!({
                    "sessionUpdate": "usage_update", "used": 1200, "size": 200000,
                    "cost": {"amount": 0.25, "currency": "USD"},
                }))?;
            }
            "mcp" => {
                let names = self.session.mcp.iter().map(|server| match server {
                    McpServer::Stdio(s) => format!("{}=stdio", s.name),
                    McpServer::Http(s) => format!("{}=http", s.name),
                    McpServer::Sse(s) => format!("{}=sse", s.name),
                    _ => "other".into(),
                });
                self.say(names.collect::<Vec<_>>().join(","))?;
            }
            "meta" => {
                let trace = self.prompt.meta.as_ref().and_then(|m| m.get("interop.example/trace"));
                self.say(trace.and_then(Value::as_str).unwrap_or("none"))?;
            }
            "fail" => return Err(Error::internal_error().data(json!("as asked"))),
            _ => return Err(Error::invalid_params().data(json!(format!("no such prompt: {verb}")))),
        }
        Ok(StopReason::EndTurn)
    }

    fn think(&self) -> Result<()> {
        for text in ["hm, ", "let me see"] {
            self.send(
                json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}),
            )?;
        }
        for (look, leap) in [("pending", "pending"), ("completed", "in_progress")] {
            self.send(json!({"sessionUpdate": "plan", "entries": [
                {"content": "look", "priority": "high", "status": look},
                {"content": "leap", "priority": "low", "status": leap},
            ]}))?;
        }
        self.say("done")
    }

    async fn edit(&self, path: &str) -> Result<StopReason> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let old = self.read(path, &[]).await?;
        let new = old.replacen("two", "TWO", 1);
        let call = format!("edit-{name}");
        let status =
            |status: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status});
        self.send(json!({
            "sessionUpdate": "tool_call", "toolCallId": call, "title": format!("Edit {name}"), "kind": "edit",
            "status": "pending", "locations": [{"path": path, "line": 2}], "rawInput": {"path": path},
        }))?;
        match self.ask(&call).await? {
            RequestPermissionOutcome::Selected(chosen) if &*chosen.option_id.0 == "allow" => {}
            RequestPermissionOutcome::Cancelled => return Ok(StopReason::Cancelled),
            _ => {
                let mut failed = status("failed");
                failed["content"] =
                    json!([{"type": "content", "content": {"type": "text", "text": "not allowed"}}]);
                self.send(failed)?;
                self.say("denied")?;
                return Ok(StopReason::EndTurn);
            }
        }
        self.send(status("in_progress"))?;
        self.write(path, &new).await?;
        let mut done = status("completed");
        done["content"] = json!([{"type": "diff", "path": path, "oldText": old, "newText": new}]);
        self.send(done)?;
        self.say("applied")?;
        Ok(StopReason::EndTurn)
    }

    async fn terminal(&self) -> Result<()> {
        let request = CreateTerminalRequest::new(self.id(), "sh")
            .args(vec!["-c".into(), r#"printf "$GREETING\ntwo\n"; exit 3"#.into()])
            .env(vec![EnvVariable::new("GREETING", "one")])
            .cwd(self.session.cwd.clone())
            .output_byte_limit(1000u64);
        let terminal = self.client.send_request(request).block_task().await?.terminal_id;
        self.send(json!({
            "sessionUpdate": "tool_call", "toolCallId": "run-1", "title": "Run", "kind": "execute",
            "status": "pending", "content": [{"type": "terminal", "terminalId": terminal}],
        }))?;
        self.send(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "run-1", "status": "in_progress"}),
        )?;
        let wait = WaitForTerminalExitRequest::new(self.id(), terminal.clone());
        let exit = self.client.send_request(wait).block_task().await?.exit_status;
        let output = TerminalOutputRequest::new(self.id(), terminal.clone());
        let output = self.client.send_request(output).block_task().await?;
        self.client.send_request(ReleaseTerminalRequest::new(self.id(), terminal)).block_task().await?;
        self.send(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "run-1", "status": "completed"}),
        )?;
        let code = |status: Option<TerminalExitStatus>| match status.and_then(|s| s.exit_code) {
            Some(code) => code.to_string(),
            None => "none".into(),
        };
        let (text, truncated) = (json!(output.output), output.truncated);
        self.say(format!(
            "exit {}/{} truncated {truncated} output {text}",
            code(Some(exit)),
            code(output.exit_status)
        ))
    }

    async fn terminal_kill(&self) -> Result<()> {
        let request = CreateTerminalRequest::new(self.id(), "sleep").args(vec!["600".into()]);
        let terminal = self.client.send_request(request).block_task().await?.terminal_id;
        self.client.send_request(KillTerminalRequest::new(self.id(), terminal.clone())).block_task().await?;
        let wait = WaitForTerminalExitRequest::new(self.id(), terminal.clone());
        let exit = self.client.send_request(wait).block_task().await?.exit_status;
        let output = TerminalOutputRequest::new(self.id(), terminal.clone());
        let output = self.client.send_request(output).block_task().await?;
        self.client.send_request(ReleaseTerminalRequest::new(self.id(), terminal)).block_task().await?;
        self.say(if exit.exit_code != Some(0) && output.exit_status.is_some() { "killed" } else { "alive" })
    }

    /// The first to come waits for the second: only turns that run side by side get through.
    async fn meet(&self) -> Result<()> {
        let waiting = {
            let mut state = self.sessions.lock();
            match state.meeting.take() {
                Some(other) => {
                    let _ = other.send(());
                    None
                }
                None => {
                    let (sender, receiver) = oneshot::channel();
                    state.meeting = Some(sender);
                    Some(receiver)
                }
            }
        };
        if let Some(receiver) = waiting {
            let _ = receiver.await;
        }
        for i in 0..10 {
            self.say(format!("{}/{i};", self.session.id))?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn elicit(&self) -> Result<()> {
        let request = typed::<CreateElicitationRequest>(json!({
            "sessionId": self.session.id, "mode": "form", "message": "Who are you?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "title": "Name", "minLength": 1},
                    "age": {"type": "integer", "minimum": 0},
                    "role": {"type": "string", "oneOf": [
                        {"const": "admin", "title": "Admin"}, {"const": "guest", "title": "Guest"},
                    ]},
                    "sure": {"type": "boolean", "default": false},
                },
                "required": ["name"],
            },
        }))?;
        let answer = serde_json::to_value(self.client.send_request(request).block_task().await?)?;
        let mut words = vec![answer["action"].as_str().unwrap_or("no action").to_owned()];
        let fields: BTreeMap<String, Value> =
            serde_json::from_value(answer["content"].clone()).unwrap_or_default();
        words.extend(fields.iter().map(|(key, value)| match value {
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        }));
        self.say(words.join(" "))
    }
}

fn brief(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(_) => "text".into(),
        ContentBlock::Image(c) => format!("image({},{})", c.mime_type, c.data),
        ContentBlock::Audio(c) => format!("audio({},{})", c.mime_type, c.data),
        ContentBlock::ResourceLink(c) => format!("resource_link({},{})", c.name, c.uri),
        ContentBlock::Resource(c) => match &c.resource {
            EmbeddedResourceResource::TextResourceContents(r) => format!("resource({},{})", r.uri, r.text),
            _ => "resource(blob)".into(),
        },
        _ => "other".into(),
    }
}
