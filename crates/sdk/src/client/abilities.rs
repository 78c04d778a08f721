//! What only some agents can do. Each of these is a value that exists if the agent said that it can.

use std::path::PathBuf;

use attache_wire::v1::{
    ArchiveSessionRequest, AuthStatusRequest, AuthStatusResponse, DeleteSessionRequest,
    DisableProviderRequest, ListProvidersRequest, ListSessionsRequest, LogoutRequest, ProviderInfo,
    SessionArchiveFilter, SessionId, SessionInfo, SessionStatus, SessionStatusRequest, SetProviderRequest,
    SetSessionTitleRequest, UnarchiveSessionRequest,
};

use super::agent::Agent;
use super::setup::{ForkSession, LoadSession, ResumeSession};
use crate::{Error, Result};

/// Loads stored sessions; see [`Agent::loading`].
#[derive(Debug, Clone)]
pub struct Loader(pub(crate) Agent);

impl Loader {
    /// A stored session, to be given more options and then awaited. SESS-10: it takes the directory again.
    pub fn session(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> LoadSession {
        LoadSession::new(self.0.clone(), id.into(), cwd)
    }
}

/// Resumes stored sessions; see [`Agent::resuming`].
#[derive(Debug, Clone)]
pub struct Resuming(pub(crate) Agent);

impl Resuming {
    /// A stored session, to be given more options and then awaited.
    pub fn session(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> ResumeSession {
        ResumeSession::new(self.0.clone(), id.into(), cwd)
    }
}

/// Copies sessions; see [`Agent::forking`].
#[derive(Debug, Clone)]
pub struct Forking(pub(crate) Agent);

impl Forking {
    /// A copy of a session, to be given more options and then awaited.
    pub fn session(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> ForkSession {
        ForkSession::new(self.0.clone(), id.into(), cwd)
    }
}

/// Lists stored sessions; see [`Agent::listing`].
#[derive(Debug, Clone)]
pub struct Listing(pub(crate) Agent);

impl Listing {
    /// All of them, page by page.
    pub fn sessions(&self) -> Pages {
        Pages { agent: self.0.clone(), request: ListSessionsRequest::new(), done: false }
    }
}

/// The pages of a list of sessions.
#[derive(Debug)]
pub struct Pages {
    agent: Agent,
    request: ListSessionsRequest,
    done: bool,
}

impl Pages {
    /// Only the sessions of a directory.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.request.cwd = Some(cwd.into());
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
        if self.request.archived.is_some() && self.agent.archiving().is_none() {
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

/// Deletes stored sessions; see [`Agent::deleting`].
#[derive(Debug, Clone)]
pub struct Deleting(pub(crate) Agent);

impl Deleting {
    /// Deletes a session.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn session(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&DeleteSessionRequest::new(id)).await.map(|_| ())
    }
}

/// Archives sessions; see [`Agent::archiving`].
#[derive(Debug, Clone)]
pub struct Archiving(pub(crate) Agent);

impl Archiving {
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

/// Names sessions; see [`Agent::titling`].
#[derive(Debug, Clone)]
pub struct Titling(pub(crate) Agent);

impl Titling {
    /// Gives a session a title. SSTAT-11: the one that comes back is the one to show.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn set(&self, id: impl Into<SessionId>, title: impl Into<String>) -> Result<String> {
        self.0.0.request(&SetSessionTitleRequest::new(id, title)).await.map(|answer| answer.title)
    }
}

/// Asks what state sessions are in; see [`Agent::status`].
#[derive(Debug, Clone)]
pub struct Status(pub(crate) Agent);

impl Status {
    /// The state of a session. SSTAT-02: a state that is not known counts as saved. SSTAT-03: an open one is not open here unless it was
    /// loaded or resumed here.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn of(&self, id: impl Into<SessionId>) -> Result<SessionStatus> {
        let status = self.0.0.request(&SessionStatusRequest::new(id)).await?.status;
        Ok(if status.is_open() { SessionStatus::Open } else { SessionStatus::Saved })
    }
}

/// Logs out; see [`Agent::logout`].
#[derive(Debug, Clone)]
pub struct Logout(pub(crate) Agent);

impl Logout {
    /// Logs out. AUTH-19: sessions that are open may answer from now on that authentication is required.
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn send(self) -> Result<()> {
        self.0.0.request(&LogoutRequest::new()).await.map(|_| ())
    }
}

/// Asks who is logged in; see [`Agent::auth_status`].
#[derive(Debug, Clone)]
pub struct AuthStatus(pub(crate) Agent);

impl AuthStatus {
    /// Who is logged in. AUTH-25: accounts are for display, never to identify somebody. Changes arrive as
    /// [`AgentEvent::AuthStatus`](super::AgentEvent::AuthStatus).
    ///
    /// # Errors
    /// When the agent refuses, or ends.
    pub async fn get(&self) -> Result<AuthStatusResponse> {
        self.0.0.request(&AuthStatusRequest::new()).await
    }
}

/// Says where model calls go; see [`Agent::providers`]. PROV-02: before sessions are started.
#[derive(Debug, Clone)]
pub struct Providers(pub(crate) Agent);

impl Providers {
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
