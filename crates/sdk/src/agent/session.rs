//! The session: what an author implements, and what the SDK keeps about it.

use std::future::{Future, ready};
use std::path::PathBuf;
use std::pin::Pin;

use attache_wire::Meta;
use attache_wire::v1::{
    AvailableCommand, McpServer, ModelId, SessionConfigId, SessionConfigOption, SessionId, SessionModeId,
    SessionModeState, SessionModelState, StopReason, SystemPrompt,
};

use super::{Client, SessionHandle, Turn};
use crate::{Prompt, Result};

/// A conversation. The SDK owns everything around it: ids, cancel tokens, order, answers.
pub trait Session: Send + Sync + 'static {
    /// Answers one prompt. What is sent through `turn` reaches the client before the answer does; `turn` cannot
    /// outlive this call.
    ///
    /// When the user cancels, everything that waits inside `turn` ends with [`Error::Cancelled`](crate::Error), so `?`
    /// is all that most agents need. The client is told `cancelled` whatever this returns then.
    fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> impl Future<Output = Result<StopReason>> + Send;

    /// The user chose another mode, one of those given to [`Open::modes`]. An error keeps the old one.
    fn mode_changed(&self, mode: &SessionModeId) -> impl Future<Output = Result<()>> + Send {
        let _ = mode;
        ready(Ok(()))
    }

    /// The user set one of the options given to [`Open::options`]. An error keeps the old value.
    fn option_changed(
        &self,
        id: &SessionConfigId,
        value: &OptionValue,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (id, value);
        ready(Ok(()))
    }

    /// The user chose another model, one of those given to [`Open::models`]. An error keeps the old one.
    fn model_changed(&self, model: &ModelId) -> impl Future<Output = Result<()>> + Send {
        let _ = model;
        ready(Ok(()))
    }

    /// The session is over: its last turn has ended and no other will start.
    fn closed(&self) -> impl Future<Output = ()> + Send {
        ready(())
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
pub struct NewSession {
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
    pub client: Client,
    /// For updates outside of turns. What is sent before the session is open reaches the client right after.
    pub session: SessionHandle,
}

/// A session with what it offers. A plain [`Session`] turns into one by itself.
#[derive(Debug)]
pub struct Open<S> {
    pub(super) session: S,
    pub(super) id: Option<SessionId>,
    pub(super) offers: Offers,
    pub(super) commands: Option<Vec<AvailableCommand>>,
}

/// What a session offers besides prompts.
#[derive(Debug, Default, Clone)]
pub(super) struct Offers {
    pub(super) modes: Option<SessionModeState>,
    pub(super) models: Option<SessionModelState>,
    pub(super) options: Option<Vec<SessionConfigOption>>,
}

impl Offers {
    fn is_empty(&self) -> bool {
        self.modes.is_none() && self.models.is_none() && self.options.is_none()
    }
}

impl<S: Session> Open<S> {
    /// A session that offers prompts only.
    pub fn new(session: S) -> Self {
        Open { session, id: None, offers: Offers::default(), commands: None }
    }

    /// Gives the session an id of the agent's own making; it must be unique (SESS-03). Load and resume keep
    /// the id that the client named.
    pub fn id(mut self, id: impl Into<SessionId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Offers modes; the user may switch them from now on (MODE-01).
    pub fn modes(mut self, modes: SessionModeState) -> Self {
        self.offers.modes = Some(modes);
        self
    }

    /// Offers models in the way of older clients (MODEL-01); new ones use options of category `model`.
    pub fn models(mut self, models: SessionModelState) -> Self {
        self.offers.models = Some(models);
        self
    }

    /// Offers config options (CONF-01).
    pub fn options(mut self, options: Vec<SessionConfigOption>) -> Self {
        self.offers.options = Some(options);
        self
    }

    /// Offers slash commands; they are sent right after the session is open (CMD-01).
    pub fn commands(mut self, commands: Vec<AvailableCommand>) -> Self {
        self.commands = Some(commands);
        self
    }
}

/// Whatever an author returns for a new session.
pub trait IntoOpen: Send {
    /// The session's type.
    type Session: Session;
    /// The session with what it offers.
    fn into_open(self) -> Open<Self::Session>;
}

impl<S: Session> IntoOpen for S {
    type Session = S;
    fn into_open(self) -> Open<S> {
        Open::new(self)
    }
}

impl<S: Session> IntoOpen for Open<S> {
    type Session = S;
    fn into_open(self) -> Open<S> {
        self
    }
}

pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`Session`] without its type, so that everything behind it is compiled once.
pub(super) trait AnySession: Send + Sync {
    fn prompt<'a>(&'a self, turn: Turn<'a>, prompt: Prompt) -> Boxed<'a, Result<StopReason>>;
    fn mode_changed<'a>(&'a self, mode: &'a SessionModeId) -> Boxed<'a, Result<()>>;
    fn option_changed<'a>(&'a self, id: &'a SessionConfigId, value: &'a OptionValue)
    -> Boxed<'a, Result<()>>;
    fn model_changed<'a>(&'a self, model: &'a ModelId) -> Boxed<'a, Result<()>>;
    fn closed(&self) -> Boxed<'_, ()>;
}

impl<S: Session> AnySession for S {
    fn prompt<'a>(&'a self, turn: Turn<'a>, prompt: Prompt) -> Boxed<'a, Result<StopReason>> {
        Box::pin(Session::prompt(self, turn, prompt))
    }
    fn mode_changed<'a>(&'a self, mode: &'a SessionModeId) -> Boxed<'a, Result<()>> {
        Box::pin(Session::mode_changed(self, mode))
    }
    fn option_changed<'a>(
        &'a self,
        id: &'a SessionConfigId,
        value: &'a OptionValue,
    ) -> Boxed<'a, Result<()>> {
        Box::pin(Session::option_changed(self, id, value))
    }
    fn model_changed<'a>(&'a self, model: &'a ModelId) -> Boxed<'a, Result<()>> {
        Box::pin(Session::model_changed(self, model))
    }
    fn closed(&self) -> Boxed<'_, ()> {
        Box::pin(Session::closed(self))
    }
}

/// An opened session on its way into the table.
pub(super) struct Opened {
    pub(super) session: Box<dyn AnySession>,
    pub(super) id: Option<SessionId>,
    /// `None` if it offers nothing.
    pub(super) offers: Option<Box<Offers>>,
    pub(super) commands: Option<Vec<AvailableCommand>>,
}

impl<S: Session> From<Open<S>> for Opened {
    fn from(open: Open<S>) -> Self {
        let Open { session, id, offers, commands } = open;
        let offers = (!offers.is_empty()).then(|| Box::new(offers));
        Opened { session: Box::new(session), id, offers, commands }
    }
}
