//! The calls that read.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::sync::Semaphore;

use super::schema;
use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::lease::{Owner, SessionInfo};
use crate::page::{Page, StoredPage};
use crate::position::{Epoch, Seq};

/// The most reads at a time; others wait.
const MAX_READS: usize = 4;

const INFO_COLUMNS: &str = "tenant, name, first, last, epoch, owner, until, bytes, updated";

/// Connections for reading. Idle ones are kept.
pub(super) struct Readers {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
}

struct Shared {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Readers {
            shared: Arc::new(Shared { path, idle: Mutex::default() }),
            permits: Arc::new(Semaphore::new(MAX_READS)),
        }
    }

    /// Runs a read on a blocking thread, in a transaction.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        let shared = self.shared.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let idle = shared.idle.lock().pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => schema::connect(&shared.path)?,
            };
            // A connection that failed is not used again.
            let transaction = connection.transaction()?;
            let result = read(&transaction);
            transaction.commit()?;
            shared.idle.lock().push(connection);
            result
        });
        reading.await.unwrap_or(Err(Error::Closed))
    }
}

pub(super) fn info(connection: &Connection, key: &SessionKey) -> Result<SessionInfo> {
    connection
        .prepare_cached(&format!("SELECT {INFO_COLUMNS} FROM session WHERE tenant = ?1 AND name = ?2"))?
        .query_row([key.tenant(), key.session()], |row| Ok(session_info(row)))
        .optional()?
        .ok_or(Error::Unknown)?
}

pub(super) fn list(
    connection: &Connection,
    tenant: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<SessionInfo>> {
    let mut select = connection.prepare_cached(&format!(
        "SELECT {INFO_COLUMNS} FROM session WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3"
    ))?;
    let mut rows = select.query(params![tenant, after, i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(session_info(row)?);
    }
    Ok(sessions)
}

pub(super) fn pages(
    connection: &Connection,
    key: &SessionKey,
    after: Seq,
    upto: Seq,
    max_bytes: usize,
) -> Result<Vec<StoredPage>> {
    let (session, first, last) = connection
        .prepare_cached("SELECT id, first, last FROM session WHERE tenant = ?1 AND name = ?2")?
        .query_row([key.tenant(), key.session()], |row| {
            Ok((row.get::<_, i64>(0)?, Seq::new(number(row, 1)?), Seq::new(number(row, 2)?)))
        })
        .optional()?
        .ok_or(Error::Unknown)?;
    if after > last {
        return Err(Error::PastEnd { last });
    }
    if after.plus(1) < first {
        return Err(Error::Trimmed { first });
    }
    let mut select = connection.prepare_cached(
        "SELECT first, last, epoch, at, contents, body FROM page WHERE session = ?1 AND last > ?2 ORDER BY last",
    )?;
    let mut rows = select.query(params![session, integer(after.get())])?;
    let (mut pages, mut bytes, mut reached) = (Vec::new(), 0, after);
    while reached < upto.min(last) && bytes < max_bytes {
        let missing = || Error::Damaged(format!("entry {} is missing", reached.plus(1)));
        let page = stored_page(rows.next()?.ok_or_else(missing)?)?;
        if page.first() > reached.plus(1) || (reached > after && page.first() <= reached) {
            return Err(missing());
        }
        reached = page.last();
        bytes += page.page().weight();
        pages.push(page);
    }
    Ok(pages)
}

fn stored_page(row: &Row<'_>) -> Result<StoredPage> {
    let blob = |column| -> Result<Bytes> {
        let value = row.get_ref(column)?;
        let bytes = value.as_blob().map_err(|error| Error::Damaged(error.to_string()))?;
        Ok(Bytes::copy_from_slice(bytes))
    };
    let page = Page::from_parts(blob(5)?, blob(4)?)?;
    let stored =
        StoredPage::new(Seq::new(number(row, 0)?), Epoch::new(number(row, 2)?), number(row, 3)?, page);
    match stored.last().get() == number(row, 1)? {
        true => Ok(stored),
        false => Err(Error::Damaged(format!("page {} has the wrong length", stored.first()))),
    }
}

fn session_info(row: &Row<'_>) -> Result<SessionInfo> {
    let key = SessionKey::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?)
        .map_err(|error| Error::Damaged(error.to_string()))?;
    let until = number(row, 6)?;
    Ok(SessionInfo {
        key,
        first: Seq::new(number(row, 2)?),
        last: Seq::new(number(row, 3)?),
        epoch: Epoch::new(number(row, 4)?),
        owner: row.get::<_, Option<String>>(5)?.map(|name| Owner { name, until }),
        bytes: number(row, 7)?,
        updated: number(row, 8)?,
    })
}

/// A number as SQLite stores it. Numbers of a journal are below 2^63.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A stored number. A negative one, which is never written, becomes zero.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}
