//! The scenarios, as this client runs them.

use std::path::{Path, PathBuf};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{Agent, Error, Result, UntypedMessage};
use interop_rust_peer::{Echo, Note, Notes, number};
use serde::Serialize;
use serde_json::{Value, json};

use crate::host::{Host, Permission, options};

pub const NAMES: &[&str] = &[
    "initialize",
    "auth",
    "new_session",
    "commands",
    "text",
    "stop_reasons",
    "thought_plan",
    "permission_granted",
    "permission_denied",
    "fs",
    "terminal",
    "terminal_kill",
    "cancel_streaming",
    "cancel_permission",
    "load",
    "list",
    "resume",
    "fork",
    "delete",
    "set_mode",
    "set_config_option",
    "unknown_method",
    "extension",
    "big",
    "parallel",
    "elicitation",
    "content",
    "info",
    "meta",
    "errors",
    "cancel_request",
    "logout",
];

/// Prints observations of one scenario.
pub struct See(pub &'static str);

impl See {
    pub fn see(&self, check: &str, got: impl Serialize) {
        println!("{}", json!({"scenario": self.0, "check": check, "got": got}));
    }
}

pub struct Scenarios {
    agent: ConnectionTo<Agent>,
    host: Host,
    cwd: PathBuf,
}

pub struct Turn {
    stop: Value,
    events: Vec<String>,
    text: String,
}

fn code<T>(result: Result<T>) -> Value {
    match result {
        Ok(_) => json!("no error"),
        Err(error) => json!(number(&error)),
    }
}

fn setup(response: impl Serialize) -> Result<Value> {
    let r = serde_json::to_value(response)?;
    let modes: Vec<&Value> =
        r["modes"]["availableModes"].as_array().into_iter().flatten().map(|m| &m["id"]).collect();
    Ok(json!({"mode": r["modes"]["currentModeId"], "modes": modes, "config": options(&r["configOptions"])}))
}

/// What was replayed. An agent may announce its commands again; whether that has come yet is
/// chance.
fn replayed(mut log: Vec<String>, from: usize) -> Vec<String> {
    log.drain(from..).filter(|e| !e.starts_with("commands:")).collect()
}

fn file(name: &str) -> Result<String> {
    std::fs::read_to_string(name).map_err(Error::into_internal_error)
}

impl Scenarios {
    pub fn new(agent: ConnectionTo<Agent>, host: Host) -> Self {
        Self { agent, host, cwd: std::env::current_dir().unwrap_or_default() }
    }

    async fn open(&self, request: NewSessionRequest) -> Result<NewSessionResponse> {
        let response = self.agent.send_request(request).block_task().await?;
        self.host.until(&response.session_id.0, |log| log.iter().any(|e| e.starts_with("commands:"))).await;
        Ok(response)
    }

    pub async fn fresh(&self) -> Result<SessionId> {
        Ok(self.open(NewSessionRequest::new(self.cwd.clone())).await?.session_id)
    }

    pub async fn turn(&self, id: &SessionId, text: impl Into<String>) -> Result<Turn> {
        self.turn_with(PromptRequest::new(
            id.clone(),
            vec![ContentBlock::Text(TextContent::new(text.into()))],
        ))
        .await
    }

    /// Runs one turn and returns what it showed.
    async fn turn_with(&self, request: PromptRequest) -> Result<Turn> {
        let id = request.session_id.clone();
        let from = self.host.log(&id.0).len();
        let response = self.agent.send_request(request).block_task().await?;
        let events = self.host.log(&id.0).split_off(from);
        let text = events.iter().filter_map(|e| e.strip_prefix("text:")).collect();
        Ok(Turn { stop: json!(response.stop_reason), events, text })
    }

    pub async fn text(&self, id: &SessionId, prompt: impl Into<String>) -> Result<String> {
        Ok(self.turn(id, prompt).await?.text)
    }

    async fn close(&self, id: &SessionId) -> Result<()> {
        self.agent.send_request(CloseSessionRequest::new(id.clone())).block_task().await.map(|_| ())
    }

    async fn listed(&self, cwd: &Path) -> Result<Vec<SessionInfo>> {
        let request = ListSessionsRequest::new().cwd(cwd.to_owned());
        Ok(self.agent.send_request(request).block_task().await?.sessions)
    }

    pub async fn ticks(&self, id: &SessionId, n: usize) {
        self.host.until(&id.0, |log| log.iter().filter(|e| e.starts_with("text:tick")).count() >= n).await;
    }

    pub async fn run(&self, name: &str, out: &See) -> Result<()> {
        match name {
            "initialize" => self.initialize(out).await,
            "auth" => self.auth(out).await,
            "new_session" => self.new_session(out).await,
            "commands" => {
                let log = self.host.log(&self.fresh().await?.0);
                out.see("commands", log.iter().filter(|e| e.starts_with("commands:")).collect::<Vec<_>>());
                Ok(())
            }
            "text" => {
                let t = self.turn(&self.fresh().await?, "stream 20").await?;
                out.see("chunks", t.events.len());
                out.see("text", t.text);
                out.see("stop", t.stop);
                Ok(())
            }
            "stop_reasons" => {
                let id = self.fresh().await?;
                let mut stops = Vec::new();
                for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal"] {
                    stops.push(self.turn(&id, format!("stop {reason}")).await?.stop);
                }
                out.see("stops", stops);
                Ok(())
            }
            "thought_plan" => self.events(out, "think").await,
            "info" => self.events(out, "info").await,
            "permission_granted" => self.edit(out, Permission::Allow, "draft.txt").await,
            "permission_denied" => self.edit(out, Permission::Reject, "kept.txt").await,
            "fs" => self.fs(out).await,
            "terminal" => {
                self.events(out, "run").await?;
                out.see("open", self.host.open_terminals());
                Ok(())
            }
            "terminal_kill" => {
                out.see("text", self.text(&self.fresh().await?, "runkill").await?);
                out.see("open", self.host.open_terminals());
                Ok(())
            }
            "cancel_streaming" => self.cancel_streaming(out).await,
            "cancel_permission" => {
                let id = self.fresh().await?;
                self.host.answer_permission(Permission::Cancel);
                let t = self.turn(&id, "ask").await?;
                out.see("stop", t.stop);
                out.see("events", t.events);
                out.see("next", self.text(&id, "say again").await?);
                Ok(())
            }
            "load" => self.load(out).await,
            "list" => self.list(out).await,
            "resume" => self.resume(out).await,
            "fork" => self.fork(out).await,
            "delete" => {
                let gone = self.cwd.join("gone");
                let id = self.open(NewSessionRequest::new(gone.clone())).await?.session_id;
                out.see("before", self.listed(&gone).await?.len());
                self.agent.send_request(DeleteSessionRequest::new(id)).block_task().await?;
                out.see("after", self.listed(&gone).await?.len());
                Ok(())
            }
            "set_mode" => self.set_mode(out).await,
            "set_config_option" => self.set_config_option(out).await,
            "unknown_method" => {
                for (check, method) in [("plain", "interop/nothing"), ("extension", "_interop/nothing")] {
                    let request = UntypedMessage::new(method, json!({}))?;
                    out.see(check, code(self.agent.send_request(request).block_task().await));
                }
                self.agent.send_notification(UntypedMessage::new("_interop/nothing", json!({}))?)?;
                out.see("callback", self.text(&self.fresh().await?, "callback-unknown").await?);
                Ok(())
            }
            "extension" => self.extension(out).await,
            "big" => {
                let id = self.fresh().await?;
                out.see("to_agent", self.text(&id, format!("size {}", "x".repeat(5_000_000))).await?);
                let t = self.turn(&id, "big 5000000").await?;
                let same = t.text.bytes().all(|b| b == b'y');
                out.see("to_client", (t.events.len(), t.text.len(), same));
                Ok(())
            }
            "parallel" => self.parallel(out).await,
            "elicitation" => self.elicitation(out).await,
            "content" => self.content(out).await,
            "meta" => {
                let id = self.fresh().await?;
                let text = vec![ContentBlock::Text(TextContent::new("meta"))];
                let meta: Meta = serde_json::from_value(json!({"interop.example/trace": "t-42"}))?;
                out.see("trace", self.turn_with(PromptRequest::new(id, text).meta(meta)).await?.text);
                Ok(())
            }
            "errors" => {
                let id = self.fresh().await?;
                out.see("fail", code(self.turn(&id, "fail").await));
                out.see("unknown_session", code(self.turn(&SessionId::new("nobody"), "say x").await));
                out.see("next", self.text(&id, "say again").await?);
                Ok(())
            }
            "cancel_request" => {
                let id = self.fresh().await?;
                let forever =
                    PromptRequest::new(id.clone(), vec![ContentBlock::Text(TextContent::new("forever"))]);
                let sent = self.agent.send_request(forever);
                self.ticks(&id, 1).await;
                sent.cancel()?;
                // How the prompt is answered is seen on the wire; some clients give the answer up.
                let _ = sent.block_task().await;
                out.see("next", self.text(&id, "say again").await?);
                Ok(())
            }
            "logout" => {
                out.see("logout", code(self.agent.send_request(LogoutRequest::new()).block_task().await));
                let again = self.agent.send_request(NewSessionRequest::new(self.cwd.clone()));
                out.see("after", code(again.block_task().await));
                Ok(())
            }
            other => Err(Error::internal_error().data(json!(format!("no scenario {other}")))),
        }
    }

    async fn events(&self, out: &See, prompt: &str) -> Result<()> {
        out.see("events", self.turn(&self.fresh().await?, prompt).await?.events);
        Ok(())
    }

    async fn initialize(&self, out: &See) -> Result<()> {
        let capabilities: ClientCapabilities = serde_json::from_value(json!({
            "fs": {"readTextFile": true, "writeTextFile": true},
            "terminal": true,
            "elicitation": {"form": {}, "url": {}},
        }))?;
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_info(Implementation::new("interop-client", "1.0.0"))
            .client_capabilities(capabilities);
        let r = self.agent.send_request(request).block_task().await?;
        let c = &r.agent_capabilities;
        let sessions = serde_json::to_value(&c.session_capabilities)?;
        let sessions: Vec<&str> =
            ["close", "fork", "list", "resume"].into_iter().filter(|k| sessions[k].is_object()).collect();
        let p = &c.prompt_capabilities;
        out.see("version", &r.protocol_version);
        out.see("agent", r.agent_info.as_ref().map(|i| &i.name));
        out.see(
            "capabilities",
            json!({
                "load": c.load_session,
                "prompt": [p.image, p.audio, p.embedded_context],
                "mcp": [c.mcp_capabilities.http, c.mcp_capabilities.sse],
                "session": sessions,
            }),
        );
        let methods = serde_json::to_value(&r.auth_methods)?;
        out.see(
            "auth_methods",
            methods.as_array().into_iter().flatten().map(|m| &m["id"]).collect::<Vec<_>>(),
        );
        Ok(())
    }

    async fn auth(&self, out: &See) -> Result<()> {
        let enter = NewSessionRequest::new(self.cwd.clone());
        out.see("before", code(self.agent.send_request(enter.clone()).block_task().await));
        for (check, method) in [("unknown", "nobody"), ("accepted", "pass")] {
            out.see(
                check,
                code(self.agent.send_request(AuthenticateRequest::new(method)).block_task().await),
            );
        }
        out.see("after", code(self.open(enter).await));
        Ok(())
    }

    async fn new_session(&self, out: &See) -> Result<()> {
        let servers: Vec<McpServer> = serde_json::from_value(json!([
            {"name": "local", "command": "/bin/true", "args": ["--x"], "env": [{"name": "A", "value": "b"}]},
            {"type": "http", "name": "remote", "url": "https://example.com/mcp", "headers": [{"name": "X-Key", "value": "k"}]},
        ]))?;
        let r = self.open(NewSessionRequest::new(self.cwd.clone()).mcp_servers(servers)).await?;
        out.see("setup", setup(&r)?);
        out.see("mcp", self.text(&r.session_id, "mcp").await?);
        Ok(())
    }

    async fn edit(&self, out: &See, answer: Permission, name: &str) -> Result<()> {
        self.host.answer_permission(answer);
        let t = self.turn(&self.fresh().await?, format!("edit {}", self.cwd.join(name).display())).await?;
        out.see("events", t.events);
        out.see("stop", t.stop);
        out.see("file", file(name)?);
        Ok(())
    }

    async fn fs(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        let at = |name: &str| self.cwd.join(name).display().to_string();
        out.see("whole", self.text(&id, format!("read {}", at("lines.txt"))).await?);
        out.see("part", self.text(&id, format!("read {} 2 2", at("lines.txt"))).await?);
        out.see("missing", self.text(&id, format!("read {}", at("nowhere.txt"))).await?);
        out.see("write", self.text(&id, format!("write {} hello", at("new.txt"))).await?);
        out.see("file", file("new.txt")?);
        Ok(())
    }

    async fn cancel_streaming(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        let cancel = async {
            self.ticks(&id, 3).await;
            self.agent.send_notification(CancelNotification::new(id.clone()))
        };
        let (turn, cancelled) = tokio::join!(self.turn(&id, "forever"), cancel);
        cancelled?;
        let t = turn?;
        out.see("stop", t.stop);
        out.see("start", &t.events[..3]);
        out.see("next", self.text(&id, "say again").await?);
        Ok(())
    }

    async fn load(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        self.turn(&id, "say one").await?;
        self.turn(&id, "say two").await?;
        self.close(&id).await?;
        let from = self.host.log(&id.0).len();
        let r = self
            .agent
            .send_request(LoadSessionRequest::new(id.clone(), self.cwd.clone()))
            .block_task()
            .await?;
        out.see("replay", replayed(self.host.log(&id.0), from));
        out.see("setup", setup(&r)?);
        out.see("count", self.text(&id, "count").await?);
        let unknown = LoadSessionRequest::new("nobody", self.cwd.clone());
        out.see("unknown", code(self.agent.send_request(unknown).block_task().await));
        Ok(())
    }

    async fn list(&self, out: &See) -> Result<()> {
        let sub = self.cwd.join("sub");
        let id = self.open(NewSessionRequest::new(sub.clone())).await?.session_id;
        for _ in 0..6 {
            self.fresh().await?;
        }
        let (mut ids, mut pages, mut cursor) = (Vec::new(), 0, None);
        while pages == 0 || cursor.is_some() {
            let request = ListSessionsRequest::new().cursor(cursor.take());
            let r = self.agent.send_request(request).block_task().await?;
            ids.extend(r.sessions.into_iter().map(|s| s.session_id));
            cursor = r.next_cursor;
            pages += 1;
        }
        let mut unique = ids.clone();
        unique.sort_by(|a, b| a.0.cmp(&b.0));
        unique.dedup();
        out.see("paged", pages > 1);
        out.see("unique", unique.len() == ids.len());
        out.see("found", ids.contains(&id));
        let filtered = self.listed(&sub).await?;
        let filtered =
            filtered.iter().map(|s| (s.session_id == id, s.cwd.file_name().map(|n| n.to_string_lossy())));
        out.see("filtered", filtered.collect::<Vec<_>>());
        Ok(())
    }

    /// Resumes a session on a new connection.
    pub async fn resume_again(&self, id: &SessionId) -> Result<()> {
        let request = ResumeSessionRequest::new(id.clone(), self.cwd.clone());
        self.agent.send_request(request).block_task().await.map(drop)
    }

    async fn resume(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        self.turn(&id, "say one").await?;
        self.close(&id).await?;
        out.see("closed", code(self.turn(&id, "count").await));
        let from = self.host.log(&id.0).len();
        let r = self
            .agent
            .send_request(ResumeSessionRequest::new(id.clone(), self.cwd.clone()))
            .block_task()
            .await?;
        out.see("setup", setup(&r)?);
        out.see("replay", replayed(self.host.log(&id.0), from));
        out.see("count", self.text(&id, "count").await?);
        Ok(())
    }

    async fn fork(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        self.turn(&id, "say one").await?;
        let r = self
            .agent
            .send_request(ForkSessionRequest::new(id.clone(), self.cwd.clone()))
            .block_task()
            .await?;
        out.see("new_id", r.session_id != id);
        self.turn(&r.session_id, "say two").await?;
        out.see("counts", [self.text(&id, "count").await?, self.text(&r.session_id, "count").await?]);
        Ok(())
    }

    async fn set_mode(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        let set =
            |mode: &str| self.agent.send_request(SetSessionModeRequest::new(id.clone(), mode.to_owned()));
        out.see("set", code(set("code").block_task().await));
        out.see("mode", self.text(&id, "mode").await?);
        out.see("switched", self.turn(&id, "switch ask").await?.events);
        out.see("unknown", code(set("fly").block_task().await));
        Ok(())
    }

    async fn set_config_option(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        let set = |value: &str| {
            let request = json!({"sessionId": id, "configId": "model", "value": value});
            Ok::<_, Error>(
                self.agent.send_request(serde_json::from_value::<SetSessionConfigOptionRequest>(request)?),
            )
        };
        let r = serde_json::to_value(set("deep")?.block_task().await?)?;
        out.see("set", options(&r["configOptions"]));
        out.see("config", self.text(&id, "config").await?);
        out.see("changed", self.turn(&id, "reconfigure fast").await?.events);
        out.see("unknown", code(set("huge")?.block_task().await));
        Ok(())
    }

    async fn extension(&self, out: &See) -> Result<()> {
        let value = json!([1, "two", null, {"deep": true}]);
        out.see("echo", self.agent.send_request(Echo { value }).block_task().await?);
        for i in 0..3 {
            self.agent.send_notification(Note { i })?;
        }
        out.see("notes", self.agent.send_request(Notes {}).block_task().await?);
        let from = self.host.log("").len();
        out.see("reverse", self.text(&self.fresh().await?, "ext").await?);
        self.host.until("", |log| log.len() > from).await;
        out.see("ping", self.host.log("").split_off(from));
        Ok(())
    }

    async fn parallel(&self, out: &See) -> Result<()> {
        let (a, b) = (self.fresh().await?, self.fresh().await?);
        let (left, right) = tokio::join!(self.turn(&a, "meet"), self.turn(&b, "meet"));
        let turns = [(a, left?), (b, right?)];
        out.see("stops", turns.each_ref().map(|(_, t)| &t.stop));
        out.see("counts", turns.each_ref().map(|(_, t)| t.events.len()));
        let own = |id: &SessionId| (0..10).map(|i| format!("{}/{i};", id.0)).collect::<String>();
        out.see("own", turns.each_ref().map(|(id, t)| t.text == own(id)));
        Ok(())
    }

    async fn elicitation(&self, out: &See) -> Result<()> {
        let id = self.fresh().await?;
        let answers = json!({"name": "Ada", "age": 36, "role": "admin", "sure": true});
        self.host.answer_elicitation(json!({"action": "accept", "content": answers}));
        out.see("accept", self.turn(&id, "elicit").await?.events);
        for action in ["decline", "cancel"] {
            self.host.answer_elicitation(json!({"action": action}));
            out.see(action, self.text(&id, "elicit").await?);
        }
        self.host.answer_elicitation(json!({"action": "accept"}));
        let from = self.host.log("").len();
        out.see("url", self.turn(&id, "elicit-url").await?.events);
        self.host.until("", |log| log.len() > from).await;
        out.see("complete", self.host.log("").split_off(from));
        Ok(())
    }

    async fn content(&self, out: &See) -> Result<()> {
        let blocks: Vec<ContentBlock> = serde_json::from_value(json!([
            {"type": "text", "text": "blocks"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "audio", "mimeType": "audio/wav", "data": "BBBB"},
            {"type": "resource_link", "name": "doc", "uri": "file:///doc.md"},
            {"type": "resource", "resource": {"uri": "file:///code.rs", "mimeType": "text/rust", "text": "fn main() {}"}},
        ]))?;
        let t = self.turn_with(PromptRequest::new(self.fresh().await?, blocks)).await?;
        out.see("events", t.events);
        Ok(())
    }
}
