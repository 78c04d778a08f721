//! The agent that `cargo xtask interop` puts before the official clients. What each prompt does is
//! written in `tests/interop/README.md`; the agents there, on the official SDKs, do the same.

#![allow(clippy::print_stdout, reason = "a server that prints its port")]

mod own_work;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache::agent::{
    Agent, AgentSession, Auth, BackgroundTool, Choice, OpenRequest, OpenedSession, OptionValue,
    SessionHandle, Turn,
};
use attache::http::server::{Options, Server};
use attache::wire::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodId, AvailableCommand, ContentChunk, Cost, ElicitationSchema,
    EmbeddedResourceResource, ListSessionsRequest, ListSessionsResponse, McpServer, PermissionOption,
    PermissionOptionKind, PlanEntry, SessionConfigId, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionInfo, SessionInfoUpdate, SessionMode, SessionModeId, SessionModeState,
    SessionUpdate, Terminal, ToolCallContent, ToolKind, UnstructuredCommandInput,
};
use attache::{ContentBlock, Error, Link, Patch, Prompt, Result, SessionId, StopReason};
use attache_interop_peers::extensions;
use serde_json::json;
use tokio::sync::Barrier;

const PAGE: usize = 5;

extensions! {
    Echo "_interop/echo" request,
    Notes "_interop/notes" request,
    Note "_interop/note" notification,
    Reverse "_interop/reverse" request,
    Nothing "_interop/nothing" request,
    Ping "_interop/ping" notification,
}

/// What is kept of a session when it is closed.
struct Kept {
    id: SessionId,
    cwd: PathBuf,
    /// What the user said and what was answered.
    history: Vec<(String, String)>,
}

/// Everything that the sessions share.
struct SharedState {
    kept: Mutex<Vec<Kept>>,
    notes: Mutex<u32>,
    meeting: Barrier,
}

struct Conversation {
    shared: Arc<SharedState>,
    id: SessionId,
    cwd: PathBuf,
    mcp_servers: Vec<McpServer>,
    handle: SessionHandle,
    mode: Mutex<String>,
    model: Mutex<String>,
    background: Mutex<Option<BackgroundTool>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedState {
    fn history(&self, id: &SessionId) -> Result<Vec<(String, String)>> {
        let kept = lock(&self.kept);
        let found = kept.iter().find(|kept| kept.id == *id);
        found.map(|kept| kept.history.clone()).ok_or_else(|| Error::not_found("there is no such session"))
    }

    /// Opens a session that is new or kept.
    fn open(self: Arc<Self>, request: OpenRequest) -> OpenedSession<Conversation> {
        let select = vec![
            SessionConfigSelectOption::new("fast", "Fast"),
            SessionConfigSelectOption::new("deep", "Deep"),
        ];
        let model = SessionConfigOption::select("model", "Model", "fast", select)
            .category(SessionConfigOptionCategory::Model);
        let modes = vec![SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")];
        let hint = UnstructuredCommandInput::new("query");
        OpenedSession::new(Conversation {
            shared: self,
            id: request.id,
            cwd: request.cwd,
            mcp_servers: request.mcp_servers,
            handle: request.session,
            mode: Mutex::new("ask".to_owned()),
            model: Mutex::new("fast".to_owned()),
            background: Mutex::default(),
        })
        .modes(SessionModeState::new("ask", modes))
        .options(vec![model])
        .commands(vec![
            AvailableCommand::new("plan", "Make a plan"),
            AvailableCommand::new("web", "Search the web").input(Some(hint.into())),
        ])
    }

    fn keep(&self, request: &OpenRequest, history: Vec<(String, String)>) {
        lock(&self.kept).push(Kept { id: request.id.clone(), cwd: request.cwd.clone(), history });
    }

    fn list(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse> {
        let kept = lock(&self.kept);
        let wanted = request.cwd.as_ref().map(PathBuf::from);
        let every: Vec<&Kept> =
            kept.iter().filter(|kept| wanted.as_ref().is_none_or(|cwd| *cwd == kept.cwd)).collect();
        let start: usize = match &request.cursor {
            Some(cursor) => cursor.parse().map_err(|_| Error::invalid_params("no such cursor"))?,
            None => 0,
        };
        let page = every.iter().skip(start).take(PAGE).map(|kept| {
            let title = kept.history.first().map(|(user, _)| user.clone());
            SessionInfo::new(kept.id.clone(), kept.cwd.display().to_string()).title(title)
        });
        let next = (start + PAGE < every.len()).then(|| (start + PAGE).to_string());
        Ok(ListSessionsResponse::new(page.collect::<Vec<_>>()).next_cursor(next))
    }
}

struct Pass;

impl Auth for Pass {
    fn methods(&self) -> Vec<AuthMethod> {
        let method = AuthMethodAgent::new("pass", "Pass").description("Lets everybody in".to_owned());
        vec![method.into()]
    }

    async fn login(&self, _: &AuthMethodId, _: &attache::agent::ClientHandle) -> Result<()> {
        Ok(())
    }
}

impl AgentSession for Conversation {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.blocks().first().and_then(ContentBlock::as_text).unwrap_or_default();
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        match verb {
            "say" => {
                turn.say(rest).await?;
                let mut kept = lock(&self.shared.kept);
                if let Some(kept) = kept.iter_mut().find(|kept| kept.id == self.id) {
                    kept.history.push((text.to_owned(), rest.to_owned()));
                }
            }
            "count" => turn.say(self.shared.history(&self.id)?.len().to_string()).await?,
            "stream" => {
                for i in 0..number(rest)? {
                    turn.say(format!("{i}:é\u{2028}😀;")).await?;
                }
            }
            "stop" => return Ok(serde_json::from_value(json!(rest))?),
            "think" => think(turn).await?,
            "edit" if turn.write_files().is_none() => own_work::edit(turn, rest).await?,
            "edit" => edit(turn, rest).await?,
            "read" => read(turn, rest).await?,
            "write" => {
                let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
                turn.write_files().ok_or(Error::Unsupported("writing files"))?.write(path, content).await?;
                turn.say("written").await?;
            }
            "run" if turn.terminals().is_none() => own_work::run(turn, &self.cwd).await?,
            "run" => self.run(turn).await?,
            "replace" => own_work::replace(turn).await?,
            "background" => {
                let work = own_work::background(turn).await?;
                *lock(&self.background) = Some(work);
            }
            "finish" => {
                let work = lock(&self.background).take();
                own_work::finish(turn, work).await?;
            }
            "runkill" => run_and_kill(turn).await?,
            "forever" => {
                for i in 0.. {
                    turn.say(format!("tick {i};")).await?;
                    turn.until_cancelled(tokio::time::sleep(Duration::from_millis(5))).await?;
                }
            }
            "ask" => {
                let tool = turn.tool("Ask").id("ask-1").start().await?;
                // What is open at the end of a turn is reported as failed by itself.
                if turn.ask(&tool, options()).await? == Choice::Undecided {
                    return Ok(StopReason::Cancelled);
                }
            }
            "mode" => {
                let mode = lock(&self.mode).clone();
                turn.say(mode).await?;
            }
            "switch" => {
                self.handle.set_mode(rest.to_owned()).await?;
                *lock(&self.mode) = rest.to_owned();
            }
            "config" => {
                let model = lock(&self.model).clone();
                turn.say(model).await?;
            }
            "reconfigure" => {
                self.handle.set_option("model", OptionValue::Choice(rest.to_owned())).await?;
                *lock(&self.model) = rest.to_owned();
            }
            "callback-unknown" => {
                match turn.client().request(&Nothing(json!({}).into())).await {
                    Ok(_) => turn.say("no error").await?,
                    Err(error) => turn.say(format!("error {}", error.to_wire().code)).await?,
                };
            }
            "ext" => {
                turn.client().notify(&Ping(json!({"n": 1}).into())).await?;
                let answer = turn.client().request(&Reverse(json!({"text": "abc"}).into())).await?;
                turn.say(answer["text"].as_str().unwrap_or("no text")).await?;
            }
            "size" => turn.say(rest.len().to_string()).await?,
            "big" => turn.say("y".repeat(number(rest)?)).await?,
            "meta" => {
                let trace = turn.meta().and_then(|meta| meta.get::<String>("interop.example/trace"));
                turn.say(trace.unwrap_or_default()).await?;
            }
            "meet" => {
                // The first to come waits for the second: only turns that run side by side get
                // through.
                turn.until_cancelled(self.shared.meeting.wait()).await?;
                for i in 0..10 {
                    turn.say(format!("{}/{i};", self.id)).await?;
                    tokio::task::yield_now().await;
                }
            }
            "elicit" => elicit(turn).await?,
            "elicit-url" => {
                let links = turn.links().ok_or(Error::Unsupported("links"))?;
                let answer = links.ask("Please sign in", "link-1", "https://example.com/sign-in").await?;
                links.complete("link-1").await?;
                turn.say(answer.action.as_str()).await?;
            }
            "blocks" => {
                let briefs: Vec<String> = prompt.blocks().iter().map(brief).collect();
                turn.say(briefs.join(" ")).await?;
                for block in &prompt.blocks()[1..] {
                    turn.show(block.clone()).await?;
                }
            }
            "info" => {
                let info = SessionInfoUpdate::new()
                    .title(Patch::from("A fine title"))
                    .updated_at(Patch::from("2026-01-02T03:04:05Z"));
                turn.send(info.into()).await?;
                turn.report_usage(1200, 200_000, Some(Cost::new(0.25, "USD"))).await?;
            }
            "mcp" => {
                let names = self.mcp_servers.iter().map(|server| match server {
                    McpServer::Http(server) => format!("{}=http", server.name),
                    McpServer::Sse(server) => format!("{}=sse", server.name),
                    other => format!("{}=stdio", other.name()),
                });
                turn.say(names.collect::<Vec<_>>().join(",")).await?;
            }
            "fail" => return Err(Error::internal("as asked")),
            _ => return Err(Error::invalid_params(format!("no such prompt: {verb}"))),
        }
        Ok(StopReason::EndTurn)
    }

    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        *lock(&self.mode) = mode.to_string();
        Ok(())
    }

    async fn option_changed(&self, _: &SessionConfigId, value: &OptionValue) -> Result<()> {
        if let OptionValue::Choice(value) = value {
            lock(&self.model).clone_from(value);
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<usize> {
    text.parse().map_err(|_| Error::invalid_params("no number"))
}

fn options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ]
}

async fn think(turn: Turn<'_>) -> Result<()> {
    turn.think("hm, ").await?;
    turn.think("let me see").await?;
    for (look, leap) in [("pending", "pending"), ("completed", "in_progress")] {
        let entries: Vec<PlanEntry> = serde_json::from_value(json!([
            {"content": "look", "priority": "high", "status": look},
            {"content": "leap", "priority": "low", "status": leap},
        ]))?;
        turn.plan(entries).await?;
    }
    turn.say("done").await
}

async fn edit(turn: Turn<'_>, path: &str) -> Result<()> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let old = turn.read_files().ok_or(Error::Unsupported("reading files"))?.read(path).await?;
    let new = old.replacen("two", "TWO", 1);
    let tool = turn
        .tool(format!("Edit {name}"))
        .id(format!("edit-{name}"))
        .kind(ToolKind::Edit)
        .location(path, Some(2))
        .input(json!({"path": path}))
        .start()
        .await?;
    if !turn.ask(&tool, options()).await?.is_allowed() {
        tool.fail("not allowed").await?;
        return turn.say("denied").await;
    }
    tool.run().await?;
    turn.write_files().ok_or(Error::Unsupported("writing files"))?.write(path, &new).await?;
    tool.complete([attache::Edit::modify(path, old, new).into()]).await?;
    turn.say("applied").await
}

async fn read(turn: Turn<'_>, rest: &str) -> Result<()> {
    let mut words = rest.split(' ');
    let path = words.next().unwrap_or_default();
    let mut window = words.map(|word| word.parse().ok());
    let (line, limit) = (window.next().flatten(), window.next().flatten());
    let files = turn.read_files().ok_or(Error::Unsupported("reading files"))?;
    match files.read_lines(path, line, limit).await {
        Ok(content) => turn.say(content.trim_end()).await,
        Err(error) => turn.say(format!("error {}", error.to_wire().code)).await,
    }
}

impl Conversation {
    async fn run(&self, turn: Turn<'_>) -> Result<()> {
        let terminal = turn
            .terminals()
            .ok_or(Error::Unsupported("terminals"))?
            .command("sh")
            .args(["-c", r#"printf "$GREETING\ntwo\n"; exit 3"#])
            .env("GREETING", "one")
            .cwd(&self.cwd)
            .output_limit(1000)
            .start()
            .await?;
        let content = ToolCallContent::Terminal(Terminal::new(terminal.id().clone()));
        let tool = turn.tool("Run").id("run-1").kind(ToolKind::Execute).content(content).start().await?;
        tool.run().await?;
        let exit = terminal.wait().await?;
        let shown = terminal.output().await?;
        terminal.release().await?;
        tool.complete([]).await?;
        let code = |code: Option<u32>| code.map_or("none".to_owned(), |code| code.to_string());
        let (first, second) =
            (code(exit.exit_code), code(shown.exit_status.and_then(|status| status.exit_code)));
        let (truncated, output) = (shown.truncated, json!(shown.output));
        turn.say(format!("exit {first}/{second} truncated {truncated} output {output}")).await
    }
}

async fn run_and_kill(turn: Turn<'_>) -> Result<()> {
    let terminals = turn.terminals().ok_or(Error::Unsupported("terminals"))?;
    let terminal = terminals.command("sleep").args(["600"]).start().await?;
    terminal.kill().await?;
    let exit = terminal.wait().await?;
    let ended = terminal.output().await?.exit_status.is_some();
    terminal.release().await?;
    turn.say(if exit.exit_code != Some(0) && ended { "killed" } else { "alive" }).await
}

async fn elicit(turn: Turn<'_>) -> Result<()> {
    let schema: ElicitationSchema = serde_json::from_value(json!({
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
    }))?;
    let answer = turn.forms().ok_or(Error::Unsupported("forms"))?.ask("Who are you?", schema).await?;
    let raw = serde_json::to_value(&answer)?;
    let mut words = vec![answer.action.as_str().to_owned()];
    let mut fields: Vec<String> = raw["content"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| match value.as_str() {
            Some(text) => format!("{key}={text}"),
            None => format!("{key}={value}"),
        })
        .collect();
    fields.sort();
    words.extend(fields);
    turn.say(words.join(" ")).await
}

fn brief(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(_) => "text".to_owned(),
        ContentBlock::Image(c) => format!("image({},{})", c.mime_type, c.data),
        ContentBlock::Audio(c) => format!("audio({},{})", c.mime_type, c.data),
        ContentBlock::ResourceLink(c) => format!("resource_link({},{})", c.name, c.uri),
        ContentBlock::Resource(c) => match &c.resource {
            EmbeddedResourceResource::Text(r) => format!("resource({},{})", r.uri, r.text),
            EmbeddedResourceResource::Blob(r) => format!("resource({})", r.uri),
            _ => "resource".to_owned(),
        },
        _ => "other".to_owned(),
    }
}

/// Sends a kept conversation to a client that loads it.
async fn replay(session: &SessionHandle, history: Vec<(String, String)>) -> Result<()> {
    for (user, text) in history {
        session.send(SessionUpdate::UserMessageChunk(ContentChunk::new(user))).await?;
        session.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(text))).await?;
    }
    Ok(())
}

/// Serves stdin and stdout, with `--v1` clients of version 1 only, or with `--http` WebSocket and
/// Streamable HTTP on a port, which it prints.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let shared =
        Arc::new(SharedState { kept: Mutex::default(), notes: Mutex::default(), meeting: Barrier::new(2) });
    let [new, load, resume, fork, list, delete, note, notes] = std::array::from_fn(|_| Arc::clone(&shared));
    let agent = Agent::new(move |request: OpenRequest| {
        let shared = Arc::clone(&new);
        async move {
            shared.keep(&request, Vec::new());
            Ok(shared.open(request))
        }
    })
    .info("interop-agent", "1.0.0")
    .images()
    .audio()
    .embedded_context()
    .mcp_over_http()
    .mcp_over_sse()
    .auth(Pass)
    .logout(|| async { Ok(()) })
    .load(move |request| {
        let shared = Arc::clone(&load);
        async move {
            replay(&request.session, shared.history(&request.id)?).await?;
            Ok(shared.open(request))
        }
    })
    .resume(move |request| {
        let shared = Arc::clone(&resume);
        async move {
            shared.history(&request.id)?;
            Ok(shared.open(request))
        }
    })
    .fork(move |source, request| {
        let shared = Arc::clone(&fork);
        async move {
            shared.keep(&request, shared.history(&source)?);
            Ok(shared.open(request))
        }
    })
    .list(move |request| {
        let shared = Arc::clone(&list);
        async move { shared.list(&request) }
    })
    .delete(move |id| {
        lock(&delete.kept).retain(|kept| kept.id != id);
        async { Ok(()) }
    })
    .on_request(|Echo(params), _| async move { Ok(params.parse()?) })
    .on_notification(move |Note(_), _| *lock(&note.notes) += 1)
    .on_request(move |Notes(_), _| {
        let count = *lock(&notes.notes);
        async move { Ok(json!({"count": count})) }
    });
    let flag = std::env::args().nth(1);
    if flag.as_deref() == Some("--v1") {
        return agent.serve(Link::stdio()).await;
    }
    let agent = agent.protocol_v2();
    if flag.as_deref() != Some("--http") {
        return agent.serve(Link::stdio()).await;
    }
    let server = Server::bind("127.0.0.1:0", Options::default()).await?;
    println!("{}", server.local_addr().port());
    agent.serve_clients(server).await
}
