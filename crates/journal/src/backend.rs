//! The trait of storage backends.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::lease::{Claim, Lease, SessionInfo};
use crate::page::{Page, StoredPage};
use crate::position::Seq;

/// A future of a [`Backend`], boxed because the backend is chosen at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Storage of a [`Journal`](crate::Journal). The laws of the crate are the contract.
///
/// A backend stores, fences and reads. Following, sharing of live pages and splitting at the
/// watermark are done once for all backends, by the journal. A future that is dropped may or may
/// not take effect.
pub trait Backend: Send + Sync + 'static {
    /// Makes `claim.owner()` the owner and ends all earlier leases of the session.
    fn claim<'a>(&'a self, key: &'a SessionKey, claim: &'a Claim) -> BoxFuture<'a, Lease>;

    /// Appends a page after the entry `after`, which has to be the last one. Repeats succeed
    /// without effect. The page is durable when the future completes. It has at least one entry.
    fn append<'a>(&'a self, lease: &'a Lease, after: Seq, page: &'a Page) -> BoxFuture<'a, StoredPage>;

    /// Extends a lease by `ttl` from now.
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, ()>;

    /// Removes the owner, so that others can claim the session at once.
    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, ()>;

    /// Reads whole pages from the one that contains the entry after `after`, in order, until they
    /// have `max_bytes` together or the entry `upto` is reached. At least one page if there is one;
    /// empty at the end of the log.
    fn read<'a>(
        &'a self,
        key: &'a SessionKey,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> BoxFuture<'a, Vec<StoredPage>>;

    /// The state of a session.
    fn info<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, SessionInfo>;

    /// At most `limit` sessions of a tenant, by id in byte order, from the one behind `after`.
    fn list<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Vec<SessionInfo>>;

    /// Removes a session and ends its leases.
    fn forget<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, ()>;

    /// Removes the pages whose entries are all at or before `upto`, except for the last page.
    fn trim<'a>(&'a self, key: &'a SessionKey, upto: Seq) -> BoxFuture<'a, ()>;

    /// Notices of appends to a session by others than this object: other processes, other nodes.
    fn changes(&self, key: &SessionKey) -> Changes;
}

/// Notices that a session may have changed. They are hints: some may be wrong, none is missing.
pub struct Changes {
    receiver: Option<watch::Receiver<u64>>,
    _source: Option<Box<dyn Any + Send + Sync>>,
}

impl Changes {
    /// No notices, because only this object appends.
    pub fn none() -> Self {
        Changes { receiver: None, _source: None }
    }

    /// A notice for each change of the value. `source` is dropped together with the notices.
    pub fn new(receiver: watch::Receiver<u64>, source: Option<Box<dyn Any + Send + Sync>>) -> Self {
        Changes { receiver: Some(receiver), _source: source }
    }

    /// Whether there was a notice since the last call.
    pub(crate) fn take(&mut self) -> bool {
        let Some(receiver) = &mut self.receiver else { return false };
        // That the backend has stopped is reported by `wait`.
        let changed = receiver.has_changed().unwrap_or(false);
        receiver.mark_unchanged();
        changed
    }

    /// Waits for the next notice.
    ///
    /// # Errors
    /// [`Error::Closed`] if the backend has stopped.
    pub(crate) async fn wait(&mut self) -> Result<()> {
        match &mut self.receiver {
            Some(receiver) => receiver.changed().await.map_err(|_| Error::Closed),
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Changes")
    }
}
