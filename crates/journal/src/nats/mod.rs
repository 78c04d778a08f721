//! The backend on NATS JetStream, for many machines.
//!
//! One stream holds all sessions, each under a subject of its own. An append names the position of
//! the session's last message, and the server refuses it if there is another one: that is the
//! fence. A claim is a message too, so it ends the lease before it by being there. A second stream
//! holds the times of leases; they are hints, the fence does not need them.
//!
//! A page that exceeds the server's limit for messages is stored in parts, and counts when the last
//! part is there.
//!
//! An acknowledged page is as durable as the server is configured: by default NATS flushes files
//! every two minutes, with `sync_interval: always` before it acknowledges.
//!
//! Programs on the same journal can also send messages to each other ([`Messenger`]). These are not
//! stored.
//!
//! Read `record.rs` (messages), `stream.rs` (requests to JetStream), this file, `watch.rs`
//! (followers), then `client.rs` (the connection) and `messenger.rs`.

mod client;
mod messenger;
mod record;
mod server;
mod stream;
mod watch;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use serde_json::json;

use crate::backend::{Backend, BoxFuture, Changes};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::lease::{Claim, Lease, Owner, SessionInfo};
use crate::page::{Page, StoredPage};
use crate::position::{Epoch, Seq};

pub use client::Message;
pub use messenger::{Messenger, RequestError, Subscription};

use client::Client;
use record::{Head, Part, Record, StoredRecord, decode, encode, subject};
use server::ServerAddress;
use stream::{Published, Stream};
use watch::Watches;

/// Room for the headers of a message.
const HEADER_BYTES: usize = 4 << 10;
/// How often an append is tried while others write to the session.
const ATTEMPTS: usize = 100;
/// How often a claim is tried. The owner may write all the time, with one round trip for each page,
/// so that most attempts fail.
const CLAIM_ATTEMPTS: usize = 2000;
/// The most remembered positions of readers.
const MAX_HINTS: usize = 4096;

/// Settings of a journal on NATS.
#[derive(Debug, Clone)]
pub struct Options {
    name: String,
    replicas: u8,
    max_bytes: Option<u64>,
    clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Options { name: "ATT".into(), replicas: 1, max_bytes: None, clock: Clock::system() }
    }
}

impl Options {
    /// Sets the beginning of the names of streams and subjects, `ATT` by default: letters, digits
    /// and `_`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the number of servers that store each message, if the streams do not exist yet.
    #[must_use]
    pub fn replicas(mut self, replicas: u8) -> Self {
        self.replicas = replicas;
        self
    }

    /// Sets the most bytes of the journal's stream, if it does not exist yet. Appends beyond it
    /// fail with [`Error::Full`].
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

/// Logs in a stream of a NATS server.
pub struct Nats {
    name: Arc<str>,
    clock: Clock,
    journal: Stream,
    leases: Stream,
    max_payload: usize,
    writers: Mutex<HashMap<SessionKey, Writer>>,
    watches: Watches,
    /// Where the next message of a reader is: the readers of a log ask for one range after the
    /// other.
    hints: Mutex<HashMap<(SessionKey, Seq), u64>>,
}

/// The last known state of a session that this node writes to. One append at a time is under way.
type Writer = Arc<tokio::sync::Mutex<Option<Head>>>;

impl Nats {
    /// Connects to a server, `nats://[user:password@|token@]host[:port]`, and creates the streams
    /// if there are none. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`Error::InvalidAddress`]; [`Error::Unavailable`] if the server cannot be reached, has no
    /// JetStream, or requires TLS.
    pub async fn connect(url: &str, options: Options) -> Result<Self> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !is_name(&options.name) {
            return Err(Error::InvalidAddress {
                reason: "the name of the streams has other characters than letters, digits and _",
            });
        }
        let client = Client::new(ServerAddress::parse(url)?);
        let stream = |suffix: &str| Stream {
            client: client.clone(),
            name: format!("{}_{suffix}", options.name),
            prefix: format!("{}.{suffix}", options.name),
        };
        let (journal, leases) = (stream("J"), stream("L"));
        let max_bytes = options.max_bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        let settings = json!({ "num_replicas": options.replicas, "discard": "new", "max_bytes": max_bytes });
        journal.create(settings).await?;
        leases.create(json!({ "num_replicas": options.replicas, "max_msgs_per_subject": 1 })).await?;
        let max_payload = client.max_payload().await?;
        if max_payload <= 2 * HEADER_BYTES {
            return Err(unavailable("the NATS server's max_payload is less than 8 KiB"));
        }
        Ok(Nats {
            name: options.name.into(),
            clock: options.clock,
            watches: Watches::new(journal.clone()),
            journal,
            leases,
            max_payload: max_payload - HEADER_BYTES,
            writers: Mutex::default(),
            hints: Mutex::default(),
        })
    }

    /// Messages to other programs on this journal, over the same connection.
    ///
    /// ```no_run
    /// # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use attache_journal::{Journal, nats::{Nats, Options}};
    ///
    /// let nats = Nats::connect("nats://127.0.0.1", Options::default()).await?;
    /// let messenger = nats.messenger();
    /// let journal = Journal::new(nats);
    /// let subject = messenger.subject(&["to", "node-2"]);
    /// let reply = messenger.request(&subject, "hello".into(), Duration::from_secs(5)).await?;
    /// println!("{} bytes", reply.payload().len());
    /// # drop(journal);
    /// # Ok(())
    /// # }
    /// ```
    pub fn messenger(&self) -> Messenger {
        Messenger::new(self.journal.client.clone(), Arc::clone(&self.name))
    }

    fn writer(&self, key: &SessionKey) -> Writer {
        self.writers.lock().entry(key.clone()).or_default().clone()
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        Ok(self.journal.last(&subject(key)).await?.map(|record| record.head()))
    }

    /// The owner of the claim `epoch`, from the record of leases or else from the claim itself.
    async fn owner(&self, key: &SessionKey, epoch: Epoch) -> Result<Option<Owner>> {
        let message = self.leases.last_message(&subject(key)).await?;
        if message.status().is_none()
            && let Some((of, owner)) = parse_lease(&message.payload)
            && of == epoch
        {
            return Ok(owner);
        }
        let claim = self.journal.next(&subject(key), epoch.get()).await?;
        Ok(claim.filter(|claim| claim.position == epoch.get()).and_then(|claim| match claim.record {
            Record::Claim { until, owner, .. } => Some(Owner { name: owner, until }),
            Record::Part(_) => None,
        }))
    }

    async fn write_lease(&self, key: &SessionKey, epoch: Epoch, owner: &str, until: u64) -> Result<()> {
        let text = format!("{epoch} {until} {}", encode(owner));
        self.leases.publish(&subject(key), "", text.into(), None).await.map(drop)
    }

    async fn claim_session(&self, key: &SessionKey, claim: &Claim) -> Result<Lease> {
        let writer = self.writer(key);
        let mut state = writer.lock().await;
        for _ in 0..CLAIM_ATTEMPTS {
            let now = self.clock.now();
            let before = self.head(key).await?;
            // Every round trip between the head and the claim is time in which the owner writes. A
            // forced claim needs no more.
            let owner = match &before {
                Some(head) if !claim.is_forced() => self.owner(key, head.epoch).await?,
                _ => None,
            };
            claim.check(before.map(|_| owner.as_ref()), now)?;
            let until = self.clock.after(claim.ttl);
            let record = Record::Claim {
                last: before.map_or(Seq::ZERO, |head| head.last),
                total: before.map_or(0, |head| head.total),
                updated: before.map_or(now, |head| head.updated),
                until,
                owner: claim.owner.clone(),
            };
            let expected = before.map_or(0, |head| head.position);
            let published =
                self.journal.publish(&subject(key), &record.header(), Bytes::new(), Some(expected)).await?;
            if let Published::At(position) = published {
                let claimed = StoredRecord { position, record, payload: Bytes::new() }.head();
                self.write_lease(key, claimed.epoch, &claim.owner, until).await?;
                self.watches.ignore(key, Some(claimed.epoch));
                *state = Some(claimed);
                return Ok(Lease::new(key.clone(), claim.owner.as_str(), claimed.epoch, claimed.last));
            }
        }
        Err(Error::Busy)
    }

    async fn append_page(&self, lease: &Lease, after: Seq, page: &Page) -> Result<StoredPage> {
        let writer = self.writer(lease.key());
        let mut state = writer.lock().await;
        let known = state.take().filter(|head| head.epoch == lease.epoch());
        let appended = self.append_after(lease, after, page, known).await;
        match &appended {
            Ok((_, head)) => *state = Some(*head),
            // It may be stored later, and then it has to be noticed.
            Err(_) => self.watches.ignore(lease.key(), None),
        }
        appended.map(|(stored, _)| stored)
    }

    /// Appends with the known state; if the server knows another one, with that.
    async fn append_after(
        &self,
        lease: &Lease,
        after: Seq,
        page: &Page,
        mut known: Option<Head>,
    ) -> Result<(StoredPage, Head)> {
        for _ in 0..ATTEMPTS {
            let head = match known.take() {
                Some(head) => head,
                None => self.head(lease.key()).await?.ok_or(Error::Fenced)?,
            };
            if head.epoch != lease.epoch() {
                return Err(Error::Fenced);
            }
            if head.last != after {
                let repeat = self.page_behind(lease.key(), after, head).await?;
                return match repeat {
                    Some(stored)
                        if stored.first() == after.plus(1)
                            && stored.epoch() == lease.epoch()
                            && stored.page() == page =>
                    {
                        Ok((stored, head))
                    }
                    _ => Err(Error::Conflict { last: head.last }),
                };
            }
            let stored = StoredPage::new(after.plus(1), lease.epoch(), self.clock.now(), page.clone());
            // Another last message may be a claim, or ours if its acknowledgement was lost or late.
            if let Some(head) = self.publish_page(lease.key(), &stored, head).await? {
                return Ok((stored, head));
            }
        }
        Err(Error::Busy)
    }

    /// Publishes the parts of a page; `None` if the session has another last message than `head`.
    async fn publish_page(&self, key: &SessionKey, stored: &StoredPage, head: Head) -> Result<Option<Head>> {
        let (body, index) = (stored.page().body(), stored.page().index());
        let bytes = Bytes::from([&body[..], &index[..]].concat());
        let parts = bytes.len().div_ceil(self.max_payload);
        let mut head = head;
        for part in 1..=parts {
            let range = (part - 1) * self.max_payload..(part * self.max_payload).min(bytes.len());
            let record = Record::Part(Part {
                epoch: stored.epoch(),
                first: stored.first(),
                last: stored.last(),
                at: stored.at(),
                total: head.total,
                updated: head.updated,
                body: body.len(),
                part,
                parts,
            });
            let payload = bytes.slice(range);
            let published =
                self.journal.publish(&subject(key), &record.header(), payload, Some(head.position)).await?;
            match published {
                Published::At(position) => {
                    head = StoredRecord { position, record, payload: Bytes::new() }.head()
                }
                Published::Superseded => return Ok(None),
            }
        }
        Ok(Some(head))
    }

    /// The page that contains the entry behind `after`.
    async fn page_behind(&self, key: &SessionKey, after: Seq, head: Head) -> Result<Option<StoredPage>> {
        if after >= head.last {
            return Ok(None);
        }
        let Some(end) = self.last_part(key, after, head).await? else { return Ok(None) };
        if end.first() > after.plus(1) {
            // That page was trimmed.
            return Ok(None);
        }
        let Some(position) = self.start_of(key, &end).await? else { return Ok(None) };
        let (pages, _) = self.pages(key, position, after, after.plus(1), 1).await?;
        Ok(pages.into_iter().next())
    }

    /// The position of the first part of the page that contains the entry behind `after`.
    async fn locate(&self, key: &SessionKey, after: Seq, head: Head) -> Result<Option<u64>> {
        match self.last_part(key, after, head).await? {
            Some(end) => self.start_of(key, &end).await,
            None => Ok(None),
        }
    }

    /// The last part of the first page that is left of those that end behind `after`.
    async fn last_part(&self, key: &SessionKey, after: Seq, head: Head) -> Result<Option<StoredRecord>> {
        self.search(key, head.position, |record| record.head().last > after).await
    }

    /// The position of the first part of a page whose last part is `end`.
    async fn start_of(&self, key: &SessionKey, end: &StoredRecord) -> Result<Option<u64>> {
        match &end.record {
            Record::Part(part) if part.parts > 1 => {
                let first = part.first;
                let start = self.search(key, end.position, |record| record.first() >= first).await?;
                Ok(start.map(|record| record.position))
            }
            _ => Ok(Some(end.position)),
        }
    }

    /// Binary search for the first message of a session that satisfies `is_behind`, which is false,
    /// then true.
    async fn search(
        &self,
        key: &SessionKey,
        upto: u64,
        is_behind: impl Fn(&StoredRecord) -> bool,
    ) -> Result<Option<StoredRecord>> {
        let (mut low, mut high, mut found) = (1, upto, None);
        while low <= high {
            let middle = low + (high - low) / 2;
            match self.journal.next(&subject(key), middle).await? {
                Some(record) if !is_behind(&record) => low = record.position + 1,
                record => {
                    found = record.or(found);
                    high = middle - 1;
                }
            }
        }
        Ok(found)
    }

    /// Reads pages from a position on, and returns the position of the message behind them.
    async fn pages(
        &self,
        key: &SessionKey,
        mut position: u64,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> Result<(Vec<StoredPage>, u64)> {
        let subject = subject(key);
        let (mut pages, mut bytes, mut reached) = (Vec::new(), 0, after);
        let mut parts: Option<(Part, BytesMut)> = None;
        while reached < upto && bytes < max_bytes {
            let Some(record) = self.journal.next(&subject, position).await? else { break };
            position = record.position + 1;
            let Record::Part(part) = record.record else {
                parts = None;
                continue;
            };
            // Parts of an append that was not finished are left behind by what follows.
            let content = match parts.take() {
                _ if part.part == 1 => record.payload.into(),
                Some((before, mut content))
                    if (before.epoch, before.first, before.part + 1)
                        == (part.epoch, part.first, part.part) =>
                {
                    content.extend_from_slice(&record.payload);
                    content
                }
                _ => continue,
            };
            if part.part < part.parts {
                parts = Some((part, content));
                continue;
            }
            let page = stored_page(&part, content)?;
            if page.last() <= reached {
                continue;
            }
            if page.first() > reached.plus(1) {
                return Err(Error::Damaged(format!("entry {} is missing", reached.plus(1))));
            }
            reached = page.last();
            bytes += page.page().weight();
            pages.push(page);
        }
        Ok((pages, position))
    }

    async fn read_pages(
        &self,
        key: &SessionKey,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> Result<Vec<StoredPage>> {
        let subject = subject(key);
        let (head, start) = tokio::join!(self.head(key), self.journal.next(&subject, 1));
        let (Some(head), Some(start)) = (head?, start?) else { return Err(Error::Unknown) };
        let (first, _) = start.start();
        if after > head.last {
            return Err(Error::PastEnd { last: head.last });
        }
        if after.plus(1) < first {
            return Err(Error::Trimmed { first });
        }
        if after >= head.last.min(upto) {
            return Ok(Vec::new());
        }
        let hint = self.hints.lock().get(&(key.clone(), after)).copied();
        let position = match hint {
            Some(position) if position <= head.position => Some(position),
            _ => self.locate(key, after, head).await?,
        };
        let position =
            position.ok_or_else(|| Error::Damaged(format!("entry {} is missing", after.plus(1))))?;
        let (pages, next) = self.pages(key, position, after, upto.min(head.last), max_bytes).await?;
        if let Some(last) = pages.last() {
            let mut hints = self.hints.lock();
            if hints.len() >= MAX_HINTS {
                hints.clear();
            }
            hints.insert((key.clone(), last.last()), next);
        }
        Ok(pages)
    }

    async fn session_info(&self, key: &SessionKey) -> Result<SessionInfo> {
        let subject = subject(key);
        let (head, start) = tokio::join!(self.head(key), self.journal.next(&subject, 1));
        let (Some(head), Some(start)) = (head?, start?) else { return Err(Error::Unknown) };
        let (first, before) = start.start();
        Ok(SessionInfo {
            key: key.clone(),
            first,
            last: head.last,
            epoch: head.epoch,
            owner: self.owner(key, head.epoch).await?,
            bytes: head.total.saturating_sub(before),
            updated: head.updated,
        })
    }

    async fn list_sessions(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SessionInfo>> {
        let subjects = self.journal.subjects(&format!("{}.*", encode(tenant))).await?;
        let name = |subject: &String| decode(subject.split_once('.')?.1);
        let mut names: Vec<String> = subjects.iter().filter_map(name).collect();
        names.retain(|name| after.is_none_or(|after| name.as_str() > after));
        names.sort_unstable();
        let mut sessions = Vec::new();
        for name in names.into_iter().take(limit) {
            match self.session_info(&SessionKey::new(tenant, name)?).await {
                Ok(info) => sessions.push(info),
                // It was forgotten in the meantime.
                Err(Error::Unknown) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sessions)
    }

    async fn forget_session(&self, key: &SessionKey) -> Result<()> {
        let subject = subject(key);
        self.head(key).await?.ok_or(Error::Unknown)?;
        self.journal.purge(&subject, None).await?;
        self.leases.purge(&subject, None).await?;
        self.writers.lock().remove(key);
        self.watches.ignore(key, None);
        self.hints.lock().retain(|(of, _), _| of != key);
        Ok(())
    }

    async fn trim_session(&self, key: &SessionKey, upto: Seq) -> Result<()> {
        let head = self.head(key).await?.ok_or(Error::Unknown)?;
        if head.last == Seq::ZERO {
            return Ok(());
        }
        // The last page stays, so the page behind `upto` exists.
        let upto = upto.min(Seq::new(head.last.get() - 1));
        match self.locate(key, upto, head).await? {
            Some(position) => self.journal.purge(&subject(key), Some(position)).await,
            None => Ok(()),
        }
    }

    /// Renews or releases a lease that has not ended.
    async fn set_owner(&self, lease: &Lease, until: Option<u64>) -> Result<()> {
        let head = self.head(lease.key()).await?;
        if head.is_none_or(|head| head.epoch != lease.epoch()) {
            return Err(Error::Fenced);
        }
        let owner = if until.is_some() { lease.owner() } else { "" };
        self.write_lease(lease.key(), lease.epoch(), owner, until.unwrap_or_default()).await
    }
}

/// The page of the last part, with the content of all parts.
fn stored_page(part: &Part, mut content: BytesMut) -> Result<StoredPage> {
    if content.len() < part.body {
        return Err(Error::Damaged(format!("page {} is incomplete", part.first)));
    }
    let body = content.split_to(part.body).freeze();
    let page = StoredPage::new(part.first, part.epoch, part.at, Page::from_parts(body, content.freeze())?);
    match page.last() == part.last {
        true => Ok(page),
        false => Err(Error::Damaged(format!("page {} has the wrong length", part.first))),
    }
}

/// Epoch and owner of a lease; no owner after a release.
fn parse_lease(payload: &[u8]) -> Option<(Epoch, Option<Owner>)> {
    let mut words = std::str::from_utf8(payload).ok()?.split(' ');
    let (epoch, until) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let name = decode(words.next()?)?;
    Some((Epoch::new(epoch), (!name.is_empty()).then_some(Owner { name, until })))
}

fn unavailable(text: &str) -> Error {
    std::io::Error::other(text.to_owned()).into()
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nats({})", self.journal.name)
    }
}

impl Backend for Nats {
    fn claim<'a>(&'a self, key: &'a SessionKey, claim: &'a Claim) -> BoxFuture<'a, Lease> {
        Box::pin(self.claim_session(key, claim))
    }

    fn append<'a>(&'a self, lease: &'a Lease, after: Seq, page: &'a Page) -> BoxFuture<'a, StoredPage> {
        Box::pin(self.append_page(lease, after, page))
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> BoxFuture<'a, ()> {
        Box::pin(self.set_owner(lease, Some(self.clock.after(ttl))))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, ()> {
        Box::pin(async {
            self.set_owner(lease, None).await?;
            self.writers.lock().remove(lease.key());
            Ok(())
        })
    }

    fn read<'a>(
        &'a self,
        key: &'a SessionKey,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> BoxFuture<'a, Vec<StoredPage>> {
        Box::pin(self.read_pages(key, after, upto, max_bytes))
    }

    fn info<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, SessionInfo> {
        Box::pin(self.session_info(key))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Vec<SessionInfo>> {
        Box::pin(self.list_sessions(tenant, after, limit))
    }

    fn forget<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, ()> {
        Box::pin(self.forget_session(key))
    }

    fn trim<'a>(&'a self, key: &'a SessionKey, upto: Seq) -> BoxFuture<'a, ()> {
        Box::pin(self.trim_session(key, upto))
    }

    fn changes(&self, key: &SessionKey) -> Changes {
        self.watches.watch(key)
    }
}
