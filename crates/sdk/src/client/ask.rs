//! Questions of the agent, as values that are answered exactly once.
//!
//! A question is in two places: the value that the user holds, and the session's list of open
//! questions, which a cancelled turn answers. The first answer counts. Dropping a question answers
//! it, and so does a cancel by the agent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use attache_conn::{CancelToken, Responder};
use attache_wire::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate,
};

use crate::check::unknown;
use crate::{Error, Meta, Result};

/// The response that a question needs.
pub(crate) struct PendingAnswer {
    responder: Mutex<Option<Responder>>,
    /// Raised when the question is answered.
    done: CancelToken,
    /// Whether the answer is an approval.
    allowed: AtomicBool,
    /// The answer if there is no decision.
    cancel: fn(Responder),
}

impl PendingAnswer {
    /// Registers a question. If the agent cancels it, it is answered as cancelled.
    pub(crate) fn open(responder: Responder, cancel: fn(Responder)) -> Arc<Self> {
        let withdrawn = responder.cancellation();
        let slot = Arc::new(PendingAnswer {
            responder: Mutex::new(Some(responder)),
            done: CancelToken::new(),
            allowed: AtomicBool::new(false),
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

    /// Answers unless it is answered already.
    pub(crate) fn answer(&self, answer: impl FnOnce(Responder)) -> bool {
        let responder = self.responder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let open = responder.is_some();
        if let Some(responder) = responder {
            answer(responder);
            self.done.cancel();
        }
        open
    }

    /// Answers as cancelled.
    pub(crate) fn cancel(&self) {
        self.answer(self.cancel);
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.done.is_cancelled()
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.allowed.load(Ordering::Acquire)
    }

    /// Calls a function when the question is answered.
    pub(crate) fn on_done(&self, done: impl FnOnce() + Send + 'static) {
        self.done.on_cancel(done);
    }

    pub(crate) async fn done(&self) {
        self.done.cancelled().await;
    }
}

pub(crate) fn cancel_permission(responder: Responder) {
    responder.ok(&RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled));
}

/// A permission request of the agent, from [`Event::Permission`](super::Event::Permission) or
/// [`Client::on_permission`](super::Client::on_permission).
///
/// Answer with [`choose`](Self::choose), [`choose_kind`](Self::choose_kind) or
/// [`cancel`](Self::cancel). Each takes the question, so a second answer does not compile:
///
/// ```compile_fail
/// # use attache::client::PermissionAsk;
/// fn twice(ask: PermissionAsk) {
///     ask.cancel();
///     ask.cancel(); // the question is gone
/// }
/// ```
///
/// A request that is dropped, or whose turn is cancelled, is answered `cancelled`. Show it to the
/// user or follow the user's rules; the crate `attache-host` has a policy. The agent remembers
/// options such as "always".
// PERM-05, PERM-06, PERM-07
// CANCEL-03, PERM-08, PERM-14
pub struct PermissionAsk {
    slot: Arc<PendingAnswer>,
    request: Box<RequestPermissionRequest>,
    details: Option<Box<PermissionDetails>>,
    meta: Option<Meta>,
}

/// What a question says besides its tool call. Only version 2 has it.
#[derive(Debug)]
pub(crate) struct PermissionDetails {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) command: Option<PermissionCommand>,
    /// Whether the tool call is one of the agent; otherwise it is made up and ends with the answer.
    pub(crate) has_call: bool,
}

/// A command that an agent asks about.
///
/// Example: [`PermissionAsk::command`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionCommand {
    /// The command.
    pub command: String,
    /// Its working directory.
    pub cwd: String,
}

impl PermissionAsk {
    pub(crate) fn new(
        slot: Arc<PendingAnswer>,
        request: Box<RequestPermissionRequest>,
        details: Option<Box<PermissionDetails>>,
    ) -> Self {
        PermissionAsk { slot, request, details, meta: None }
    }

    fn details(&self) -> Option<&PermissionDetails> {
        self.details.as_deref()
    }

    /// The question: with version 1, the title of the tool call.
    pub fn title(&self) -> Option<&str> {
        self.details().and_then(|details| details.title.as_deref()).or(self
            .request
            .tool_call
            .title
            .as_deref())
    }

    /// Details to show below the question. Agents of version 1 never give them.
    pub fn description(&self) -> Option<&str> {
        self.details()?.description.as_deref()
    }

    /// The command, if the question is about one. Agents of version 1 describe it in the tool call
    /// only.
    ///
    /// ```
    /// use attache::client::PermissionAsk;
    ///
    /// fn show(ask: &PermissionAsk) {
    ///     println!("{}", ask.title().unwrap_or("Allow this?"));
    ///     if let Some(command) = ask.command() {
    ///         println!("$ {} (in {})", command.command, command.cwd);
    ///     }
    /// }
    /// ```
    pub fn command(&self) -> Option<&PermissionCommand> {
        self.details()?.command.as_ref()
    }

    /// Sets `_meta` of the answer.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The tool call, often only its id.
    pub fn tool_call(&self) -> &ToolCallUpdate {
        &self.request.tool_call
    }

    /// The options. Choose by id: two may have the same kind.
    // PERM-11
    pub fn options(&self) -> &[PermissionOption] {
        &self.request.options
    }

    /// The first option of a kind.
    pub fn first_of(&self, kind: PermissionOptionKind) -> Option<&PermissionOption> {
        self.request.options.iter().find(|option| option.kind == kind)
    }

    /// The request, unchanged.
    pub fn request(&self) -> &RequestPermissionRequest {
        &self.request
    }

    /// Chooses an option.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown option; the agent gets `cancelled`.
    // PERM-04
    pub fn choose(self, option: &PermissionOptionId) -> Result<()> {
        if !self.request.options.iter().any(|offered| offered.option_id == *option) {
            let available = self.request.options.iter().map(|option| option.option_id.as_str());
            return Err(Error::Invalid(unknown("option", option.as_str(), available)));
        }
        self.select(option);
        Ok(())
    }

    /// Chooses the first option of a kind, or else `cancelled`. See [`first_of`](Self::first_of).
    pub fn choose_kind(self, kind: PermissionOptionKind) {
        if let Some(option) = self.first_of(kind) {
            self.select(&option.option_id);
        }
    }

    /// Answers `cancelled`.
    pub fn cancel(self) {
        self.answer(RequestPermissionOutcome::Cancelled);
    }

    /// Whether the request is unanswered.
    pub fn is_open(&self) -> bool {
        self.slot.is_open()
    }

    /// Waits until the request needs no answer, because the turn or the request was cancelled.
    pub async fn withdrawn(&self) {
        self.slot.done().await;
    }

    fn select(&self, option: &PermissionOptionId) {
        self.answer(RequestPermissionOutcome::selected(option));
    }

    fn is_approval(&self, outcome: &RequestPermissionOutcome) -> bool {
        let RequestPermissionOutcome::Selected(selected) = outcome else { return false };
        let chosen = self.options().iter().find(|option| option.option_id == selected.option_id);
        chosen.is_some_and(|option| option.kind.allows())
    }

    fn answer(&self, outcome: RequestPermissionOutcome) {
        let mut response = RequestPermissionResponse::new(outcome);
        response.meta.clone_from(&self.meta);
        let allowed = self.is_approval(&response.outcome);
        self.slot.answer(|responder| {
            self.slot.allowed.store(allowed, Ordering::Release);
            responder.ok(&response);
        });
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
