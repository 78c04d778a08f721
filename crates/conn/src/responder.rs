//! The duty to answer.

use crate::CancelToken;
use crate::cancel::TokenId;
use crate::shared::Shared;
use attache_rpc::{ErrorObject, Id};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// The right and the duty to answer one request of the peer.
///
/// RPC-24: it is answered exactly once. The methods that answer consume it, and dropping it answers with an internal error.
/// An answer that exists does not wait for room: a peer that waits for one must not be kept waiting by a stream that it does not
/// read. Answers that may be large wait before they are made; see [`AnswerSlot`](crate::AnswerSlot).
pub struct Responder {
    shared: Arc<Shared>,
    id: Id,
    token: TokenId,
    /// What the request counts among the open ones.
    bytes: usize,
    answered: bool,
}

impl Responder {
    pub(crate) fn new(shared: &Arc<Shared>, id: Id, token: TokenId, bytes: usize) -> Self {
        Responder { shared: Arc::clone(shared), id, token, bytes, answered: false }
    }

    /// The id of the request.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// Raised when the peer no longer wants this request to be executed, or is gone. It wants an answer all the same
    /// (CANCEL-16).
    pub fn cancellation(&self) -> CancelToken {
        self.shared.lock().tokens.get(self.token)
    }

    /// Answers with a result.
    pub fn ok<T: Serialize + ?Sized>(mut self, result: &T) {
        self.answer(Ok(result));
    }

    /// Answers with an error.
    pub fn err(mut self, error: ErrorObject) {
        self.answer(Err::<&(), _>(&error));
    }

    fn answer<T: Serialize + ?Sized>(&mut self, outcome: Result<&T, &ErrorObject>) {
        self.shared.write(|state| {
            state.tokens.forget(self.token);
            state.open_bytes -= std::mem::take(&mut self.bytes);
            if !state.is_mute() {
                state.machine.answer(&self.id, outcome, &mut state.out);
            }
        });
        // Only now: if serializing panicked, the drop still answers.
        self.answered = true;
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(Err::<&(), _>(&ErrorObject::internal("the handler ended without an answer")));
        }
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("id", &self.id).finish_non_exhaustive()
    }
}
