//! The clients of a server: how many there are, and how they are closed.

use super::access::Identity;
use super::connection::Connection;
use super::options::Limits;
use super::usage::{Counter, Full, HeldBytes, Usage};
use crate::ws::Closer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(super) struct Registry {
    inner: Mutex<Inner>,
    clients: Arc<Semaphore>,
    per_identity: usize,
    held: Counter,
    received: Counter,
}

#[derive(Debug, Default)]
struct Inner {
    connections: HashMap<String, Arc<Connection>>,
    /// WebSockets by connection id.
    sockets: HashMap<String, (Option<Identity>, Closer)>,
    identities: HashMap<Identity, TokenUsage>,
}

/// The clients of one token, with what they use together.
#[derive(Debug)]
struct TokenUsage {
    clients: Arc<Semaphore>,
    usage: Usage,
}

/// A place of a client, until it is dropped.
#[derive(Debug)]
pub(super) struct Admission {
    _permits: Vec<OwnedSemaphorePermit>,
    pub(super) usage: Usage,
}

/// A client over WebSocket, until its socket is dropped.
pub(super) struct SocketClient {
    id: String,
    registry: Arc<Registry>,
    _admission: Admission,
}

impl SocketClient {
    pub(super) fn new(registry: &Arc<Registry>, id: &str, admission: Admission) -> Self {
        SocketClient { id: id.to_owned(), registry: Arc::clone(registry), _admission: admission }
    }
}

impl Drop for SocketClient {
    fn drop(&mut self) {
        self.registry.lock().sockets.remove(&self.id);
    }
}

/// WebSocket statuses of RFC 6455 and the IANA registry.
pub(super) mod status {
    /// Refused by a policy or limit.
    pub(in super::super) const POLICY: u16 = 1008;
    /// The server restarts.
    pub(in super::super) const RESTART: u16 = 1012;
    /// Try again later.
    pub(in super::super) const OVERLOADED: u16 = 1013;
}

impl Registry {
    pub(super) fn new(limits: &Limits) -> Registry {
        Registry {
            inner: Mutex::default(),
            clients: Arc::new(Semaphore::new(limits.connections)),
            per_identity: limits.connections_per_identity,
            held: Counter::default(),
            received: Counter::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a place for a client.
    pub(super) fn reserve(&self, identity: Option<&Identity>) -> Result<Admission, Full> {
        let mut permits = vec![Arc::clone(&self.clients).try_acquire_owned().map_err(|_| Full::Server)?];
        let mut inner = self.lock();
        let token = identity.map(|identity| self.token(&mut inner, identity));
        let usage = match token {
            Some(token) => {
                permits.push(Arc::clone(&token.clients).try_acquire_owned().map_err(|_| Full::Identity)?);
                token.usage.clone()
            }
            None => self.new_usage(),
        };
        Ok(Admission { _permits: permits, usage })
    }

    /// A counter of the bytes of a request, none yet.
    pub(super) fn received(&self, identity: Option<&Identity>) -> HeldBytes {
        match identity {
            Some(identity) => HeldBytes::received(&self.token(&mut self.lock(), identity).usage),
            None => HeldBytes::received(&self.new_usage()),
        }
    }

    fn token<'a>(&self, inner: &'a mut Inner, identity: &Identity) -> &'a TokenUsage {
        inner.identities.entry(identity.clone()).or_insert_with(|| TokenUsage {
            clients: Arc::new(Semaphore::new(self.per_identity)),
            usage: self.new_usage(),
        })
    }

    fn new_usage(&self) -> Usage {
        Usage { held: self.held.clone(), received: self.received.clone(), ..Usage::default() }
    }

    pub(super) fn insert_socket(&self, id: &str, identity: Option<Identity>, closer: Closer) {
        self.lock().sockets.insert(id.to_owned(), (identity, closer));
    }

    /// Closes the clients whose token is revoked.
    pub(super) fn remove_revoked(&self, is_revoked: impl Fn(Option<&Identity>) -> bool) {
        let (connections, sockets) = {
            let inner = self.lock();
            let connections = inner.connections.values().filter(|known| is_revoked(known.identity.as_ref()));
            let sockets = inner.sockets.values().filter(|(identity, _)| is_revoked(identity.as_ref()));
            let sockets: Vec<Closer> = sockets.map(|(_, closer)| closer.clone()).collect();
            (connections.cloned().collect::<Vec<_>>(), sockets)
        };
        for connection in connections {
            self.remove(&connection.id);
            connection.end(true);
        }
        sockets.iter().for_each(|closer| closer.close(status::POLICY, "the token was revoked"));
    }

    pub(super) fn insert(&self, connection: &Arc<Connection>) {
        self.lock().connections.insert(connection.id.clone(), Arc::clone(connection));
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Connection>> {
        self.lock().connections.remove(id)
    }

    /// Finds a connection of the same owner and endpoint. One of another owner is as unknown as one
    /// that never was.
    pub(super) fn get(
        &self,
        id: &str,
        identity: Option<&Identity>,
        name: Option<&str>,
    ) -> Option<Arc<Connection>> {
        let connection = self.lock().connections.get(id).cloned()?;
        let is_own = connection.identity.as_ref() == identity && connection.name.as_deref() == name;
        is_own.then_some(connection)
    }

    /// Removes connections whose client or agent is gone.
    pub(super) fn remove_idle(&self, now: Instant) {
        let all: Vec<Arc<Connection>> = self.lock().connections.values().cloned().collect();
        for connection in all {
            // An agent that has ended dropped its link, and what its last streams delivered counts
            // as activity.
            if connection.is_idle(now) {
                tracing::debug!("an idle client over HTTP is removed");
                connection.end(true);
                self.remove(&connection.id);
            }
        }
    }

    /// Closes all WebSockets.
    pub(super) fn close_sockets(&self, code: u16, reason: &str) {
        let all: Vec<Closer> = self.lock().sockets.values().map(|(_, closer)| closer.clone()).collect();
        all.iter().for_each(|closer| closer.close(code, reason));
    }

    /// Ends all connections over Streamable HTTP.
    pub(super) fn close(&self) {
        let all: Vec<Arc<Connection>> =
            self.lock().connections.drain().map(|(_, connection)| connection).collect();
        all.iter().for_each(|connection| connection.end(false));
    }
}
