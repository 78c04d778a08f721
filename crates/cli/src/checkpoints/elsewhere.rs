//! The store on systems without the file operations that checkpoints need. It never opens.

use std::path::{Path, PathBuf};

use super::report::{Checkpoint, FileDiff, Outcome, Parts};
use crate::error::{Failure, Result};

/// No store.
pub(crate) enum Store {}

impl Store {
    pub(crate) fn open(_: &Path, _: &[PathBuf]) -> Result<Store> {
        Err(Failure::runtime("undoing changes of files needs Unix"))
    }

    pub(crate) fn begin(&mut self, _: &str, _: &str) -> Result<i64> {
        match *self {}
    }

    pub(crate) fn end(&mut self, _: i64) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn name(&mut self, _: &Path) -> Result<()> {
        match *self {}
    }

    pub(crate) fn undo(&mut self, _: &str) -> Result<Outcome> {
        match *self {}
    }

    pub(crate) fn rewind(&mut self, _: &str, _: i64) -> Result<Outcome> {
        match *self {}
    }

    pub(crate) fn redo(&mut self, _: &str) -> Result<Outcome> {
        match *self {}
    }

    pub(crate) fn checkpoints(&mut self, _: &str) -> Result<Vec<Checkpoint>> {
        match *self {}
    }

    pub(crate) fn parts(&mut self, _: &str, _: &str) -> Result<Parts> {
        match *self {}
    }

    pub(crate) fn undo_part(&mut self, _: &str, _: &Parts, _: usize) -> Result<Outcome> {
        match *self {}
    }

    pub(crate) fn undo_file(&mut self, _: &str, _: &Path) -> Result<Outcome> {
        match *self {}
    }

    pub(crate) fn diff(&mut self, _: &str) -> Result<Vec<FileDiff>> {
        match *self {}
    }
}
