//! Watchers: judges that look at every message of a conversation, live or recorded.
//!
//! `envelope.rs` judges lines as JSON-RPC, `shape/` the types of messages, `order.rs` their order,
//! `capability_use.rs` the use of capabilities, `trace_context.rs` reserved names; `agent/` and
//! `client/` hold the rest by topic, `v2/` what only version 2 has. [`Watcher::rules`] lists the
//! rules of a watcher.
//!
//! Watchers judge both roles. [`judge`] then drops the findings about the checker's own messages,
//! which are often wrong on purpose, and those about rules of another version than the negotiated.

pub mod agent;
mod capability_use;
pub mod client;
mod envelope;
mod event_log;
mod message;
mod order;
mod shape;
mod trace_context;
pub mod v2;

pub(crate) use capability_use::has_own_rule;
pub use event_log::{EventLog, Request, Session, Terminal, ToolCall};
pub(crate) use message::text;
pub use message::{Kind, Message};
pub(crate) use order::{is_conversation, part};

use std::collections::HashSet;

use crate::trace::EntryKind;
use crate::{Role, Trace, Version, rules};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule was exercised and kept.
    Pass,
    /// The rule was broken.
    Fail,
}

/// A judgement about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// The role that kept or broke it.
    pub role: Role,
    /// The result.
    pub verdict: Verdict,
    /// The reason of a failure; empty for a pass.
    pub why: String,
    /// The trace entries that show it.
    pub at: Vec<usize>,
}

/// Collects findings. Keeps only the first pass of each rule and role.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    passed: HashSet<(&'static str, Role)>,
}

impl Findings {
    /// Records that the sender of `message` kept the rule.
    pub fn pass(&mut self, rule: &'static str, message: &Message) {
        self.pass_at(rule, message.from, &[message.index]);
    }

    /// Records that the sender of `message` broke the rule.
    pub fn fail(&mut self, rule: &'static str, message: &Message, why: impl Into<String>) {
        self.fail_at(rule, message.from, &[message.index], why);
    }

    /// Records a pass with these trace entries as evidence.
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

    /// Records a failure with these trace entries as evidence.
    pub fn fail_at(&mut self, rule: &'static str, role: Role, at: &[usize], why: impl Into<String>) {
        self.list.push(Finding { rule, role, verdict: Verdict::Fail, why: why.into(), at: at.to_vec() });
    }

    /// Records a pass if `kept`, else a failure.
    pub fn check(&mut self, rule: &'static str, message: &Message, kept: bool, why: impl FnOnce() -> String) {
        if kept { self.pass(rule, message) } else { self.fail(rule, message, why()) }
    }

    /// Returns the findings in the order in which they were recorded.
    pub fn into_list(self) -> Vec<Finding> {
        self.list
    }

    /// The findings so far.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }
}

/// A judge that sees the messages of a conversation one by one.
pub trait Watcher {
    /// The rules that it can judge.
    fn rules(&self) -> &'static [&'static str];

    /// The versions of conversations that it looks at: those of its rules.
    fn versions(&self) -> Vec<Version> {
        let has = |version: &Version| self.rules().iter().any(|id| rules::is_of(id, *version));
        Version::ALL.into_iter().filter(has).collect()
    }

    /// Judges a message. `log` is the state *before* it, so a watcher sees both the old and the new
    /// status of a tool call.
    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings);

    /// Judges the end of the conversation. `closed` is false if the recording or scenario merely
    /// stopped; then a missing message proves nothing.
    fn end(&mut self, log: &EventLog, closed: bool, out: &mut Findings) {
        let _ = (log, closed, out);
    }
}

/// Creates the watchers of a conversation, all or those that judge `role`.
pub fn watchers(role: Option<Role>) -> Vec<Box<dyn Watcher>> {
    let mut list: Vec<Box<dyn Watcher>> = vec![
        Box::new(envelope::Lines::default()),
        Box::new(envelope::Envelope),
        Box::new(shape::Shape::v1()),
        Box::new(shape::Shape::v2()),
        Box::new(order::Beginning),
        Box::new(order::Updates::default()),
        Box::new(capability_use::CapabilityUse),
        Box::new(trace_context::TraceContext::default()),
    ];
    if role != Some(Role::Client) {
        list.extend(agent::watchers());
    }
    if role != Some(Role::Agent) {
        list.extend(client::watchers());
    }
    list.extend(v2::watchers());
    list
}

/// Returns the findings of all watchers about a conversation, or only those about one role.
pub fn judge(trace: &Trace, role: Option<Role>) -> Vec<Finding> {
    judge_version(trace, role).0
}

/// Like [`judge`], with the version that the conversation negotiated.
pub fn judge_version(trace: &Trace, role: Option<Role>) -> (Vec<Finding>, Version) {
    let mut log = EventLog::default();
    let mut out = Findings::default();
    let mut watchers: Vec<(Vec<Version>, Box<dyn Watcher>)> =
        watchers(role).into_iter().map(|watcher| (watcher.versions(), watcher)).collect();
    let mut closed = false;
    for (index, entry) in trace.entries.iter().enumerate() {
        match &entry.kind {
            EntryKind::Line { from, text, end } => {
                let message = Message::read(index, entry.at, *from, text, *end);
                let version = log.version_at(&message);
                for (_, watcher) in watchers.iter_mut().filter(|(versions, _)| versions.contains(&version)) {
                    watcher.observe(&log, &message, &mut out);
                }
                log.take(&message);
            }
            EntryKind::Closed { .. } | EntryKind::Exit { .. } => closed = true,
            EntryKind::Stderr(_) | EntryKind::Note(_) => {}
        }
    }
    let version = log.version();
    for (_, watcher) in watchers.iter_mut().filter(|(versions, _)| versions.contains(&version)) {
        watcher.end(&log, closed, &mut out);
    }
    let mut list = out.into_list();
    list.retain(|finding| {
        role.is_none_or(|role| finding.role == role) && rules::is_of(finding.rule, version)
    });
    (list, version)
}
