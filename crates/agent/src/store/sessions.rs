//! The list of sessions: created, listed, titled, forked, archived, deleted.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, TransactionBehavior, params};

use super::stored_path::{list_from_json, list_to_json};
use super::{Result, Store, StoreError, check_exists, now};

/// A session to be created.
#[derive(Debug, Clone)]
pub struct NewRow<'a> {
    pub id: &'a str,
    pub cwd: &'a Path,
    pub roots: &'a [PathBuf],
}

/// A session in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub cwd: PathBuf,
    pub roots: Vec<PathBuf>,
    pub title: Option<String>,
    /// Whether the title was given by the client, which no generated one may replace.
    // SSTAT-09
    pub named: bool,
    /// Milliseconds since 1970.
    pub created: i64,
    /// Milliseconds since 1970 of its last entry.
    pub updated: i64,
    /// The same as ISO 8601 in UTC.
    pub updated_at: String,
    pub archived: bool,
    pub parent: Option<String>,
}

/// Selects sessions.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub cwd: Option<PathBuf>,
    pub archived: Archived,
}

/// Whether archived sessions are included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Archived {
    #[default]
    Exclude,
    Include,
    Only,
}

/// A page of the list.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Newest first.
    pub rows: Vec<Row>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

const COLUMNS: &str = "id, cwd, roots, title, named, created, updated, archived, parent, \
                       strftime('%Y-%m-%dT%H:%M:%fZ', updated / 1000.0, 'unixepoch')";

impl Store {
    /// Creates a session.
    pub fn create(&self, new: &NewRow<'_>) -> Result<()> {
        let roots = list_to_json(new.roots);
        let at = now();
        let made = self.connection().execute(
            "INSERT INTO session (id, cwd, roots, created, updated) VALUES (?1, ?2, ?3, ?4, ?4) ON CONFLICT DO NOTHING",
            params![new.id, path_text(new.cwd), roots, at],
        )?;
        if made == 0 { Err(StoreError::Exists(new.id.to_owned())) } else { Ok(()) }
    }

    /// Returns a session's row.
    pub fn row(&self, id: &str) -> Result<Row> {
        let connection = self.connection();
        let mut select =
            connection.prepare_cached(&format!("SELECT {COLUMNS} FROM session WHERE id = ?1"))?;
        select.query_row([id], read_row).optional()?.ok_or_else(|| StoreError::Unknown(id.to_owned()))
    }

    /// Lists sessions, newest first, at most `limit` after `cursor`. A session that moves to the
    /// front between two pages is neither repeated nor does it hide another.
    pub fn list(&self, filter: &Filter, cursor: Option<&str>, limit: usize) -> Result<Page> {
        let (before, after_id) = match cursor {
            None => (i64::MAX, String::new()),
            Some(cursor) => read_cursor(cursor).ok_or(StoreError::InvalidCursor)?,
        };
        let cwd = filter.cwd.as_deref().map(path_text);
        let connection = self.connection();
        let mut select = connection.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM session
             WHERE (updated < ?1 OR (updated = ?1 AND id > ?2)) AND (?3 IS NULL OR cwd = ?3) AND archived BETWEEN ?4 AND ?5
             ORDER BY updated DESC, id LIMIT ?6"
        ))?;
        let (least, most) = match filter.archived {
            Archived::Exclude => (0, 0),
            Archived::Include => (0, 1),
            Archived::Only => (1, 1),
        };
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let rows = select.query_map(params![before, after_id, cwd, least, most, wanted], read_row)?;
        let mut rows = rows.collect::<std::result::Result<Vec<Row>, _>>()?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.updated, row.id));
        Ok(Page { rows, next })
    }

    /// Sets a title. A generated one does not replace the client's. Returns whether it
    /// was set.
    // SSTAT-09
    pub fn set_title(&self, id: &str, title: Option<&str>, by_client: bool) -> Result<bool> {
        let title = title.map(|title| self.0.mask.tokens(title));
        let connection = self.connection();
        check_exists(&connection, id)?;
        let set = connection.execute(
            "UPDATE session SET title = ?2, named = ?3 AND ?2 IS NOT NULL WHERE id = ?1 AND (?3 OR NOT named)",
            params![id, title, by_client],
        )?;
        Ok(set > 0)
    }

    /// Archives a session, or undoes that.
    pub fn set_archived(&self, id: &str, archived: bool) -> Result<()> {
        let set = self
            .connection()
            .execute("UPDATE session SET archived = ?2 WHERE id = ?1", params![id, archived])?;
        if set == 0 { Err(StoreError::Unknown(id.to_owned())) } else { Ok(()) }
    }

    /// Changes the directories of a session.
    pub fn set_roots(&self, row: &NewRow<'_>) -> Result<()> {
        let set = self.connection().execute(
            "UPDATE session SET cwd = ?2, roots = ?3 WHERE id = ?1",
            params![row.id, path_text(row.cwd), list_to_json(row.roots)],
        )?;
        if set == 0 { Err(StoreError::Unknown(row.id.to_owned())) } else { Ok(()) }
    }

    /// Copies a session with its conversation.
    pub fn fork(&self, from: &str, new: &NewRow<'_>) -> Result<()> {
        let roots = list_to_json(new.roots);
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        check_exists(&transaction, from)?;
        let made = transaction.execute(
            "INSERT INTO session (id, cwd, roots, title, created, updated, parent)
             SELECT ?2, ?3, ?4, title, ?5, ?5, ?1 FROM session WHERE id = ?1 ON CONFLICT DO NOTHING",
            params![from, new.id, path_text(new.cwd), roots, now()],
        )?;
        if made == 0 {
            return Err(StoreError::Exists(new.id.to_owned()));
        }
        // File changes stay with the session that made them, and so does `/undo`.
        transaction.execute(
            "INSERT INTO entry (session, seq, at, kind, body) SELECT ?2, seq, at, kind, body FROM entry
             WHERE session = ?1 AND kind NOT IN ('change', 'snapshot', 'settled', 'undone')",
            params![from, new.id],
        )?;
        transaction.commit()?;
        Ok(())
    }

    /// Deletes a session with its log and its stored files. Returns whether there was one.
    pub fn delete(&self, id: &str) -> Result<bool> {
        Ok(self.connection().execute("DELETE FROM session WHERE id = ?1", [id])? > 0)
    }
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let roots: String = row.get(2)?;
    Ok(Row {
        id: row.get(0)?,
        cwd: PathBuf::from(row.get::<_, String>(1)?),
        roots: list_from_json(&roots),
        title: row.get(3)?,
        named: row.get(4)?,
        created: row.get(5)?,
        updated: row.get(6)?,
        archived: row.get(7)?,
        parent: row.get(8)?,
        updated_at: row.get(9)?,
    })
}

/// Directories come from JSON and are text (ROOT-*, SESS-*: absolute paths).
fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn read_cursor(cursor: &str) -> Option<(i64, String)> {
    let (updated, id) = cursor.split_once('.')?;
    Some((updated.parse().ok()?, id.to_owned()))
}
