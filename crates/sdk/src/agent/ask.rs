//! Questions to the user: permissions and elicitations.

use attache_wire::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationId, ElicitationSchema, ElicitationSessionScope, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ToolCallId,
};

use super::tool::Tool;
use super::turn::{DetachedTurn, Turn};
use super::v2;
use crate::{Error, Result};

/// The answer to a permission request.
///
/// Example: [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Choice {
    /// The user chose this option.
    Selected(PermissionOption),
    /// The client cancelled, failed, or chose an unknown option. Never an approval.
    // PERM-09
    Undecided,
}

impl Choice {
    /// The chosen option.
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

/// The usual permission options: allow and reject, once and always.
///
/// Example: [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
pub fn usual_options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("allow-always", "Always allow", PermissionOptionKind::AllowAlways),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        PermissionOption::new("reject-always", "Always reject", PermissionOptionKind::RejectAlways),
    ]
}

impl Turn<'_> {
    /// Asks the user whether a tool may run, and waits for the answer.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the turn is cancelled.
    // PERM-01, PERM-13
    pub async fn ask(&self, tool: &Tool, options: Vec<PermissionOption>) -> Result<Choice> {
        if options.is_empty() {
            return Err(Error::Invalid("a permission request needs options".to_owned()));
        }
        let request =
            RequestPermissionRequest::new(self.session_id().clone(), tool.for_permission(), options.clone());
        let question = self.inner().question();
        let asked = match self.client().is_v2() {
            true => {
                self.inner().request_as::<RequestPermissionRequest>(&v2::PermissionRequest(&request)).await
            }
            false => self.inner().request(&request).await,
        };
        drop(question);
        let outcome: RequestPermissionOutcome = match asked
            .map(|response: RequestPermissionResponse| response.outcome)
        {
            Ok(outcome) => outcome,
            // V2-46: a cancelled turn does not wait for the answer. CANCEL-22: a client that cancels may refuse the
            // question before it cancels the turn.
            Err(Error::Cancelled) if self.is_cancelled() => return Err(Error::Cancelled),
            // PERM-09, CANCEL-22: neither an error nor an invalid answer is an approval.
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

    /// Forms for the user, if the client supports them.
    // ELIC-01
    pub fn forms(&self) -> Option<Forms> {
        let elicitation = self.client().capabilities().elicitation.as_ref()?;
        elicitation.form.as_ref().map(|_| Forms(Origin::new(self)))
    }

    /// Links for the user to open, if the client supports them.
    // ELIC-01
    pub fn links(&self) -> Option<Links> {
        let elicitation = self.client().capabilities().elicitation.as_ref()?;
        elicitation.url.as_ref().map(|_| Links(Origin::new(self)))
    }
}

/// Asks the user to fill in forms. Use [`Links`] for secrets. Made by [`Turn::forms`].
///
/// ```
/// use attache::agent::Turn;
/// use attache::wire::v1::{ElicitationAction, ElicitationSchema, StringPropertySchema};
///
/// async fn ask_branch(turn: Turn<'_>) -> attache::Result<bool> {
///     let Some(forms) = turn.forms() else { return Ok(false) };
///     let schema = ElicitationSchema::new().field("branch", StringPropertySchema::new(), true);
///     let answer = forms.ask("Which branch?", schema).await?;
///     Ok(matches!(answer.action, ElicitationAction::Accept(_)))
/// }
/// ```
// ELIC-14
#[derive(Debug, Clone)]
pub struct Forms(Origin);

impl Forms {
    /// Names the tool call that needs the answer.
    pub fn about(mut self, tool: &Tool) -> Self {
        self.0.tool = Some(tool.id().clone());
        self
    }

    /// Asks and waits. The user may decline; check the values again.
    // ELIC-12, ELIC-20
    pub async fn ask(
        &self,
        message: impl Into<String>,
        schema: ElicitationSchema,
    ) -> Result<CreateElicitationResponse> {
        self.0.ask(CreateElicitationRequest::form(self.0.scope(), message, schema)).await
    }
}

/// Asks the user to open links. Made by [`Turn::links`].
///
/// ```
/// use attache::agent::Turn;
///
/// async fn ask_login(turn: Turn<'_>) -> attache::Result<()> {
///     if let Some(links) = turn.links() {
///         links.ask("Log in to the tracker", "login-1", "https://example.org/login").await?;
///         links.complete("login-1").await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Links(Origin);

impl Links {
    /// Names the tool call that needs it.
    pub fn about(mut self, tool: &Tool) -> Self {
        self.0.tool = Some(tool.id().clone());
        self
    }

    /// Asks and waits for consent, which is not completion yet. The id is unique among the open questions of the agent.
    // ELIC-17, ELIC-21
    pub async fn ask(
        &self,
        message: impl Into<String>,
        id: impl Into<ElicitationId>,
        url: impl Into<String>,
    ) -> Result<CreateElicitationResponse> {
        self.0.ask(CreateElicitationRequest::url(self.0.scope(), message, id.into(), url)).await
    }

    /// Notifies the client that the user has finished at the link. The turn may be over by then.
    // ELIC-23, ELIC-24
    pub async fn complete(&self, id: impl Into<ElicitationId>) -> Result<()> {
        self.0.turn.turn().client().notify(&CompleteElicitationNotification::new(id.into())).await
    }
}

/// The turn and the tool call that a question belongs to.
#[derive(Debug, Clone)]
struct Origin {
    turn: DetachedTurn,
    tool: Option<ToolCallId>,
}

impl Origin {
    fn new(turn: &Turn<'_>) -> Self {
        Origin { turn: turn.detach(), tool: None }
    }

    // ELIC-05: the session, and the tool call if there is one.
    fn scope(&self) -> ElicitationSessionScope {
        ElicitationSessionScope::new(self.turn.turn().session_id().clone()).tool_call_id(self.tool.clone())
    }

    async fn ask(&self, request: CreateElicitationRequest) -> Result<CreateElicitationResponse> {
        let turn = self.turn.turn();
        let _question = turn.inner().question();
        match turn.inner().request(&request).await {
            // ELIC-20: an invalid answer is no consent.
            Err(Error::Decode { .. }) => Ok(CreateElicitationResponse::new(ElicitationAction::Cancel)),
            other => other,
        }
    }
}
