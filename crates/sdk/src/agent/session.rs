//! The session: what an author implements, and what the SDK keeps about it.

use std::future::{Future, ready};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use attache_wire::Meta;
use attache_wire::v1::{
    AvailableCommand, McpServer, ModelId, SessionConfigId, SessionConfigOption, SessionId, SessionModeId,
    SessionModeState, SessionModelState, StopReason, SystemPrompt,
};

use super::{ClientHandle, SessionHandle, Turn};
use crate::{Prompt, Result};

/// A conversation. The SDK owns everything around it: ids, cancel tokens, order, answers.
pub trait AgentSession: Send + Sync + 'static {
    /// Answers one prompt. What is sent through `turn` reaches the client before the answer does; `turn` cannot
    /// outlive this call.
    ///
    /// When the user cancels, everything that waits inside `turn` ends with [`Error::Cancelled`](crate::Error), so `?`
    /// is all that most agents need. The client is told `cancelled` whatever this returns then.
    fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> impl Future<Output = Result<StopReason>> + Send;

    /// The user chose another mode, one of those given to [`OpenedSession::modes`]. An error keeps the old one.
    fn mode_changed(&self, mode: &SessionModeId) -> impl Future<Output = Result<()>> + Send {
        let _ = mode;
        ready(Ok(()))
    }

    /// The user set one of the options given to [`OpenedSession::options`]. An error keeps the old value.
    fn option_changed(
        &self,
        id: &SessionConfigId,
        value: &OptionValue,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (id, value);
        ready(Ok(()))
    }

    /// The user chose another model, one of those given to [`OpenedSession::models`]. An error keeps the old one.
    fn model_changed(&self, model: &ModelId) -> impl Future<Output = Result<()>> + Send {
        let _ = model;
        ready(Ok(()))
    }

    /// The session is over: its last turn has ended and no other will start.
    fn closed(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// Sessions can be shared: an agent that keeps a table of its sessions returns a clone of the `Arc`.
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
    fn model_changed(&self, model: &ModelId) -> impl Future<Output = Result<()>> + Send {
        S::model_changed(self, model)
    }
    fn closed(&self) -> impl Future<Output = ()> + Send {
        S::closed(self)
    }
}

/// The value of a config option.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionValue {
    /// One of a select option's values.
    Choice(String),
    /// A boolean option's value.
    Flag(bool),
}

/// What a client asks for when it opens a session, by whatever method.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenRequest {
    /// The id the session will have, or has (load, resume).
    pub id: SessionId,
    /// ROOT-02: the session's directory, absolute.
    pub cwd: PathBuf,
    /// Further roots; empty unless [`Agent::additional_directories`](super::Agent::additional_directories) was called.
    pub additional_directories: Vec<PathBuf>,
    /// MCP-05: the servers to connect to.
    pub mcp_servers: Vec<McpServer>,
    /// What the client wants in the system prompt; `None` unless offered.
    pub system_prompt: Option<SystemPrompt>,
    /// What extensions attached.
    pub meta: Option<Meta>,
    /// The client.
    pub client: ClientHandle,
    /// For updates outside of turns. What is sent before the session is open reaches the client right after.
    pub session: SessionHandle,
}

/// A session with what it offers. A plain [`AgentSession`] turns into one by itself.
#[derive(Debug)]
pub struct OpenedSession<S> {
    pub(super) session: S,
    pub(super) id: Option<SessionId>,
    pub(super) settings: Settings,
    pub(super) commands: Option<Vec<AvailableCommand>>,
}

/// What a session offers besides prompts.
#[derive(Debug, Default, Clone)]
pub(super) struct Settings {
    pub(super) modes: Option<SessionModeState>,
    pub(super) models: Option<SessionModelState>,
    pub(super) options: Option<Vec<SessionConfigOption>>,
}

impl Settings {
    fn is_empty(&self) -> bool {
        self.modes.is_none() && self.models.is_none() && self.options.is_none()
    }
}

impl<S: AgentSession> OpenedSession<S> {
    /// A session that offers prompts only.
    pub fn new(session: S) -> Self {
        OpenedSession { session, id: None, settings: Settings::default(), commands: None }
    }

    /// Gives the session an id of the agent's own making; it must be unique (SESS-03). Load and resume keep
    /// the id that the client named.
    pub fn id(mut self, id: impl Into<SessionId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Offers modes; the user may switch them from now on (MODE-01).
    pub fn modes(mut self, modes: SessionModeState) -> Self {
        self.settings.modes = Some(modes);
        self
    }

    /// Offers models in the way of older clients (MODEL-01); new ones use options of category `model`.
    pub fn models(mut self, models: SessionModelState) -> Self {
        self.settings.models = Some(models);
        self
    }

    /// Offers config options (CONF-01).
    pub fn options(mut self, options: Vec<SessionConfigOption>) -> Self {
        self.settings.options = Some(options);
        self
    }

    /// Offers slash commands; they are sent right after the session is open (CMD-01).
    pub fn commands(mut self, commands: Vec<AvailableCommand>) -> Self {
        self.commands = Some(commands);
        self
    }
}

/// Whatever an author returns for a new session.
pub trait IntoOpenedSession: Send {
    /// The session's type.
    type Session: AgentSession;
    /// The session with what it offers.
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

/// [`AgentSession`] without its type, so that everything behind it is compiled once.
pub(super) trait DynSession: Send + Sync {
    fn prompt<'a>(&'a self, turn: Turn<'a>, prompt: Prompt) -> BoxFuture<'a, Result<StopReason>>;
    fn mode_changed<'a>(&'a self, mode: &'a SessionModeId) -> BoxFuture<'a, Result<()>>;
    fn option_changed<'a>(
        &'a self,
        id: &'a SessionConfigId,
        value: &'a OptionValue,
    ) -> BoxFuture<'a, Result<()>>;
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
    fn model_changed<'a>(&'a self, model: &'a ModelId) -> BoxFuture<'a, Result<()>> {
        Box::pin(AgentSession::model_changed(self, model))
    }
    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(AgentSession::closed(self))
    }
}

/// An opened session on its way into the table.
pub(super) struct ErasedSession {
    pub(super) session: Box<dyn DynSession>,
    pub(super) id: Option<SessionId>,
    /// `None` if it offers nothing.
    pub(super) settings: Option<Box<Settings>>,
    pub(super) commands: Option<Vec<AvailableCommand>>,
}

impl<S: AgentSession> From<OpenedSession<S>> for ErasedSession {
    fn from(open: OpenedSession<S>) -> Self {
        let OpenedSession { session, id, settings, commands } = open;
        let settings = (!settings.is_empty()).then(|| Box::new(settings));
        ErasedSession { session: Box::new(session), id, settings, commands }
    }
}
