//! The calls that write. Each runs inside a transaction of the writer, and checks everything before
//! it changes anything.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::reader::{integer, number};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::lease::{Claim, Lease, Owner};
use crate::page::StoredPage;
use crate::position::{Epoch, Seq};

pub(super) fn claim(
    connection: &Connection,
    key: &SessionKey,
    claim: &Claim,
    clock: &Clock,
) -> Result<Lease> {
    let now = clock.now();
    let found = connection
        .prepare_cached("SELECT owner, until FROM session WHERE tenant = ?1 AND name = ?2")?
        .query_row([key.tenant(), key.session()], |row| {
            let until = number(row, 1)?;
            Ok(row.get::<_, Option<String>>(0)?.map(|name| Owner { name, until }))
        })
        .optional()?;
    claim.check(found.as_ref().map(Option::as_ref), now)?;
    let epoch = connection
        .prepare_cached("UPDATE counter SET epoch = epoch + 1 RETURNING epoch")?
        .query_row([], |row| number(row, 0))?;
    let until = clock.after(claim.ttl);
    let last = connection
        .prepare_cached(
            "INSERT INTO session (tenant, name, first, last, epoch, owner, until, bytes, updated)
             VALUES (?1, ?2, 1, 0, ?3, ?4, ?5, 0, ?6)
             ON CONFLICT DO UPDATE SET epoch = ?3, owner = ?4, until = ?5
             RETURNING last",
        )?
        .query_row(
            params![key.tenant(), key.session(), integer(epoch), claim.owner, integer(until), integer(now)],
            |row| number(row, 0),
        )?;
    Ok(Lease::new(key.clone(), claim.owner.as_str(), Epoch::new(epoch), Seq::new(last)))
}

/// Fencing: the row is changed only if it has the epoch and the last entry that the writer knows.
pub(super) fn append(connection: &Connection, key: &SessionKey, stored: &StoredPage) -> Result<StoredPage> {
    let before = stored.first().get() - 1;
    let page = stored.page();
    let session = connection
        .prepare_cached(
            "UPDATE session SET last = ?5, bytes = bytes + ?6, updated = ?7
             WHERE tenant = ?1 AND name = ?2 AND epoch = ?3 AND last = ?4
             RETURNING id",
        )?
        .query_row(
            params![
                key.tenant(),
                key.session(),
                integer(stored.epoch().get()),
                integer(before),
                integer(stored.last().get()),
                integer(page.body().len() as u64),
                integer(stored.at()),
            ],
            |row| row.get::<_, i64>(0),
        )
        .optional()?;
    let Some(session) = session else { return find_repeat(connection, key, stored) };
    connection
        .prepare_cached(
            "INSERT INTO page (session, first, last, epoch, at, contents, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            session,
            integer(stored.first().get()),
            integer(stored.last().get()),
            integer(stored.epoch().get()),
            integer(stored.at()),
            &page.index()[..],
            &page.body()[..],
        ])?;
    Ok(stored.clone())
}

/// The same page of an earlier append under the same claim, or the reason for a refusal.
fn find_repeat(connection: &Connection, key: &SessionKey, stored: &StoredPage) -> Result<StoredPage> {
    let found = connection
        .prepare_cached("SELECT id, epoch, last FROM session WHERE tenant = ?1 AND name = ?2")?
        .query_row([key.tenant(), key.session()], |row| {
            Ok((row.get::<_, i64>(0)?, number(row, 1)?, number(row, 2)?))
        })
        .optional()?;
    let Some((session, epoch, last)) = found else { return Err(Error::Fenced) };
    if epoch != stored.epoch().get() {
        return Err(Error::Fenced);
    }
    let at = connection
        .prepare_cached(
            "SELECT at FROM page WHERE session = ?1 AND last = ?2
             AND first = ?3 AND epoch = ?4 AND contents = ?5 AND body = ?6",
        )?
        .query_row(
            params![
                session,
                integer(stored.last().get()),
                integer(stored.first().get()),
                integer(epoch),
                &stored.page().index()[..],
                &stored.page().body()[..],
            ],
            |row| number(row, 0),
        )
        .optional()?;
    match at {
        Some(at) => Ok(StoredPage::new(stored.first(), stored.epoch(), at, stored.page().clone())),
        None => Err(Error::Conflict { last: Seq::new(last) }),
    }
}

/// Renews the lease until `until`, or releases it.
pub(super) fn set_owner(connection: &Connection, lease: &Lease, until: Option<u64>) -> Result<()> {
    let owner = until.map(|_| lease.owner());
    let changed = connection
        .prepare_cached(
            "UPDATE session SET owner = ?4, until = ?5 WHERE tenant = ?1 AND name = ?2 AND epoch = ?3",
        )?
        .execute(params![
            lease.key().tenant(),
            lease.key().session(),
            integer(lease.epoch().get()),
            owner,
            integer(until.unwrap_or_default()),
        ])?;
    if changed == 0 { Err(Error::Fenced) } else { Ok(()) }
}

pub(super) fn forget(connection: &Connection, key: &SessionKey) -> Result<()> {
    let session = connection
        .prepare_cached("DELETE FROM session WHERE tenant = ?1 AND name = ?2 RETURNING id")?
        .query_row([key.tenant(), key.session()], |row| row.get::<_, i64>(0))
        .optional()?
        .ok_or(Error::Unknown)?;
    connection.prepare_cached("DELETE FROM page WHERE session = ?1")?.execute([session])?;
    Ok(())
}

pub(super) fn trim(connection: &Connection, key: &SessionKey, upto: Seq) -> Result<()> {
    let (session, last) = connection
        .prepare_cached("SELECT id, last FROM session WHERE tenant = ?1 AND name = ?2")?
        .query_row([key.tenant(), key.session()], |row| Ok((row.get::<_, i64>(0)?, number(row, 1)?)))
        .optional()?
        .ok_or(Error::Unknown)?;
    // The last page stays, so its last entry is never within the range.
    let upto = integer(upto.get().min(last.saturating_sub(1)));
    let (bytes, removed) = connection
        .prepare_cached(
            "SELECT coalesce(sum(length(body)), 0), max(last) FROM page WHERE session = ?1 AND last <= ?2",
        )?
        .query_row(params![session, upto], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
    let Some(removed) = removed else { return Ok(()) };
    connection
        .prepare_cached("DELETE FROM page WHERE session = ?1 AND last <= ?2")?
        .execute(params![session, upto])?;
    connection
        .prepare_cached("UPDATE session SET first = ?2 + 1, bytes = bytes - ?3 WHERE id = ?1")?
        .execute(params![session, removed, bytes])?;
    Ok(())
}
