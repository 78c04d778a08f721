//! Builder methods of the unstable services.

use std::future::Future;
use std::sync::Arc;

use attache_wire::v1::{AuthStatusResponse, SessionId, SessionStatus};

use super::{Providers, SystemPromptSupport};
use crate::Result;
use crate::agent::builder::{Agent, IdFn};
use crate::agent::session::{ErasedSession, IntoOpenedSession, OpenRequest};
use crate::agent::state::{StatefulAgent, handling, opening};

/// Unstable services.
impl Agent {
    /// Accepts MCP servers that are reached through the client.
    pub fn mcp_over_acp(mut self) -> Self {
        self.services.mcp.acp = true;
        self
    }

    /// Accepts system prompts from the client.
    pub fn system_prompts(mut self, which: SystemPromptSupport) -> Self {
        self.services.unstable.system_prompt = Some(which);
        self
    }

    /// Copies a session. The handler gets the id of the source and the request for the new session,
    /// whose roots count.
    // FORK-05
    pub fn fork<F, Fut, O>(mut self, fork: F) -> Self
    where
        F: Fn(SessionId, OpenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
        O: IntoOpenedSession + 'static,
    {
        let fork = Arc::new(fork);
        self.services.unstable.fork = Some(Arc::new(move |source, request| {
            let fork = fork.clone();
            Box::pin(async move { Ok(ErasedSession::from(fork(source, request).await?.into_opened())) })
        }));
        self
    }

    /// Archives and restores sessions. Advertised only together with [`list`](Agent::list).
    // SSTAT-05
    pub fn archive<A, AFut, U, UFut>(mut self, archive: A, unarchive: U) -> Self
    where
        A: Fn(SessionId) -> AFut + Send + Sync + 'static,
        AFut: Future<Output = Result<()>> + Send + 'static,
        U: Fn(SessionId) -> UFut + Send + Sync + 'static,
        UFut: Future<Output = Result<()>> + Send + 'static,
    {
        let archive: IdFn<()> = Arc::new(move |id| Box::pin(archive(id)));
        let unarchive: IdFn<()> = Arc::new(move |id| Box::pin(unarchive(id)));
        self.services.unstable.archive = Some((archive, unarchive));
        self
    }

    /// Renames sessions. The handler gets a title that is trimmed and not empty, and returns it as
    /// stored.
    // SSTAT-08
    pub fn titles<F, Fut>(mut self, set_title: F) -> Self
    where
        F: Fn(SessionId, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String>> + Send + 'static,
    {
        self.services.unstable.title = Some(Arc::new(move |id, title| Box::pin(set_title(id, title))));
        self
    }

    /// Reports the status of sessions that are not open on this connection.
    pub fn status<F, Fut>(mut self, status: F) -> Self
    where
        F: Fn(SessionId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<SessionStatus>> + Send + 'static,
    {
        self.services.unstable.status = Some(Arc::new(move |id| Box::pin(status(id))));
        self
    }

    /// Reports the login state. Needs no login itself.
    // AUTH-22
    pub fn auth_status<F, Fut>(mut self, status: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<AuthStatusResponse>> + Send + 'static,
    {
        self.services.unstable.auth_status = Some(Arc::new(move || Box::pin(status())));
        self
    }

    /// Lets the client configure model providers.
    pub fn providers(mut self, providers: impl Providers) -> Self {
        self.services.unstable.providers = Some(Arc::new(providers));
        self
    }
}

/// Unstable services.
impl<T: Send + Sync + 'static> StatefulAgent<T> {
    opening! {
        fork(source: SessionId, request: OpenRequest);
    }

    handling! {
        titles(id: SessionId, title: String) -> String;
        status(id: SessionId) -> SessionStatus;
        auth_status() -> AuthStatusResponse;
    }

    /// Like [`Agent::archive`], with the state as the first argument of both handlers.
    pub fn archive<A, AFut, U, UFut>(mut self, archive: A, unarchive: U) -> Self
    where
        A: Fn(Arc<T>, SessionId) -> AFut + Send + Sync + 'static,
        AFut: Future<Output = Result<()>> + Send + 'static,
        U: Fn(Arc<T>, SessionId) -> UFut + Send + Sync + 'static,
        UFut: Future<Output = Result<()>> + Send + 'static,
    {
        let (state, other) = (self.state.clone(), self.state.clone());
        self.agent =
            self.agent.archive(move |id| archive(state.clone(), id), move |id| unarchive(other.clone(), id));
        self
    }
}
