//! Waiting for the peer.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::wire::Came;
use super::{Id, PROBE, Reply, Stage, WireError};
use crate::judge::{Heard, Message};
use crate::target::Exit;
use crate::trace::{End, What};
use crate::{Step, Stop};

/// How much longer than other things a turn may take: a model works in it.
const TURN: u32 = 6;
/// The same for the answer to `initialize`.
const START: u32 = 3;
/// What is answered when it is done, and that is up to a model, a person or a command. A client may ask its user before it lends
/// anything, so that only what it says about things already lent can be late.
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
    /// Waits for the answer to a request of the checker. Meanwhile the peer's requests are served.
    pub async fn expect(&mut self, id: &Id) -> Result<Result<Value, WireError>, Stop> {
        let asked = self.book.open(self.setup.plays, id).map(|asked| asked.method.clone());
        let what = format!("the answer to {}", asked.as_deref().unwrap_or("a request"));
        let patience = match asked.as_deref() {
            Some("session/prompt") => TURN,
            // The first answer also waits for a program to start.
            Some("initialize") => START,
            _ => 1,
        };
        let answers =
            |heard: &Heard| matches!(&heard.message, Message::Answer { id: other, .. } if other == id);
        let heard = match self.wait(what, patience, answers).await {
            Err(Stop::Deadline(what)) => {
                self.never_answered(id, patience);
                return Err(Stop::Deadline(what));
            }
            other => other?,
        };
        self.last = Some(heard.index);
        match &heard.message {
            Message::Answer { outcome: Ok(result), .. } => Ok(Ok(result.clone())),
            Message::Answer { outcome: Err(error), .. } => Ok(Err(WireError::of(error))),
            _ => Err(Stop::Broken("an answer that is none".to_owned())),
        }
    }

    /// RPC-24: a request gets an answer. Where that takes as long as it takes, waiting shows nothing.
    fn never_answered(&mut self, id: &Id, patience: u32) {
        let Some(asked) = self.book.open(self.setup.plays, id) else { return };
        if !IN_ITS_TIME.contains(&asked.method.as_str()) {
            let (at, seconds) = (asked.index, (self.setup.deadline * patience).as_secs());
            let why = format!("{} was not answered within {seconds} seconds", asked.method);
            self.fail_at("RPC-24", &[at], why);
        }
    }

    /// The next message of the peer, whatever it is. Requests are not served here.
    pub async fn next(&mut self) -> Result<Rc<Heard>, Stop> {
        let until = Instant::now() + self.setup.deadline;
        loop {
            if let Some(heard) = self.inbox.pop_front() {
                self.last = Some(heard.index);
                return Ok(heard);
            }
            self.receive(until, "the next message").await?;
        }
    }

    /// Waits for a message and takes it out; others stay. Meanwhile the peer's requests are served, except one that is wanted.
    pub async fn until(&mut self, what: &str, wanted: impl FnMut(&Heard) -> bool) -> Result<Rc<Heard>, Stop> {
        let heard = self.wait(what.to_owned(), TURN, wanted).await?;
        self.last = Some(heard.index);
        Ok(heard)
    }

    /// Waits for a message until the request `id` is answered; `None` if the answer came first (it stays, for [`expect`](Self::expect)).
    pub async fn during(
        &mut self,
        id: &Id,
        mut wanted: impl FnMut(&Heard) -> bool,
    ) -> Result<Option<Rc<Heard>>, Stop> {
        let ends = |heard: &Heard| matches!(&heard.message, Message::Answer { id: other, .. } if other == id);
        let heard =
            self.wait("the end of a turn".to_owned(), TURN, |heard| wanted(heard) || ends(heard)).await?;
        if ends(&heard) {
            self.inbox.push_front(heard);
            return Ok(None);
        }
        self.last = Some(heard.index);
        Ok(Some(heard))
    }

    /// Judges silence: asks something harmless and gives back everything that came before its answer and was not a request that was
    /// served. What must not be answered shows here if it was.
    pub async fn probe(&mut self) -> Result<Vec<Rc<Heard>>, Stop> {
        let id = self.request(PROBE, json!({})).await?;
        // Whatever the answer is, it was one.
        let _ = self.expect(&id).await?;
        let said: Vec<Rc<Heard>> = self.inbox.drain(..).collect();
        if let Some(heard) = said.last() {
            self.last = Some(heard.index);
        }
        Ok(said)
    }

    /// Really waits; gives back what came, served or not. Only where [`probe`](Self::probe) cannot tell.
    pub async fn quiet(&mut self, time: Duration) -> Result<Vec<Rc<Heard>>, Stop> {
        let until = Instant::now() + time;
        let before = self.heard.len();
        loop {
            match self.receive(until, "").await {
                Ok(()) => self.serve_inbox().await?,
                Err(Stop::Deadline(_) | Stop::PeerGone) => break,
                Err(stop) => return Err(stop),
            }
        }
        Ok(self.heard[before..].to_vec())
    }

    /// Waits until the peer has closed its side.
    pub async fn closed(&mut self) -> Step {
        let until = Instant::now() + self.setup.deadline;
        while !self.wire.has_ended() {
            match self.receive(until, "the end of the peer's output").await {
                Ok(()) => {}
                Err(Stop::PeerGone) => return Ok(()),
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    /// Waits until the peer's program has ended; `None` if nothing can be known of it.
    pub async fn exit(&mut self) -> Result<Option<Exit>, Stop> {
        let Some(life) = &mut self.life else { return Ok(None) };
        tokio::time::timeout(self.setup.deadline, life.exit())
            .await
            .map_err(|_| Stop::Deadline("the end of the program".to_owned()))
    }

    /// Makes a running client do something now.
    pub fn act(&mut self, act: &str) -> Step {
        let told = self.life.as_mut().map_or(Ok(()), |life| life.act(act));
        self.note(format!("the client is told to {act}"));
        told.map_err(|error| Stop::NotExercised(format!("the client cannot be told to {act}: {error}")))
    }

    async fn wait(
        &mut self,
        what: String,
        patience: u32,
        mut wanted: impl FnMut(&Heard) -> bool,
    ) -> Result<Rc<Heard>, Stop> {
        let until = Instant::now() + self.setup.deadline * patience;
        loop {
            let mut place = 0;
            while let Some(heard) = self.inbox.get(place).cloned() {
                if wanted(&heard) {
                    self.inbox.remove(place);
                    return Ok(heard);
                }
                if self.serve(&heard).await? {
                    self.inbox.remove(place);
                } else {
                    place += 1;
                }
            }
            // A real command ends without a message: then it is time to look at what is held.
            let soon = Instant::now() + Duration::from_millis(50);
            let waits = self.services.waits() && soon < until;
            match self.receive(if waits { soon } else { until }, &what).await {
                Err(Stop::Deadline(_)) if waits => {}
                other => other?,
            }
        }
    }

    async fn serve_inbox(&mut self) -> Step {
        let waiting: Vec<_> = self.inbox.drain(..).collect();
        for heard in waiting {
            if !self.serve(&heard).await? {
                self.inbox.push_back(heard);
            }
        }
        Ok(())
    }

    /// Whether the message was a request that the services have answered, or will.
    async fn serve(&mut self, heard: &Heard) -> Result<bool, Stop> {
        let Message::Request { id, method, params } = &heard.message else { return Ok(false) };
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
                Ok(Ok(Came::End)) => {
                    self.peer_closed();
                    return Err(Stop::PeerGone);
                }
                Ok(Ok(Came::Lines(lines))) if lines.is_empty() => {}
                Ok(Ok(Came::Lines(lines))) => {
                    self.arrived(lines);
                    return Ok(());
                }
            }
        }
    }

    fn peer_closed(&mut self) {
        let from = self.peer();
        if !self.trace.entries.iter().any(|entry| entry.what == What::Closed { from }) {
            self.record(What::Closed { from });
        }
    }

    fn arrived(&mut self, lines: Vec<(Vec<u8>, End)>) {
        for (text, end) in lines {
            let index = self.record(What::Line { from: self.peer(), text, end });
            let entry = &self.trace.entries[index];
            let What::Line { text, .. } = &entry.what else { continue };
            let heard = Rc::new(Heard::read(index, entry.at, self.setup.plays.other(), text, end));
            self.book.take(&heard);
            self.inbox.push_back(Rc::clone(&heard));
            self.heard.push(heard);
        }
    }

    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> Step {
        let until = Instant::now() + self.setup.deadline;
        let gone = |_| Stop::PeerGone;
        while !bytes.is_empty() {
            let done = timeout_at(until, self.wire.turn(bytes)).await;
            let (count, came) =
                done.map_err(|_| Stop::Deadline("room to write".to_owned()))?.map_err(gone)?;
            bytes = &bytes[count..];
            match came {
                Some(Came::Lines(lines)) => self.arrived(lines),
                Some(Came::End) => self.peer_closed(),
                None => {}
            }
        }
        let flushed = timeout_at(until, self.wire.flush()).await;
        flushed.map_err(|_| Stop::Deadline("room to write".to_owned()))?.map_err(gone)
    }

    /// Reads what a peer still says after its input was closed, for a short time.
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
