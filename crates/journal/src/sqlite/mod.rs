//! The backend in a SQLite file, for one machine.
//!
//! A writer thread owns the writing connection. It puts all calls that are waiting into one
//! transaction (*group commit*), so many sessions share a disk flush. Reads run on tokio's blocking
//! threads with connections of their own; they do not wait for writes.
//!
//! Several processes may use one file. SQLite has no notices between processes, so followers of
//! what others append rely on polling ([`Options::poll_interval`]).
//!
//! Read `schema.rs`, then `writer.rs`, `statements.rs` and `reader.rs`.

mod reader;
mod schema;
mod statements;
mod writer;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::backend::{Backend, BoxFuture, Changes};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::lease::{Claim, Lease, SessionInfo};
use crate::page::{Page, StoredPage};
use crate::position::Seq;

use reader::Readers;
use writer::Writer;

/// The moment from which an acknowledged page is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After a disk flush: it survives a power cut.
    #[default]
    Flushed,
    /// After the write: it survives the death of the process, but the last ones may be lost in a
    /// power cut.
    Written,
}

/// Settings of a SQLite journal.
#[derive(Debug, Clone)]
pub struct Options {
    durability: Durability,
    max_bytes: Option<u64>,
    poll_interval: Option<Duration>,
    clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::default(),
            max_bytes: None,
            poll_interval: Some(Duration::from_millis(50)),
            clock: Clock::system(),
        }
    }
}

impl Options {
    /// Sets when an append is acknowledged.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the most bytes of the file. Appends beyond it fail with [`Error::Full`].
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Sets how often the file is checked for appends of other processes while sessions are
    /// followed. The default is 50 ms. With `None` followers see appends of this process only, and
    /// an idle process does not wake up.
    #[must_use]
    pub fn poll_interval(mut self, interval: Option<Duration>) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

/// Logs in a SQLite file.
pub struct Sqlite {
    clock: Clock,
    writer: Writer,
    readers: Readers,
}

impl Sqlite {
    /// Opens a file, or creates it, readable by its owner only. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is not a journal or cannot be read; [`Error::Newer`] if a newer
    /// program wrote it; [`Error::Busy`], [`Error::Full`] and [`Error::Unavailable`] if it cannot
    /// be opened.
    pub async fn open(path: &Path, options: Options) -> Result<Self> {
        let path = path.to_owned();
        let opening = tokio::task::spawn_blocking(move || {
            let connection = schema::open(&path, &options)?;
            let writer = Writer::start(connection, options.poll_interval)?;
            Ok(Sqlite { clock: options.clock, writer, readers: Readers::new(path) })
        });
        opening.await.unwrap_or(Err(Error::Closed))
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sqlite")
    }
}

impl Backend for Sqlite {
    fn claim<'a>(&'a self, key: &'a SessionKey, claim: &'a Claim) -> BoxFuture<'a, Lease> {
        let (key, claim, clock) = (key.clone(), claim.clone(), self.clock.clone());
        Box::pin(self.writer.write(0, move |connection| statements::claim(connection, &key, &claim, &clock)))
    }

    fn append<'a>(&'a self, lease: &'a Lease, after: Seq, page: &'a Page) -> BoxFuture<'a, StoredPage> {
        let stored = StoredPage::new(after.plus(1), lease.epoch(), self.clock.now(), page.clone());
        let key = lease.key().clone();
        Box::pin(
            self.writer.write(page.weight(), move |connection| statements::append(connection, &key, &stored)),
        )
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, ()> {
        let (lease, until) = (lease.share(), self.clock.after(ttl));
        Box::pin(
            self.writer.write(0, move |connection| statements::set_owner(connection, &lease, Some(until))),
        )
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, ()> {
        let lease = lease.share();
        Box::pin(self.writer.write(0, move |connection| statements::set_owner(connection, &lease, None)))
    }

    fn read<'a>(
        &'a self,
        key: &'a SessionKey,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> BoxFuture<'a, Vec<StoredPage>> {
        let key = key.clone();
        Box::pin(self.readers.read(move |connection| reader::pages(connection, &key, after, upto, max_bytes)))
    }

    fn info<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, SessionInfo> {
        let key = key.clone();
        Box::pin(self.readers.read(move |connection| reader::info(connection, &key)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Vec<SessionInfo>> {
        let (tenant, after) = (tenant.to_owned(), after.unwrap_or_default().to_owned());
        Box::pin(self.readers.read(move |connection| reader::list(connection, &tenant, &after, limit)))
    }

    fn forget<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, ()> {
        let key = key.clone();
        Box::pin(self.writer.write(0, move |connection| statements::forget(connection, &key)))
    }

    fn trim<'a>(&'a self, key: &'a SessionKey, upto: Seq) -> BoxFuture<'a, ()> {
        let key = key.clone();
        Box::pin(self.writer.write(0, move |connection| statements::trim(connection, &key, upto)))
    }

    fn changes(&self, _key: &SessionKey) -> Changes {
        self.writer.changes()
    }
}
