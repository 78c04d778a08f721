//! Who decides whether a tool may run.
//!
//! A [`Policy`] is what the user has said beforehand: a [`Mode`], [`Rules`] from a file, what was remembered of earlier answers
//! ([`Memory`]). [`Policy::decide`] looks at a permission request and either chooses one of the offered options or says that a
//! person has to ([`Decision::Ask`]), whose answer comes back through [`Policy::answered`]. PERM-05 to PERM-07: without any
//! setting everything is asked; automatic answers come only from what the user has set, and each is in the [`Audit`] log.
//!
//! The order in which things count: rules that deny, rules that approve, rules that ask, what is remembered, the
//! rules' default, the mode. In the mode `deny-all` nothing that is remembered approves.
//!
//! An agent that does not ask is held to the same policy: [`Guard`] asks [`Policy::may_read`], [`Policy::may_write`] and
//! [`Policy::may_run`] before a file is lent or a command started.
//!
//! Reading order: `decide.rs`, `action.rs` (what a request is about), `rules.rs`, `command.rs` and `glob.rs` (how rules match), `memory.rs`,
//! `audit.rs`, `guard.rs`.

mod action;
mod audit;
mod command;
mod decide;
mod glob;
mod guard;
mod memory;
mod rules;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use attache::wire::v1::{PermissionOptionId, SessionId};

pub use action::Action;
pub use audit::Audit;
pub use command::CommandLine;
pub use glob::Glob;
pub use guard::{Answer, Guard, Question, What};
pub use memory::{Memory, Remembered, Subject};
pub use rules::{Effect, Rules};

use crate::secrets::Mask;

/// What happens to questions that no rule and no memory answers. The stricter is the smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Everything is denied.
    DenyAll,
    /// A person is asked (PERM-05).
    #[default]
    Ask,
    /// Reading and searching inside of the session's directories is approved, the rest is asked.
    ApproveReads,
    /// Everything is approved.
    ApproveAll,
}

impl Mode {
    /// The name in flags and files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Ask => "ask",
            Mode::ApproveReads => "approve-reads",
            Mode::ApproveAll => "approve-all",
            Mode::DenyAll => "deny-all",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.replace('_', "-").as_str() {
            "ask" => Ok(Mode::Ask),
            "approve-reads" => Ok(Mode::ApproveReads),
            "approve-all" => Ok(Mode::ApproveAll),
            "deny-all" => Ok(Mode::DenyAll),
            _ => Err(format!("`{text}` is none of ask, approve-reads, approve-all, deny-all")),
        }
    }
}

/// What happens to a question that nobody answers, because time is up or nobody is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// It is denied.
    #[default]
    Deny,
    /// It is denied, and the run ends.
    Fail,
}

impl std::str::FromStr for Unanswered {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "deny" => Ok(Unanswered::Deny),
            "fail" => Ok(Unanswered::Fail),
            _ => Err(format!("`{text}` is neither deny nor fail")),
        }
    }
}

/// Why nobody has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The time limit is over.
    TimeLimit,
    /// Nobody is there who could be asked.
    Unattended,
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The mode.
    Mode,
    /// A rule.
    Rule,
    /// The default of the rules.
    Default,
    /// An earlier "always".
    Remembered,
    /// A permission that was given for just this, in this turn.
    Granted,
    /// A person.
    Person,
    /// Nobody answered in time.
    TimeLimit,
    /// Nobody was there to answer.
    Unattended,
    /// What the agent offers does not fit.
    Offer,
}

impl Source {
    /// The name in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::Mode => "mode",
            Source::Rule => "rule",
            Source::Default => "default",
            Source::Remembered => "remembered",
            Source::Granted => "granted",
            Source::Person => "person",
            Source::TimeLimit => "time_limit",
            Source::Unattended => "unattended",
            Source::Offer => "offer",
        }
    }
}

/// Why something was decided as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What it rests on.
    pub source: Source,
    /// The rule, as the user wrote it.
    pub rule: Option<String>,
    /// The reason for a person.
    pub text: String,
}

impl Reason {
    pub(crate) fn new(source: Source, text: impl Into<String>) -> Self {
        Reason { source, rule: None, text: text.into() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a permission request is to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// With this option, which was offered (PERM-04).
    Choose(Choice),
    /// By a person, within [`Policy::ask_limit`]; tell the answer to [`Policy::answered`].
    Ask(Reason),
    /// With `cancelled`: it is denied, and the agent offers no way to say so just once.
    Deny(Reason),
    /// With `cancelled`, and the run ends: a person should have decided.
    Fail(Reason),
}

impl Decision {
    /// Whether it lets the tool run.
    pub fn allows(&self) -> bool {
        matches!(self, Decision::Choose(Choice { allows: true, .. }))
    }

    /// Why.
    pub fn reason(&self) -> &Reason {
        match self {
            Decision::Choose(choice) => &choice.reason,
            Decision::Ask(reason) | Decision::Deny(reason) | Decision::Fail(reason) => reason,
        }
    }
}

/// An option that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub option: PermissionOptionId,
    /// Whether it lets the tool run.
    pub allows: bool,
    /// Why.
    pub reason: Reason,
}

/// Whether something may be done for which the agent has not asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Allow(Reason),
    /// A person has to say.
    Ask(Reason),
    /// No.
    Deny(Reason),
}

/// How much was allowed and how much was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Allowed.
    pub allowed: usize,
    /// Denied.
    pub denied: usize,
}

/// What the user has said about permissions. See the [module](self).
pub struct Policy {
    mode: Mode,
    rules: Rules,
    ask_limit: Option<Duration>,
    unanswered: Unanswered,
    roots: Vec<PathBuf>,
    agent: String,
    memory: Memory,
    audit: Audit,
    mask: Mask,
    /// What has been permitted in the present turn of each session.
    granted: Mutex<HashMap<SessionId, Vec<Action>>>,
    direct: Mutex<Tally>,
}

impl Policy {
    /// A policy without rules, that remembers only as long as it lives.
    pub fn new(mode: Mode) -> Self {
        Policy {
            mode,
            rules: Rules::default(),
            ask_limit: None,
            unanswered: Unanswered::Deny,
            roots: Vec::new(),
            agent: String::new(),
            memory: Memory::transient(),
            audit: Audit::none(),
            mask: Mask::from_env(),
            granted: Mutex::default(),
            direct: Mutex::default(),
        }
    }

    /// Adds rules. If they name a mode, the stricter of the two holds: a file can narrow what was said to this program,
    /// and not widen it. A time limit and what follows it take the place of what was set before.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.mode = rules.mode.map_or(self.mode, |mode| mode.min(self.mode));
        self.ask_limit = rules.ask_limit.or(self.ask_limit);
        self.unanswered = rules.unanswered.unwrap_or(self.unanswered);
        self.rules = rules;
        self
    }

    /// How long a person has to answer, and what happens then.
    #[must_use]
    pub fn asking(mut self, limit: Option<Duration>, unanswered: Unanswered) -> Self {
        self.ask_limit = limit;
        self.unanswered = unanswered;
        self
    }

    /// The directories of the session, the working directory first. Relative paths and patterns begin there, and reads
    /// outside of them are not approved by mode. May be called again.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let real = |root: PathBuf| std::fs::canonicalize(&root).unwrap_or(root);
        self.roots = roots.into_iter().map(|root| real(root.into())).collect();
        self
    }

    /// The name of the agent: what is remembered for one agent does not count for another.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = name.into();
        self
    }

    /// Where "always" is remembered.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// Where decisions are written down.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// What must not be written down.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How long a person has to answer.
    pub fn ask_limit(&self) -> Option<Duration> {
        self.ask_limit
    }

    /// What is remembered.
    pub fn remembered(&self) -> &Memory {
        &self.memory
    }

    /// Whether a question that nobody answers ends the run.
    pub fn fails_unanswered(&self) -> bool {
        self.unanswered == Unanswered::Fail
    }

    /// What the agent has done, or tried to do, without asking, since this policy was made. Reading counts only where it was
    /// denied, and what a permission was given for before does not count again.
    pub fn direct(&self) -> Tally {
        *self.direct.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The first thing that went wrong with the audit log, if something did.
    pub fn audit_error(&self) -> Option<String> {
        self.audit.error()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("mode", &self.mode).field("rules", &self.rules).finish_non_exhaustive()
    }
}
