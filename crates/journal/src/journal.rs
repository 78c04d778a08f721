//! The handle that users of a journal have.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::Backend;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::follow::{Follower, Pages};
use crate::key::SessionKey;
use crate::lease::{Claim, Lease, SessionInfo};
use crate::memory::Memory;
use crate::page::{Page, StoredPage};
use crate::position::Seq;
use crate::sqlite;
use crate::tail::Tails;

/// The logs of all sessions. Cheap to clone; clones share followers' pages.
///
/// Calls that write run in a task of their own: dropping their future does not undo them, and
/// followers see their effect.
#[derive(Clone)]
pub struct Journal {
    backend: Arc<dyn Backend>,
    tails: Arc<Tails>,
}

impl Journal {
    /// A journal on a backend.
    pub fn new(backend: impl Backend) -> Self {
        Journal { backend: Arc::new(backend), tails: Arc::default() }
    }

    /// A journal in memory, for tests.
    pub fn memory() -> Self {
        Self::new(Memory::new(Clock::system()))
    }

    /// A journal in a SQLite file, which is created if there is none.
    ///
    /// # Errors
    /// As those of [`Sqlite::open`](sqlite::Sqlite::open).
    pub async fn sqlite(path: &Path, options: sqlite::Options) -> Result<Self> {
        Ok(Self::new(sqlite::Sqlite::open(path, options).await?))
    }

    /// A journal on a NATS server with JetStream.
    ///
    /// # Errors
    /// As those of [`Nats::connect`](crate::nats::Nats::connect).
    #[cfg(feature = "nats")]
    pub async fn nats(url: &str, options: crate::nats::Options) -> Result<Self> {
        Ok(Self::new(crate::nats::Nats::connect(url, options).await?))
    }

    /// Claims the right to append to a session, and ends all earlier leases of it.
    ///
    /// # Errors
    /// [`Error::Held`] if another owner has a lease with time left and the claim is not forced;
    /// [`Error::Unknown`] if the session has to exist and does not.
    pub async fn claim(&self, key: &SessionKey, claim: &Claim) -> Result<Lease> {
        self.backend.claim(key, claim).await
    }

    /// Appends a page after the entry `after`, and returns the number of its last entry when the
    /// page is durable.
    ///
    /// After an error with an unknown outcome, or if the future was dropped, the same call can be
    /// repeated: the page appears once.
    ///
    /// # Errors
    /// [`Error::Fenced`] if the lease ended; [`Error::Conflict`] if `after` is not the last entry
    /// and the call is not a repeat; [`Error::EmptyPage`]; [`Error::Full`] and other errors of the
    /// backend.
    pub async fn append(&self, lease: &Lease, after: Seq, page: Page) -> Result<Seq> {
        if page.is_empty() {
            return Err(Error::EmptyPage);
        }
        let (journal, lease) = (self.clone(), lease.share());
        detach(async move { journal.append_and_show(&lease, after, &page).await }).await
    }

    async fn append_and_show(&self, lease: &Lease, after: Seq, page: &Page) -> Result<Seq> {
        let appended: Result<StoredPage> = self.backend.append(lease, after, page).await;
        match &appended {
            Ok(stored) => self.tails.push(lease.key(), stored),
            // It may have been stored nevertheless.
            Err(Error::Unavailable(_) | Error::Closed) => self.tails.invalidate(lease.key()),
            Err(_) => {}
        }
        appended.map(|stored| stored.last())
    }

    /// Extends a lease by `ttl` from now. A lease whose time is over can be renewed until another
    /// owner claims the session.
    ///
    /// # Errors
    /// [`Error::Fenced`] if the lease ended.
    pub async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()> {
        self.backend.renew(lease, ttl).await
    }

    /// Ends a lease, so that others can claim the session at once.
    ///
    /// # Errors
    /// [`Error::Fenced`] if it had ended before.
    pub async fn release(&self, lease: Lease) -> Result<()> {
        self.backend.release(&lease).await
    }

    /// Reads the entries after `after`, up to `upto` or the entry that is the last one now.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Trimmed`] and [`Error::PastEnd`] if `after` is not a position
    /// of the log.
    pub async fn read(&self, key: &SessionKey, after: Seq, upto: Option<Seq>) -> Result<Pages> {
        let info = self.info(key).await?;
        check_position(&info, after)?;
        let upto = upto.map_or(info.last, |upto| upto.min(info.last));
        Ok(Pages::new(self.backend.clone(), key.clone(), after, upto))
    }

    /// Follows a session from the entry after `after`: replays up to the present last entry, then
    /// waits for new ones.
    ///
    /// # Errors
    /// As those of [`read`](Self::read).
    pub async fn follow(&self, key: &SessionKey, after: Seq) -> Result<Follower> {
        let tail = self.tails.follow(key);
        let changes = self.backend.changes(key);
        let info = self.info(key).await?;
        check_position(&info, after)?;
        Ok(Follower::new(self.backend.clone(), key.clone(), after, info.last, tail, changes))
    }

    /// The state of a session.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is none.
    pub async fn info(&self, key: &SessionKey) -> Result<SessionInfo> {
        self.backend.info(key).await
    }

    /// At most `limit` sessions of a tenant, ordered by id, from the one behind the id `after`.
    ///
    /// # Errors
    /// Errors of the backend.
    pub async fn list(&self, tenant: &str, after: Option<&str>, limit: usize) -> Result<Vec<SessionInfo>> {
        self.backend.list(tenant, after, limit).await
    }

    /// Removes a session. Its leases and followers end.
    ///
    /// A follower in another process may miss that if a session of the same name is created at
    /// once, so names should not be reused.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is none.
    pub async fn forget(&self, key: &SessionKey) -> Result<()> {
        let (journal, key) = (self.clone(), key.clone());
        detach(async move {
            let forgotten = journal.backend.forget(&key).await;
            if forgotten.is_ok() {
                journal.tails.forget(&key);
            }
            forgotten
        })
        .await
    }

    /// Removes the pages whose entries are all at or before `upto`, except for the last page.
    ///
    /// # Errors
    /// [`Error::Unknown`] if there is no such session.
    pub async fn trim(&self, key: &SessionKey, upto: Seq) -> Result<()> {
        self.backend.trim(key, upto).await
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Journal")
    }
}

fn check_position(info: &SessionInfo, after: Seq) -> Result<()> {
    if after > info.last {
        return Err(Error::PastEnd { last: info.last });
    }
    match after.plus(1) < info.first {
        true => Err(Error::Trimmed { first: info.first }),
        false => Ok(()),
    }
}

/// Runs a future to its end, also when the caller's future is dropped.
async fn detach<T: Send + 'static>(future: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    // The task fails only if the runtime ends or the backend panics.
    tokio::spawn(future).await.unwrap_or(Err(Error::Closed))
}
