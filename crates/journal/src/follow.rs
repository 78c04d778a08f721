//! Reading of a log: up to a fixed entry, or without end.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::backend::{Backend, Changes};
use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::page::StoredPage;
use crate::position::Seq;
use crate::tail::{Tail, TailRead};

/// The bytes that are read from the backend at once.
const CHUNK_BYTES: usize = 256 << 10;

/// A position in a log, and the pages that were read beyond it.
struct Cursor {
    backend: Arc<dyn Backend>,
    key: SessionKey,
    after: Seq,
    read: VecDeque<StoredPage>,
}

impl Cursor {
    /// Reads from the backend, and returns whether there was anything.
    async fn fetch(&mut self, upto: Seq) -> Result<bool> {
        let pages = self.backend.read(&self.key, self.after, upto, CHUNK_BYTES).await?;
        self.read = pages.into();
        Ok(!self.read.is_empty())
    }

    /// The next page that was read, or the part of it up to `upto`.
    fn take(&mut self, upto: Seq) -> Option<StoredPage> {
        while let Some(front) = self.read.front() {
            let part = front.part(self.after, upto);
            if part.as_ref().is_none_or(|part| part.last() == front.last()) {
                self.read.pop_front();
            }
            if let Some(part) = part {
                self.after = part.last();
                return Some(part);
            }
        }
        None
    }
}

/// The pages of a session up to a fixed entry.
pub struct Pages {
    cursor: Cursor,
    upto: Seq,
}

impl Pages {
    pub(crate) fn new(backend: Arc<dyn Backend>, key: SessionKey, after: Seq, upto: Seq) -> Self {
        Pages { cursor: Cursor { backend, key, after, read: VecDeque::new() }, upto }
    }

    /// The last entry that will be read.
    pub fn upto(&self) -> Seq {
        self.upto
    }

    /// The next page; `None` after the last one. Cancel-safe: nothing is lost if the future is
    /// dropped.
    ///
    /// # Errors
    /// [`Error::Unknown`] and [`Error::Trimmed`] if the entries were removed in the meantime;
    /// errors of the backend.
    pub async fn next(&mut self) -> Result<Option<StoredPage>> {
        loop {
            if self.cursor.after >= self.upto {
                return Ok(None);
            }
            if let Some(page) = self.cursor.take(self.upto) {
                return Ok(Some(page));
            }
            if !self.cursor.fetch(self.upto).await? {
                return Err(Error::Damaged(format!("entry {} is missing", self.cursor.after.plus(1))));
            }
        }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pages({:?}, {}..={})", self.cursor.key, self.cursor.after.plus(1), self.upto)
    }
}

/// The pages of a session from a position on, without end.
pub struct Follower {
    cursor: Cursor,
    watermark: Seq,
    tail: Arc<Tail>,
    tail_changes: watch::Receiver<u64>,
    invalidations: u64,
    changes: Changes,
    /// Whether the backend may have entries that the tail does not know of.
    is_behind: bool,
}

impl Follower {
    /// The caller has subscribed to the tail and to the changes before it determined the watermark.
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        key: SessionKey,
        after: Seq,
        watermark: Seq,
        tail: Arc<Tail>,
        changes: Changes,
    ) -> Self {
        let tail_changes = tail.subscribe();
        Follower {
            cursor: Cursor { backend, key, after, read: VecDeque::new() },
            watermark,
            tail,
            tail_changes,
            invalidations: 0,
            changes,
            is_behind: true,
        }
    }

    /// The last entry when the follower started. It never changes. The page that ends with it is
    /// the last one of the replay; if the follower started there, there is no replay.
    pub fn watermark(&self) -> Seq {
        self.watermark
    }

    /// The last entry that was yielded, or the start.
    pub fn position(&self) -> Seq {
        self.cursor.after
    }

    /// Whether everything up to the watermark was yielded.
    pub fn is_live(&self) -> bool {
        self.cursor.after >= self.watermark
    }

    /// The next page, for which there may be a long wait. Cancel-safe: nothing is lost if the
    /// future is dropped.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the session was forgotten, [`Error::Trimmed`] if the next entry was
    /// removed, [`Error::Closed`] if the backend stopped, and errors of the backend.
    pub async fn next(&mut self) -> Result<StoredPage> {
        loop {
            let upto = if self.is_live() { Seq::MAX } else { self.watermark };
            if let Some(page) = self.cursor.take(upto) {
                return Ok(page);
            }
            // The notices are taken before the data is looked at: what comes later is noticed
            // again.
            self.tail_changes.mark_unchanged();
            self.is_behind |= self.changes.take();
            match self.tail.read(self.cursor.after, &mut self.invalidations) {
                TailRead::Pages(pages) => {
                    self.cursor.read = pages.into();
                    continue;
                }
                TailRead::Behind => self.is_behind = true,
                TailRead::Forgotten => return Err(Error::Unknown),
                TailRead::Empty => {}
            }
            if self.is_behind {
                self.is_behind = self.cursor.fetch(Seq::MAX).await?;
                continue;
            }
            tokio::select! {
                changed = self.tail_changes.changed() => changed.map_err(|_| Error::Closed)?,
                changed = self.changes.wait() => {
                    changed?;
                    self.is_behind = true;
                }
            }
        }
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Follower({:?}, after {}, watermark {})",
            self.cursor.key, self.cursor.after, self.watermark
        )
    }
}
