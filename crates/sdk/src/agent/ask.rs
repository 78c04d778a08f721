//! Questions to the user: permissions and elicitations.

use std::path::PathBuf;

use attache_wire::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationId, ElicitationSchema, ElicitationSessionScope, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ToolCallId,
    ToolCallUpdate, ToolKind,
};
use attache_wire::v2::ToolCallStatus as ToolStatus;
use serde::Serialize;

use super::content::ToolContent;
use super::tool::Tool;
use super::tool_state::ToolState;
use super::turn::{DetachedTurn, Turn};
use super::turn_state::TurnState;
use super::v2;
use crate::check::absolute;
use crate::{Error, Result};

/// The answer to a permission request.
///
/// Example:
/// [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
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
        self.option().is_some_and(|option| option.kind.allows())
    }
}

/// The usual permission options: allow and reject, once and always.
///
/// Example:
/// [`examples/tool_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/tool_agent.rs).
pub fn usual_options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("allow-always", "Always allow", PermissionOptionKind::AllowAlways),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        PermissionOption::new("reject-always", "Always reject", PermissionOptionKind::RejectAlways),
    ]
}

impl Turn<'_> {
    /// Asks the user whether a tool may run, and waits for the answer. The question is the title of
    /// the call; for another one use [`question`](Self::question).
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the turn is cancelled.
    // PERM-01, PERM-13
    pub async fn ask(&self, tool: &Tool, options: Vec<PermissionOption>) -> Result<Choice> {
        let title = Some(tool.shared.title()).filter(|title| !title.is_empty());
        let question = Question::new(*self, title.unwrap_or_else(|| "Permission".to_owned()));
        question.about(tool).options(options).ask().await
    }

    /// Describes a question about a permission; [`Question::ask`] asks it.
    pub fn question(&self, title: impl Into<String>) -> Question<'_> {
        Question::new(*self, title.into())
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

/// A question about a permission. Made by [`Turn::question`].
///
/// Version 1 only asks about tool calls: the title is the title of the call, and description and
/// command are content of it. A question without a tool call reports one of its own, which ends
/// with the answer.
///
/// ```
/// use attache::agent::Turn;
///
/// async fn ask(turn: Turn<'_>) -> attache::Result<bool> {
///     let question = turn.question("Run the tests?").description("They take a minute.");
///     Ok(question.command("make test", "/project").ask().await?.is_allowed())
/// }
/// ```
// PERM-01, V2-24
#[must_use = "nothing is asked before `ask`"]
pub struct Question<'a> {
    turn: Turn<'a>,
    title: String,
    description: Option<String>,
    tool: Option<&'a Tool>,
    command: Option<(String, PathBuf)>,
    options: Option<Vec<PermissionOption>>,
}

/// The operation that a question is about.
pub(super) enum Subject {
    None,
    Tool(ToolCallId, ToolState),
    Command { command: String, cwd: String, tool: Option<(ToolCallId, ToolState)> },
}

impl<'a> Question<'a> {
    fn new(turn: Turn<'a>, title: String) -> Self {
        Question { turn, title, description: None, tool: None, command: None, options: None }
    }

    /// Adds details.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Names the tool call that needs the permission.
    pub fn about(mut self, tool: &'a Tool) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Names the command that needs the permission, and its working directory, an absolute path.
    pub fn command(mut self, command: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        self.command = Some((command.into(), cwd.into()));
        self
    }

    /// Sets the options; [`usual_options`] by default.
    pub fn options(mut self, options: Vec<PermissionOption>) -> Self {
        self.options = Some(options);
        self
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the turn is cancelled; [`Error::Invalid`] without options or
    /// title, if two options have the same id, or if the directory is not absolute.
    // PERM-13
    pub async fn ask(self) -> Result<Choice> {
        let Question { turn, title, description, tool, command, options } = self;
        let options = options.unwrap_or_else(usual_options);
        if options.is_empty() || title.is_empty() {
            return Err(Error::Invalid("a permission request needs a title and options".to_owned()));
        }
        let same = |a: &PermissionOption, b: &PermissionOption| a.option_id == b.option_id;
        if (1..options.len()).any(|at| options[..at].iter().any(|option| same(option, &options[at]))) {
            return Err(Error::Invalid("two options of a permission request have the same id".to_owned()));
        }
        let tool = tool.map(|tool| (tool.id().clone(), tool.shared.snapshot()));
        let subject = match (command, tool) {
            (Some((command, cwd)), tool) => {
                Subject::Command { command, cwd: absolute(&cwd)?.to_owned(), tool }
            }
            (None, Some((id, state))) => Subject::Tool(id, state),
            (None, None) => Subject::None,
        };
        if turn.client().is_v2() {
            let request = v2::PermissionRequest {
                session: turn.session_id(),
                title: &title,
                description: description.as_deref(),
                subject: &subject,
                options: &options,
            };
            return chosen(turn, turn.inner().question_call(&request).await, options);
        }
        ask_v1(turn, title, description, subject, options).await
    }
}

/// Asks about a tool call, which is made up if there is none.
async fn ask_v1(
    turn: Turn<'_>,
    title: String,
    description: Option<String>,
    subject: Subject,
    options: Vec<PermissionOption>,
) -> Result<Choice> {
    let mut details = Vec::new();
    let known = match subject {
        Subject::None => None,
        Subject::Tool(id, state) => Some((id, state)),
        Subject::Command { command, cwd, tool } => {
            details.push(ToolContent::from(format!("```sh\n{command}\n```\nin {cwd}")));
            tool
        }
    };
    details.extend(description.map(ToolContent::from));
    let (id, state, made_up) = match known {
        Some((id, mut state)) => {
            state.title = title;
            if !details.is_empty() {
                state.content.get_or_insert_default().extend(details);
            }
            (id, state, None)
        }
        None => {
            let kind = if details.is_empty() { ToolKind::Other } else { ToolKind::Execute };
            let tool = turn.tool(title).kind(kind);
            let tool = details.into_iter().fold(tool, |tool, content| tool.content(content)).start().await?;
            (tool.id().clone(), tool.shared.snapshot(), Some(tool))
        }
    };
    let call = ToolCallUpdate::from(state.into_v1(id));
    let request = RequestPermissionRequest::new(turn.session_id().clone(), call, options.clone());
    let choice = chosen(turn, turn.inner().question_call(&request).await, options);
    match made_up {
        Some(tool) if choice.as_ref().is_ok_and(Choice::is_allowed) => tool.complete([]).await?,
        Some(tool) if choice.is_ok() => tool.update(tool.change().status(ToolStatus::Failed)).await?,
        _ => {} // the end of a cancelled turn ends the call
    }
    choice
}

fn chosen(
    turn: Turn<'_>,
    asked: Result<RequestPermissionResponse>,
    options: Vec<PermissionOption>,
) -> Result<Choice> {
    let outcome = match asked.map(|response| response.outcome) {
        Ok(outcome) => outcome,
        // V2-46: a cancelled turn does not wait for the answer. CANCEL-22: a client that cancels
        // may refuse the question before it cancels the turn.
        Err(Error::Cancelled) if turn.is_cancelled() => return Err(Error::Cancelled),
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

impl TurnState {
    /// Sends a permission request in the form of either version and reports that the turn waits for
    /// the user.
    async fn question_call(&self, request: &impl Serialize) -> Result<RequestPermissionResponse> {
        let _question = self.question();
        self.request_as::<RequestPermissionRequest>(request).await
    }
}

/// Asks the user to fill in forms. Use [`Links`] for secrets. Made by [`Turn::forms`].
///
/// ```
/// use attache::agent::Turn;
/// use attache::model::{ElicitationAction, ElicitationSchema, StringPropertySchema};
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
    pub fn about(self, tool: &Tool) -> Self {
        Forms(self.0.about(tool))
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
    pub fn about(self, tool: &Tool) -> Self {
        Links(self.0.about(tool))
    }

    /// Asks and waits for consent, which is not completion yet. The id is unique among the open
    /// questions of the agent.
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

    fn about(self, tool: &Tool) -> Self {
        Origin { tool: Some(tool.id().clone()), ..self }
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
