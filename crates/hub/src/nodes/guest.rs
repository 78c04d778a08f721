//! A session that another hub owns.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache_conn::rpc::{ErrorObject, Id};
use attache_journal::{Claim, Entry, Error, Follower, Lease, Seq, SessionKey};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::commands::command;
use crate::entry::{self, Question, kind};
use crate::message::{self, Outcome};
use crate::network::{Action, Answerer, Network, NoReply, NodeRequest, Reply};
use crate::session::{
    Asker, Command, Context, Forward, Handover, History, PromptCommand, PromptReply, Session, Summary, Task,
};

/// The pause before a request is sent again, or the owner is looked for again.
const PAUSE: Duration = Duration::from_millis(250);

/// The task of a session whose owner is another hub.
pub(crate) struct Guest {
    handover: Handover,
    network: Arc<dyn Network>,
    follower: Follower,
    /// What the entries up to the follower's position say.
    history: History,
    /// The author of the last prompt.
    prompter: Option<String>,
    /// Commands that the owner has not taken.
    todo: VecDeque<Todo>,
    /// Prompts that the owner has taken, and whose turns have not begun.
    taken: Vec<PromptCommand>,
    /// Requests that the owner has taken and not answered.
    forwards: Vec<Forward>,
    /// The time to look at `todo`.
    due: Option<Instant>,
}

/// A command for the owner.
enum Todo {
    Prompt(PromptCommand),
    Forward(Forward),
    Interrupt(Forward),
    Close(oneshot::Sender<()>),
    Other(Action),
}

/// The end of an attempt to pass commands on.
enum Step {
    Done,
    /// This hub is the owner now.
    Claimed(Lease),
    /// There is no owner, and no hub has the files of the session.
    Unclaimed,
}

/// A hub that may be the owner.
enum Owner {
    Node(String),
    This(Lease),
    Unclaimed,
}

impl Guest {
    /// Reads a session that another hub owns.
    pub(crate) async fn open(cx: Context, key: &SessionKey) -> Result<(Arc<Session>, Box<Guest>), Error> {
        let Some(network) = cx.options.network.clone() else { return Err(Error::Fenced) };
        let info = cx.journal.info(key).await?;
        let beginning = Seq::new(info.first.get().saturating_sub(1));
        let mut follower = cx.journal.follow(key, beginning).await?;
        let mut history = History::default();
        let (mut questions, mut prompter) = (Vec::new(), None);
        while !follower.is_live() {
            for entry in follower.next().await?.entries() {
                history.fold(entry.kind(), entry.seq(), entry.bytes());
                note_prompter(&mut prompter, entry);
                if entry.kind() == kind::QUESTION
                    && let Some(question) = entry::decode::<Question>(entry.bytes())
                {
                    questions.push((question, entry.seq(), prompter.clone()));
                }
            }
        }
        let Some(opened) = history.opened.clone() else {
            return Err(Error::Damaged("a session has no first entry".to_owned()));
        };
        let summary = Summary {
            title: history.title.clone(),
            mode: history.mode.clone(),
            options: history.options.clone(),
            ended: history.ended.last().cloned(),
            is_busy: history.running.is_some(),
            ..Summary::default()
        };
        let policy = cx.options.policy;
        let (session, commands, signal) = Session::new(key.clone(), info.epoch, opened, summary, policy);
        session.set_owner(info.epoch, true);
        for (question, seq, prompter) in questions {
            if history.questions.contains(&question.question) {
                session.questions.lock().add(question, seq, Asker::Agent(Id::Null), prompter);
            }
        }
        let shared = Arc::clone(&session);
        let (prompts, forwards) = (Vec::new(), Vec::new());
        let handover = Handover { cx, session: shared, commands, signal, prompts, forwards };
        let guest = Guest {
            handover,
            network,
            follower,
            history,
            prompter,
            todo: VecDeque::new(),
            taken: Vec::new(),
            forwards: Vec::new(),
            due: None,
        };
        Ok((session, Box::new(guest)))
    }

    /// Goes on as a guest after this hub was the owner. `None` if the journal cannot be read.
    pub(crate) async fn after(mut handover: Handover) -> Option<Box<Guest>> {
        let (cx, session) = (handover.cx.clone(), Arc::clone(&handover.session));
        loop {
            match Guest::open(cx.clone(), &session.key).await {
                Ok((other, mut guest)) => {
                    // The clients keep their handle; what was read goes into it.
                    std::mem::swap(&mut *session.questions.lock(), &mut *other.questions.lock());
                    std::mem::swap(&mut *session.summary.lock(), &mut *other.summary.lock());
                    session.set_owner(other.epoch(), true);
                    session.ask_again();
                    let prompts = std::mem::take(&mut handover.prompts).into_iter().map(Todo::Prompt);
                    let forwards = std::mem::take(&mut handover.forwards).into_iter().map(Todo::Interrupt);
                    guest.todo = prompts.chain(forwards).collect();
                    guest.due = Some(Instant::now());
                    guest.handover = handover;
                    return Some(guest);
                }
                Err(Error::Unavailable(_) | Error::Busy) => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    fail(&session, &error);
                    return None;
                }
            }
        }
    }

    fn session(&self) -> &Session {
        &self.handover.session
    }

    /// Runs until the session has no users. Returns its task if this hub becomes the owner.
    pub(crate) async fn run(mut self: Box<Self>) -> Option<Task> {
        let mut tick = tokio::time::interval(self.handover.cx.options.lease / 3);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.due.is_some_and(|time| time <= Instant::now()) {
                self.due = None;
                match self.work().await {
                    Ok(Step::Done) => {}
                    Ok(Step::Claimed(lease)) => match self.read_history().await {
                        Ok(history) => return self.own(lease, history),
                        Err(error) => self.try_later(&error),
                    },
                    Ok(Step::Unclaimed) => self = self.settle().await?,
                    Err(error) => self.try_later(&error),
                }
            }
            if self.is_idle() && self.session().try_close() {
                return None;
            }
            let due = self.due;
            let timer = async {
                match due {
                    Some(time) => tokio::time::sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                page = self.follower.next() => match page {
                    Ok(page) => page.entries().for_each(|entry| self.see(entry)),
                    Err(Error::Unavailable(_) | Error::Busy) => tokio::time::sleep(PAUSE).await,
                    Err(error) => {
                        fail(self.session(), &error);
                        return None;
                    }
                },
                Some(command) = self.handover.commands.recv() => self.take(command),
                _ = self.handover.signal.changed() => {}
                () = self.handover.cx.stopped() => return None,
                _ = tick.tick() => self.look().await,
                () = timer => {}
            }
        }
    }

    fn try_later(&mut self, error: &Error) {
        debug!(%error, "the owner of a session cannot be found at the moment");
        self.due = Some(Instant::now() + PAUSE);
    }

    fn is_idle(&self) -> bool {
        self.todo.is_empty() && self.taken.is_empty() && self.forwards.is_empty()
    }

    /// Whether only an owner can end what the journal says.
    fn is_left_open(&self) -> bool {
        self.history.running.is_some() || !self.history.questions.is_empty()
    }

    /// Notes an entry of the owner.
    fn see(&mut self, entry: Entry<'_>) {
        self.history.fold(entry.kind(), entry.seq(), entry.bytes());
        note_prompter(&mut self.prompter, entry);
        let session = Arc::clone(&self.handover.session);
        match entry.kind() {
            kind::PROMPT | kind::TURN_ENDED => {
                if let Some((running, _)) = &self.history.running {
                    // Its end will be an entry, too.
                    self.taken.retain(|prompt| prompt.prompt != *running);
                    self.todo
                        .retain(|todo| !matches!(todo, Todo::Prompt(prompt) if prompt.prompt == *running));
                }
                let mut summary = session.summary.lock();
                summary.is_busy = self.history.running.is_some();
                summary.ended = self.history.ended.last().cloned();
            }
            kind::QUESTION => {
                if let Some(question) = entry::decode::<Question>(entry.bytes()) {
                    session.questions.lock().add(
                        question,
                        entry.seq(),
                        Asker::Agent(Id::Null),
                        self.prompter.clone(),
                    );
                    session.ask_again();
                }
            }
            kind::DECISION => {
                if let Some(decision) = entry::decode::<entry::Decision>(entry.bytes()) {
                    session.questions.lock().remove(&decision.question);
                }
            }
            kind::RESPONSE => {
                if let Some(response) = entry::decode::<entry::Response>(entry.bytes()) {
                    let is_it = |forward: &Forward| {
                        forward.connection == response.connection
                            && Some(&forward.id) == response.id().as_ref()
                    };
                    self.forwards.retain(|forward| !is_it(forward));
                    self.todo.retain(|todo| !matches!(todo, Todo::Interrupt(forward) if is_it(forward)));
                }
            }
            _ => {
                let mut summary = session.summary.lock();
                summary.title.clone_from(&self.history.title);
                summary.mode.clone_from(&self.history.mode);
                summary.options.clone_from(&self.history.options);
            }
        }
    }

    /// Takes a command of a client, or the owner's word on a prompt.
    fn take(&mut self, command: Command) {
        let todo = match command {
            Command::Prompt(prompt) => {
                let is_prompt = |todo: &&Todo| matches!(todo, Todo::Prompt(_));
                if self.todo.iter().filter(is_prompt).count() + self.taken.len()
                    > self.handover.cx.options.queue
                {
                    return refuse(prompt, "too many prompts wait for this session");
                }
                Todo::Prompt(prompt)
            }
            Command::PromptStatus(prompt, status) => {
                if let Some(at) = self.taken.iter().position(|taken| taken.prompt == prompt) {
                    let _ = self.taken.swap_remove(at).reply.send(status);
                }
                return;
            }
            Command::Forward(forward) => Todo::Forward(forward),
            Command::Interrupt(forward) => Todo::Interrupt(forward),
            Command::Close(reply) => Todo::Close(reply),
            Command::Cancel { connection } => {
                self.drop_unsent(|prompt| prompt.connection == connection);
                Todo::Other(Action::Cancel { connection })
            }
            Command::CancelPrompt { prompt } => {
                self.drop_unsent(|unsent| unsent.prompt == prompt);
                Todo::Other(Action::CancelPrompt { prompt })
            }
            Command::CancelForward { connection, id } => {
                Todo::Other(Action::CancelForward { connection, id: message::raw(&id) })
            }
            Command::Notify { method, params } => Todo::Other(Action::Notify { method, params }),
            Command::Answer { question, by, outcome } => {
                Todo::Other(Action::Answer { question, by: Answerer::new(&by), outcome })
            }
            // Only an owner decides.
            Command::Decide(..) => return,
            #[cfg(unix)]
            Command::Ask(..) => return,
        };
        self.todo.push_back(todo);
        self.due.get_or_insert_with(Instant::now);
    }

    /// Answers prompts that the owner has not got as cancelled.
    fn drop_unsent(&mut self, is_dropped: impl Fn(&PromptCommand) -> bool) {
        for todo in std::mem::take(&mut self.todo) {
            match todo {
                Todo::Prompt(prompt) if is_dropped(&prompt) => {
                    let cancelled = Outcome::result(&json!({"stopReason": "cancelled"}));
                    let _ = prompt.reply.send(PromptReply::Outcome(cancelled));
                }
                todo => self.todo.push_back(todo),
            }
        }
    }

    /// Looks whether the owner is still the same one.
    async fn look(&mut self) {
        let Ok(info) = self.handover.cx.journal.info(&self.session().key).await else { return };
        if info.epoch != self.session().epoch() {
            self.session().set_owner(info.epoch, true);
            // The former owner may have lost what it had taken.
            self.todo.extend(std::mem::take(&mut self.forwards).into_iter().map(Todo::Interrupt));
            for prompt in std::mem::take(&mut self.taken).into_iter().rev() {
                self.todo.push_front(Todo::Prompt(prompt));
            }
        }
        if !self.is_idle() || self.is_left_open() {
            self.due.get_or_insert_with(Instant::now);
        }
    }

    /// Passes on what there is to do.
    async fn work(&mut self) -> Result<Step, Error> {
        while !self.is_idle() || self.is_left_open() {
            let owner = match self.owner().await? {
                Owner::Node(owner) => owner,
                Owner::This(lease) => return Ok(Step::Claimed(lease)),
                Owner::Unclaimed => return Ok(Step::Unclaimed),
            };
            let Some(todo) = self.todo.pop_front() else { break };
            let sent = self.send(&owner, self.action(&todo)).await;
            match (todo, sent) {
                (Todo::Prompt(prompt), Ok(Reply::Done)) => self.taken.push(prompt),
                (Todo::Forward(forward), Ok(Reply::Done)) => self.forwards.push(forward),
                (Todo::Close(reply), Ok(Reply::Done)) => drop(reply.send(())),
                (Todo::Interrupt(_) | Todo::Other(_), Ok(Reply::Done)) => {}
                (Todo::Prompt(prompt), Err(NoReply::TooLarge)) => {
                    refuse(prompt, "the prompt is too large for the hub that owns this session");
                }
                (Todo::Forward(forward), Err(NoReply::TooLarge)) => {
                    self.todo.push_front(Todo::Interrupt(forward));
                }
                (_, Err(NoReply::TooLarge)) => {
                    warn!(session = ?self.session().key, "a message is too large for the owner of the session");
                }
                (todo, refused) => {
                    let is_lost = refused == Err(NoReply::Unknown);
                    match todo {
                        // The agent may have got it, and it is not known whether it may get it
                        // twice.
                        Todo::Forward(forward) if is_lost => self.todo.push_front(Todo::Interrupt(forward)),
                        // A cancel must not reach a later turn.
                        Todo::Other(Action::Cancel { .. } | Action::Notify { .. }) if is_lost => {}
                        todo => self.todo.push_front(todo),
                    }
                    self.due = Some(Instant::now() + PAUSE);
                    break;
                }
            }
        }
        Ok(Step::Done)
    }

    fn action(&self, todo: &Todo) -> Action {
        match todo {
            Todo::Prompt(prompt) => Action::Prompt {
                node: self.handover.cx.options.node.clone(),
                connection: prompt.connection,
                by: prompt.by.clone(),
                prompt: prompt.prompt.clone(),
                params: prompt.params.clone(),
            },
            Todo::Forward(forward) => Action::Forward {
                connection: forward.connection,
                id: message::raw(&forward.id),
                method: forward.method.clone(),
                params: forward.params.clone(),
            },
            Todo::Interrupt(forward) => {
                Action::Interrupt { connection: forward.connection, id: message::raw(&forward.id) }
            }
            Todo::Close(_) => Action::Close,
            Todo::Other(action) => action.clone(),
        }
    }

    fn request(&self, action: Action) -> Bytes {
        let key = &self.session().key;
        let (tenant, session) = (key.tenant().to_owned(), key.session().to_owned());
        entry::encode(&NodeRequest { tenant, session, action }).into()
    }

    async fn send(&self, owner: &str, action: Action) -> Result<Reply, NoReply> {
        let reply = self.network.request(owner, self.request(action)).await?;
        serde_json::from_slice(&reply).map_err(|_| NoReply::Unknown)
    }

    /// Finds the owner. Without one, this hub claims the session if it has the files.
    async fn owner(&self) -> Result<Owner, Error> {
        let (cx, key) = (&self.handover.cx, &self.handover.session.key);
        if let Some(owner) = cx.journal.info(key).await?.owner
            && owner.until > now()
            && owner.name != cx.options.node
        {
            return Ok(Owner::Node(owner.name));
        }
        if !(cx.options.reachable)(Path::new(&self.session().opened.cwd())) {
            let adopted = self.network.ask_all(self.request(Action::Adopt)).await;
            let name = adopted.ok().and_then(|name| String::from_utf8(name.to_vec()).ok());
            return Ok(name.map_or(Owner::Unclaimed, Owner::Node));
        }
        self.claim().await
    }

    async fn claim(&self) -> Result<Owner, Error> {
        let (cx, key) = (&self.handover.cx, &self.handover.session.key);
        let claim = Claim::new(cx.options.node.clone(), cx.options.lease).existing();
        match cx.journal.claim(key, &claim).await {
            Ok(lease) => Ok(Owner::This(lease)),
            Err(Error::Held { owner, .. }) => Ok(Owner::Node(owner)),
            Err(error) => Err(error),
        }
    }

    async fn read_history(&self) -> Result<History, Error> {
        History::read(&self.handover.cx.journal, &self.session().key).await
    }

    /// Becomes the owner, and does itself what there is to do.
    fn own(self: Box<Self>, lease: Lease, history: History) -> Option<Task> {
        let Guest { handover, todo, taken, forwards, .. } = *self;
        let session = Arc::clone(&handover.session);
        let (taken, forwards) =
            (taken.into_iter().map(Command::Prompt), forwards.into_iter().map(Command::Interrupt));
        let todo = todo.into_iter().filter_map(|todo| match todo {
            Todo::Prompt(prompt) => Some(Command::Prompt(prompt)),
            Todo::Forward(forward) => Some(Command::Forward(forward)),
            Todo::Interrupt(forward) => Some(Command::Interrupt(forward)),
            Todo::Close(reply) => Some(Command::Close(reply)),
            Todo::Other(action) => command(action),
        });
        let commands = forwards.chain(taken).chain(todo).collect();
        match Task::take_over(handover, lease, history, commands) {
            Ok(task) => Some(task),
            Err(error) => {
                fail(&session, &error);
                None
            }
        }
    }

    /// Ends what is left open, for want of a hub with the files of the session. It can be read on.
    async fn settle(mut self: Box<Self>) -> Option<Box<Guest>> {
        let mut interrupts = std::mem::take(&mut self.forwards);
        let taken = std::mem::take(&mut self.taken).into_iter().map(Todo::Prompt);
        for todo in taken.chain(std::mem::take(&mut self.todo)) {
            match todo {
                Todo::Prompt(prompt) => refuse(prompt, "no hub with the files of this session is running"),
                Todo::Forward(forward) | Todo::Interrupt(forward) => interrupts.push(forward),
                Todo::Close(reply) => drop(reply.send(())),
                Todo::Other(_) => {}
            }
        }
        if interrupts.is_empty() && !self.is_left_open() {
            return Some(self);
        }
        let session = Arc::clone(&self.handover.session);
        let settled = match self.claim().await {
            Ok(Owner::This(lease)) => match self.read_history().await {
                Ok(history) => {
                    let commands = interrupts.into_iter().map(Command::Interrupt).collect();
                    match Task::take_over(self.handover, lease, history, commands) {
                        Ok(task) => task.settle().await,
                        Err(error) => Err(error),
                    }
                }
                Err(error) => {
                    self.forwards = interrupts;
                    self.try_later(&error);
                    return Some(self);
                }
            },
            Ok(_) | Err(_) => {
                self.forwards = interrupts;
                self.due = Some(Instant::now() + PAUSE);
                return Some(self);
            }
        };
        match settled {
            Ok(handover) => Guest::after(handover).await,
            Err(error) => {
                fail(&session, &error);
                None
            }
        }
    }
}

fn refuse(prompt: PromptCommand, why: &str) {
    let error = Outcome::error(&ErrorObject::internal(why));
    let _ = prompt.reply.send(PromptReply::Outcome(error));
}

/// Ends a session for its clients.
fn fail(session: &Session, error: &Error) {
    warn!(session = ?session.key, %error, "a session ended because of its journal");
    session.signal.send_modify(|signal| signal.failed = true);
    session.close();
}

fn note_prompter(prompter: &mut Option<String>, entry: Entry<'_>) {
    if entry.kind() == kind::PROMPT {
        *prompter = entry::decode::<entry::Prompt>(entry.bytes()).map(|prompt| prompt.by);
    }
}

/// Milliseconds since 1970, as leases have them.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
