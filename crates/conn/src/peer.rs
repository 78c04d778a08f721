//! The handle to the other end.

use crate::call::{OWN_UNSENT, Waiter};
use crate::shared::Shared;
use crate::{
    AnswerSlot, Backlog, Call, CallError, CallId, Closed, Dispatch, Driver, Limits, Link, Notify, Side,
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// The other end of a connection, as something to talk to. Clones are the same peer.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

/// Puts a connection on `link`. Nothing moves until the [`Driver`] is polled: spawn it, or await it.
///
/// `make` builds what receives the peer's messages; it is given the peer so that its handlers can talk back.
pub fn open<D: Dispatch>(
    link: Link,
    limits: Limits,
    side: Side,
    make: impl FnOnce(&Peer) -> D,
) -> (Peer, Driver) {
    let shared = Arc::new(Shared::new(limits, side));
    let peer = Peer(Arc::clone(&shared));
    let dispatch = make(&peer);
    (peer, Driver::new(shared, link, Box::new(dispatch)))
}

impl Peer {
    /// Sends a request. It is encoded at once, so the order of calls is the order on the wire even before any is awaited.
    pub fn call<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Call {
        Call::send(&self.0, method, params)
    }

    /// Sends a request whose answer is handled in the reader itself, between the message before and the message after it.
    /// `on_answer` must not wait; it is called exactly once, also when the request cannot be sent.
    pub fn call_with<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
        on_answer: impl FnOnce(Result<&RawValue, CallError>) + Send + 'static,
    ) -> CallId {
        self.0.request(method, params, Waiter::Callback(Box::new(on_answer)))
    }

    /// Gives up a call made with [`call_with`](Self::call_with): the peer is told, and `on_answer` is dropped unless it
    /// ran already.
    pub fn abandon(&self, id: CallId) {
        self.0.abandon(id);
    }

    /// Sends a notification as soon as there is room for it in the write buffer.
    pub fn notify<'a, P: Serialize + ?Sized>(&'a self, method: &'a str, params: &'a P) -> Notify<'a, P> {
        Notify::new(self, method, params)
    }

    /// Sends a notification now, whether there is room or not: for the few that must not wait. `false` if it cannot be
    /// serialized, if the connection is over, or if the peer has stopped reading long ago.
    pub fn notify_now<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> bool {
        self.0.write(|state| {
            self.0.refusal(state).is_none()
                && state.out.len() <= OWN_UNSENT
                && state.machine.notify(method, params, &mut state.out).is_ok()
        })
    }

    /// A place among those who answer the peer with something that may be large.
    pub fn answer_slot(&self) -> AnswerSlot {
        AnswerSlot::new(&self.0)
    }

    /// Ends the connection: what is queued is still written, then the driver finishes. Does not wait.
    pub fn close(&self) {
        self.0.close();
    }

    /// Waits for the end of the connection.
    pub async fn closed(&self) -> Closed {
        self.0.wait_for_end().await
    }

    /// Whether the connection is over.
    pub fn is_closed(&self) -> bool {
        self.0.ended().is_some()
    }

    /// Whether the peer sends nothing more, so that every call fails. What is queued may still be written.
    pub fn is_read_closed(&self) -> bool {
        self.is_closed() || self.0.lock().deaf.is_some()
    }

    /// The inbound budget.
    pub fn backlog(&self) -> &Backlog {
        &self.0.backlog
    }

    /// The limits of this connection.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Which end we are.
    pub fn side(&self) -> Side {
        self.0.side
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("side", &self.0.side).field("closed", &self.is_closed()).finish()
    }
}
