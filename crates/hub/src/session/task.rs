//! The task of a session: it orders everything that happens, and writes it to the journal before
//! anybody sees it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

#[cfg(unix)]
use attache::wire::v1::RequestPermissionRequest;
use attache_conn::FrameReader;
use attache_conn::rpc::{ErrorObject, Id};
#[cfg(unix)]
use attache_host::policy::Question;
use attache_journal::{Error, Journal, Lease, Seq};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{debug, info, warn};

#[cfg(unix)]
use super::clients::SessionClients;
use super::history::{EndedPrompt, EndedPrompts, History, title_of};
use super::log::Log;
use super::{Command, Forward, Handover, PromptCommand, Session, Signal, Summary};
use crate::agent::{self, AgentLink, AgentWriter};
use crate::entry::{self, Decision, Opened, TurnEnded, kind};
use crate::message::{self, Outcome};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::providers::Providers;
use crate::provision::{Provision, roots};
use crate::questions::Asker;

/// What a session needs of its hub.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) options: Arc<Options>,
    pub(crate) journal: Journal,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) agents: Arc<Semaphore>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Context {
    /// Waits until the hub is shut down. Cancel-safe.
    pub(crate) async fn stopped(&mut self) {
        if self.stop.wait_for(|stop| *stop).await.is_err() {
            // A hub that is dropped ends when its sessions are idle.
            std::future::pending().await
        }
    }
}

/// A session that is about to start.
pub(crate) struct Opening {
    pub(crate) lease: Lease,
    pub(crate) history: History,
    /// The first entry is still to be written.
    pub(crate) is_new: bool,
    /// The agent of a new session, with its place.
    pub(crate) agent: Option<(AgentLink, OwnedSemaphorePermit)>,
}

/// The session's side of an agent.
pub(super) struct Agent {
    pub(super) writer: AgentWriter,
    pub(super) pending: HashMap<i64, Pending>,
    next_id: i64,
    _place: OwnedSemaphorePermit,
}

/// A request to the agent without a response.
pub(super) enum Pending {
    Prompt,
    Forward(Forward),
}

impl Agent {
    /// Sends a request, and remembers what its response is for.
    pub(super) fn request(
        &mut self,
        method: &str,
        params: &RawValue,
        pending: Pending,
    ) -> Result<(), agent::Stuck> {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, pending);
        self.writer.send(message::request(&Id::Int(id), method, params))
    }
}

/// The running turn.
pub(super) struct Turn {
    pub(super) connection: u64,
    pub(super) prompt: String,
    pub(super) by: String,
    pub(super) params: Box<RawValue>,
    /// The entry of its begin.
    pub(super) begun: Seq,
    pub(super) is_sent: bool,
    pub(super) is_cancelled: bool,
}

/// Something to do when all entries before it are durable.
pub(super) enum Action {
    SendPrompt,
    Answer(Asker, Outcome),
    Confirm(oneshot::Sender<()>),
}

type Starting = JoinHandle<Result<(AgentLink, OwnedSemaphorePermit), ErrorObject>>;

/// The task of a session.
pub(crate) struct Task {
    pub(super) cx: Context,
    pub(super) session: Arc<Session>,
    pub(super) log: Log<Action>,
    pub(super) agent: Option<Agent>,
    /// The receiving half of the agent. Absent while a line is handled.
    reader: Option<FrameReader>,
    /// Files, terminals and rules for the agent.
    #[cfg(unix)]
    pub(super) provision: Option<Provision>,
    #[cfg(unix)]
    pub(super) providers: Option<Providers>,
    /// Questions of the agent that the rules leave to a person.
    #[cfg(unix)]
    pub(super) judged: HashMap<String, (RequestPermissionRequest, Box<Question>)>,
    is_stuck: bool,
    starting: Option<Starting>,
    /// Requests that wait for the agent to start.
    pub(super) stash: VecDeque<Forward>,
    pub(super) turn: Option<Turn>,
    pub(super) queue: VecDeque<PromptCommand>,
    pub(super) ended: EndedPrompts,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) signal: watch::Receiver<Signal>,
    pub(super) used: Instant,
    /// The last time at which open questions were looked at.
    looked: Instant,
    pub(super) questions_asked: u64,
    pub(super) scratch: Vec<u8>,
}

impl Task {
    /// Creates the session and its task. What the last owner left open is closed first, durably.
    pub(crate) async fn open(cx: Context, opening: Opening) -> Result<(Arc<Session>, Task), Error> {
        let Opening { lease, history, is_new, agent } = opening;
        let Some(opened) = history.opened else {
            return Err(Error::Damaged("a session has no first entry".to_owned()));
        };
        let summary = Summary {
            title: history.title,
            mode: history.mode,
            options: history.options,
            ended: history.ended.last().cloned(),
            ..Summary::default()
        };
        let (session, commands, signal) =
            Session::new(lease.key().clone(), lease.epoch(), opened, summary, cx.options.policy);
        let mut task = Task::new(cx, Arc::clone(&session), (commands, signal), lease, history.ended);
        if is_new {
            task.log.stage(kind::OPENED, &entry::encode(&session.opened))?;
        }
        task.close_left_open(history.questions, history.running)?;
        if let Some((link, place)) = agent {
            task.attach_agent(link, place)?;
        }
        while !task.log.is_idle() {
            task.log.start();
            let actions = task.log.appended().await?;
            task.act(actions);
        }
        Ok((session, task))
    }

    pub(super) fn new(
        cx: Context,
        session: Arc<Session>,
        (commands, signal): (mpsc::Receiver<Command>, watch::Receiver<Signal>),
        lease: Lease,
        ended: EndedPrompts,
    ) -> Task {
        #[cfg(unix)]
        let provision =
            cx.options.provide.as_ref().and_then(|provide| provide(&roots(&session.opened.params)));
        Task {
            log: Log::new(cx.journal.clone(), lease, Arc::clone(&cx.metrics)),
            cx,
            session,
            agent: None,
            reader: None,
            #[cfg(unix)]
            provision,
            #[cfg(unix)]
            providers: None,
            #[cfg(unix)]
            judged: HashMap::new(),
            is_stuck: false,
            starting: None,
            stash: VecDeque::new(),
            turn: None,
            queue: VecDeque::new(),
            ended,
            commands,
            signal,
            used: Instant::now(),
            looked: Instant::now(),
            questions_asked: 0,
            scratch: Vec::new(),
        }
    }

    /// Stages the ends of what a former owner left open.
    pub(super) fn close_left_open(
        &mut self,
        questions: Vec<String>,
        running: Option<(String, Seq)>,
    ) -> Result<(), Error> {
        for question in questions {
            let outcome = Outcome::error(&ErrorObject::cancelled());
            let rule = "interrupted".to_owned();
            let decision = Decision { question, outcome, by: None, from: None, rule };
            self.log.stage(kind::DECISION, &entry::encode(&decision))?;
        }
        if let Some((prompt, begun)) = running {
            self.stage_end(prompt, begun, interrupted("the hub was restarted during the turn"), true)?;
        }
        Ok(())
    }

    /// Runs until the session is idle and without users, or its journal fails. Returns what is left
    /// to do if another hub has become the owner and can be reached.
    pub(crate) async fn run(mut self) -> Option<Handover> {
        self.cx.metrics.sessions.add(1);
        let served = self.serve().await;
        if self.cx.options.network.is_some() && matches!(served, Err(Error::Fenced)) {
            info!(session = ?self.session.key, "another hub has taken a session over");
            self.cx.metrics.sessions.subtract(1);
            return Some(self.hand_over());
        }
        if let Err(error) = served {
            warn!(session = ?self.session.key, %error, "a session ended because of its journal");
            self.session.signal.send_modify(|signal| signal.failed = true);
        }
        self.session.close();
        self.commands.close();
        self.set_turn(None);
        self.end_agent();
        self.cx.metrics.sessions.subtract(1);
        if let Some(lease) = self.log.into_lease() {
            // A lease that was taken over needs no release.
            let _ = self.cx.journal.release(lease).await;
        }
        None
    }

    async fn serve(&mut self) -> Result<(), Error> {
        let mut renew = tokio::time::interval(self.cx.options.lease / 3);
        renew.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.log.start();
            if self.may_end() && self.session.try_close() {
                return Ok(());
            }
            let wake = self.wake_time();
            let timer = async {
                match wake {
                    Some(time) => tokio::time::sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            let has_room = self.log.has_room();
            let mut reader = self.reader.take();
            let event = tokio::select! {
                biased;
                actions = self.log.appended() => Event::Appended(actions?),
                () = self.cx.stopped() => Event::Stop,
                started = join(&mut self.starting) => Event::Started(started),
                Some(command) = self.commands.recv(), if has_room => Event::Command(command),
                line = next_line(&mut reader), if has_room => match line {
                    Ok(Some(line)) => {
                        self.on_line(line)?;
                        Event::Line
                    }
                    // A line over the limit was skipped.
                    Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Event::Line,
                    _ => Event::AgentEnd,
                },
                _ = self.signal.changed() => Event::Signal,
                _ = renew.tick() => Event::Renew,
                () = timer => Event::Timer,
            };
            let event = match (event, &mut reader) {
                (Event::Line, Some(reader)) => self.read_ready_lines(reader).await?,
                (event, _) => event,
            };
            self.reader = reader;
            match event {
                Event::Appended(actions) => self.act(actions),
                Event::Started(started) => self.on_started(started)?,
                Event::Command(command) => self.on_command(command)?,
                Event::AgentEnd => self.on_agent_end()?,
                Event::Renew => self.renew().await?,
                Event::Timer => self.on_timer()?,
                Event::Stop => return self.stop().await,
                Event::Line | Event::Signal => {}
            }
            if std::mem::take(&mut self.is_stuck) {
                self.on_agent_end()?;
            }
        }
    }

    async fn renew(&mut self) -> Result<(), Error> {
        let lease = Arc::clone(self.log.lease());
        match self.cx.journal.renew(&lease, self.cx.options.lease).await {
            Err(error @ (Error::Fenced | Error::Unknown)) => Err(error),
            Err(error) => {
                warn!(%error, "a lease cannot be renewed");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Handles the lines that are there already, up to a full page: they become one append.
    async fn read_ready_lines(&mut self, reader: &mut FrameReader) -> Result<Event, Error> {
        while self.log.has_room() {
            tokio::select! {
                biased;
                line = reader.next() => match line {
                    Ok(Some(line)) => self.on_line(line)?,
                    Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {}
                    _ => return Ok(Event::AgentEnd),
                },
                () = std::future::ready(()) => break,
            }
        }
        Ok(Event::Line)
    }

    /// Whether there is nothing that keeps the session in memory but its users.
    fn may_end(&self) -> bool {
        self.agent.is_none()
            && self.starting.is_none()
            && self.turn.is_none()
            && self.queue.is_empty()
            && self.log.is_idle()
            && self.commands.is_empty()
    }

    fn wake_time(&self) -> Option<Instant> {
        let questions = self.session.questions.lock().next_event(self.cx.options.deadline, self.looked);
        let idle = self.is_agent_idle().then(|| self.used + self.cx.options.idle);
        questions.into_iter().chain(idle).min()
    }

    fn is_agent_idle(&self) -> bool {
        self.turn.is_none() && self.agent.as_ref().is_some_and(|agent| agent.pending.is_empty())
    }

    fn on_timer(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.looked = now;
        if let Some(deadline) = self.cx.options.deadline {
            let expired = self.session.questions.lock().expire(deadline, now);
            self.decide(expired)?;
        }
        self.session.ask_again();
        if self.is_agent_idle() && self.used + self.cx.options.idle <= now {
            debug!(session = ?self.session.key, "an idle agent is ended");
            self.end_agent();
        }
        Ok(())
    }

    /// Carries out actions whose entries are durable.
    pub(super) fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::SendPrompt => self.send_prompt(),
                Action::Answer(Asker::Agent(id), outcome) => self.send(message::response(&id, &outcome)),
                #[cfg(unix)]
                Action::Answer(Asker::Hub(reply), outcome) => drop(reply.send(outcome)),
                Action::Confirm(reply) => drop(reply.send(())),
            }
        }
    }

    /// Sends a line to the agent, if there is one.
    pub(super) fn send(&mut self, line: Vec<u8>) {
        if let Some(agent) = &self.agent
            && agent.writer.send(line).is_err()
        {
            self.end_stuck_agent();
        }
    }

    /// Ends an agent that does not read, at the end of the present step.
    pub(super) fn end_stuck_agent(&mut self) {
        warn!(session = ?self.session.key, "the agent does not read its input and is ended");
        self.is_stuck = true;
    }

    /// Starts the agent of a session that was stored.
    pub(super) fn start_agent(&mut self) {
        if self.agent.is_some() || self.starting.is_some() {
            return;
        }
        let (cx, opened) = (self.cx.clone(), self.session.opened.clone());
        self.starting = Some(tokio::spawn(async move { reopen(&cx, &opened).await }));
    }

    fn attach_agent(&mut self, link: AgentLink, place: OwnedSemaphorePermit) -> Result<(), Error> {
        self.session.summary.lock().agent = Some(link.pid());
        let (reader, writer, parked, next_id) = link.into_session();
        #[cfg(unix)]
        {
            let start = |provision| {
                let clients = Arc::new(SessionClients::new(&self.session));
                Providers::start(provision, clients, self.session.opened.clone(), writer.clone())
            };
            self.providers = self.provision.as_ref().map(start);
        }
        self.cx.metrics.agents.add(1);
        self.agent = Some(Agent { writer, pending: HashMap::new(), next_id, _place: place });
        self.reader = Some(reader);
        self.used = Instant::now();
        for line in parked.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.on_line(line)?;
        }
        Ok(())
    }

    /// Ends the agent, and lets it exit by itself first.
    pub(super) fn end_agent(&mut self) {
        if let Some(starting) = self.starting.take() {
            starting.abort();
        }
        self.agent = None;
        self.session.summary.lock().agent = None;
        #[cfg(unix)]
        {
            self.providers = None;
            self.judged.clear();
        }
        if let Some(reader) = self.reader.take() {
            self.cx.metrics.agents.subtract(1);
            tokio::spawn(agent::end(reader));
        }
    }

    fn on_started(
        &mut self,
        started: Result<(AgentLink, OwnedSemaphorePermit), ErrorObject>,
    ) -> Result<(), Error> {
        self.starting = None;
        match started {
            Ok((link, place)) => {
                self.attach_agent(link, place)?;
                if self.turn.as_ref().is_some_and(|turn| !turn.is_sent) {
                    self.send_prompt();
                }
                for forward in std::mem::take(&mut self.stash) {
                    self.forward(forward)?;
                }
            }
            Err(error) => {
                for forward in std::mem::take(&mut self.stash) {
                    self.stage_response(&forward, Outcome::error(&error))?;
                }
                if self.turn.is_some() {
                    // An agent may die while it starts.
                    self.end_turn(Outcome::error(&error), message::is_interrupted(&error))?;
                }
            }
        }
        Ok(())
    }

    /// Ends what is open, durably, because the hub is shut down.
    async fn stop(&mut self) -> Result<(), Error> {
        // Other hubs send their prompts again, and clients do when they come back.
        self.queue.clear();
        for forward in std::mem::take(&mut self.stash) {
            self.stage_response(&forward, interrupted(STOPPED))?;
        }
        if let Some(turn) = &mut self.turn {
            turn.is_sent = true;
        }
        self.interrupt(STOPPED)?;
        while !self.log.is_idle() {
            self.log.start();
            let actions = self.log.appended().await?;
            self.act(actions);
        }
        Ok(())
    }

    fn on_agent_end(&mut self) -> Result<(), Error> {
        debug!(session = ?self.session.key, "the agent has ended");
        self.interrupt("the agent has ended")
    }

    /// Ends the agent, and with an error what it was doing.
    fn interrupt(&mut self, why: &str) -> Result<(), Error> {
        let pending = self.agent.as_mut().map(|agent| std::mem::take(&mut agent.pending)).unwrap_or_default();
        self.end_agent();
        let error = interrupted(why);
        for pending in pending.into_values() {
            if let Pending::Forward(forward) = pending {
                self.stage_response(&forward, error.clone())?;
            }
        }
        if self.turn.as_ref().is_some_and(|turn| turn.is_sent) {
            let is_cancelled = self.turn.as_ref().is_some_and(|turn| turn.is_cancelled);
            match is_cancelled {
                true => self.end_turn(stop_reason("cancelled"), false)?,
                false => self.end_turn(error, true)?,
            }
        }
        let open = self.session.questions.lock().cancel_all("interrupted");
        self.decide(open)
    }

    /// Stages a notification of the hub for all connections but one.
    pub(super) fn stage_notice(&mut self, but: u64, line: &[u8]) -> Result<(), Error> {
        let mut summary = self.session.summary.lock();
        if summary.title.is_none() {
            summary.title = title_of(line);
        }
        drop(summary);
        self.log.stage(kind::NOTICE, &entry::encode_notice(but, line))?;
        Ok(())
    }

    /// Stages decisions. The agent is answered when they are durable.
    pub(super) fn decide(&mut self, decisions: Vec<(Asker, Decision)>) -> Result<(), Error> {
        for (asker, decision) in decisions {
            #[cfg(unix)]
            self.grant(&decision);
            info!(
                target: "attache_hub::audit",
                session = ?self.session.key,
                question = %decision.question,
                by = decision.by.as_deref().unwrap_or("-"),
                from = decision.from.as_deref().unwrap_or("-"),
                rule = %decision.rule,
                "question decided"
            );
            self.cx.metrics.decisions.add(1);
            self.log.stage(kind::DECISION, &entry::encode(&decision))?;
            self.log.then(Action::Answer(asker, decision.outcome));
        }
        Ok(())
    }

    /// Stages the end of a turn.
    pub(super) fn stage_end(
        &mut self,
        prompt: String,
        begun: Seq,
        outcome: Outcome,
        interrupted: bool,
    ) -> Result<(), Error> {
        if interrupted {
            self.cx.metrics.interrupted.add(1);
        }
        let ended = TurnEnded { prompt, outcome, interrupted };
        let seq = self.log.stage(kind::TURN_ENDED, &entry::encode(&ended))?;
        let end = EndedPrompt { begun, ended: seq, outcome: ended.outcome };
        self.session.summary.lock().ended = Some(end.clone());
        self.ended.insert(ended.prompt, end);
        Ok(())
    }

    pub(super) fn set_turn(&mut self, turn: Option<Turn>) {
        match (self.turn.is_some(), turn.is_some()) {
            (false, true) => self.cx.metrics.turns.add(1),
            (true, false) => self.cx.metrics.turns.subtract(1),
            _ => {}
        }
        self.turn = turn;
        let mut summary = self.session.summary.lock();
        summary.is_busy = self.turn.is_some();
        summary.queued = self.queue.len();
    }
}

/// The reason why a turn ended.
const STOPPED: &str = "the hub was stopped during the turn";

/// An input of the task.
enum Event {
    Appended(Vec<Action>),
    Started(Result<(AgentLink, OwnedSemaphorePermit), ErrorObject>),
    Command(Command),
    /// A line of the agent was handled.
    Line,
    AgentEnd,
    Signal,
    Renew,
    Timer,
    Stop,
}

/// A result with a stop reason.
pub(super) fn stop_reason(reason: &str) -> Outcome {
    Outcome::result(&json!({"stopReason": reason}))
}

/// The error of a turn that did not come to its end.
fn interrupted(why: &str) -> Outcome {
    Outcome::error(&message::interrupted(why))
}

/// The request that `$/cancel_request` names.
pub(crate) fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    Id::from_raw(serde_json::from_str::<Params<'_>>(params?.get()).ok()?.request_id)
}

/// Starts an agent for a stored session.
async fn reopen(cx: &Context, opened: &Opened) -> Result<(AgentLink, OwnedSemaphorePermit), ErrorObject> {
    let place = place(&cx.agents)?;
    let mut link = AgentLink::start(&cx.options, opened.elicitation).await?;
    cx.metrics.agents_started.add(1);
    link.reopen(&opened.agent_session, &opened.params).await?;
    Ok((link, place))
}

/// A place for an agent.
pub(crate) fn place(agents: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ErrorObject> {
    let full = |_| ErrorObject::internal("the hub runs as many agents as it may; try again later");
    Arc::clone(agents).try_acquire_owned().map_err(full)
}

/// Waits for an agent to start; for ever if none does.
async fn join(starting: &mut Option<Starting>) -> Result<(AgentLink, OwnedSemaphorePermit), ErrorObject> {
    match starting {
        Some(starting) => starting
            .await
            .unwrap_or_else(|_| Err(ErrorObject::internal("the agent cannot be started on the hub"))),
        None => std::future::pending().await,
    }
}

/// The next line of the agent; waits for ever without an agent.
async fn next_line(reader: &mut Option<FrameReader>) -> std::io::Result<Option<&[u8]>> {
    match reader {
        Some(reader) => reader.next().await,
        None => std::future::pending().await,
    }
}
