//! Checkpoints: the files of a workspace before and after each turn of a chat, so that any agent's
//! changes can be undone.
//!
//! The workspace is surveyed before a prompt is sent and after the turn, so it does not matter how
//! an agent writes: through the client, in a command, or by itself. Files are compared by size and
//! times, and read only if those differ. Contents are kept in a private SQLite file per workspace,
//! within bounds.
//!
//! - `report` is what callers get. `state` is what a path is at one moment; `survey` lists the
//!   workspace; `database` stores both.
//! - `turns` begins and ends turns and finds their changes; `undo` takes changes back, `parts` one
//!   hunk of them, `show` lists them for `/diff`.
//! - [`Checkpoints`] runs all of it on a thread of its own, in order.
//!
//! What never happens here: a file is written that differs from what the turn left there; a path
//! leads out of the workspace or through a link; a file of version control is touched.

#[cfg(unix)]
mod database;
#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod parts;
mod report;
#[cfg(unix)]
mod show;
#[cfg(unix)]
mod state;
#[cfg(unix)]
mod survey;
#[cfg(unix)]
mod turns;
#[cfg(unix)]
mod undo;

use std::path::PathBuf;

use tokio::sync::{mpsc, oneshot};

use crate::error::{Failure, Result};
#[cfg(unix)]
pub(crate) use database::Store;
#[cfg(not(unix))]
pub(crate) use elsewhere::Store;
pub(crate) use report::{Checkpoint, FileDiff, Outcome, Part, Parts};

/// Jobs that may wait.
const QUEUED: usize = 64;

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// The checkpoints of a workspace. Clones share their state.
#[derive(Clone)]
pub(crate) struct Checkpoints {
    jobs: mpsc::Sender<Job>,
}

/// Opens the store with the first job: a chat without a prompt leaves no file.
struct Worker {
    directory: PathBuf,
    roots: Vec<PathBuf>,
    store: Option<Result<Store, String>>,
}

impl Checkpoints {
    /// Those of the directories of a session, stored below `directory`.
    pub(crate) fn new(directory: PathBuf, roots: Vec<PathBuf>) -> Checkpoints {
        let (jobs, mut queued) = mpsc::channel::<Job>(QUEUED);
        // It ends with the last handle.
        std::thread::spawn(move || {
            let mut worker = Worker { directory, roots, store: None };
            while let Some(job) = queued.blocking_recv() {
                job(&mut worker);
            }
        });
        Checkpoints { jobs }
    }

    /// Runs a job after those before it.
    ///
    /// # Errors
    /// If the store cannot be opened, and those of the job.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |worker| {
            // Nobody waits any more if this fails.
            let _ = reply.send(worker.store().and_then(job));
        });
        let gone = || Failure::runtime("the checkpoints are not available");
        self.jobs.send(job).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Runs a job and then `then` on the same thread, before any later job. It is dropped if too
    /// many wait.
    pub(crate) fn submit<T: 'static>(
        &self,
        job: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
        then: impl FnOnce(Result<T>) + Send + 'static,
    ) {
        let job: Job = Box::new(move |worker| then(worker.store().and_then(job)));
        let _ = self.jobs.try_send(job);
    }

    /// Runs a job whose result is not needed. It is dropped if too many wait.
    pub(crate) fn notify(&self, job: impl FnOnce(&mut Store) -> Result<()> + Send + 'static) {
        self.submit(job, |done| {
            if let Err(failure) = done {
                tracing::warn!(error = %failure.message, "checkpoint");
            }
        });
    }
}

impl Worker {
    fn store(&mut self) -> Result<&mut Store> {
        let (directory, roots) = (&self.directory, &self.roots);
        let store = self
            .store
            .get_or_insert_with(|| Store::open(directory, roots).map_err(|failure| failure.message));
        store.as_mut().map_err(|why| Failure::runtime(&*why))
    }
}

#[cfg(all(test, unix))]
#[path = "checkpoint_tests.rs"]
mod tests;
