//! The agent's sessions.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;

const PAGE: usize = 5;

#[derive(Clone)]
pub struct Session {
    pub id: String,
    pub cwd: PathBuf,
    pub mcp: Vec<McpServer>,
    pub history: Vec<(String, String)>,
    pub mode: String,
    pub model: String,
    pub open: bool,
    pub cancelled: Arc<AtomicBool>,
}

#[derive(Default)]
pub struct State {
    pub sessions: Vec<Session>,
    pub made: usize,
    pub authenticated: bool,
    pub notes: u32,
    pub meeting: Option<oneshot::Sender<()>>,
}

#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<State>>);

/// A typed message of the SDK from its JSON: shorter than the builders, and checked all the same.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|e| Error::internal_error().data(json!(e.to_string())))
}

fn not_found(id: &SessionId) -> Error {
    Error::new(-32002, "Resource not found").data(json!({"sessionId": id}))
}

impl Session {
    pub fn setup(&self) -> Value {
        json!({
            "sessionId": self.id,
            "modes": {
                "currentModeId": self.mode,
                "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
            },
            "configOptions": self.config_options(),
        })
    }

    pub fn config_options(&self) -> Value {
        json!([{
            "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": self.model,
            "options": [{"value": "fast", "name": "Fast"}, {"value": "deep", "name": "Deep"}],
        }])
    }
}

impl Sessions {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Changes a session, which may be closed.
    pub fn kept<T>(&self, id: &SessionId, change: impl FnOnce(&mut Session) -> T) -> Result<T> {
        let mut state = self.lock();
        let found = state.sessions.iter_mut().find(|s| *s.id == *id.0);
        found.map(change).ok_or_else(|| not_found(id))
    }

    /// Changes a session that must be open.
    pub fn live<T>(&self, id: &SessionId, change: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        self.kept(id, |s| if s.open { change(s) } else { Err(not_found(id)) })?
    }

    pub fn make(&self, cwd: PathBuf, mcp: Vec<McpServer>, history: Vec<(String, String)>) -> Session {
        let mut state = self.lock();
        state.made += 1;
        let session = Session {
            id: format!("session-{}", state.made),
            cwd,
            mcp,
            history,
            mode: "ask".into(),
            model: "fast".into(),
            open: true,
            cancelled: Arc::default(),
        };
        state.sessions.push(session.clone());
        session
    }

    pub fn new_session(&self, request: NewSessionRequest) -> Result<Session> {
        if !self.lock().authenticated {
            return Err(Error::auth_required());
        }
        Ok(self.make(request.cwd, request.mcp_servers, Vec::new()))
    }

    pub fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
        let state = self.lock();
        let every: Vec<&Session> =
            state.sessions.iter().filter(|s| request.cwd.as_ref().is_none_or(|cwd| *cwd == s.cwd)).collect();
        let start: usize = match &request.cursor {
            Some(cursor) => cursor.parse().map_err(|_| Error::invalid_params())?,
            None => 0,
        };
        let infos: Vec<Value> = every
            .iter()
            .skip(start)
            .take(PAGE)
            .map(|s| json!({"sessionId": s.id, "cwd": s.cwd, "title": s.history.first().map(|h| &h.0)}))
            .collect();
        let next = (start + PAGE < every.len()).then(|| (start + PAGE).to_string());
        typed(json!({"sessions": infos, "nextCursor": next}))
    }
}
