//! What the tests of all backends share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use attache_journal::{
    Claim, Clock, Error, Journal, Lease, ManualClock, Memory, Page, Seq, SessionKey, sqlite,
};

pub(crate) const TTL: Duration = Duration::from_secs(10);

/// A journal under test.
pub(crate) struct Rig {
    pub(crate) journal: Journal,
    pub(crate) clock: ManualClock,
    place: Place,
}

/// Where the journal is.
pub(crate) enum Place {
    Memory,
    Sqlite(TempDir),
    #[cfg(feature = "nats")]
    Nats {
        url: String,
        name: String,
        /// The server, if it ends with the rig.
        _server: Option<crate::nats::Server>,
    },
}

impl Rig {
    pub(crate) async fn memory() -> Self {
        Self::open(Place::Memory, ManualClock::default()).await
    }

    pub(crate) async fn sqlite() -> Self {
        Self::open(Place::Sqlite(TempDir::new()), ManualClock::default()).await
    }

    #[cfg(feature = "nats")]
    pub(crate) async fn nats() -> Self {
        let server = crate::nats::Server::start();
        let place = Place::Nats { url: server.url(), name: "ATT".into(), _server: Some(server) };
        Self::open(place, ManualClock::default()).await
    }

    pub(crate) async fn open(place: Place, clock: ManualClock) -> Self {
        let journal = match &place {
            Place::Memory => Journal::new(Memory::new(Clock::from(&clock))),
            place => connect(place, &clock).await.unwrap(),
        };
        Rig { journal, clock, place }
    }

    /// Another node on the same data. The memory backend has none, so it is the same one.
    pub(crate) async fn second(&self) -> Journal {
        connect(&self.place, &self.clock).await.unwrap_or_else(|| self.journal.clone())
    }
}

async fn connect(place: &Place, clock: &ManualClock) -> Option<Journal> {
    match place {
        Place::Memory => None,
        Place::Sqlite(directory) => {
            let options = sqlite::Options::default()
                .clock(Clock::from(clock))
                .durability(sqlite::Durability::Written)
                .poll_interval(Some(Duration::from_millis(5)));
            Some(Journal::sqlite(&directory.file(), options).await.unwrap())
        }
        #[cfg(feature = "nats")]
        Place::Nats { url, name, .. } => {
            let options = attache_journal::nats::Options::default().name(name).clock(Clock::from(clock));
            Some(Journal::nats(url, options).await.unwrap())
        }
    }
}

/// A directory that is removed at the end of the test.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("attache-journal-{}-{count}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        TempDir(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("journal.db")
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn key(session: &str) -> SessionKey {
    SessionKey::new("tenant", session).unwrap()
}

pub(crate) fn claim(owner: &str) -> Claim {
    Claim::new(owner, TTL)
}

/// Appends pages of one entry to an empty session until the journal is full. Returns the last
/// entry.
pub(crate) async fn fill(journal: &Journal, lease: &Lease, text: &str) -> Seq {
    let mut last = Seq::ZERO;
    let error = loop {
        match journal.append(lease, last, page(&[text])).await {
            Ok(now) => last = now,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full), "{error:?}");
    assert!(last > Seq::new(5));
    last
}

pub(crate) fn page(entries: &[&str]) -> Page {
    let mut page = Page::builder();
    for entry in entries {
        page.push(1, entry.as_bytes()).unwrap();
    }
    page.build()
}

/// A page of `count` entries that name their positions, after `after`.
pub(crate) fn numbered(after: Seq, count: u64) -> Page {
    let mut page = Page::builder();
    for number in 1..=count {
        page.push(1, after.plus(number).to_string().as_bytes()).unwrap();
    }
    page.build()
}

pub(crate) async fn append(journal: &Journal, lease: &Lease, after: Seq, count: u64) -> Seq {
    journal.append(lease, after, numbered(after, count)).await.unwrap()
}

/// All entries of a session as text.
pub(crate) async fn texts(journal: &Journal, key: &SessionKey, after: Seq) -> Vec<String> {
    let mut pages = journal.read(key, after, None).await.unwrap();
    let mut texts = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        for entry in page.entries() {
            assert_eq!(entry.seq(), after.plus(texts.len() as u64 + 1), "numbers have no holes");
            texts.push(String::from_utf8(entry.bytes().to_vec()).unwrap());
        }
    }
    texts
}

/// The numbers from `from` to `to` as text.
pub(crate) fn numbers(from: u64, to: u64) -> Vec<String> {
    (from..=to).map(|number| number.to_string()).collect()
}
