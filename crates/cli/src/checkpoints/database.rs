//! The private SQLite file of a workspace, and the bounds of all of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache_conn::private;
use attache_host::files::Jail;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::state::{State, hash};
use super::survey::{Known, Limits, Survey};
use super::turns::OpenTurn;
use crate::error::{Context as _, Result};

/// How long turns can be undone.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Bytes of content of a workspace; the oldest turns are forgotten.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes of the files of all workspaces; those that were used longest ago are removed.
const MAX_ALL: u64 = 1 << 30;
/// How long a write waits for another chat.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The version of the schema, which is a part of the file's name.
const VERSION: u8 = 1;

/// Content is stored once per hash. `known` is the last survey, which saves reading files again;
/// `before` is the workspace before turns that have not ended.
const SCHEMA: &str = "
CREATE TABLE blob (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE known (path BLOB PRIMARY KEY, stamp TEXT, state TEXT NOT NULL, hash TEXT) WITHOUT ROWID;
CREATE TABLE turn (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    prompt TEXT NOT NULL,
    pid INTEGER NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER
);
CREATE TABLE before (
    turn INTEGER NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    path BLOB NOT NULL, state TEXT NOT NULL, hash TEXT,
    PRIMARY KEY (turn, path)
) WITHOUT ROWID;
CREATE TABLE named (
    turn INTEGER NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    PRIMARY KEY (turn, path)
) WITHOUT ROWID;
CREATE TABLE change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    turn INTEGER NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    old TEXT NOT NULL, old_hash TEXT,
    new TEXT NOT NULL, new_hash TEXT,
    directories INTEGER NOT NULL,
    doubt TEXT,
    undone INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX change_by_turn ON change (turn);
CREATE TABLE action (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    at INTEGER NOT NULL,
    redone INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE step (
    action INTEGER NOT NULL REFERENCES action (id) ON DELETE CASCADE,
    path BLOB NOT NULL,
    old TEXT NOT NULL, old_hash TEXT,
    new TEXT NOT NULL, new_hash TEXT,
    directories INTEGER NOT NULL
);
CREATE TABLE touched (
    action INTEGER NOT NULL REFERENCES action (id) ON DELETE CASCADE,
    change INTEGER NOT NULL REFERENCES change (id) ON DELETE CASCADE,
    new TEXT NOT NULL, new_hash TEXT, undone INTEGER NOT NULL
);
";

/// Content that no row names.
const UNUSED: &str = "DELETE FROM blob WHERE hash NOT IN (
    SELECT hash FROM known WHERE hash IS NOT NULL
    UNION SELECT hash FROM before WHERE hash IS NOT NULL
    UNION SELECT old_hash FROM change WHERE old_hash IS NOT NULL
    UNION SELECT new_hash FROM change WHERE new_hash IS NOT NULL
    UNION SELECT old_hash FROM step WHERE old_hash IS NOT NULL
    UNION SELECT new_hash FROM step WHERE new_hash IS NOT NULL
    UNION SELECT new_hash FROM touched WHERE new_hash IS NOT NULL)";

/// The checkpoints of a workspace.
pub(crate) struct Store {
    pub(super) connection: Connection,
    pub(super) roots: Vec<PathBuf>,
    /// Follows no link at all.
    pub(super) jail: Jail,
    pub(super) limits: Limits,
    pub(super) known: BTreeMap<PathBuf, Known>,
    /// Changes when another chat has written to the file.
    version: Option<i64>,
    pub(super) open: Option<OpenTurn>,
    /// Held while the file is used, so that it is not removed.
    _lock: File,
}

impl Store {
    /// Opens the file of these directories, or creates it, readable by this user only.
    ///
    /// # Errors
    /// If it cannot be used.
    pub(crate) fn open(directory: &Path, roots: &[PathBuf]) -> Result<Store> {
        let mut roots: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        roots.sort();
        roots.dedup();
        private::create_directory(directory).context("the directory of checkpoints")?;
        let mut name = vec![VERSION];
        for root in &roots {
            name.extend_from_slice(root.as_os_str().as_bytes());
            name.push(0);
        }
        let name = hash(&name);
        let name = name.get(..32).unwrap_or(&name);
        sweep(directory, name);
        let lock = private::open_or_create(&directory.join(format!("{name}.lock")))
            .context("the lock of checkpoints")?;
        lock.lock_shared().context("the lock of checkpoints")?;
        let path = directory.join(format!("{name}.sqlite"));
        // Created before SQLite creates it, so that it and the files beside it are private.
        private::open_or_create(&path).context("the file of checkpoints")?;
        let connection = connect(&path).context("the file of checkpoints")?;
        let mut store = Store {
            connection,
            roots,
            jail: Jail::without_links(),
            limits: Limits::default(),
            known: BTreeMap::new(),
            version: None,
            open: None,
            _lock: lock,
        };
        store.prune(MAX_BYTES, SystemTime::now())?;
        Ok(store)
    }

    /// Forgets old turns, and the oldest while there is too much content.
    pub(super) fn prune(&mut self, most: u64, now: SystemTime) -> Result<()> {
        let limit = millis(now.checked_sub(KEPT).unwrap_or(UNIX_EPOCH));
        let prune = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            let old = transaction.execute("DELETE FROM turn WHERE began < ?1", [limit])?;
            transaction.execute("DELETE FROM action WHERE at < ?1", [limit])?;
            let size = |of: &Connection| {
                of.query_row("SELECT coalesce(sum(length(bytes)), 0) FROM blob", [], |row| {
                    row.get::<_, i64>(0)
                })
            };
            let mut removed = old;
            while u64::try_from(size(&transaction)?).unwrap_or(0) > most {
                // A quarter at a time: what the rest needs is computed anew each time.
                let some = transaction.execute(
                    "DELETE FROM turn WHERE ended IS NOT NULL AND id IN
                     (SELECT id FROM turn ORDER BY id LIMIT max(1, (SELECT count(*) FROM turn) / 4))",
                    [],
                )?;
                transaction.execute(
                    "DELETE FROM action WHERE at < coalesce((SELECT min(began) FROM turn), ?1)",
                    [i64::MAX],
                )?;
                transaction.execute(UNUSED, [])?;
                if some == 0 {
                    break;
                }
                removed += some;
            }
            if removed > 0 {
                transaction.execute(UNUSED, [])?;
            }
            transaction.commit()?;
            if removed > 0 {
                connection.execute_batch("PRAGMA incremental_vacuum")?;
            }
            Ok(())
        };
        prune(&mut self.connection).context("the file of checkpoints")
    }

    /// Surveys the workspace and stores what is new.
    pub(super) fn survey(&mut self) -> Result<Survey> {
        self.reload()?;
        let known = std::mem::take(&mut self.known);
        let (roots, jail, limits) = (&self.roots, &self.jail, self.limits);
        let take = |connection: &mut Connection| -> rusqlite::Result<Survey> {
            let transaction =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let taken = {
                let mut insert = transaction.prepare_cached(
                    "INSERT INTO blob (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                )?;
                super::survey::survey(roots, jail, &known, limits, |hash, bytes| {
                    insert.execute(params![hash, bytes]).is_ok()
                })
            };
            {
                let mut upsert = transaction.prepare_cached(
                    "INSERT INTO known (path, stamp, state, hash) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (path)
                     DO UPDATE SET stamp = excluded.stamp, state = excluded.state, hash = excluded.hash",
                )?;
                let is_new = |(path, now): &(&PathBuf, &Known)| known.get(*path) != Some(*now);
                for (path, now) in taken.paths.iter().filter(is_new) {
                    upsert.execute(params![
                        bytes_of(path),
                        now.stamp,
                        now.state.encode(),
                        now.state.hash()
                    ])?;
                }
                let mut delete = transaction.prepare_cached("DELETE FROM known WHERE path = ?1")?;
                for path in known.keys().filter(|path| !taken.paths.contains_key(*path)) {
                    delete.execute([bytes_of(path)])?;
                }
            }
            transaction.commit()?;
            Ok(taken)
        };
        let taken = take(&mut self.connection).context("the file of checkpoints")?;
        self.known.clone_from(&taken.paths);
        Ok(taken)
    }

    /// Reads the last survey of another chat, whose content may have replaced ours.
    fn reload(&mut self) -> Result<()> {
        let load = |connection: &Connection| -> rusqlite::Result<(i64, BTreeMap<PathBuf, Known>)> {
            let version = connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
            let mut select = connection.prepare_cached("SELECT path, stamp, state FROM known")?;
            let rows = select.query_map([], |row| {
                let state = State::decode(&row.get::<_, String>(2)?);
                let known = Known { state, stamp: row.get(1)?, changed: UNIX_EPOCH };
                Ok((path_of(row.get(0)?), known))
            })?;
            Ok((version, rows.collect::<rusqlite::Result<_>>()?))
        };
        let version = self
            .connection
            .query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0))
            .context("the file of checkpoints")?;
        if self.version != Some(version) {
            let (version, known) = load(&self.connection).context("the file of checkpoints")?;
            (self.version, self.known) = (Some(version), known);
        }
        Ok(())
    }

    pub(super) fn keep(&self, content: &[u8]) -> Result<String> {
        let hash = hash(content);
        self.connection
            .execute(
                "INSERT INTO blob (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                params![hash, content],
            )
            .context("the file of checkpoints")?;
        Ok(hash)
    }

    /// The content of a file; `None` if it is not kept any more.
    pub(super) fn content(&self, state: &State) -> Result<Option<Vec<u8>>> {
        let Some(hash) = state.hash() else { return Ok(None) };
        self.connection
            .query_row("SELECT bytes FROM blob WHERE hash = ?1", [hash], |row| row.get(0))
            .optional()
            .context("the file of checkpoints")
    }

    /// Whether a path is one that checkpoints may touch.
    pub(super) fn is_inside(&self, path: &Path) -> bool {
        let inside = |root: &PathBuf| path != root && path.starts_with(root);
        self.roots.iter().any(inside)
            && !path.ancestors().any(attache_host::project_files::is_version_control)
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        Ok(connection)
    };
    let mut connection = open()?;
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Two chats may open a new file at once.
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 0 {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", i64::from(VERSION))?;
    }
    transaction.commit()?;
    Ok(connection)
}

/// Removes the files of workspaces that were not used for long, and the oldest while there are too
/// many bytes. Files in use and the one named `own` are kept.
fn sweep(directory: &Path, own: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut found: Vec<(SystemTime, u64, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?.strip_suffix(".sqlite")?.to_owned();
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), name))
        })
        .collect();
    found.sort();
    let mut total: u64 = found.iter().map(|(_, bytes, _)| bytes).sum();
    let limit = SystemTime::now().checked_sub(KEPT).unwrap_or(UNIX_EPOCH);
    for (used, bytes, name) in found {
        if name == own || (used >= limit && total <= MAX_ALL) {
            continue;
        }
        let lock = directory.join(format!("{name}.lock"));
        let Ok(held) = private::open_or_create(&lock) else { continue };
        if held.try_lock().is_ok() {
            for end in ["sqlite", "sqlite-wal", "sqlite-shm"] {
                // What cannot be removed is tried again the next time.
                let _ = fs::remove_file(directory.join(format!("{name}.{end}")));
            }
            // The lock file stays: another chat may be about to lock it.
            total = total.saturating_sub(bytes);
        }
    }
}

pub(super) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

pub(super) fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

pub(super) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
