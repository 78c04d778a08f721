//! The state that the connections to an owner share: the queue of its jobs, and the limits of
//! requests.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::owner_limits::OwnerLimits;
use super::renderer::Renderer;
use super::socket::{LARGE_REQUESTS, Replies};
use super::turn::{Stop, StopCause};
use super::worker::{PromptJob, RunningSession, Setting};
use crate::session_store::{Store, hash};
use crate::time::now;

/// A job of the owner. Jobs run in the order of their requests.
pub(super) enum Job {
    Prompt {
        work: Box<PromptJob>,
        renderer: Renderer,
        stop: Stop,
        running: Running,
    },
    Set {
        setting: Setting,
        replies: Replies,
    },
    /// Ends the process. `over` closes the session; otherwise another process takes it over.
    Close {
        over: bool,
        done: oneshot::Sender<()>,
    },
}

/// The handle of a queued or running prompt.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) request: String,
    /// Its approximate size in memory.
    pub(super) size: usize,
    pub(super) tell: Arc<watch::Sender<Option<StopCause>>>,
    pub(super) control: Arc<Mutex<Option<RunningSession>>>,
}

/// The state that all connections share.
pub(super) struct Shared {
    pub(super) id: String,
    pub(super) jobs: mpsc::Sender<Job>,
    /// The prompt that runs, and those that wait.
    prompts: Mutex<VecDeque<Running>>,
    pub(super) ttl: watch::Sender<Duration>,
    pub(super) store: Store,
    pub(super) limits: OwnerLimits,
    /// Permits to read long requests.
    pub(super) large: Semaphore,
    /// How many more refusals are logged.
    refusals: AtomicU32,
    /// Prompts so far, for unique names.
    requests: AtomicU64,
}

/// The total size of queued prompts.
const MOST_WAITING: usize = 256 << 20;
/// How many refusals are logged.
const MOST_REFUSALS: u32 = 200;

impl Shared {
    pub(super) fn new(
        id: &str,
        jobs: mpsc::Sender<Job>,
        ttl: watch::Sender<Duration>,
        store: Store,
        limits: OwnerLimits,
    ) -> Shared {
        Shared {
            id: id.to_owned(),
            jobs,
            prompts: Mutex::default(),
            ttl,
            store,
            limits,
            large: Semaphore::new(LARGE_REQUESTS),
            refusals: AtomicU32::new(MOST_REFUSALS),
            requests: AtomicU64::new(0),
        }
    }

    /// A name for the next prompt.
    pub(super) fn request_name(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("{:x}-{:x}", std::process::id(), hash(&format!("{number} {}", now())))
    }

    /// Reserves a place in the queue. Returns it with the number of prompts before it; `None` if
    /// the queue is full.
    pub(super) fn enqueue(&self, prompt: &Running) -> Option<(mpsc::OwnedPermit<Job>, usize)> {
        let mut prompts = self.prompts();
        let waiting: usize = prompts.iter().map(|prompt| prompt.size).sum();
        if waiting + prompt.size > MOST_WAITING && !prompts.is_empty() {
            return None;
        }
        let place = self.jobs.clone().try_reserve_owned().ok()?;
        prompts.push_back(prompt.clone());
        Some((place, prompts.len() - 1))
    }

    /// Logs a refusal. Peers can cause many, so their number is bounded.
    pub(super) fn note_refusal(&self, text: &str) {
        let room = |left: u32| left.checked_sub(1);
        match self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) {
            Ok(1) => self.note(&format!("{text}; further refusals are not logged")),
            Ok(_) => self.note(text),
            Err(_) => {}
        }
    }

    pub(super) fn prompts(&self) -> MutexGuard<'_, VecDeque<Running>> {
        self.prompts.lock()
    }

    /// The running prompt.
    pub(super) fn current(&self) -> Option<Running> {
        self.prompts().front().cloned()
    }

    pub(super) fn done(&self, request: &str) {
        self.prompts().retain(|prompt| prompt.request != request);
    }

    /// Writes to the owner's log, which is its stderr.
    pub(super) fn note(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{} {}", now(), self.store.mask().text(text));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use attache_host::policy::Mode;

    use super::*;
    use crate::paths::Paths;
    use crate::run::permits::Permits;

    fn shared(depth: usize) -> (Shared, mpsc::Receiver<Job>) {
        let (jobs, queue) = mpsc::channel(depth);
        let dir = PathBuf::from("/nowhere");
        let paths = Paths {
            config: dir.clone(),
            state: dir.clone(),
            cache: dir.clone(),
            data: dir.clone(),
            runtime: dir,
        };
        let permits = Permits::of_mode(Mode::ASK);
        let ttl = watch::channel(Duration::ZERO).0;
        (Shared::new("s", jobs, ttl, Store::new(&paths), OwnerLimits::new(permits)), queue)
    }

    fn prompt(request: &str, size: usize) -> Running {
        let tell = Arc::new(watch::channel(None).0);
        Running { request: request.to_owned(), size, tell, control: Arc::default() }
    }

    #[test]
    fn the_queue_is_bounded_by_number_and_by_size() {
        let (few, _queue) = shared(2);
        assert_eq!(few.enqueue(&prompt("a", 1)).map(|(_, ahead)| ahead), Some(0));
        let places: Vec<_> = ["b", "c"].iter().filter_map(|name| few.enqueue(&prompt(name, 1))).collect();
        assert_eq!(places.len(), 2, "a place is given back when it is not used");
        assert!(few.enqueue(&prompt("d", 1)).is_none());

        let (many, _queue) = shared(100);
        let half = MOST_WAITING / 2;
        let held: Vec<_> = ["a", "b", "c"].iter().map(|name| many.enqueue(&prompt(name, half))).collect();
        assert!(held[0].is_some() && held[1].is_some() && held[2].is_none());
        many.done("a");
        assert!(many.enqueue(&prompt("c", half)).is_some());
        // One that is too large for the queue can still be the only one.
        many.done("b");
        many.done("c");
        assert!(many.enqueue(&prompt("d", MOST_WAITING + 1)).is_some());
    }
}
