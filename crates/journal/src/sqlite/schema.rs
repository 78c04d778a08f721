//! The file: its layout, its settings, and the errors of opening it.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_conn::private;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::{Durability, Options};
use crate::error::{Error, Result};

/// How long a call waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long opening waits for other processes that open the same file.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
const OPEN_POLL: Duration = Duration::from_millis(5);

/// The version of the layout.
const VERSION: i64 = 1;

/// Marks the file as a journal: `AttJ`.
const APPLICATION_ID: i64 = 0x4174_744A;

/// Large database pages keep the bytes of a journal page together.
const PAGE_BYTES: i64 = 16 << 10;

/// The write-ahead log is copied into the file after this many database pages: 16 MiB.
const CHECKPOINT_PAGES: i64 = 1024;

/// A page's row has its bytes last, so that other columns are read without them.
const SCHEMA: &str = "
CREATE TABLE counter (epoch INTEGER NOT NULL);
INSERT INTO counter VALUES (0);
CREATE TABLE session (
    id      INTEGER PRIMARY KEY,
    tenant  TEXT NOT NULL,
    name    TEXT NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    owner   TEXT,
    until   INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (tenant, name)
);
CREATE TABLE page (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    contents BLOB NOT NULL,
    body     BLOB NOT NULL
);
CREATE UNIQUE INDEX page_by_position ON page (session, last);
";

/// Opens the file for writing, or creates it.
pub(super) fn open(path: &Path, options: &Options) -> Result<Connection> {
    create(path)?;
    let _lock = lock(path)?;
    let mut connection = connect(path)?;
    if identity(&connection)? == Identity::Empty {
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match options.durability {
        Durability::Flushed => "FULL",
        Durability::Written => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    migrate(&mut connection)?;
    if let Some(bytes) = options.max_bytes {
        let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes / u64::from(page.max(1))).unwrap_or(i64::MAX).max(1);
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(connection)
}

/// Takes the lock for opening the file. SQLite does not wait for other connections while it
/// switches a file to its write-ahead log: without this lock, one of two processes that create the
/// file would fail with "busy".
fn lock(path: &Path) -> Result<File> {
    let mut name = OsString::from(path);
    name.push(".opening");
    let file = private::open_or_create(&PathBuf::from(name))?;
    let deadline = Instant::now() + OPEN_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(OPEN_POLL),
            Err(TryLockError::WouldBlock) => return Err(Error::Busy),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

/// Creates the file before SQLite does, so that it and the files beside it are private.
///
/// A file that exists is not opened here: closing it would release the locks that other connections
/// of this process have on it.
fn create(path: &Path) -> Result<()> {
    match private::create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(private::check_file(path)?),
        created => created.map(drop).map_err(Error::from),
    }
}

/// Opens an existing file.
pub(super) fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

#[derive(PartialEq)]
enum Identity {
    Empty,
    Journal,
}

/// Recognises the file before anything is changed in it.
fn identity(connection: &Connection) -> Result<Identity> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION_ID, VERSION) => Ok(Identity::Journal),
        (APPLICATION_ID, version) => Err(Error::Newer { version }),
        _ if tables == 0 => Ok(Identity::Empty),
        _ => Err(Error::Damaged("the file belongs to another program".into())),
    }
}

/// Creates the tables. Several processes may do that at once, so the file is looked at again inside
/// the transaction.
fn migrate(connection: &mut Connection) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if identity(&transaction)? == Identity::Empty {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.commit()?;
    Ok(())
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Error::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Error::Damaged(error.to_string()),
            _ => Error::Unavailable(Arc::new(error)),
        }
    }
}
