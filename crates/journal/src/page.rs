//! Entries and pages.
//!
//! A page is two byte strings: the bodies of its entries one after the other, and an index of five
//! bytes per entry: its kind and the end of its body. Both are stored and shared as they are, so a
//! range of entries is a slice.

use std::fmt;

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::error::{Error, Result};
use crate::position::{Epoch, Seq};

/// The bytes of an entry in the index: kind, then the end of its body, little-endian.
const INDEX_ENTRY: usize = 5;

/// One entry of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    seq: Seq,
    kind: u8,
    bytes: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Its number.
    pub fn seq(self) -> Seq {
        self.seq
    }

    /// The kind that the writer gave it.
    pub fn kind(self) -> u8 {
        self.kind
    }

    /// The bytes that the writer gave it.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// The entries of one append. Cheap to clone: the bytes are shared.
#[derive(Clone, PartialEq, Eq)]
pub struct Page {
    body: Bytes,
    index: Bytes,
}

impl Page {
    /// The most bytes of a page's entries together. Every message of the protocol fits.
    pub const MAX_BYTES: usize = 64 << 20;
    /// The most entries of a page.
    pub const MAX_ENTRIES: usize = 1 << 16;

    /// Starts a page.
    pub fn builder() -> PageBuilder {
        PageBuilder::default()
    }

    /// Restores a page from [`Self::body`] and [`Self::index`].
    ///
    /// # Errors
    /// [`Error::Damaged`] if they do not belong together.
    pub fn from_parts(body: Bytes, index: Bytes) -> Result<Self> {
        let page = Page { body, index };
        let mut start = 0;
        for position in 0..page.len() {
            let end = page.end(position);
            if end < start {
                return Err(damaged());
            }
            start = end;
        }
        match start == page.body.len() && page.index.len().is_multiple_of(INDEX_ENTRY) && !page.is_empty() {
            true => Ok(page),
            false => Err(damaged()),
        }
    }

    /// The bytes of all entries, one after the other.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The kinds and ends of the entries, in the form that [`Self::from_parts`] reads.
    pub fn index(&self) -> &Bytes {
        &self.index
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.index.len() / INDEX_ENTRY
    }

    /// Whether there are no entries; such a page cannot be appended.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The bytes that the page takes in memory.
    pub(crate) fn weight(&self) -> usize {
        self.body.len() + self.index.len()
    }

    fn end(&self, position: usize) -> usize {
        match self.index.get(position * INDEX_ENTRY + 1..(position + 1) * INDEX_ENTRY) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => 0,
        }
    }

    fn start(&self, position: usize) -> usize {
        position.checked_sub(1).map_or(0, |before| self.end(before))
    }

    /// The entries at `from..to`, sharing the bytes.
    fn slice(&self, from: usize, to: usize) -> Page {
        if (from, to) == (0, self.len()) {
            return self.clone();
        }
        let start = self.start(from);
        let mut index = BytesMut::with_capacity((to - from) * INDEX_ENTRY);
        for position in from..to {
            put_index(&mut index, self.index[position * INDEX_ENTRY], self.end(position) - start);
        }
        Page { body: self.body.slice(start..self.start(to)), index: index.freeze() }
    }
}

fn damaged() -> Error {
    Error::Damaged("a page does not match its index".into())
}

fn put_index(index: &mut BytesMut, kind: u8, end: usize) {
    index.put_u8(kind);
    // The body of a page has at most `MAX_BYTES` bytes.
    index.put_u32_le(u32::try_from(end).unwrap_or(u32::MAX));
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Page({} entries, {} bytes)", self.len(), self.body.len())
    }
}

/// Collects the entries of a page.
#[derive(Debug, Default)]
pub struct PageBuilder {
    body: BytesMut,
    index: BytesMut,
}

impl PageBuilder {
    /// Adds an entry. The journal does not interpret `kind`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the page has no room for it. The page stays as it was, so the caller
    /// can append it and start another one.
    pub fn push(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        if self.len() == Page::MAX_ENTRIES {
            return Err(Error::TooLarge { limit: "65,536 entries" });
        }
        if self.body.len() + bytes.len() > Page::MAX_BYTES {
            return Err(Error::TooLarge { limit: "64 MiB" });
        }
        self.body.extend_from_slice(bytes);
        put_index(&mut self.index, kind, self.body.len());
        Ok(())
    }

    /// The number of entries so far.
    pub fn len(&self) -> usize {
        self.index.len() / INDEX_ENTRY
    }

    /// Whether there are no entries yet.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The bytes of the entries so far.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// The page.
    pub fn build(self) -> Page {
        Page { body: self.body.freeze(), index: self.index.freeze() }
    }
}

/// A page, or a part of one, at its position in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPage {
    first: Seq,
    epoch: Epoch,
    at: u64,
    page: Page,
}

impl StoredPage {
    /// Creates a page at a position; for backends.
    pub fn new(first: Seq, epoch: Epoch, at: u64, page: Page) -> Self {
        StoredPage { first, epoch, at, page }
    }

    /// The number of the first entry.
    pub fn first(&self) -> Seq {
        self.first
    }

    /// The number of the last entry.
    pub fn last(&self) -> Seq {
        Seq::new((self.first.get() + self.page.len() as u64).saturating_sub(1))
    }

    /// The claim under which it was written.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The time of the append, in milliseconds since 1970.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The entries' bytes and kinds.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// The entries, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        let mut start = 0;
        (0..self.page.len()).map(move |position| {
            let end = self.page.end(position);
            let bytes = &self.page.body[start..end];
            start = end;
            Entry {
                seq: self.first.plus(position as u64),
                kind: self.page.index[position * INDEX_ENTRY],
                bytes,
            }
        })
    }

    /// The entries after `after` up to and including `upto`; `None` if there are none.
    pub(crate) fn part(&self, after: Seq, upto: Seq) -> Option<StoredPage> {
        let from = after.plus(1).max(self.first);
        let to = upto.min(self.last()).plus(1);
        if from >= to {
            return None;
        }
        let position = |seq: Seq| usize::try_from(seq.get() - self.first.get()).unwrap_or(usize::MAX);
        let page = self.page.slice(position(from), position(to));
        Some(StoredPage { first: from, epoch: self.epoch, at: self.at, page })
    }
}
