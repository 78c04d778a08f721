//! The right to append to a session.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::position::{Epoch, Seq};

/// A request for the right to append.
#[derive(Debug, Clone)]
pub struct Claim {
    pub(crate) owner: String,
    pub(crate) ttl: Duration,
    pub(crate) force: bool,
    pub(crate) existing: bool,
}

impl Claim {
    /// A claim of `owner`, the name of a node or process, for the time `ttl`. It creates the
    /// session if there is none.
    pub fn new(owner: impl Into<String>, ttl: Duration) -> Self {
        Claim { owner: owner.into(), ttl, force: false, existing: false }
    }

    /// Fails if there is no session and one is needed, or if another owner's lease has time left.
    /// The parts of `found` are a session and its owner.
    pub(crate) fn check(&self, found: Option<Option<&Owner>>, now: u64) -> Result<()> {
        match found {
            None if self.existing => Err(Error::Unknown),
            Some(Some(owner)) if !self.force && owner.name != self.owner && owner.until > now => {
                Err(Error::Held { owner: owner.name.clone(), until: owner.until })
            }
            _ => Ok(()),
        }
    }

    /// Takes the session from another owner whose lease has time left.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Fails with [`Error::Unknown`](crate::Error::Unknown) instead of creating the session.
    #[must_use]
    pub fn existing(mut self) -> Self {
        self.existing = true;
        self
    }

    /// The owner's name.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The time that the lease lasts without renewal.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Whether a lease with time left is ended.
    pub fn is_forced(&self) -> bool {
        self.force
    }

    /// Whether the session has to exist.
    pub fn is_existing(&self) -> bool {
        self.existing
    }
}

/// The right to append to a session, until another claim succeeds.
///
/// Dropping it releases nothing, as a crash would: other owners wait until its time is over.
/// [`Journal::release`](crate::Journal::release) ends it at once.
///
/// There is no `Clone`, so that one task writes. Calls with one lease may overlap; positions decide
/// between them.
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    key: SessionKey,
    owner: Arc<str>,
    epoch: Epoch,
    last: Seq,
}

impl Lease {
    /// Creates a lease; for backends.
    pub fn new(key: SessionKey, owner: impl Into<Arc<str>>, epoch: Epoch, last: Seq) -> Self {
        Lease { key, owner: owner.into(), epoch, last }
    }

    /// The same lease for a call that outlives its caller.
    pub(crate) fn share(&self) -> Lease {
        Lease { key: self.key.clone(), owner: self.owner.clone(), epoch: self.epoch, last: self.last }
    }

    /// The session.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The owner's name.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The number of the claim: the fencing token.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The last entry at the time of the claim. The first append follows it.
    pub fn last(&self) -> Seq {
        self.last
    }
}

/// The owner of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// The end of its lease, in milliseconds since 1970. It may have passed.
    pub until: u64,
}

/// The state of a session in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The session.
    pub key: SessionKey,
    /// The first entry that is left; one more than `last` if there is none.
    pub first: Seq,
    /// The last entry.
    pub last: Seq,
    /// The number of the last claim.
    pub epoch: Epoch,
    /// The owner; `None` after a release.
    pub owner: Option<Owner>,
    /// The bytes of all entries that are left.
    pub bytes: u64,
    /// The time of the last append, or of the first claim, in milliseconds since 1970.
    pub updated: u64,
}
