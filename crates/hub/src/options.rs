//! Settings of a hub.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use attache_conn::Link;

use crate::network::Network;
use crate::provision::Provision;
use crate::questions::Policy;

type Starting = Pin<Box<dyn Future<Output = io::Result<Link>> + Send>>;

#[cfg(unix)]
type Provide = Arc<dyn Fn(&[PathBuf]) -> Option<Provision> + Send + Sync>;

/// Settings of a [`Hub`](crate::Hub).
///
/// ```
/// use attache_conn::Link;
/// use attache_hub::Options;
/// use std::time::Duration;
///
/// let options = Options::new("laptop", || async { Link::spawn("my-agent") }).idle(Duration::from_secs(600));
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) node: String,
    pub(crate) start: Arc<dyn Fn() -> Starting + Send + Sync>,
    pub(crate) idle: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) stall: Duration,
    pub(crate) lease: Duration,
    pub(crate) agents: usize,
    pub(crate) warm: usize,
    pub(crate) queue: usize,
    pub(crate) policy: Policy,
    pub(crate) deadline: Option<Duration>,
    pub(crate) info: (String, String),
    #[cfg(unix)]
    pub(crate) provide: Option<Provide>,
    pub(crate) network: Option<Arc<dyn Network>>,
    pub(crate) reachable: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
}

impl Options {
    /// Settings of the hub `node`, which starts an agent with each call of `start`.
    ///
    /// A hub that is started again with the name of its predecessor takes over its sessions at
    /// once; a hub with another name waits for the end of their leases. So the name must not be
    /// that of a hub which is still running.
    pub fn new<F, Fut>(node: impl Into<String>, start: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<Link>> + Send + 'static,
    {
        Options {
            node: node.into(),
            start: Arc::new(move || Box::pin(start())),
            idle: Duration::from_secs(30 * 60),
            start_timeout: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            lease: Duration::from_secs(15),
            agents: 64,
            warm: 0,
            queue: 16,
            policy: Policy::First,
            deadline: None,
            info: (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            #[cfg(unix)]
            provide: None,
            network: None,
            reachable: Arc::new(|directory| directory.is_dir()),
        }
    }

    /// Sets how long an agent is kept after its last turn; 30 minutes by default.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Sets how long an agent may take to start; one minute by default.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets how long a client may take no bytes at all before it is disconnected; one minute by
    /// default.
    #[must_use]
    pub fn stall(mut self, stall: Duration) -> Self {
        self.stall = stall;
        self
    }

    /// Sets how many agents may run at once; 64 by default.
    #[must_use]
    pub fn agents(mut self, most: usize) -> Self {
        self.agents = most;
        self
    }

    /// Sets how many agents are kept started for new sessions; none by default. They count among
    /// those of [`agents`](Self::agents).
    #[must_use]
    pub fn warm(mut self, agents: usize) -> Self {
        self.warm = agents;
        self
    }

    /// Sets how many prompts of a session may wait; 16 by default.
    #[must_use]
    pub fn queue(mut self, most: usize) -> Self {
        self.queue = most;
        self
    }

    /// Sets who decides the questions of agents; the first answer by default.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the time after which a question is rejected; by default it waits.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Provides files and terminals of this machine to agents, and decides their questions by rules
    /// first. `provide` is called for each session with its roots, the working directory first;
    /// `None` provides nothing.
    #[cfg(unix)]
    #[must_use]
    pub fn provide(
        mut self,
        provide: impl Fn(&[PathBuf]) -> Option<Provision> + Send + Sync + 'static,
    ) -> Self {
        self.provide = Some(Arc::new(provide));
        self
    }

    /// Whether agents are offered files and terminals.
    pub(crate) fn provides(&self) -> bool {
        #[cfg(unix)]
        return self.provide.is_some();
        #[cfg(not(unix))]
        false
    }

    /// Shares the journal with other hubs: each of them accepts every client, and passes on to the
    /// owner of a session what clients want of it. Another hub takes a session over when the lease
    /// of its owner ends.
    #[must_use]
    pub fn network(mut self, network: impl Network) -> Self {
        self.network = Some(Arc::new(network));
        self
    }

    /// Sets whether the files of a session are on this machine, by its working directory; by
    /// default those of directories that exist here. Without them a hub on a network does not
    /// become the owner.
    #[must_use]
    pub fn reachable(mut self, reachable: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        self.reachable = Arc::new(reachable);
        self
    }

    /// Sets how long a hub that was killed keeps its sessions from the other ones; 15 seconds by
    /// default.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the name and the version that agents are told.
    #[must_use]
    pub fn info(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.info = (name.into(), version.into());
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("node", &self.node).finish_non_exhaustive()
    }
}
