//! A scripted peer that sends and receives lines.

use std::time::Duration;

use attache::Link;
use attache::client::{AgentHandle, Client, Session};
use attache_conn::{FrameReader, FrameWriter};
use serde_json::{Value, json};

/// The other end of a link, in the hands of a test.
pub(crate) struct Script {
    reader: FrameReader,
    writer: FrameWriter,
}

/// Methods of services that an agent has only if they are installed, and only with the feature
/// `unstable`.
pub(crate) const UNSTABLE_SERVICES: [&str; 7] = [
    "auth/status",
    "providers/list",
    "providers/set",
    "providers/disable",
    "nes/start",
    "nes/suggest",
    "nes/close",
];

/// Longer than any deadline of the SDK; with a paused clock it costs nothing.
const PATIENCE: Duration = Duration::from_secs(3600);

impl Script {
    /// A link for the side under test, and its other end.
    pub(crate) fn pair() -> (Link, Script) {
        let (ours, theirs) = Link::pair();
        (ours, Script::on(theirs))
    }

    /// Takes a link.
    pub(crate) fn on(link: Link) -> Script {
        let (reader, writer) = link.split();
        Script { reader, writer }
    }

    /// Splits it into its two directions.
    pub(crate) fn halves(self) -> (FrameReader, FrameWriter) {
        (self.reader, self.writer)
    }

    /// The next line as text; `None` at the end.
    pub(crate) async fn text(&mut self) -> Option<String> {
        let next = tokio::time::timeout(PATIENCE, self.reader.next()).await.expect("the peer sends nothing");
        next.unwrap().map(|line| String::from_utf8(line.to_vec()).unwrap())
    }

    /// The next line.
    pub(crate) async fn line(&mut self) -> Value {
        let text = self.text().await.expect("the peer has closed the connection");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The next line, which must be of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let line = self.line().await;
        assert_eq!(line["method"], method, "{line}");
        line
    }

    /// The next line, which must answer this id with a result.
    pub(crate) async fn result(&mut self, id: impl Into<Value>) -> Value {
        let line = self.line().await;
        assert_eq!(line["id"], id.into(), "{line}");
        assert!(line.get("result").is_some(), "{line}");
        line["result"].clone()
    }

    /// The next line, which must answer this id with an error of this code.
    pub(crate) async fn error(&mut self, id: impl Into<Value>, code: i32) -> Value {
        let line = self.line().await;
        assert_eq!(line["id"], id.into(), "{line}");
        assert_eq!(line["error"]["code"], code, "{line}");
        line["error"].clone()
    }

    /// Asserts that nothing more is sent.
    pub(crate) async fn expect_silence(&mut self) {
        let next = tokio::time::timeout(Duration::from_secs(1), self.reader.next()).await;
        if let Ok(next) = next {
            panic!("unexpected: {:?}", next.map(|line| line.map(String::from_utf8_lossy)));
        }
    }

    /// The peer closes the connection.
    pub(crate) async fn expect_eof(&mut self) {
        assert_eq!(self.text().await, None);
    }

    pub(crate) async fn raw(&mut self, line: &str) {
        self.writer.send(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.raw(&message.to_string()).await;
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub(crate) async fn refuse(&mut self, request: &Value, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    pub(crate) async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        // Members in the order in which programs write them; `json!` sorts them.
        let id = id.into();
        self.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.raw(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)).await;
    }

    pub(crate) async fn update(&mut self, session: &str, update: Value) {
        self.notify("session/update", json!({"sessionId": session, "update": update})).await;
    }

    /// A piece of the agent's answer.
    pub(crate) async fn say(&mut self, session: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        self.update(session, json!({"sessionUpdate": "agent_message_chunk", "content": content})).await;
    }

    pub(crate) async fn end_turn(&mut self, prompt: &Value) {
        self.answer(prompt, json!({"stopReason": "end_turn"})).await;
    }

    /// A permission request with two options.
    pub(crate) async fn ask(&mut self, id: impl Into<Value>, session: &str) {
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let params = json!({"sessionId": session, "toolCall": {"toolCallId": "t1"}, "options": options});
        self.request(id, "session/request_permission", params).await;
    }

    /// The agent's half of `initialize`.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let hello = self.expect("initialize").await;
        self.answer(&hello, json!({"protocolVersion": 1, "agentCapabilities": capabilities})).await;
        hello
    }

    /// The agent's half of `session/new`.
    pub(crate) async fn new_session(&mut self, id: &str) -> Value {
        let request = self.expect("session/new").await;
        self.answer(&request, json!({"sessionId": id})).await;
        request
    }
}

/// A client connected to a scripted agent.
pub(crate) async fn connect(client: Client, capabilities: Value) -> (AgentHandle, Script) {
    let (link, mut script) = Script::pair();
    let (agent, _) = tokio::join!(client.connect(link), script.initialize(capabilities));
    (agent.unwrap(), script)
}

/// The same with a session `s1` in `/work`.
pub(crate) async fn open(client: Client) -> (Session, Script) {
    let (agent, mut script) = connect(client, json!({})).await;
    let (session, _) = tokio::join!(agent.new_session("/work"), script.new_session("s1"));
    (session.unwrap(), script)
}
