//! Takes the changes of turns back, and a taking back as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{OptionalExtension as _, params};

use super::Outcome;
use super::database::{Store, bytes_of, millis, path_of};
use super::state::{State, look, make, stamp};
use super::turns::Change;
use crate::error::{Context as _, Failure, Result};

/// The largest file that is compared with what a turn left.
const COMPARED: u64 = 16 << 20;

/// One file that gets another state.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) path: PathBuf,
    pub(super) from: State,
    pub(super) to: State,
    pub(super) directories: u32,
    /// The changes that this takes back, with what they are afterwards: their new state, and
    /// whether they are undone.
    pub(super) changes: Vec<(i64, State, bool)>,
}

impl Store {
    /// Takes back the changes of the last turn that has any.
    ///
    /// # Errors
    /// If there is none, or the store cannot be read.
    pub(crate) fn undo(&mut self, conversation: &str) -> Result<Outcome> {
        let turns = self.checkpoints(conversation)?;
        let Some(last) = turns.iter().find(|turn| turn.files > 0) else {
            return Err(Failure::runtime("no turn of this conversation has changes to undo"));
        };
        let mut outcome = self.take_back(conversation, last.turn, last.turn)?;
        outcome.prompt = Some(last.prompt.clone());
        Ok(outcome)
    }

    /// Takes back the changes of a turn and of all later ones of the conversation.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn rewind(&mut self, conversation: &str, turn: i64) -> Result<Outcome> {
        let turns = self.checkpoints(conversation)?;
        let mut outcome = self.take_back(conversation, turn, i64::MAX)?;
        outcome.prompt = turns.into_iter().find(|known| known.turn == turn).map(|turn| turn.prompt);
        Ok(outcome)
    }

    fn take_back(&mut self, conversation: &str, from: i64, to: i64) -> Result<Outcome> {
        let mut chains: BTreeMap<PathBuf, Vec<Change>> = BTreeMap::new();
        for change in self.changes(conversation, from, to)? {
            chains.entry(change.path.clone()).or_default().push(change);
        }
        let mut outcome = Outcome::default();
        let mut steps = Vec::new();
        for (path, chain) in chains {
            match self.plan(&path, &chain) {
                Ok(step) => steps.push(step),
                Err(why) => outcome.left.push((path, why)),
            }
        }
        self.apply(conversation, steps, &mut outcome)?;
        Ok(outcome)
    }

    /// Decides how one file gets the state from before a chain of changes.
    fn plan(&self, path: &Path, chain: &[Change]) -> Result<Step, String> {
        let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
            return Err("nothing is known of it".to_owned());
        };
        let now = self.current(path, &[&first.old, &last.new]);
        let undone = chain.iter().map(|change| (change.id, change.new.clone(), true)).collect();
        let (to, directories) = (first.old.clone(), first.directories);
        if now == first.old {
            return Ok(Step { path: path.to_owned(), from: now, to, directories, changes: undone });
        }
        if let Some(why) = chain.iter().find_map(|change| change.doubt.clone()) {
            return Err(why);
        }
        if now != last.new {
            return Err("changed since".to_owned());
        }
        let between = chain.windows(2).any(|pair| matches!(pair, [one, next] if one.new != next.old));
        if between {
            return Err("changed between these turns".to_owned());
        }
        self.check_kept(&to)?;
        Ok(Step { path: path.to_owned(), from: now, to, directories, changes: undone })
    }

    /// The state of a path now. A file whose content is not kept is one of the `expected` states if
    /// its size and times are.
    pub(super) fn current(&self, path: &Path, expected: &[&State]) -> State {
        if let Ok(metadata) = path.symlink_metadata()
            && let unread = State::Unread(stamp(&metadata))
            && expected.contains(&&unread)
        {
            return unread;
        }
        look(&self.jail, path, COMPARED).0
    }

    /// Fails if a state cannot be made again.
    pub(super) fn check_kept(&self, state: &State) -> Result<(), String> {
        let text = match state {
            State::Unread(_) => "too large: its old content was not kept",
            State::Other => "it was not a file that can be read",
            State::File { .. } => match self.content(state) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) => "its old content is not kept any more",
                Err(failure) => return Err(failure.message),
            },
            State::Missing | State::Link(_) | State::Directory => return Ok(()),
        };
        Err(text.to_owned())
    }

    /// Changes the files: removes first, so that directories and files can change places.
    pub(super) fn apply(
        &mut self,
        conversation: &str,
        mut steps: Vec<Step>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let removes = |step: &Step| matches!(step.to, State::Missing | State::Directory);
        steps.sort_by(|a, b| match (removes(a), removes(b)) {
            (true, true) => b.path.cmp(&a.path),
            (false, false) => a.path.cmp(&b.path),
            (one, other) => other.cmp(&one),
        });
        let mut done = Vec::new();
        for step in steps {
            if step.from == step.to {
                done.push(step);
                continue;
            }
            match self.step(&step) {
                Ok(()) => {
                    outcome.changed.push(step.path.clone());
                    done.push(step);
                }
                Err(why) => outcome.left.push((step.path, why)),
            }
        }
        outcome.changed.sort();
        if done.is_empty() { Ok(()) } else { self.record(conversation, &done) }
    }

    fn step(&self, step: &Step) -> Result<(), String> {
        let Step { path, from, to, directories, .. } = step;
        if !self.is_inside(path) {
            return Err("outside of the workspace".to_owned());
        }
        let content = self.content(to).map_err(|failure| failure.message)?;
        if to.hash().is_some() && content.is_none() {
            return Err("its old content is not kept any more".to_owned());
        }
        // Looked at again right before the change: the user may have saved it meanwhile.
        let now = self.current(path, &[from]);
        // A new directory is gone with the last of its new files.
        if now != *from && !(*from == State::Directory && now == State::Missing) {
            return Err("changed since".to_owned());
        }
        make(&self.jail, path, &now, to, content.as_deref(), *directories).map_err(|error| error.to_string())
    }

    fn record(&self, conversation: &str, steps: &[Step]) -> Result<()> {
        let write = || -> rusqlite::Result<()> {
            let transaction = self.connection.unchecked_transaction()?;
            transaction.execute(
                "INSERT INTO action (conversation, at) VALUES (?1, ?2)",
                params![conversation, millis(SystemTime::now())],
            )?;
            let action = transaction.last_insert_rowid();
            for step in steps {
                let (from, to) = (step.from.encode(), step.to.encode());
                let (path, directories) = (bytes_of(&step.path), step.directories);
                transaction.execute(
                    "INSERT INTO step (action, path, old, old_hash, new, new_hash, directories)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![action, path, from, step.from.hash(), to, step.to.hash(), directories],
                )?;
                for (change, new, undone) in &step.changes {
                    transaction.execute(
                        "INSERT INTO touched (action, change, new, new_hash, undone)
                         SELECT ?1, id, new, new_hash, undone FROM change WHERE id = ?2",
                        params![action, change],
                    )?;
                    transaction.execute(
                        "UPDATE change SET new = ?2, new_hash = ?3, undone = ?4 WHERE id = ?1",
                        params![change, new.encode(), new.hash(), undone],
                    )?;
                }
            }
            transaction.commit()
        };
        write().context("the file of checkpoints")
    }

    /// Makes the files what they were before the last taking back.
    ///
    /// # Errors
    /// If there is none, or the store cannot be read.
    pub(crate) fn redo(&mut self, conversation: &str) -> Result<Outcome> {
        let last = || -> rusqlite::Result<Option<i64>> {
            self.connection
                .query_row(
                    "SELECT max(id) FROM action WHERE conversation = ?1 AND redone = 0",
                    [conversation],
                    |row| row.get(0),
                )
                .optional()
                .map(Option::flatten)
        };
        let Some(action) = last().context("the file of checkpoints")? else {
            return Err(Failure::runtime("no undo of this conversation to take back"));
        };
        let steps = || -> rusqlite::Result<Vec<(PathBuf, State, State)>> {
            let mut select = self
                .connection
                .prepare_cached("SELECT path, old, new FROM step WHERE action = ?1 ORDER BY path")?;
            let rows = select.query_map([action], |row| {
                let state = |at| row.get::<_, String>(at).map(|text| State::decode(&text));
                Ok((path_of(row.get(0)?), state(1)?, state(2)?))
            })?;
            rows.collect()
        };
        let mut outcome = Outcome::default();
        for (path, old, new) in steps().context("the file of checkpoints")? {
            if old == new {
                continue;
            }
            let step = Step { path, from: new, to: old, directories: 0, changes: Vec::new() };
            match self.step(&step) {
                Ok(()) => outcome.changed.push(step.path),
                Err(why) => outcome.left.push((step.path, why)),
            }
        }
        let write = || -> rusqlite::Result<()> {
            let transaction = self.connection.unchecked_transaction()?;
            transaction.execute("UPDATE action SET redone = 1 WHERE id = ?1", [action])?;
            transaction.execute(
                "UPDATE change SET (new, new_hash, undone) =
                     (SELECT new, new_hash, undone FROM touched WHERE action = ?1 AND change = change.id)
                 WHERE id IN (SELECT change FROM touched WHERE action = ?1)",
                [action],
            )?;
            transaction.commit()
        };
        write().context("the file of checkpoints")?;
        Ok(outcome)
    }

    /// The changes of the turns of a conversation that were not undone, the oldest first.
    pub(super) fn changes(&self, conversation: &str, from: i64, to: i64) -> Result<Vec<Change>> {
        let read = || -> rusqlite::Result<Vec<Change>> {
            let mut select = self.connection.prepare_cached(
                "SELECT change.id, path, old, new, directories, doubt FROM change JOIN turn ON turn.id = turn
                 WHERE conversation = ?1 AND turn BETWEEN ?2 AND ?3 AND undone = 0 ORDER BY change.id",
            )?;
            let rows = select.query_map(params![conversation, from, to], |row| {
                let state = |at| row.get::<_, String>(at).map(|text| State::decode(&text));
                Ok(Change {
                    id: row.get(0)?,
                    path: path_of(row.get(1)?),
                    old: state(2)?,
                    new: state(3)?,
                    directories: row.get(4)?,
                    doubt: row.get(5)?,
                })
            })?;
            rows.collect()
        };
        read().context("the file of checkpoints")
    }
}
