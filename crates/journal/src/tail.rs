//! The newest pages of the sessions that this process follows.
//!
//! All followers of a session share these pages, so an append is read from the backend by none of
//! them. A follower that falls behind the kept pages reads from the backend.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::key::SessionKey;
use crate::page::StoredPage;
use crate::position::Seq;

/// The most bytes of kept pages of a session. One page is kept whatever its size.
const MAX_BYTES: usize = 1 << 20;

/// A follower takes at most this many bytes at once, and one page whatever its size.
const READ_BYTES: usize = 256 << 10;

/// The tails of all followed sessions.
#[derive(Default)]
pub(crate) struct Tails(Mutex<HashMap<SessionKey, Weak<Tail>>>);

impl Tails {
    /// The tail of a session, which lives as long as it is followed.
    pub(crate) fn follow(self: &Arc<Self>, key: &SessionKey) -> Arc<Tail> {
        let mut tails = self.0.lock();
        if let Some(tail) = tails.get(key).and_then(Weak::upgrade) {
            return tail;
        }
        let tail = Arc::new(Tail {
            key: key.clone(),
            tails: Arc::downgrade(self),
            pages: Mutex::default(),
            version: watch::Sender::new(0),
        });
        tails.insert(key.clone(), Arc::downgrade(&tail));
        tail
    }

    /// Shows an acknowledged page to the followers.
    pub(crate) fn push(&self, key: &SessionKey, page: &StoredPage) {
        if let Some(tail) = self.get(key) {
            tail.pages.lock().push(page);
            tail.wake();
        }
    }

    /// Lets the followers read from the backend.
    pub(crate) fn invalidate(&self, key: &SessionKey) {
        if let Some(tail) = self.get(key) {
            tail.pages.lock().invalidations += 1;
            tail.wake();
        }
    }

    /// Ends the followers of a session that was removed. A new session of that name gets a new
    /// tail.
    pub(crate) fn forget(&self, key: &SessionKey) {
        let tail = self.0.lock().remove(key).and_then(|tail| tail.upgrade());
        if let Some(tail) = tail {
            tail.pages.lock().forgotten = true;
            tail.wake();
        }
    }

    fn get(&self, key: &SessionKey) -> Option<Arc<Tail>> {
        self.0.lock().get(key).and_then(Weak::upgrade)
    }
}

/// The newest pages of one session.
pub(crate) struct Tail {
    key: SessionKey,
    tails: Weak<Tails>,
    pages: Mutex<Pages>,
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct Pages {
    /// Consecutive pages.
    pages: VecDeque<StoredPage>,
    bytes: usize,
    /// The last entry that was shown here.
    last: Seq,
    invalidations: u64,
    forgotten: bool,
}

/// The answer of a [`Tail`] to a follower.
pub(crate) enum TailRead {
    /// The pages from the cursor on.
    Pages(Vec<StoredPage>),
    /// There is nothing after the cursor.
    Empty,
    /// Only the backend has what follows the cursor.
    Behind,
    /// The session was removed.
    Forgotten,
}

impl Tail {
    /// Notices of new pages.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// The pages after `after`. `invalidations` is the count that the follower has seen.
    pub(crate) fn read(&self, after: Seq, invalidations: &mut u64) -> TailRead {
        let pages = self.pages.lock();
        if pages.forgotten {
            return TailRead::Forgotten;
        }
        if std::mem::replace(invalidations, pages.invalidations) != pages.invalidations {
            return TailRead::Behind;
        }
        if pages.last <= after {
            return TailRead::Empty;
        }
        match pages.pages.front() {
            Some(front) if front.first() <= after.plus(1) => {
                let from = pages.pages.partition_point(|page| page.last() <= after);
                let mut bytes = 0;
                let taken = pages.pages.range(from..).take_while(|page| {
                    let before = bytes;
                    bytes += page.page().weight();
                    before < READ_BYTES
                });
                TailRead::Pages(taken.cloned().collect())
            }
            _ => TailRead::Behind,
        }
    }

    fn wake(&self) {
        self.version.send_modify(|version| *version += 1);
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if let Some(tails) = self.tails.upgrade() {
            let mut tails = tails.0.lock();
            // A new tail may have this name already.
            if tails.get(&self.key).is_some_and(|tail| tail.strong_count() == 0) {
                tails.remove(&self.key);
            }
        }
    }
}

impl Pages {
    fn push(&mut self, page: &StoredPage) {
        if page.last() <= self.last {
            return;
        }
        // Another owner may have appended in between.
        if self.pages.back().is_some_and(|back| back.last().plus(1) != page.first()) {
            self.pages.clear();
            self.bytes = 0;
        }
        self.last = page.last();
        self.bytes += page.page().weight();
        self.pages.push_back(page.clone());
        while self.bytes > MAX_BYTES && self.pages.len() > 1 {
            self.bytes -= self.pages.pop_front().map_or(0, |page| page.page().weight());
        }
    }
}
