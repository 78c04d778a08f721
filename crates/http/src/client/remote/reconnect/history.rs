//! The part of a conversation that a new connection needs: pure state, no I/O.

use std::collections::{BTreeMap, HashMap, HashSet};

use attache_conn::rpc::{ErrorObject, Frame, Id, Scan, encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::hub::{self, Hub, Keep, Position, cancel_line, resume_after};
use crate::message::{DEPTH, session_id};

/// Ids of our own requests. Clients count or use random ids.
const OWN_ID: &str = "attache-reconnect-";

/// The history of a connection.
#[derive(Default)]
pub(super) struct History {
    /// Params of `initialize`, and the version that was agreed on.
    initialize: Option<Value>,
    version: Option<u64>,
    /// Params of `authenticate` that succeeded.
    authenticate: Option<Value>,
    /// Open sessions.
    sessions: BTreeMap<String, OpenSession>,
    /// Sessions that could not be resumed, with the reason.
    lost: HashMap<String, String>,
    /// Requests of the client without a response.
    open: HashMap<Id, OpenRequest>,
    /// Requests of the agent without a response, and those of earlier connections.
    asked: HashSet<Id>,
    stale: HashSet<Id>,
    own_ids: u64,
    /// The agent, if it is a hub that can resume sessions without a gap.
    hub: Option<Hub>,
}

/// An open session.
struct OpenSession {
    /// The params that opened it.
    params: Map<String, Value>,
    /// What the client has seen of it, with a hub.
    position: Option<Position>,
}

/// An open request of the client, with what its response changes.
enum OpenRequest {
    Initialize {
        params: Value,
        is_counting_client: bool,
    },
    Authenticate(Value),
    /// The session is in the params or in the result.
    OpenSession(Map<String, Value>),
    CloseSession(String),
    /// A prompt that is sent again after a cut.
    KeptPrompt,
    Other,
}

/// The fate of a line of the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    Pass,
    /// The agent gets this line instead.
    Replace(Vec<u8>),
    /// The agent gets nothing, and the client this response.
    Answer(Vec<u8>),
    /// The request that it answers belongs to an earlier connection.
    Drop,
}

impl History {
    /// Notes a line of the client.
    pub(super) fn outgoing(&mut self, line: &[u8]) -> Outgoing {
        match Scan::line(line, DEPTH) {
            Scan::Call(call) => match call.id {
                Some(id) => self.request(line, id, call.method, Some(call.params)),
                None => self.notification(call.method, call.params),
            },
            Scan::Frame(Frame::Request { id, method, params }) => {
                self.request(line, id, &method, params.map(|params| params.get()))
            }
            Scan::Frame(Frame::Notification { method, params }) => {
                self.notification(&method, params.map_or("{}", |params| params.get()))
            }
            Scan::Frame(Frame::Response { id, .. }) => {
                self.asked.remove(&id);
                if self.stale.remove(&id) { Outgoing::Drop } else { Outgoing::Pass }
            }
            Scan::Frame(_) => Outgoing::Pass,
        }
    }

    /// Notes what the client cancels.
    fn notification(&mut self, method: &str, params: &str) -> Outgoing {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        match (&mut self.hub, method) {
            (Some(hub), "session/cancel") => {
                let session = session_id(params);
                session.into_iter().for_each(|session| hub.cancel_session(&session));
            }
            (Some(hub), "$/cancel_request") => {
                let cancelled = serde_json::from_str::<Cancelled<'_>>(params).ok();
                let id = cancelled.and_then(|cancelled| Id::from_raw(cancelled.request_id));
                id.into_iter().for_each(|id| hub.cancel(&id));
            }
            _ => {}
        }
        Outgoing::Pass
    }

    fn request(&mut self, line: &[u8], id: Id, method: &str, params: Option<&str>) -> Outgoing {
        let object = || match params.map(serde_json::from_str) {
            Some(Ok(Value::Object(params))) => params,
            _ => Map::new(),
        };
        let session = params.and_then(session_id);
        let mut outgoing = Outgoing::Pass;
        let request = match method {
            "initialize" => {
                let (declared, is_counting_client) = match params {
                    Some(params) => hub::declare_counting(line, params),
                    None => (None, false),
                };
                let params = match &declared {
                    Some(declared) => params_of(declared),
                    None => Value::Object(object()),
                };
                outgoing = declared.map_or(Outgoing::Pass, Outgoing::Replace);
                OpenRequest::Initialize { params, is_counting_client }
            }
            "authenticate" | "auth/login" => OpenRequest::Authenticate(Value::Object(object())),
            "session/new" | "session/fork" => {
                let mut params = object();
                params.remove("sessionId");
                OpenRequest::OpenSession(params)
            }
            "session/load" | "session/resume" => {
                if let Some(session) = &session {
                    self.lost.remove(&**session);
                    // Until the response it is not known what the client has.
                    if let Some(open) = self.sessions.get_mut(&**session) {
                        open.position = None;
                    }
                }
                OpenRequest::OpenSession(object())
            }
            "session/close" | "session/delete" => {
                OpenRequest::CloseSession(session.as_deref().unwrap_or_default().to_owned())
            }
            "session/prompt" => match (&mut self.hub, params, &session) {
                (Some(hub), Some(params), Some(session)) if self.sessions.contains_key(&**session) => {
                    match hub.keep(&id, session, line, params) {
                        Keep::No => OpenRequest::Other,
                        Keep::Same => OpenRequest::KeptPrompt,
                        Keep::As(named) => {
                            outgoing = Outgoing::Replace(named);
                            OpenRequest::KeptPrompt
                        }
                    }
                }
                _ => OpenRequest::Other,
            },
            _ => OpenRequest::Other,
        };
        if let Some(why) = session.and_then(|session| self.lost.get(&*session)) {
            return Outgoing::Answer(error_line(&id, &ErrorObject::resource_not_found(why)));
        }
        self.open.insert(id, request);
        outgoing
    }

    /// Notes a line of the agent. Returns whether the client gets it.
    pub(super) fn incoming(&mut self, line: &[u8]) -> bool {
        match Scan::line(line, DEPTH) {
            Scan::Call(call) => {
                self.asked.extend(call.id);
                self.count(call.method, call.params)
            }
            Scan::Frame(Frame::Request { id, method, params }) => {
                self.asked.insert(id);
                self.count(&method, params.map_or("", |params| params.get()))
            }
            Scan::Frame(Frame::Notification { method, params: Some(params) }) => {
                self.count(&method, params.get())
            }
            Scan::Frame(Frame::Response { id, outcome }) => {
                let request = self.open.remove(&id);
                if let (Some(OpenRequest::KeptPrompt), Some(hub)) = (&request, &mut self.hub) {
                    hub.ended(&id);
                }
                if let (Some(request), Ok(result)) = (request, outcome) {
                    self.succeeded(request, result.get());
                }
                true
            }
            Scan::Frame(_) => true,
        }
    }

    /// Counts a message of a hub. Returns whether the client gets it.
    fn count(&mut self, method: &str, params: &str) -> bool {
        let Some(hub) = &self.hub else { return true };
        let Some(session) = session_id(params) else { return true };
        let open = self.sessions.get_mut(&*session);
        let counted = hub.count(open.as_ref().and_then(|open| open.position), method, params);
        if let Some(open) = open {
            open.position = counted.position;
        }
        counted.is_shown
    }

    fn succeeded(&mut self, request: OpenRequest, result: &str) {
        match request {
            OpenRequest::Initialize { params, is_counting_client } => {
                self.initialize = Some(params);
                let initialized = serde_json::from_str(result).unwrap_or_default();
                self.version = version(&initialized);
                self.hub = Hub::announced(&initialized, is_counting_client);
            }
            OpenRequest::Authenticate(params) => self.authenticate = Some(params),
            OpenRequest::OpenSession(mut params) => {
                let in_params = params.remove("sessionId");
                let in_params = in_params.as_ref().and_then(Value::as_str).map(str::to_owned);
                let session = session_id(result).map(|id| id.into_owned()).or(in_params);
                params.remove("replayFrom");
                let mut position = None;
                if self.hub.is_some() {
                    position = Position::of_result(&serde_json::from_str(result).unwrap_or_default());
                    // A cursor of the client was for that time.
                    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
                        meta.remove("attache");
                    }
                }
                if let Some(session) = session {
                    self.sessions.insert(session, OpenSession { params, position });
                }
            }
            OpenRequest::CloseSession(session) => {
                self.sessions.remove(&session);
            }
            OpenRequest::KeptPrompt | OpenRequest::Other => {}
        }
    }

    /// Whether a connection was established, so that it can be made again.
    pub(super) fn is_established(&self) -> bool {
        self.initialize.is_some()
    }

    /// Notes that the connection was cut. Returns error responses for the requests that were open,
    /// except for prompts that are sent again.
    pub(super) fn cut(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        // A hub asks again what is still open.
        if self.hub.is_some() {
            lines.extend(self.asked.iter().map(cancel_line));
        }
        self.stale.extend(self.asked.drain());
        let error = cut_error();
        let failed = self.open.extract_if(|_, request| !matches!(request, OpenRequest::KeptPrompt));
        lines.extend(failed.map(|(id, _)| error_line(&id, &error)));
        lines
    }

    /// The requests that begin a new connection, before those of the sessions.
    pub(super) fn introduction(&self) -> Vec<(&'static str, Value)> {
        let authenticate = if self.version >= Some(2) { "auth/login" } else { "authenticate" };
        let initialize = self.initialize.clone().map(|params| ("initialize", params));
        let login = self.authenticate.clone().map(|params| (authenticate, params));
        initialize.into_iter().chain(login).collect()
    }

    /// Whether the agent agreed on the version of before.
    pub(super) fn is_same_version(&self, initialized: &Value) -> bool {
        version(initialized) == self.version
    }

    /// The requests that resume the sessions, or the reason why the agent has none.
    // SESS-20: `session/resume` only where the agent has it; `session/load` replays what the client
    // has already.
    pub(super) fn resumption(&self, initialized: &Value) -> Result<Vec<Resumption>, &'static str> {
        let hub = self.hub.as_ref().and_then(|hub| Hub::announced(initialized, hub.is_counting_client()));
        let is_v2 = self.version >= Some(2);
        let capabilities = &initialized["agentCapabilities"];
        let method = if self.version >= Some(2) || capabilities["sessionCapabilities"]["resume"].is_object() {
            "session/resume"
        } else if capabilities["loadSession"] == true {
            "session/load"
        } else {
            return Err("the connection was cut, and the agent cannot resume sessions");
        };
        let resume = |(session, open): (&String, &OpenSession)| {
            let mut params = open.params.clone();
            params.insert("sessionId".to_owned(), Value::from(session.as_str()));
            let position = open.position.filter(|_| hub.is_some());
            let without_position = position.map(|_| Value::Object(params.clone()));
            if let Some(position) = position {
                resume_after(&mut params, position, is_v2);
            }
            Resumption { session: session.clone(), method, params: Value::Object(params), without_position }
        };
        Ok(self.sessions.iter().map(resume).collect())
    }

    /// Notes that a session was resumed.
    pub(super) fn resumed(&mut self, session: &str, result: &Value) {
        if let Some(open) = self.sessions.get_mut(session) {
            open.position = Position::of_result(result).filter(|_| self.hub.is_some());
        }
    }

    /// Notes that the connection was made again. Returns the prompts to send again, and error
    /// responses for those that cannot.
    pub(super) fn restored(&mut self, initialized: &Value) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let Some(before) = self.hub.take() else { return Default::default() };
        let mut hub = Hub::announced(initialized, before.is_counting_client());
        let (prompts, lost) = match &mut hub {
            Some(hub) => {
                hub.continue_from(before);
                hub.repeated(|session| self.sessions.contains_key(session))
            }
            None => (Vec::new(), before.into_prompts()),
        };
        self.hub = hub;
        let error = cut_error();
        let failed = lost.iter().filter(|id| self.open.remove(id).is_some());
        let failed = failed.map(|id| error_line(id, &error)).collect();
        (prompts, failed)
    }

    /// Gives up all sessions.
    pub(super) fn lose_all(&mut self, why: &str) {
        let all = std::mem::take(&mut self.sessions);
        self.lost.extend(all.into_keys().map(|session| (session, why.to_owned())));
    }

    /// Gives up a session that the agent did not resume.
    pub(super) fn lose(&mut self, session: &str, why: &str) {
        self.sessions.remove(session);
        let why = format!("the connection was cut, and the agent cannot resume the session: {why}");
        self.lost.insert(session.to_owned(), why);
    }

    /// Encodes a request of our own.
    pub(super) fn own_request(&mut self, method: &str, params: &Value) -> (Id, Vec<u8>) {
        self.own_ids += 1;
        let id = Id::from(format!("{OWN_ID}{}", self.own_ids).as_str());
        let mut line = Vec::new();
        // Ids and values always have a JSON form.
        let _ = encode::request(&mut line, &id, method, params);
        line.pop();
        (id, line)
    }
}

/// A session that is to be resumed.
pub(super) struct Resumption {
    pub(super) session: String,
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// The params without a position, for an agent that does not know it.
    pub(super) without_position: Option<Value>,
}

impl Resumption {
    /// Whether a line replays what the client has already.
    pub(super) fn is_replay(&self, line: &[u8]) -> bool {
        let (method, params) = match Scan::line(line, DEPTH) {
            Scan::Call(call) if call.id.is_none() => (call.method.to_owned(), Some(call.params.to_owned())),
            Scan::Frame(Frame::Notification { method, params }) => {
                (method.into_owned(), params.map(|params| params.get().to_owned()))
            }
            _ => return false,
        };
        let session = params.as_deref().and_then(session_id);
        self.method == "session/load"
            && method == "session/update"
            && session.as_deref() == Some(&self.session)
    }
}

fn cut_error() -> ErrorObject {
    ErrorObject::internal("the connection was cut before the agent answered")
}

/// The params of a request.
fn params_of(line: &[u8]) -> Value {
    serde_json::from_slice::<Value>(line).map(|mut request| request["params"].take()).unwrap_or_default()
}

fn version(initialized: &Value) -> Option<u64> {
    initialized["protocolVersion"].as_u64()
}

fn error_line(id: &Id, error: &ErrorObject) -> Vec<u8> {
    let mut line = Vec::new();
    // Ids and errors always have a JSON form.
    let _ = encode::error(&mut line, id, error);
    line.pop();
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(value: Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    fn call(history: &mut History, id: u64, method: &str, params: Value, result: Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let is_initialize = method == "initialize";
        assert_eq!(history.outgoing(&line(request)) == Outgoing::Pass, !is_initialize);
        history.incoming(&line(json!({"jsonrpc": "2.0", "id": id, "result": result})));
    }

    fn established() -> History {
        let mut history = History::default();
        call(&mut history, 0, "initialize", json!({"protocolVersion": 1}), json!({"protocolVersion": 1}));
        call(&mut history, 1, "session/new", json!({"cwd": "/w"}), json!({"sessionId": "a"}));
        call(&mut history, 2, "session/load", json!({"sessionId": "b", "cwd": "/v"}), json!({}));
        call(&mut history, 3, "session/new", json!({"cwd": "/w"}), json!({"sessionId": "c"}));
        call(&mut history, 4, "session/close", json!({"sessionId": "c"}), json!({}));
        history
    }

    #[test]
    fn sessions_are_resumed_with_the_params_that_opened_them() {
        let history = established();
        assert!(history.is_established());
        let initialize = json!({"protocolVersion": 1, "clientCapabilities": {"_meta": {"attache": {}}}});
        assert_eq!(history.introduction(), [("initialize", initialize)]);
        let resumable = json!({"agentCapabilities": {"sessionCapabilities": {"resume": {}}}});
        let sessions = history.resumption(&resumable).unwrap();
        let params: Vec<&Value> = sessions.iter().map(|session| &session.params).collect();
        assert_eq!(
            params,
            [&json!({"sessionId": "a", "cwd": "/w"}), &json!({"sessionId": "b", "cwd": "/v"})]
        );
        assert!(sessions.iter().all(|session| session.method == "session/resume"));
        let sessions = history.resumption(&json!({"agentCapabilities": {"loadSession": true}})).unwrap();
        let update = |session: &str| {
            line(json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session}}))
        };
        assert!(sessions[0].is_replay(&update("a")) && !sessions[0].is_replay(&update("b")));
        assert!(history.resumption(&json!({})).is_err());
    }

    #[test]
    fn what_was_open_is_answered_at_the_cut() {
        let mut history = established();
        let prompt =
            json!({"jsonrpc": "2.0", "id": 5, "method": "session/prompt", "params": {"sessionId": "a"}});
        history.outgoing(&line(prompt.clone()));
        history
            .incoming(&line(json!({"jsonrpc": "2.0", "id": 9, "method": "fs/read_text_file", "params": {}})));
        let answers = history.cut();
        let answer: Value = serde_json::from_slice(&answers[0]).unwrap();
        assert_eq!((answers.len(), &answer["id"]), (1, &json!(5)));
        // The agent of the new connection never asked this.
        let late = line(json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
        assert_eq!(history.outgoing(&late), Outgoing::Drop);
        assert_eq!(history.outgoing(&late), Outgoing::Pass);
        history.lose("a", "unknown session");
        assert!(matches!(history.outgoing(&line(prompt)), Outgoing::Answer(_)));
        // Loading it explicitly is another attempt.
        call(&mut history, 6, "session/load", json!({"sessionId": "a"}), json!({}));
        let prompt =
            json!({"jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": {"sessionId": "a"}});
        assert_eq!(history.outgoing(&line(prompt)), Outgoing::Pass);
    }
}
