//! The writing end of a session's journal: one append at a time, and the next page meanwhile.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use attache_journal::{Error, Journal, Lease, Page, PageBuilder, Seq};

use crate::metrics::Metrics;

/// Bytes of a page. A longer message makes a longer page of its own.
const PAGE: usize = 256 << 10;
/// Attempts to append, and the time before the second one.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(50);

type Appending = Pin<Box<dyn Future<Output = Result<Seq, Error>> + Send>>;

/// Writes entries. An action is carried out when everything that was staged before it is durable.
pub(super) struct Log<A> {
    journal: Journal,
    lease: Arc<Lease>,
    metrics: Arc<Metrics>,
    /// The last entry that was staged.
    tip: Seq,
    /// The last entry that is durable.
    durable: Seq,
    page: PageBuilder,
    actions: Vec<A>,
    appending: Option<(Appending, Vec<A>)>,
}

impl<A> Log<A> {
    pub(super) fn new(journal: Journal, lease: Lease, metrics: Arc<Metrics>) -> Self {
        let last = lease.last();
        Log {
            journal,
            lease: Arc::new(lease),
            metrics,
            tip: last,
            durable: last,
            page: Page::builder(),
            actions: Vec::new(),
            appending: None,
        }
    }

    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Takes the lease out, for its release. `None` if an append still has it.
    pub(super) fn into_lease(self) -> Option<Lease> {
        drop(self.appending);
        Arc::into_inner(self.lease)
    }

    /// Adds an entry to the next page, and returns its number.
    pub(super) fn stage(&mut self, kind: u8, bytes: &[u8]) -> Result<Seq, Error> {
        self.page.push(kind, bytes)?;
        self.metrics.entries.add(1);
        self.metrics.bytes.add(bytes.len() as u64);
        self.tip = self.tip.plus(1);
        Ok(self.tip)
    }

    /// Adds an action for when all entries so far are durable.
    pub(super) fn then(&mut self, action: A) {
        self.actions.push(action);
    }

    /// Whether more may be staged: the reader of an agent pauses without.
    pub(super) fn has_room(&self) -> bool {
        self.page.bytes() < PAGE && self.page.len() < Page::MAX_ENTRIES / 2
    }

    pub(super) fn is_idle(&self) -> bool {
        self.appending.is_none() && self.page.is_empty()
    }

    /// Starts to append what is staged, unless an append is under way.
    pub(super) fn start(&mut self) {
        if self.appending.is_some() || (self.page.is_empty() && self.actions.is_empty()) {
            return;
        }
        let actions = std::mem::take(&mut self.actions);
        let page = std::mem::replace(&mut self.page, Page::builder());
        let (journal, lease, after) = (self.journal.clone(), Arc::clone(&self.lease), self.durable);
        let appending: Appending = match page.is_empty() {
            true => Box::pin(std::future::ready(Ok(after))),
            false => Box::pin(append(journal, lease, after, page.build())),
        };
        self.appending = Some((appending, actions));
    }

    /// Waits for the append under way and returns its actions; never returns without one.
    /// Cancel-safe.
    pub(super) async fn appended(&mut self) -> Result<Vec<A>, Error> {
        let Some((appending, _)) = &mut self.appending else { return std::future::pending().await };
        let last = appending.await;
        let actions = self.appending.take().map(|(_, actions)| actions).unwrap_or_default();
        self.durable = last?;
        Ok(actions)
    }
}

/// Appends a page. An append whose outcome is unknown is repeated, which has no effect if it
/// succeeded.
async fn append(journal: Journal, lease: Arc<Lease>, after: Seq, page: Page) -> Result<Seq, Error> {
    let mut attempt = 1;
    loop {
        match journal.append(&lease, after, page.clone()).await {
            Err(Error::Unavailable(_) | Error::Busy) if attempt < ATTEMPTS => {
                tokio::time::sleep(PAUSE * 2u32.pow(attempt)).await;
                attempt += 1;
            }
            appended => return appended,
        }
    }
}
