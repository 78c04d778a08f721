//! A client of Streamable HTTP that keeps the rules, for the steps between those that a scenario is
//! about.

use std::io;

use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::prompts::PromptKind;
use crate::remote::Endpoint;
use crate::remote::http1::{Request, Response};
use crate::{Stage, Step, Stop, Version};

/// How long something that must not happen is waited for.
pub(super) const GLANCE: Duration = Duration::from_millis(300);

/// How long a stream is watched that must stay open. A busy server ends it some time after its
/// answer.
const WATCH: Duration = Duration::from_secs(2);

/// Statuses with which a server that offers only WebSocket refuses a POST.
const WEB_SOCKET_ONLY: [u16; 5] = [404, 405, 406, 426, 501];

/// Waits for a response of the server. A refused connection ends the scenario.
pub(super) async fn within<T>(
    stage: &Stage,
    what: &str,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, Stop> {
    match timeout(stage.deadline(), work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Stop::Broken(format!("{what}: {error}"))),
        Err(_) => Err(Stop::Deadline(what.to_owned())),
    }
}

/// Sends a request and notes the status.
pub(super) async fn send(
    stage: &mut Stage,
    endpoint: &Endpoint,
    request: &Request,
) -> Result<Response, Stop> {
    let what = describe(request);
    let response = within(stage, &format!("the response to {what}"), request.send(endpoint)).await?;
    stage.exchanged(format!("{what} → {}", response.status));
    if let Some(connection) = response.header("acp-connection-id") {
        stage.begun(connection);
    }
    Ok(response)
}

/// Ends the connections that a scenario left behind, so that they do not take the places of a
/// server with few of them.
pub(crate) async fn end_connections(stage: &mut Stage) {
    let Ok(endpoint) = stage.endpoint() else { return };
    let connections = stage.take_begun();
    let ends = async {
        for connection in &connections {
            let request = Request::new("DELETE").with("acp-connection-id", connection);
            // One that the scenario ended itself is unknown by now.
            if request.send(&endpoint).await.is_err() {
                break;
            }
        }
    };
    // A server that does not respond is judged elsewhere.
    let _ = timeout(stage.deadline(), ends).await;
}

/// The request in one line; values of headers with secrets are left out.
fn describe(request: &Request) -> String {
    let mut text = request.method.to_owned();
    for (name, value) in &request.headers {
        if !matches!(name.as_str(), "authorization" | "sec-websocket-key" | "connection" | "cookie") {
            text.push_str(&format!(" {name}: {value};"));
        }
    }
    let body = String::from_utf8_lossy(&request.body);
    let body: String = body.chars().take(400).collect();
    if body.is_empty() { text } else { format!("{text} {body}") }
}

/// A connection to the server.
pub(super) struct Client {
    pub(super) endpoint: Endpoint,
    /// The value of `Acp-Connection-Id`.
    pub(super) connection: String,
    next_id: u64,
}

impl Client {
    /// The message that begins a connection.
    pub(super) fn initialize(stage: &Stage) -> Value {
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": stage.offer(json!({})) })
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// [`Stop::NotApplicable`] if the server offers only WebSocket, [`Stop::Broken`] if its
    /// response has no connection in it.
    pub(super) async fn open(stage: &mut Stage) -> Result<Client, Stop> {
        let endpoint = stage.endpoint()?;
        let request = Request::post(&Client::initialize(stage));
        let mut response = send(stage, &endpoint, &request).await?;
        if WEB_SOCKET_ONLY.contains(&response.status) {
            // HTTP-03: a server need not offer more.
            return Err(Stop::NotApplicable(format!(
                "the server refuses POST with {}: it has no Streamable HTTP",
                response.status
            )));
        }
        let body = within(stage, "the body of the response", response.text()).await?;
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        match response.header("acp-connection-id") {
            Some(id) if response.status == 200 && answer.get("result").is_some() => {
                Ok(Client { endpoint, connection: id.to_owned(), next_id: 1 })
            }
            _ => Err(Stop::Broken(format!("initialize was refused: {} {body}", response.status))),
        }
    }

    /// A request of this connection.
    pub(super) fn of(&self, request: Request, session: Option<&str>) -> Request {
        let request = request.with("acp-connection-id", &self.connection);
        match session {
            Some(session) => request.with("acp-session-id", session),
            None => request,
        }
    }

    /// Makes a message of a request and returns it with its id.
    pub(super) fn message(&mut self, method: &str, params: Value) -> (Value, Value) {
        let id = json!(self.next_id);
        self.next_id += 1;
        (id.clone(), json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Posts a message and returns the response.
    pub(super) async fn post(
        &self,
        stage: &mut Stage,
        session: Option<&str>,
        message: &Value,
    ) -> Result<Response, Stop> {
        send(stage, &self.endpoint, &self.of(Request::post(message), session)).await
    }

    /// Posts a message that must be accepted.
    pub(super) async fn accept(&self, stage: &mut Stage, session: Option<&str>, message: &Value) -> Step {
        let status = self.post(stage, session, message).await?.status;
        if (200..300).contains(&status) {
            return Ok(());
        }
        Err(Stop::Broken(format!("{} was refused with {status}", message["method"])))
    }

    /// Opens the stream of the connection or of a session.
    pub(super) async fn stream(&self, stage: &mut Stage, session: Option<&str>) -> Result<Events, Stop> {
        let response = send(stage, &self.endpoint, &self.of(Request::stream(), session)).await?;
        if response.status != 200 {
            return Err(Stop::Broken(format!("the stream was refused with {}", response.status)));
        }
        Ok(Events { response, session: session.map(str::to_owned), seen: Vec::new() })
    }

    /// Posts `session/new`, waits for its answer on the stream and returns the id of the session.
    pub(super) async fn new_session(
        &mut self,
        stage: &mut Stage,
        events: &mut Events,
    ) -> Result<String, Stop> {
        let mut answer = self.open_session(stage, events).await?;
        if answer["error"]["code"] == -32000
            && let Some(method) = stage.login().map(str::to_owned)
        {
            let name = match stage.version() {
                Version::V1 => "authenticate",
                Version::V2 => "auth/login",
            };
            let (id, message) = self.message(name, json!({ "methodId": method }));
            self.accept(stage, None, &message).await?;
            events.answer(stage, self, &id).await?;
            answer = self.open_session(stage, events).await?;
        }
        if answer["error"]["code"] == -32000 {
            return Err(Stop::NotExercised("the agent wants a login before it opens a session".to_owned()));
        }
        let session = answer["result"]["sessionId"].as_str().map(str::to_owned);
        // A reason of the agent, such as a directory that it does not serve.
        session.ok_or_else(|| Stop::NotExercised(format!("session/new was refused: {}", answer["error"])))
    }

    /// The message that opens a session, and its id.
    pub(super) fn session_message(&mut self, stage: &Stage) -> (Value, Value) {
        let cwd = stage.cwd().to_string_lossy().into_owned();
        self.message("session/new", json!({ "cwd": cwd, "mcpServers": [] }))
    }

    async fn open_session(&mut self, stage: &mut Stage, events: &mut Events) -> Result<Value, Stop> {
        let (id, message) = self.session_message(stage);
        self.accept(stage, None, &message).await?;
        events.answer(stage, self, &id).await
    }

    /// A prompt of this kind, and its id.
    pub(super) fn prompt(&mut self, stage: &Stage, session: &str, kind: PromptKind) -> (Value, Value) {
        let content = json!([{ "type": "text", "text": stage.prompt_text(kind) }]);
        self.message("session/prompt", json!({ "sessionId": session, "prompt": content }))
    }

    /// Ends the connection.
    pub(super) async fn delete(&self, stage: &mut Stage) -> Result<Response, Stop> {
        send(stage, &self.endpoint, &self.of(Request::new("DELETE"), None)).await
    }
}

/// A stream of events.
pub(super) struct Events {
    pub(super) response: Response,
    session: Option<String>,
    /// All messages that came.
    pub(super) seen: Vec<Value>,
}

impl Events {
    /// Waits for the next message; `None` at the end of the stream.
    pub(super) async fn next(&mut self, stage: &mut Stage, what: &str) -> Result<Option<Value>, Stop> {
        let Some(data) = self.receive(stage, what).await? else { return Ok(None) };
        let stream = self.session.as_deref().unwrap_or("connection");
        let shown: String = data.chars().take(400).collect();
        stage.exchanged(format!("stream of {stream}: {shown}"));
        let message: Value = serde_json::from_str(&data).unwrap_or(Value::String(data));
        self.seen.push(message.clone());
        Ok(Some(message))
    }

    /// Waits for the data of the next event, which is neither kept nor written to the trace.
    pub(super) async fn receive(&mut self, stage: &Stage, what: &str) -> Result<Option<String>, Stop> {
        match timeout(stage.deadline() * 6, self.response.event()).await {
            Ok(Ok(data)) => Ok(data),
            Ok(Err(error)) => Err(Stop::Broken(format!("the stream: {error}"))),
            Err(_) => Err(Stop::Deadline(what.to_owned())),
        }
    }

    /// Waits for a message. Requests of the agent that come before it are refused.
    pub(super) async fn until(
        &mut self,
        stage: &mut Stage,
        client: &Client,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, Stop> {
        loop {
            let Some(message) = self.next(stage, what).await? else {
                return Err(Stop::Broken(format!("the stream ended before {what}")));
            };
            if wanted(&message) {
                return Ok(message);
            }
            if message.get("method").is_some() && message.get("id").is_some() {
                self.refuse(stage, client, &message).await?;
            }
        }
    }

    /// Refuses a request of the agent.
    pub(super) async fn refuse(&self, stage: &mut Stage, client: &Client, request: &Value) -> Step {
        let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"] });
        if request["method"] == "session/request_permission" {
            answer["result"] = json!({ "outcome": { "outcome": "cancelled" } });
        } else {
            answer["error"] = json!({ "code": -32601, "message": "the client does not provide this" });
        }
        client.accept(stage, self.session.as_deref(), &answer).await
    }

    /// Waits for the answer to the request with this id.
    pub(super) async fn answer(
        &mut self,
        stage: &mut Stage,
        client: &Client,
        id: &Value,
    ) -> Result<Value, Stop> {
        let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == *id;
        self.until(stage, client, &format!("the answer to request {id}"), is_answer).await
    }

    /// Whether the stream ends within the deadline.
    pub(super) async fn ends(&mut self, stage: &mut Stage) -> bool {
        let rest = async { while let Ok(Some(_)) = self.response.event().await {} };
        timeout(stage.deadline(), rest).await.is_ok()
    }

    /// Whether the stream stays open; its messages are dropped.
    pub(super) async fn stays(&mut self) -> bool {
        let rest = async { while let Ok(Some(_)) = self.response.event().await {} };
        timeout(WATCH, rest).await.is_err()
    }
}
