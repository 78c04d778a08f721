//! The checker's side of a conversation.
//!
//! A [`Stage`] sends any bytes, waits with deadlines, records everything and collects findings.
//! Received messages go into an inbox; the ways to wait ([`expect`](Stage::expect),
//! [`until`](Stage::until), [`during`](Stage::during)) take one message out and leave the rest.
//! Meanwhile [`Services`] answer the peer's requests, except for methods that the scenario holds
//! back.
//!
//! `wire.rs` turns bytes into lines, `services.rs` is the client for an agent under test,
//! `as_client.rs` and `as_agent.rs` are the steps of scenarios in either role.

mod as_agent;
mod as_client;
mod services;
mod stop;
mod wait;
mod wire;

pub(crate) use services::NOTES;
pub use services::{Permission, Reply, Services};
pub use stop::{Step, Stop};

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::capability;
use crate::judge::{EventLog, Finding, Findings, Message};
use crate::prompts::Prompts;
use crate::remote::{Endpoint, Observations};
use crate::role::Role;
use crate::rules;
use crate::target::{Connection, Need, PeerProcess};
use crate::trace::{Entry, EntryKind, LineEnd, Trace};
use crate::version::Version;
use wire::Wire;

/// The harmless request that [`Stage::probe`] sends.
pub const PROBE: &str = "_attache/probe";

/// The id of a request.
pub type Id = Value;

/// The peer's answer to a request.
pub type Answer = Result<Value, WireError>;

/// An error response of the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct WireError {
    /// The code; 0 if absent.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The data; null if absent.
    pub data: Value,
}

impl WireError {
    pub(crate) fn of(error: &Value) -> WireError {
        WireError {
            code: error["code"].as_i64().unwrap_or(0),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error["data"].clone(),
        }
    }
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.message)
    }
}

/// The configuration of a stage.
#[derive(Clone, Debug)]
pub struct StageConfig {
    /// The role of the checker.
    pub plays: Role,
    /// The version of the protocol that the checker speaks.
    pub version: Version,
    /// The timeout of one step; turns get six times as long.
    pub deadline: Duration,
    /// The timeout of the first answer of the peer.
    pub startup: Duration,
    /// The texts of prompts.
    pub prompts: Prompts,
    /// The authentication method to log in with after `initialize`.
    pub login: Option<String>,
    /// The directory of sessions.
    pub cwd: PathBuf,
    /// Whether that directory exists on disk, so that programs can run in it.
    pub real: bool,
    /// The requirements of the scenario.
    pub needs: &'static [Need],
    /// The server under test.
    pub endpoint: Option<Endpoint>,
    /// The number of sessions that a fault opens on one connection.
    pub sessions: usize,
}

/// The checker's side of a conversation.
pub struct Stage {
    setup: StageConfig,
    wire: Wire,
    process: Option<Box<dyn PeerProcess>>,
    observations: Observations,
    started: Instant,
    trace: Trace,
    log: EventLog,
    inbox: VecDeque<Rc<Message>>,
    received: Vec<Rc<Message>>,
    /// Answers the peer's requests while a scenario waits.
    pub services: Services,
    findings: Findings,
    skipped: Vec<(&'static str, String)>,
    not_applicable: Vec<(&'static str, String)>,
    next_id: u64,
    /// The entry of the last line that was sent, probes left out.
    asked: Option<usize>,
    probing: bool,
    /// The entry of the last message that was waited for.
    last: Option<usize>,
    /// Whether a server has responded.
    responded: bool,
    /// Connections of Streamable HTTP that the scenario began.
    http_connections: Vec<String>,
    /// Whether a wait has ended by its deadline.
    late: bool,
}

impl Stage {
    /// Creates a stage connected to this peer.
    pub fn new(setup: StageConfig, peer: Connection) -> Stage {
        let Connection { reader, writer, process, observations } = peer;
        Stage {
            wire: Wire::new(reader, writer),
            process: Some(process),
            observations,
            started: Instant::now(),
            trace: Trace::default(),
            log: EventLog::default(),
            inbox: VecDeque::new(),
            received: Vec::new(),
            services: Services::new(&setup.cwd, setup.real),
            findings: Findings::default(),
            skipped: Vec::new(),
            not_applicable: Vec::new(),
            next_id: 0,
            asked: None,
            probing: false,
            last: None,
            responded: false,
            http_connections: Vec::new(),
            late: false,
            setup,
        }
    }

    /// The state of the conversation.
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// The recorded conversation.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The role of the checker.
    pub fn plays(&self) -> Role {
        self.setup.plays
    }

    /// The role of the peer under test.
    pub fn peer(&self) -> Role {
        self.setup.plays.other()
    }

    /// The version of the protocol that the checker speaks.
    pub fn version(&self) -> Version {
        self.setup.version
    }

    /// Whether the peer has agreed to the version. One that names a later version than it was
    /// offered is taken for one of version 1.
    pub(crate) fn speaks(&self) -> bool {
        self.log.version() >= self.setup.version
    }

    /// The directory of sessions.
    pub fn cwd(&self) -> &Path {
        &self.setup.cwd
    }

    /// The timeout of one step.
    pub fn deadline(&self) -> Duration {
        self.setup.deadline
    }

    /// The messages of the peer from number `since` on (see [`mark`](Self::mark)).
    pub fn received(&self, since: usize) -> &[Rc<Message>] {
        self.received.get(since..).unwrap_or_default()
    }

    /// The number of the peer's next message, for [`received`](Self::received).
    pub fn mark(&self) -> usize {
        self.received.len()
    }

    /// Records that the peer kept the rule, with the last line sent and the last message waited for
    /// as evidence.
    pub fn pass(&mut self, rule: &'static str) {
        let at = self.shown();
        self.pass_at(rule, &at);
    }

    /// Records that the peer kept all these rules.
    pub fn pass_all(&mut self, rules: &[&'static str]) {
        rules.iter().for_each(|rule| self.pass(rule));
    }

    /// Records that the peer broke the rule, with the same evidence as [`pass`](Self::pass).
    pub fn fail(&mut self, rule: &'static str, why: impl Into<String>) {
        let at = self.shown();
        self.fail_at(rule, &at, why);
    }

    fn shown(&self) -> Vec<usize> {
        let mut at: Vec<usize> = self.asked.into_iter().chain(self.last).collect();
        at.sort_unstable();
        at.dedup();
        at
    }

    /// Records a pass if `kept`, else a failure.
    pub fn check(&mut self, rule: &'static str, kept: bool, why: impl Into<String>) {
        if kept { self.pass(rule) } else { self.fail(rule, why) }
    }

    /// Records a pass with these trace entries as evidence.
    pub fn pass_at(&mut self, rule: &'static str, at: &[usize]) {
        self.findings.pass_at(rule, self.peer(), at);
    }

    /// Records a failure with these trace entries as evidence.
    pub fn fail_at(&mut self, rule: &'static str, at: &[usize], why: impl Into<String>) {
        self.findings.fail_at(rule, self.peer(), at, why);
    }

    /// Records that the rule does not apply to this peer.
    pub fn skip(&mut self, rule: &'static str, reason: impl Into<String>) {
        self.skipped.push((rule, reason.into()));
    }

    /// Ignores what watchers find about the rule, because the scenario itself is the cause.
    pub fn not_applicable(&mut self, rule: &'static str, reason: impl Into<String>) {
        self.not_applicable.push((rule, reason.into()));
    }

    /// Adds a note to the trace.
    pub fn note(&mut self, text: impl Into<String>) {
        self.record(EntryKind::Note(text.into()));
    }

    /// The server under test.
    ///
    /// # Errors
    /// [`Stop::NotApplicable`] if the peer is not remote.
    pub fn endpoint(&self) -> Result<Endpoint, Stop> {
        let none = || Stop::NotApplicable("the peer is not a server".to_owned());
        self.setup.endpoint.clone().ok_or_else(none)
    }

    /// The method to log in with.
    pub(crate) fn login(&self) -> Option<&str> {
        self.setup.login.as_deref()
    }

    /// The number of sessions that a fault opens on one connection.
    pub(crate) fn sessions(&self) -> usize {
        self.setup.sessions
    }

    /// Notes that a server has begun a connection of Streamable HTTP.
    pub(crate) fn begun(&mut self, connection: &str) {
        self.http_connections.push(connection.to_owned());
    }

    /// The connections of Streamable HTTP that the scenario began, and perhaps ended.
    pub(crate) fn take_begun(&mut self) -> Vec<String> {
        std::mem::take(&mut self.http_connections)
    }

    /// Adds an exchange with a server to the trace, as evidence of the next finding.
    pub(crate) fn exchanged(&mut self, text: impl Into<String>) {
        let index = self.record(EntryKind::Note(text.into()));
        self.responded = true;
        self.last = None;
        self.asked = Some(index);
    }

    /// Ends the scenario if the peer did not advertise the capability.
    ///
    /// # Errors
    /// [`Stop::NotApplicable`] then.
    pub fn need(&self, capability: &str) -> Step {
        if self.log.can(self.peer(), capability) {
            return Ok(());
        }
        let name = capability::name(self.version(), self.peer(), capability);
        Err(Stop::NotApplicable(format!("the {} does not advertise `{name}`", self.peer())))
    }

    /// Sends a line and a line feed.
    pub async fn send_line(&mut self, line: impl AsRef<[u8]>) -> Step {
        let line = line.as_ref();
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
        self.send_bytes(&bytes).await
    }

    /// Sends bytes as they are. The trace gets the lines that end in them; bytes after the last
    /// line feed belong to the next line.
    pub async fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) -> Step {
        let bytes = bytes.as_ref();
        for (line, end) in self.wire.sent(bytes) {
            self.sent(line, end);
        }
        self.write(bytes).await
    }

    /// Sends a message.
    pub async fn send(&mut self, message: Value) -> Step {
        self.send_line(message.to_string()).await
    }

    /// Sends a request. [`expect`](Self::expect) waits for the answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Id, Stop> {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.probing = method == PROBE;
        let sent = self.request_as(id.clone(), method, params).await;
        self.probing = false;
        sent.map(|()| id)
    }

    /// Sends a request with the given id. Null params are left out.
    pub async fn request_as(&mut self, id: Id, method: &str, params: Value) -> Step {
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(message).await
    }

    /// Sends a request and waits for the answer.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Answer, Stop> {
        let id = self.request(method, params).await?;
        self.expect(&id).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) -> Step {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    /// Answers a request of the peer.
    pub async fn answer(&mut self, id: &Id, result: Value) -> Step {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await
    }

    /// Answers a request of the peer with an error.
    pub async fn answer_error(&mut self, id: &Id, code: i64, message: &str) -> Step {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })).await
    }

    /// Closes the peer's input; its output stays open.
    pub fn close_input(&mut self) {
        if self.wire.close() {
            self.record(EntryKind::Closed { from: self.setup.plays });
        }
    }

    fn sent(&mut self, line: Vec<u8>, end: LineEnd) {
        let index = self.record(EntryKind::Line { from: self.setup.plays, text: line, end });
        // Evidence is the line before a probe, not the probe.
        if !self.probing {
            self.asked = Some(index);
        }
        if let EntryKind::Line { text, .. } = &self.trace.entries[index].kind {
            let message = Message::read(index, self.trace.entries[index].at, self.setup.plays, text, end);
            self.log.take(&message);
        }
    }

    fn record(&mut self, kind: EntryKind) -> usize {
        self.trace.entries.push(Entry { at: self.started.elapsed(), kind });
        self.trace.entries.len() - 1
    }

    /// Waits until the transport of the client has kept or broken the rule. Returns whether that
    /// was in time.
    pub(crate) async fn observes(&mut self, rule: &str) -> bool {
        let is_seen = tokio::time::timeout(self.setup.deadline, self.observations.wait(rule)).await.is_ok();
        self.late |= !is_seen;
        is_seen
    }

    /// Notes that a wait has ended by its deadline, so that a failure may be one of the deadline.
    /// Waits of the stage note it themselves.
    pub(crate) fn deadline_passed(&mut self) {
        self.late = true;
    }

    /// Turns observations into findings.
    fn observed(&mut self) {
        for observation in self.observations.take() {
            let at = [self.record(EntryKind::Note(observation.shown))];
            match observation.fault {
                None => self.pass_at(observation.rule, &at),
                Some(why) => self.fail_at(observation.rule, &at, why),
            }
        }
    }

    /// Ends the conversation: closes the peer's input, waits for its program to exit and returns
    /// the findings.
    pub async fn finish(mut self) -> StageReport {
        self.close_input();
        self.drain().await;
        if let Some(process) = self.process.take() {
            let stderr = process.stderr();
            if !stderr.is_empty() {
                self.record(EntryKind::Stderr(stderr.into_bytes()));
            }
            if let Some(exit) = process.end().await {
                self.record(EntryKind::Exit { code: exit.code, signal: exit.signal });
            }
        }
        self.observed();
        self.services.end().await;
        let initialized = !self.log.initialized.is_null() && self.speaks();
        let mut findings = self.findings.into_list();
        findings.retain(|finding| rules::is_of(finding.rule, self.setup.version));
        StageReport {
            trace: self.trace,
            findings,
            skipped: self.skipped,
            not_applicable: self.not_applicable,
            initialized,
            responded: self.responded,
            late: self.late,
            capabilities: self.log.capabilities(self.setup.plays.other()).clone(),
        }
    }
}

/// The result of a conversation.
#[derive(Clone, Debug)]
pub struct StageReport {
    /// The conversation.
    pub trace: Trace,
    /// The findings of the scenario itself.
    pub findings: Vec<Finding>,
    /// Rules that do not apply to this peer, with reasons.
    pub skipped: Vec<(&'static str, String)>,
    /// Rules for which findings of watchers are ignored, with reasons.
    pub not_applicable: Vec<(&'static str, String)>,
    /// Whether the version was negotiated.
    pub initialized: bool,
    /// Whether a server has responded.
    pub responded: bool,
    /// Whether a wait has ended by its deadline.
    pub late: bool,
    /// The capabilities of the peer under test.
    pub capabilities: Value,
}
