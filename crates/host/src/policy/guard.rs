//! The guard: holds an agent to the policy where it acts without asking for permission.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use attache::wire::v1::SessionId;

use super::{
    Answer, CommandLine, Confined, Content, Destination, Effect, FilePath, Policy, Question, Reason, Request,
    Run, Silence, Verdict,
};

/// A decision that the guard made, for a screen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// The session.
    pub session: Option<SessionId>,
    /// What it was about.
    pub effect: Effect,
    /// Whether it was allowed.
    pub allowed: bool,
    /// Why.
    pub reason: Reason,
}

type AskFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;
type AskFn = Arc<dyn Fn(Question) -> AskFuture + Send + Sync>;
type NoticeFn = Arc<dyn Fn(Notice) + Send + Sync>;

/// Holds an agent to a policy where it acts without asking for permission.
#[derive(Clone)]
pub struct Guard {
    policy: Option<Arc<Policy>>,
    ask: Option<AskFn>,
    notice: Option<NoticeFn>,
}

impl Guard {
    /// A guard that allows everything.
    pub fn open() -> Self {
        Guard { policy: None, ask: None, notice: None }
    }

    /// A guard that allows what the policy allows. Where a person would have to decide, the answer
    /// is no.
    pub fn new(policy: Arc<Policy>) -> Self {
        Guard { policy: Some(policy), ask: None, notice: None }
    }

    /// Sets the function that asks a person. Its future is dropped when the question's time limit
    /// is over.
    #[must_use]
    pub fn on_ask<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        self.ask = Some(Arc::new(move |question| Box::pin(ask(question))));
        self
    }

    /// Sets a function that is called with every decision about writes, commands and connections,
    /// and with every denial.
    #[must_use]
    pub fn on_notice(mut self, notice: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        self.notice = Some(Arc::new(notice));
        self
    }

    /// The policy.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.policy.as_ref()
    }

    /// Allows a file to be read, or returns why not.
    ///
    /// # Errors
    /// If the policy or the user denies it.
    pub async fn read(&self, session: Option<&SessionId>, path: FilePath) -> Result<(), Reason> {
        self.check("read", session, Effect::Read(path)).await
    }

    /// Allows a file to be written with this text, or returns why not.
    ///
    /// # Errors
    /// If the policy or the user denies it.
    pub async fn write(&self, session: Option<&SessionId>, path: FilePath, text: &str) -> Result<(), Reason> {
        if self.policy.is_none() {
            return Ok(());
        }
        self.check("write", session, Effect::Write { path, content: Content::known(None, text) }).await
    }

    /// Allows a command to be run, or returns why not.
    ///
    /// # Errors
    /// If the policy or the user denies it.
    pub async fn run(&self, session: Option<&SessionId>, run: Run) -> Result<(), Reason> {
        self.check("terminal", session, Effect::Run(run)).await
    }

    /// Allows a confined command to connect to a host, or returns why not.
    ///
    /// # Errors
    /// If the policy or the user denies it.
    pub async fn connect(&self, session: Option<&SessionId>, to: Destination) -> Result<(), Reason> {
        self.check("connect", session, Effect::Connect(to)).await
    }

    /// Whether a command may run without a question if it can only read. Asked before it is
    /// confined to that.
    pub fn may_run_read_only(
        &self,
        session: Option<&SessionId>,
        command: &CommandLine,
        cwd: &FilePath,
    ) -> bool {
        let Some(policy) = &self.policy else { return false };
        let run = Run {
            command: command.clone(),
            cwd: cwd.clone(),
            env: BTreeMap::new(),
            confined: Confined::ReadOnly,
        };
        let request = Request::direct(session, Effect::Run(run));
        matches!(policy.judge(&request), Verdict::Allow(_))
    }

    /// Whether a protected file that a command has created may stay. No question is asked, because
    /// the command has ended already.
    pub(crate) fn may_keep(&self, session: Option<&SessionId>, path: FilePath) -> bool {
        let Some(policy) = &self.policy else { return true };
        let request = Request::direct(session, Effect::Keep(path));
        let (allowed, reason) = match policy.judge(&request) {
            Verdict::Allow(reason) => (true, reason),
            Verdict::Deny(reason) => (false, reason),
            Verdict::Ask(question) => (false, question.reason),
        };
        policy.record_direct("keep", session, &request.effects, allowed, &reason, None);
        self.notify(request, allowed, &reason);
        allowed
    }

    async fn check(
        &self,
        event: &'static str,
        session: Option<&SessionId>,
        effect: Effect,
    ) -> Result<(), Reason> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let request = Request::direct(session, effect);
        let (allowed, reason) = match policy.judge(&request) {
            Verdict::Ask(mut question) => {
                question.effects.iter_mut().for_each(show_old_text);
                let answer = self.ask(question.as_ref().clone()).await;
                match answer {
                    Ok(answer) => policy.settle(event, &question, &answer),
                    Err(silence) => {
                        let reason = silence.reason();
                        policy.record_direct(event, session, &request.effects, false, &reason, None);
                        (false, reason)
                    }
                }
            }
            Verdict::Allow(reason) => {
                policy.record_direct(event, session, &request.effects, true, &reason, None);
                (true, reason)
            }
            Verdict::Deny(reason) => {
                policy.record_direct(event, session, &request.effects, false, &reason, None);
                (false, reason)
            }
        };
        self.notify(request, allowed, &reason);
        if allowed { Ok(()) } else { Err(reason) }
    }

    fn notify(&self, request: Request, allowed: bool, reason: &Reason) {
        let Some(notice) = &self.notice else { return };
        for effect in request.effects {
            if !(allowed && matches!(effect, Effect::Read(_))) {
                notice(Notice { session: request.session.clone(), effect, allowed, reason: reason.clone() });
            }
        }
    }

    pub(crate) async fn ask(&self, question: Question) -> Result<Answer, Silence> {
        let Some(ask) = &self.ask else { return Err(Silence::Unattended) };
        let limit = question.limit;
        let asking = ask(question);
        match limit {
            None => Ok(asking.await),
            Some(limit) => tokio::time::timeout(limit, asking).await.map_err(|_| Silence::TimeLimit),
        }
    }
}

/// The largest file whose text is read to show what changes.
const LARGEST_SHOWN: u64 = 8 << 20;

/// Adds the present text of a file that is to be written, so that the question shows a change and
/// not only the new text. A file that is not text, or too large, is shown as replaced.
fn show_old_text(effect: &mut Effect) {
    if let Effect::Write { path, content: Content::Known { old: old @ None, .. } } = effect
        && let Ok(meta) = std::fs::metadata(path.real())
        && meta.is_file()
        && meta.len() <= LARGEST_SHOWN
        && let Ok(text) = std::fs::read_to_string(path.real())
    {
        *old = Some(text.into());
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("policy", &self.policy).finish_non_exhaustive()
    }
}
