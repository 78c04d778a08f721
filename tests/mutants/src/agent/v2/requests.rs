//! The methods of version 2.

use super::Session;
use crate::agent::dispatch::Rest;
use crate::agent::params::{absolute, list, text};
use crate::agent::wire::{Agent, Refusal, Reply};
use attache_conn::CancelToken;
use serde_json::{Value, json};
use std::sync::Arc;

/// The commands of every session.
fn commands() -> Value {
    json!([
        { "type": "command", "name": "echo", "description": "Say it again", "input": { "type": "text", "hint": "text" } },
        { "type": "command", "name": "init", "description": "Begin" },
    ])
}

impl Agent {
    /// INIT-06: version 2 for a client that offers it or a later one.
    pub(crate) fn initialize_2(&self, params: &Value) -> Reply {
        if self.is("INIT-24") && params["_meta"]["apiKey"].is_null() {
            return Err(Refusal::new(-32000, "Authentication required"));
        }
        // INIT-25: the version stays, and any other request ends the negotiation.
        let late = self.state().v2.as_ref().is_some_and(|v2| v2.begun);
        if late && !self.is("INIT-25") {
            return Err(Refusal::new(-32600, "Invalid request"));
        }
        if params["protocolVersion"].as_u64().is_some_and(|number| number < 2) {
            let data = Some(json!({ "requested": params["protocolVersion"], "supported": [2] }));
            return Err(Refusal { data, ..Refusal::new(-32022, "Unsupported protocol version") });
        }
        let later = params["protocolVersion"] != 2;
        if !later && !params["info"]["name"].is_string() {
            return Err(Refusal::params("`info` is missing"));
        }
        self.state().v2.get_or_insert_default();
        Ok(json!({
            "protocolVersion": match () {
                () if self.is("INIT-06") && !later => json!(3),
                () if self.is("INIT-07") => params["protocolVersion"].clone(),
                () => json!(2),
            },
            "info": { "name": "mutant-agent", "title": "Mutant agent", "version": "1.0.0" },
            "capabilities": {
                "session": { "prompt": { "embeddedContext": {} }, "mcp": { "stdio": {}, "http": {} } },
                "_meta": { "mutants.attache": { "echo": true } },
            },
            "authMethods": [{ "type": "agent", "methodId": "key", "name": "Key" }],
        }))
    }

    pub(crate) async fn begin_2(self: &Arc<Self>, id: Value, method: String, params: Value) -> Option<Rest> {
        // V2-01: a null id is none.
        if id.is_null() && !self.is("V2-01") {
            self.answer(&id, &method, Err(Refusal::new(-32600, "Invalid request"))).await;
            return None;
        }
        if method != "initialize" {
            self.state().v2.get_or_insert_default().begun = true;
        }
        match method.as_str() {
            "session/prompt" => return self.clone().prompt_2(id, params).await,
            "session/close" => return self.clone().close_2(id, params).await,
            "session/resume" => {
                let reply = self.resume_2(&params).await;
                self.answer(&id, &method, reply).await;
                if self.is("V2-26/late") {
                    self.replay(&params).await;
                }
                return None;
            }
            _ => {}
        }
        let reply = self.call_2(&method, &params);
        let opened = reply.as_ref().ok().and_then(|result| result["sessionId"].as_str().map(str::to_owned));
        self.answer(&id, &method, reply).await;
        if let Some(session) = opened {
            let update =
                json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands() });
            self.update(&session, update).await;
        }
        None
    }

    fn call_2(&self, method: &str, params: &Value) -> Reply {
        if !(params.is_object() || params.is_null()) {
            return Err(Refusal::params("`params` must be an object"));
        }
        match method {
            "initialize" => self.initialize_2(params),
            "auth/login" if text(params, "methodId")? == "key" => Ok(json!({})),
            "auth/login" => Err(Refusal::params("no such method")),
            "auth/logout" if !self.is("V2-07") => Ok(json!({})),
            "session/new" => self.new_session_2(params),
            "session/list" if !self.is("V2-05") => {
                let state = self.state();
                let sessions = state.v2.iter().flat_map(|v2| &v2.sessions);
                let sessions = sessions.map(|(id, kept)| json!({ "sessionId": id, "cwd": kept.cwd }));
                Ok(json!({ "sessions": sessions.collect::<Vec<_>>() }))
            }
            "session/set_config_option" => self.set_option_2(params),
            "tool_call/cancel" | "terminal/cancel" => self.cancel_tool(params),
            _ if method.starts_with('_') && self.is("EXT-07") => Ok(Value::Null),
            _ if !method.starts_with('_') && self.is("RPC-12") => Ok(Value::Null),
            _ if !method.starts_with('_') && self.is("RPC-15") => Err(Refusal::new(-32700, "Parse error")),
            _ => Err(Refusal::method()),
        }
    }

    fn new_session_2(&self, params: &Value) -> Reply {
        if self.is("RPC-13") && params.get("cwd").is_none() {
            return Err(Refusal::new(-32603, "Internal error"));
        }
        let cwd = absolute(params, "cwd")?;
        self.servers_2(params)?;
        let mut state = self.state();
        let number = state.count();
        let id = if self.is("SESS-03") { "session".to_owned() } else { format!("session-{number}") };
        let session =
            Session { cwd: cwd.to_owned(), open: true, mode: "ask".to_owned(), ..Session::default() };
        let answer =
            json!({ "sessionId": id, "configOptions": session.options(), "availableCommands": commands() });
        state.v2.get_or_insert_default().sessions.insert(id, session);
        Ok(answer)
    }

    /// V2-20, V2-25: every server is one that is known, and whole.
    fn servers_2(&self, params: &Value) -> Result<(), Refusal> {
        for server in list(params, "mcpServers")? {
            match server["type"].as_str() {
                Some("stdio") if self.is("V2-20") => "",
                Some("stdio") => text(server, "command")?,
                Some("http") => text(server, "url")?,
                _ => return Err(Refusal::params("an MCP server of an unknown type")),
            };
        }
        Ok(())
    }

    fn set_option_2(&self, params: &Value) -> Reply {
        let session = text(params, "sessionId")?;
        let mut state = self.state();
        let kept = state.session_2(session).ok_or_else(|| Refusal::session(session))?;
        let value = text(params, "value")?;
        let fits = params["configId"] == "mode" && params["type"] == "id" && matches!(value, "ask" | "code");
        if !fits {
            return Err(Refusal::params("no such option or value"));
        }
        kept.mode = value.to_owned();
        Ok(json!({ "configOptions": kept.options() }))
    }

    /// V2-31: only a running tool call that can be cancelled.
    fn cancel_tool(&self, params: &Value) -> Reply {
        let session = text(params, "sessionId")?;
        let tool = params["toolCallId"].as_str().unwrap_or_default();
        let token = self.state().session_2(session).and_then(|kept| kept.tools.get(tool).cloned());
        match token {
            Some(token) => {
                token.cancel();
                Ok(json!({}))
            }
            None if self.is("V2-31") => Ok(json!({})),
            None => Err(Refusal::params("nothing that can be cancelled")),
        }
    }

    /// V2-26, V2-27: the history if it is wanted, the state, the answer.
    async fn resume_2(&self, params: &Value) -> Reply {
        let session = text(params, "sessionId")?;
        let cwd = absolute(params, "cwd")?;
        self.servers_2(params)?;
        let wanted = match params["replayFrom"]["type"].as_str() {
            _ if params["replayFrom"].is_null() => false,
            Some("start") => true,
            _ => return Err(Refusal::params("an unknown cursor")),
        };
        let (options, state) = {
            let mut state = self.state();
            let all = &mut state.v2.get_or_insert_default().sessions;
            let kept = all.get_mut(session).ok_or_else(|| Refusal::session(session))?;
            kept.open = true;
            kept.cwd = cwd.to_owned();
            let running = if kept.turn.is_some() { "running" } else { "idle" };
            let mut state =
                json!({ "sessionUpdate": "state_update", "state": running, "background": kept.work() });
            if running == "idle" {
                state["stopReason"] = json!("end_turn");
            }
            (kept.options(), state)
        };
        if (wanted && !self.is("V2-26/late")) || self.is("V2-26/always") {
            self.replay(params).await;
        }
        if !self.is("V2-27") {
            self.update(session, state).await;
        }
        Ok(json!({ "configOptions": options, "availableCommands": commands() }))
    }

    async fn replay(&self, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        let mut history =
            self.state().session_2(session).map(|kept| kept.history.clone()).unwrap_or_default();
        if self.is("V2-26") {
            history.truncate(1);
        }
        for update in history {
            self.update(session, update).await;
        }
    }

    /// V2-28: ends all work, background included, and answers then.
    async fn close_2(self: Arc<Self>, id: Value, params: Value) -> Option<Rest> {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let known = self.state().session_2(&session).map(|kept| {
            kept.open = false;
            (kept.turn.clone(), kept.idle.clone(), std::mem::take(&mut kept.background))
        });
        let Some((turn, idle, background)) = known else {
            // V2-29: closing it twice is fine.
            let reply = if self.is("V2-29") { Err(Refusal::session(&session)) } else { Ok(json!({})) };
            self.answer(&id, "session/close", reply).await;
            return None;
        };
        if !self.is("V2-15/close") {
            self.refuse_queue(&session).await;
        }
        Some(Box::pin(async move {
            for terminal in background {
                let exit = json!({ "sessionUpdate": "terminal_update", "terminalId": terminal, "exitStatus": { "signal": "SIGKILL" } });
                self.update(&session, exit).await;
            }
            let late = self.is("V2-28");
            if late {
                self.answer(&id, "session/close", Ok(json!({}))).await;
            }
            if let Some(turn) = turn {
                turn.cancel();
                idle.cancelled().await;
            }
            if !late {
                self.answer(&id, "session/close", Ok(json!({}))).await;
            }
        }))
    }

    /// V2-15: prompts that are not inserted are answered as cancelled.
    pub(crate) async fn refuse_queue(&self, session: &str) {
        let queue = self.state().session_2(session).map(|kept| std::mem::take(&mut kept.queue));
        for (id, _) in queue.unwrap_or_default() {
            self.answer(&id, "session/prompt", Err(Refusal::new(-32800, "Cancelled"))).await;
        }
    }

    /// `session/cancel`: the turn and the prompts that wait for it.
    pub(crate) async fn cancel_2(&self, session: &str) {
        let (turn, background) = {
            let mut state = self.state();
            let Some(kept) = state.session_2(session) else { return };
            kept.told_to_stop = kept.turn.is_some();
            let ends = self.is("V2-15/background");
            (kept.turn.clone(), if ends { std::mem::take(&mut kept.background) } else { Vec::new() })
        };
        for terminal in background {
            let exit = json!({ "sessionUpdate": "terminal_update", "terminalId": terminal, "exitStatus": { "signal": "SIGTERM" } });
            self.update(session, exit).await;
        }
        if !self.is("V2-15") {
            self.refuse_queue(session).await;
        }
        turn.iter().for_each(CancelToken::cancel);
    }
}

impl crate::agent::state::State {
    /// The session of that id in version 2.
    pub(crate) fn session_2(&mut self, id: &str) -> Option<&mut Session> {
        self.v2.as_mut()?.sessions.get_mut(id)
    }
}
