//! A real agent, and a peer that plays the client.

use std::sync::Arc;

use attache::agent::{
    Agent, AgentSession, Auth, NextEdits, OpenRequest, OpenedSession, Providers, SystemPromptSupport, Turn,
    usual_options,
};
use attache::wire::v1::*;
use attache::{Error, Prompt, Result, StopReason};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Responses;
use super::context::Context;
use super::peer::{Peer, pair};
use crate::example::Example;

/// The id of sessions that no line names.
const SESSION: &str = "sess-1";
const CWD: &str = "/home/ada/demo";

/// Sends a line to an agent in the context it calls for.
pub(super) async fn responses(line: &Example) -> Result<Responses, String> {
    let context = Context::of(line);
    let id = context.param("sessionId").unwrap_or(SESSION).to_owned();
    let (findings, _) = mpsc::channel(1);
    let (agent, mut peer) = start(&context, &id, findings);
    let running = tokio::spawn(agent);
    let mut text = line.text.clone();
    if !context.before_initialize() {
        greet_in(&mut peer, line.version).await?;
        let nes = line.method.starts_with("nes/") || line.method.starts_with("document/");
        if nes && !context.bare() && !context.unknown() && line.method != "nes/start" {
            let started = peer.ask("nes/start", json!({})).await?;
            text = context.with_param("sessionId", started["sessionId"].as_str().unwrap_or_default());
        } else if !context.fresh() && !context.login_needed() && (!context.unknown() || context.gone()) {
            open(&mut peer, &context, line).await?;
        }
    }
    let responses = peer.exchange(line, &text).await?;
    running.abort();
    Ok(responses)
}

/// Initializes in the form of a version.
pub(super) async fn greet_in(peer: &mut Peer, version: u64) -> Result<Value, String> {
    if version == 2 { greet_v2(peer).await } else { greet(peer).await }
}

/// Initializes with every capability.
async fn greet(peer: &mut Peer) -> Result<Value, String> {
    let capabilities = json!({
        "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true, "auth": { "terminal": true },
        "session": { "configOptions": { "boolean": {} }, "notices": {}, "compaction": {} },
        "elicitation": { "form": {}, "url": {} }, "plan": {}, "subagents": {},
        "nes": { "jump": {}, "rename": {}, "searchAndReplace": {} },
    });
    peer.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities })).await
}

/// The same for version 2.
async fn greet_v2(peer: &mut Peer) -> Result<Value, String> {
    let info = json!({ "name": "peer", "version": "1" });
    let capabilities = json!({ "auth": { "terminal": {} }, "elicitation": { "form": {}, "url": {} } });
    peer.ask("initialize", json!({ "protocolVersion": 2, "info": info, "capabilities": capabilities })).await
}

/// Opens the session that the line names, and closes it again if that is what the line is about.
async fn open(peer: &mut Peer, context: &Context<'_>, line: &Example) -> Result<(), String> {
    let opened = peer.ask("session/new", json!({ "cwd": CWD, "mcpServers": [] })).await?;
    if context.gone() {
        let method = if context.says(&["delete"]) { "session/delete" } else { "session/close" };
        peer.ask(method, json!({ "sessionId": opened["sessionId"] })).await?;
    }
    if context.busy() {
        let prompt = json!([{ "type": "text", "text": "wait" }]);
        let params = json!({ "sessionId": opened["sessionId"], "prompt": prompt });
        let request =
            json!({ "jsonrpc": "2.0", "id": "running", "method": "session/prompt", "params": params });
        peer.send(&request.to_string()).await?;
    }
    let _ = line;
    Ok(())
}

/// An agent that is serving, bare or with everything there is.
pub(super) fn start(
    context: &Context<'_>,
    id: &str,
    findings: mpsc::Sender<String>,
) -> (impl Future<Output = ()> + Send + use<>, Peer) {
    let (link, peer) = pair();
    let known: Arc<str> = id.into();
    // Loading, resuming and the like find only this one session.
    let exists: Option<Arc<str>> = (!context.unknown()).then(|| known.clone());
    let bare = context.bare();
    let opened = Arc::clone(&known);
    let mut agent = Agent::new(move |_: OpenRequest| {
        let session = offered(bare, findings.clone()).id(opened.to_string());
        async move { Ok(session) }
    });
    if context.login_needed() {
        agent = agent.auth(Login);
    }
    if !bare {
        agent = everything(agent, exists);
    }
    if context.is_v2() {
        agent = agent.protocol_v2();
    }
    (async move { drop(agent.serve(link).await) }, peer)
}

fn everything(agent: Agent, exists: Option<Arc<str>>) -> Agent {
    let found = move |id: &SessionId| match &exists {
        Some(known) if id.as_str() == &**known => Ok(()),
        _ => Err(Error::not_found("there is no such session")),
    };
    let (load, resume, fork, archive, unarchive) =
        (found.clone(), found.clone(), found.clone(), found.clone(), found.clone());
    let (title, status) = (found.clone(), found);
    let plain = || offered(true, mpsc::channel(1).0);
    agent
        .images()
        .audio()
        .embedded_context()
        .mcp_over_http()
        .mcp_over_sse()
        .mcp_over_acp()
        .additional_directories()
        .system_prompts(SystemPromptSupport::Append)
        .load(move |request| {
            let found = load(&request.id);
            async move { found.map(|()| plain()) }
        })
        .resume(move |request| {
            let found = resume(&request.id);
            async move { found.map(|()| plain()) }
        })
        .fork(move |source, _| {
            let found = fork(&source);
            async move { found.map(|()| plain()) }
        })
        .list(|request| async move {
            match (request.cursor, request.archived) {
                (Some(_), _) => Err(Error::invalid_params("this cursor was never given out")),
                (_, Some(SessionArchiveFilter::Other(_))) => Err(Error::invalid_params("no such filter")),
                _ => Ok(ListSessionsResponse::new(Vec::new())),
            }
        })
        .delete(|_| async { Ok(()) })
        .archive(move |id| std::future::ready(archive(&id)), move |id| std::future::ready(unarchive(&id)))
        .titles(move |id, name| std::future::ready(title(&id).map(|()| name)))
        .status(move |id| std::future::ready(status(&id).map(|()| SessionStatus::Saved)))
        .logout(|| async { Ok(()) })
        .auth_status(|| async { Ok(AuthStatusResponse::new(AuthState::NotRequired)) })
        .providers(TwoProviders)
        .next_edits(NoEdits)
}

/// A session; unless it is to be plain, with modes, models and options of both kinds.
fn offered(plain: bool, findings: mpsc::Sender<String>) -> OpenedSession<Talker> {
    let open = OpenedSession::new(Talker(findings));
    if plain {
        return open;
    }
    let modes = vec![SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")];
    let models = vec![ModelInfo::new("m1", "M1"), ModelInfo::new("m2", "M2")];
    let options: Vec<SessionConfigOption> = serde_json::from_value(json!([
        { "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "m1",
          "options": [{ "value": "m1", "name": "M1" }, { "value": "m2", "name": "M2" }] },
        { "id": "m", "name": "M", "type": "select", "currentValue": "a", "options": [{ "value": "a", "name": "A" }] },
        { "id": "brave", "name": "Brave", "type": "boolean", "currentValue": false },
    ]))
    .unwrap_or_default();
    open.modes(SessionModeState::new("ask", modes))
        .models(SessionModelState::new("m1", models))
        .options(options)
}

/// Does what the prompt says and reports what came of it.
pub(super) struct Talker(mpsc::Sender<String>);

impl AgentSession for Talker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let found = match &*prompt.text() {
            "wait" => {
                turn.cancellation().cancelled().await;
                return Err(Error::Cancelled);
            }
            "permission" => {
                let tool = turn.tool("a tool").start().await?;
                match turn.ask(&tool, usual_options()).await {
                    Ok(choice) if choice.is_allowed() => "approved",
                    _ => "not approved",
                }
            }
            "form" => match turn.forms() {
                Some(forms) => elicited(forms.ask("?", ElicitationSchema::new()).await),
                None => "failed request",
            },
            "link" => match turn.links() {
                Some(links) => elicited(links.ask("?", "e", "https://example.com").await),
                None => "failed request",
            },
            "read" => match turn.read_files() {
                Some(files) => outcome(files.read("/a").await),
                None => "failed request",
            },
            "write" => match turn.write_files() {
                Some(files) => outcome(files.write("/a", "x").await),
                None => "failed request",
            },
            "terminal" => match turn.terminals() {
                Some(terminals) => outcome(terminals.command("ls").start().await),
                None => "failed request",
            },
            _ => return Ok(StopReason::EndTurn),
        };
        let _ = self.0.send(found.to_owned()).await;
        Ok(StopReason::EndTurn)
    }
}

fn outcome<T>(result: Result<T>) -> &'static str {
    if result.is_ok() { "accepted" } else { "failed request" }
}

fn elicited(result: Result<CreateElicitationResponse>) -> &'static str {
    match result.map(|response| response.action) {
        Ok(ElicitationAction::Accept(_)) => "accept",
        Ok(ElicitationAction::Decline) => "decline",
        Ok(_) => "cancel",
        Err(_) => "failed request",
    }
}

struct Login;

impl Auth for Login {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![
            AuthMethodAgent::new("own", "Own").into(),
            AuthMethodTerminal::new("terminal", "Terminal").into(),
        ]
    }
    async fn login(&self, _: &AuthMethodId, _: &attache::agent::ClientHandle) -> Result<()> {
        Ok(())
    }
}

struct TwoProviders;

impl Providers for TwoProviders {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        let speaks = || vec![LlmProtocol::from("openai"), LlmProtocol::from("anthropic")];
        Ok(vec![ProviderInfo::new("main", speaks(), true), ProviderInfo::new("m", speaks(), false)])
    }
    async fn set(&self, _: SetProviderRequest) -> Result<()> {
        Ok(())
    }
    async fn disable(&self, _: ProviderId) -> Result<()> {
        Ok(())
    }
}

struct NoEdits;

impl NextEdits for NoEdits {
    fn capabilities(&self) -> NesCapabilities {
        NesCapabilities::new()
    }
    async fn suggest(&self, _: SuggestNesRequest) -> Result<Vec<NesSuggestion>> {
        Ok(Vec::new())
    }
}
