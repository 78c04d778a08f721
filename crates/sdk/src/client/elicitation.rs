//! Requests for input, and the check of forms before they are sent.

use std::fmt;
use std::sync::Arc;

use attache_conn::Responder;
use attache_wire::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction,
    ElicitationContentValue, ElicitationId, ElicitationMode, ElicitationSchema, ElicitationScope, Fields,
    ToolCallId,
};

use super::ask::PendingAnswer;
use super::form;

/// The reason of a refusal. The mode is the agent's text, so it is cut.
pub(crate) fn mode_not_offered(mode: &str) -> String {
    let mode: String = mode.chars().take(40).collect();
    format!("this client does not offer the mode `{mode}`")
}

pub(crate) fn cancel_elicitation(responder: Responder) {
    responder.ok(&CreateElicitationResponse::new(ElicitationAction::Cancel));
}

/// A request for input: a form to fill in, or a web page to visit. From
/// [`Event::Elicitation`](super::Event::Elicitation).
///
/// Name the agent, fill in the defaults, let the user review the answers, and offer to decline and
/// to cancel.
///
/// Answer with [`accept`](Self::accept), [`agree`](Self::agree), [`decline`](Self::decline) or
/// [`cancel`](Self::cancel). Dropping the question, or cancelling its turn, answers `cancel`.
///
/// ```
/// use attache::client::{ElicitationAsk, RequestedInput};
/// use attache::model::Fields;
///
/// fn answer(ask: ElicitationAsk, name: &str) {
///     println!("{}", ask.message());
///     match ask.requested() {
///         Some(RequestedInput::Form(_)) => {
///             if let Err(invalid) = ask.accept(Fields::from_iter([("name".to_owned(), name.into())])) {
///                 println!("{:?}", invalid.problems);
///                 invalid.ask.decline();
///             }
///         }
///         _ => ask.decline(),
///     }
/// }
/// ```
// ELIC-07, ELIC-08, ELIC-13
pub struct ElicitationAsk {
    slot: Arc<PendingAnswer>,
    request: Box<CreateElicitationRequest>,
}

/// The input that an agent requests.
///
/// Example: [`ElicitationAsk`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RequestedInput<'a> {
    /// A form to fill in.
    Form(&'a ElicitationSchema),
    /// A page to visit. Show the whole address and open it only with the user's consent.
    // ELIC-28, ELIC-29
    Url {
        /// The address.
        url: &'a str,
        /// Comes back in [`Event::ElicitationComplete`](super::Event::ElicitationComplete).
        id: &'a ElicitationId,
    },
}

/// A form that does not fit its schema. The request is still open.
///
/// Example: [`ElicitationAsk`].
// ELIC-11
#[derive(Debug)]
#[non_exhaustive]
pub struct InvalidForm {
    /// The request, to be answered again.
    pub ask: ElicitationAsk,
    /// The problems.
    pub problems: Vec<FormProblem>,
}

/// A problem with one property of a form.
///
/// Example: [`ElicitationAsk`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormProblem {
    /// The property.
    pub property: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for FormProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.property, self.reason)
    }
}

impl fmt::Display for InvalidForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the form does not fit its schema: ")?;
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidForm {}

impl ElicitationAsk {
    pub(crate) fn new(slot: Arc<PendingAnswer>, request: Box<CreateElicitationRequest>) -> Self {
        ElicitationAsk { slot, request }
    }

    /// The text for the user.
    // ELIC-09
    pub fn message(&self) -> &str {
        &self.request.message
    }

    /// The requested input; never `None` for requests that this crate delivers.
    pub fn requested(&self) -> Option<RequestedInput<'_>> {
        match &self.request.mode {
            ElicitationMode::Form(form) => Some(RequestedInput::Form(&form.requested_schema)),
            ElicitationMode::Url(url) => Some(RequestedInput::Url { url: &url.url, id: &url.elicitation_id }),
            _ => None,
        }
    }

    /// The tool call that needs the input, if the agent named it.
    pub fn tool_call_id(&self) -> Option<&ToolCallId> {
        match self.request.mode.scope() {
            ElicitationScope::Session(scope) => scope.tool_call_id.as_ref(),
            _ => None,
        }
    }

    /// The request, unchanged.
    pub fn request(&self) -> &CreateElicitationRequest {
        &self.request
    }

    /// The problems of a filled-in form. Patterns, which are ECMAScript, are left to the agent.
    // ELIC-12, ELIC-11, ELIC-19
    pub fn problems(&self, content: &Fields<ElicitationContentValue>) -> Vec<FormProblem> {
        match self.requested() {
            Some(RequestedInput::Form(schema)) => form::problems(schema, content),
            _ => Vec::new(),
        }
    }

    /// Answers a form.
    ///
    /// # Errors
    /// When the content does not fit the form; the error holds the request.
    pub fn accept(self, content: impl Into<Fields<ElicitationContentValue>>) -> Result<(), Box<InvalidForm>> {
        let content = content.into();
        let problems = self.problems(&content);
        if !problems.is_empty() {
            return Err(Box::new(InvalidForm { ask: self, problems }));
        }
        self.slot.answer(|responder| responder.ok(&CreateElicitationResponse::accept(content)));
        Ok(())
    }

    /// Accepts to visit the page, or an empty form.
    ///
    /// # Errors
    /// When the form has required properties; the error holds the request.
    // ELIC-17
    pub fn agree(self) -> Result<(), Box<InvalidForm>> {
        if matches!(self.requested(), Some(RequestedInput::Form(_))) {
            return self.accept(Fields::default());
        }
        let accept = ElicitationAcceptAction::new();
        self.slot.answer(|responder| responder.ok(&CreateElicitationResponse::new(accept)));
        Ok(())
    }

    /// Declines.
    pub fn decline(self) {
        self.slot
            .answer(|responder| responder.ok(&CreateElicitationResponse::new(ElicitationAction::Decline)));
    }

    /// Cancels without a decision.
    pub fn cancel(self) {}

    /// Whether the request is unanswered.
    pub fn is_open(&self) -> bool {
        self.slot.is_open()
    }

    /// Waits until the request needs no answer, because the turn or the request was cancelled.
    pub async fn withdrawn(&self) {
        self.slot.done().await;
    }
}

impl Drop for ElicitationAsk {
    fn drop(&mut self) {
        self.slot.cancel();
    }
}

impl fmt::Debug for ElicitationAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ElicitationAsk").field(&self.request).finish()
    }
}
