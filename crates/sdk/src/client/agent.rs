//! The agent as a client sees it.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;

use attache_conn::process::Command;
use attache_conn::{Backlog, Closed};
use attache_wire::v1::{
    AgentCapabilities, AuthMethod, AuthMethodId, AuthenticateRequest, Implementation, ProtocolVersion,
    SessionId,
};
use attache_wire::{Notification, Request};

use super::capabilities::{
    AuthStatusReader, Logout, ProviderSettings, SessionArchiver, SessionDeleter, SessionForker,
    SessionLister, SessionLoader, SessionResumer, SessionStatusReader, SessionTitler,
};
use super::connection::Core;
use super::events::ConnectionEvents;
use super::nes::Nes;
use super::session_builder::{New, SessionBuilder};
use crate::{Error, Result};

/// An agent that is connected and initialized. Cheap to clone; the connection ends when the last handle and the last session are
/// gone.
///
/// There is none before `initialize` is answered (SESS-01, PROMPT-01), and sessions come from it, so the id of one
/// agent's session cannot reach another agent by mistake (SESS-02, SESS-04).
///
/// What an agent may or may not be able to do is an `Option`: there is a value to do it with exactly if the agent said
/// that it can (INIT-15, INIT-16), so calling it without looking does not compile:
///
/// ```compile_fail
/// # async fn load(agent: attache::client::AgentHandle) -> attache::Result<()> {
/// agent.loader().load("s-1", "/work").await?; // an `Option` loads nothing
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AgentHandle(pub(crate) Arc<Core>);

impl AgentHandle {
    /// The agent's name and version, if it gave them (INIT-29).
    pub fn info(&self) -> Option<&Implementation> {
        self.0.initialized().agent_info.as_ref()
    }

    /// What the agent can do.
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.0.initialized().agent_capabilities
    }

    /// The version of the protocol that both speak.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.0.initialized().protocol_version
    }

    /// The ways to authenticate, as the agent lists them.
    pub fn auth_methods(&self) -> &[AuthMethod] {
        &self.0.initialized().auth_methods
    }

    /// Authenticates in one of the ways that the agent itself carries out. AUTH-20: no credentials are passed.
    ///
    /// An agent that wants this answers other requests with an error whose
    /// [`is_auth_required`](Error::is_auth_required) is true (AUTH-02).
    ///
    /// # Errors
    /// AUTH-03: when the agent did not list the way. AUTH-10, AUTH-21: when it is one that is carried out elsewhere. Nothing is sent then.
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
        self.0.request(&AuthenticateRequest::new(id)).await.map(|_| ())
    }

    fn auth_method(&self, id: &AuthMethodId) -> Option<&AuthMethod> {
        self.auth_methods().iter().find(|method| method.id() == Some(id))
    }

    /// AUTH-11: for a way to authenticate that needs a terminal, the command to run there: `base`, with which this agent was
    /// started, and what the way adds to it. AUTH-12: it has worked if it exits with status 0. AUTH-13: connect again then.
    /// `None` if the way needs no terminal.
    pub fn login_command(&self, base: Command, method: &AuthMethodId) -> Option<Command> {
        let AuthMethod::Terminal(terminal) = self.auth_method(method)? else { return None };
        let command = base.args(terminal.args.iter().flatten());
        Some(command.envs(terminal.env.iter().flatten()))
    }

    /// Describes a new session in a directory; awaiting the builder opens it.
    ///
    /// # Errors
    /// When the directory is not absolute (ROOT-01), or the agent refuses, for example because it requires authentication.
    pub fn new_session(&self, cwd: impl Into<PathBuf>) -> SessionBuilder<New> {
        SessionBuilder::new(self.clone(), cwd)
    }

    /// SESS-07, SESS-08: loading stored sessions with their history.
    pub fn loader(&self) -> Option<SessionLoader> {
        self.capabilities().load_session.then(|| SessionLoader(self.clone()))
    }

    /// SESS-20, SESS-21: resuming stored sessions without their history.
    pub fn resumer(&self) -> Option<SessionResumer> {
        self.session_capability(|can| can.resume.is_some()).map(SessionResumer)
    }

    /// LIST-01, LIST-02: listing stored sessions.
    pub fn lister(&self) -> Option<SessionLister> {
        self.session_capability(|can| can.list.is_some()).map(SessionLister)
    }

    /// DEL-01, DEL-02: deleting stored sessions.
    pub fn deleter(&self) -> Option<SessionDeleter> {
        self.session_capability(|can| can.delete.is_some()).map(SessionDeleter)
    }

    /// FORK-01: copying sessions.
    pub fn forker(&self) -> Option<SessionForker> {
        self.session_capability(|can| can.fork.is_some()).map(SessionForker)
    }

    /// Putting sessions away and taking them out again.
    pub fn archiver(&self) -> Option<SessionArchiver> {
        self.session_capability(|can| can.archive.is_some()).map(SessionArchiver)
    }

    /// Naming sessions.
    pub fn titler(&self) -> Option<SessionTitler> {
        self.session_capability(|can| can.title.is_some()).map(SessionTitler)
    }

    /// Asking what state sessions are in.
    pub fn status_reader(&self) -> Option<SessionStatusReader> {
        self.session_capability(|can| can.status.is_some()).map(SessionStatusReader)
    }

    fn session_capability(
        &self,
        can: impl FnOnce(&attache_wire::v1::SessionCapabilities) -> bool,
    ) -> Option<AgentHandle> {
        can(&self.capabilities().session_capabilities).then(|| self.clone())
    }

    /// AUTH-16: logging out.
    pub fn logout(&self) -> Option<Logout> {
        self.capabilities().auth.logout.is_some().then(|| Logout(self.clone()))
    }

    /// Asking who is logged in.
    pub fn auth_status(&self) -> Option<AuthStatusReader> {
        self.capabilities().auth.status.is_some().then(|| AuthStatusReader(self.clone()))
    }

    /// PROV-02: saying where model calls go.
    pub fn providers(&self) -> Option<ProviderSettings> {
        self.capabilities().providers.is_some().then(|| ProviderSettings(self.clone()))
    }

    /// NES-01: edit suggestions.
    pub fn nes(&self) -> Option<Nes> {
        self.capabilities().nes.is_some().then(|| Nes(self.clone()))
    }

    /// What the agent tells beside its sessions. There is one such stream; `None` while somebody else has it.
    ///
    /// Nobody needs to read it, but for one thing: a question for input that belongs to no session is answered `cancel` while
    /// nobody does.
    pub fn events(&self) -> Option<ConnectionEvents> {
        self.0.events.reader()
    }

    /// Sends any request, typed: extensions, and what this SDK has no word for. It is the caller's duty to have checked that the
    /// agent offers it.
    ///
    /// # Errors
    /// When the agent refuses, answers with something else, or ends.
    pub async fn request<R: Request>(&self, request: &R) -> Result<R::Response> {
        self.0.request(request).await
    }

    /// Sends any notification, typed; waits while the connection is congested.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn notify<N: Notification>(&self, notification: &N) -> Result<()> {
        Ok(self.0.peer.notify(N::METHOD, notification).await?)
    }

    /// Waits for the end of the connection and tells how it ended.
    pub async fn closed(&self) -> Closed {
        // The end comes behind everything else, so the reader must not rest before it.
        let _waiting = self.0.peer.backlog().waiting();
        self.0.peer.closed().await
    }

    /// Returns the inbound budget of the connection. A [tap](crate::Link::tap) that keeps lines for later counts them here, so that the
    /// reader rests while there are too many.
    pub fn backlog(&self) -> &Backlog {
        self.0.peer.backlog()
    }

    /// Whether the agent sends nothing more. True as soon as a call has failed with [`Error::Closed`]; [`closed`](Self::closed) then
    /// gives the exit status.
    pub fn is_closed(&self) -> bool {
        self.0.peer.is_read_closed()
    }

    /// Ends the connection and, if the agent is a child process, the process: its input is closed, and if that does not help it is
    /// terminated (STDIO-10). Gives the exit status of such a child.
    pub async fn shutdown(&self) -> Option<ExitStatus> {
        self.0.peer.close();
        self.0.peer.closed().await.exit
    }

    /// Whether a session is open here.
    pub fn has_session(&self, id: &SessionId) -> bool {
        self.0.find(id.as_str()).is_some_and(|route| !route.child)
    }
}

impl std::fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentHandle").field("info", &self.info()).field("closed", &self.is_closed()).finish()
    }
}
