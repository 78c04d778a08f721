//! Questions to the user: permissions and elicitations.

use attache_wire::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationId, ElicitationSchema, ElicitationSessionScope, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, ToolCallId,
};

use super::tool::Tool;
use super::turn::{DetachedTurn, Turn};
use crate::{Error, Result};

/// What the user decided about a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Choice {
    /// One of the options that were offered.
    Selected(PermissionOption),
    /// No decision: the client gave up, failed, or answered something that was not offered. PERM-09: never an approval.
    Undecided,
}

impl Choice {
    /// The option that was chosen.
    pub fn option(&self) -> Option<&PermissionOption> {
        match self {
            Choice::Selected(option) => Some(option),
            Choice::Undecided => None,
        }
    }

    /// Whether the tool may run.
    pub fn is_allowed(&self) -> bool {
        matches!(
            self,
            Choice::Selected(option)
                if matches!(option.kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways)
        )
    }
}

/// The four usual options: allow and reject, once and always.
pub fn usual_options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("allow-always", "Always allow", PermissionOptionKind::AllowAlways),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        PermissionOption::new("reject-always", "Always reject", PermissionOptionKind::RejectAlways),
    ]
}

impl Turn<'_> {
    /// Asks the user whether a tool may run, and waits for the answer (PERM-01, PERM-13). Ends with
    /// [`Error::Cancelled`] when the turn is cancelled; the turn never waits for the answer then.
    pub async fn ask(&self, tool: &Tool, options: Vec<PermissionOption>) -> Result<Choice> {
        if options.is_empty() {
            return Err(Error::Invalid("a permission request needs options".to_owned()));
        }
        let request =
            RequestPermissionRequest::new(self.session_id().clone(), tool.for_permission(), options.clone());
        let outcome = match self.inner().request(&request).await {
            Ok(response) => response.outcome,
            // CANCEL-22: a client that cancels may refuse the question before it tells that the turn is cancelled.
            Err(Error::Cancelled) if self.is_cancelled() => return Err(Error::Cancelled),
            // PERM-09, CANCEL-22: an error is no approval, and neither is an answer that cannot be read.
            Err(Error::Refused(_) | Error::Decode { .. } | Error::Cancelled) => return Ok(Choice::Undecided),
            Err(error) => return Err(error),
        };
        Ok(match outcome {
            RequestPermissionOutcome::Selected(selected) => {
                let offered = options.into_iter().find(|option| option.option_id == selected.option_id);
                offered.map_or(Choice::Undecided, Choice::Selected)
            }
            _ => Choice::Undecided,
        })
    }

    /// Forms, if the client can show them (ELIC-01: in just this mode).
    pub fn forms(&self) -> Option<Forms> {
        let elicitation = self.client().capabilities().elicitation.as_ref()?;
        elicitation.form.as_ref().map(|_| Forms { turn: self.detach(), tool: None })
    }

    /// Links that the user is asked to open, if the client can show them (ELIC-01: in just this mode).
    pub fn links(&self) -> Option<Links> {
        let elicitation = self.client().capabilities().elicitation.as_ref()?;
        elicitation.url.as_ref().map(|_| Links { turn: self.detach(), tool: None })
    }
}

/// Asks the user to fill in forms. ELIC-14: never for secrets; use [`Links`] for those.
#[derive(Debug, Clone)]
pub struct Forms {
    turn: DetachedTurn,
    tool: Option<ToolCallId>,
}

impl Forms {
    /// Says which tool call wants to know.
    pub fn about(mut self, tool: &Tool) -> Self {
        self.tool = Some(tool.id().clone());
        self
    }

    /// Asks and waits. ELIC-20: the answer may be a refusal; ELIC-12: check the values again.
    pub async fn ask(
        &self,
        message: impl Into<String>,
        schema: ElicitationSchema,
    ) -> Result<CreateElicitationResponse> {
        let turn = self.turn.turn();
        ask(turn, CreateElicitationRequest::form(scope(turn, &self.tool), message, schema)).await
    }
}

/// Asks the user to open a link and finish something there.
#[derive(Debug, Clone)]
pub struct Links {
    turn: DetachedTurn,
    tool: Option<ToolCallId>,
}

impl Links {
    /// Says which tool call wants it.
    pub fn about(mut self, tool: &Tool) -> Self {
        self.tool = Some(tool.id().clone());
        self
    }

    /// Asks and waits for the user's consent. ELIC-17: consent to open is not yet completion. ELIC-21: the id is the agent's,
    /// and no other open question has it.
    pub async fn ask(
        &self,
        message: impl Into<String>,
        id: impl Into<ElicitationId>,
        url: impl Into<String>,
    ) -> Result<CreateElicitationResponse> {
        let turn = self.turn.turn();
        ask(turn, CreateElicitationRequest::url(scope(turn, &self.tool), message, id.into(), url)).await
    }

    /// Tells the client that what happens behind the link is done (ELIC-23, ELIC-24). The turn may be over by then.
    pub async fn complete(&self, id: impl Into<ElicitationId>) -> Result<()> {
        self.turn.turn().client().notify(&CompleteElicitationNotification::new(id.into())).await
    }
}

/// ELIC-05: the session, and the tool call if there is one.
fn scope(turn: Turn<'_>, tool: &Option<ToolCallId>) -> ElicitationSessionScope {
    ElicitationSessionScope::new(turn.session_id().clone()).tool_call_id(tool.clone())
}

async fn ask(turn: Turn<'_>, request: CreateElicitationRequest) -> Result<CreateElicitationResponse> {
    match turn.inner().request(&request).await {
        // ELIC-20: an answer that cannot be read is no consent.
        Err(Error::Decode { .. }) => Ok(CreateElicitationResponse::new(ElicitationAction::Cancel)),
        other => other,
    }
}
