//! Logins.

use std::future::Future;

use attache_wire::v1::{AuthMethod, AuthMethodId};

use super::client::ClientHandle;
use super::session::BoxFuture;
use crate::Result;

/// Logs users in; installed with [`Agent::auth`](super::Agent::auth).
///
/// ```
/// use attache::agent::{Agent, Auth, ClientHandle};
/// use attache::model::{AuthMethod, AuthMethodAgent, AuthMethodId};
///
/// struct Browser;
///
/// impl Auth for Browser {
///     fn methods(&self) -> Vec<AuthMethod> {
///         vec![AuthMethodAgent::new("browser", "Log in with a browser").into()]
///     }
///
///     async fn login(&self, _: &AuthMethodId, client: &ClientHandle) -> attache::Result<()> {
///         println!("login for {:?}", client.info());
///         Ok(())
///     }
/// }
///
/// fn with_login(agent: Agent) -> Agent {
///     agent.auth(Browser).logout(|| async { Ok(()) })
/// }
/// ```
pub trait Auth: Send + Sync + 'static {
    /// The login methods. Those of type `terminal` are shown only to clients that can run them.
    fn methods(&self) -> Vec<AuthMethod>;

    /// Whether the user is logged in already, for example by a key in the environment.
    fn is_logged_in(&self) -> bool {
        false
    }

    /// Logs in by one of the methods, never one of type `terminal`: those run outside of the
    /// protocol. Questions to the user go through `client`, as elicitations that belong to no
    /// session.
    ///
    /// A login counts for this connection. Agents that remember it report it through
    /// [`is_logged_in`](Self::is_logged_in).
    fn login(&self, method: &AuthMethodId, client: &ClientHandle) -> impl Future<Output = Result<()>> + Send;
}

pub(super) trait DynAuth: Send + Sync {
    fn methods(&self) -> Vec<AuthMethod>;
    fn is_logged_in(&self) -> bool;
    fn login<'a>(&'a self, method: &'a AuthMethodId, client: &'a ClientHandle) -> BoxFuture<'a, Result<()>>;
}

impl<A: Auth> DynAuth for A {
    fn methods(&self) -> Vec<AuthMethod> {
        Auth::methods(self)
    }
    fn is_logged_in(&self) -> bool {
        Auth::is_logged_in(self)
    }
    fn login<'a>(&'a self, method: &'a AuthMethodId, client: &'a ClientHandle) -> BoxFuture<'a, Result<()>> {
        Box::pin(Auth::login(self, method, client))
    }
}
