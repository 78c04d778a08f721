//! The response to a request of the peer.

use crate::CancelToken;
use crate::cancel::TokenId;
use crate::shared::Shared;
use attache_rpc::{ErrorObject, Id};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// Sends the response to one request of the peer.
///
/// A request gets exactly one response: the methods that send it consume the responder, and
/// dropping it sends an internal error. Sending never waits for room, so that a peer that waits for
/// a response is not blocked by a stream that it does not read. Large responses wait before they
/// are produced; see [`ResponseSlot`](crate::ResponseSlot).
// RPC-24
pub struct Responder {
    shared: Arc<Shared>,
    id: Id,
    token: TokenId,
    /// Bytes that the open request counts.
    bytes: usize,
    responded: bool,
}

impl Responder {
    pub(crate) fn new(shared: &Arc<Shared>, id: Id, token: TokenId, bytes: usize) -> Self {
        Responder { shared: Arc::clone(shared), id, token, bytes, responded: false }
    }

    /// Returns the id of the request.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// Returns the token that is cancelled when the peer cancels the request or disconnects. A
    /// cancelled request still gets a response.
    // CANCEL-16
    pub fn cancellation(&self) -> CancelToken {
        self.shared.lock().tokens.get(self.token)
    }

    /// Responds with a result.
    pub fn ok<T: Serialize + ?Sized>(mut self, result: &T) {
        self.respond(Ok(result));
    }

    /// Responds with an error.
    pub fn err(mut self, error: ErrorObject) {
        self.respond(Err::<&(), _>(&error));
    }

    fn respond<T: Serialize + ?Sized>(&mut self, outcome: Result<&T, &ErrorObject>) {
        let bytes = std::mem::take(&mut self.bytes);
        self.shared.respond(&self.id, self.token, bytes, outcome);
        // Set last: if serializing panicked, dropping the responder still sends an error.
        self.responded = true;
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.responded {
            self.respond(Err::<&(), _>(&ErrorObject::internal("the handler ended without an answer")));
        }
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("id", &self.id).finish_non_exhaustive()
    }
}
