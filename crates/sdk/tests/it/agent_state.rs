//! Agents whose handlers and sessions share values, and extension methods.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, Auth, ClientHandle, OpenedSession, Turn};
use attache::client::{Client, ConnectionEvent};
use attache::wire::v1::{AuthMethod, AuthMethodAgent, AuthMethodId, ListSessionsResponse, SessionInfo};
use attache::{Link, Prompt, Result, StopReason};
use serde_json::{Value, json};

use crate::script::Script;

attache::extension! {
    /// Counts prompts.
    request Count("_test/count") { add: u32, note: Option<String> } -> Counted { total: u32 }
}

#[derive(Default)]
struct Counter(AtomicUsize);

impl AgentSession for Counter {
    async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(StopReason::EndTurn)
    }
}

type Sessions = Mutex<Vec<Arc<Counter>>>;

#[tokio::test(start_paused = true)]
async fn handlers_share_the_state_and_sessions_can_be_shared() {
    let (near, far) = Link::pair();
    let agent = Agent::with_state(Sessions::default(), |sessions, _| async move {
        let session = Arc::new(Counter::default());
        sessions.lock().unwrap().push(session.clone());
        Ok(OpenedSession::new(session).id("s1"))
    })
    .list(|sessions, _| async move {
        let count = sessions.lock().unwrap().len();
        Ok(ListSessionsResponse::new(vec![SessionInfo::new(format!("{count} open"), "/work")]))
    })
    .on_request(|sessions, request: Count, _| async move {
        let total: usize =
            sessions.lock().unwrap().iter().map(|session| session.0.load(Ordering::Relaxed)).sum();
        assert!(request.note.is_none());
        Ok(Counted { total: request.add + u32::try_from(total).unwrap() })
    })
    .configure(|agent| agent.info("counter", "1"));
    tokio::spawn(agent.serve(far));
    let agent = Client::new().connect(near).await.unwrap();
    assert_eq!(agent.info().unwrap().name, "counter");
    let mut session = agent.new_session("/work").await.unwrap();
    session.prompt("one").await.unwrap().finish().await.unwrap();
    let counted = agent.request(&Count { add: 40, note: None }).await.unwrap();
    assert_eq!(counted.total, 41);
    let listed = agent.lister().unwrap().list().all().await.unwrap();
    assert_eq!(listed[0].session_id.as_str(), "1 open");
}

#[tokio::test(start_paused = true)]
async fn an_extension_method_round_trips_and_names_missing_members() {
    let count = Count { add: 3, note: Some("x".into()) };
    assert_eq!(serde_json::to_value(&count).unwrap(), json!({"add": 3, "note": "x"}));
    let read: Count = serde_json::from_str(r#"{"add": 3, "unknown": 1}"#).unwrap();
    assert_eq!((read.add, read.note), (3, None));
    let error = serde_json::from_str::<Count>(r#"{"note": "x"}"#).unwrap_err().to_string();
    assert!(error.contains("missing member `add`"), "{error}");
    let error = serde_json::from_str::<Count>(r#"{"add": "x"}"#).unwrap_err().to_string();
    assert!(error.contains("in `add`"), "{error}");
}

struct Asks;

impl Auth for Asks {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethodAgent::new("key", "Key").into()]
    }
    async fn login(&self, _: &AuthMethodId, client: &ClientHandle) -> Result<()> {
        client.request(&Count { add: 1, note: None }).await.map(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_can_ask_the_client() {
    let (link, mut client) = Script::pair();
    tokio::spawn(Agent::new(|_| async { Ok(Counter::default()) }).auth(Asks).serve(link));
    client.request(1, "initialize", json!({"protocolVersion": 1})).await;
    client.result(1).await;
    client.request(2, "authenticate", json!({"methodId": "key"})).await;
    let asked: Value = client.expect("_test/count").await;
    client.answer(&asked, json!({"total": 1})).await;
    client.result(2).await;
}

#[tokio::test(start_paused = true)]
async fn connection_events_are_a_stream() {
    let (link, mut agent) = Script::pair();
    let (connected, _) =
        tokio::join!(async { Client::new().connect(link).await.unwrap() }, agent.initialize(json!({})));
    let mut events = connected.events().unwrap();
    agent.notify("_x/y", json!({})).await;
    let next =
        std::future::poll_fn(|cx| futures_core::Stream::poll_next(std::pin::Pin::new(&mut events), cx));
    assert!(matches!(next.await, Some(ConnectionEvent::Notification { method, .. }) if method == "_x/y"));
}
