//! The trait that agents implement, and how a session is opened.

use std::future::{Future, ready};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use attache_wire::Meta;
use attache_wire::v1::{
    AvailableCommand, McpServer, SessionConfigId, SessionConfigOption, SessionId, SessionModeId,
    SessionModeState, StopReason,
};
#[cfg(feature = "drafts")]
use attache_wire::v1::{ModelId, SessionModelState};

use super::{ClientHandle, SessionHandle, Turn};
use crate::{Prompt, Result};

/// A conversation of an agent. The SDK owns ids, cancel tokens, order and responses.
///
/// Example:
/// [`examples/echo_agent.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/echo_agent.rs).
pub trait AgentSession: Send + Sync + 'static {
    /// Answers one prompt. Messages sent through `turn` reach the client before the response;
    /// `turn` cannot outlive this call.
    ///
    /// When the user cancels, everything that waits inside `turn` ends with
    /// [`Error::Cancelled`](crate::Error), so `?` is all that most agents need. The client then
    /// gets `cancelled`, whatever this returns.
    fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> impl Future<Output = Result<StopReason>> + Send;

    /// Handles a change of the mode by the user, to one of [`OpenedSession::modes`]. An error keeps
    /// the old mode. Not called for [`SessionHandle::set_mode`].
    fn mode_changed(&self, mode: &SessionModeId) -> impl Future<Output = Result<()>> + Send {
        let _ = mode;
        ready(Ok(()))
    }

    /// Handles a change of an option by the user, one of [`OpenedSession::options`]. An error keeps
    /// the old value. Not called for [`SessionHandle::set_option`].
    fn option_changed(
        &self,
        id: &SessionConfigId,
        value: &OptionValue,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (id, value);
        ready(Ok(()))
    }

    /// Handles a change of the model by the user, to one of [`OpenedSession::models`]. An error
    /// keeps the old model.
    #[cfg(feature = "drafts")]
    fn model_changed(&self, model: &ModelId) -> impl Future<Output = Result<()>> + Send {
        let _ = model;
        ready(Ok(()))
    }

    /// Cleans up after the last turn of the session.
    fn closed(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// Sessions can be shared: an agent that keeps a table of its sessions returns a clone of the
/// `Arc`.
impl<S: AgentSession> AgentSession for Arc<S> {
    fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> impl Future<Output = Result<StopReason>> + Send {
        S::prompt(self, turn, prompt)
    }
    fn mode_changed(&self, mode: &SessionModeId) -> impl Future<Output = Result<()>> + Send {
        S::mode_changed(self, mode)
    }
    fn option_changed(
        &self,
        id: &SessionConfigId,
        value: &OptionValue,
    ) -> impl Future<Output = Result<()>> + Send {
        S::option_changed(self, id, value)
    }
    #[cfg(feature = "drafts")]
    fn model_changed(&self, model: &ModelId) -> impl Future<Output = Result<()>> + Send {
        S::model_changed(self, model)
    }
    fn closed(&self) -> impl Future<Output = ()> + Send {
        S::closed(self)
    }
}

/// The value of a config option.
///
/// Example: [`OpenedSession`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionValue {
    /// One of a select option's values.
    Choice(String),
    /// A boolean option's value.
    Flag(bool),
}

/// A request to open a session: new, loaded, resumed or forked.
///
/// Example: [`OpenedSession`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenRequest {
    /// The id of the session.
    pub id: SessionId,
    /// The working directory, absolute.
    // ROOT-02
    pub cwd: PathBuf,
    /// Additional roots; empty unless
    /// [`Agent::additional_directories`](super::Agent::additional_directories) was called.
    pub additional_directories: Vec<PathBuf>,
    /// The MCP servers to connect to.
    // MCP-05
    pub mcp_servers: Vec<McpServer>,
    /// The system prompt; `None` unless [`Agent::system_prompts`](super::Agent::system_prompts) was
    /// called.
    #[cfg(feature = "unstable")]
    pub system_prompt: Option<attache_wire::v1::SystemPrompt>,
    /// `_meta` of the request.
    pub meta: Option<Meta>,
    /// The client.
    pub client: ClientHandle,
    /// Sends updates outside of turns. Updates sent before the session is open follow the response,
    /// except for a replay.
    pub session: SessionHandle,
}

/// A session with its modes, options and commands. Handlers that have none return their
/// [`AgentSession`] itself.
///
/// ```
/// use attache::agent::{AgentSession, OpenRequest, OpenedSession, OptionValue, SessionHandle, Turn};
/// use attache::model::{AvailableCommand, SessionConfigId, SessionConfigOption, SessionMode, SessionModeState};
/// use attache::{Prompt, Result, StopReason};
///
/// struct Coder {
///     session: SessionHandle,
/// }
///
/// impl AgentSession for Coder {
///     async fn prompt(&self, _: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
///         self.session.set_title(Some(prompt.text().into())).await?;
///         Ok(StopReason::EndTurn)
///     }
///
///     async fn option_changed(&self, id: &SessionConfigId, value: &OptionValue) -> Result<()> {
///         println!("{id} is {value:?} now");
///         Ok(())
///     }
/// }
///
/// /// A handler for `Agent::new` and `Agent::load`.
/// async fn open(request: OpenRequest) -> Result<OpenedSession<Coder>> {
///     let modes = vec![SessionMode::new("ask", "Ask"), SessionMode::new("code", "Code")];
///     Ok(OpenedSession::new(Coder { session: request.session })
///         .modes(SessionModeState::new("ask", modes))
///         .options(vec![SessionConfigOption::boolean("fast", "Fast", false)])
///         .commands(vec![AvailableCommand::new("test", "Runs the tests")]))
/// }
/// ```
#[derive(Debug)]
pub struct OpenedSession<S> {
    pub(super) session: S,
    pub(super) id: Option<SessionId>,
    pub(super) settings: Settings,
    pub(super) commands: Option<Vec<AvailableCommand>>,
}

/// Modes, models and options of a session.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) modes: Option<SessionModeState>,
    #[cfg(feature = "drafts")]
    pub(super) models: Option<SessionModelState>,
    pub(super) options: Option<Vec<SessionConfigOption>>,
}

impl<S: AgentSession> OpenedSession<S> {
    /// Wraps a session that has no settings.
    pub fn new(session: S) -> Self {
        OpenedSession { session, id: None, settings: Settings::default(), commands: None }
    }

    /// Sets the session id, which must be unique. Ignored for load and resume, where the client
    /// knows the id.
    // SESS-03
    pub fn id(mut self, id: impl Into<SessionId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the modes that the user can choose.
    // MODE-01
    pub fn modes(mut self, modes: SessionModeState) -> Self {
        self.settings.modes = Some(modes);
        self
    }

    /// Sets the config options. For a session without [`modes`](Self::modes), an option of category
    /// `mode` is shown as modes to clients of version 1, and a change of the mode is one of the
    /// option.
    // CONF-01
    pub fn options(mut self, options: Vec<SessionConfigOption>) -> Self {
        self.settings.options = Some(options);
        self
    }

    /// Sets the slash commands, which are sent right after the response.
    // CMD-01
    pub fn commands(mut self, commands: Vec<AvailableCommand>) -> Self {
        self.commands = Some(commands);
        self
    }
}

/// Conversion of the return value of a handler that opens a session.
///
/// Example: [`OpenedSession`].
pub trait IntoOpenedSession: Send {
    /// The session's type.
    type Session: AgentSession;
    /// Converts the value.
    fn into_opened(self) -> OpenedSession<Self::Session>;
}

impl<S: AgentSession> IntoOpenedSession for S {
    type Session = S;
    fn into_opened(self) -> OpenedSession<S> {
        OpenedSession::new(self)
    }
}

impl<S: AgentSession> IntoOpenedSession for OpenedSession<S> {
    type Session = S;
    fn into_opened(self) -> OpenedSession<S> {
        self
    }
}

pub(super) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`AgentSession`] as an object, so that the SDK is compiled once.
pub(super) trait DynSession: Send + Sync {
    fn prompt<'a>(&'a self, turn: Turn<'a>, prompt: Prompt) -> BoxFuture<'a, Result<StopReason>>;
    fn mode_changed<'a>(&'a self, mode: &'a SessionModeId) -> BoxFuture<'a, Result<()>>;
    fn option_changed<'a>(
        &'a self,
        id: &'a SessionConfigId,
        value: &'a OptionValue,
    ) -> BoxFuture<'a, Result<()>>;
    #[cfg(feature = "drafts")]
    fn model_changed<'a>(&'a self, model: &'a ModelId) -> BoxFuture<'a, Result<()>>;
    fn closed(&self) -> BoxFuture<'_, ()>;
}

impl<S: AgentSession> DynSession for S {
    fn prompt<'a>(&'a self, turn: Turn<'a>, prompt: Prompt) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(AgentSession::prompt(self, turn, prompt))
    }
    fn mode_changed<'a>(&'a self, mode: &'a SessionModeId) -> BoxFuture<'a, Result<()>> {
        Box::pin(AgentSession::mode_changed(self, mode))
    }
    fn option_changed<'a>(
        &'a self,
        id: &'a SessionConfigId,
        value: &'a OptionValue,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(AgentSession::option_changed(self, id, value))
    }
    #[cfg(feature = "drafts")]
    fn model_changed<'a>(&'a self, model: &'a ModelId) -> BoxFuture<'a, Result<()>> {
        Box::pin(AgentSession::model_changed(self, model))
    }
    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(AgentSession::closed(self))
    }
}

/// An [`OpenedSession`] as an object.
pub(super) struct ErasedSession {
    pub(super) session: Box<dyn DynSession>,
    pub(super) id: Option<SessionId>,
    /// `None` if there are none.
    pub(super) settings: Option<Box<Settings>>,
    pub(super) commands: Option<Vec<AvailableCommand>>,
}

impl<S: AgentSession> From<OpenedSession<S>> for ErasedSession {
    fn from(open: OpenedSession<S>) -> Self {
        let OpenedSession { session, id, settings, commands } = open;
        let settings = (settings != Settings::default()).then(|| Box::new(settings));
        ErasedSession { session: Box::new(session), id, settings, commands }
    }
}
