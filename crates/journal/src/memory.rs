//! The backend in memory.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::ready;
use std::time::Duration;

use parking_lot::Mutex;

use crate::backend::{Backend, BoxFuture, Changes};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::lease::{Claim, Lease, Owner, SessionInfo};
use crate::page::{Page, StoredPage};
use crate::position::{Epoch, Seq};

/// Logs in memory. Everything is gone with the process.
pub struct Memory {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    epochs: u64,
    sessions: BTreeMap<SessionKey, Log>,
}

struct Log {
    epoch: Epoch,
    owner: Option<Owner>,
    pages: VecDeque<StoredPage>,
    last: Seq,
    bytes: u64,
    updated: u64,
}

impl Memory {
    /// An empty journal.
    pub fn new(clock: Clock) -> Self {
        Memory { clock, state: Mutex::default() }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

impl State {
    fn claim(&mut self, key: &SessionKey, claim: &Claim, clock: &Clock) -> Result<Lease> {
        let now = clock.now();
        claim.check(self.sessions.get(key).map(|log| log.owner.as_ref()), now)?;
        self.epochs += 1;
        let epoch = Epoch::new(self.epochs);
        let log = self.sessions.entry(key.clone()).or_insert_with(|| Log {
            epoch,
            owner: None,
            pages: VecDeque::new(),
            last: Seq::ZERO,
            bytes: 0,
            updated: now,
        });
        log.epoch = epoch;
        log.owner = Some(Owner { name: claim.owner.clone(), until: clock.after(claim.ttl) });
        Ok(Lease::new(key.clone(), claim.owner.as_str(), epoch, log.last))
    }

    fn get(&mut self, key: &SessionKey) -> Result<&mut Log> {
        self.sessions.get_mut(key).ok_or(Error::Unknown)
    }

    /// The log of a lease that has not ended.
    fn leased(&mut self, lease: &Lease) -> Result<&mut Log> {
        self.sessions.get_mut(lease.key()).filter(|log| log.epoch == lease.epoch()).ok_or(Error::Fenced)
    }
}

impl Log {
    fn append(&mut self, after: Seq, page: &Page, now: u64) -> Result<StoredPage> {
        if after != self.last {
            let position = self.pages.partition_point(|stored| stored.first() <= after);
            return match self.pages.get(position) {
                Some(stored)
                    if stored.first() == after.plus(1)
                        && stored.epoch() == self.epoch
                        && stored.page() == page =>
                {
                    Ok(stored.clone())
                }
                _ => Err(Error::Conflict { last: self.last }),
            };
        }
        let stored = StoredPage::new(after.plus(1), self.epoch, now, page.clone());
        self.last = stored.last();
        self.bytes += page.body().len() as u64;
        self.updated = now;
        self.pages.push_back(stored.clone());
        Ok(stored)
    }

    fn first(&self) -> Seq {
        self.pages.front().map_or(self.last.plus(1), StoredPage::first)
    }

    fn read(&self, after: Seq, upto: Seq, max_bytes: usize) -> Result<Vec<StoredPage>> {
        if after > self.last {
            return Err(Error::PastEnd { last: self.last });
        }
        if after.plus(1) < self.first() {
            return Err(Error::Trimmed { first: self.first() });
        }
        let mut bytes = 0;
        let from = self.pages.partition_point(|page| page.last() <= after);
        let pages = self.pages.range(from..).take_while(|page| {
            let fits = bytes < max_bytes && page.first() <= upto;
            bytes += page.page().weight();
            fits
        });
        Ok(pages.cloned().collect())
    }

    fn trim(&mut self, upto: Seq) {
        while self.pages.len() > 1 && self.pages.front().is_some_and(|page| page.last() <= upto) {
            self.bytes -= self.pages.pop_front().map_or(0, |page| page.page().body().len() as u64);
        }
    }

    fn info(&self, key: &SessionKey) -> SessionInfo {
        SessionInfo {
            key: key.clone(),
            first: self.first(),
            last: self.last,
            epoch: self.epoch,
            owner: self.owner.clone(),
            bytes: self.bytes,
            updated: self.updated,
        }
    }
}

fn done<'a, T: Send + 'a>(result: Result<T>) -> BoxFuture<'a, T> {
    Box::pin(ready(result))
}

impl Backend for Memory {
    fn claim<'a>(&'a self, key: &'a SessionKey, claim: &'a Claim) -> BoxFuture<'a, Lease> {
        done(self.state.lock().claim(key, claim, &self.clock))
    }

    fn append<'a>(&'a self, lease: &'a Lease, after: Seq, page: &'a Page) -> BoxFuture<'a, StoredPage> {
        let now = self.clock.now();
        done(self.state.lock().leased(lease).and_then(|log| log.append(after, page, now)))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, ()> {
        let owner = Owner { name: lease.owner().to_owned(), until: self.clock.after(ttl) };
        done(self.state.lock().leased(lease).map(|log| log.owner = Some(owner)))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, ()> {
        done(self.state.lock().leased(lease).map(|log| log.owner = None))
    }

    fn read<'a>(
        &'a self,
        key: &'a SessionKey,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> BoxFuture<'a, Vec<StoredPage>> {
        done(self.state.lock().get(key).and_then(|log| log.read(after, upto, max_bytes)))
    }

    fn info<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, SessionInfo> {
        done(self.state.lock().get(key).map(|log| log.info(key)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Vec<SessionInfo>> {
        let state = self.state.lock();
        let sessions = state
            .sessions
            .iter()
            .filter(|(key, _)| key.tenant() == tenant && after.is_none_or(|after| key.session() > after));
        done(Ok(sessions.take(limit).map(|(key, log)| log.info(key)).collect()))
    }

    fn forget<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, ()> {
        done(self.state.lock().sessions.remove(key).map(drop).ok_or(Error::Unknown))
    }

    fn trim<'a>(&'a self, key: &'a SessionKey, upto: Seq) -> BoxFuture<'a, ()> {
        done(self.state.lock().get(key).map(|log| log.trim(upto)))
    }

    fn changes(&self, _key: &SessionKey) -> Changes {
        Changes::none()
    }
}
