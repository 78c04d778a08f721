//! Several hubs on one journal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use attache_conn::Link;
use attache_hub::{Hub, Identity, Network, NoReply, Options, Requested};
use attache_journal::{Claim, Journal, SessionKey};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::agent::{self, Abilities, Record};
use crate::rig::{TestClient, stop_reason};

/// The lease of the nodes: long enough for a test that is slow, short enough to wait for its end.
const LEASE: Duration = Duration::from_millis(1500);

/// A network in memory. Every `fault`-th request is lost, its reply is lost, or it comes twice.
#[derive(Clone, Default)]
struct Wires {
    hubs: Arc<Mutex<HashMap<String, Hub>>>,
    fault: u64,
    /// The most bytes of a request.
    room: Option<usize>,
    sent: Arc<AtomicU64>,
}

impl Wires {
    async fn deliver(&self, node: &str, request: Bytes) -> Result<Bytes, NoReply> {
        let hub = self.hubs.lock().get(node).cloned().ok_or(NoReply::Unreachable)?;
        if self.room.is_some_and(|room| request.len() > room) {
            return Err(NoReply::TooLarge);
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        if self.fault > 0 && number.is_multiple_of(self.fault) {
            match number / self.fault % 3 {
                0 => return Err(NoReply::Unknown),
                1 => {
                    hub.answer(&request).await;
                    return Err(NoReply::Unknown);
                }
                _ => drop(hub.answer(&request).await),
            }
        }
        match hub.answer(&request).await {
            reply if reply.is_empty() => Err(NoReply::Unknown),
            reply => Ok(reply.into()),
        }
    }
}

impl Network for Wires {
    fn request<'a>(&'a self, node: &'a str, request: Bytes) -> Requested<'a> {
        Box::pin(self.deliver(node, request))
    }

    fn ask_all(&self, request: Bytes) -> Requested<'_> {
        Box::pin(async move {
            let hubs: Vec<Hub> = self.hubs.lock().values().cloned().collect();
            for hub in hubs {
                let reply = hub.answer(&request).await;
                if !reply.is_empty() {
                    return Ok(reply.into());
                }
            }
            Err(NoReply::Unreachable)
        })
    }
}

/// Hubs, each on a runtime of its own, which is how one of them is killed.
struct Nodes {
    journal: Journal,
    record: Record,
    wires: Wires,
    runtimes: HashMap<String, Runtime>,
}

impl Nodes {
    fn new(fault: u64) -> Nodes {
        let wires = Wires { fault, ..Wires::default() };
        Nodes { journal: Journal::memory(), record: Record::default(), wires, runtimes: HashMap::new() }
    }

    fn start(&mut self, name: &str) {
        self.start_with(name, true);
    }

    fn start_with(&mut self, name: &str, has_files: bool) {
        self.start_for(name, has_files, LEASE);
    }

    fn start_for(&mut self, name: &str, has_files: bool, lease: Duration) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let record = self.record.clone();
        let options = Options::new(name, move || {
            let link = agent::start(&record, Abilities { load: true, resume: false });
            async move { Ok(link) }
        });
        let options = options.network(self.wires.clone()).lease(lease).reachable(move |_| has_files);
        let _inside = runtime.enter();
        let hub = Hub::new(self.journal.clone(), options);
        self.wires.hubs.lock().insert(name.to_owned(), hub);
        self.runtimes.insert(name.to_owned(), runtime);
    }

    /// Ends a hub as SIGKILL does: nothing is released or written.
    fn kill(&mut self, name: &str) {
        self.wires.hubs.lock().remove(name);
        if let Some(runtime) = self.runtimes.remove(name) {
            runtime.shutdown_background();
        }
    }

    async fn client(&self, name: &str) -> TestClient {
        let hub = self.wires.hubs.lock()[name].clone();
        let (near, far) = Link::pair();
        self.runtimes[name].spawn(async move { hub.serve(far, Identity::new("me")).await });
        TestClient::over(near, true).await
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.wires.hubs.lock().clear();
        for (_, runtime) in self.runtimes.drain() {
            runtime.shutdown_background();
        }
    }
}

fn has_text<'a>(text: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |message| crate::rig::text(message).as_deref() == Some(text)
}

async fn clients_of_two_nodes_share_a_session(fault: u64) {
    let mut nodes = Nodes::new(fault);
    nodes.start("a");
    nodes.start("b");
    let (mut near, mut far) = (nodes.client("a").await, nodes.client("b").await);
    let session = near.new_session().await;
    near.prompt(&session, "one").await;
    far.load(&session).await;
    assert_eq!(far.texts(), ["> one", "one"]);

    // A prompt of either node runs on the owner, and all see it.
    let ended = far.start_named(&session, "two", "p2").await;
    assert_eq!(stop_reason(&far.response(ended).await), "end_turn");
    near.until(has_text("two")).await;

    // A question is answered from the other node.
    let asked = near.start_named(&session, "ask something", "p3").await;
    let question = far.question().await;
    far.choose(&question, "yes").await;
    assert_eq!(stop_reason(&near.response(asked).await), "end_turn");
    far.until(has_text("answer yes")).await;

    // So is a cancel, unless the network loses it: a cancel is not repeated.
    if fault == 0 {
        let waiting = near.start_named(&session, "wait", "p4").await;
        far.until(has_text("waiting")).await;
        far.notify("session/cancel", json!({"sessionId": session})).await;
        assert_eq!(stop_reason(&near.response(waiting).await), "cancelled");
        let mode = far.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"})).await;
        assert!(mode["result"].is_object(), "{mode}");
    }
    assert_eq!(nodes.record.of("start").len(), 2, "each node has started one agent for initialize");
    let ran = nodes.record.of("prompt");
    let different: std::collections::HashSet<&String> = ran.iter().collect();
    assert_eq!(ran.len(), different.len(), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_is_driven_from_every_node() {
    clients_of_two_nodes_share_a_session(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn lost_and_doubled_requests_between_nodes_do_no_harm() {
    for fault in [1, 2, 3, 5] {
        if fault > 1 {
            clients_of_two_nodes_share_a_session(fault).await;
        }
    }
}

/// A session of node `a`, a client of it on node `b`, and the prompt of that client, which waits.
async fn waiting_turn(nodes: &Nodes) -> (String, TestClient, i64) {
    let mut near = nodes.client("a").await;
    let session = near.new_session().await;
    near.prompt(&session, "one").await;
    let mut far = nodes.client("b").await;
    far.load(&session).await;
    let running = far.start_named(&session, "wait", "p2").await;
    far.until(has_text("waiting")).await;
    (session, far, running)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_node_takes_over_when_the_owner_is_killed() {
    let mut nodes = Nodes::new(0);
    nodes.start("a");
    nodes.start("b");
    let (session, mut far, running) = waiting_turn(&nodes).await;
    // This one waits in the queue of the owner, and is not in the journal.
    let queued = far.start_named(&session, "three", "p3").await;
    nodes.kill("a");

    let interrupted = far.response(running).await;
    assert_eq!(interrupted["error"]["data"]["attache"]["interrupted"], true, "{interrupted}");
    assert_eq!(stop_reason(&far.response(queued).await), "end_turn");
    // The former owner comes back, as a guest.
    nodes.start("a");
    let mut back = nodes.client("a").await;
    back.load(&session).await;
    assert_eq!(back.texts(), ["> one", "one", "> wait", "waiting", "> three", "three"]);
    assert_eq!(stop_reason(&back.prompt(&session, "four").await), "end_turn");
    far.until(has_text("four")).await;
    assert_eq!(nodes.record.of("prompt"), ["one", "wait", "three", "four"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hub_that_is_shut_down_leaves_its_sessions_to_others() {
    // The test would not end if the lease had to.
    let lease = Duration::from_secs(24 * 60 * 60);
    let mut nodes = Nodes::new(0);
    nodes.start_for("a", true, lease);
    nodes.start_for("b", true, lease);
    let (mut near, mut far) = (nodes.client("a").await, nodes.client("b").await);
    let session = near.new_session().await;
    let idle = near.new_session().await;
    near.prompt(&session, "one").await;
    far.load(&session).await;
    let running = far.start_named(&session, "wait", "p2").await;
    far.until(has_text("waiting")).await;
    let hub = nodes.wires.hubs.lock().remove("a").unwrap();
    hub.shut_down().await;

    let interrupted = far.response(running).await;
    assert_eq!(interrupted["error"]["data"]["attache"]["interrupted"], true, "{interrupted}");
    assert_eq!(stop_reason(&far.prompt(&session, "two").await), "end_turn");
    far.load(&idle).await;
    assert_eq!(stop_reason(&far.prompt(&idle, "three").await), "end_turn");
    assert_eq!(nodes.record.of("prompt"), ["one", "wait", "two", "three"]);
    // There is nothing left to end.
    hub.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_owner_that_was_paused_for_too_long_becomes_a_guest() {
    let mut nodes = Nodes::new(0);
    nodes.start("a");
    let mut near = nodes.client("a").await;
    let session = near.new_session().await;
    near.prompt(&session, "one").await;
    // Another node has claimed the session meanwhile, and released it.
    let key = SessionKey::new(Identity::TENANT, session.clone()).unwrap();
    let lease = nodes.journal.claim(&key, &Claim::new("b", LEASE).force()).await.unwrap();
    nodes.journal.release(lease).await.unwrap();

    let ended = near.start_named(&session, "two", "p2").await;
    assert_eq!(stop_reason(&near.response(ended).await), "end_turn");
    assert_eq!(nodes.record.of("prompt"), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_whose_files_are_elsewhere_stays_readable() {
    let mut nodes = Nodes::new(0);
    nodes.start("a");
    nodes.start_with("b", false);
    let (session, mut far, running) = waiting_turn(&nodes).await;
    nodes.kill("a");

    let interrupted = far.response(running).await;
    assert_eq!(interrupted["error"]["data"]["attache"]["interrupted"], true, "{interrupted}");
    let refused = far.prompt(&session, "two").await;
    assert_eq!(refused["error"]["message"], "no hub with the files of this session is running");
    let mut reader = nodes.client("b").await;
    reader.load(&session).await;
    assert_eq!(reader.texts(), ["> one", "one", "> wait", "waiting"]);

    // A node that has the files takes it up.
    nodes.start("c");
    assert_eq!(stop_reason(&far.prompt(&session, "three").await), "end_turn");
    reader.until(has_text("three")).await;
    assert_eq!(nodes.record.of("prompt"), ["one", "wait", "three"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_too_large_for_the_network_is_an_error_for_the_client() {
    let mut nodes = Nodes::new(0);
    nodes.wires.room = Some(4096);
    nodes.start("a");
    nodes.start("b");
    let (mut near, mut far) = (nodes.client("a").await, nodes.client("b").await);
    let session = near.new_session().await;
    near.prompt(&session, "one").await;
    far.load(&session).await;
    let large = "x".repeat(8192);
    let refused = far.prompt(&session, &large).await;
    let why = "the prompt is too large for the hub that owns this session";
    assert_eq!(refused["error"]["message"], why, "{refused}");
    let mode = far.call("session/set_mode", json!({"sessionId": session, "modeId": large})).await;
    assert_eq!(mode["error"]["data"]["attache"]["interrupted"], true, "{mode}");
    assert_eq!(stop_reason(&far.prompt(&session, "two").await), "end_turn");
    assert_eq!(nodes.record.of("prompt"), ["one", "two"]);
}
