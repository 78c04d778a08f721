//! Sessions of a connection and their streams.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::Connection;
use super::stream;

/// The stream of a session counts as silent after this many ticks without a byte. A process that
/// gets no processor sees late ticks, but reads its sockets between them, so bytes that are there
/// already are never taken for silence.
const SILENT_TICKS: u32 = 5;
const TICK: Duration = Duration::from_millis(10);
/// The stream of a session that is opened again counts as forgotten after this time without an
/// event.
const REOPEN_SILENCE: Duration = Duration::from_millis(300);
/// The longest time that a response waits for silence, in ticks. A session with a running turn may
/// never be silent. One second would be over within a long history that a busy server or network
/// interrupts, and its rest would come after the response.
const MAX_TICKS: u32 = 500;
/// The longest time that a message of a session waits for its stream.
pub(super) const MAX_OPENING: Duration = Duration::from_secs(5);

/// A session with a stream of its own.
pub(super) struct Session {
    pub(super) id: String,
    /// Wakes a refused stream: the server may know the session now.
    pub(super) retry: Notify,
    /// Ends the stream.
    pub(super) stop: Notify,
    progress: watch::Sender<Progress>,
    /// The last bytes, and the last event.
    activity: Mutex<Activity>,
}

#[derive(Debug, Clone, Copy)]
struct Activity {
    bytes: Instant,
    event: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Attempts to open the stream.
    begun: u64,
    /// Those that have succeeded or failed.
    ended: u64,
    is_open: bool,
    /// Whether it was open, and the server has not responded to an attempt since.
    is_broken: bool,
}

impl Session {
    pub(super) fn begin_attempt(&self) {
        self.progress.send_modify(|progress| progress.begun += 1);
    }

    pub(super) fn set_open(&self, is_open: bool) {
        self.progress.send_modify(|progress| {
            progress.is_broken = !is_open && (progress.is_open || progress.is_broken);
            progress.ended += u64::from(!progress.is_open);
            progress.is_open = is_open;
        });
    }

    /// Notes that the server does not know the session, or gives it to another client.
    pub(super) fn set_refused(&self) {
        self.set_open(false);
        self.progress.send_modify(|progress| progress.is_broken = false);
    }

    /// Waits until the stream is open, or an attempt after the first `begun` ones was refused. A
    /// stream that broke is waited for: the server may not know yet that its reader is gone.
    async fn wait_attempt(&self, begun: u64) {
        let mut progress = self.progress.subscribe();
        let is_settled =
            |progress: &Progress| progress.is_open || progress.ended > begun && !progress.is_broken;
        let attempt = progress.wait_for(is_settled);
        let _ = tokio::time::timeout(MAX_OPENING, attempt).await;
    }

    /// Waits for the history of a session that was opened just now. The server may know the session
    /// only now, so a refused stream is tried once more, after the attempts that had `begun` by
    /// then.
    pub(super) async fn wait_history(&self, begun: u64) {
        self.wait_attempt(begun).await;
        if self.progress.borrow().is_open {
            self.wait_silence().await;
        }
    }

    /// The number of attempts to open the stream so far.
    pub(super) fn begun_attempts(&self) -> u64 {
        self.progress.borrow().begun
    }

    /// Notes that bytes have arrived, and perhaps an event with them.
    pub(super) fn note_bytes(&self, has_event: bool) {
        let mut activity = self.activity.lock();
        activity.bytes = Instant::now();
        if has_event {
            activity.event = activity.bytes;
        }
    }

    /// Waits until the stream is silent.
    async fn wait_silence(&self) {
        let (mut last, mut silent) = (self.activity.lock().bytes, 0);
        for _ in 0..MAX_TICKS {
            if silent == SILENT_TICKS {
                return;
            }
            tokio::time::sleep(TICK).await;
            let bytes = self.activity.lock().bytes;
            silent = if bytes == last { silent + 1 } else { 0 };
            last = bytes;
        }
    }
}

/// Returns a session, and starts its stream if it has none.
pub(super) fn start(connection: &Arc<Connection>, id: &str) -> Arc<Session> {
    let mut state = connection.state.lock();
    if let Some(session) = state.sessions.get(id) {
        return Arc::clone(session);
    }
    let now = Instant::now();
    let session = Arc::new(Session {
        id: id.to_owned(),
        retry: Notify::new(),
        stop: Notify::new(),
        progress: watch::Sender::new(Progress::default()),
        activity: Mutex::new(Activity { bytes: now, event: now }),
    });
    state.sessions.insert(id.to_owned(), Arc::clone(&session));
    drop(state);
    let task = stream::run_session(Arc::clone(connection), Arc::clone(&session));
    connection.spawn(task);
    session
}

/// Handles a session that was closed and is opened again. Some servers forget its stream when it is
/// closed, others continue with it, and only their silence shows the difference.
pub(super) fn reopen(connection: &Arc<Connection>, id: &str) {
    let mut state = connection.state.lock();
    let Some(at) = state.closed.iter().position(|closed| closed == id) else { return };
    state.closed.remove(at);
    let Some(session) = state.sessions.get(id).cloned() else { return };
    drop(state);
    let since = Instant::now();
    let task_connection = Arc::clone(connection);
    connection.spawn(async move {
        tokio::time::sleep(REOPEN_SILENCE).await;
        if session.activity.lock().event < since {
            stream::run_second(task_connection, session).await;
        }
    });
}

/// Starts the stream of a session and waits for the first attempt, or for the next one if it broke,
/// so that the server can use it for the answers.
pub(super) async fn open(connection: &Arc<Connection>, id: &str) {
    start(connection, id).wait_attempt(0).await;
}
