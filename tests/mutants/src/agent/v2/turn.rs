//! A turn of version 2: from the insertion of its prompt to the idle state.

use super::actions;
pub(crate) use crate::agent::context::{Cancelled, Context};
use crate::agent::dispatch::Rest;
use crate::agent::intent::Intent;
use crate::agent::params::{block, text};
use crate::agent::state::Session;
use crate::agent::wire::{Agent, Refusal};
use attache_conn::CancelToken;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;

/// The context of a turn.
pub(crate) struct Turn {
    pub(crate) agent: Arc<Agent>,
    pub(crate) session: String,
    pub(crate) cwd: String,
    pub(crate) roots: Vec<String>,
    pub(crate) cancel: CancelToken,
}

impl Agent {
    pub(crate) async fn prompt_2(self: Arc<Self>, id: Value, params: Value) -> Option<Rest> {
        match self.take_prompt(&id, &params) {
            Err(refusal) => {
                self.answer(&id, "session/prompt", Err(refusal)).await;
                None
            }
            Ok(None) => None,
            Ok(Some((turn, blocks))) => Some(Box::pin(async move { turn.work(id, blocks).await })),
        }
    }

    /// A prompt of a busy session waits; it is inserted after the turn.
    fn take_prompt(
        self: &Arc<Self>,
        id: &Value,
        params: &Value,
    ) -> Result<Option<(Turn, Vec<Value>)>, Refusal> {
        let session = text(params, "sessionId")?;
        let blocks = params["prompt"].as_array().ok_or_else(|| Refusal::params("`prompt` must be a list"))?;
        for given in blocks {
            let unknown = given["type"].as_str().is_some_and(|kind| kind.starts_with('_'));
            let media = matches!(given["type"].as_str(), Some("image" | "audio"));
            match () {
                () if (unknown || media) && self.is("V2-25") => {}
                () if media => return Err(Refusal::params("images and sounds are not supported")),
                () if given["type"] == "resource_link" && (self.is("INIT-21") || self.is("PROMPT-03")) => {
                    return Err(Refusal::params("links are not supported"));
                }
                () => block(given)?,
            }
            if given["text"].as_str().is_some_and(|text| text.contains('\u{2028}') && self.is("STDIO-16")) {
                return Err(Refusal::params("half a line"));
            }
        }
        let mut state = self.state();
        let kept = state.session_2(session).filter(|kept| kept.open);
        let kept = kept.ok_or_else(|| Refusal::session(session))?;
        if kept.turn.is_some() {
            kept.queue.push_back((id.clone(), blocks.clone()));
            return Ok(None);
        }
        let cancel = CancelToken::new();
        kept.turn = Some(cancel.clone());
        kept.idle = CancelToken::new();
        kept.told_to_stop = false;
        let turn = Turn {
            agent: self.clone(),
            session: session.to_owned(),
            cwd: kept.cwd.clone(),
            roots: kept.roots.clone(),
            cancel,
        };
        Ok(Some((turn, blocks.clone())))
    }
}

impl Turn {
    /// The turn, and then those of the prompts that waited.
    async fn work(mut self, mut id: Value, mut blocks: Vec<Value>) {
        loop {
            self.run(&id, &blocks).await;
            let mut state = self.agent.state();
            let Some(kept) = state.session_2(&self.session) else { return };
            match kept.queue.pop_front().filter(|_| kept.open) {
                Some(next) => {
                    self.cancel = CancelToken::new();
                    kept.turn = Some(self.cancel.clone());
                    kept.told_to_stop = false;
                    (id, blocks) = next;
                }
                None => {
                    kept.turn = None;
                    kept.idle.cancel();
                    return;
                }
            }
        }
    }

    async fn run(&self, id: &Value, blocks: &[Value]) {
        let agent = &self.agent;
        let intent = Intent::read(blocks);
        let message = format!("user-{}", self.count());
        self.tell(json!({ "sessionUpdate": "user_message", "messageId": message, "content": blocks })).await;
        let answer = || json!({ "messageId": message });
        // V2-08, V2-09: answered as soon as it is inserted, and never with an error.
        let fails = agent.is("V2-09") && intent == Intent::Fail;
        if !agent.is("V2-08") && !fails {
            agent.answer(id, "session/prompt", Ok(answer())).await;
        }
        if !agent.is("V2-11") {
            self.state("running", json!({})).await;
        }
        let ended = actions::perform(self, intent).await;
        if agent.is("V2-08") {
            agent.answer(id, "session/prompt", Ok(answer())).await;
        }
        if fails {
            agent.answer(id, "session/prompt", Err(Refusal::new(-32603, "Internal error"))).await;
        }
        let told = agent.state().session_2(&self.session).is_some_and(|kept| kept.told_to_stop);
        let end = match ended {
            // V2-14: whatever the abort has caused.
            _ if self.cancel.is_cancelled() && !(told && agent.is("V2-14")) => {
                json!({ "stopReason": "cancelled" })
            }
            Ok(Ok(())) | Err(Cancelled) => json!({ "stopReason": "end_turn" }),
            Ok(Err(refusal)) => json!({ "stopReason": "error", "error": refusal.object() }),
        };
        self.state("idle", end).await;
        if told && agent.is("V2-14/late") {
            self.say("one more thing").await;
        }
    }

    /// Reports a state.
    pub(crate) async fn state(&self, state: &str, more: Value) {
        let work = self.agent.state().session_2(&self.session).map(|kept| kept.work());
        let mut update = json!({ "sessionUpdate": "state_update", "state": state, "background": work });
        if let (Some(update), Value::Object(more)) = (update.as_object_mut(), more) {
            update.extend(more);
        }
        self.agent.update(&self.session, update).await;
    }

    /// Text of the agent, in two chunks of one message.
    async fn speak(&self, text: &str) {
        let message = format!("agent-{}", self.count());
        for text in [text, "."] {
            let content = json!({ "type": "text", "text": text });
            self.tell(
                json!({ "sessionUpdate": "agent_message_chunk", "messageId": message, "content": content }),
            )
            .await;
        }
    }

    /// A new tool call; gives its id back.
    pub(crate) async fn tool(&self, kind: &str, title: &str, more: Value) -> String {
        // TOOL-02: an id of its own.
        let id = if self.agent.is("TOOL-02") { "tool".to_owned() } else { format!("tool-{}", self.count()) };
        let mut call = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "title": title, "kind": kind,
            "status": "in_progress",
        });
        if let (Some(call), Value::Object(more)) = (call.as_object_mut(), more) {
            call.extend(more);
        }
        self.tell(call).await;
        id
    }

    pub(crate) async fn tool_end(&self, id: &str, status: &str) {
        self.tell(json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status })).await;
    }
}

impl Context for Turn {
    fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    fn session(&self) -> &str {
        &self.session
    }

    /// Every client has the capabilities of version 1 below `session`, and subagents.
    fn client_has(&self, path: &str) -> bool {
        path.starts_with("session.") || path == "subagents" || self.agent.state().client_has(path)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.agent.state().session_2(&self.session).map(|kept| change(&mut kept.base))
    }

    fn options(&self) -> Value {
        self.agent.state().session_2(&self.session).map(|kept| kept.options()).unwrap_or_default()
    }

    async fn wait<T: Send>(&self, what: impl Future<Output = T> + Send) -> Result<T, Cancelled> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Cancelled),
            value = what => Ok(value),
        }
    }

    fn say(&self, text: &str) -> impl Future<Output = ()> + Send {
        self.speak(text)
    }

    async fn show(&self, content: Value) {
        let message = format!("agent-{}", self.count());
        let chunk = "agent_message_chunk";
        self.tell(json!({ "sessionUpdate": chunk, "messageId": message, "content": content })).await;
    }

    async fn tell(&self, update: Value) {
        self.change(|session| session.history.push(update.clone()));
        self.update(update).await;
    }
}
