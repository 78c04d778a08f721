//! The methods of version 2.

use super::Session;
use crate::agent::dispatch::Rest;
use crate::agent::params::{absolute, text};
use crate::agent::sessions::is_shown;
use crate::agent::state;
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
            // INIT-08: version 2 alone is spoken here.
            let data = json!({ "requested": params["protocolVersion"], "supported": [2] });
            let data = Some(data).filter(|_| !self.is("INIT-08/data"));
            let refusal = Refusal { data, ..Refusal::new(-32022, "Unsupported protocol version") };
            if late || !self.is("INIT-08") {
                return Err(refusal);
            }
        }
        let later = params["protocolVersion"].as_u64().is_some_and(|number| number > 2);
        if params["protocolVersion"] == 2 && !params["info"]["name"].is_string() {
            return Err(Refusal::params("`info` is missing"));
        }
        let client = Some(&params["capabilities"]).filter(|given| given.is_object());
        let client = client.cloned().unwrap_or_else(|| json!({}));
        {
            let mut state = self.state();
            state.client = client;
            state.v2.get_or_insert_default();
            state.initialized = true;
            state.set_up_providers();
        }
        let mut methods = vec![json!({ "type": "agent", "methodId": "key", "name": "Key" })];
        // AUTH-08: a terminal login is offered only to clients that can open one.
        if params["capabilities"]["auth"]["terminal"].is_object() || self.is("AUTH-08") {
            methods.push(json!({
                "type": "terminal", "methodId": "login", "name": "Log in", "args": ["--login"], "env": [],
            }));
        }
        Ok(json!({
            "protocolVersion": match () {
                () if self.is("INIT-06") && !later => json!(3),
                () if self.is("INIT-08/newest") => params["protocolVersion"].clone(),
                () => json!(2),
            },
            "info": { "name": "mutant-agent", "title": "Mutant agent", "version": "1.0.0" },
            "capabilities": {
                "session": {
                    "prompt": { "embeddedContext": {} }, "mcp": { "stdio": {}, "http": {}, "acp": {} },
                    "delete": {}, "fork": {}, "additionalDirectories": {}, "archive": {}, "status": {},
                    "title": {}, "systemPrompt": { "mode": { "override": {} } },
                },
                "auth": { "status": {} },
                "providers": {},
                "_meta": { "mutants.attache": { "echo": true } },
            },
            "authMethods": methods,
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
            "session/close" | "session/archive" => return self.clone().close_2(id, method, params).await,
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
        let fine = reply.is_ok();
        self.answer(&id, &method, reply).await;
        if fine && matches!(method.as_str(), "auth/login" | "auth/logout") {
            self.tell_account().await;
        }
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
            "auth/login" => self.authenticate(params),
            "auth/logout" if !self.is("V2-07") => self.logout(),
            "auth/status" => self.auth_status(),
            "session/new" => self.new_session_2(params),
            "session/list" if !self.is("V2-05") => self.list_2(params),
            "session/fork" => self.fork_2(params),
            "session/delete" => self.delete_2(params),
            "session/unarchive" => self.unarchive(params),
            "session/status" => self.status(params),
            "session/set_title" => self.set_title(params),
            "providers/list" => self.list_providers(),
            "providers/set" => self.set_provider(params),
            "providers/disable" => self.disable_provider(params),
            "session/set_config_option" => self.set_option_2(params),
            "tool_call/cancel" | "terminal/cancel" => self.cancel_tool(params),
            _ if method.starts_with('_') && self.is("EXT-07") => Ok(Value::Null),
            _ if !method.starts_with('_') && self.is("RPC-12") => Ok(Value::Null),
            _ if !method.starts_with('_') && self.is("RPC-15") => Err(Refusal::new(-32700, "Parse error")),
            _ => Err(Refusal { data: Some(json!({ "method": method })), ..Refusal::method() }),
        }
    }

    fn new_session_2(&self, params: &Value) -> Reply {
        self.admit()?;
        if self.is("RPC-13") && params.get("cwd").is_none() {
            return Err(Refusal::new(-32603, "Internal error"));
        }
        let base = state::Session::new(absolute(params, "cwd")?, Vec::new());
        let mut base = self.prepare(base, params, false)?;
        if self.is("SYSP-05") {
            // As if the user had said it.
            let content = &params["systemPrompt"]["content"];
            let update =
                json!({ "sessionUpdate": "user_message", "messageId": "user-0", "content": content });
            base.history.extend(content.is_array().then_some(update));
        }
        Ok(self.open_2(if self.is("SESS-03") { "session" } else { "" }, "session", base))
    }

    /// Opens a session under this id, or under a new one that begins with `family`.
    fn open_2(&self, id: &str, family: &str, base: state::Session) -> Value {
        let mut state = self.state();
        let born = state.count();
        let id = if id.is_empty() { format!("{family}-{born}") } else { id.to_owned() };
        let session = Session { base: state::Session { born, ..base }, ..Session::default() };
        let answer =
            json!({ "sessionId": id, "configOptions": session.options(), "availableCommands": commands() });
        state.v2.get_or_insert_default().sessions.insert(id, session);
        answer
    }

    fn list_2(&self, params: &Value) -> Reply {
        let archived = self.archive_filter(params)?;
        let mut found: Vec<(u64, Value)> = {
            let state = self.state();
            let sessions = state.v2.iter().flat_map(|v2| &v2.sessions);
            let sessions = sessions.filter(|(_, kept)| is_shown(kept, archived));
            sessions.map(|(id, kept)| (kept.born, kept.info(id))).collect()
        };
        found.sort_by_key(|(born, _)| *born);
        self.page(params, found.into_iter().map(|(_, info)| info).collect())
    }

    /// FORK-02, FORK-05: another session with the same past and the roots of the request.
    fn fork_2(&self, params: &Value) -> Reply {
        self.admit()?;
        let source = text(params, "sessionId")?;
        let kept = self.state().session_2(source).map(|kept| kept.base.clone());
        let kept = kept.ok_or_else(|| Refusal::session(source))?;
        let roots = kept.roots.clone();
        let mut base =
            self.prepare(state::Session { turn: None, roots: Vec::new(), ..kept }, params, false)?;
        if self.is("FORK-05") && base.roots.is_empty() {
            base.roots = roots;
        }
        Ok(self.open_2(if self.is("FORK-02") { source } else { "" }, "fork", base))
    }

    /// DEL-03, DEL-04: gone, or gone already.
    fn delete_2(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        let mut state = self.state();
        let sessions = &mut state.v2.get_or_insert_default().sessions;
        if self.is("DEL-04") && !sessions.contains_key(id) {
            return Err(Refusal::session(id));
        }
        if !self.is("DEL-03")
            && let Some(session) = sessions.remove(id)
        {
            session.turn.iter().for_each(CancelToken::cancel);
        }
        Ok(json!({}))
    }

    fn set_option_2(&self, params: &Value) -> Reply {
        let session = text(params, "sessionId")?;
        let option = text(params, "configId")?;
        if self.is("CONF-09") && option == "model" && params.get("category").is_none() {
            return Err(Refusal::params("`category` is missing"));
        }
        let value = &params["value"];
        let typed = if value.is_boolean() { "boolean" } else { "id" };
        let mut state = self.state();
        let kept = state.session_2(session).ok_or_else(|| Refusal::session(session))?;
        match kept.offers(option, value) && params["type"] == typed {
            true => kept.set(option, value),
            false if self.is("CONF-15") && params["type"] == typed => {}
            false => return Err(Refusal::params("no such option or value")),
        }
        let mut options = kept.options();
        if self.is("CONF-13")
            && let Some(list) = options.as_array_mut()
        {
            list.retain(|entry| entry["configId"] == option);
        }
        Ok(json!({ "configOptions": options }))
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
        self.admit()?;
        let session = text(params, "sessionId")?;
        let kept = self.state().session_2(session).map(|kept| kept.base.clone());
        let base = self.prepare(kept.ok_or_else(|| Refusal::session(session))?, params, false)?;
        let wanted = match params["replayFrom"]["type"].as_str() {
            _ if params["replayFrom"].is_null() => false,
            Some("start") => true,
            _ => return Err(Refusal::params("an unknown cursor")),
        };
        let (options, state) = {
            let mut state = self.state();
            let all = &mut state.v2.get_or_insert_default().sessions;
            let kept = all.get_mut(session).ok_or_else(|| Refusal::session(session))?;
            kept.base = base;
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
        if self.is("V2-26/user") {
            let second = history.iter().skip(1).position(|update| update["sessionUpdate"] == "user_message");
            second.map(|place| history.remove(place + 1));
        }
        if self.is("V2-26/tools") {
            history.retain(|update| update.get("toolCallId").is_none());
        }
        for update in history {
            self.update(session, update).await;
        }
    }

    /// V2-28: ends all work, background included, and answers then.
    async fn close_2(self: Arc<Self>, id: Value, method: String, params: Value) -> Option<Rest> {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        // SSTAT-04: archiving ends the work as closing does.
        let archives = method == "session/archive";
        let idle = self.state().session_2(&session).is_some_and(|kept| kept.turn.is_none());
        if archives && self.is("SSTAT-04") && !idle {
            self.answer(&id, &method, Ok(json!({}))).await;
            return None;
        }
        let known = self.state().session_2(&session).map(|kept| {
            kept.open = false;
            kept.archived |= archives;
            (kept.turn.clone(), kept.idle.clone(), std::mem::take(&mut kept.background))
        });
        let Some((turn, idle, background)) = known else {
            // V2-29: closing it twice is fine.
            let reply = if self.is("V2-29") { Err(Refusal::session(&session)) } else { Ok(json!({})) };
            self.answer(&id, &method, reply).await;
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
                self.answer(&id, &method, Ok(json!({}))).await;
            }
            if let Some(turn) = turn {
                turn.cancel();
                idle.cancelled().await;
            }
            if !late {
                self.answer(&id, &method, Ok(json!({}))).await;
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

    /// `$/cancel_request`: a prompt that is not inserted yet is answered as cancelled.
    pub(crate) async fn withdraw_2(&self, id: &Value) {
        let is_queued = {
            let mut state = self.state();
            let queues = state.v2.iter_mut().flat_map(|v2| v2.sessions.values_mut());
            let place = |(open, _): &(Value, Vec<Value>)| open == id;
            let found = queues.map(|kept| &mut kept.queue).find_map(|queue| {
                let place = queue.iter().position(place)?;
                queue.remove(place)
            });
            found.is_some()
        };
        // CANCEL-16: a request is answered, cancelled or not.
        let answers = match () {
            () if self.is("CANCEL-16") => 0,
            () if self.is("CANCEL-16/twice") => 2,
            () => 1,
        };
        for _ in 0..if is_queued { answers } else { 0 } {
            self.answer(id, "session/prompt", Err(Refusal::new(-32800, "Cancelled"))).await;
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
