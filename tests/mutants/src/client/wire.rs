//! The client's connection: writes requests, notifications and answers.

use super::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};

/// Why an act does not go on.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The agent refused a request.
    Refused(Value),
    /// The agent lacks a capability that the action needs.
    Unsupported,
    /// The connection is at its end.
    Gone,
}

impl Halt {
    pub(crate) fn code(&self) -> Option<i64> {
        match self {
            Halt::Refused(error) => error.get("code").and_then(Value::as_i64),
            _ => None,
        }
    }
}

/// An answer to the agent that is no result.
#[derive(Debug)]
pub(crate) enum Failure {
    Error(Value),
    /// No answer at all: for variants only.
    Silence,
}

pub(crate) fn failure(code: i64, message: &str) -> Failure {
    Failure::Error(json!({ "code": code, "message": message }))
}

pub(crate) fn bad_params(message: &str) -> Failure {
    failure(-32602, message)
}

pub(crate) type Answer = Result<Value, Failure>;

impl Client {
    /// Asks the agent and waits for its answer.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Halt> {
        let (id, answer) = self.ask(method, params).await;
        self.outcome(id, answer).await
    }

    /// Asks the agent; the answer comes from [`outcome`](Self::outcome).
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: Value,
    ) -> (Value, oneshot::Receiver<Result<Value, Value>>) {
        let id = self.next_id();
        let (sender, receiver) = oneshot::channel();
        self.state().waiting.insert(id.to_string(), sender);
        let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.spoil_request(method, &mut request);
        self.say(&request).await;
        (id, receiver)
    }

    pub(crate) async fn outcome(
        &self,
        id: Value,
        answer: oneshot::Receiver<Result<Value, Value>>,
    ) -> Result<Value, Halt> {
        let outcome = answer.await;
        self.state().waiting.remove(&id.to_string());
        match outcome {
            Ok(Ok(result)) => Ok(result),
            // RPC-16, ELIC-34: an unknown code is an error like any other.
            Ok(Err(error)) => {
                let stumbles = match error.get("code").and_then(Value::as_i64) {
                    Some(-31999) => self.is("RPC-16"),
                    Some(-32042) => self.is("ELIC-34"),
                    _ => false,
                };
                if stumbles {
                    self.stop().await;
                }
                Err(Halt::Refused(error))
            }
            Err(_) => Err(Halt::Gone),
        }
    }

    fn next_id(&self) -> Value {
        // RPC-08: an id is used once.
        let id = {
            let mut state = self.state();
            state.last_id += 1;
            if self.is("RPC-08") { 1 } else { state.last_id }
        };
        match self.setup.variant.as_deref() {
            Some("RPC-06/own") => json!({ "n": id }),
            Some("RPC-07") if !self.acts("two") => Value::Null,
            _ => json!(id),
        }
    }

    pub(crate) async fn tell(&self, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Answers a request of the agent.
    pub(crate) async fn answer(&self, id: &Value, method: &str, outcome: Answer) {
        let mut answer = match outcome {
            // RPC-02: a result is there, also when it is empty.
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(Failure::Error(error)) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            Err(Failure::Silence) => return,
        };
        self.spoil_answer(method, &mut answer);
        // V2-02: an error has an id, also if that is null.
        if self.is("V2-02") && id.is_null() {
            drop(answer.as_object_mut().map(|answer| answer.remove("id")));
        }
        self.say(&answer).await;
        // RPC-24: once.
        if self.is("RPC-24/twice") && matches!(method, "fs/read_text_file" | "_attache/one") {
            self.say(&answer).await;
        }
    }

    /// Says one message. STDIO-04: a message is a line; STDIO-05: serde_json escapes line breaks.
    pub(crate) async fn say(&self, message: &Value) {
        if self.state().stopped {
            return;
        }
        let mut out = self.out.lock().await;
        let text = message.to_string();
        let prompt = message.get("method").is_some_and(|method| method == "session/prompt");
        match self.setup.variant.as_deref() {
            Some("STDIO-05") if prompt => {
                let pretty = serde_json::to_string_pretty(message).unwrap_or(text);
                out.feed(pretty.as_bytes());
            }
            Some("STDIO-04") if prompt => {
                let note = json!({ "jsonrpc": "2.0", "method": "_attache.dev/note", "params": {} });
                out.feed(format!("{note}{text}").as_bytes());
            }
            Some("STDIO-01") if prompt => {
                let mut bytes = text.replace("\"text\":\"", "\"text\":\"\u{1}").into_bytes();
                for byte in &mut bytes {
                    *byte = if *byte == 1 { 0xE9 } else { *byte };
                }
                out.feed(&bytes);
            }
            Some("STDIO-09") if prompt => {
                out.feed(b"client: sending the prompt");
                out.feed(text.as_bytes());
            }
            _ => out.feed(text.as_bytes()),
        }
        // A failed write shows as the end of the agent's output.
        let _ = out.flush().await;
    }

    /// Applies variants to requests.
    fn spoil_request(&self, method: &str, request: &mut Value) {
        match (self.setup.variant.as_deref(), method) {
            (Some("RPC-01"), "session/prompt") => request["jsonrpc"] = json!("1.0"),
            (Some("EXT-02"), "session/prompt") => request["params"]["attacheFlavour"] = json!("mint"),
            (Some("RPC-19"), "session/prompt") => {
                let params = &mut request["params"];
                params["_meta"] = json!({});
                params["session_id"] = params["sessionId"].clone();
            }
            _ => {}
        }
    }

    /// A request of the agent that is always served.
    fn plain_service(&self) -> &'static str {
        if self.speaks_2() { "session/request_permission" } else { "fs/write_text_file" }
    }

    /// Applies variants to answers.
    fn spoil_answer(&self, method: &str, answer: &mut Value) {
        let failed = answer.get("error").is_some();
        match (self.setup.variant.as_deref(), method) {
            (Some("RPC-02"), method) if !failed && method == self.plain_service() => {
                if let Some(object) = answer.as_object_mut() {
                    object.remove("result");
                }
            }
            (Some("RPC-03"), "terminal/output" | "no/such") if failed => {
                answer["error"]["code"] = json!(answer["error"]["code"].to_string());
            }
            (Some("RPC-05"), _) => {
                let number = answer["id"].as_str().and_then(|id| id.parse::<i64>().ok());
                if let Some(number) = number {
                    answer["id"] = json!(number);
                }
            }
            (Some("RPC-17"), "terminal/output" | "no/such") if failed => {
                answer["error"]["message"] = json!("it went wrong.\n".repeat(40));
            }
            (Some("RPC-23"), method) if !failed && method == self.plain_service() => {
                answer["error"] = json!({ "code": -32603, "message": "both" });
            }
            _ => {}
        }
    }

    /// Registers a request of the agent in progress. The notifier fires when the agent withdraws
    /// it.
    pub(crate) fn serve(&self, id: &Value) -> Arc<Notify> {
        Arc::clone(self.state().serving.entry(id.to_string()).or_default())
    }

    pub(crate) fn served(&self, id: &Value) {
        self.state().serving.remove(&id.to_string());
    }

    /// CANCEL-20: an unknown id is ignored.
    pub(crate) fn withdraw(&self, id: &Value) {
        let mark = self.state().serving.get(&id.to_string()).cloned();
        if let Some(mark) = mark {
            mark.notify_one();
        }
    }

    /// Delivers an answer of the agent to the pending request. RPC-14: an unsolicited one is
    /// dropped.
    pub(crate) fn resolve(&self, id: &Value, outcome: Result<Value, Value>) {
        let waiter = self.state().waiting.remove(&id.to_string());
        if let Some(waiter) = waiter {
            let _ = waiter.send(outcome);
        }
    }
}
