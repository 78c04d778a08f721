//! Logging in and out.

use std::future::Future;

use attache_wire::v1::{AuthMethod, AuthMethodId};

use super::session::BoxFuture;
use crate::Result;

/// How users log in to an agent.
pub trait Auth: Send + Sync + 'static {
    /// The ways there are. AUTH-08: those of type `terminal` are shown only to clients that can run them.
    fn methods(&self) -> Vec<AuthMethod>;

    /// Whether a login is there already, such as a key in the environment.
    fn is_logged_in(&self) -> bool {
        false
    }

    /// Logs in by one of the methods. AUTH-10: never one of type `terminal`; those run outside of the protocol.
    fn login(&self, method: &AuthMethodId) -> impl Future<Output = Result<()>> + Send;
}

pub(super) trait DynAuth: Send + Sync {
    fn methods(&self) -> Vec<AuthMethod>;
    fn is_logged_in(&self) -> bool;
    fn login<'a>(&'a self, method: &'a AuthMethodId) -> BoxFuture<'a, Result<()>>;
}

impl<A: Auth> DynAuth for A {
    fn methods(&self) -> Vec<AuthMethod> {
        Auth::methods(self)
    }
    fn is_logged_in(&self) -> bool {
        Auth::is_logged_in(self)
    }
    fn login<'a>(&'a self, method: &'a AuthMethodId) -> BoxFuture<'a, Result<()>> {
        Box::pin(Auth::login(self, method))
    }
}
