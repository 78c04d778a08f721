//! Questions for input, and the check of forms before they are sent.

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

pub(crate) fn cancel_elicitation(responder: Responder) {
    responder.ok(&CreateElicitationResponse::new(ElicitationAction::Cancel));
}

/// The agent asks the user for input: a form to fill in, or a web page to visit.
///
/// ELIC-07, ELIC-08, ELIC-13: whoever shows it names the agent, fills in the defaults, lets the user look over the
/// answers, and offers to decline and to cancel.
///
/// Answer with [`accept`](Self::accept), [`agree`](Self::agree), [`decline`](Self::decline) or [`cancel`](Self::cancel). Dropping the question,
/// or cancelling its turn, answers `cancel`.
pub struct ElicitationAsk {
    slot: Arc<PendingAnswer>,
    request: Box<CreateElicitationRequest>,
}

/// What the agent wants.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RequestedInput<'a> {
    /// A form to be filled in.
    Form(&'a ElicitationSchema),
    /// A page to be visited. ELIC-28, ELIC-29: the address is shown in full and opened only with the user's consent, never
    /// in advance.
    Url {
        /// The address.
        url: &'a str,
        /// Comes back in [`Event::ElicitationComplete`](super::Event::ElicitationComplete).
        id: &'a ElicitationId,
    },
}

/// ELIC-11: a filled-in form that does not fit. The question is still open.
#[derive(Debug)]
#[non_exhaustive]
pub struct InvalidForm {
    /// The question, to be answered again.
    pub ask: ElicitationAsk,
    /// What is wrong, by property.
    pub problems: Vec<FormProblem>,
}

/// What is wrong with one property of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormProblem {
    /// The property.
    pub property: String,
    /// What is wrong with its value.
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

    /// What to tell the user (ELIC-09).
    pub fn message(&self) -> &str {
        &self.request.message
    }

    /// What the agent wants; `None` for a kind that this version does not know, which never arrives here.
    pub fn requested(&self) -> Option<RequestedInput<'_>> {
        match &self.request.mode {
            ElicitationMode::Form(form) => Some(RequestedInput::Form(&form.requested_schema)),
            ElicitationMode::Url(url) => Some(RequestedInput::Url { url: &url.url, id: &url.elicitation_id }),
            _ => None,
        }
    }

    /// The tool call that needs the input, if the agent said so.
    pub fn tool_call_id(&self) -> Option<&ToolCallId> {
        match self.request.mode.scope() {
            ElicitationScope::Session(scope) => scope.tool_call_id.as_ref(),
            _ => None,
        }
    }

    /// The request as it came.
    pub fn request(&self) -> &CreateElicitationRequest {
        &self.request
    }

    /// ELIC-11, ELIC-19: what of a filled-in form does not fit; nothing if all of it does.
    ///
    /// A `pattern` is not looked at: patterns are regular expressions of another language, and the agent checks
    /// again anyway (ELIC-12).
    pub fn problems(&self, content: &Fields<ElicitationContentValue>) -> Vec<FormProblem> {
        match self.requested() {
            Some(RequestedInput::Form(schema)) => form::problems(schema, content),
            _ => Vec::new(),
        }
    }

    /// Answers a form.
    ///
    /// # Errors
    /// When the content does not fit the form; the error holds the question, so that it can be answered again.
    pub fn accept(self, content: impl Into<Fields<ElicitationContentValue>>) -> Result<(), Box<InvalidForm>> {
        let content = content.into();
        let problems = self.problems(&content);
        if !problems.is_empty() {
            return Err(Box::new(InvalidForm { ask: self, problems }));
        }
        self.slot.answer(|responder| responder.ok(&CreateElicitationResponse::accept(content)));
        Ok(())
    }

    /// The user agrees: to visit the page (ELIC-17: that is all it says), or to a form as empty as it is.
    ///
    /// # Errors
    /// When the form has required properties; the error holds the question.
    pub fn agree(self) -> Result<(), Box<InvalidForm>> {
        if matches!(self.requested(), Some(RequestedInput::Form(_))) {
            return self.accept(Fields::default());
        }
        let accept = ElicitationAcceptAction::new();
        self.slot.answer(|responder| responder.ok(&CreateElicitationResponse::new(accept)));
        Ok(())
    }

    /// The user does not want to.
    pub fn decline(self) {
        self.slot
            .answer(|responder| responder.ok(&CreateElicitationResponse::new(ElicitationAction::Decline)));
    }

    /// The user did not decide.
    pub fn cancel(self) {}

    /// Whether the question still waits for an answer.
    pub fn is_open(&self) -> bool {
        self.slot.is_open()
    }

    /// Waits until the question needs no answer any more, because the turn was cancelled or the agent took it back.
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
