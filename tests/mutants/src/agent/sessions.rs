//! The methods of sessions.

use super::dispatch::Rest;
use super::params::{absolute, maybe, roots, servers, system_prompt, text};
use super::state::Session;
use super::wire::{Agent, Refusal, Reply};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How many sessions one page of the list holds.
const PAGE: usize = 3;

impl Agent {
    pub(crate) fn new_session(&self, params: &Value) -> Reply {
        self.admit()?;
        if self.is("RPC-13") && params.get("cwd").is_none() {
            return Err(Refusal::new(-32603, "Internal error"));
        }
        let cwd = absolute(params, "cwd")?;
        let mut session = self.prepare(Session::new(cwd, Vec::new()), params, true)?;
        if self.is("SYSP-05") {
            // As if the user had said it.
            let blocks = params["systemPrompt"]["content"].as_array().into_iter().flatten();
            session.history.extend(blocks.map(|block| json!({ "sessionUpdate": "user_message_chunk", "content": block, "messageId": "user-0" })));
        }
        let mut state = self.state();
        let number = state.count();
        // SESS-03: no two sessions have one id.
        let id = if self.is("SESS-03") { "session".to_owned() } else { format!("session-{number}") };
        drop(state);
        Ok(self.open_as(&id, Session { born: number, ..session }, true))
    }

    /// Applies the params that new, load, resume and fork share.
    pub(crate) fn prepare(
        &self,
        mut session: Session,
        params: &Value,
        required: bool,
    ) -> Result<Session, Refusal> {
        session.cwd = absolute(params, "cwd")?.to_owned();
        // ROOT-12, FORK-05: the roots are those of this request.
        let asked = roots(self, params)?;
        if !(self.is("ROOT-12") && !required && asked.is_empty()) {
            session.roots = asked;
        }
        let servers = servers(self, params, required)?;
        system_prompt(self, params)?;
        let most = if self.is("MCP-05") { 1 } else { usize::MAX };
        for (command, args, env) in servers.programs.into_iter().take(most) {
            let answered = greet_server(&command, &args, env);
            // MCP-09: one that does not start is no reason to have no session.
            if !answered && self.is("MCP-09") {
                return Err(Refusal::new(-32603, "a server did not start"));
            }
        }
        session.mcp = servers.acp;
        session.open = true;
        Ok(session)
    }

    fn open_as(&self, id: &str, session: Session, named: bool) -> Value {
        let mut state = self.state();
        // CONF-07, CONF-08: without booleans the option is left out.
        let boolean = state.client_has("session.configOptions.boolean") || self.is("CONF-07");
        let mut answer = json!({
            "modes": session.modes(), "models": session.models(), "configOptions": session.options(boolean),
        });
        if named {
            answer["sessionId"] = json!(id);
        }
        state.sessions.insert(id.to_owned(), session);
        answer
    }

    fn stored(&self, params: &Value) -> Result<(String, Session), Refusal> {
        let id = text(params, "sessionId")?;
        absolute(params, "cwd")?;
        let found = self.state().sessions.get(id).cloned();
        if found.is_none() && self.is("SESS-19") {
            return Err(Refusal::new(-32603, "Internal error"));
        }
        found.map(|session| (id.to_owned(), session)).ok_or_else(|| Refusal::session(id))
    }

    pub(crate) fn resume(&self, params: &Value) -> Reply {
        self.admit()?;
        let (id, session) = self.stored(params)?;
        let session = self.prepare(session, params, false)?;
        Ok(self.open_as(&id, session, false))
    }

    /// SESS-23 broken: history before the answer.
    pub(crate) async fn repeat(&self, params: &Value) {
        let history = self.stored(params).map(|(_, session)| session.history).unwrap_or_default();
        for update in history {
            self.update(params["sessionId"].as_str().unwrap_or_default(), update).await;
        }
    }

    /// FORK-02: another session with the same past.
    pub(crate) fn fork(&self, params: &Value) -> Reply {
        self.admit()?;
        let (source, kept) = self.stored(params)?;
        let roots = kept.roots.clone();
        let mut session = self.prepare(Session { turn: None, roots: Vec::new(), ..kept }, params, false)?;
        if self.is("FORK-05") && session.roots.is_empty() {
            session.roots = roots;
        }
        let number = self.state().count();
        let id = if self.is("FORK-02") { source } else { format!("fork-{number}") };
        Ok(self.open_as(&id, Session { born: number, ..session }, true))
    }

    /// SESS-11, SESS-12: the whole history, then the answer.
    pub(crate) async fn load(self: Arc<Self>, id: Value, params: Value) -> Option<Rest> {
        let opened = self.admit().and_then(|()| self.stored(&params));
        let opened = opened.and_then(|(session, kept)| Ok((session, self.prepare(kept, &params, true)?)));
        let (session, kept) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                self.answer(&id, "session/load", Err(refusal)).await;
                return None;
            }
        };
        let mut history = kept.history.clone();
        self.forget(&mut history);
        let late = if self.is("SESS-12") || self.is("SESS-12/slow") { history.pop() } else { None };
        for mut update in history {
            if update["sessionUpdate"] == "user_message_chunk" && self.is("MSG-06") {
                update["messageId"] = Value::Null;
            }
            if self.is("SESS-17") && update["messageId"].is_string() {
                update["messageId"] = json!(format!("again-{}", self.state().count()));
            }
            self.update(&session, update).await;
        }
        let answer = self.open_as(&session, kept, false);
        self.answer(&id, "session/load", Ok(answer)).await;
        if let Some(mut update) = late {
            if self.is("SESS-12/slow") {
                // Nothing but its words shows what it repeats.
                tokio::time::sleep(Duration::from_secs(1)).await;
                update["messageId"] = Value::Null;
            }
            self.update(&session, update).await;
        }
        self.follow("session/load", &params).await;
        None
    }

    /// SESS-11, SESS-15 broken: parts of the history are lost or change places.
    fn forget(&self, history: &mut Vec<Value>) {
        if self.is("SESS-11/order") {
            history.sort_by_key(|update| update["sessionUpdate"] != "user_message_chunk");
        }
        if self.is("SESS-15/order") {
            history.sort_by_key(|update| update.get("toolCallId").is_some());
        }
        let is = |kind: &'static str| move |update: &Value| update["sessionUpdate"] == kind;
        if self.is("SESS-11") {
            history.truncate(1);
        }
        if self.is("SESS-11/last")
            && let Some(last) = history.iter().rposition(is("agent_message_chunk"))
        {
            history.remove(last);
        }
        if self.is("SESS-11/user") {
            let mut users = 0;
            history.retain(|update| {
                users += usize::from(is("user_message_chunk")(update));
                users != 2 || !is("user_message_chunk")(update)
            });
        }
        if self.is("SESS-15") {
            history.retain(|update| update.get("toolCallId").is_none());
        }
    }

    /// SESS-27, SSTAT-04: cancels the running turn and closes the session once that is answered.
    pub(crate) async fn close(self: Arc<Self>, id: Value, method: String, params: Value) -> Option<Rest> {
        let running = text(&params, "sessionId").and_then(|session| {
            let mut state = self.state();
            let kept = state.sessions.get_mut(session).ok_or_else(|| Refusal::session(session))?;
            let running = kept.turn.clone().map(|turn| (turn, kept.idle.clone()));
            if kept.archived && method == "session/archive" && self.is("SSTAT-07") {
                return Err(Refusal::params("it is archived already"));
            }
            kept.open = false;
            kept.archived |= method == "session/archive";
            Ok(running)
        });
        let running = match running {
            Ok(running) => running,
            Err(refusal) => {
                self.answer(&id, &method, Err(refusal)).await;
                return None;
            }
        };
        let lazy = self.is(if method == "session/close" { "SESS-27" } else { "SSTAT-04" });
        Some(Box::pin(async move {
            if let Some((turn, idle)) = running.filter(|_| !lazy) {
                turn.cancel();
                idle.cancelled().await;
            }
            let result = if self.is("SESS-29") { json!({ "closed": true }) } else { json!({}) };
            self.answer(&id, &method, Ok(result)).await;
        }))
    }

    pub(crate) fn list_sessions(&self, params: &Value) -> Reply {
        if self.is("LIST-14") && params.get("additionalDirectories").is_some() {
            return Err(Refusal::params("an unknown filter"));
        }
        let archived = self.archive_filter(params)?;
        let mut found: Vec<_> = {
            let state = self.state();
            let shown = state.sessions.iter().filter(|(_, session)| is_shown(session, archived));
            shown.map(|(id, session)| (session.born, session.info(id))).collect()
        };
        found.sort_by_key(|(born, _)| *born);
        self.page(params, found.into_iter().map(|(_, info)| info).collect())
    }

    /// SSTAT-06: an unknown filter is refused.
    pub(crate) fn archive_filter<'a>(&self, params: &'a Value) -> Result<&'a str, Refusal> {
        let archived = maybe(params, "archived")?.unwrap_or("exclude");
        match matches!(archived, "exclude" | "include" | "only") || self.is("SSTAT-06") {
            true => Ok(archived),
            false => Err(Refusal::params("an unknown filter")),
        }
    }

    /// A page of the list, of the sessions in one directory if that is asked for.
    pub(crate) fn page(&self, params: &Value, mut found: Vec<Value>) -> Reply {
        if let Some(cwd) = maybe(params, "cwd")?.filter(|_| !self.is("LIST-09")) {
            found.retain(|info| info["cwd"] == cwd);
        }
        let start = match maybe(params, "cursor")?.map(str::parse::<usize>) {
            None => 0,
            Some(Ok(start)) => start,
            Some(Err(_)) if self.is("LIST-07") => 0,
            Some(Err(_)) => return Err(Refusal::params("an unknown cursor")),
        };
        if found.is_empty() && self.is("LIST-04") {
            return Err(Refusal::new(-32002, "Resource not found"));
        }
        let page: Vec<_> = found.iter().skip(start).take(PAGE).collect();
        let mut answer = json!({ "sessions": page });
        // LIST-05: no cursor, no more.
        if start + PAGE < found.len() || self.is("LIST-05") {
            answer["nextCursor"] = json!((start + PAGE).to_string());
        }
        Ok(answer)
    }

    /// DEL-03, DEL-04: gone, or gone already.
    pub(crate) fn delete(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        let mut state = self.state();
        if self.is("DEL-04") && !state.sessions.contains_key(id) {
            return Err(Refusal::session(id));
        }
        if !self.is("DEL-03")
            && let Some(session) = state.sessions.remove(id)
        {
            session.turn.iter().for_each(attache_conn::CancelToken::cancel);
        }
        Ok(json!({}))
    }

    pub(crate) fn unarchive(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        let mut state = self.state();
        let session = state.kept(id).ok_or_else(|| Refusal::session(id))?;
        session.archived = false;
        Ok(json!({}))
    }

    /// SSTAT-01: says how things stand and changes nothing.
    pub(crate) fn status(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        let mut state = self.state();
        let session = state.kept(id).ok_or_else(|| Refusal::session(id))?;
        let status = if session.open { "open" } else { "saved" };
        session.open |= self.is("SSTAT-01");
        Ok(json!({ "status": status }))
    }

    pub(crate) fn set_title(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        let title = text(params, "title")?.trim();
        let mut state = self.state();
        let session = state.kept(id).ok_or_else(|| Refusal::session(id))?;
        if title.is_empty() && !self.is("SSTAT-08") {
            return Err(Refusal::params("a title must not be empty"));
        }
        session.title = Some(title.to_owned());
        session.titled = true;
        Ok(json!({ "title": title }))
    }

    /// MODE-04, MODE-05: `modeId` names one of the modes.
    pub(crate) fn set_mode(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        if self.is("MODE-06") && self.state().open(id).is_some_and(|session| session.turn.is_some()) {
            return Err(Refusal::new(-32600, "A turn is running"));
        }
        let mode = text(params, if self.is("MODE-05") { "mode" } else { "modeId" })?;
        self.change(id, "mode", &json!(mode), self.is("MODE-04"))?;
        Ok(json!({}))
    }

    pub(crate) fn set_model(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        self.change(id, "model", &json!(text(params, "modelId")?), false)?;
        Ok(json!({}))
    }

    /// CONF-13, CONF-15, CONF-19: one of the values that are offered, and then all options.
    pub(crate) fn set_option(&self, params: &Value) -> Reply {
        let id = text(params, "sessionId")?;
        let option = text(params, "configId")?;
        if self.is("CONF-09") && option == "model" && params.get("category").is_none() {
            return Err(Refusal::params("`category` is missing"));
        }
        let value = &params["value"];
        let typed = params["type"] == "boolean";
        if !(value.is_string() || (value.is_boolean() && typed)) {
            return Err(Refusal::params("`value` must be a string, or a boolean of type boolean"));
        }
        let all = || {
            let mut state = self.state();
            let boolean = state.client_has("session.configOptions.boolean") || self.is("CONF-07");
            state.open(id).map(|session| session.options(boolean)).unwrap_or_default()
        };
        let before = all();
        self.change(id, option, value, self.is("CONF-15"))?;
        let mut options = if self.is("CONF-13/before") { before } else { all() };
        if self.is("CONF-13")
            && let Some(list) = options.as_array_mut()
        {
            list.retain(|entry| entry["id"] == option);
        }
        Ok(json!({ "configOptions": options }))
    }

    fn change(&self, id: &str, option: &str, value: &Value, anything: bool) -> Result<(), Refusal> {
        let mut state = self.state();
        let session = state.open(id).ok_or_else(|| Refusal::session(id))?;
        if !session.offers(option, value) {
            return if anything { Ok(()) } else { Err(Refusal::params("a value that is not offered")) };
        }
        session.set(option, value);
        Ok(())
    }

    /// Sends the notifications that follow a request.
    pub(crate) async fn follow(&self, method: &str, params: &Value) {
        if matches!(method, "authenticate" | "logout") {
            self.tell_account().await;
        }
        let Some(session) = self.follows(method, params) else {
            return;
        };
        let kept = {
            let state = self.state();
            let boolean = state.client_has("session.configOptions.boolean") || self.is("CONF-07");
            let kept = state.sessions.get(&session);
            kept.map(|kept| (kept.mode.clone(), kept.options(boolean), kept.title.clone()))
        };
        let Some((mode, options, title)) = kept else {
            return;
        };
        let update = match method {
            "session/set_mode" if self.is("MODE-10/option") => return,
            "session/set_mode" | "session/set_model" => {
                json!({ "sessionUpdate": "config_option_update", "configOptions": options })
            }
            "session/set_config_option" if params["configId"] == "mode" && !self.is("MODE-10") => {
                json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
            }
            "session/set_title" => json!({ "sessionUpdate": "session_info_update", "title": title }),
            "session/new" | "session/load" | "session/resume" | "session/fork" => json!({
                "sessionUpdate": "available_commands_update",
                "availableCommands": [
                    { "name": "echo", "description": "Says it again", "input": { "hint": "what to say" } },
                    { "name": "plan", "description": "Makes a plan" },
                ],
            }),
            _ => return,
        };
        self.update(&session, update).await;
    }

    /// The session that a served request was about; the newest one if it made one.
    fn follows(&self, method: &str, params: &Value) -> Option<String> {
        if matches!(method, "session/new" | "session/fork") {
            let state = self.state();
            return state.sessions.iter().max_by_key(|(_, session)| session.born).map(|(id, _)| id.clone());
        }
        params["sessionId"].as_str().map(str::to_owned)
    }

    /// Sends an update of a session.
    pub(crate) async fn update(&self, session: &str, update: Value) {
        self.notify("session/update", json!({ "sessionId": session, "update": update })).await;
    }
}

pub(crate) fn is_shown(session: &Session, archived: &str) -> bool {
    match archived {
        "only" => session.archived,
        "include" => true,
        _ => !session.archived,
    }
}

/// MCP-02: starts a server and shakes hands with it. Whether it started.
fn greet_server(command: &str, args: &[String], env: Vec<(String, String)>) -> bool {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let child = Command::new(command)
        .args(args)
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "mutant-agent", "version": "1" },
    } });
    if let Some(mut stdin) = child.stdin.take() {
        writeln!(stdin, "{hello}").ok();
    }
    // Its input ends here, so it comes to its end by itself, with or without an answer.
    if let Some(stdout) = child.stdout.take() {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).ok();
    }
    child.kill().ok();
    child.wait().ok();
    true
}
