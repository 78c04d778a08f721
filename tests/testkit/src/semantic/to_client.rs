//! A real client, and a peer that plays the agent.

use attache::client::{Client, Protocol, RequestContext, Terminal, Terminals};
use attache::wire::v1::*;
use attache::{Error, Result};
use serde_json::json;

use super::Responses;
use super::context::Context;
use super::peer::{Peer, pair};
use crate::example::Example;

const SESSION: &str = "sess-1";
const CWD: &str = "/home/ada/demo";

/// Sends a line to a client in the context it calls for.
pub(super) async fn responses(line: &Example) -> Result<Responses, String> {
    let context = Context::of(line);
    let (link, mut peer) = pair();
    let client = client(&context);
    // Where it is the terminal or the file that is missing, the session is there.
    let session_missing =
        context.unknown() && (context.says(&["session"]) || context.param("terminalId").is_none());
    let file_missing = line.method.starts_with("fs/") && context.says(&["file"]);
    let named = context.param("sessionId").filter(|_| !session_missing || file_missing);
    let named = named.unwrap_or(SESSION).to_owned();
    // The client opens a session, prompts, and lets every question go, which answers it with
    // "cancelled".
    let running = tokio::spawn(async move {
        let agent = client.connect(link).await?;
        let mut session = agent.new_session(CWD).await?;
        let mut turn = session.prompt("go").await?;
        while turn.next().await?.is_some() {}
        Result::<()>::Ok(())
    });
    greet_in(&mut peer, line.version).await?;
    let opening = peer.requested("session/new").await?;
    peer.answer(&opening, json!({ "sessionId": named })).await?;
    let prompt = peer.requested("session/prompt").await?;
    if context.is_v2() {
        // V2-08, V2-11: the turn continues after the answer.
        peer.answer(&prompt, json!({ "messageId": "m-1" })).await?;
        let update = json!({ "sessionUpdate": "state_update", "state": "running" });
        let params = json!({ "sessionId": named, "update": update });
        let running = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        peer.send(&running.to_string()).await?;
    }
    let text = with_terminal(&mut peer, &context, line, &named).await?;
    let responses = peer.exchange(line, &text).await?;
    running.abort();
    Ok(responses)
}

/// Answers `initialize` in the form of a version.
pub(super) async fn greet_in(peer: &mut Peer, version: u64) -> Result<(), String> {
    if version == 2 { greet_v2(peer).await } else { greet(peer).await }
}

/// Answers `initialize` with every capability.
async fn greet(peer: &mut Peer) -> Result<(), String> {
    let hello = peer.requested("initialize").await?;
    let capabilities = json!({
        "loadSession": true, "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
        "mcpCapabilities": { "http": true, "sse": true, "acp": true },
        "sessionCapabilities": { "list": {}, "delete": {}, "resume": {}, "close": {}, "fork": {}, "archive": {},
                                 "status": {}, "title": {}, "additionalDirectories": {} },
        "auth": { "logout": {}, "status": {} }, "providers": {}, "nes": {},
    });
    let methods = json!([{ "id": "own", "name": "Own" }]);
    let result = json!({ "protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": methods });
    peer.answer(&hello, result).await
}

/// The same for version 2.
async fn greet_v2(peer: &mut Peer) -> Result<(), String> {
    let hello = peer.requested("initialize").await?;
    let session = json!({
        "prompt": { "image": {}, "audio": {}, "embeddedContext": {} }, "mcp": { "stdio": {}, "http": {} },
        "delete": {}, "fork": {}, "archive": {}, "status": {}, "title": {}, "additionalDirectories": {},
    });
    let methods = json!([{ "type": "agent", "methodId": "own", "name": "Own" }]);
    let info = json!({ "name": "peer", "version": "1" });
    let capabilities = json!({ "session": session, "auth": { "status": {} }, "providers": {} });
    let result = json!({
        "protocolVersion": 2, "info": info, "capabilities": capabilities, "authMethods": methods,
    });
    peer.answer(&hello, result).await
}

/// A line about a terminal names one that exists, or one that was released.
async fn with_terminal(
    peer: &mut Peer,
    context: &Context<'_>,
    line: &Example,
    session: &str,
) -> Result<String, String> {
    // V2-39: clients of version 2 have no terminals.
    let has_terminals = line.method.starts_with("terminal/") && !context.is_v2();
    let about_one = has_terminals && context.param("terminalId").is_some();
    if !about_one || context.bare() || (context.unknown() && !context.gone()) {
        return Ok(line.text.clone());
    }
    let created = peer.ask("terminal/create", json!({ "sessionId": session, "command": "ls" })).await?;
    let terminal = created["terminalId"].as_str().unwrap_or_default();
    if context.gone() {
        let params = json!({ "sessionId": session, "terminalId": terminal });
        peer.ask("terminal/release", params).await?;
    }
    Ok(context.with_param("terminalId", terminal))
}

/// A client, bare or with everything there is.
pub(super) fn client(context: &Context<'_>) -> Client {
    let protocol = if context.is_v2() { Protocol::V2 } else { Protocol::V1 };
    let client = Client::new().protocol(protocol);
    // In version 2 a method that is gone is not there whatever the client provides.
    if context.code() == Some(-32601) && !context.is_v2() {
        return client;
    }
    let missing = context.unknown();
    let client = client
        .read_files(move |_: RequestContext, _: ReadTextFileRequest| async move {
            if missing { Err(Error::not_found("there is no such file")) } else { Ok("text".to_owned()) }
        })
        .write_files(|_: RequestContext, _: WriteTextFileRequest| async { Ok(()) })
        .terminals(Shells)
        .boolean_options()
        .notices()
        .compaction()
        .plans()
        .subagents();
    // A mode that was not advertised is the other one's neighbour.
    match context.param("mode").filter(|_| context.bare()) {
        Some("url") => client.elicitation_forms(),
        Some("form") => client.elicitation_urls(),
        _ => client.elicitation_forms().elicitation_urls(),
    }
}

struct Shells;

impl Terminals for Shells {
    type Terminal = Ended;
    async fn create(&self, _: RequestContext, _: CreateTerminalRequest) -> Result<Ended> {
        Ok(Ended)
    }
}

/// A command that has ended already.
struct Ended;

impl Terminal for Ended {
    async fn output(&self) -> Result<TerminalOutputResponse> {
        Ok(TerminalOutputResponse::new("", false))
    }
    async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
        Ok(TerminalExitStatus::new())
    }
    async fn kill(&self) -> Result<()> {
        Ok(())
    }
    async fn release(&self) -> Result<()> {
        Ok(())
    }
}
