//! Lines that are answers: the real side asks, the peer answers with the line, and the asker's
//! reading is verified.

use attache::client::{AgentHandle, Client, Protocol};
use attache::wire::v1::AuthMethod;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::context::Context;
use super::peer::{Peer, pair};
use super::{to_agent, to_client};
use crate::example::Example;
use crate::registry::Version;
use crate::verify::{self, Verdict, expect_any};

/// The asker's reading of an answer.
type AnswerResult = Result<String, String>;

pub(super) async fn verify(line: &Example) -> Verdict {
    let made = match line.method.as_str() {
        "initialize" => initialized(line).await,
        "session/new" => opened(line).await,
        "session/prompt" => prompted(line).await,
        "session/request_permission" => asked(line, "permission").await,
        "elicitation/create" => asked(line, "form").await,
        "fs/read_text_file" => asked(line, "read").await,
        "fs/write_text_file" => asked(line, "write").await,
        "terminal/create" => asked(line, "terminal").await,
        // The type alone decides the others.
        _ => {
            let version = Version::of(line.version).unwrap_or(crate::registry::V1);
            return verify::payload(line, version).into();
        }
    };
    made.and_then(|made| expect_any(&line.expect, |expect| fits(expect, &made))).into()
}

fn fits(expect: &Value, made: &str) -> Result<(), String> {
    let refused = ["failed request", "not approved", "cancel", "closes the connection"].contains(&made);
    let right = match (expect["treat_as"].as_str(), expect["client"].as_str()) {
        (Some("failed request"), _) => made == "failed request" || made == "closes the connection",
        (Some(treat), _) => made == treat,
        (_, Some(client)) => made == client,
        _ if expect["accept"] == true => !refused,
        _ => false,
    };
    if right { Ok(()) } else { Err(format!("the asker takes it as: {made}")) }
}

/// The peer answers a request with the line, under the request's id.
async fn answer_with(peer: &mut Peer, line: &Example, method: &str) -> Result<(), String> {
    let request = peer.requested(method).await?;
    let mut answer = line.message.clone();
    answer["id"] = request["id"].clone();
    peer.send(&answer.to_string()).await
}

/// A client of the version of the line.
fn client(line: &Example) -> Client {
    Client::new().protocol(if line.version == 2 { Protocol::V2 } else { Protocol::V1 })
}

async fn initialized(line: &Example) -> AnswerResult {
    let (link, mut peer) = pair();
    let client = client(line).terminal_auth();
    let connecting = tokio::spawn(async move { client.connect(link).await });
    answer_with(&mut peer, line, "initialize").await?;
    match connecting.await.map_err(|error| error.to_string())? {
        Ok(agent) => skipped_malformed(&agent, line).map(|()| "accepted".to_owned()),
        // INIT-09: a client that cannot continue lets go of the link.
        Err(_) => Ok(match peer.next().await {
            Ok(None) | Err(_) => "closes the connection".to_owned(),
            Ok(Some(_)) => "failed request".to_owned(),
        }),
    }
}

/// A method that names a type is never taken for one without.
fn skipped_malformed(agent: &AgentHandle, line: &Example) -> Result<(), String> {
    let sent = line.message["result"]["authMethods"].as_array().cloned().unwrap_or_default();
    let typed = |id: &str| sent.iter().any(|method| method["id"] == id && method.get("type").is_some());
    let wrong = agent.auth_methods().iter().find_map(|method| match method {
        AuthMethod::Agent(method) if typed(method.id.as_str()) => Some(method.id.to_string()),
        _ => None,
    });
    wrong.map_or(Ok(()), |id| Err(format!("`{id}` became a method of the agent's own")))
}

async fn opened(line: &Example) -> AnswerResult {
    let (link, mut peer) = pair();
    let client = client(line);
    let opening = tokio::spawn(async move {
        let agent = client.connect(link).await?;
        agent.new_session("/home/ada/demo").await.map(|_| ())
    });
    to_client::greet_in(&mut peer, line.version).await?;
    answer_with(&mut peer, line, "session/new").await?;
    finished(opening.await)
}

async fn prompted(line: &Example) -> AnswerResult {
    let (link, mut peer) = pair();
    let client = client(line);
    let prompting = tokio::spawn(async move {
        let agent = client.connect(link).await?;
        let mut session = agent.new_session("/home/ada/demo").await?;
        session.prompt("go").await?.finish().await.map(|_| ())
    });
    to_client::greet_in(&mut peer, line.version).await?;
    let opening = peer.requested("session/new").await?;
    peer.answer(&opening, json!({ "sessionId": "sess-1" })).await?;
    answer_with(&mut peer, line, "session/prompt").await?;
    if line.version == 2 {
        // V2-08: an accepted prompt ends with a state.
        for state in [json!("running"), json!("idle")] {
            let update = json!({ "sessionUpdate": "state_update", "state": state, "stopReason": "end_turn" });
            let params = json!({ "sessionId": "sess-1", "update": update });
            let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
            peer.send(&line.to_string()).await?;
        }
    }
    finished(prompting.await)
}

fn finished(outcome: Result<attache::Result<()>, tokio::task::JoinError>) -> AnswerResult {
    let outcome = outcome.map_err(|error| error.to_string())?;
    Ok(if outcome.is_ok() { "accepted" } else { "failed request" }.to_owned())
}

/// An agent asks within a turn; the prompt says what.
async fn asked(line: &Example, what: &str) -> AnswerResult {
    let (findings, mut found) = mpsc::channel(1);
    let (agent, mut peer) = to_agent::start(&Context::of(line), "sess-1", findings);
    let running = tokio::spawn(agent);
    to_agent::greet_in(&mut peer, line.version).await?;
    peer.ask("session/new", json!({ "cwd": "/home/ada/demo", "mcpServers": [] })).await?;
    let params = json!({ "sessionId": "sess-1", "prompt": [{ "type": "text", "text": what }] });
    let request = json!({ "jsonrpc": "2.0", "id": "turn", "method": "session/prompt", "params": params });
    peer.send(&request.to_string()).await?;
    answer_with(&mut peer, line, &line.method).await?;
    let made = found.recv().await.ok_or_else(|| "the turn ended without a result".to_owned());
    running.abort();
    made
}
