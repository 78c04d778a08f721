//! A turn: from a prompt to its answer.

use super::actions;
pub(crate) use super::context::{Act, Cancelled, Context};
use super::dispatch::Rest;
use super::intent::Intent;
use super::params::{block, text};
use super::state::Session;
use super::wire::{Agent, Refusal};
use attache_conn::CancelToken;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any wait for a cancel.
const SLOW: Duration = Duration::from_secs(12);

/// The context of a turn.
pub(crate) struct Turn {
    pub(crate) agent: Arc<Agent>,
    pub(crate) session: String,
    pub(crate) cwd: String,
    pub(crate) roots: Vec<String>,
    cancel: CancelToken,
}

impl Agent {
    pub(crate) async fn prompt(self: Arc<Self>, id: Value, params: Value) -> Option<Rest> {
        let begun = self.begin_turn(&id, &params);
        // RPC-24 broken: what comes in between is forgotten.
        if self.is("RPC-24/busy") && begun.as_ref().is_err_and(|refusal| refusal.code == -32600) {
            return None;
        }
        let (turn, intent, idle) = match begun {
            Ok(begun) => begun,
            Err(refusal) => {
                self.answer(&id, "session/prompt", Err(refusal)).await;
                return None;
            }
        };
        Some(Box::pin(async move {
            turn.run(&id, intent).await;
            idle.cancel();
        }))
    }

    /// Everything that a later message may depend on is written down before the turn begins to
    /// wait.
    fn begin_turn(
        self: &Arc<Self>,
        id: &Value,
        params: &Value,
    ) -> Result<(Turn, Intent, CancelToken), Refusal> {
        if self.is("INIT-22") && self.state().client == json!({}) {
            return Err(Refusal::method());
        }
        let session = text(params, "sessionId")?;
        let blocks = params["prompt"].as_array().ok_or_else(|| Refusal::params("`prompt` must be a list"))?;
        if blocks.is_empty() && self.is("PROMPT-22") {
            return Err(Refusal::new(-32603, "Internal error"));
        }
        if params.get("messageId").is_some() && self.is("MSG-03") {
            return Err(Refusal::params("an unknown member"));
        }
        let image = self.state().advertised["promptCapabilities"]["image"] == true || self.is("PROMPT-04");
        for given in blocks {
            if given["type"] == "attache-hologram" && self.is("CONT-07") {
                continue;
            }
            if given["type"] == "image" && !image {
                return Err(Refusal::params("images are not supported"));
            }
            if given["text"].as_str().is_some_and(|text| text.contains('\u{2028}') && self.is("STDIO-16")) {
                return Err(Refusal::params("half a line"));
            }
            if given["text"].as_str().is_some_and(|text| text.starts_with("/attache") && self.is("CMD-06")) {
                return Err(Refusal::params("an unknown command"));
            }
            block(given)?;
            if given["type"] == "resource_link" && (self.is("INIT-21") || self.is("PROMPT-03")) {
                return Err(Refusal::params("links are not supported"));
            }
        }
        let mut state = self.state();
        let number = state.count();
        if self.is("NES-05") && state.nes.contains_key(session) {
            let made = Session::new("/", Vec::new());
            state.sessions.insert(session.to_owned(), made);
        }
        let cancel = CancelToken::new();
        let idle = CancelToken::new();
        let Some(kept) = state.open(session) else {
            let known = state.sessions.contains_key(session);
            return Err(match () {
                () if self.is("RPC-18") && !known => Refusal::new(-32603, "Internal error"),
                () if self.is("SESS-30") && known => Refusal::new(-32603, "Internal error"),
                () => Refusal::session(session),
            });
        };
        if self.is("FORK-03") && session.starts_with("fork-") {
            return Err(Refusal::params("load the fork first"));
        }
        if kept.turn.is_some() && !self.is("PROMPT-13") {
            return Err(Refusal::new(-32600, "A turn is running"));
        }
        if kept.told_to_stop && self.is("CANCEL-12") {
            cancel.cancel();
        }
        kept.turn = Some(cancel.clone());
        kept.idle = idle.clone();
        kept.told_to_stop = false;
        for given in blocks {
            kept.history.push(json!({
                "sessionUpdate": "user_message_chunk", "content": given, "messageId": format!("user-{number}"),
            }));
        }
        let turn = Turn {
            agent: self.clone(),
            session: session.to_owned(),
            cwd: kept.cwd.clone(),
            roots: kept.roots.clone(),
            cancel: cancel.clone(),
        };
        state.working.push((id.clone(), cancel));
        Ok((turn, Intent::read(blocks), idle))
    }
}

impl Turn {
    async fn run(&self, id: &Value, intent: Intent) {
        let asks = intent == Intent::Ask;
        let runs = matches!(intent, Intent::Run(_));
        let ended = actions::perform(self, intent).await;
        let agent = &self.agent;
        let told = self.is_told();
        let overlooks = told && (agent.is("CANCEL-05") || (agent.is("CANCEL-05/asking") && asks));
        let surfaces = told && (agent.is("CANCEL-06") || (agent.is("CANCEL-06/command") && runs));
        let reply = match ended {
            // CANCEL-05, CANCEL-06: errors caused by aborting are answered as `cancelled`.
            _ if surfaces => Err(Refusal::new(-32603, "The operation was aborted")),
            _ if self.cancel.is_cancelled() && !overlooks => Ok(self.stop("cancelled")),
            Ok(stop) => stop.map(|stop| self.stop(stop)),
            Err(Cancelled) => Ok(self.stop("end_turn")),
        };
        let wanted = {
            let mut state = agent.state();
            let wanted = state.working.iter().any(|(open, _)| open == id);
            state.working.retain(|(open, _)| open != id);
            if let Some(session) = state.sessions.get_mut(&self.session) {
                session.turn = None;
            }
            wanted
        };
        // CANCEL-16: a request is answered, cancelled or not.
        if wanted {
            agent.answer(id, "session/prompt", reply).await;
        }
        if (agent.is("CANCEL-08") && told) || (agent.is("PROMPT-11") && !self.cancel.is_cancelled()) {
            self.say("one more thing").await;
        }
        if agent.is("CANCEL-08/tool") && told {
            self.end_last_tool().await;
        }
    }

    /// CANCEL-08 broken: the last tool call ends after its turn.
    async fn end_last_tool(&self) {
        let last = self.change(|session| {
            session.history.iter().rev().find_map(|update| update["toolCallId"].as_str().map(str::to_owned))
        });
        if let Some(Some(tool)) = last {
            self.tool_update(&tool, json!({ "title": "Stopped" })).await;
        }
    }

    /// Whether `session/cancel` came.
    fn is_told(&self) -> bool {
        self.agent.state().sessions.get(&self.session).is_some_and(|session| session.told_to_stop)
    }

    fn stop(&self, reason: &str) -> Value {
        json!({
            "stopReason": reason,
            "usage": { "totalTokens": 7, "inputTokens": 4, "outputTokens": 3 },
        })
    }

    async fn until_cancelled<T>(&self, what: impl Future<Output = T>) -> Result<T, Cancelled> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                // CANCEL-04 broken: in its own time.
                if self.agent.is("CANCEL-04") {
                    tokio::time::sleep(SLOW).await;
                }
                if self.agent.is("CANCEL-04/late") && self.is_told() {
                    tokio::time::sleep(6 * SLOW).await;
                }
                Err(Cancelled)
            }
            value = what => Ok(value),
        }
    }

    /// Keeps and sends an update.
    async fn keep(&self, update: Value) {
        if let Some(session) = self.agent.state().sessions.get_mut(&self.session) {
            let mut kept = update.clone();
            if self.agent.is("TOOL-06") {
                append(&session.history, &mut kept);
            }
            session.history.push(kept);
        }
        if self.agent.is("PROMPT-12/mixed") && update.to_string().contains("attache-plover") {
            let other = self.agent.state().sessions.keys().find(|id| **id != self.session).cloned();
            return self.agent.update(&other.unwrap_or_default(), update).await;
        }
        self.update(update).await;
    }

    async fn show_block(&self, content: Value) {
        let message = format!("agent-{}", self.count());
        self.tell(
            json!({ "sessionUpdate": "agent_message_chunk", "content": content, "messageId": message }),
        )
        .await;
    }

    /// TOOL-01, TOOL-02: a tool call, pending. Gives its id back.
    pub(crate) async fn tool(&self, kind: &str, title: &str, more: Value) -> String {
        let number = self.count();
        let id = if self.agent.is("TOOL-02") { "tool".to_owned() } else { format!("tool-{number}") };
        let mut call = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending",
            "name": kind,
        });
        merge(&mut call, more);
        if !self.agent.is("TOOL-01") {
            self.tell(call).await;
        }
        id
    }

    /// TOOL-05: only changed fields are sent.
    pub(crate) async fn tool_update(&self, id: &str, more: Value) {
        let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id });
        merge(&mut update, more);
        self.tell(update).await;
    }

    /// The tool call has come to its end, well or not.
    pub(crate) async fn tool_end(&self, id: &str, fine: bool, text: &str) {
        if self.agent.is("TOOL-10") {
            return;
        }
        let status = if fine { "completed" } else { "failed" };
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        self.tool_update(id, json!({ "status": status, "content": content })).await;
    }

    /// PERM-09: only an option that was offered and allows is an approval.
    pub(crate) async fn permitted(&self, tool: &str, title: &str) -> Result<bool, Cancelled> {
        let options = [
            ("yes", "Allow", "allow_once"),
            ("always", "Always allow", "allow_always"),
            ("no", "Reject", "reject_once"),
            ("never", "Never allow", "reject_always"),
        ];
        let params = json!({
            "sessionId": self.session,
            "toolCall": { "toolCallId": tool, "title": title, "status": "pending" },
            "options": options.map(|(id, name, kind)| json!({ "optionId": id, "name": name, "kind": kind })),
        });
        let answer = self.ask("session/request_permission", params).await?;
        let failed = answer.is_err();
        if (self.agent.is("PERM-09/error") && failed)
            || (self.agent.is("PERM-09/null") && answer == Ok(Value::Null))
        {
            return Ok(true);
        }
        let outcome = answer.map(|answer| answer["outcome"].clone()).unwrap_or_default();
        let chosen = outcome["optionId"].as_str().unwrap_or_default();
        let rejects = matches!(chosen, "no" | "never");
        if (self.agent.is("PERM-15") && rejects)
            || (self.agent.is("PERM-09") && !chosen.is_empty() && !rejects)
        {
            return Ok(true);
        }
        Ok(outcome["outcome"] == "selected" && matches!(outcome["optionId"].as_str(), Some("yes" | "always")))
    }
}

impl Context for Turn {
    fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    fn session(&self) -> &str {
        &self.session
    }

    fn client_has(&self, path: &str) -> bool {
        self.agent.state().client_has(path)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.agent.state().open(&self.session).map(change)
    }

    fn options(&self) -> Value {
        let boolean = self.client_has("session.configOptions.boolean");
        self.change(|session| session.options(boolean)).unwrap_or_default()
    }

    fn wait<T: Send>(
        &self,
        what: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, Cancelled>> + Send {
        self.until_cancelled(what)
    }

    fn say(&self, text: &str) -> impl Future<Output = ()> + Send {
        self.show(json!({ "type": "text", "text": text }))
    }

    fn show(&self, content: Value) -> impl Future<Output = ()> + Send {
        self.show_block(content)
    }

    fn tell(&self, update: Value) -> impl Future<Output = ()> + Send {
        self.keep(update)
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

/// TOOL-06 broken: the content of an update is appended instead of replacing.
fn append(history: &[Value], update: &mut Value) {
    let Some(new) = update["content"].as_array().filter(|_| update["sessionUpdate"] == "tool_call_update")
    else {
        return;
    };
    let before = history
        .iter()
        .rev()
        .find(|old| old["toolCallId"] == update["toolCallId"] && old["content"].is_array());
    let mut all = before.and_then(|old| old["content"].as_array()).cloned().unwrap_or_default();
    all.extend(new.iter().cloned());
    update["content"] = Value::Array(all);
}
