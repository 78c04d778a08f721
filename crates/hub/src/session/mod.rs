//! A session: the handle that clients have, and the task behind it.

#[cfg(unix)]
mod clients;
mod commands;
mod handover;
mod history;
mod lines;
mod log;
#[cfg(unix)]
mod rules;
mod task;

#[cfg(unix)]
pub(crate) use clients::Editor;
pub(crate) use handover::Handover;
pub(crate) use history::{EndedPrompt, History};
pub(crate) use task::{Context, Opening, Task, cancelled_id, place};

use attache_conn::rpc::{ErrorObject, Id};
use attache_journal::{Epoch, Seq, SessionKey};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot, watch};

use crate::entry::{Decision, Opened};
use crate::identity::Identity;
use crate::message::Outcome;
use crate::questions::{Policy, Questions};

pub(crate) use crate::questions::Asker;

/// Commands that wait for a session.
const COMMANDS: usize = 64;

/// A command of a client.
pub(crate) enum Command {
    Prompt(PromptCommand),
    /// Cancels the running turn and removes the connection's prompts from the queue.
    Cancel {
        connection: u64,
    },
    /// Cancels one prompt.
    CancelPrompt {
        prompt: String,
    },
    /// Passes a request on to the agent.
    Forward(Forward),
    /// Takes such a request back.
    CancelForward {
        connection: u64,
        id: Id,
    },
    /// Passes a notification on to the agent.
    Notify {
        method: String,
        params: Box<RawValue>,
    },
    /// A client of another hub answers a question.
    Answer {
        question: String,
        by: Identity,
        outcome: Outcome,
    },
    /// Answers a request that a former owner had taken.
    Interrupt(Forward),
    /// The owner tells what became of a prompt of this hub.
    PromptStatus(String, PromptReply),
    /// A client's answer decided a question.
    Decide(Asker, Decision),
    /// Asks the clients for a permission in the name of the hub.
    #[cfg(unix)]
    Ask(Box<RawValue>, Asker),
    /// Ends the agent.
    Close(oneshot::Sender<()>),
}

/// A prompt of a client.
pub(crate) struct PromptCommand {
    pub(crate) connection: u64,
    pub(crate) by: String,
    /// Its id.
    pub(crate) prompt: String,
    pub(crate) params: Box<RawValue>,
    /// Dropped without a value when the turn starts: then its end is an entry of the journal.
    pub(crate) reply: oneshot::Sender<PromptReply>,
}

/// What becomes of a prompt that does not start a turn.
pub(crate) enum PromptReply {
    /// It ran before.
    Ended(EndedPrompt),
    /// It is running since this entry, or waits in the queue. Its end will be an entry of the
    /// journal.
    Running(Option<Seq>),
    /// It cannot be taken, or was cancelled in the queue.
    Outcome(Outcome),
}

/// A request of a client for the agent.
pub(crate) struct Forward {
    pub(crate) connection: u64,
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Box<RawValue>,
}

/// A signal to the attachments of a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signal {
    /// Counts the times at which another client may have become eligible to answer.
    pub(crate) ask: u64,
    /// The task has ended because the journal failed or was taken over.
    pub(crate) failed: bool,
}

/// The state that lists show.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) title: Option<String>,
    pub(crate) mode: Option<String>,
    /// The config options, once they were changed.
    pub(crate) options: Option<Box<RawValue>>,
    /// The end of the last turn.
    pub(crate) ended: Option<EndedPrompt>,
    /// The running agent, with its process if it is one of this machine.
    pub(crate) agent: Option<Option<u32>>,
    pub(crate) is_busy: bool,
    pub(crate) queued: usize,
}

/// A session in memory.
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    /// The number of the last claim that this hub knows.
    epoch: AtomicU64,
    /// Another hub owns the session, and this one passes commands on to it.
    is_guest: AtomicBool,
    pub(crate) opened: Opened,
    pub(crate) questions: Mutex<Questions>,
    pub(crate) signal: watch::Sender<Signal>,
    pub(crate) summary: Mutex<Summary>,
    /// Editors whose buffers count, the latest last.
    #[cfg(unix)]
    pub(crate) editors: Mutex<Vec<Arc<dyn Editor>>>,
    commands: mpsc::Sender<Command>,
    users: Mutex<Users>,
}

#[derive(Debug, Default)]
struct Users {
    count: usize,
    /// No more users are accepted: the task is ending.
    closed: bool,
}

impl Session {
    /// Creates the handle of a session, and the receivers of its task.
    pub(crate) fn new(
        key: SessionKey,
        epoch: Epoch,
        opened: Opened,
        summary: Summary,
        policy: Policy,
    ) -> (Arc<Session>, mpsc::Receiver<Command>, watch::Receiver<Signal>) {
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (signal, receiver) = watch::channel(Signal::default());
        let session = Session {
            key,
            epoch: epoch.get().into(),
            is_guest: false.into(),
            opened,
            questions: Mutex::new(Questions::new(policy)),
            signal,
            summary: Mutex::new(summary),
            #[cfg(unix)]
            editors: Mutex::default(),
            commands: sender,
            users: Mutex::new(Users::default()),
        };
        (Arc::new(session), commands, receiver)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch::new(self.epoch.load(Ordering::Relaxed))
    }

    /// Notes a claim, and whether it is one of another hub.
    pub(crate) fn set_owner(&self, epoch: Epoch, is_guest: bool) {
        self.epoch.store(epoch.get(), Ordering::Relaxed);
        self.is_guest.store(is_guest, Ordering::Relaxed);
    }

    pub(crate) fn is_guest(&self) -> bool {
        self.is_guest.load(Ordering::Relaxed)
    }

    /// The id that clients use.
    pub(crate) fn id(&self) -> &str {
        self.key.session()
    }

    /// Keeps the session in memory. `None` if it is about to leave it.
    pub(crate) fn enter(self: &Arc<Session>) -> Option<SessionRef> {
        let mut users = self.users.lock();
        if users.closed {
            return None;
        }
        users.count += 1;
        Some(SessionRef(Arc::clone(self)))
    }

    pub(crate) fn users(&self) -> usize {
        self.users.lock().count
    }

    /// Refuses new users, if there is none now.
    pub(crate) fn try_close(&self) -> bool {
        let mut users = self.users.lock();
        users.closed |= users.count == 0;
        users.closed
    }

    /// Refuses new users.
    pub(crate) fn close(&self) {
        self.users.lock().closed = true;
    }

    /// Sends a command.
    pub(crate) async fn send(&self, command: Command) -> Result<(), ErrorObject> {
        self.commands
            .send(command)
            .await
            .map_err(|_| ErrorObject::internal("the session has failed; load it again"))
    }

    /// Tells the attachments to look for questions.
    pub(crate) fn ask_again(&self) {
        self.signal.send_modify(|signal| signal.ask += 1);
    }
}

/// A use of a session, which keeps it in memory.
pub(crate) struct SessionRef(Arc<Session>);

impl std::ops::Deref for SessionRef {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for SessionRef {
    fn drop(&mut self) {
        self.0.users.lock().count -= 1;
        // The task looks at the number of users when it is woken.
        self.0.ask_again();
    }
}
