//! What only some agents can do. Each of these is a value that exists if the agent said that it can.

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

/// Loads stored sessions; see [`AgentHandle::loading`].
#[derive(Debug, Clone)]
pub struct SessionLoader(pub(crate) AgentHandle);

impl SessionLoader {
    /// A stored session, to be given more options and then awaited. SESS-10: it takes the directory again.
    pub fn load(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Load> {
        SessionBuilder::load(self.0.clone(), id.into(), cwd)
    }
}

/// Resumes stored sessions; see [`AgentHandle::resuming`].
#[derive(Debug, Clone)]
pub struct SessionResumer(pub(crate) AgentHandle);

impl SessionResumer {
    /// A stored session, to be given more options and then awaited.
    pub fn resume(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Resume> {
        SessionBuilder::resume(self.0.clone(), id.into(), cwd)
    }
}

/// Copies sessions; see [`AgentHandle::forking`].
#[derive(Debug, Clone)]
pub struct SessionForker(pub(crate) AgentHandle);

impl SessionForker {
    /// A copy of a session, to be given more options and then awaited.
    pub fn fork(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Fork> {
        SessionBuilder::fork(self.0.clone(), id.into(), cwd)
    }
}

/// Lists stored sessions; see [`AgentHandle::listing`].
#[derive(Debug, Clone)]
pub struct SessionLister(pub(crate) AgentHandle);

impl SessionLister {
    /// All of them, page by page.
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
    /// Only the sessions of a directory.
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        self.request.cwd = Some(cwd.as_ref().to_string_lossy().into_owned());
        self
    }

    /// Whether archived sessions are listed; the agent must be able to archive.
    pub fn archived(mut self, filter: SessionArchiveFilter) -> Self {
        self.request.archived = Some(filter);
        self
    }

    /// The next page; `None` after the last one.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
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
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn all(mut self) -> Result<Vec<SessionInfo>> {
        let mut all = Vec::new();
        while let Some(page) = self.next_page().await? {
            all.extend(page);
        }
        Ok(all)
    }
}

/// Deletes stored sessions; see [`AgentHandle::deleting`].
#[derive(Debug, Clone)]
pub struct SessionDeleter(pub(crate) AgentHandle);

impl SessionDeleter {
    /// Deletes a session.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn delete(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&DeleteSessionRequest::new(id)).await.map(|_| ())
    }
}

/// Archives sessions; see [`AgentHandle::archiving`].
#[derive(Debug, Clone)]
pub struct SessionArchiver(pub(crate) AgentHandle);

impl SessionArchiver {
    /// Puts a session away.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn archive(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&ArchiveSessionRequest::new(id)).await.map(|_| ())
    }

    /// Takes a session out again. SSTAT-10: before it is loaded or resumed.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn unarchive(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&UnarchiveSessionRequest::new(id)).await.map(|_| ())
    }
}

/// Names sessions; see [`AgentHandle::titling`].
#[derive(Debug, Clone)]
pub struct SessionTitler(pub(crate) AgentHandle);

impl SessionTitler {
    /// Gives a session a title. SSTAT-11: the one that comes back is the one to show.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn set_title(&self, id: impl Into<SessionId>, title: impl Into<String>) -> Result<String> {
        self.0.0.request(&SetSessionTitleRequest::new(id, title)).await.map(|answer| answer.title)
    }
}

/// Asks what state sessions are in; see [`AgentHandle::status`].
#[derive(Debug, Clone)]
pub struct SessionStatusReader(pub(crate) AgentHandle);

impl SessionStatusReader {
    /// The state of a session. SSTAT-02: a state that is not known counts as saved. SSTAT-03: an open one is not open here unless it was
    /// loaded or resumed here.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn get(&self, id: impl Into<SessionId>) -> Result<SessionStatus> {
        let status = self.0.0.request(&SessionStatusRequest::new(id)).await?.status;
        Ok(if status.is_open() { SessionStatus::Open } else { SessionStatus::Saved })
    }
}

/// Logs out; see [`AgentHandle::logout`].
#[derive(Debug, Clone)]
pub struct Logout(pub(crate) AgentHandle);

impl Logout {
    /// Logs out. AUTH-19: sessions that are open may answer from now on that authentication is required.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn send(self) -> Result<()> {
        self.0.0.request(&LogoutRequest::new()).await.map(|_| ())
    }
}

/// Asks who is logged in; see [`AgentHandle::auth_status`].
#[derive(Debug, Clone)]
pub struct AuthStatusReader(pub(crate) AgentHandle);

impl AuthStatusReader {
    /// Who is logged in. AUTH-25: accounts are for display, never to identify somebody. Changes arrive as
    /// [`ConnectionEvent::AuthStatus`](super::ConnectionEvent::AuthStatus).
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn get(&self) -> Result<AuthStatusResponse> {
        self.0.0.request(&AuthStatusRequest::new()).await
    }
}

/// Says where model calls go; see [`AgentHandle::providers`]. PROV-02: before sessions are started.
#[derive(Debug, Clone)]
pub struct ProviderSettings(pub(crate) AgentHandle);

impl ProviderSettings {
    /// The providers and where they point now.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn list(&self) -> Result<Vec<ProviderInfo>> {
        self.0.0.request(&ListProvidersRequest::new()).await.map(|answer| answer.providers)
    }

    /// Points a provider somewhere. PROV-05: this replaces all of its configuration.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn set(&self, provider: &SetProviderRequest) -> Result<()> {
        self.0.0.request(provider).await.map(|_| ())
    }

    /// Turns a provider off.
    ///
    /// # Errors
    /// PROV-13: when it is one that the agent cannot do without. Nothing is sent then.
    pub async fn disable(&self, provider: &ProviderInfo) -> Result<()> {
        if provider.required {
            return Err(Error::Unsupported("turning off a provider that it requires"));
        }
        self.0.0.request(&DisableProviderRequest::new(provider.provider_id.clone())).await.map(|_| ())
    }
}
