//! The scenarios, as this client runs them.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use attache::client::{AgentHandle, Event, Session, SessionControl};
use attache::wire::v1::{
    AuthenticateRequest, McpServer, PermissionOptionKind, PromptRequest, SetSessionConfigOptionRequest,
    SetSessionModeRequest,
};
use attache::{Error, Meta, Prompt, Result, SessionId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Echo, Note, Notes, Nothing, NothingAtAll, NothingToTell, brief, reconnect};
use attache_interop_peers::host::{Processes, lock};

pub(crate) const NAMES: &[&str] = &[
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
    "reconnect",
    "logout",
];

pub(crate) struct Scenarios {
    agent: AgentHandle,
    terminals: Processes,
    pings: Arc<Mutex<Vec<String>>>,
    cwd: PathBuf,
}

/// How questions are answered in a turn.
#[derive(Clone, Copy, Default)]
enum Answer {
    #[default]
    Allow,
    Reject,
    /// The turn is cancelled; the SDK sees to the question.
    CancelTurn,
    Accept,
    Agree,
    Decline,
    /// The question is dropped.
    Drop,
}

/// What a turn showed.
pub(crate) struct Seen {
    stop: String,
    events: Vec<String>,
    text: String,
}

pub(crate) struct See<'a>(&'a str);

impl See<'_> {
    pub(crate) fn see(&self, check: &str, got: impl Serialize) {
        println!("{}", json!({"scenario": self.0, "check": check, "got": got}));
    }
}

/// An error by its number, if it has one.
fn code<T>(result: Result<T>) -> Value {
    match result {
        Ok(_) => json!("no error"),
        Err(Error::Refused(error)) => json!(error.code),
        Err(other) => json!(other.to_string()),
    }
}

fn setup(session: &Session) -> Value {
    let modes = session.modes();
    let ids: Vec<String> =
        modes.iter().flat_map(|modes| &modes.available_modes).map(|mode| mode.id.to_string()).collect();
    let current = modes.map(|modes| modes.current_mode_id.to_string());
    json!({"mode": current, "modes": ids, "config": brief::options(&session.config_options())})
}

/// What was replayed. An agent may announce its commands again; whether that has come yet is
/// chance.
fn replayed(events: Vec<String>) -> Vec<String> {
    events.into_iter().filter(|event| !event.starts_with("commands:")).collect()
}

fn answer(event: Event, how: Answer, control: &SessionControl) -> Result<()> {
    match (event, how) {
        (Event::Permission(ask), Answer::Allow) => ask.choose_kind(PermissionOptionKind::AllowOnce),
        (Event::Permission(ask), Answer::Reject) => ask.choose(&"reject".into())?,
        (Event::Permission(_), _) => control.cancel(),
        (Event::Elicitation(ask), Answer::Accept) => {
            let content = [
                ("name", "Ada".to_owned().into()),
                ("age", 36.into()),
                ("role", "admin".to_owned().into()),
                ("sure", true.into()),
            ];
            ask.accept(content).map_err(Error::internal)?;
        }
        (Event::Elicitation(ask), Answer::Agree) => ask.agree().map_err(Error::internal)?,
        (Event::Elicitation(ask), Answer::Decline) => ask.decline(),
        _ => {}
    }
    Ok(())
}

pub(crate) async fn turn(session: &mut Session, prompt: impl Into<Prompt>) -> Result<Seen> {
    turn_with(session, prompt, Answer::default()).await
}

/// Runs one turn and returns what it showed.
async fn turn_with(session: &mut Session, prompt: impl Into<Prompt>, how: Answer) -> Result<Seen> {
    let control = session.control();
    let mut turn = session.prompt(prompt).await?;
    let (mut events, mut text) = (Vec::new(), String::new());
    while let Some(event) = turn.next().await? {
        events.extend(brief::event(&event)?);
        if let Event::Text(piece) = &event {
            text.push_str(piece);
        }
        answer(event, how, &control)?;
    }
    let stop = turn.stop_reason().map_or(String::new(), brief::word);
    Ok(Seen { stop, events, text })
}

pub(crate) async fn said(session: &mut Session, prompt: impl Into<Prompt>) -> Result<String> {
    Ok(turn(session, prompt).await?.text)
}

impl Scenarios {
    pub(crate) fn new(
        agent: AgentHandle,
        terminals: Processes,
        pings: Arc<Mutex<Vec<String>>>,
    ) -> Result<Self> {
        Ok(Scenarios { agent, terminals, pings, cwd: std::env::current_dir()? })
    }

    fn at(&self, name: &str) -> String {
        self.cwd.join(name).display().to_string()
    }

    fn file(&self, name: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.cwd.join(name))?)
    }

    fn open_terminals(&self) -> usize {
        self.terminals.0.load(Ordering::SeqCst)
    }

    /// A new session, when its commands have come.
    async fn fresh(&self) -> Result<Session> {
        self.fresh_in(&self.cwd).await
    }

    async fn fresh_in(&self, cwd: &Path) -> Result<Session> {
        let mut session = self.agent.new_session(cwd).await?;
        commands(&mut session).await?;
        Ok(session)
    }

    /// A prompt without a session of this side.
    async fn stray(&self, id: &SessionId, text: &str) -> Result<()> {
        let request = PromptRequest::new(id.clone(), vec![text.into()]);
        self.agent.request(&request).await.map(drop)
    }

    async fn listed(&self, cwd: &Path) -> Result<Vec<(SessionId, String)>> {
        let listing = self.agent.lister().ok_or(Error::Unsupported("listing"))?;
        let sessions = listing.list().cwd(cwd.display().to_string()).all().await?;
        Ok(sessions.into_iter().map(|info| (info.session_id, info.cwd)).collect())
    }

    pub(crate) async fn run(&self, name: &str) -> Result<()> {
        let out = &See(name);
        match name {
            "initialize" => self.initialize(out),
            "auth" => self.auth(out).await?,
            "new_session" => self.new_session(out).await?,
            "commands" => {
                let mut session = self.agent.new_session(&self.cwd).await?;
                out.see("commands", [commands(&mut session).await?]);
            }
            "text" => {
                let seen = turn(&mut self.fresh().await?, "stream 20").await?;
                out.see("chunks", seen.events.len());
                out.see("text", seen.text);
                out.see("stop", seen.stop);
            }
            "stop_reasons" => {
                let mut session = self.fresh().await?;
                let mut stops = Vec::new();
                for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal"] {
                    stops.push(turn(&mut session, format!("stop {reason}")).await?.stop);
                }
                out.see("stops", stops);
            }
            "thought_plan" => out.see("events", turn(&mut self.fresh().await?, "think").await?.events),
            "info" => out.see("events", turn(&mut self.fresh().await?, "info").await?.events),
            "permission_granted" => self.edit(out, Answer::Allow, "draft.txt").await?,
            "permission_denied" => self.edit(out, Answer::Reject, "kept.txt").await?,
            "fs" => self.fs(out).await?,
            "terminal" => {
                out.see("events", turn(&mut self.fresh().await?, "run").await?.events);
                out.see("open", self.open_terminals());
            }
            "terminal_kill" => {
                out.see("text", said(&mut self.fresh().await?, "runkill").await?);
                out.see("open", self.open_terminals());
            }
            "cancel_streaming" => self.cancel_streaming(out).await?,
            "cancel_permission" => {
                let mut session = self.fresh().await?;
                let seen = turn_with(&mut session, "ask", Answer::CancelTurn).await?;
                out.see("stop", seen.stop);
                out.see("events", seen.events);
                out.see("next", said(&mut session, "say again").await?);
            }
            "load" => self.load(out).await?,
            "list" => self.list(out).await?,
            "resume" => self.resume(out).await?,
            "fork" => self.fork(out).await?,
            "delete" => {
                let gone = self.cwd.join("gone");
                let id = self.fresh_in(&gone).await?.id().clone();
                out.see("before", self.listed(&gone).await?.len());
                self.agent.deleter().ok_or(Error::Unsupported("deleting"))?.delete(id).await?;
                out.see("after", self.listed(&gone).await?.len());
            }
            "set_mode" => self.set_mode(out).await?,
            "set_config_option" => self.set_config_option(out).await?,
            "unknown_method" => {
                let nothing = || json!({}).into();
                out.see("plain", code(self.agent.request(&NothingAtAll(nothing())).await));
                out.see("extension", code(self.agent.request(&Nothing(nothing())).await));
                self.agent.notify(&NothingToTell(nothing())).await?;
                out.see("callback", said(&mut self.fresh().await?, "callback-unknown").await?);
            }
            "extension" => self.extension(out).await?,
            "reconnect" => reconnect::run(&mut self.fresh().await?, out).await?,
            "big" => {
                let mut session = self.fresh().await?;
                out.see("to_agent", said(&mut session, format!("size {}", "x".repeat(5_000_000))).await?);
                let seen = turn(&mut session, "big 5000000").await?;
                let same = seen.text.bytes().all(|byte| byte == b'y');
                out.see("to_client", (seen.events.len(), seen.text.len(), same));
            }
            "parallel" => self.parallel(out).await?,
            "elicitation" => self.elicitation(out).await?,
            "content" => {
                let prompt = Prompt::from("blocks")
                    .image("AAAA", "image/png")
                    .audio("BBBB", "audio/wav")
                    .link("doc", "file:///doc.md")
                    .embed("file:///code.rs", "fn main() {}");
                out.see("events", turn(&mut self.fresh().await?, prompt).await?.events);
            }
            "meta" => {
                let mut session = self.fresh().await?;
                let meta = Meta::new(&json!({"interop.example/trace": "t-42"}))?;
                let mut turn = session.prompt_with("meta", |request| request.meta(meta)).await?;
                out.see("trace", turn.text().await?);
            }
            "errors" => {
                let mut session = self.fresh().await?;
                out.see("fail", code(turn(&mut session, "fail").await));
                out.see("unknown_session", code(self.stray(&"nobody".into(), "say x").await));
                out.see("next", said(&mut session, "say again").await?);
            }
            "cancel_request" => self.cancel_request(out).await?,
            "logout" => {
                let logout = self.agent.logout().ok_or(Error::Unsupported("logging out"))?;
                out.see("logout", code(logout.send().await));
                out.see("after", code(self.agent.new_session(&self.cwd).await));
            }
            other => return Err(Error::internal(format!("no scenario {other}"))),
        }
        Ok(())
    }

    fn initialize(&self, out: &See<'_>) {
        let can = self.agent.capabilities();
        let (prompt, mcp) = (&can.prompt_capabilities, &can.mcp_capabilities);
        let offered = json!(can.session_capabilities);
        let sessions: Vec<&str> = ["close", "fork", "list", "resume"]
            .into_iter()
            .filter(|name| offered[name].is_object())
            .collect();
        out.see("version", self.agent.protocol_version());
        out.see("agent", self.agent.info().map(|info| &info.name));
        out.see(
            "capabilities",
            json!({
                "load": can.load_session,
                "prompt": [prompt.image, prompt.audio, prompt.embedded_context],
                "mcp": [mcp.http, mcp.sse],
                "session": sessions,
            }),
        );
        let methods: Vec<_> = self.agent.auth_methods().iter().map(|method| method.id()).collect();
        out.see("auth_methods", methods);
    }

    async fn auth(&self, out: &See<'_>) -> Result<()> {
        out.see("before", code(self.agent.new_session(&self.cwd).await));
        // The SDK itself would not send a method that was not offered.
        out.see("unknown", code(self.agent.request(&AuthenticateRequest::new("nobody")).await));
        out.see("accepted", code(self.agent.authenticate("pass").await));
        out.see("after", code(self.fresh().await));
        Ok(())
    }

    async fn new_session(&self, out: &See<'_>) -> Result<()> {
        let servers: Vec<McpServer> = serde_json::from_value(json!([
            {"name": "local", "command": "/bin/true", "args": ["--x"], "env": [{"name": "A", "value": "b"}]},
            {"type": "http", "name": "remote", "url": "https://example.com/mcp",
                "headers": [{"name": "X-Key", "value": "k"}]},
        ]))?;
        let mut session = self.agent.new_session(&self.cwd).mcp_servers(servers).await?;
        out.see("setup", setup(&session));
        out.see("mcp", said(&mut session, "mcp").await?);
        Ok(())
    }

    async fn edit(&self, out: &See<'_>, how: Answer, name: &str) -> Result<()> {
        let seen = turn_with(&mut self.fresh().await?, format!("edit {}", self.at(name)), how).await?;
        out.see("events", seen.events);
        out.see("stop", seen.stop);
        out.see("file", self.file(name)?);
        Ok(())
    }

    async fn fs(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        out.see("whole", said(&mut session, format!("read {}", self.at("lines.txt"))).await?);
        out.see("part", said(&mut session, format!("read {} 2 2", self.at("lines.txt"))).await?);
        out.see("missing", said(&mut session, format!("read {}", self.at("nowhere.txt"))).await?);
        out.see("write", said(&mut session, format!("write {} hello", self.at("new.txt"))).await?);
        out.see("file", self.file("new.txt")?);
        Ok(())
    }

    async fn cancel_streaming(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        let mut turn = session.prompt("forever").await?;
        let mut events = Vec::new();
        while let Some(event) = turn.next().await? {
            events.extend(brief::event(&event)?);
            if events.len() == 3 {
                turn.cancel();
            }
        }
        out.see("stop", turn.stop_reason());
        out.see("start", &events[..3]);
        drop(turn);
        out.see("next", said(&mut session, "say again").await?);
        Ok(())
    }

    async fn load(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        turn(&mut session, "say one").await?;
        turn(&mut session, "say two").await?;
        let id = session.id().clone();
        session.close().await?;
        let loader = self.agent.loader().ok_or(Error::Unsupported("loading"))?;
        let mut loading = loader.load(id, &self.cwd).await?;
        let mut events = Vec::new();
        while let Some(event) = loading.next().await? {
            events.extend(brief::event(&event)?);
        }
        let mut session = loading.finish().await?;
        out.see("replay", replayed(events));
        out.see("setup", setup(&session));
        out.see("count", said(&mut session, "count").await?);
        let unknown = loader.load("nobody", &self.cwd).await?;
        out.see("unknown", code(unknown.finish().await));
        Ok(())
    }

    async fn list(&self, out: &See<'_>) -> Result<()> {
        let sub = self.cwd.join("sub");
        let session = self.fresh_in(&sub).await?;
        for _ in 0..6 {
            self.fresh().await?;
        }
        let listing = self.agent.lister().ok_or(Error::Unsupported("listing"))?;
        let (mut pages, mut count, mut ids) = (0, listing.list(), Vec::new());
        while let Some(page) = count.next_page().await? {
            ids.extend(page.into_iter().map(|info| info.session_id.to_string()));
            pages += 1;
        }
        let found = ids.iter().any(|id| *id == session.id().to_string());
        let all = ids.len();
        ids.sort();
        ids.dedup();
        out.see("paged", pages > 1);
        out.see("unique", ids.len() == all);
        out.see("found", found);
        let filtered = self.listed(&sub).await?;
        let filtered = filtered.iter().map(|(id, cwd)| (id == session.id(), cwd.rsplit('/').next()));
        out.see("filtered", filtered.collect::<Vec<_>>());
        Ok(())
    }

    async fn resume(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        turn(&mut session, "say one").await?;
        let id = session.id().clone();
        session.close().await?;
        out.see("closed", code(self.stray(&id, "count").await));
        let resuming = self.agent.resumer().ok_or(Error::Unsupported("resuming"))?;
        let mut session = resuming.resume(id, &self.cwd).await?;
        out.see("setup", setup(&session));
        // Whatever came before the turn is outside of it; the turn itself shows only its own.
        let seen = turn(&mut session, "count").await?;
        let strange = seen.events.iter().filter(|event| !event.starts_with("text:")).cloned();
        out.see("replay", replayed(strange.collect()));
        out.see("count", seen.text);
        Ok(())
    }

    async fn fork(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        turn(&mut session, "say one").await?;
        let forking = self.agent.forker().ok_or(Error::Unsupported("forking"))?;
        let mut fork = forking.fork(session.id().clone(), &self.cwd).await?;
        out.see("new_id", fork.id() != session.id());
        turn(&mut fork, "say two").await?;
        out.see("counts", [said(&mut session, "count").await?, said(&mut fork, "count").await?]);
        Ok(())
    }

    async fn set_mode(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        out.see("set", code(session.control().set_mode("code").await));
        out.see("mode", said(&mut session, "mode").await?);
        out.see("switched", turn(&mut session, "switch ask").await?.events);
        // The SDK itself would not send a mode that was not offered.
        let unknown = SetSessionModeRequest::new(session.id().clone(), "fly");
        out.see("unknown", code(self.agent.request(&unknown).await));
        Ok(())
    }

    async fn set_config_option(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        out.see("set", brief::options(&session.control().set_config_option("model", "deep").await?));
        out.see("config", said(&mut session, "config").await?);
        out.see("changed", turn(&mut session, "reconfigure fast").await?.events);
        // The SDK itself would not send a value that was not offered.
        let unknown = SetSessionConfigOptionRequest::new(session.id().clone(), "model", "huge");
        out.see("unknown", code(self.agent.request(&unknown).await));
        Ok(())
    }

    async fn extension(&self, out: &See<'_>) -> Result<()> {
        let value = json!({"value": [1, "two", null, {"deep": true}]});
        out.see("echo", self.agent.request(&Echo(value.into())).await?);
        for i in 0..3 {
            self.agent.notify(&Note(json!({"i": i}).into())).await?;
        }
        out.see("notes", self.agent.request(&Notes(json!({}).into())).await?);
        out.see("reverse", said(&mut self.fresh().await?, "ext").await?);
        out.see("ping", lock(&self.pings).clone());
        Ok(())
    }

    async fn parallel(&self, out: &See<'_>) -> Result<()> {
        let (mut a, mut b) = (self.fresh().await?, self.fresh().await?);
        let (left, right) = tokio::join!(turn(&mut a, "meet"), turn(&mut b, "meet"));
        let turns = [(a.id(), left?), (b.id(), right?)];
        let own = |id: &SessionId| (0..10).map(|i| format!("{id}/{i};")).collect::<String>();
        out.see("stops", turns.each_ref().map(|(_, seen)| &seen.stop));
        out.see("counts", turns.each_ref().map(|(_, seen)| seen.events.len()));
        out.see("own", turns.each_ref().map(|(id, seen)| seen.text == own(id)));
        Ok(())
    }

    async fn elicitation(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        out.see("accept", turn_with(&mut session, "elicit", Answer::Accept).await?.events);
        out.see("decline", turn_with(&mut session, "elicit", Answer::Decline).await?.text);
        out.see("cancel", turn_with(&mut session, "elicit", Answer::Drop).await?.text);
        let events = turn_with(&mut session, "elicit-url", Answer::Agree).await?.events;
        let is_complete = |event: &String| event.starts_with("elicitation_complete:");
        let (mut complete, url): (Vec<String>, Vec<String>) = events.into_iter().partition(is_complete);
        // It belongs to the connection, whose stream over HTTP has no order with that of the
        // session.
        while complete.is_empty() {
            complete.extend(brief::event(&session.next_update().await?)?.filter(is_complete));
        }
        out.see("url", url);
        out.see("complete", complete);
        Ok(())
    }

    /// A dropped call is taken back. How the agent answers it is seen on the wire.
    async fn cancel_request(&self, out: &See<'_>) -> Result<()> {
        let mut session = self.fresh().await?;
        let request = PromptRequest::new(session.id().clone(), vec!["forever".into()]);
        let call = self.agent.request(&request);
        tokio::select! {
            answer = call => return answer.map(drop),
            tick = session.next_update() => drop(tick?),
        }
        // This side is not notified when the prompt has ended: until then a second one may be
        // refused, and what was under way may still come.
        let mut next = turn(&mut session, "say again").await;
        while matches!(next, Err(Error::Refused(_))) {
            self.agent.request(&Notes(json!({}).into())).await?;
            next = turn(&mut session, "say again").await;
        }
        let events = next?.events.into_iter();
        let said = events.filter_map(|event| event.strip_prefix("text:").map(str::to_owned));
        out.see("next", said.filter(|text| !text.starts_with("tick")).collect::<String>());
        Ok(())
    }
}

/// Waits for the commands of a session.
async fn commands(session: &mut Session) -> Result<String> {
    loop {
        let event = session.next_update().await?;
        if let Event::Commands(_) = event {
            return Ok(brief::event(&event)?.unwrap_or_default());
        }
    }
}
