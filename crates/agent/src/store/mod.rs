//! Sessions on disk: one SQLite file, any number of processes.
//!
//! A session is a row and a log. An update is logged *before* it is sent, so after a crash a
//! session loads with everything that its client had seen. The log is append-only; the model's
//! conversation ([`Log::context`]) and the client's replay ([`Log::replay`]) are folds over it.
//!
//! Read `entry.rs` (entries), this file (the database), `fold.rs`, `sessions.rs` (the list of
//! sessions), `files.rs` (old content of files), `undo.rs` and `temp_files.rs` (cleanup after a
//! crash).
//!
//! Invariants: entries never change; no secret from the environment, and no token of a known form,
//! is in the log; no call waits for the network or for a lock besides the database's.

mod entry;
mod files;
mod fold;
mod sessions;
mod stored_path;
mod temp_files;
mod undo;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache_conn::private;
use attache_host::secrets::Mask;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

pub use entry::{Change, Entry, FileState, Log, Logged, Mark};
pub use files::{Snapshot, SnapshotLimits};
pub use sessions::{Archived, Filter, NewRow, Page, Row};
pub use undo::UndoError;

/// How long a write waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The version of the schema; see [`migrate`].
const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE session (
    id       TEXT PRIMARY KEY,
    cwd      TEXT NOT NULL,
    roots    TEXT NOT NULL,
    title    TEXT,
    named    INTEGER NOT NULL DEFAULT 0,
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    parent   TEXT
) WITHOUT ROWID;
CREATE INDEX session_by_time ON session (updated DESC, id);
CREATE TABLE entry (
    session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE TABLE blob (
    session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    hash    TEXT NOT NULL,
    bytes   BLOB NOT NULL,
    PRIMARY KEY (session, hash)
);
";

/// An error of the store. The text gives advice.
#[derive(Debug)]
pub enum StoreError {
    /// The file cannot be opened, read or written.
    Database(rusqlite::Error),
    /// An error of the file system.
    Io(std::io::Error),
    /// A file of the project cannot be read.
    File(std::io::Error),
    /// A newer program wrote the file.
    Newer(i64),
    /// The session does not exist.
    Unknown(String),
    /// The session exists already.
    Exists(String),
    /// An entry cannot be read.
    Damaged(String),
    /// A cursor that is not this store's.
    InvalidCursor,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Database(error) => match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DiskFull) => {
                    f.write_str("the disk is full: sessions cannot be saved until there is room")
                }
                Some(rusqlite::ErrorCode::DatabaseBusy) => {
                    f.write_str("the sessions are locked by another process for too long; try again")
                }
                Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                    f.write_str("the session file is damaged; move it away to start with a new one")
                }
                _ => write!(f, "the sessions cannot be read or saved: {error}"),
            },
            StoreError::Io(error) => write!(f, "the sessions cannot be read or saved: {error}"),
            StoreError::File(error) => error.fmt(f),
            StoreError::Newer(version) => write!(
                f,
                "the sessions were saved by a newer version of this program (layout {version}); update it"
            ),
            StoreError::Unknown(id) => write!(f, "no session \"{id}\""),
            StoreError::Exists(id) => write!(f, "the session \"{id}\" exists already"),
            StoreError::InvalidCursor => f.write_str("invalid cursor"),
            StoreError::Damaged(what) => write!(f, "a saved session is damaged: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Database(error)
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        StoreError::Io(error)
    }
}

/// Errors that the user can fix are sent to the client; others are internal.
impl From<StoreError> for attache::Error {
    fn from(error: StoreError) -> Self {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DiskFull, NotADatabase};
        match &error {
            // RPC-18
            StoreError::Unknown(_) => attache::Error::not_found(error.to_string()),
            // LIST-07
            StoreError::InvalidCursor => attache::Error::invalid_params(error.to_string()),
            StoreError::Newer(_) | StoreError::Damaged(_) => {
                attache::Error::refuse(attache::code::INTERNAL_ERROR, error.to_string())
            }
            StoreError::Database(cause)
                if matches!(
                    cause.sqlite_error_code(),
                    Some(DiskFull | DatabaseBusy | NotADatabase | DatabaseCorrupt)
                ) =>
            {
                attache::Error::refuse(attache::code::INTERNAL_ERROR, error.to_string())
            }
            _ => attache::Error::internal(error),
        }
    }
}

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// The sessions of one user.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    connection: Mutex<Connection>,
    mask: Mask,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens the file, or creates it, readable by its owner only.
    pub fn open(path: &Path, mask: Mask) -> Result<Self> {
        if let Some(directory) = path.parent() {
            private::create_directory(directory)?;
        }
        // Created before SQLite creates it, so that it and the files beside it are private.
        private::open_or_create(path)?;
        Self::prepare(Connection::open(path)?, mask)
    }

    /// A store in memory.
    pub fn memory() -> Result<Self> {
        Self::prepare(Connection::open_in_memory()?, Mask::new())
    }

    fn prepare(mut connection: Connection, mask: Mask) -> Result<Self> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A commit to the write-ahead log survives the death of this process, but not always a
        // power cut: that would need a disk flush for every few words of a model.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection)?;
        Ok(Store(Arc::new(Inner { connection: Mutex::new(connection), mask })))
    }

    /// Appends to a session's log, all or nothing. The entries then outlive this process.
    pub fn append(&self, session: &str, entries: &[Entry]) -> Result<()> {
        let mut rows: Vec<(String, String)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let (kind, body) = entry.encode().map_err(|error| StoreError::Damaged(error.to_string()))?;
            rows.push((kind, self.0.mask.frame_tokens(&body).into_owned()));
        }
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now = now();
        let touched = transaction
            .prepare_cached("UPDATE session SET updated = max(updated, ?2) WHERE id = ?1")?
            .execute(params![session, now])?;
        if touched == 0 {
            return Err(StoreError::Unknown(session.to_owned()));
        }
        let last = last(&transaction, session)?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO entry (session, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for (seq, (kind, body)) in (last + 1..).zip(&rows) {
                insert.execute(params![session, seq, now, kind, body])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// The whole log of a session, oldest first.
    pub fn read(&self, session: &str) -> Result<Log> {
        let connection = self.connection();
        check_exists(&connection, session)?;
        let mut select = connection
            .prepare_cached("SELECT seq, at, kind, body FROM entry WHERE session = ?1 ORDER BY seq")?;
        let rows = select.query_map([session], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, String>(3)?,
            ))
        })?;
        let mut log = Vec::new();
        for row in rows {
            let (seq, at, kind, body) = row?;
            // Kinds of later versions are skipped.
            if let Some(entry) = Entry::decode(&kind, &body)
                .map_err(|why| StoreError::Damaged(format!("entry {seq} of {session}: {why}")))?
            {
                log.push(Logged { seq, at, entry });
            }
        }
        Ok(Log(log))
    }

    /// The position of the last entry of a session's log; 0 if it is empty.
    pub fn last(&self, session: &str) -> Result<i64> {
        last(&self.connection(), session)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic rolled its transaction back, so the connection is usable.
        self.0.connection.lock()
    }
}

fn last(connection: &Connection, session: &str) -> Result<i64> {
    let mut select =
        connection.prepare_cached("SELECT coalesce(max(seq), 0) FROM entry WHERE session = ?1")?;
    Ok(select.query_row([session], |row| row.get(0))?)
}

/// Fails unless the session exists.
fn check_exists(connection: &Connection, session: &str) -> Result<()> {
    let found = connection
        .prepare_cached("SELECT 1 FROM session WHERE id = ?1")?
        .query_row([session], |_| Ok(()))
        .optional()?;
    found.ok_or_else(|| StoreError::Unknown(session.to_owned()))
}

/// Brings the file to this program's schema. Several processes may open a new file at once, so the
/// version is read again inside the transaction.
fn migrate(connection: &mut Connection) -> Result<()> {
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
    };
    match version(connection)? {
        VERSION => return Ok(()),
        newer if newer > VERSION => return Err(StoreError::Newer(newer)),
        _ => {}
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&transaction)? == 0 {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "files_tests.rs"]
mod files_tests;

#[cfg(test)]
#[path = "undo_tests.rs"]
mod undo_tests;
