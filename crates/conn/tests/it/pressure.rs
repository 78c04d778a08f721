//! Everything at once, on several threads, with hardly any room: no waiter must be forgotten.

use attache_conn::{Dispatch, IncomingNotification, IncomingRequest, Limits, Link, Peer, Side, open};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TASKS: usize = 8;
const EACH: usize = 300;

/// Answers some requests at once and some from a task, counts notifications, and releases the
/// queued bytes from another task, so that the reader has to rest and to be woken.
struct Busy {
    peer: Peer,
    received: Arc<AtomicUsize>,
}

impl Dispatch for Busy {
    fn request(&mut self, request: IncomingRequest<'_>) {
        let (params, responder) = request.open().unwrap();
        let params = params.unwrap().to_owned();
        if params.get().len().is_multiple_of(2) {
            responder.ok(&params);
        } else {
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                responder.ok(&params);
            });
        }
    }

    fn notification(&mut self, notification: IncomingNotification<'_>) {
        self.received.fetch_add(1, Ordering::SeqCst);
        let bytes = notification.open().unwrap().unwrap().get().len();
        let peer = self.peer.clone();
        peer.backlog().add(bytes);
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            peer.backlog().sub(bytes);
        });
    }
}

fn busy(link: Link, side: Side) -> (Peer, Arc<AtomicUsize>, tokio::task::JoinHandle<attache_conn::Closed>) {
    let limits = Limits::default().write_buffer(2000).queued(500).queued_hard(100_000);
    let received = Arc::new(AtomicUsize::new(0));
    let (peer, driver) =
        open(link, limits, side, |peer| Busy { peer: peer.clone(), received: Arc::clone(&received) });
    (peer, received, tokio::spawn(driver))
}

async fn talk(peer: Peer, who: usize) {
    for n in 0..EACH {
        let params = json!({ "who": who, "n": n, "text": "x".repeat(n % 50) });
        peer.notify("report", &params).await.unwrap();
        let call = peer.call("ask", &params);
        if n.is_multiple_of(7) {
            drop(call);
        } else {
            let answer = call.await.unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(answer.get()).unwrap(), params);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_waiter_is_woken() {
    let (a, b) = Link::pair();
    let (client, at_client, client_driver) = busy(a, Side::Client);
    let (agent, at_agent, agent_driver) = busy(b, Side::Agent);
    let mut tasks = tokio::task::JoinSet::new();
    for who in 0..TASKS {
        tasks.spawn(talk(client.clone(), who));
        tasks.spawn(talk(agent.clone(), who));
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    // The last answer came behind everything else, so all of it was received.
    client.call("ask", &json!({})).await.unwrap();
    agent.call("ask", &json!({})).await.unwrap();
    assert_eq!(at_client.load(Ordering::SeqCst), TASKS * EACH);
    assert_eq!(at_agent.load(Ordering::SeqCst), TASKS * EACH);
    client.close();
    client_driver.await.unwrap();
    agent_driver.await.unwrap();
}
