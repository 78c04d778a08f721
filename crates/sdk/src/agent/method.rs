//! Methods that an agent serves.

use std::sync::Arc;

use attache_conn::IncomingRequest;

use super::builder::Services;
use super::client::ClientHandle;
use super::core::Core;

type Serve = fn(&Arc<Core>, ClientHandle, IncomingRequest<'_>);

/// A method of the protocol. Tables of them decide about admission and route requests.
#[derive(Clone, Copy)]
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) serve: Serve,
    /// Whether the agent has the service. Without it the method does not exist.
    pub(super) is_installed: fn(&Services) -> bool,
    // AUTH-05: methods that start or inspect sessions. AUTH-18: open sessions continue after a
    // logout.
    pub(super) needs_login: bool,
}

impl Method {
    /// A method that is always available.
    pub(super) const fn new(name: &'static str, serve: Serve) -> Self {
        Method { name, serve, is_installed: |_| true, needs_login: false }
    }

    pub(super) const fn if_installed(self, is_installed: fn(&Services) -> bool) -> Self {
        Method { is_installed, ..self }
    }

    pub(super) const fn after_login(self) -> Self {
        Method { needs_login: true, ..self }
    }
}
