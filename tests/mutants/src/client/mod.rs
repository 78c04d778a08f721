//! The conformant client and its variants.
//!
//! [`client`] plays one client over a link: it performs the act of its [`Setup`] and leaves, as a
//! command-line client does, and serves everything of v1 meanwhile (`v2` holds what version 2
//! changes). It writes plain JSON, so that a variant can send messages that no typed client allows.
//! A variant changes one behaviour, at the one place that asks `Client::is` for it.
//!
//! Read `wire` (outgoing messages), `incoming`, `actions`, then the services by topic.

mod actions;
mod elicit;
mod files;
mod incoming;
mod login;
mod nes;
mod open;
mod permissions;
mod sessions;
mod shell;
mod terminals;
mod updates;
mod v2;
mod wire;

crate::variants!();

use attache_conn::{FrameWriter, Link};
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use wire::Halt;

/// Starts the agent's program once more, with these arguments and variables added. Returns whether
/// it succeeded.
pub type Relaunch = Arc<
    dyn Fn(Vec<String>, Vec<(String, String)>) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync,
>;

/// The action of a client and its inputs.
#[derive(Default)]
pub struct Setup {
    /// The variant to play; the good client without one.
    pub variant: Option<String>,
    /// The version of the protocol to offer; 1 if zero.
    pub protocol: u64,
    /// The action: `prompt` unless set, see `actions`.
    pub act: String,
    /// The text of the prompt.
    pub prompt: String,
    /// The directory that sessions work in.
    pub cwd: PathBuf,
    /// The session that acts such as `load` are about.
    pub session: Option<String>,
    /// Directories beside `cwd`.
    pub roots: Vec<PathBuf>,
    /// Whether terminals start processes; else a small interpreter runs their scripts in tokio's
    /// time.
    pub processes: bool,
    /// Acts of the user meanwhile: `cancel`, `allow`.
    pub cues: Option<mpsc::Receiver<String>>,
    /// How to start the agent's program for a terminal login.
    pub relaunch: Option<Relaunch>,
}

/// Plays a client over `link` until its act is done or the agent is gone, and returns its exit
/// code.
pub async fn client(link: Link, mut setup: Setup) -> u8 {
    let cues = setup.cues.take();
    let (reader, writer) = link.split();
    let client = Arc::new(Client {
        setup,
        out: tokio::sync::Mutex::new(writer),
        state: Mutex::default(),
        completed: watch::Sender::new(Vec::new()),
        heard_commands: Notify::new(),
        idle: Notify::new(),
    });
    let listening = Arc::clone(&client);
    let ended = {
        let act = actions::perform(&client);
        let incoming = incoming::receive(&listening, reader);
        let user = actions::user(&client, cues);
        tokio::pin!(act, incoming, user);
        tokio::select! {
            ended = &mut act => ended,
            () = &mut incoming => Err(Halt::Gone),
            () = &mut user => Err(Halt::Gone),
        }
    };
    // TERM-20: what was started for the agent does not outlive it.
    client.end_terminals();
    let mut out = client.out.lock().await;
    // STDIO-10: the end comes after the last message, not within one.
    if client.is("STDIO-10") {
        out.feed(b"{\"jsonrpc\":\"2.0\",");
    }
    let _ = out.close().await;
    u8::from(ended.is_err())
}

/// One client at work.
pub(crate) struct Client {
    pub(crate) setup: Setup,
    out: tokio::sync::Mutex<FrameWriter>,
    state: Mutex<State>,
    /// The elicitations that the agent called complete.
    completed: watch::Sender<Vec<String>>,
    heard_commands: Notify,
    /// Raised when a session of version 2 becomes idle.
    idle: Notify,
}

/// The state of the client.
#[derive(Default)]
pub(crate) struct State {
    last_id: u64,
    /// Waiters for answers to our requests, by the text of the id.
    waiting: HashMap<String, oneshot::Sender<Result<Value, Value>>>,
    /// Requests of the agent in progress, by the text of their id; notified when the agent
    /// withdraws them.
    serving: HashMap<String, Arc<Notify>>,
    /// The answer to initialize.
    pub(crate) agent: Value,
    pub(crate) sessions: HashMap<String, Session>,
    pub(crate) terminals: HashMap<String, Arc<terminals::Terminal>>,
    pub(crate) questions: Vec<permissions::Question>,
    pub(crate) commands: Vec<String>,
    /// How many terminals were made.
    pub(crate) made: u64,
    /// Set by a variant that remembers an open wait.
    pub(crate) waited: bool,
    /// Set by variants that stop.
    stopped: bool,
}

/// The state of a session.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) cwd: PathBuf,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) prompting: bool,
    pub(crate) cancelled: bool,
    /// How often it became idle, in version 2.
    pub(crate) idles: usize,
}

impl Client {
    /// Whether this client plays the variant `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.setup.variant.as_deref() == Some(name)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this client speaks version 2.
    pub(crate) fn speaks_2(&self) -> bool {
        self.setup.protocol == 2
    }

    pub(crate) fn acts(&self, act: &str) -> bool {
        self.setup.act == act
    }

    /// Stops sending and reading until the agent leaves: the failure of variants that cannot handle
    /// a message.
    pub(crate) fn halt(&self) {
        self.state().stopped = true;
    }

    pub(crate) async fn stop(&self) {
        self.halt();
        std::future::pending::<()>().await;
    }
}
