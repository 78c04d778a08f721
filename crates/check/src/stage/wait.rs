//! Waiting for the peer.

use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::wire::Incoming;
use super::{Answer, Id, PROBE, Reply, Stage, Step, Stop, WireError};
use crate::judge::{Kind, Message, Request};
use crate::target::Exit;
use crate::trace::{EntryKind, LineEnd};
use crate::version::Version;

/// Timeout factor of a turn, in which a model works.
const TURN: u32 = 6;
/// Timeout factor of `initialize`, which waits for a program to start.
const START: u32 = 3;
/// Methods whose duration depends on a model, a person or a command. A client may ask its user
/// before it provides anything, so only answers about things already provided can be late.
const IN_ITS_TIME: &[&str] = &[
    "session/prompt",
    "session/request_permission",
    "elicitation/create",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/wait_for_exit",
    "mcp/message",
];

impl Stage {
    /// Waits for the answer to a request of the checker and serves the peer's requests meanwhile.
    pub async fn expect(&mut self, id: &Id) -> Result<Answer, Stop> {
        let asked = self.log.open(self.setup.plays, id).map(|asked| asked.method.clone());
        let what = format!("the answer to {}", asked.as_deref().unwrap_or("a request"));
        let patience = match asked.as_deref() {
            Some("session/prompt") => TURN,
            // The first answer also waits for a program to start.
            Some("initialize") => START,
            _ => 1,
        };
        let answers =
            |message: &Message| matches!(&message.kind, Kind::Response { id: other, .. } if other == id);
        let message = match self.wait(what, patience, answers).await {
            Err(Stop::Deadline(what)) => {
                self.never_answered(id, patience);
                return Err(Stop::Deadline(what));
            }
            other => other?,
        };
        self.last = Some(message.index);
        match &message.kind {
            Kind::Response { outcome: Ok(result), .. } => Ok(Ok(result.clone())),
            Kind::Response { outcome: Err(error), .. } => Ok(Err(WireError::of(error))),
            _ => Err(Stop::Broken("an answer that is none".to_owned())),
        }
    }

    /// A request gets an answer. Methods of unknown duration are not judged.
    // RPC-24
    fn never_answered(&mut self, id: &Id, patience: u32) {
        let Some(asked) = self.log.open(self.setup.plays, id) else { return };
        if !IN_ITS_TIME.contains(&asked.method.as_str()) {
            let (at, seconds) = (asked.index, self.timeout(patience).as_secs());
            let why = format!("{} was not answered within {seconds} seconds", asked.method);
            self.fail_at("RPC-24", &[at], why);
        }
    }

    /// Returns the next message of the peer. Does not serve requests.
    pub async fn next(&mut self) -> Result<Rc<Message>, Stop> {
        let until = Instant::now() + self.timeout(1);
        loop {
            if let Some(message) = self.inbox.pop_front() {
                self.last = Some(message.index);
                return Ok(message);
            }
            let came = self.receive(until, "the next message").await;
            self.noted(came)?;
        }
    }

    /// Waits for a message and takes it out of the inbox; others stay. Serves the peer's requests
    /// meanwhile, except those that are wanted.
    pub async fn until(
        &mut self,
        what: &str,
        wanted: impl FnMut(&Message) -> bool,
    ) -> Result<Rc<Message>, Stop> {
        let message = self.wait(what.to_owned(), TURN, wanted).await?;
        self.last = Some(message.index);
        Ok(message)
    }

    /// Waits for a message until the request `id` is answered, or in version 2 until its turn has
    /// ended. Returns `None` if the end came first; it stays in the inbox for
    /// [`expect`](Self::expect) and [`end_of`](Self::end_of).
    pub async fn during(
        &mut self,
        id: &Id,
        mut wanted: impl FnMut(&Message) -> bool,
    ) -> Result<Option<Rc<Message>>, Stop> {
        let asked = self.own_request(id).filter(|_| self.version() == Version::V2);
        let mut idle =
            asked.filter(|asked| asked.method == "session/prompt").map(|asked| self.turn_end(&asked));
        let mut ends = |message: &Message| match &message.kind {
            Kind::Response { id: other, outcome } => other == id && (idle.is_none() || outcome.is_err()),
            _ => idle.as_mut().is_some_and(|idle| idle(message)),
        };
        let message = self
            .wait("the end of a turn".to_owned(), TURN, |message| wanted(message) || ends(message))
            .await?;
        if ends(&message) {
            self.inbox.push_front(message);
            return Ok(None);
        }
        self.last = Some(message.index);
        Ok(Some(message))
    }

    /// The request of the checker with this id, answered or not.
    pub(super) fn own_request(&self, id: &Id) -> Option<Request> {
        let plays = self.setup.plays;
        self.log.open(plays, id).or_else(|| self.log.done(plays, id)).cloned()
    }

    /// Whether the turn of this prompt has not ended yet.
    pub(crate) fn is_running(&self, prompt: &Id) -> bool {
        let plays = self.setup.plays;
        match (self.version(), self.log.done(plays, prompt)) {
            (Version::V1, _) | (_, None) => self.log.open(plays, prompt).is_some(),
            (Version::V2, Some(asked)) => !self.received.iter().any({
                let mut ends = self.turn_end(asked);
                move |message| ends(message)
            }),
        }
    }

    /// Recognises the idle state that ends the turn of a prompt. One without a stop reason counts
    /// only after running, since it may be the state of a new session.
    pub(super) fn turn_end(&self, prompt: &Request) -> impl FnMut(&Message) -> bool + use<> {
        let since = prompt.index;
        let session = prompt.session().unwrap_or_default().to_owned();
        let state = move |message: &Message| -> Option<(bool, bool)> {
            let (of, kind, update) = message.update()?;
            let ours = of == session && kind == "state_update" && message.index > since;
            let idle = update["state"] == "idle";
            ours.then(|| (update["state"] == "running", idle && update["stopReason"].is_string()))
        };
        let mut ran = self.received.iter().any(|message| state(message) == Some((true, false)));
        move |message| {
            let Some((running, stops)) = state(message) else { return false };
            ran |= running;
            stops || (ran && message.params()["update"]["state"] == "idle")
        }
    }

    /// Sends a harmless request and returns every message that came before its answer, served
    /// requests left out. Shows answers that must not be sent.
    pub async fn probe(&mut self) -> Result<Vec<Rc<Message>>, Stop> {
        let id = self.request(PROBE, json!({})).await?;
        // Any answer will do, errors included.
        let _ = self.expect(&id).await?;
        let said: Vec<Rc<Message>> = self.inbox.drain(..).collect();
        if let Some(message) = said.last() {
            self.last = Some(message.index);
        }
        Ok(said)
    }

    /// Waits for `time` and returns the messages that came, served or not. For cases in which
    /// [`probe`](Self::probe) shows nothing.
    pub async fn quiet(&mut self, time: Duration) -> Result<Vec<Rc<Message>>, Stop> {
        let until = Instant::now() + time;
        let before = self.received.len();
        loop {
            match self.receive(until, "").await {
                Ok(()) => self.serve_inbox().await?,
                Err(Stop::Deadline(_) | Stop::PeerGone) => break,
                Err(stop) => return Err(stop),
            }
        }
        Ok(self.received[before..].to_vec())
    }

    /// Waits until the peer has closed its side.
    pub async fn closed(&mut self) -> Step {
        let until = Instant::now() + self.setup.deadline;
        while !self.wire.has_ended() {
            match self.receive(until, "the end of the peer's output").await {
                Ok(()) => {}
                Err(Stop::PeerGone) => return Ok(()),
                Err(stop) => return self.noted(Err(stop)),
            }
        }
        Ok(())
    }

    /// Waits until the peer's program has exited. Returns `None` if that cannot be observed.
    pub async fn exit(&mut self) -> Result<Option<Exit>, Stop> {
        let Some(process) = &mut self.process else { return Ok(None) };
        let exit = tokio::time::timeout(self.setup.deadline, process.exit()).await;
        self.noted(exit.map_err(|_| Stop::Deadline("the end of the program".to_owned())))
    }

    /// The result of a wait. A deadline is noted.
    fn noted<T>(&mut self, result: Result<T, Stop>) -> Result<T, Stop> {
        if let Err(Stop::Deadline(_)) = &result {
            self.deadline_passed();
        }
        result
    }

    /// Makes a running client act now.
    pub fn act(&mut self, act: &str) -> Step {
        let acted = self.process.as_mut().map_or(Ok(()), |process| process.act(act));
        self.note(format!("the client is asked to {act}"));
        acted.map_err(|error| Stop::NotExercised(format!("the client cannot be asked to {act}: {error}")))
    }

    /// The timeout of a step that may take several deadlines. The first message of a peer may take
    /// as long as its start.
    fn timeout(&self, deadlines: u32) -> Duration {
        let timeout = self.setup.deadline * deadlines;
        if self.received.is_empty() { timeout.max(self.setup.startup) } else { timeout }
    }

    async fn wait(
        &mut self,
        what: String,
        patience: u32,
        mut wanted: impl FnMut(&Message) -> bool,
    ) -> Result<Rc<Message>, Stop> {
        let until = Instant::now() + self.timeout(patience);
        loop {
            let mut place = 0;
            while let Some(message) = self.inbox.get(place).cloned() {
                if wanted(&message) {
                    self.inbox.remove(place);
                    return Ok(message);
                }
                if self.serve(&message).await? {
                    self.inbox.remove(place);
                } else {
                    place += 1;
                }
            }
            // A real command ends without a message, so requests that wait for one are polled.
            let soon = Instant::now() + Duration::from_millis(50);
            let waits = self.services.waits() && soon < until;
            match self.receive(if waits { soon } else { until }, &what).await {
                Err(Stop::Deadline(_)) if waits => {}
                other => self.noted(other)?,
            }
        }
    }

    async fn serve_inbox(&mut self) -> Step {
        let waiting: Vec<_> = self.inbox.drain(..).collect();
        for message in waiting {
            if !self.serve(&message).await? {
                self.inbox.push_back(message);
            }
        }
        Ok(())
    }

    /// Serves the message if it is a request. Returns whether the services answered it, or will.
    async fn serve(&mut self, message: &Message) -> Result<bool, Stop> {
        let Kind::Request { id, method, params } = &message.kind else { return Ok(false) };
        match self.services.reply(method, params) {
            Reply::Result(result) => self.answer(id, result).await?,
            Reply::Error(code, message) => self.answer_error(id, code, &message).await?,
            Reply::Hold => return Ok(false),
        }
        Ok(true)
    }

    /// Waits for at least one more line in the inbox.
    async fn receive(&mut self, until: Instant, what: &str) -> Step {
        loop {
            match timeout_at(until, self.wire.read()).await {
                Err(_) => return Err(Stop::Deadline(what.to_owned())),
                Ok(Err(error)) => return Err(Stop::Broken(error.to_string())),
                Ok(Ok(Incoming::End)) => {
                    self.peer_closed();
                    return Err(Stop::PeerGone);
                }
                Ok(Ok(Incoming::Lines(lines))) if lines.is_empty() => {}
                Ok(Ok(Incoming::Lines(lines))) => {
                    self.arrived(lines);
                    return Ok(());
                }
            }
        }
    }

    fn peer_closed(&mut self) {
        let from = self.peer();
        if !self.trace.entries.iter().any(|entry| entry.kind == EntryKind::Closed { from }) {
            self.record(EntryKind::Closed { from });
        }
    }

    fn arrived(&mut self, lines: Vec<(Vec<u8>, LineEnd)>) {
        for (text, end) in lines {
            let index = self.record(EntryKind::Line { from: self.peer(), text, end });
            let entry = &self.trace.entries[index];
            let EntryKind::Line { text, .. } = &entry.kind else { continue };
            let message = Rc::new(Message::read(index, entry.at, self.setup.plays.other(), text, end));
            self.log.take(&message);
            self.inbox.push_back(Rc::clone(&message));
            self.received.push(message);
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Step {
        let written = self.write_all(bytes).await;
        self.noted(written)
    }

    async fn write_all(&mut self, mut bytes: &[u8]) -> Step {
        let until = Instant::now() + self.setup.deadline;
        let gone = |_| Stop::PeerGone;
        while !bytes.is_empty() {
            let done = timeout_at(until, self.wire.turn(bytes)).await;
            let (count, came) =
                done.map_err(|_| Stop::Deadline("room to write".to_owned()))?.map_err(gone)?;
            bytes = &bytes[count..];
            match came {
                Some(Incoming::Lines(lines)) => self.arrived(lines),
                Some(Incoming::End) => self.peer_closed(),
                None => {}
            }
        }
        let flushed = timeout_at(until, self.wire.flush()).await;
        flushed.map_err(|_| Stop::Deadline("room to write".to_owned()))?.map_err(gone)
    }

    /// Reads the rest of the peer's output after its input was closed, for a short time.
    pub(super) async fn drain(&mut self) {
        let until = Instant::now() + self.setup.deadline.min(Duration::from_secs(2));
        while !self.wire.has_ended() {
            if self.receive(until, "").await.is_err() {
                break;
            }
        }
        if self.wire.has_ended() {
            self.peer_closed();
        }
    }
}
