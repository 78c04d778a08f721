//! Questions of the agent, as values that are answered exactly once.
//!
//! A question lives in two places: the value that the user holds, and the session's list of open questions, which a
//! cancelled turn empties. Whoever comes first answers; the other finds nothing left to do. There is no way to leave
//! a question unanswered: dropping it answers, and so does the agent when it takes the question back.

use std::sync::{Arc, Mutex, PoisonError};

use attache_conn::{CancelToken, Responder};
use attache_wire::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate,
};

use crate::check::unknown;
use crate::{Error, Meta, Result};

/// The open end of a question.
pub(crate) struct PendingAnswer {
    responder: Mutex<Option<Responder>>,
    /// Raised when the question has its answer, whoever gave it.
    done: CancelToken,
    /// What answers the question when nobody wants to.
    cancel: fn(Responder),
}

impl PendingAnswer {
    /// Opens a question. When the agent takes it back it is answered like a cancelled one.
    pub(crate) fn open(responder: Responder, cancel: fn(Responder)) -> Arc<Self> {
        let withdrawn = responder.cancellation();
        let slot = Arc::new(PendingAnswer {
            responder: Mutex::new(Some(responder)),
            done: CancelToken::new(),
            cancel,
        });
        let weak = Arc::downgrade(&slot);
        // CANCEL-16: the request is still answered, exactly once.
        withdrawn.on_cancel(move || {
            if let Some(slot) = weak.upgrade() {
                slot.cancel();
            }
        });
        slot
    }

    /// Answers, if nobody has yet.
    pub(crate) fn answer(&self, answer: impl FnOnce(Responder)) -> bool {
        let responder = self.responder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let open = responder.is_some();
        if let Some(responder) = responder {
            answer(responder);
            self.done.cancel();
        }
        open
    }

    /// Answers that nobody decided.
    pub(crate) fn cancel(&self) {
        self.answer(self.cancel);
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.done.is_cancelled()
    }

    pub(crate) async fn done(&self) {
        self.done.cancelled().await;
    }
}

pub(crate) fn cancel_permission(responder: Responder) {
    responder.ok(&RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled));
}

/// The agent asks whether it may run a tool.
///
/// Answer with [`choose`](Self::choose), [`choose_kind`](Self::choose_kind) or [`cancel`](Self::cancel). Each takes the question,
/// so a second answer does not compile:
///
/// ```compile_fail
/// # use attache::client::PermissionAsk;
/// fn twice(ask: PermissionAsk) {
///     ask.cancel();
///     ask.cancel(); // the question is gone
/// }
/// ```
///
/// A question that is dropped, or whose turn is cancelled, is answered `cancelled` (CANCEL-03, PERM-08). Nothing here
/// answers on the user's behalf: whoever holds the question shows it, or follows what the user has set (PERM-05,
/// PERM-06, PERM-07). What an option such as "always" means is kept by the agent (PERM-14).
pub struct PermissionAsk {
    slot: Arc<PendingAnswer>,
    request: Box<RequestPermissionRequest>,
    meta: Option<Meta>,
}

impl PermissionAsk {
    pub(crate) fn new(slot: Arc<PendingAnswer>, request: Box<RequestPermissionRequest>) -> Self {
        PermissionAsk { slot, request, meta: None }
    }

    /// Gives the answer a `_meta`. A question that is dropped is answered without.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The tool call in question; often the id is all that it tells.
    pub fn tool_call(&self) -> &ToolCallUpdate {
        &self.request.tool_call
    }

    /// The answers that the agent offers. PERM-11: an option is chosen by its id; two of the same kind are not the same.
    pub fn options(&self) -> &[PermissionOption] {
        &self.request.options
    }

    /// The first option of a kind.
    pub fn first_of(&self, kind: PermissionOptionKind) -> Option<&PermissionOption> {
        self.request.options.iter().find(|option| option.kind == kind)
    }

    /// The request as it came.
    pub fn request(&self) -> &RequestPermissionRequest {
        &self.request
    }

    /// Answers with one of the offered options.
    ///
    /// # Errors
    /// PERM-04: an option that was not offered is refused here, and the agent reads `cancelled`.
    pub fn choose(self, option: &PermissionOptionId) -> Result<()> {
        if !self.request.options.iter().any(|offered| offered.option_id == *option) {
            let available = self.request.options.iter().map(|option| option.option_id.as_str());
            return Err(Error::Invalid(unknown("option", option.as_str(), available)));
        }
        self.select(option);
        Ok(())
    }

    /// Answers with the first option of a kind; if there is none, with `cancelled`. Look with [`first_of`](Self::first_of)
    /// before if that matters.
    pub fn choose_kind(self, kind: PermissionOptionKind) {
        if let Some(option) = self.first_of(kind) {
            self.select(&option.option_id);
        }
    }

    /// Answers that nobody decided.
    pub fn cancel(self) {
        self.answer(RequestPermissionOutcome::Cancelled);
    }

    /// Whether the question still waits for an answer.
    pub fn is_open(&self) -> bool {
        self.slot.is_open()
    }

    /// Waits until the question needs no answer any more, because the turn was cancelled or the agent took it back.
    pub async fn withdrawn(&self) {
        self.slot.done().await;
    }

    fn select(&self, option: &PermissionOptionId) {
        self.answer(RequestPermissionOutcome::selected(option));
    }

    fn answer(&self, outcome: RequestPermissionOutcome) {
        let mut response = RequestPermissionResponse::new(outcome);
        response.meta.clone_from(&self.meta);
        self.slot.answer(|responder| responder.ok(&response));
    }
}

impl Drop for PermissionAsk {
    fn drop(&mut self) {
        self.slot.cancel();
    }
}

impl std::fmt::Debug for PermissionAsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PermissionAsk").field(&self.request).finish()
    }
}
