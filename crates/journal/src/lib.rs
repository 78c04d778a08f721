//! An ordered log per session, with one writer at a time and any number of followers.
//!
//! ```text
//! claim -> Lease --append(after, page)--> log --follow(after)--> pages up to a watermark, then live ones
//! ```
//!
//! ```
//! use std::time::Duration;
//! use attache_journal::{Claim, Journal, Page, Seq, SessionKey};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let journal = Journal::memory();
//! let key = SessionKey::new("tenant", "session")?;
//! let lease = journal.claim(&key, &Claim::new("node-1", Duration::from_secs(10))).await?;
//!
//! let mut page = Page::builder();
//! page.push(0, b"{\"first\":1}\n")?;
//! page.push(0, b"{\"second\":2}\n")?;
//! let last = journal.append(&lease, lease.last(), page.build()).await?;
//! assert_eq!(last, Seq::new(2));
//!
//! let mut follower = journal.follow(&key, Seq::new(1)).await?;
//! assert_eq!(follower.watermark(), last);
//! let page = follower.next().await?;
//! assert_eq!(page.entries().next().unwrap().bytes(), b"{\"second\":2}\n");
//! # Ok::<(), attache_journal::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Terms
//!
//! - An **entry** is some bytes and a kind, which the journal does not interpret. Entries are
//!   counted from 1 ([`Seq`]).
//! - A **page** ([`Page`]) is the entries of one append, stored together. A [`StoredPage`] also
//!   knows its position.
//! - An **epoch** ([`Epoch`]) is the number of a claim.
//! - A **lease** ([`Lease`]) is the right to append. It has a time limit, which decides when others
//!   may claim the session without force. Safety does not depend on that time: the journal compares
//!   epochs.
//! - The **watermark** of a follower is the last entry when it started.
//!
//! # Laws
//!
//! Every backend obeys these, and `tests/it/laws.rs` runs the same tests against each of them.
//!
//! 1. *No holes.* The entries of a session are numbered from 1 without holes, in the order of the
//!    appends.
//! 2. *Fencing.* After a claim succeeded, no append with an older lease succeeds, also none that
//!    was under way. Every claim has a greater epoch than all claims before it in the journal; an
//!    epoch is not reused after [`Journal::forget`].
//! 3. *Repeats.* An append that is repeated with the same lease, position and page appears once,
//!    and both calls succeed. So an append whose outcome is unknown is repeated.
//! 4. *Durability.* An acknowledged page is there after a crash, whole and unchanged. A page that
//!    was not acknowledged is there completely or not at all.
//! 5. *Following.* A follower yields every entry after its start exactly once, in order, while
//!    others append. No page that it yields contains entries of both sides of the watermark.
//! 6. *Leases.* While a lease has time left, a claim by another owner fails with [`Error::Held`]
//!    unless it is forced. When the time is over the owner may still append and renew until another
//!    owner claims the session.
//! 7. *Trimming.* [`Journal::trim`] removes whole pages from the front and never the last one.
//!    Reading from a position before the first entry fails with [`Error::Trimmed`]; there is no
//!    silent gap.
//! 8. *Tenants.* A session of another tenant looks like one that does not exist.
//! 9. *Bounds.* A follower costs a cursor and at most a few pages, however far it is behind.
//!
//! # Reading order
//!
//! `position.rs`, `page.rs`, `lease.rs`, `backend.rs` (the trait), `journal.rs` (the handle),
//! `follow.rs` with `tail.rs`, then the backends: `memory.rs`, `sqlite/` and `nats/`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend;
mod clock;
mod error;
mod follow;
mod journal;
mod key;
mod lease;
mod memory;
#[cfg(feature = "nats")]
pub mod nats;
mod page;
mod position;
pub mod sqlite;
mod tail;

pub use backend::{Backend, BoxFuture, Changes};
pub use clock::{Clock, ManualClock};
pub use error::{Error, Result};
pub use follow::{Follower, Pages};
pub use journal::Journal;
pub use key::SessionKey;
pub use lease::{Claim, Lease, Owner, SessionInfo};
pub use memory::Memory;
pub use page::{Entry, Page, PageBuilder, StoredPage};
pub use position::{Epoch, Seq};
