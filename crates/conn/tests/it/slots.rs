//! The budget of answers, and that of open requests.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use attache_conn::{Limits, Peer, ResponseSlot, Side};

use crate::kit::{Received, Said, Wire, connect};

/// Whether a future is ready when it is polled once.
fn is_ready<F: Future>(future: F) -> bool {
    matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

fn start(limits: Limits, room: usize) -> (Peer, Wire, Received) {
    let (link, wire) = Wire::with_room(room);
    let (peer, driver, received) = connect(link, limits, Side::Client);
    tokio::spawn(driver);
    (peer, wire, received)
}

async fn entered(peer: &Peer) -> ResponseSlot {
    let slot = peer.response_slot();
    slot.enter().await;
    slot
}

#[tokio::test]
async fn few_enter_at_once_and_in_order() {
    let (peer, _wire, _heard) = start(Limits::default().large_responses(2), 1000);
    let (one, _two) = (entered(&peer).await, entered(&peer).await);
    let (third, fourth) = (peer.response_slot(), peer.response_slot());
    let mut third_enters = pin!(third.enter());
    let mut fourth_enters = pin!(fourth.enter());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(
        third_enters.as_mut().poll(&mut cx).is_pending() && fourth_enters.as_mut().poll(&mut cx).is_pending()
    );
    drop(one);
    assert!(fourth_enters.as_mut().poll(&mut cx).is_pending(), "it is the turn of the third");
    assert!(third_enters.as_mut().poll(&mut cx).is_ready());
    third.leave();
    assert!(fourth_enters.as_mut().poll(&mut cx).is_ready());
    // Once is enough.
    assert!(is_ready(fourth.enter()));
}

#[tokio::test]
async fn a_dropped_waiter_passes_its_slot_on() {
    let (peer, _wire, _heard) = start(Limits::default().large_responses(1), 1000);
    let one = entered(&peer).await;
    let (second, third) = (peer.response_slot(), peer.response_slot());
    let mut cx = Context::from_waker(Waker::noop());
    let mut second_enters = Box::pin(second.enter());
    assert!(second_enters.as_mut().poll(&mut cx).is_pending());
    let third_enters = tokio::spawn(async move {
        third.enter().await;
        third
    });
    tokio::task::yield_now().await;
    one.leave();
    drop(second_enters);
    assert!(!is_ready(second.enter()), "the third has it");
    drop(third_enters.await.unwrap());
    assert!(is_ready(second.enter()));
}

#[tokio::test]
async fn no_handler_starts_while_the_write_buffer_is_full() {
    let limits = Limits::default().response_bytes(10_000);
    let (peer, mut wire, mut received) = start(limits, 100);
    wire.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n").await;
    let (_, _, responder) = received.request().await;
    responder.ok(&"x".repeat(20_000));
    let slot = peer.response_slot();
    assert!(!is_ready(slot.enter()));
    let waits = tokio::spawn(async move { slot.enter().await });
    // What the writer has taken and not written counts too.
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    assert!(wire.json().await["result"].as_str().unwrap().len() == 20_000);
    waits.await.unwrap();
}

#[tokio::test]
async fn bytes_are_reserved_before_they_are_made() {
    let limits = Limits::default().response_bytes(1000).write_buffer(10);
    let (peer, _wire, _heard) = start(limits, 1000);
    let (one, two, three) = (entered(&peer).await, entered(&peer).await, entered(&peer).await);
    one.reserve(600).await;
    assert!(!is_ready(two.reserve(600)));
    assert!(is_ready(three.reserve(400)));
    one.leave();
    assert!(is_ready(two.reserve(600)));
    two.leave();
    three.leave();
    // What is larger than everything is made alone.
    let (big, small) = (entered(&peer).await, entered(&peer).await);
    assert!(is_ready(big.reserve(5000)));
    assert!(!is_ready(small.reserve(1)));
    drop(big);
    assert!(is_ready(small.reserve(1)));
    assert!(!is_ready(entered(&peer).await.reserve(5000)));
}

#[tokio::test]
async fn a_pause_lets_others_in() {
    let (peer, _wire, _heard) = start(Limits::default().large_responses(1), 1000);
    let slot = entered(&peer).await;
    let (answer, answered) = tokio::sync::oneshot::channel();
    let asks = tokio::spawn(async move {
        let answer = slot.pause(answered).await.unwrap();
        (slot, answer)
    });
    tokio::task::yield_now().await;
    let other = peer.response_slot();
    assert!(is_ready(other.enter()));
    answer.send(7).unwrap();
    tokio::task::yield_now().await;
    assert!(!asks.is_finished(), "its place is taken");
    drop(other);
    let (slot, answer) = asks.await.unwrap();
    assert_eq!(answer, 7);
    assert!(!is_ready(peer.response_slot().enter()));
    // What is ready at once keeps its place.
    assert_eq!(slot.pause(std::future::ready(8)).await, 8);
    assert!(!is_ready(peer.response_slot().enter()));
}

#[tokio::test]
async fn the_end_of_the_connection_ends_every_wait() {
    let limits = Limits::default().large_responses(1).response_bytes(100);
    let (peer, wire, mut received) = start(limits, 1000);
    let first = entered(&peer).await;
    first.reserve(100).await;
    let (second, third) = (peer.response_slot(), peer.response_slot());
    let enters = tokio::spawn(async move { second.enter().await });
    let reserves = tokio::spawn(async move { third.reserve(50).await });
    tokio::task::yield_now().await;
    assert!(!enters.is_finished() && !reserves.is_finished());
    drop(wire);
    received.closed().await;
    enters.await.unwrap();
    reserves.await.unwrap();
}

#[tokio::test]
async fn open_requests_are_bounded_by_their_bytes() {
    let limits = Limits::default().open_request_bytes(1000);
    let (_peer, mut wire, mut received) = start(limits, 64 << 10);
    let request = |id: u32, length: usize| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"a\",\"params\":{{\"x\":\"{}\"}}}}\n",
            "x".repeat(length)
        )
    };
    // One by itself may be as large as a frame.
    wire.write(request(1, 5000)).await;
    let (_, _, first) = received.request().await;
    wire.write(request(2, 10)).await;
    let refusal = wire.json().await;
    assert_eq!((refusal["id"].as_u64(), refusal["error"]["code"].as_i64()), (Some(2), Some(-32603)));
    assert!(refusal["error"]["message"].as_str().unwrap().contains("too many bytes of requests are open"));
    assert!(matches!(received.next().await, Said::Noise(..)));
    first.ok(&1);
    assert_eq!(wire.json().await["id"], 1);
    for id in 3..6 {
        wire.write(request(id, 200)).await;
        let (_, _, responder) = received.request().await;
        // A request that is dropped is answered, and does not count any more.
        drop(responder);
        assert_eq!(wire.json().await["id"], id);
    }
}
