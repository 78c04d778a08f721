//! Replays one side of a recording to a live peer.
//!
//! The entries are replayed in order. Before a message of the checker's side is sent, all earlier
//! messages of the peer must have come. These are matched by meaning (`meaning.rs`): the same
//! method in the same session, an answer to the same request. Ids that the peer chooses (requests,
//! sessions, terminals, options) are learned from the match and replaced in outgoing messages
//! (`names.rs`). Mismatches are reported; a request that the recording does not have is answered
//! with an error, so that the peer can continue.

mod meaning;
mod names;

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use attache_conn::{FrameReader, FrameWriter, Link};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::Role;
use crate::trace::{EntryKind, Trace};
use meaning::{Meaning, differences};
use names::Names;

/// How a recording is played.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose part is played.
    pub part: Role,
    /// Whether to wait as long as was waited then.
    pub delays: bool,
    /// How long the peer may take for what it has to say next.
    pub patience: Duration,
    /// Whether other content of a message that matches counts as a deviation.
    pub strict: bool,
    /// The directory that stands in for the one of the recording when we play the client.
    pub cwd: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            part: Role::Agent,
            delays: false,
            patience: Duration::from_secs(30),
            strict: false,
            cwd: None,
        }
    }
}

/// When this much time has passed; a time that no clock can count is cut to a year.
fn after(time: Duration) -> Instant {
    Instant::now() + time.min(Duration::from_secs(31_536_000))
}

/// A difference between the peer and the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// A message that the recording does not have.
    Unexpected {
        /// The message.
        said: String,
    },
    /// A message of the recording that did not come.
    Missing {
        /// The message.
        expected: String,
        /// The entry of the recording, counted from 0.
        entry: usize,
    },
    /// A message that came earlier than in the recording.
    Early {
        /// The message.
        said: String,
        /// The entry of the recording that it came before.
        before: usize,
    },
    /// Another version of the protocol.
    Version {
        /// The version of the recording.
        recorded: u64,
        /// The newest version of the peer.
        peer: u64,
    },
    /// The same message with other content.
    Different {
        /// The message.
        said: String,
        /// The entry of the recording, counted from 0.
        entry: usize,
        /// Where, as JSON pointers.
        at: Vec<String>,
    },
}

impl Deviation {
    /// Whether it counts without [`Options::strict`].
    pub fn is_grave(&self) -> bool {
        !matches!(self, Deviation::Different { .. })
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deviation::Unexpected { said } => write!(f, "not in the recording: {said}"),
            Deviation::Missing { expected, entry } => write!(f, "missing: {expected} (entry {entry})"),
            Deviation::Early { said, before } => write!(f, "too early: {said} came before entry {before}"),
            Deviation::Version { recorded, peer } => {
                write!(f, "other protocol: the recording is of version {recorded}, the peer speaks {peer}")
            }
            Deviation::Different { said, entry, at } => {
                write!(f, "other content: {said} differs from entry {entry} at {}", at.join(", "))
            }
        }
    }
}

/// The result of a replay.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Everything that was not as recorded, in order.
    pub deviations: Vec<Deviation>,
    /// How many of the peer's recorded messages came.
    pub matched: usize,
    /// How many there are.
    pub expected: usize,
    /// How many of our recorded lines were said.
    pub said: usize,
}

impl Outcome {
    /// Whether the peer did as recorded.
    pub fn is_faithful(&self, strict: bool) -> bool {
        self.deviations.iter().all(|deviation| !strict && !deviation.is_grave())
    }
}

/// Plays one side of `trace` on `link`. `hear` is called with each deviation at once.
pub async fn replay(trace: &Trace, link: Link, options: &Options, hear: impl FnMut(&Deviation)) -> Outcome {
    let (reader, writer) = link.split();
    let mut names = Names::default();
    if let (Some(to), Some(from)) = (&options.cwd, names::recorded_cwd(trace)) {
        names.directory(from, to.to_string_lossy().into_owned());
    }
    let expected = expected(trace, options.part.other());
    let outcome = Outcome { expected: expected.len(), ..Outcome::default() };
    let version = recorded_version(trace);
    let mut play =
        Play { reader, writer, expected, names, outcome, options, hear, open: true, last: None, version };
    play.run(trace).await;
    play.outcome
}

/// The messages that are expected from the peer, in order.
fn expected(trace: &Trace, peer: Role) -> VecDeque<Expected> {
    let mut open = meaning::OpenRequests::default();
    let mut all = VecDeque::new();
    // Whether our side has said something since.
    let mut spoke = false;
    for (entry, recorded) in trace.entries.iter().enumerate() {
        let EntryKind::Line { from, text, .. } = &recorded.kind else { continue };
        // Lines that are no messages are noise and need no match.
        let Ok(message) = serde_json::from_slice::<Value>(text) else { continue };
        let Some(meaning) = Meaning::of(&message, &open, *from) else { continue };
        open.note(&message, *from);
        if *from == peer {
            // How a text is cut into pieces is not repeated from run to run.
            let goes_on = meaning.is_piece()
                && all.back().is_some_and(|last: &Expected| last.meaning == meaning && !spoke);
            spoke = false;
            if !goes_on {
                all.push_back(Expected { entry, meaning, message });
            }
        } else {
            spoke = true;
        }
    }
    all
}

#[derive(Debug)]
struct Expected {
    entry: usize,
    meaning: Meaning,
    message: Value,
}

struct Play<'a, H> {
    reader: FrameReader,
    writer: FrameWriter,
    expected: VecDeque<Expected>,
    names: Names,
    outcome: Outcome,
    options: &'a Options,
    hear: H,
    open: bool,
    /// The last message of the peer.
    last: Option<Meaning>,
    /// The protocol version of the recording.
    version: Option<u64>,
}

/// The protocol version that the agent of a recording answered.
fn recorded_version(trace: &Trace) -> Option<u64> {
    trace.entries.iter().rev().find_map(|entry| {
        let EntryKind::Line { from: Role::Agent, text, .. } = &entry.kind else { return None };
        let message: Value = serde_json::from_slice(text).ok()?;
        message.get("result")?.get("protocolVersion")?.as_u64()
    })
}

impl<H: FnMut(&Deviation)> Play<'_, H> {
    async fn run(&mut self, trace: &Trace) {
        let mut before = Duration::ZERO;
        for (index, entry) in trace.entries.iter().enumerate() {
            let EntryKind::Line { from, text, .. } = &entry.kind else { continue };
            if *from != self.options.part {
                before = entry.at;
                continue;
            }
            if !self.wait_until(index).await {
                return self.give_up();
            }
            if self.options.delays {
                self.listen_for(entry.at.saturating_sub(before)).await;
            }
            before = entry.at;
            if !self.say(text).await {
                return self.give_up();
            }
        }
        if !self.wait_until(usize::MAX).await {
            return self.give_up();
        }
        // The recording is over; the peer sees the end of its input and may still say what is not
        // in it.
        let _ = self.writer.close().await;
        let until = after(self.options.patience.min(Duration::from_secs(2)));
        while self.open && self.hear_one(until).await {}
    }

    /// Waits for everything that the peer had said before entry `index`.
    async fn wait_until(&mut self, index: usize) -> bool {
        let until = after(self.options.patience);
        while self.expected.front().is_some_and(|next| next.entry < index) {
            if !self.hear_one(until).await {
                return false;
            }
        }
        true
    }

    /// Lets time pass, with open ears.
    async fn listen_for(&mut self, time: Duration) {
        let until = after(time);
        while self.open && self.hear_one(until).await {}
        tokio::time::sleep_until(until).await;
    }

    /// One line of the peer; false if none came in time, or never will.
    async fn hear_one(&mut self, until: Instant) -> bool {
        // A peer that never stops talking always has the next line ready, so that no timer is ever
        // looked at.
        if Instant::now() >= until {
            return false;
        }
        let line = match timeout_at(until, self.reader.next()).await {
            Err(_) => return false,
            Ok(Ok(Some(line))) => line.to_vec(),
            Ok(Ok(None)) => {
                self.open = false;
                return false;
            }
            Ok(Err(error)) => {
                // A line that is too long, or half a line at the end.
                self.deviate(Deviation::Unexpected { said: error.to_string() });
                return true;
            }
        };
        if let Ok(message) = serde_json::from_slice::<Value>(&line) {
            self.take(&message).await;
        }
        true
    }

    async fn take(&mut self, message: &Value) {
        let Some(meaning) = self.names.meaning(message, self.options.part.other()) else { return };
        if meaning.is_piece() && self.last.as_ref() == Some(&meaning) {
            return;
        }
        self.last = Some(meaning.clone());
        let Some(at) = self.expected.iter().position(|expected| expected.meaning == meaning) else {
            self.deviate(Deviation::Unexpected { said: meaning.to_string() });
            return self.refuse(message).await;
        };
        if at > 0 {
            let before = self.expected[0].entry;
            if !meaning.is_unordered()
                && !self.expected.iter().take(at).all(|expected| expected.meaning.is_unordered())
            {
                self.deviate(Deviation::Early { said: meaning.to_string(), before });
            }
        }
        let Some(expected) = self.expected.remove(at) else { return };
        self.outcome.matched += 1;
        if let Some(deviation) = self.version_deviation(message) {
            self.deviate(deviation);
        }
        self.names.learn(&expected.message, message);
        let at = differences(&self.names.put(&expected.message), message);
        if !at.is_empty() && !meaning.is_piece() {
            self.deviate(Deviation::Different { said: meaning.to_string(), entry: expected.entry, at });
        }
    }

    /// The peer speaks another version of the protocol than the recording.
    fn version_deviation(&self, message: &Value) -> Option<Deviation> {
        let recorded = self.version?;
        let peer = match self.options.part {
            // A client may offer more than the agent spoke.
            Role::Agent if message["method"] == "initialize" => {
                message["params"]["protocolVersion"].as_u64().filter(|offered| *offered < recorded)
            }
            Role::Client => {
                message["result"]["protocolVersion"].as_u64().filter(|answered| *answered != recorded)
            }
            Role::Agent => None,
        };
        peer.map(|peer| Deviation::Version { recorded, peer })
    }

    /// A request that the recording does not know still gets an answer.
    // RPC-12
    async fn refuse(&mut self, message: &Value) {
        if let (Some(id), true) = (message.get("id"), message.get("method").is_some()) {
            let error = json!({ "code": -32603, "message": "this request is not in the recording" });
            let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            self.send(answer.to_string().as_bytes()).await;
        }
    }

    async fn say(&mut self, text: &[u8]) -> bool {
        let mut named = None;
        if let Ok(message) = serde_json::from_slice::<Value>(text) {
            self.names.note_own(&message, self.options.part);
            // A message without names to replace is sent byte by byte as recorded.
            named = Some(self.names.put(&message)).filter(|named| *named != message).map(|it| it.to_string());
        }
        let said = self.send(named.as_deref().map_or(text, str::as_bytes)).await;
        self.outcome.said += usize::from(said);
        said
    }

    /// Whether the peer has taken it in time: one that does not read fills its pipe.
    async fn send(&mut self, text: &[u8]) -> bool {
        let sent = timeout_at(after(self.options.patience), self.writer.send(text)).await;
        sent.is_ok_and(|sent| sent.is_ok())
    }

    fn give_up(&mut self) {
        while let Some(missing) = self.expected.pop_front() {
            self.deviate(Deviation::Missing { expected: missing.meaning.to_string(), entry: missing.entry });
        }
    }

    fn deviate(&mut self, deviation: Deviation) {
        (self.hear)(&deviation);
        self.outcome.deviations.push(deviation);
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
