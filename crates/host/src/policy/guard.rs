//! Where files and terminals meet the policy: what the agent does without asking is asked here.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use attache::wire::v1::SessionId;

use super::audit::Outcome;
use super::{Action, CommandLine, Policy, Reason, Silence, Source, Verdict};

/// What somebody wants to do, for a person to decide.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum What {
    /// Read a file.
    Read(PathBuf),
    /// Write a file.
    Write {
        /// Where.
        path: PathBuf,
        /// The whole new text.
        content: String,
    },
    /// Run a command.
    Run {
        /// The command.
        command: CommandLine,
        /// Where it runs.
        cwd: PathBuf,
    },
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Read(path) => write!(f, "reading {}", path.display()),
            What::Write { path, .. } => write!(f, "writing {}", path.display()),
            What::Run { command, .. } => write!(f, "running `{}`", command.text()),
        }
    }
}

/// A question to a person.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The session in which it comes up.
    pub session: Option<SessionId>,
    /// What is to be done.
    pub what: What,
    /// Why nobody else decides.
    pub reason: Reason,
    /// How long the question stands; it is withdrawn afterwards.
    pub limit: Option<Duration>,
}

/// What the person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this time.
    Allow,
    /// Yes, and from now on in this project.
    AllowAlways,
    /// No.
    Deny,
    /// Nobody is there.
    Nobody,
}

type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;
type AskFn = Arc<dyn Fn(Question) -> Asking + Send + Sync>;

/// Holds an agent to the policy also where it does not ask.
#[derive(Clone)]
pub struct Guard {
    policy: Option<Arc<Policy>>,
    ask: Option<AskFn>,
}

impl Guard {
    /// Everything is let through.
    pub fn open() -> Self {
        Guard { policy: None, ask: None }
    }

    /// What the policy allows is let through. Where a person would have to decide, the answer is no.
    pub fn new(policy: Arc<Policy>) -> Self {
        Guard { policy: Some(policy), ask: None }
    }

    /// Lets a person decide where the policy leaves it to one. The future is dropped when the time limit is over.
    #[must_use]
    pub fn on_ask<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.ask = Some(Arc::new(move |question| Box::pin(ask(question))));
        self
    }

    /// The policy.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.policy.as_ref()
    }

    /// Lets a file be read, or says why not. The path is free of links and dots.
    ///
    /// # Errors
    /// When the policy or the user says no.
    pub async fn read(&self, session: Option<&SessionId>, path: &Path) -> Result<(), Reason> {
        self.check("read", session, Action::read(path), || What::Read(path.to_owned())).await
    }

    /// Lets a file be written, or says why not. The path is free of links and dots.
    ///
    /// # Errors
    /// When the policy or the user says no.
    pub async fn write(&self, session: Option<&SessionId>, path: &Path, content: &str) -> Result<(), Reason> {
        let what = || What::Write { path: path.to_owned(), content: content.to_owned() };
        self.check("write", session, Action::write(path), what).await
    }

    /// Lets a command be run, or says why not.
    ///
    /// # Errors
    /// When the policy or the user says no.
    pub async fn run(
        &self,
        session: Option<&SessionId>,
        command: &CommandLine,
        cwd: &Path,
    ) -> Result<(), Reason> {
        let what = || What::Run { command: command.clone(), cwd: cwd.to_owned() };
        self.check("terminal", session, Action::run(command.clone()), what).await
    }

    async fn check(
        &self,
        event: &'static str,
        session: Option<&SessionId>,
        action: Action,
        what: impl FnOnce() -> What,
    ) -> Result<(), Reason> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let (allowed, reason) = match policy.verdict(session, &action) {
            Verdict::Allow(reason) => (true, reason),
            Verdict::Deny(reason) => (false, reason),
            Verdict::Ask(reason) => {
                let limit = policy.ask_limit();
                let question = Question { session: session.cloned(), what: what(), reason, limit };
                match self.ask(question).await {
                    Ok(answer @ (Answer::Allow | Answer::AllowAlways)) => {
                        if answer == Answer::AllowAlways {
                            policy.remember_direct(&action);
                        }
                        (true, Reason::new(Source::Person, "the user has allowed it"))
                    }
                    Ok(Answer::Deny) => (false, Reason::new(Source::Person, "the user has denied it")),
                    Ok(Answer::Nobody) => (false, Silence::Unattended.reason()),
                    Err(silence) => (false, silence.reason()),
                }
            }
        };
        let outcome = if allowed { Outcome::Allowed } else { Outcome::Denied };
        policy.record_direct(event, session, &action, outcome, &reason);
        if allowed { Ok(()) } else { Err(reason) }
    }

    async fn ask(&self, question: Question) -> Result<Answer, Silence> {
        let Some(ask) = &self.ask else { return Err(Silence::Unattended) };
        let limit = question.limit;
        let asking = ask(question);
        match limit {
            None => Ok(asking.await),
            Some(limit) => tokio::time::timeout(limit, asking).await.map_err(|_| Silence::TimeLimit),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("policy", &self.policy).finish_non_exhaustive()
    }
}
