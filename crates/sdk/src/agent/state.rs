//! Agents whose handlers share a value.

use std::future::Future;
use std::sync::Arc;

use attache_wire::v1::{ListSessionsRequest, ListSessionsResponse, SessionId};
use attache_wire::{Notification, Request};

use super::builder::Agent;
use super::client::ClientHandle;
use super::session::{IntoOpenedSession, OpenRequest};
use crate::{Link, Listener, Result};

/// An [`Agent`] whose handlers share a value; made by [`Agent::with_state`].
///
/// ```no_run
/// # use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// # use attache::agent::{Agent, AgentSession, Turn};
/// # use attache::model::ListSessionsResponse;
/// # use attache::{Link, Prompt, Result, StopReason};
/// # struct Echo;
/// # impl AgentSession for Echo {
/// #     async fn prompt(&self, _: Turn<'_>, _: Prompt) -> Result<StopReason> { Ok(StopReason::EndTurn) }
/// # }
/// # async fn run() -> Result<()> {
/// #[derive(Default)]
/// struct Store {
///     opened: AtomicUsize,
/// }
///
/// Agent::with_state(Store::default(), |store, _request| async move {
///     store.opened.fetch_add(1, Relaxed);
///     Ok(Echo)
/// })
/// .list(|_store, _request| async { Ok(ListSessionsResponse::new(vec![])) })
/// .configure(|agent| agent.info("echo", "1.0").images())
/// .serve(Link::stdio())
/// .await
/// # }
/// ```
#[must_use = "an agent does nothing before `serve`"]
pub struct StatefulAgent<T> {
    pub(super) agent: Agent,
    pub(super) state: Arc<T>,
}

impl Agent {
    /// Creates an agent whose handlers get an `Arc` of `state` as their first argument, so that no
    /// closure has to clone it. Pass an `Arc` that exists already as it is.
    pub fn with_state<T, F, Fut, O>(state: impl Into<Arc<T>>, open: F) -> StatefulAgent<T>
    where
        T: Send + Sync + 'static,
        F: Fn(Arc<T>, OpenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
        O: IntoOpenedSession + 'static,
    {
        let state = state.into();
        let shared = state.clone();
        StatefulAgent { agent: Agent::new(move |request| open(shared.clone(), request)), state }
    }
}

/// Methods of [`Agent`] that install a handler which opens a session.
macro_rules! opening {
    ($($name:ident($($arg:ident: $type:ty),+);)+) => {
        $(
            #[doc = concat!("Like [`Agent::", stringify!($name), "`], with the state as the first argument.")]
            pub fn $name<F, Fut, O>(mut self, handler: F) -> Self
            where
                F: Fn(Arc<T>, $($type),+) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = Result<O>> + Send + 'static,
                O: IntoOpenedSession + 'static,
            {
                let state = self.state.clone();
                self.agent = self.agent.$name(move |$($arg),+| handler(state.clone(), $($arg),+));
                self
            }
        )+
    };
}

/// Methods of [`Agent`] that install any other handler.
macro_rules! handling {
    ($($name:ident($($arg:ident: $type:ty),*) -> $output:ty;)+) => {
        $(
            #[doc = concat!("Like [`Agent::", stringify!($name), "`], with the state as the first argument.")]
            pub fn $name<F, Fut>(mut self, handler: F) -> Self
            where
                F: Fn(Arc<T> $(, $type)*) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = Result<$output>> + Send + 'static,
            {
                let state = self.state.clone();
                self.agent = self.agent.$name(move |$($arg),*| handler(state.clone() $(, $arg)*));
                self
            }
        )+
    };
}

#[cfg(feature = "unstable")]
pub(super) use {handling, opening};

impl<T: Send + Sync + 'static> StatefulAgent<T> {
    opening! {
        load(request: OpenRequest);
        resume(request: OpenRequest);
    }

    handling! {
        list(request: ListSessionsRequest) -> ListSessionsResponse;
        delete(id: SessionId) -> ();
        logout() -> ();
    }

    /// Like [`Agent::on_request`], with the state as the first argument.
    pub fn on_request<R, F, Fut>(mut self, handler: F) -> Self
    where
        R: Request,
        F: Fn(Arc<T>, R, ClientHandle) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R::Response>> + Send + 'static,
    {
        let state = self.state.clone();
        self.agent = self.agent.on_request(move |request, client| handler(state.clone(), request, client));
        self
    }

    /// Like [`Agent::on_notification`], with the state as the first argument.
    pub fn on_notification<N: Notification>(
        mut self,
        handler: impl Fn(&Arc<T>, N, &ClientHandle) + Send + Sync + 'static,
    ) -> Self {
        let state = self.state.clone();
        self.agent = self.agent.on_notification(move |event, client| handler(&state, event, client));
        self
    }

    /// Sets everything that needs no state, such as [`Agent::info`].
    pub fn configure(mut self, configure: impl FnOnce(Agent) -> Agent) -> Self {
        self.agent = configure(self.agent);
        self
    }

    /// The shared value.
    pub fn state(&self) -> &Arc<T> {
        &self.state
    }

    /// Serves one client until it leaves; see [`Agent::serve`].
    pub async fn serve(self, link: Link) -> Result<()> {
        self.agent.serve(link).await
    }

    /// Serves all clients of a listener; see [`Agent::serve_clients`].
    pub async fn serve_clients(self, listener: impl Listener) -> Result<()> {
        self.agent.serve_clients(listener).await
    }
}

// Not derived, which would need a value that can be cloned.
impl<T> Clone for StatefulAgent<T> {
    fn clone(&self) -> Self {
        StatefulAgent { agent: self.agent.clone(), state: self.state.clone() }
    }
}

impl<T> From<StatefulAgent<T>> for Agent {
    fn from(agent: StatefulAgent<T>) -> Agent {
        agent.agent
    }
}
