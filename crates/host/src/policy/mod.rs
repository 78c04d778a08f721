//! The permission engine: decides whether effects may happen, for clients and for agents.
//!
//! A request is a list of [`Effect`]s: write this text to this file, run this command in this
//! directory, read this path, connect to this host. A [`Policy`] judges each of them by [`Rules`],
//! by remembered answers ([`Memory`]) and by a [`Mode`]. A request is allowed only if all of its
//! effects are. Where the policy leaves the decision to a person, it makes a [`Question`] that
//! shows every effect and whose answers state their scope; [`Policy::answer`] then grants exactly
//! what was shown, once, or remembers the scope on the button. Every decision is in the [`Audit`]
//! log.
//!
//! A client calls [`Policy::decide`] for the agent's permission requests. [`Guard`] holds an agent
//! that does not ask to the same policy before a file is provided or a command started. An agent
//! calls [`Policy::judge`] for its own tools.
//!
//! The order for one effect: rules that deny, remembered denials, rules that approve, rules that
//! ask, remembered permissions, the rules' default, the mode. A command that cannot be understood
//! is never approved unseen while a rule restricts commands, and no mode approves a write to a
//! protected file.
//!
//! Without any setting everything is asked; automatic answers come only from what the user has set.
//!
//! Reading order: `effect.rs`, `judge.rs`, `question.rs`, `request.rs` (effects of a permission
//! request), `rules.rs`, `mode.rs`, `scope.rs`, `memory.rs`, `command.rs`, `glob.rs`,
//! `protected.rs`, `guard.rs`, `audit.rs`.

// PERM-05 to PERM-07

mod audit;
mod command;
mod effect;
mod glob;
mod guard;
mod judge;
mod memory;
mod mode;
mod path;
pub mod protected;
mod question;
mod request;
mod rules;
mod scope;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::wire::v1::{PermissionOptionId, SessionId};
use parking_lot::{Mutex, RwLock};

pub use audit::Audit;
pub use command::{CommandLine, is_harmless_variable, quote};
pub use effect::{Class, Confined, Content, Destination, Effect, Run, ToolUse};
pub use glob::Glob;
pub use guard::{Guard, Notice};
pub use judge::Request;
pub(crate) use memory::private as private_file;
pub use memory::{Memory, Remembered};
pub use mode::{Mode, Stance};
pub use path::{FilePath, real_path};
pub use question::{Answer, Choice, Question, Section, Span};
pub use request::Claim;
pub use rules::{RuleAction, Rules};
pub use scope::Scope;

use crate::secrets::Mask;
use judge::Grants;

/// What happens to a question that gets no answer, because time is up or no one can be asked.
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

/// Why a question got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The time limit is over.
    TimeLimit,
    /// There is no terminal to ask on.
    Unattended,
}

impl Silence {
    /// The reason for the log and the user.
    pub fn reason(self) -> Reason {
        match self {
            Silence::TimeLimit => Reason::new(Source::TimeLimit, "no answer in time"),
            Silence::Unattended => {
                Reason::new(Source::Unattended, "a person would have to decide, and this is not a terminal")
            }
        }
    }
}

/// The origin of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The mode.
    Mode,
    /// A rule of the policy.
    Rule,
    /// The default of the policy's rules.
    Default,
    /// An answer that is remembered for the project.
    Remembered,
    /// An answer that is remembered for the session.
    Session,
    /// A permission for exactly this, given in this turn.
    Granted,
    /// A person.
    Person,
    /// No answer in time.
    TimeLimit,
    /// No terminal to ask on.
    Unattended,
    /// The agent's options do not fit.
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
            Source::Session => "session",
            Source::Granted => "granted",
            Source::Person => "person",
            Source::TimeLimit => "time_limit",
            Source::Unattended => "unattended",
            Source::Offer => "offer",
        }
    }
}

/// The reason of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its origin.
    pub source: Source,
    /// The rule, as the user wrote it.
    pub rule: Option<String>,
    /// The reason for a person, such as `rule autoApprove 2`.
    pub text: String,
}

impl Reason {
    pub(crate) fn new(source: Source, text: impl Into<String>) -> Self {
        Reason { source, rule: None, text: text.into() }
    }

    /// Whether the decision was made without a person in this turn.
    pub fn is_automatic(&self) -> bool {
        !matches!(self.source, Source::Person | Source::Granted)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a permission request is to be answered.
#[derive(Clone, Debug)]
pub enum Decision {
    /// With this option, which was offered.
    Choose(Selected), // PERM-04
    /// By a person, within the question's limit; pass the answer to [`Policy::answer`].
    Ask(Box<Question>),
    /// With `cancelled`: it is denied, and the agent offers no way to say so just once.
    Deny(Reason),
    /// With `cancelled`, and the run ends: a person should have decided.
    Fail(Reason),
}

impl Decision {
    /// Whether it lets the effects happen.
    pub fn allows(&self) -> bool {
        matches!(self, Decision::Choose(Selected { allows: true, .. }))
    }

    /// Its reason.
    pub fn reason(&self) -> &Reason {
        match self {
            Decision::Choose(selected) => &selected.reason,
            Decision::Ask(question) => &question.reason,
            Decision::Deny(reason) | Decision::Fail(reason) => reason,
        }
    }
}

/// An option that was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The option.
    pub option: PermissionOptionId,
    /// Whether it lets the effects happen.
    pub allows: bool,
    /// The reason.
    pub reason: Reason,
}

/// Whether effects may happen.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Yes.
    Allow(Reason),
    /// A person has to decide.
    Ask(Box<Question>),
    /// No.
    Deny(Reason),
}

/// Counts of decisions about requests that the agent made without asking for permission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Allowed.
    pub allowed: usize,
    /// Denied.
    pub denied: usize,
}

/// The permission engine. See the [module](self).
pub struct Policy {
    mode: RwLock<Mode>,
    rules: Rules,
    ask_limit: Option<Duration>,
    unanswered: Unanswered,
    span: Span,
    roots: Vec<PathBuf>,
    agent: String,
    agent_name: Option<String>,
    memory: Arc<Memory>,
    audit: Arc<Audit>,
    mask: Mask,
    /// Permissions of the present turn of each session.
    grants: Mutex<HashMap<SessionId, Grants>>,
    direct: Mutex<Tally>,
}

impl Policy {
    /// A policy that decides by its mode alone, remembers in memory only and writes no log.
    pub fn new(mode: Mode) -> Self {
        Policy {
            mode: RwLock::new(mode),
            rules: Rules::default(),
            ask_limit: None,
            unanswered: Unanswered::default(),
            span: Span::default(),
            roots: Vec::new(),
            agent: String::new(),
            agent_name: None,
            memory: Arc::default(),
            audit: Arc::default(),
            mask: Mask::new(),
            grants: Mutex::default(),
            direct: Mutex::default(),
        }
    }

    /// Adds rules. If they name a mode, the stricter of both holds: a file must not loosen a mode
    /// that was given beside it. A time limit and what follows it replace the present ones.
    #[must_use]
    pub fn rules(self, rules: Rules) -> Self {
        let mode = self.mode();
        let mode = rules.mode.map_or(mode, |other| other.stricter(mode));
        Policy {
            mode: RwLock::new(mode),
            ask_limit: rules.ask_limit.or(self.ask_limit),
            unanswered: rules.unanswered.unwrap_or(self.unanswered),
            rules,
            ..self
        }
    }

    /// Sets how long a person has to answer, and what happens then.
    #[must_use]
    pub fn asking(mut self, limit: Option<Duration>, unanswered: Unanswered) -> Self {
        self.ask_limit = limit;
        self.unanswered = unanswered;
        self
    }

    /// Sets the name of the time for which "until … ends" holds.
    #[must_use]
    pub fn span(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// Sets the directories of the session, the working directory first. Relative paths and
    /// patterns begin there.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let real = |root: PathBuf| std::fs::canonicalize(&root).unwrap_or(root);
        self.roots = roots.into_iter().map(|root| real(root.into())).collect();
        self
    }

    /// Sets the identity of the agent: answers that are remembered for one agent do not count for
    /// another.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = name.into();
        self
    }

    /// Sets the name of the agent in questions, if that is not its identity.
    #[must_use]
    pub fn agent_name(mut self, name: impl Into<String>) -> Self {
        self.agent_name = Some(name.into());
        self
    }

    /// Sets the memory for answers.
    #[must_use]
    pub fn memory(mut self, memory: impl Into<Arc<Memory>>) -> Self {
        self.memory = memory.into();
        self
    }

    /// Sets the log of decisions.
    #[must_use]
    pub fn audit(mut self, audit: impl Into<Arc<Audit>>) -> Self {
        self.audit = audit.into();
        self
    }

    /// Sets the secrets that must not be logged.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        *self.mode.read()
    }

    /// Switches the mode.
    pub fn set_mode(&self, mode: Mode) {
        *self.mode.write() = mode;
    }

    /// The directories of the session.
    pub fn session_roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// How long a person has to answer.
    pub fn ask_limit(&self) -> Option<Duration> {
        self.ask_limit
    }

    /// The memory for answers.
    pub fn remembered(&self) -> &Memory {
        &self.memory
    }

    /// The memory, to be shared with another policy.
    pub fn shared_memory(&self) -> Arc<Memory> {
        self.memory.clone()
    }

    /// Whether a question without an answer ends the run.
    pub fn fails_unanswered(&self) -> bool {
        self.unanswered == Unanswered::Fail
    }

    /// Counts of what the agent has done, or tried to do, without asking since this policy was
    /// made. Reading counts only where it was denied, and permissions that were given before do not
    /// count again.
    pub fn direct(&self) -> Tally {
        *self.direct.lock()
    }

    /// The first error of the audit log, if there was one.
    pub fn audit_error(&self) -> Option<String> {
        self.audit.error()
    }

    /// Program files that a rule denies, to be refused when they are executed.
    pub fn denied_programs(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let mut files = Vec::new();
        for program in self.rules.denied_programs() {
            if program.contains('/') {
                files.push(PathBuf::from(program));
            } else {
                files.extend(dirs.iter().map(|dir| dir.join(&program)).filter(|file| file.is_file()));
            }
        }
        files.sort();
        files.dedup();
        files
    }

    fn display_name(&self) -> &str {
        self.agent_name.as_deref().unwrap_or(&self.agent)
    }

    fn base(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), PathBuf::as_path)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("mode", &self.mode())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
