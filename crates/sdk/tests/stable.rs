//! The crate without its features: unstable methods and updates are unknown, and everything else
//! works.

#![cfg(not(feature = "unstable"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "it/script.rs"]
mod script;

use attache::agent::{Agent, AgentSession, Turn};
use attache::client::{Client, Event, SessionEvent};
use attache::wire::v1::AuthMethod;
use attache::{Prompt, Result, StopReason};
use script::{Script, UNSTABLE_SERVICES};
use serde_json::json;

struct Echo;

impl AgentSession for Echo {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        turn.say(prompt.text()).await?;
        Ok(StopReason::EndTurn)
    }
}

struct NoLogin;

impl attache::agent::Auth for NoLogin {
    fn methods(&self) -> Vec<AuthMethod> {
        Vec::new()
    }
    async fn login(
        &self,
        _: &attache::wire::v1::AuthMethodId,
        _: &attache::agent::ClientHandle,
    ) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_does_not_know_unstable_methods() {
    let (link, mut client) = Script::pair();
    // A method that does not exist needs no login either.
    let agent = Agent::new(|_| async { Ok(Echo) }).auth(NoLogin).list(|_| async { unreachable!() });
    let serving = tokio::spawn(agent.serve(link));
    client.request("1", "initialize", json!({"protocolVersion": 1})).await;
    let capabilities = client.result("1").await["agentCapabilities"].clone();
    let session = capabilities["sessionCapabilities"].as_object().unwrap();
    assert_eq!(session.keys().collect::<Vec<_>>(), ["close", "list"], "{capabilities}");
    let sessions = ["fork", "archive", "unarchive", "set_title", "status", "set_model"];
    let sessions = sessions.map(|method| format!("session/{method}"));
    for method in sessions.iter().map(String::as_str).chain(UNSTABLE_SERVICES) {
        client.request("m", method, json!({"sessionId": "s"})).await;
        client.error("m", -32601).await;
    }
    client.request("2", "session/list", json!({})).await;
    client.error("2", -32000).await;
    drop(client);
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_gets_unstable_updates_as_unknown_ones() {
    let (session, mut agent) = script::open(Client::new()).await;
    let (_prompter, mut events) = session.into_parts();
    let update = json!({"sessionUpdate": "plan_removed", "planId": "p"});
    agent.update("s1", update.clone()).await;
    let Some(SessionEvent::Event(Event::Other(unknown))) = events.next().await else { panic!() };
    assert_eq!(unknown.tag, "plan_removed");
    assert_eq!(serde_json::to_value(&unknown).unwrap(), update);
}
