//! The agent's connection: writes lines, matches answers to requests.

use super::state::State;
use super::{mutation, v2};
use attache_conn::{CancelToken, FrameWriter};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::oneshot;

/// The answer to a request.
pub(crate) type Reply = Result<Value, Refusal>;

/// An error answer.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Refusal {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), data: None }
    }

    pub(crate) fn params(message: impl Into<String>) -> Refusal {
        Refusal::new(-32602, message)
    }

    pub(crate) fn method() -> Refusal {
        Refusal::new(-32601, "Method not found")
    }

    /// RPC-18: the session is named.
    pub(crate) fn session(id: &str) -> Refusal {
        Refusal { data: Some(json!({ "sessionId": id })), ..Refusal::new(-32002, "Session not found") }
    }

    pub(crate) fn object(&self) -> Value {
        let mut object = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            object["data"] = data.clone();
        }
        object
    }
}

/// Requests without an answer, by the text of the id.
type Waiting = HashMap<String, oneshot::Sender<Result<Value, Value>>>;

/// One connection of the agent.
pub(crate) struct Agent {
    variant: String,
    out: tokio::sync::Mutex<FrameWriter>,
    waiting: Mutex<Waiting>,
    last_id: AtomicI64,
    state: Mutex<State>,
    gone: CancelToken,
}

impl Agent {
    pub(crate) fn new(writer: FrameWriter, variant: Option<&str>, gone: CancelToken) -> Agent {
        Agent {
            variant: variant.unwrap_or_default().to_owned(),
            out: tokio::sync::Mutex::new(writer),
            waiting: Mutex::default(),
            last_id: AtomicI64::new(0),
            state: Mutex::default(),
            gone,
        }
    }

    /// Whether this is the variant of that name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.variant == name
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether version 2 was negotiated.
    pub(crate) fn speaks_2(&self) -> bool {
        self.state().v2.is_some()
    }

    /// Output before the first request.
    pub(crate) async fn start(&self) {
        if self.is("STDIO-08") {
            self.lines(&[b"mutant agent starting"]).await;
        }
    }

    /// Ends the connection as a crash would.
    pub(crate) fn die(&self) {
        self.gone.cancel();
    }

    pub(crate) async fn hang_up(&self) {
        self.waiting().clear();
        // The peer may be gone already.
        self.out.lock().await.close().await.ok();
    }

    /// Writes lines as they are.
    async fn lines(&self, lines: &[&[u8]]) {
        // A crashed agent sends nothing.
        if self.gone.is_cancelled() {
            return;
        }
        let mut out = self.out.lock().await;
        for line in lines {
            out.feed(line);
        }
        if out.flush().await.is_err() {
            self.die();
        }
    }

    /// Writes one message; `about` is its method, or the method that it answers.
    async fn put(&self, about: &str, mut message: Value) {
        let lines = if self.speaks_2() {
            v2::message(&self.variant, about, &mut message);
            v2::bytes(&self.variant, about, &message)
        } else {
            mutation::message(&self.variant, about, &mut message);
            mutation::bytes(&self.variant, about, &message)
        };
        for line in lines {
            self.lines(&[&line]).await;
        }
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.put(method, json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Answers the request `id`, which called `method`.
    pub(crate) async fn answer(&self, id: &Value, method: &str, reply: Reply) {
        let message = match reply {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(refusal) => json!({ "jsonrpc": "2.0", "id": id, "error": refusal.object() }),
        };
        self.put(method, message).await;
    }

    /// Asks the client; the `Err` is its error object, or null if the connection ended.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, Value> {
        self.ask_id(method, params).await.1.await
    }

    /// Like [`ask`](Self::ask): the id of the request, and its answer.
    pub(crate) async fn ask_id(
        &self,
        method: &str,
        params: Value,
    ) -> (Value, impl Future<Output = Result<Value, Value>> + use<>) {
        let id = self.fresh_id(method);
        let (sender, receiver) = oneshot::channel();
        let forgotten = self.waiting().insert(id.to_string(), sender);
        // RPC-08: with the same id twice the first one never gets its answer; it gets the
        // second's.
        drop(forgotten);
        self.put(method, json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        (id, async { receiver.await.unwrap_or(Err(Value::Null)) })
    }

    /// RPC-07, RPC-08: an id that was not used yet.
    fn fresh_id(&self, method: &str) -> Value {
        let id = self.last_id.fetch_add(1, Ordering::SeqCst) + 1;
        match (self.variant.as_str(), method) {
            ("RPC-08", "fs/read_text_file") => json!("read"),
            ("RPC-07", "fs/write_text_file") => Value::Null,
            _ => json!(id),
        }
    }

    /// RPC-14, RPC-20: an answer belongs to the request with its id; an unsolicited one is dropped.
    pub(crate) fn answered(&self, id: &Value, outcome: Result<Value, Value>) {
        if let Some(waiter) = self.waiting().remove(&id.to_string()) {
            waiter.send(outcome).ok();
        } else if self.is("RPC-14") {
            self.die();
        }
    }

    /// Whether we wait for an answer to `id`.
    pub(crate) fn waits_for(&self, id: &Value) -> bool {
        self.waiting().contains_key(&id.to_string())
    }
}
