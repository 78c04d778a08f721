//! An agent of protocol version 2 on the official Rust SDK. What each prompt does is written in
//! ../../README.md.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::v2::schema::*;
use agent_client_protocol::v2::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, ConnectTo, Error, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::on_request;

#[derive(Clone)]
struct Session {
    id: String,
    cwd: Value,
    state: Arc<Mutex<State>>,
    /// Prompts run one after the other.
    queue: Arc<tokio::sync::Mutex<()>>,
    /// Counts cancels and closes.
    cancels: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    closed: bool,
    history: Vec<(String, String)>,
    background: Option<Value>,
    messages: u64,
}

type Sessions = Arc<Mutex<HashMap<String, Session>>>;

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

impl Session {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn send(&self, connection: &ConnectionTo<Client>, update: Value) -> Result<()> {
        let params = json!({"sessionId": self.id, "update": update});
        connection.send_notification(typed::<UpdateSessionNotification>(params)?)
    }

    fn send_state(&self, connection: &ConnectionTo<Client>, state: &str, rest: Value) -> Result<()> {
        let mut update = json!({"sessionUpdate": "state_update", "state": state});
        let members = update.as_object_mut().unwrap();
        members.extend(rest.as_object().cloned().unwrap_or_default());
        members.extend(self.state().background.clone().map(|list| ("background".to_owned(), list)));
        self.send(connection, update)
    }

    fn message_id(&self) -> String {
        let mut state = self.state();
        state.messages += 1;
        format!("message-{}", state.messages)
    }

    /// Waits for a cancel after the one of this number.
    async fn cancelled(&self, since: u64) {
        let mut cancels = self.cancels.subscribe();
        let _ = cancels.wait_for(|count| *count > since).await;
    }

    async fn prompt(
        &self,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        connection: ConnectionTo<Client>,
        since: u64,
    ) -> Result<()> {
        let withdrawn = responder.cancellation();
        // The cancel that ends the running turn ends this prompt, too, although it frees the queue.
        let _turn = tokio::select! {
            biased;
            () = self.cancelled(since) => return responder.respond_with_error(Error::request_cancelled()),
            () = withdrawn.cancelled() => return responder.respond_with_error(Error::request_cancelled()),
            turn = self.queue.lock() => turn,
        };
        let id = self.message_id();
        let content = serde_json::to_value(&request.prompt)?;
        self.send(
            &connection,
            json!({"sessionUpdate": "user_message", "messageId": id, "content": content}),
        )?;
        responder.respond(PromptResponse::new(id))?;
        self.send_state(&connection, "running", json!({}))?;
        let words = content[0]["text"].as_str().unwrap_or_default();
        let work = Work { session: self, connection: &connection, message: self.message_id(), since };
        let stop =
            work.run(words).await.unwrap_or_else(|error| json!({"stopReason": "error", "error": error}));
        let cancelled = *self.cancels.borrow() > since;
        let stop = if cancelled { json!({"stopReason": "cancelled"}) } else { stop };
        self.send_state(&connection, "idle", stop)
    }
}

/// One prompt that runs.
struct Work<'a> {
    session: &'a Session,
    connection: &'a ConnectionTo<Client>,
    message: String,
    since: u64,
}

impl Work<'_> {
    fn say(&self, words: &str) -> Result<()> {
        self.send(json!({"sessionUpdate": "agent_message_chunk", "messageId": self.message, "content": text(words)}))
    }

    fn send(&self, update: Value) -> Result<()> {
        self.session.send(self.connection, update)
    }

    fn tool(&self, id: &str, members: Value) -> Result<()> {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
        update.as_object_mut().unwrap().extend(members.as_object().cloned().unwrap_or_default());
        self.send(update)
    }

    /// The members of the idle state.
    async fn run(&self, prompt: &str) -> Result<Value> {
        let (verb, rest) = prompt.split_once(' ').unwrap_or((prompt, ""));
        match verb {
            "say" => {
                self.say(rest)?;
                self.session.state().history.push((prompt.to_owned(), rest.to_owned()));
            }
            "replace" => {
                self.say("draft")?;
                self.send(json!({"sessionUpdate": "agent_message", "messageId": self.message, "content": [text("final")]}))?;
            }
            "stop" => return Ok(json!({"stopReason": rest})),
            "fail" => return Err(Error::new(-32603, "as asked")),
            "edit" => return self.edit(rest).await,
            "run" => self.terminal()?,
            "forever" => {
                let mut ticks = 0;
                while *self.session.cancels.borrow() == self.since {
                    self.say(&format!("tick {ticks};"))?;
                    ticks += 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            "background" => {
                self.tool("bg-1", json!({"title": "Watch", "kind": "execute", "status": "in_progress"}))?;
                self.session.state().background = Some(json!([{"type": "tool_call", "toolCallId": "bg-1"}]));
                self.session.send_state(self.connection, "running", json!({}))?;
                self.say("started")?;
            }
            "finish" => {
                self.tool("bg-1", json!({"status": "completed"}))?;
                self.session.state().background = Some(json!([]));
                self.session.send_state(self.connection, "running", json!({}))?;
                self.say("finished")?;
            }
            _ => return Ok(json!({"stopReason": "refusal"})),
        }
        Ok(json!({"stopReason": "end_turn"}))
    }

    async fn edit(&self, path: &str) -> Result<Value> {
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let id = format!("edit-{name}");
        let old = std::fs::read_to_string(path).map_err(Error::into_internal_error)?;
        let patch =
            format!("diff --git {path} {path}\n--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n");
        let diff = json!({"type": "diff", "changes": [{"operation": "modify", "path": path, "fileType": "text"}],
            "patch": {"format": "git_patch", "text": patch}});
        self.tool(
            &id,
            json!({"title": format!("Edit {name}"), "kind": "edit", "status": "pending", "content": [diff],
                "locations": [{"path": path, "line": 2}]}),
        )?;
        self.session.send_state(self.connection, "requires_action", json!({}))?;
        let question: RequestPermissionRequest = typed(json!({
            "sessionId": self.session.id, "title": format!("Edit {name}?"),
            "subject": {"type": "tool_call", "toolCall": {"toolCallId": id}},
            "options": [
                {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
                {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
            ],
        }))?;
        let answer = tokio::select! {
            answer = self.connection.send_request(question).block_task() => answer?,
            () = self.session.cancelled(self.since) => {
                self.tool(&id, json!({"status": "cancelled"}))?;
                return Ok(json!({"stopReason": "cancelled"}));
            }
        };
        self.session.send_state(self.connection, "running", json!({}))?;
        let outcome = serde_json::to_value(&answer)?["outcome"].clone();
        if outcome["outcome"] != "selected" || outcome["optionId"] != "allow" {
            let content = json!([{"type": "content", "content": text("not allowed")}]);
            self.tool(&id, json!({"status": "failed", "content": content}))?;
            self.say("denied")?;
        } else {
            self.tool(&id, json!({"status": "in_progress"}))?;
            std::fs::write(path, old.replace("two", "TWO")).map_err(Error::into_internal_error)?;
            self.tool(&id, json!({"status": "completed"}))?;
            self.say("applied")?;
        }
        Ok(json!({"stopReason": "end_turn"}))
    }

    fn terminal(&self) -> Result<()> {
        self.tool("run-1", json!({"title": "Run", "kind": "execute", "status": "in_progress"}))?;
        let terminal = |kind: &str, members: Value| {
            let mut update = json!({"sessionUpdate": kind, "terminalId": "term-1"});
            update.as_object_mut().unwrap().extend(members.as_object().cloned().unwrap_or_default());
            self.send(update)
        };
        terminal("terminal_update", json!({"command": "greet", "cwd": self.session.cwd}))?;
        self.send(json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "run-1",
            "content": {"type": "terminal", "terminalId": "term-1"}}))?;
        // A character in two pieces: "h", the first and the second byte of "ä", a line end.
        terminal("terminal_output_chunk", json!({"data": "aMM="}))?;
        terminal("terminal_output_chunk", json!({"data": "pAo="}))?;
        terminal("terminal_update", json!({"exitStatus": {"exitCode": 3}}))?;
        self.tool("run-1", json!({"status": "failed"}))
    }
}

fn find(sessions: &Sessions, id: &SessionId) -> Result<Session> {
    let id = id.to_string();
    let found = sessions.lock().unwrap().get(&id).cloned();
    found.ok_or_else(|| Error::new(-32002, "session not found").data(json!({"sessionId": id})))
}

/// Whether a request has MCP servers, which this agent does not take.
fn has_servers(request: &Value) -> bool {
    request["mcpServers"].as_array().is_some_and(|servers| !servers.is_empty())
}

/// The agent.
pub fn agent() -> impl ConnectTo<Client> {
    let sessions = Sessions::default();
    let [s1, s2, s3, s4, s5, s6] = std::array::from_fn(|_| sessions.clone());
    Agent
        .v2()
        .name("interop-agent")
        .on_receive_request(
            async move |_: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| {
                responder.respond(typed(json!({"protocolVersion": 2, "capabilities": {"session": {}},
                    "info": {"name": "interop-agent", "version": "1.0.0"}}))?)
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: NewSessionRequest,
                        responder: Responder<NewSessionResponse>,
                        _: ConnectionTo<Client>| {
                if has_servers(&serde_json::to_value(&r)?) {
                    return responder.respond_with_error(Error::invalid_params());
                }
                let mut sessions = s1.lock().unwrap();
                let id = format!("session-{}", sessions.len() + 1);
                let session = Session {
                    id: id.clone(),
                    cwd: serde_json::to_value(&r.cwd)?,
                    state: Arc::default(),
                    queue: Arc::default(),
                    cancels: watch::channel(0).0,
                };
                sessions.insert(id.clone(), session);
                responder.respond(NewSessionResponse::new(id))
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: ListSessionsRequest,
                        responder: Responder<ListSessionsResponse>,
                        _: ConnectionTo<Client>| {
                let request = serde_json::to_value(&r)?;
                // There is only one page.
                if request["cursor"].is_string() {
                    return responder.respond_with_error(Error::invalid_params());
                }
                let is_wanted =
                    |session: &&Session| request["cwd"].is_null() || session.cwd == request["cwd"];
                let listed: Vec<Value> = (s2.lock().unwrap().values())
                    .filter(is_wanted)
                    .map(|session| json!({"sessionId": session.id, "cwd": session.cwd}))
                    .collect();
                responder.respond(typed(json!({"sessions": listed}))?)
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: ResumeSessionRequest,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let session = match find(&s3, &r.session_id) {
                    Ok(session) => session,
                    Err(error) => return responder.respond_with_error(error),
                };
                if has_servers(&serde_json::to_value(&r)?) {
                    return responder.respond_with_error(Error::invalid_params());
                }
                match &r.replay_from {
                    None => {}
                    Some(ReplayFrom::Start(_)) => {
                        let history = session.state().history.clone();
                        for (user, agent) in history {
                            for (kind, words) in [("user_message", user), ("agent_message", agent)] {
                                let id = session.message_id();
                                let content = json!([text(&words)]);
                                session.send(
                                    &connection,
                                    json!({"sessionUpdate": kind, "messageId": id, "content": content}),
                                )?;
                            }
                        }
                    }
                    Some(_) => return responder.respond_with_error(Error::invalid_params()),
                }
                session.state().closed = false;
                session.send_state(&connection, "idle", json!({}))?;
                responder.respond(ResumeSessionResponse::new())
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: CloseSessionRequest,
                        responder: Responder<CloseSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let Ok(session) = find(&s4, &r.session_id) else {
                    return responder.respond(CloseSessionResponse::new());
                };
                session.cancels.send_modify(|count| *count += 1);
                connection.spawn(async move {
                    let _turn = session.queue.lock().await;
                    let mut state = session.state();
                    state.closed = true;
                    state.background = None;
                    responder.respond(CloseSessionResponse::new())
                })
            },
            on_request!(),
        )
        .on_receive_request(
            async move |r: PromptRequest,
                        responder: Responder<PromptResponse>,
                        connection: ConnectionTo<Client>| {
                let session = find(&s5, &r.session_id).and_then(|session| match session.state().closed {
                    true => Err(Error::new(-32002, "session not found")),
                    false => Ok(session.clone()),
                });
                let is_supported = |block: &ContentBlock| {
                    matches!(block, ContentBlock::Text(_) | ContentBlock::ResourceLink(_))
                };
                match session {
                    Ok(_) if !r.prompt.iter().all(is_supported) => {
                        responder.respond_with_error(Error::invalid_params())
                    }
                    Ok(session) => {
                        let (to, since) = (connection.clone(), *session.cancels.borrow());
                        connection.spawn(async move { session.prompt(r, responder, to, since).await })
                    }
                    Err(error) => responder.respond_with_error(error),
                }
            },
            on_request!(),
        )
        .on_receive_notification(
            async move |cancel: CancelSessionNotification, _: ConnectionTo<Client>| {
                if let Ok(session) = find(&s6, &cancel.session_id) {
                    session.cancels.send_modify(|count| *count += 1);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
}
