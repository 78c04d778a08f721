//! The handle to the other end.

use crate::shared::{Over, Shared};
use crate::waiter::Waiter;
use crate::{
    Backlog, Call, CallError, CallId, Closed, Dispatch, Driver, Limits, Link, Notify, ResponseSlot, Side,
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The other end of a connection. Clones refer to the same peer.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

/// Opens a connection on `link`. It makes progress only while the [`Driver`] is polled: spawn or
/// await it.
///
/// `make` creates the handler of the peer's messages. It gets the peer, so that handlers can send
/// messages.
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
    /// Sends a request. It is encoded before this returns, so calls reach the wire in the order in
    /// which they are made.
    pub fn call<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Call {
        Call::send(&self.0, method, params, None)
    }

    /// Sends a request whose response is handled in the reader, between the messages before and
    /// after it. `on_response` must not block. It is called exactly once, also if the request
    /// cannot be sent.
    pub fn call_with<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
        on_response: impl FnOnce(Result<&RawValue, CallError>) + Send + 'static,
    ) -> CallId {
        self.0.request(method, params, Waiter::Callback(Box::new(on_response)), None)
    }

    /// Cancels a request made with [`call_with`](Self::call_with). `on_response` is dropped unless
    /// it has run.
    pub fn abandon(&self, id: CallId) {
        self.0.abandon(id);
    }

    /// Sends a notification as soon as there is room in the write buffer.
    pub fn notify<'a, P: Serialize + ?Sized>(&'a self, method: &'a str, params: &'a P) -> Notify<'a, P> {
        Notify::new(&self.0, method, params, None)
    }

    /// Sends a notification without waiting for room. Returns `false` if it cannot be serialized,
    /// if the connection is over, or if the peer has not read for long.
    pub fn notify_now<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> bool {
        self.0.notify_now(method, params, None)
    }

    /// Limits messages to the time before `over` is set, for example to the life of a turn.
    pub fn unless<'a>(&'a self, over: &'a AtomicBool) -> PeerUnless<'a> {
        PeerUnless { peer: self, over: Some(over) }
    }

    /// Returns a place among the handlers of large responses.
    pub fn response_slot(&self) -> ResponseSlot {
        ResponseSlot::new(&self.0)
    }

    /// Ends the connection after the queued messages are written. Does not wait.
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

    /// Whether the peer sends nothing more, so that every call fails. Queued messages may still be
    /// written.
    pub fn is_read_closed(&self) -> bool {
        self.is_closed() || self.0.lock().read_closed.is_some()
    }

    /// Returns the inbound budget.
    pub fn backlog(&self) -> &Backlog {
        &self.0.backlog
    }

    /// Returns the limits of this connection.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Returns which end we are.
    pub fn side(&self) -> Side {
        self.0.side
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("side", &self.0.side).field("closed", &self.is_closed()).finish()
    }
}

/// A peer whose messages are not sent once a flag is set; see [`Peer::unless`].
///
/// The flag is read in the same step in which the message is encoded. A response that is sent after
/// the flag was set is therefore the last message.
#[derive(Clone, Copy, Debug)]
pub struct PeerUnless<'a> {
    peer: &'a Peer,
    over: Over<'a>,
}

impl<'a> PeerUnless<'a> {
    /// Like [`Peer::call`]; fails with [`CallError::Withdrawn`] if the flag is set.
    pub fn call<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Call {
        Call::send(&self.peer.0, method, params, self.over)
    }

    /// Like [`Peer::call_with`]; fails with [`CallError::Withdrawn`] if the flag is set.
    pub fn call_with<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
        on_response: impl FnOnce(Result<&RawValue, CallError>) + Send + 'static,
    ) -> CallId {
        self.peer.0.request(method, params, Waiter::Callback(Box::new(on_response)), self.over)
    }

    /// Like [`Peer::notify`]; fails with [`CallError::Withdrawn`] if the flag is set when there is
    /// room.
    pub fn notify<P: Serialize + ?Sized>(&self, method: &'a str, params: &'a P) -> Notify<'a, P> {
        Notify::new(&self.peer.0, method, params, self.over)
    }

    /// Like [`Peer::notify_now`]; returns `false` if the flag is set.
    pub fn notify_now<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> bool {
        self.peer.0.notify_now(method, params, self.over)
    }
}
