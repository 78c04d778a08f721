//! Turns: what the workspace was before one, and which changes it made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attache_host::files::Jail;
use rusqlite::params;

use super::Checkpoint;
use super::database::{Store, bytes_of, millis, path_of};
use super::state::{State, look, stamp};
use super::survey::{Known, Survey, new_directories};
use crate::error::{Context as _, Result};

/// The largest file whose content is kept because the agent named it.
const NAMED_BYTES: u64 = 16 << 20;
/// Named paths of a turn that are remembered.
const MAX_NAMED: usize = 4096;

/// A turn that has not ended.
pub(crate) struct OpenTurn {
    id: i64,
    began: SystemTime,
    before: Survey,
    /// Files that the survey leaves out and the agent named before it changed them.
    captured: BTreeMap<PathBuf, (State, u32)>,
    named: BTreeSet<PathBuf>,
}

/// A change that a turn made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// 0 if the turn has not ended.
    pub(super) id: i64,
    pub(super) path: PathBuf,
    pub(super) old: State,
    pub(super) new: State,
    pub(super) directories: u32,
    /// Why it may not be a change of the agent.
    pub(super) doubt: Option<String>,
}

impl Store {
    /// Notes the workspace as it is before a prompt. Returns the number of the turn.
    ///
    /// # Errors
    /// If that cannot be stored.
    pub(crate) fn begin(&mut self, conversation: &str, prompt: &str) -> Result<i64> {
        self.recover(conversation)?;
        let began = SystemTime::now();
        let before = self.survey()?;
        let write = || -> rusqlite::Result<i64> {
            let transaction = self.connection.unchecked_transaction()?;
            transaction.execute(
                "INSERT INTO turn (conversation, prompt, pid, began) VALUES (?1, ?2, ?3, ?4)",
                params![conversation, prompt, std::process::id(), millis(began)],
            )?;
            let id = transaction.last_insert_rowid();
            transaction.execute(
                "INSERT INTO before (turn, path, state, hash) SELECT ?1, path, state, hash FROM known",
                [id],
            )?;
            transaction.commit()?;
            Ok(id)
        };
        let id = write().context("the file of checkpoints")?;
        self.open = Some(OpenTurn { id, began, before, captured: BTreeMap::new(), named: BTreeSet::new() });
        Ok(id)
    }

    /// Notes a path that the agent is about to write, or says to have written. Content that the
    /// survey has left out is kept now.
    ///
    /// # Errors
    /// If that cannot be stored.
    pub(crate) fn name(&mut self, path: &Path) -> Result<()> {
        let Ok(path) = Jail::new(&self.roots).resolve(path) else { return Ok(()) };
        if !self.is_inside(&path) {
            return Ok(());
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.named.len() >= MAX_NAMED || !open.named.insert(path.clone()) {
            return Ok(());
        }
        self.connection
            .execute(
                "INSERT OR IGNORE INTO named (turn, path) VALUES (?1, ?2)",
                params![open.id, bytes_of(&path)],
            )
            .context("the file of checkpoints")?;
        let (state, content) = look(&self.jail, &path, NAMED_BYTES);
        let unread = match open.before.paths.get(&path).map(|known| &known.state) {
            // It is still what it was, so the content is that from before the turn.
            Some(State::Unread(known)) => path.symlink_metadata().is_ok_and(|now| stamp(&now) == *known),
            Some(_) => false,
            None if state == State::Missing && open.before.complete => false,
            None => true,
        };
        if !unread {
            return Ok(());
        }
        let directories = path.ancestors().skip(1).take_while(|directory| !directory.exists()).count();
        if let Some(content) = &content {
            self.keep(content)?;
        }
        if let Some(open) = &mut self.open {
            open.captured.insert(path, (state, u32::try_from(directories).unwrap_or(u32::MAX)));
        }
        Ok(())
    }

    /// Ends a turn and stores its changes. Returns their number; a turn that has ended has none.
    ///
    /// # Errors
    /// If that cannot be stored. The turn is then recovered by the next one.
    pub(crate) fn end(&mut self, turn: i64) -> Result<usize> {
        let Some(mut open) = self.open.take_if(|open| open.id == turn) else { return Ok(0) };
        let mut changes = self.differences(&open)?;
        self.doubt(&open, &mut changes)?;
        self.close(open.id, &changes)?;
        open.before.paths.clear();
        Ok(changes.len())
    }

    /// The changes of the turn that is running.
    pub(super) fn running(&mut self) -> Result<Vec<Change>> {
        let Some(open) = self.open.take() else { return Ok(Vec::new()) };
        let changes = self.differences(&open);
        self.open = Some(open);
        changes
    }

    fn close(&self, turn: i64, changes: &[Change]) -> Result<()> {
        let write = || -> rusqlite::Result<()> {
            let transaction = self.connection.unchecked_transaction()?;
            {
                let mut insert = transaction.prepare_cached(
                    "INSERT INTO change (turn, path, old, old_hash, new, new_hash, directories, doubt)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )?;
                for Change { path, old, new, directories, doubt, .. } in changes {
                    let (path, old_text, new_text) = (bytes_of(path), old.encode(), new.encode());
                    insert.execute(params![
                        turn,
                        path,
                        old_text,
                        old.hash(),
                        new_text,
                        new.hash(),
                        directories,
                        doubt
                    ])?;
                }
            }
            transaction.execute("DELETE FROM before WHERE turn = ?1", [turn])?;
            transaction.execute(
                "UPDATE turn SET ended = ?2 WHERE id = ?1",
                params![turn, millis(SystemTime::now())],
            )?;
            transaction.commit()
        };
        write().context("the file of checkpoints")
    }

    /// Compares the workspace with what it was before the turn.
    fn differences(&mut self, open: &OpenTurn) -> Result<Vec<Change>> {
        let now = self.survey()?;
        let mut changes = Vec::new();
        let mut add = |path: &Path, old: State, new: State, directories: u32| {
            changes.push(Change { id: 0, path: path.to_owned(), old, new, directories, doubt: None });
        };
        let mut large = Vec::new();
        for (path, Known { state, changed, .. }) in &now.paths {
            if *state == State::Directory && !open.before.paths.contains_key(path) {
                continue;
            }
            if open.captured.contains_key(path) {
                continue;
            }
            match open.before.paths.get(path) {
                Some(before) if before.state == *state => {}
                Some(before) => add(path, before.state.clone(), state.clone(), 0),
                // In an incomplete survey it need not be new. One that was not touched since was
                // ignored before.
                None if !open.before.complete && !open.named.contains(path) => {}
                None if *changed < open.began.checked_sub(super::survey::UNSETTLED).unwrap_or(open.began) => {
                }
                None => {
                    if matches!(state, State::Unread(_)) && open.named.contains(path) {
                        large.push(path.clone());
                    }
                    add(
                        path,
                        State::Missing,
                        state.clone(),
                        new_directories(&self.roots, &open.before, path),
                    );
                }
            }
        }
        for (path, before) in &open.before.paths {
            if now.paths.contains_key(path)
                || open.captured.contains_key(path)
                || before.state == State::Directory
            {
                continue;
            }
            let (state, content) = look(&self.jail, path, self.limits.file_bytes);
            // It may be ignored now, or beyond the bounds.
            if state != before.state && !(state == State::Directory && before.state == State::Missing) {
                if let Some(content) = &content {
                    self.keep(content)?;
                }
                add(path, before.state.clone(), state, 0);
            }
        }
        for (path, (old, directories)) in &open.captured {
            let (state, content) = look(&self.jail, path, NAMED_BYTES);
            if state != *old {
                if let Some(content) = &content {
                    self.keep(content)?;
                }
                let directories = if *old == State::Missing { *directories } else { 0 };
                add(path, old.clone(), state, directories);
            }
        }
        for path in large {
            let (state, content) = look(&self.jail, &path, NAMED_BYTES);
            if let Some(content) = &content {
                self.keep(content)?;
                for change in changes.iter_mut().filter(|change| change.path == path) {
                    change.new = state.clone();
                }
            }
        }
        Ok(changes)
    }

    /// Marks changes that may belong to another chat that worked here at the same time, and drops
    /// those that do.
    fn doubt(&self, open: &OpenTurn, changes: &mut Vec<Change>) -> Result<()> {
        let others = || -> rusqlite::Result<Vec<i64>> {
            let mut select = self.connection.prepare_cached(
                "SELECT id, pid, ended IS NULL FROM turn WHERE (ended IS NULL OR ended >= ?2)
                     AND conversation != (SELECT conversation FROM turn WHERE id = ?1)",
            )?;
            let rows = select.query_map(params![open.id, millis(open.began)], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
            })?;
            let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(rows.into_iter().filter(|(_, pid, open)| !open || is_alive(*pid)).map(|(id, ..)| id).collect())
        };
        let others = others().context("the file of checkpoints")?;
        if others.is_empty() {
            return Ok(());
        }
        let mut theirs = BTreeSet::new();
        for other in others {
            let named = || -> rusqlite::Result<Vec<PathBuf>> {
                let mut select = self.connection.prepare_cached("SELECT path FROM named WHERE turn = ?1")?;
                let rows = select.query_map([other], |row| Ok(path_of(row.get(0)?)))?;
                rows.collect()
            };
            theirs.extend(named().context("the file of checkpoints")?);
        }
        changes.retain(|change| open.named.contains(&change.path) || !theirs.contains(&change.path));
        for change in changes.iter_mut() {
            if !open.named.contains(&change.path) || theirs.contains(&change.path) {
                change.doubt = Some("another chat worked here at the same time".to_owned());
            }
        }
        Ok(())
    }

    /// Ends a turn of this conversation that was running when its chat was killed. Later changes of
    /// the user cannot be distinguished from those of the turn.
    fn recover(&mut self, conversation: &str) -> Result<()> {
        if let Some(open) = &self.open {
            self.end(open.id)?;
        }
        let left = || -> rusqlite::Result<Vec<(i64, i64)>> {
            let mut select = self
                .connection
                .prepare_cached("SELECT id, began FROM turn WHERE ended IS NULL AND conversation = ?1")?;
            let rows = select.query_map([conversation], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        for (id, began) in left().context("the file of checkpoints")? {
            let before = || -> rusqlite::Result<BTreeMap<PathBuf, Known>> {
                let mut select =
                    self.connection.prepare_cached("SELECT path, state FROM before WHERE turn = ?1")?;
                let rows = select.query_map([id], |row| {
                    let state = State::decode(&row.get::<_, String>(1)?);
                    let changed = SystemTime::UNIX_EPOCH;
                    Ok((path_of(row.get(0)?), Known { state, stamp: None, changed }))
                })?;
                rows.collect()
            };
            let paths = before().context("the file of checkpoints")?;
            let began = std::time::Duration::from_millis(u64::try_from(began).unwrap_or(0));
            let complete = paths.len() < self.limits.entries;
            let open = OpenTurn {
                id,
                began: SystemTime::UNIX_EPOCH + began,
                before: Survey { paths, complete },
                captured: BTreeMap::new(),
                named: BTreeSet::new(),
            };
            let mut changes = self.differences(&open)?;
            for change in &mut changes {
                change.doubt = Some("the chat was killed during this turn".to_owned());
            }
            self.close(id, &changes)?;
        }
        Ok(())
    }

    /// The turns of a conversation, the newest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn checkpoints(&mut self, conversation: &str) -> Result<Vec<Checkpoint>> {
        if self.open.is_none() {
            self.recover(conversation)?;
        }
        let read = || -> rusqlite::Result<Vec<Checkpoint>> {
            let mut select = self.connection.prepare_cached(
                "SELECT id, prompt, began,
                     (SELECT count(DISTINCT path) FROM change WHERE turn = turn.id AND undone = 0)
                 FROM turn WHERE conversation = ?1 AND ended IS NOT NULL ORDER BY id DESC",
            )?;
            let rows = select.query_map([conversation], |row| {
                let began = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
                let files = usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0);
                Ok(Checkpoint {
                    turn: row.get(0)?,
                    prompt: row.get(1)?,
                    began: SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(began),
                    files,
                })
            })?;
            rows.collect()
        };
        read().context("the file of checkpoints")
    }
}

/// Whether a process runs. One with a reused id counts as running, which only makes the user
/// decide.
fn is_alive(pid: i64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
