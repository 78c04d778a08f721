//! Dispatch of messages.

use super::wire::{Agent, Refusal, Reply};
use attache_conn::CancelToken;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Work that runs concurrently with later messages.
pub(crate) type Rest = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Agent {
    /// Refuses a line above the size limit.
    pub(crate) async fn unreadable(&self) {
        self.answer(&Value::Null, "", Err(Refusal::new(-32700, "Parse error"))).await;
    }

    /// Handles a line. Work that depends on the order of lines is done here; the rest is returned.
    pub(crate) async fn receive(self: &Arc<Self>, line: &[u8]) -> Option<Rest> {
        if self.is("STDIO-11/long") && line.len() > 100_000 {
            self.die();
        }
        let message: Value = match serde_json::from_slice(line) {
            // STDIO-11 broken: a carriage return is one character too many.
            Ok(_) if self.is("STDIO-11") && line.ends_with(b"\r") => return None,
            Ok(message) => message,
            Err(_) => {
                self.refuse_line(Refusal::new(-32700, "Parse error"), "RPC-09").await;
                return None;
            }
        };
        let id = message.get("id");
        let known_id = matches!(id, None | Some(Value::Null | Value::String(_)))
            || id.is_some_and(|id| id.is_i64() || id.is_u64())
            || self.is("RPC-06");
        let outcome = match (message.get("result"), message.get("error")) {
            (Some(result), _) => Some(Ok(result.clone())),
            (None, Some(error)) => Some(Err(error.clone())),
            (None, None) => None,
        };
        match (message.get("method").and_then(Value::as_str), outcome) {
            (Some(method), _) if known_id && message["jsonrpc"] == "2.0" => {
                let params = message.get("params").unwrap_or(&Value::Null);
                match id {
                    Some(id) => self.request(id.clone(), method.to_owned(), params.clone()).await,
                    None => {
                        self.notified(method, params).await;
                        None
                    }
                }
            }
            // RPC-10: a malformed answer is never answered.
            (None, Some(outcome)) if id.is_some() => {
                self.answered(id.unwrap_or(&Value::Null), outcome);
                None
            }
            (None, Some(_)) => None,
            _ => {
                let rule = if message.is_array() { "RPC-11" } else { "RPC-10" };
                self.refuse_line(Refusal::new(-32600, "Invalid request"), rule).await;
                None
            }
        }
    }

    async fn refuse_line(&self, refusal: Refusal, rule: &str) {
        match () {
            () if self.is(rule) || (rule == "RPC-11" && self.is("V2-38")) => {}
            () if self.is("RPC-15/parse") && rule == "RPC-09" => {
                self.answer(&Value::Null, "", Err(Refusal { code: -32603, ..refusal })).await;
            }
            () => self.answer(&Value::Null, "", Err(refusal)).await,
        }
    }

    async fn notified(self: &Arc<Self>, method: &str, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        match method {
            "session/cancel" if self.speaks_2() => self.cancel_2(session).await,
            // One that was answered is answered again; ids of the checker are small.
            "$/cancel_request"
                if self.is("V2-42") && params["requestId"].as_u64().is_some_and(|id| id < 1000) =>
            {
                self.answer(&params["requestId"], "", Err(Refusal::new(-32800, "Cancelled"))).await;
            }
            "session/cancel" => {
                if let Some(turn) = self.cancelled_turn(session) {
                    turn.cancel();
                } else if self.is("CANCEL-10") && self.state().open(session).is_none() {
                    self.die();
                }
            }
            "$/cancel_request" if self.speaks_2() => self.withdraw_2(&params["requestId"]).await,
            "$/cancel_request" => self.cancel_request(&params["requestId"]),
            "_attache/opened" => {
                let visited =
                    self.state().visits.remove(params["elicitationId"].as_str().unwrap_or_default());
                visited.iter().for_each(CancelToken::cancel);
            }
            _ if method.starts_with("document/") => self.document(method, params),
            "nes/accept" | "nes/reject" => {}
            _ if self.is("EXT-08") => self.die(),
            _ if self.is("RPC-04") => self.answer(&Value::Null, method, Err(Refusal::method())).await,
            _ => {}
        }
    }

    /// CANCEL-11: the turn of this session and of no other.
    fn cancelled_turn(&self, session: &str) -> Option<CancelToken> {
        let mut state = self.state();
        if self.is("CANCEL-11") {
            state.sessions.values().filter_map(|session| session.turn.as_ref()).for_each(CancelToken::cancel);
        }
        let session = state.sessions.get_mut(session)?;
        session.told_to_stop = true;
        session.turn.clone()
    }

    fn cancel_request(&self, id: &Value) {
        if self.is("CANCEL-16") {
            // The answer is forgotten along with the work.
            self.state().working.retain(|(open, _)| open != id);
        }
        let state = self.state();
        if let Some((_, token)) = state.working.iter().find(|(open, _)| open == id) {
            token.cancel();
        }
    }

    /// A request: answered now, or given back as something that will be.
    async fn request(self: &Arc<Self>, id: Value, method: String, params: Value) -> Option<Rest> {
        if self.is("RPC-08/direction") && self.waits_for(&id) {
            self.answered(&id, Err(json!({ "code": -32600, "message": "Invalid request" })));
            return None;
        }
        if let Some(busy) = self.busy_for(&method) {
            let (agent, id, params) = (self.clone(), id, params);
            return Some(Box::pin(async move {
                busy.cancelled().await;
                if let Some(rest) = agent.begin(id, method, params).await {
                    rest.await;
                }
            }));
        }
        self.begin(id, method, params).await
    }

    /// RPC-20: one that does everything in its order waits for the turn first.
    fn busy_for(&self, method: &str) -> Option<CancelToken> {
        if !self.is("RPC-20") || method != "session/new" {
            return None;
        }
        if let Some(v2) = &self.state().v2 {
            return v2.sessions.values().find_map(|kept| kept.turn.is_some().then(|| kept.idle.clone()));
        }
        self.state()
            .sessions
            .values()
            .find_map(|session| session.turn.is_some().then(|| session.idle.clone()))
    }

    async fn begin(self: &Arc<Self>, id: Value, method: String, params: Value) -> Option<Rest> {
        if let Err(refusal) = self.meta(&params) {
            self.answer(&id, &method, Err(refusal)).await;
            return None;
        }
        let least = if self.state().only_2 { 0 } else { 2 };
        let offers_2 = method == "initialize"
            && params["protocolVersion"].as_u64().is_some_and(|number| number >= least);
        if self.speaks_2() || offers_2 {
            return self.begin_2(id, method, params).await;
        }
        match method.as_str() {
            "session/prompt" => return self.clone().prompt(id, params).await,
            "session/load" => return self.clone().load(id, params).await,
            "session/close" | "session/archive" => return self.clone().close(id, method, params).await,
            "nes/suggest" => return self.clone().suggest(id, params).await,
            "session/resume" if self.is("SESS-23") => self.repeat(&params).await,
            _ => {}
        }
        let reply = self.call(&method, &params);
        if method == "session/new" && self.is("SESS-31") && reply.is_ok() {
            // Before the client knows the session.
            self.follow(&method, &params).await;
        }
        let fine = reply.is_ok();
        self.answer(&id, &method, reply).await;
        if fine {
            self.follow(&method, &params).await;
        }
        None
    }

    /// EXT-01, EXT-04, EXT-11: `_meta` is ignored.
    fn meta(&self, params: &Value) -> Result<(), Refusal> {
        let given = params.get("_meta");
        let odd = given
            .and_then(Value::as_object)
            .is_some_and(|meta| meta.values().any(|value| !value.is_object()));
        let wrong = match () {
            () if self.is("EXT-01") => given.is_some_and(|meta| meta.is_object() && !odd),
            () if self.is("EXT-04") => odd,
            () if self.is("EXT-11") => given.is_some_and(|meta| !meta.is_object() && !meta.is_null()),
            () if self.is("EXT-12") => given.is_some_and(Value::is_null),
            () if self.is("EXT-03") => params.get("zz").is_some(),
            () => false,
        };
        if wrong { Err(Refusal::params("an unknown member")) } else { Ok(()) }
    }

    /// The methods that are answered at once.
    fn call(&self, method: &str, params: &Value) -> Reply {
        // RPC-25: members have names.
        if self.is("RPC-25") && method == "session/new" && params.is_array() {
            return self.new_session(&json!({ "cwd": params.get(0), "mcpServers": params.get(1) }));
        }
        if !(params.is_object() || params.is_null()) {
            return Err(Refusal::params("`params` must be an object"));
        }
        if params.is_null() && self.is("RPC-21") && method != "no/such" {
            return Err(Refusal::params("`params` is missing"));
        }
        match method {
            "initialize" => self.initialize(params),
            "authenticate" => self.authenticate(params),
            "logout" => self.logout(),
            "auth/status" => self.auth_status(),
            "providers/list" => self.list_providers(),
            "providers/set" => self.set_provider(params),
            "providers/disable" => self.disable_provider(params),
            "session/new" => self.new_session(params),
            "session/resume" => self.resume(params),
            "session/fork" => self.fork(params),
            "session/list" => self.list_sessions(params),
            "session/delete" => self.delete(params),
            "session/unarchive" => self.unarchive(params),
            "session/status" => self.status(params),
            "session/set_title" => self.set_title(params),
            "session/set_mode" => self.set_mode(params),
            "session/set_model" => self.set_model(params),
            "session/set_config_option" => self.set_option(params),
            "nes/start" if self.is("NES-06") && params["workspaceUri"].is_null() => {
                Err(Refusal::params("`workspaceUri` is missing"))
            }
            "nes/start" => self.start_nes(),
            "nes/close" => self.close_nes(params),
            // EXT-06: an extension of its own, advertised in `_meta` of its capabilities.
            "_mutants.attache/echo" => Ok(params.clone()),
            _ if method.starts_with('_') && self.is("EXT-07") => Ok(Value::Null),
            _ if !method.starts_with('_') && self.is("RPC-12") => Ok(Value::Null),
            _ if !method.starts_with('_') && self.is("RPC-15") => Err(Refusal::new(-32700, "Parse error")),
            _ => Err(Refusal { data: Some(json!({ "method": method })), ..Refusal::method() }),
        }
    }
}
