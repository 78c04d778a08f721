//! Sessions and open requests of a client over WebSocket.
//!
//! Over Streamable HTTP a request that is one too many is refused by its own response. A WebSocket
//! has no such place, so it is closed with a status that says why.

use super::options::Limits;
use super::registry::status;
use super::usage::{Slot, Usage};
use crate::message::{DEPTH, session_id};
use crate::ws::Closer;
use attache_conn::Flow;
use attache_conn::rpc::{Frame, Scan};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

/// The beginning of nearly all messages of an agent, which are not counted.
const CALL: &[u8] = br#"{"jsonrpc":"2.0","method":"#;

/// Counts sessions and requests by looking at every message.
pub(super) struct Meter {
    closer: Closer,
    limits: Limits,
    usage: Usage,
    requests: Vec<Slot>,
    /// By a hash of their ids, which may have any length.
    sessions: HashMap<u64, Slot>,
    hasher: RandomState,
}

impl Meter {
    pub(super) fn new(limits: Limits, usage: Usage, closer: Closer) -> Meter {
        let (requests, sessions, hasher) = (Vec::new(), HashMap::new(), RandomState::new());
        Meter { closer, limits, usage, requests, sessions, hasher }
    }

    pub(super) fn message(&mut self, flow: Flow, line: &[u8]) {
        match flow {
            Flow::In => self.received(line),
            Flow::Out if line.starts_with(CALL) => {}
            Flow::Out => self.sent(line),
        }
    }

    fn received(&mut self, line: &[u8]) {
        let (method, params) = match Scan::line(line, DEPTH) {
            Scan::Call(call) if call.id.is_some() => (call.method, Some(call.params)),
            Scan::Frame(Frame::Request { method, params, .. }) => {
                return self.request(&method, params.map(|params| params.get()));
            }
            _ => return,
        };
        self.request(method, params);
    }

    fn request(&mut self, method: &str, params: Option<&str>) {
        let (max, token_max) = (self.limits.socket_requests, self.limits.socket_requests_per_identity);
        let slot = (self.requests.len() < max).then(|| self.usage.socket_requests.take(token_max)).flatten();
        match slot {
            Some(slot) => self.requests.push(slot),
            None => {
                return self.closer.close(status::OVERLOADED, "too many requests are open; try again later");
            }
        }
        let Some(session) = params.and_then(session_id) else { return };
        match method {
            "session/close" | "session/delete" => {
                self.sessions.remove(&self.hasher.hash_one(&*session));
            }
            _ => self.session(&session),
        }
    }

    fn sent(&mut self, line: &[u8]) {
        let Scan::Frame(Frame::Response { outcome, .. }) = Scan::line(line, DEPTH) else { return };
        self.requests.pop();
        if let Some(session) = outcome.ok().and_then(|result| session_id(result.get())) {
            self.session(&session);
        }
    }

    /// Notes a session that a request or its result names.
    fn session(&mut self, id: &str) {
        let key = self.hasher.hash_one(id);
        if self.sessions.contains_key(&key) {
            return;
        }
        let (max, token_max) = (self.limits.socket_sessions, self.limits.socket_sessions_per_identity);
        let slot = (self.sessions.len() < max).then(|| self.usage.socket_sessions.take(token_max)).flatten();
        match slot {
            Some(slot) => drop(self.sessions.insert(key, slot)),
            None => {
                self.closer.close(status::POLICY, "too many sessions are open; close one with session/close")
            }
        }
    }
}
