//! Unstable abilities that an agent may lack. Each is a value that exists if the agent advertises
//! it.

use std::path::PathBuf;

use attache_wire::v1::{
    ArchiveSessionRequest, AuthStatusRequest, AuthStatusResponse, DisableProviderRequest,
    ListProvidersRequest, ProviderInfo, SessionArchiveFilter, SessionId, SessionStatus, SessionStatusRequest,
    SetProviderRequest, SetSessionTitleRequest, UnarchiveSessionRequest,
};

use super::Fork;
use crate::client::{AgentHandle, SessionBuilder, SessionPages};
use crate::{Error, Result};

impl AgentHandle {
    /// Copies sessions.
    // FORK-01
    pub fn forker(&self) -> Option<SessionForker> {
        self.session_capability(|can| can.fork.is_some()).map(SessionForker)
    }

    /// Archives and restores sessions.
    pub fn archiver(&self) -> Option<SessionArchiver> {
        self.session_capability(|can| can.archive.is_some()).map(SessionArchiver)
    }

    /// Renames sessions.
    pub fn titler(&self) -> Option<SessionTitler> {
        self.session_capability(|can| can.title.is_some()).map(SessionTitler)
    }

    /// Reads the status of sessions.
    pub fn status_reader(&self) -> Option<SessionStatusReader> {
        self.session_capability(|can| can.status.is_some()).map(SessionStatusReader)
    }

    /// Reads the login state.
    pub fn auth_status(&self) -> Option<AuthStatusReader> {
        self.capabilities().auth.status.is_some().then(|| AuthStatusReader(self.clone()))
    }

    /// Configures model providers.
    // PROV-02
    pub fn providers(&self) -> Option<ProviderSettings> {
        self.capabilities().providers.is_some().then(|| ProviderSettings(self.clone()))
    }
}

impl SessionPages {
    /// Sets whether archived sessions are listed; the agent must support archives.
    pub fn archived(mut self, filter: SessionArchiveFilter) -> Self {
        self.request.archived = Some(filter);
        self
    }

    /// Fails if the agent has no archives to filter.
    pub(in crate::client) fn check_filter(&self) -> Result<()> {
        match self.request.archived.is_some() && self.agent.archiver().is_none() {
            true => Err(Error::Unsupported("archived sessions")),
            false => Ok(()),
        }
    }
}

/// Copies sessions; see [`AgentHandle::forker`].
///
/// ```
/// # async fn run(agent: attache::client::AgentHandle) -> attache::Result<()> {
/// if let Some(forker) = agent.forker() {
///     let copy = forker.fork("s-1", "/work").await?;
///     println!("{} is a copy", copy.id());
/// }
/// if let Some(titler) = agent.titler() {
///     titler.set_title("s-1", "Release notes").await?;
/// }
/// if let Some(status) = agent.status_reader() {
///     println!("{:?}", status.get("s-1").await?);
/// }
/// if let Some(archiver) = agent.archiver() {
///     archiver.archive("s-1").await?;
/// }
/// if let Some(login) = agent.auth_status() {
///     println!("{:?}", login.get().await?);
/// }
/// if let Some(providers) = agent.providers() {
///     println!("{:?}", providers.list().await?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SessionForker(pub(crate) AgentHandle);

impl SessionForker {
    /// Describes a copy of a session; awaiting the builder makes it.
    pub fn fork(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Fork> {
        SessionBuilder::of(self.0.clone(), Fork(id.into()), cwd)
    }
}

/// Archives sessions; see [`AgentHandle::archiver`].
///
/// Example: [`SessionForker`].
#[derive(Debug, Clone)]
pub struct SessionArchiver(pub(crate) AgentHandle);

impl SessionArchiver {
    /// Archives a session.
    pub async fn archive(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&ArchiveSessionRequest::new(id)).await.map(|_| ())
    }

    /// Restores a session, before it is loaded or resumed.
    // SSTAT-10
    pub async fn unarchive(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&UnarchiveSessionRequest::new(id)).await.map(|_| ())
    }
}

/// Renames sessions; see [`AgentHandle::titler`].
///
/// Example: [`SessionForker`].
#[derive(Debug, Clone)]
pub struct SessionTitler(pub(crate) AgentHandle);

impl SessionTitler {
    /// Sets a title and returns the one to show.
    // SSTAT-11
    pub async fn set_title(&self, id: impl Into<SessionId>, title: impl Into<String>) -> Result<String> {
        self.0.0.request(&SetSessionTitleRequest::new(id, title)).await.map(|answer| answer.title)
    }
}

/// Reads the status of sessions; see [`AgentHandle::status_reader`].
///
/// Example: [`SessionForker`].
#[derive(Debug, Clone)]
pub struct SessionStatusReader(pub(crate) AgentHandle);

impl SessionStatusReader {
    /// Reads the status of a session. An unknown one counts as saved; an open session may be open
    /// elsewhere.
    // SSTAT-02, SSTAT-03
    pub async fn get(&self, id: impl Into<SessionId>) -> Result<SessionStatus> {
        let status = self.0.0.request(&SessionStatusRequest::new(id)).await?.status;
        Ok(if status.is_open() { SessionStatus::Open } else { SessionStatus::Saved })
    }
}

/// Reads the login state; see [`AgentHandle::auth_status`].
///
/// Example: [`SessionForker`].
#[derive(Debug, Clone)]
pub struct AuthStatusReader(pub(crate) AgentHandle);

impl AuthStatusReader {
    /// Reads the login state. Accounts are for display only. Changes arrive as
    /// [`ConnectionEvent::AuthStatus`](crate::client::ConnectionEvent::AuthStatus).
    // AUTH-25
    pub async fn get(&self) -> Result<AuthStatusResponse> {
        self.0.0.request(&AuthStatusRequest::new()).await
    }
}

/// Configures model providers, before sessions are opened; see [`AgentHandle::providers`].
///
/// Example: [`SessionForker`].
// PROV-02
#[derive(Debug, Clone)]
pub struct ProviderSettings(pub(crate) AgentHandle);

impl ProviderSettings {
    /// Lists the providers.
    pub async fn list(&self) -> Result<Vec<ProviderInfo>> {
        self.0.0.request(&ListProvidersRequest::new()).await.map(|answer| answer.providers)
    }

    /// Replaces the configuration of a provider.
    // PROV-05
    pub async fn set(&self, provider: &SetProviderRequest) -> Result<()> {
        self.0.0.request(provider).await.map(|_| ())
    }

    /// Disables a provider.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the provider is required. Nothing is sent then.
    // PROV-13
    pub async fn disable(&self, provider: &ProviderInfo) -> Result<()> {
        if provider.required {
            return Err(Error::Unsupported("turning off a provider that it requires"));
        }
        self.0.0.request(&DisableProviderRequest::new(provider.provider_id.clone())).await.map(|_| ())
    }
}
