//! Watchers: they look at every message of a conversation, led by the checker or recorded anywhere, and know what each should be.
//!
//! `envelope.rs` knows what every line must be, `shape.rs` the types of messages, `order.rs` what may be message when, `capability_use.rs` who may use
//! what, `trace_context.rs` whose names are reserved; `agent/` and `client/` know the rest by topic. [`Watcher::rules`] says which rules a watcher speaks about; a rule that is there already needs no
//! second watcher.
//!
//! A watcher judges both sides; whose messages count is decided afterwards ([`judge`]), so that the checker's own, often
//! wrong on purpose, are never held against anybody.

pub mod agent;
mod capability_use;
pub mod client;
mod envelope;
mod event_log;
mod message;
mod order;
mod shape;
mod trace_context;

pub use event_log::{EventLog, Request, Session, Terminal, ToolCall};
pub(crate) use message::text;
pub use message::{Kind, Message};
pub(crate) use order::is_conversation;

use std::collections::HashSet;

use crate::trace::EntryKind;
use crate::{Role, Trace};

/// Whether a rule was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was exercised and kept.
    Pass,
    /// It was broken.
    Fail,
}

/// What was found out about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// Who kept or broke it.
    pub role: Role,
    /// Whether it was kept.
    pub verdict: Verdict,
    /// What was seen; empty for a pass.
    pub why: String,
    /// The entries of the trace that show it.
    pub at: Vec<usize>,
}

/// Collects findings. Of passes the first of each rule and role is kept.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    passed: HashSet<(&'static str, Role)>,
}

impl Findings {
    /// The sender of `message` kept the rule.
    pub fn pass(&mut self, rule: &'static str, message: &Message) {
        self.pass_at(rule, message.from, &[message.index]);
    }

    /// The sender of `message` broke the rule.
    pub fn fail(&mut self, rule: &'static str, message: &Message, why: impl Into<String>) {
        self.fail_at(rule, message.from, &[message.index], why);
    }

    /// `role` kept the rule, as these entries show.
    pub fn pass_at(&mut self, rule: &'static str, role: Role, at: &[usize]) {
        if self.passed.insert((rule, role)) {
            self.list.push(Finding {
                rule,
                role,
                verdict: Verdict::Pass,
                why: String::new(),
                at: at.to_vec(),
            });
        }
    }

    /// `role` broke the rule, as these entries show.
    pub fn fail_at(&mut self, rule: &'static str, role: Role, at: &[usize], why: impl Into<String>) {
        self.list.push(Finding { rule, role, verdict: Verdict::Fail, why: why.into(), at: at.to_vec() });
    }

    /// Pass if `kept`, else fail with what `why` says.
    pub fn check(&mut self, rule: &'static str, message: &Message, kept: bool, why: impl FnOnce() -> String) {
        if kept { self.pass(rule, message) } else { self.fail(rule, message, why()) }
    }

    /// All, in the order in which they were found.
    pub fn into_list(self) -> Vec<Finding> {
        self.list
    }

    /// All so far.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }
}

/// Looks at the messages of one conversation, one after the other.
pub trait Watcher {
    /// The rules that it can speak about.
    fn rules(&self) -> &'static [&'static str];

    /// One message. `log` is what was known *before* it: a watcher sees a tool call's old status and the new one.
    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings);

    /// The conversation is over; `closed` says whether it came to its end, or was only cut off there (a recording that stops, a
    /// scenario that ended). What must have happened by the end of everything can be judged only if it is true.
    fn end(&mut self, log: &EventLog, closed: bool, out: &mut Findings) {
        let _ = (log, closed, out);
    }
}

/// A fresh set of watchers. `role` leaves out those that speak about the other side only.
pub fn watchers(role: Option<Role>) -> Vec<Box<dyn Watcher>> {
    let mut list: Vec<Box<dyn Watcher>> = vec![
        Box::new(envelope::Lines::default()),
        Box::new(envelope::Envelope),
        Box::new(shape::Shape),
        Box::new(order::Beginning),
        Box::new(order::Updates),
        Box::new(capability_use::CapabilityUse),
        Box::new(trace_context::TraceContext::default()),
    ];
    if role != Some(Role::Client) {
        list.extend(agent::watchers());
    }
    if role != Some(Role::Agent) {
        list.extend(client::watchers());
    }
    list
}

/// What the watchers have to say about a conversation, about `whom` only if one is named.
pub fn judge(trace: &Trace, whom: Option<Role>) -> Vec<Finding> {
    let mut log = EventLog::default();
    let mut out = Findings::default();
    let mut watchers = watchers(whom);
    let mut closed = false;
    for (index, entry) in trace.entries.iter().enumerate() {
        match &entry.kind {
            EntryKind::Line { from, text, end } => {
                let message = Message::read(index, entry.at, *from, text, *end);
                watchers.iter_mut().for_each(|watcher| watcher.observe(&log, &message, &mut out));
                log.take(&message);
            }
            EntryKind::Closed { .. } | EntryKind::Exit { .. } => closed = true,
            EntryKind::Stderr(_) | EntryKind::Note(_) => {}
        }
    }
    watchers.iter_mut().for_each(|watcher| watcher.end(&log, closed, &mut out));
    let mut list = out.into_list();
    list.retain(|finding| whom.is_none_or(|whom| finding.role == whom));
    list
}
