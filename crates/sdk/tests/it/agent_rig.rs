//! An agent under test, and the client that a test plays against it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache::agent::{Agent, AgentSession, OpenedSession, Turn};
use attache::{Prompt, Result, StopReason};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::script::Script;

pub(crate) type Ending<'a> = Pin<Box<dyn Future<Output = Result<StopReason>> + Send + 'a>>;

/// A session whose turns a function runs.
#[derive(Clone)]
pub(crate) struct Acts(pub(crate) Arc<dyn for<'a> Fn(Turn<'a>, Prompt) -> Ending<'a> + Send + Sync>);

impl AgentSession for Acts {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        (self.0)(turn, prompt).await
    }
}

/// A session from a closure.
pub(crate) fn acts<F>(act: F) -> Acts
where
    F: for<'a> Fn(Turn<'a>, Prompt) -> Ending<'a> + Send + Sync + 'static,
{
    Acts(Arc::new(act))
}

/// An agent with sessions `s1`, `s2`, … whose turns a function runs.
pub(crate) fn agent<F>(act: F) -> Agent
where
    F: for<'a> Fn(Turn<'a>, Prompt) -> Ending<'a> + Send + Sync + 'static,
{
    let act = acts(act);
    let count = AtomicUsize::new(0);
    Agent::new(move |_| {
        let session =
            OpenedSession::new(act.clone()).id(format!("s{}", count.fetch_add(1, Ordering::Relaxed) + 1));
        async { Ok(session) }
    })
}

/// An agent that repeats its prompts.
pub(crate) fn echo() -> Agent {
    agent(|turn, prompt| {
        Box::pin(async move {
            turn.say(prompt.text()).await?;
            Ok(StopReason::EndTurn)
        })
    })
}

/// A served agent. The script is the client.
pub(crate) struct Rig {
    pub(crate) client: Script,
    pub(crate) serving: JoinHandle<Result<()>>,
    /// The response to `initialize`.
    pub(crate) hello: Value,
}

impl Rig {
    /// Serves an agent to a client that has sent nothing yet.
    pub(crate) fn uninitialized(agent: Agent) -> Rig {
        let (link, client) = Script::pair();
        Rig { client, serving: tokio::spawn(agent.serve(link)), hello: Value::Null }
    }

    /// Serves an agent to a client with these capabilities.
    pub(crate) async fn initialized(agent: Agent, capabilities: Value) -> Rig {
        let mut rig = Rig::uninitialized(agent);
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        rig.hello = rig.call("hello", "initialize", hello).await;
        rig
    }

    /// The same with an open session `s1`.
    pub(crate) async fn open(agent: Agent, capabilities: Value) -> Rig {
        let mut rig = Rig::initialized(agent, capabilities).await;
        rig.new_session("s1").await;
        rig
    }

    pub(crate) async fn new_session(&mut self, id: &str) {
        let opened = self.call("new", "session/new", new()).await;
        assert_eq!(opened, json!({"sessionId": id}));
    }

    /// A request, and its answer, which must be the next line.
    pub(crate) async fn call(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.client.request(id, method, params).await;
        self.client.result(id).await
    }

    /// A request, and the error that must be the next line.
    pub(crate) async fn expect_error(&mut self, method: &str, params: Value, code: i32) -> Value {
        self.client.request("f", method, params).await;
        self.client.error("f", code).await
    }

    /// Sends a prompt without waiting for its result.
    pub(crate) async fn prompt(&mut self, id: &str, session: &str, text: &str) {
        self.client.request(id, "session/prompt", prompt(session, text)).await;
    }

    pub(crate) async fn cancel(&mut self, session: &str) {
        self.client.notify("session/cancel", json!({"sessionId": session})).await;
    }

    /// The next line, which must be a piece of text.
    pub(crate) async fn expect_text(&mut self, session: &str, text: &str) {
        let update =
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        self.expect_update(session, update).await;
    }

    /// The next line, which must be this update.
    pub(crate) async fn expect_update(&mut self, session: &str, update: Value) {
        let line = self.client.expect("session/update").await;
        assert_eq!(line["params"], json!({"sessionId": session, "update": update}));
    }

    /// The next line, which must end the turn.
    pub(crate) async fn expect_end(&mut self, id: &str, reason: &str) {
        assert_eq!(self.client.result(id).await, json!({"stopReason": reason}));
    }

    /// Asserts that a round trip works and nothing precedes its response.
    pub(crate) async fn assert_responsive(&mut self) {
        self.client.request("well", "no/such", json!({})).await;
        self.client.error("well", -32601).await;
    }

    /// Disconnects; the agent ends without an error.
    pub(crate) async fn disconnect(self) {
        drop(self.client);
        self.serving.await.unwrap().unwrap();
    }
}

/// Params of `session/new`.
pub(crate) fn new() -> Value {
    json!({"cwd": "/work", "mcpServers": []})
}

/// Params of `session/prompt`.
pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// All capabilities of a client.
pub(crate) fn full_client() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true, "elicitation": {"form": {}, "url": {}}})
}
