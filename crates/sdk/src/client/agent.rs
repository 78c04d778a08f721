//! The connected agent.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;

use attache_conn::process::Command;
use attache_conn::{Backlog, Closed};
use attache_wire::v1::{
    AgentCapabilities, AuthMethod, AuthMethodId, AuthenticateRequest, Implementation, ProtocolVersion,
    SessionId,
};
use attache_wire::v2::LoginAuthRequest;
use attache_wire::{Notification, Request};

use super::capabilities::{Logout, SessionDeleter, SessionLister, SessionLoader, SessionResumer};
use super::connection::Core;
use super::events::ConnectionEvents;
use super::session_builder::{New, Reopen, Replay, SessionBuilder};
use crate::{Error, Result};

/// A connected and initialized agent. Cheap to clone; the connection ends when the last handle and
/// the last session are dropped.
///
/// Abilities that an agent may lack are `Option`s, so calling one without a check does not compile:
///
/// ```compile_fail
/// # async fn load(agent: attache::client::AgentHandle) -> attache::Result<()> {
/// agent.loader().load("s-1", "/work").await?; // an `Option` loads nothing
/// # Ok(())
/// # }
/// ```
///
/// ```
/// # async fn run(agent: attache::client::AgentHandle) -> attache::Result<()> {
/// if let Some(lister) = agent.lister() {
///     for stored in lister.list().cwd("/work").all().await? {
///         println!("{}", stored.session_id);
///     }
/// }
/// if let Some(loader) = agent.loader() {
///     let mut replay = loader.load("s-1", "/work").await?;
///     while let Some(event) = replay.next().await? {
///         println!("{event:?}");
///     }
///     replay.finish().await?.close().await?;
/// } else if let Some(resumer) = agent.resumer() {
///     resumer.resume("s-1", "/work").await?.close().await?;
/// }
/// if let Some(deleter) = agent.deleter() {
///     deleter.delete("s-1").await?;
/// }
/// if let Some(logout) = agent.logout() {
///     logout.send().await?;
/// }
/// # Ok(())
/// # }
/// ```
// SESS-01, PROMPT-01, SESS-02, SESS-04, INIT-15, INIT-16
#[derive(Clone)]
pub struct AgentHandle(pub(crate) Arc<Core>);

impl AgentHandle {
    /// The agent's name and version, if it gave them.
    // INIT-29
    pub fn info(&self) -> Option<&Implementation> {
        self.0.initialized().agent_info.as_ref()
    }

    /// The capabilities of the agent.
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.0.initialized().agent_capabilities
    }

    /// The negotiated protocol version.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.0.initialized().protocol_version
    }

    /// The login methods of the agent.
    pub fn auth_methods(&self) -> &[AuthMethod] {
        &self.0.initialized().auth_methods
    }

    /// Logs in by a method that the agent performs itself. No credentials are passed.
    ///
    /// An agent that requires a login refuses other requests with
    /// [`is_auth_required`](Error::is_auth_required).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the agent does not list the method or does not perform it itself.
    /// Nothing is sent then.
    // AUTH-02, AUTH-20, AUTH-03, AUTH-10, AUTH-21
    pub async fn authenticate(&self, method: impl Into<AuthMethodId>) -> Result<()> {
        let id = method.into();
        match self.auth_method(&id) {
            Some(AuthMethod::Agent(_)) => {}
            Some(AuthMethod::Terminal(_)) => {
                return Err(Error::Unsupported(
                    "this way to authenticate without a terminal; see `login_command`",
                ));
            }
            Some(_) => return Err(Error::Unsupported("this way to authenticate through `authenticate`")),
            None => return Err(Error::Unsupported("a way to authenticate by this name")),
        }
        match self.0.is_v2() {
            false => self.0.request(&AuthenticateRequest::new(id)).await.map(drop),
            // V2-07
            true => self.0.request(&LoginAuthRequest::new(id)).await.map(drop),
        }
    }

    fn auth_method(&self, id: &AuthMethodId) -> Option<&AuthMethod> {
        self.auth_methods().iter().find(|method| method.id() == Some(id))
    }

    /// The command to run in a terminal for a login method of that type: `base`, with which this
    /// agent was started, and the additions of the method. Exit status 0 is success; connect again
    /// then. `None` for other methods.
    // AUTH-11, AUTH-12, AUTH-13
    pub fn login_command(&self, base: Command, method: &AuthMethodId) -> Option<Command> {
        let AuthMethod::Terminal(terminal) = self.auth_method(method)? else { return None };
        let command = base.args(terminal.args.iter().flatten());
        Some(command.envs(terminal.env.iter().flatten()))
    }

    /// Describes a new session in a directory; awaiting the builder opens it.
    ///
    /// # Errors
    /// When the directory is not absolute, or the agent refuses, for example because it requires
    /// authentication.
    // ROOT-01
    pub fn new_session(&self, cwd: impl Into<PathBuf>) -> SessionBuilder<New> {
        SessionBuilder::of(self.clone(), New(()), cwd)
    }

    /// Loads stored sessions with their history.
    // SESS-07, SESS-08
    pub fn loader(&self) -> Option<SessionLoader> {
        self.capabilities().load_session.then(|| SessionLoader(self.clone()))
    }

    /// Resumes stored sessions without their history.
    // SESS-20, SESS-21
    pub fn resumer(&self) -> Option<SessionResumer> {
        self.session_capability(|can| can.resume.is_some()).map(SessionResumer)
    }

    /// Describes a stored session to open, with as much of its history as `replay` says; awaiting
    /// the builder opens it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the agent cannot do that. Nothing is sent then.
    pub fn reopen(
        &self,
        id: impl Into<SessionId>,
        cwd: impl Into<PathBuf>,
        replay: Replay,
    ) -> SessionBuilder<Reopen> {
        SessionBuilder::of(self.clone(), Reopen(id.into(), replay), cwd)
    }

    /// Lists stored sessions.
    // LIST-01, LIST-02
    pub fn lister(&self) -> Option<SessionLister> {
        self.session_capability(|can| can.list.is_some()).map(SessionLister)
    }

    /// Deletes stored sessions.
    // DEL-01, DEL-02
    pub fn deleter(&self) -> Option<SessionDeleter> {
        self.session_capability(|can| can.delete.is_some()).map(SessionDeleter)
    }

    pub(super) fn session_capability(
        &self,
        can: impl FnOnce(&attache_wire::v1::SessionCapabilities) -> bool,
    ) -> Option<AgentHandle> {
        can(&self.capabilities().session_capabilities).then(|| self.clone())
    }

    /// Logs out.
    // AUTH-16
    pub fn logout(&self) -> Option<Logout> {
        self.capabilities().auth.logout.is_some().then(|| Logout(self.clone()))
    }

    /// Connection-level events. `None` if already taken.
    ///
    /// Reading them is optional, but questions that belong to no session are answered `cancel`
    /// while nothing reads.
    pub fn events(&self) -> Option<ConnectionEvents> {
        self.0.events.reader()
    }

    /// Sends any typed request, such as an extension method. The caller checks that the agent
    /// supports it.
    ///
    /// # Errors
    /// When the agent refuses, answers with another type, or disconnects.
    pub async fn request<R: Request>(&self, request: &R) -> Result<R::Response> {
        self.0.request(request).await
    }

    /// Sends any typed notification; waits while the connection is congested.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn notify<N: Notification>(&self, notification: &N) -> Result<()> {
        Ok(self.0.peer.notify(N::METHOD, notification).await?)
    }

    /// Waits for the end of the connection.
    pub async fn closed(&self) -> Closed {
        // The end follows all other messages, so the reader must not rest before it.
        let _waiting = self.0.peer.backlog().waiting();
        self.0.peer.closed().await
    }

    /// Returns the inbound budget of the connection. A [tap](crate::Link::tap) that keeps lines for
    /// later counts them here, so that the reader rests while there are too many.
    pub fn backlog(&self) -> &Backlog {
        self.0.peer.backlog()
    }

    /// Whether the agent has disconnected. True as soon as a call has failed with
    /// [`Error::Closed`]; [`closed`](Self::closed) then returns the exit status.
    pub fn is_closed(&self) -> bool {
        self.0.peer.is_read_closed()
    }

    /// Ends the connection and a child process: closes its stdin, then terminates it. Returns the
    /// exit status of a child.
    // STDIO-10
    pub async fn shutdown(&self) -> Option<ExitStatus> {
        self.0.peer.close();
        self.0.peer.closed().await.exit
    }

    /// Whether a session is open on this connection.
    pub fn has_session(&self, id: &SessionId) -> bool {
        self.0.find(id.as_str()).is_some_and(|route| !route.child)
    }
}

impl std::fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentHandle").field("info", &self.info()).field("closed", &self.is_closed()).finish()
    }
}
