//! The inbound budget: how much has been read and not been used yet.
//!
//! A connection whose messages are queued for slow consumers must stop reading at some point, or it has no bound. But a
//! reader that rests while a task waits for an answer on the same connection is a deadlock. So: **the reader rests only
//! when nobody waits for it**. Whoever is parked until something arrives says so with a guard, and past a hard limit the
//! reader rests whoever waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

/// Counts bytes that were read and wait inside the program, and tasks that wait for more. Clones are the same count.
#[derive(Clone, Debug)]
pub struct Backlog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    soft: usize,
    hard: usize,
    queued: AtomicUsize,
    waiting: AtomicUsize,
    /// Whether `reader` holds a waker. All orderings are sequentially consistent: the reader raises this and then looks at
    /// the counts, everybody else changes a count and then looks at this, and one of the two must see the other.
    resting: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

impl Backlog {
    pub(crate) fn new(soft: usize, hard: usize) -> Self {
        Backlog(Arc::new(Inner {
            soft,
            hard,
            queued: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
            reader: Mutex::new(None),
        }))
    }

    /// `bytes` more are queued. Called from [`Dispatch`](crate::Dispatch), it takes effect before the next line is read.
    pub fn add(&self, bytes: usize) {
        self.0.queued.fetch_add(bytes, Ordering::SeqCst);
    }

    /// `bytes` of what was added have been taken.
    pub fn sub(&self, bytes: usize) {
        self.0.queued.fetch_sub(bytes, Ordering::SeqCst);
        self.stir();
    }

    /// How many bytes are queued.
    pub fn queued(&self) -> usize {
        self.0.queued.load(Ordering::SeqCst)
    }

    /// The caller is parked until something arrives, for as long as it keeps the guard.
    pub fn waiting(&self) -> Waiting {
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        self.stir();
        Waiting(self.clone())
    }

    /// Whether the reader has to rest now.
    pub fn is_full(&self) -> bool {
        let queued = self.queued();
        queued > self.0.hard || (queued > self.0.soft && self.0.waiting.load(Ordering::SeqCst) == 0)
    }

    /// For the reader: whether to rest; if so, its task is woken when that changes.
    pub(crate) fn rest(&self, cx: &Context<'_>) -> bool {
        if !self.is_full() {
            return false;
        }
        *self.reader() = Some(cx.waker().clone());
        self.0.resting.store(true, Ordering::SeqCst);
        if self.is_full() {
            return true;
        }
        self.0.resting.store(false, Ordering::SeqCst);
        false
    }

    fn stir(&self) {
        if self.0.resting.load(Ordering::SeqCst) && !self.is_full() {
            self.0.resting.store(false, Ordering::SeqCst);
            let waker = self.reader().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn reader(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.0.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody waits for something inbound; see [`Backlog::waiting`].
#[derive(Debug)]
#[must_use = "the wait lasts as long as the guard"]
pub struct Waiting(Backlog);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
