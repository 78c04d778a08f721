//! A hub with its agents, and clients that are driven line by line.

use std::time::Duration;

use attache_conn::{FrameReader, FrameWriter, Link};
use attache_hub::{Hub, Identity, Options};
use attache_journal::Journal;
use serde_json::{Value, json};

use crate::agent::{self, Abilities, Record};

/// A test that hangs fails after this time.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Rig {
    pub(crate) hub: Hub,
    pub(crate) record: Record,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(|options| options)
    }

    pub(crate) fn with(edit: impl FnOnce(Options) -> Options) -> Rig {
        Rig::on(Journal::memory(), Record::default(), Abilities { load: true, resume: false }, edit)
    }

    pub(crate) fn on(
        journal: Journal,
        record: Record,
        abilities: Abilities,
        edit: impl FnOnce(Options) -> Options,
    ) -> Rig {
        let of_agents = record.clone();
        let options = Options::new("test", move || {
            let link = agent::start(&of_agents, abilities);
            async move { Ok(link) }
        });
        Rig { hub: Hub::new(journal, edit(options)), record }
    }

    /// A client that has sent `initialize`.
    pub(crate) async fn client(&self) -> TestClient {
        self.client_as(Identity::new("me"), false).await
    }

    /// A client that counts positions.
    pub(crate) async fn counting_client(&self) -> TestClient {
        self.client_as(Identity::new("me"), true).await
    }

    /// A client of version 2.
    pub(crate) async fn v2_client(&self) -> TestClient {
        let mut client = self.connect(Identity::new("me"));
        let info = json!({"name": "test", "version": "1"});
        let result = client.call("initialize", json!({"protocolVersion": 2, "info": info})).await;
        assert_eq!(result["result"]["protocolVersion"], 2, "{result}");
        client
    }

    pub(crate) async fn client_as(&self, identity: Identity, counts: bool) -> TestClient {
        let mut client = self.connect(identity);
        client.initialize(counts).await;
        client
    }

    /// Waits until this many sessions are in memory.
    pub(crate) async fn is_in_memory(&self, client: &mut TestClient, count: usize) {
        loop {
            let status = client.call("_attache/status", json!({})).await;
            if status["result"]["sessions"].as_array().unwrap().len() == count {
                return;
            }
        }
    }

    /// A client that has sent nothing.
    pub(crate) fn connect(&self, identity: Identity) -> TestClient {
        let (near, far) = Link::pair();
        let hub = self.hub.clone();
        tokio::spawn(async move { hub.serve(far, identity).await });
        let (reader, writer) = near.split();
        TestClient { reader, writer, next_id: 0, seen: Vec::new() }
    }
}

pub(crate) struct TestClient {
    reader: FrameReader,
    writer: FrameWriter,
    next_id: i64,
    /// Messages that came while the client waited for another one.
    pub(crate) seen: Vec<Value>,
}

impl TestClient {
    /// A client on a link, which has sent `initialize`.
    pub(crate) async fn over(link: Link, counts: bool) -> TestClient {
        let (reader, writer) = link.split();
        let mut client = TestClient { reader, writer, next_id: 0, seen: Vec::new() };
        client.initialize(counts).await;
        client
    }

    async fn initialize(&mut self, counts: bool) {
        let meta = if counts { json!({"attache": {}}) } else { json!({}) };
        let capabilities = json!({"_meta": meta});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let result = self.call("initialize", params).await;
        assert_eq!(result["result"]["agentCapabilities"]["loadSession"], true);
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.writer.send(message.to_string().as_bytes()).await.unwrap();
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// The next message, or `None` if the hub closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(DEADLINE, self.reader.next()).await.expect("a message in time");
        line.unwrap_or(None).map(|line| serde_json::from_slice(line).unwrap())
    }

    /// Reads until a message fits, and returns it. Those before it are added to `seen`.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("an open connection");
            if fits(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    pub(crate) async fn response(&mut self, id: i64) -> Value {
        self.until(|message| message["method"].is_null() && message["id"] == id).await
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.response(id).await
    }

    /// Creates a session and returns its id.
    pub(crate) async fn new_session(&mut self) -> String {
        let response = self.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
        response["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("a session: {response}")).to_owned()
    }

    pub(crate) async fn start_prompt(&mut self, session: &str, text: &str) -> i64 {
        self.request("session/prompt", prompt(session, text)).await
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.call("session/prompt", prompt(session, text)).await
    }

    /// Sends a prompt with an id.
    pub(crate) async fn start_named(&mut self, session: &str, text: &str, name: &str) -> i64 {
        let mut params = prompt(session, text);
        params["_meta"] = json!({"attache": {"prompt": name}});
        self.request("session/prompt", params).await
    }

    pub(crate) async fn open(&mut self, method: &str, session: &str, meta: Value) -> Value {
        let params = json!({"sessionId": session, "cwd": "/", "mcpServers": [], "_meta": {"attache": meta}});
        self.call(method, params).await
    }

    pub(crate) async fn load(&mut self, session: &str) -> Value {
        self.open("session/load", session, json!({})).await
    }

    /// Waits for a question and returns the id of its request.
    pub(crate) async fn question(&mut self) -> Value {
        self.until(|message| message["method"] == "session/request_permission").await["id"].clone()
    }

    pub(crate) async fn choose(&mut self, question: &Value, option: &str) {
        let result = json!({"outcome": {"outcome": "selected", "optionId": option}});
        self.send(json!({"jsonrpc": "2.0", "id": question, "result": result})).await;
    }

    /// The texts that the client has seen, with the role of each.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.seen.iter().filter_map(text).collect()
    }
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// The text of an update: `>` before that of the user.
pub(crate) fn text(message: &Value) -> Option<String> {
    let update = &message["params"]["update"];
    let text = update["content"]["text"].as_str()?;
    match update["sessionUpdate"].as_str()? {
        "user_message_chunk" => Some(format!("> {text}")),
        _ => Some(text.to_owned()),
    }
}

pub(crate) fn stop_reason(response: &Value) -> &str {
    response["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("a stop reason: {response}"))
}

pub(crate) fn position(response: &Value) -> String {
    response["result"]["_meta"]["attache"]["at"]
        .as_str()
        .unwrap_or_else(|| panic!("a position: {response}"))
        .to_owned()
}
