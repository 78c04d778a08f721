//! Abilities that an agent may lack. Each is a value that exists if the agent advertises it. All calls fail if the agent refuses
//! or disconnects.

use std::path::{Path, PathBuf};

use attache_wire::v1::{
    ArchiveSessionRequest, AuthStatusRequest, AuthStatusResponse, DeleteSessionRequest,
    DisableProviderRequest, ListProvidersRequest, ListSessionsRequest, LogoutRequest, ProviderInfo,
    SessionArchiveFilter, SessionId, SessionInfo, SessionStatus, SessionStatusRequest, SetProviderRequest,
    SetSessionTitleRequest, UnarchiveSessionRequest,
};

use super::agent::AgentHandle;
use super::session_builder::{Fork, Load, Resume, SessionBuilder};
use crate::{Error, Result};

/// Loads stored sessions; see [`AgentHandle::loader`].
#[derive(Debug, Clone)]
pub struct SessionLoader(pub(crate) AgentHandle);

impl SessionLoader {
    /// Describes a session to load; awaiting the builder loads it.
    // SESS-10
    pub fn load(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Load> {
        SessionBuilder::load(self.0.clone(), id.into(), cwd)
    }
}

/// Resumes stored sessions; see [`AgentHandle::resumer`].
#[derive(Debug, Clone)]
pub struct SessionResumer(pub(crate) AgentHandle);

impl SessionResumer {
    /// Describes a session to resume; awaiting the builder resumes it.
    pub fn resume(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Resume> {
        SessionBuilder::resume(self.0.clone(), id.into(), cwd)
    }
}

/// Copies sessions; see [`AgentHandle::forker`].
#[derive(Debug, Clone)]
pub struct SessionForker(pub(crate) AgentHandle);

impl SessionForker {
    /// Describes a copy of a session; awaiting the builder makes it.
    pub fn fork(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Fork> {
        SessionBuilder::fork(self.0.clone(), id.into(), cwd)
    }
}

/// Lists stored sessions; see [`AgentHandle::lister`].
#[derive(Debug, Clone)]
pub struct SessionLister(pub(crate) AgentHandle);

impl SessionLister {
    /// Lists all sessions, page by page.
    pub fn list(&self) -> SessionPages {
        SessionPages { agent: self.0.clone(), request: ListSessionsRequest::new(), done: false }
    }
}

/// The pages of a list of sessions.
#[derive(Debug)]
pub struct SessionPages {
    agent: AgentHandle,
    request: ListSessionsRequest,
    done: bool,
}

impl SessionPages {
    /// Lists only the sessions of a directory.
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        self.request.cwd = Some(cwd.as_ref().to_string_lossy().into_owned());
        self
    }

    /// Sets whether archived sessions are listed; the agent must support archives.
    pub fn archived(mut self, filter: SessionArchiveFilter) -> Self {
        self.request.archived = Some(filter);
        self
    }

    /// The next page; `None` after the last one.
    pub async fn next_page(&mut self) -> Result<Option<Vec<SessionInfo>>> {
        if self.done {
            return Ok(None);
        }
        if self.request.archived.is_some() && self.agent.archiver().is_none() {
            return Err(Error::Unsupported("archived sessions"));
        }
        let page = self.agent.0.request(&self.request).await?;
        // LIST-05: without a cursor this was the last page. LIST-06: with one, it goes back as it came.
        self.done = page.next_cursor.is_none();
        self.request.cursor = page.next_cursor;
        Ok(Some(page.sessions))
    }

    /// All pages at once.
    pub async fn all(mut self) -> Result<Vec<SessionInfo>> {
        let mut all = Vec::new();
        while let Some(page) = self.next_page().await? {
            all.extend(page);
        }
        Ok(all)
    }
}

/// Deletes stored sessions; see [`AgentHandle::deleter`].
#[derive(Debug, Clone)]
pub struct SessionDeleter(pub(crate) AgentHandle);

impl SessionDeleter {
    /// Deletes a session.
    pub async fn delete(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&DeleteSessionRequest::new(id)).await.map(|_| ())
    }
}

/// Archives sessions; see [`AgentHandle::archiver`].
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
#[derive(Debug, Clone)]
pub struct SessionStatusReader(pub(crate) AgentHandle);

impl SessionStatusReader {
    /// Reads the status of a session. An unknown one counts as saved; an open session may be open elsewhere.
    // SSTAT-02, SSTAT-03
    pub async fn get(&self, id: impl Into<SessionId>) -> Result<SessionStatus> {
        let status = self.0.0.request(&SessionStatusRequest::new(id)).await?.status;
        Ok(if status.is_open() { SessionStatus::Open } else { SessionStatus::Saved })
    }
}

/// Logs out; see [`AgentHandle::logout`].
#[derive(Debug, Clone)]
pub struct Logout(pub(crate) AgentHandle);

impl Logout {
    /// Logs out. Open sessions may require a login from now on.
    // AUTH-19
    pub async fn send(self) -> Result<()> {
        self.0.0.request(&LogoutRequest::new()).await.map(|_| ())
    }
}

/// Reads who is logged in; see [`AgentHandle::auth_status`].
#[derive(Debug, Clone)]
pub struct AuthStatusReader(pub(crate) AgentHandle);

impl AuthStatusReader {
    /// Reads who is logged in. Accounts are for display only. Changes arrive as
    /// [`ConnectionEvent::AuthStatus`](super::ConnectionEvent::AuthStatus).
    // AUTH-25
    pub async fn get(&self) -> Result<AuthStatusResponse> {
        self.0.0.request(&AuthStatusRequest::new()).await
    }
}

/// Configures model providers, before sessions are opened; see [`AgentHandle::providers`].
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
