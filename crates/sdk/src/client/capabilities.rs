//! Abilities that an agent may lack. Each is a value that exists if the agent advertises it. All
//! calls fail if the agent refuses or disconnects.

use std::path::{Path, PathBuf};

use attache_wire::v1::{
    DeleteSessionRequest, ListSessionsRequest, ListSessionsResponse, LogoutRequest, SessionId, SessionInfo,
};
use attache_wire::v2;

use super::agent::AgentHandle;
use super::session_builder::{Load, Resume, SessionBuilder};
use super::v2::requests;
use crate::Result;

/// Loads stored sessions; see [`AgentHandle::loader`].
///
/// Example: [`AgentHandle`].
#[derive(Debug, Clone)]
pub struct SessionLoader(pub(crate) AgentHandle);

impl SessionLoader {
    /// Describes a session to load; awaiting the builder loads it.
    // SESS-10
    pub fn load(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Load> {
        SessionBuilder::of(self.0.clone(), Load(id.into()), cwd)
    }
}

/// Resumes stored sessions; see [`AgentHandle::resumer`].
///
/// Example: [`AgentHandle`].
#[derive(Debug, Clone)]
pub struct SessionResumer(pub(crate) AgentHandle);

impl SessionResumer {
    /// Describes a session to resume; awaiting the builder resumes it.
    pub fn resume(&self, id: impl Into<SessionId>, cwd: impl Into<PathBuf>) -> SessionBuilder<Resume> {
        SessionBuilder::of(self.0.clone(), Resume(id.into()), cwd)
    }
}

/// Lists stored sessions; see [`AgentHandle::lister`].
///
/// Example: [`AgentHandle`].
#[derive(Debug, Clone)]
pub struct SessionLister(pub(crate) AgentHandle);

impl SessionLister {
    /// Lists all sessions, page by page.
    pub fn list(&self) -> SessionPages {
        SessionPages { agent: self.0.clone(), request: ListSessionsRequest::new(), done: false }
    }
}

/// The pages of a list of sessions.
///
/// Example: [`AgentHandle`].
#[derive(Debug)]
pub struct SessionPages {
    pub(super) agent: AgentHandle,
    pub(super) request: ListSessionsRequest,
    done: bool,
}

impl SessionPages {
    /// Lists only the sessions of a directory.
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        self.request.cwd = Some(cwd.as_ref().to_string_lossy().into_owned());
        self
    }

    /// The next page; `None` after the last one.
    pub async fn next_page(&mut self) -> Result<Option<Vec<SessionInfo>>> {
        if self.done {
            return Ok(None);
        }
        #[cfg(feature = "unstable")]
        self.check_filter()?;
        let page = match self.agent.0.is_v2() {
            false => self.agent.0.request(&self.request).await?,
            true => {
                let mut request = v2::ListSessionsRequest::new();
                request.cwd.clone_from(&self.request.cwd);
                request.cursor.clone_from(&self.request.cursor);
                #[cfg(feature = "unstable")]
                request.archived.clone_from(&self.request.archived);
                let page = self.agent.0.request(&request).await?;
                let sessions: Vec<_> = page.sessions.into_iter().map(requests::session_info).collect();
                // V2-45: an empty cursor is a cursor.
                ListSessionsResponse::new(sessions).next_cursor(page.next_cursor)
            }
        };
        // LIST-05: without a cursor this was the last page. LIST-06: with one, it goes back as it
        // came.
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
///
/// Example: [`AgentHandle`].
#[derive(Debug, Clone)]
pub struct SessionDeleter(pub(crate) AgentHandle);

impl SessionDeleter {
    /// Deletes a session.
    pub async fn delete(&self, id: impl Into<SessionId>) -> Result<()> {
        self.0.0.request(&DeleteSessionRequest::new(id)).await.map(|_| ())
    }
}

/// Logs out; see [`AgentHandle::logout`].
///
/// Example: [`AgentHandle`].
#[derive(Debug, Clone)]
pub struct Logout(pub(crate) AgentHandle);

impl Logout {
    /// Logs out. Open sessions may require a login from now on.
    // AUTH-19
    pub async fn send(self) -> Result<()> {
        match self.0.0.is_v2() {
            false => self.0.0.request(&LogoutRequest::new()).await.map(drop),
            true => self.0.0.request(&v2::LogoutAuthRequest::new()).await.map(drop),
        }
    }
}
