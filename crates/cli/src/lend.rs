//! What this program lends to an agent, under the policy of the prompt that runs.
//!
//! A connection may serve many prompts, each with permissions of its own; what is lent is looked up anew with each request.

use std::sync::{Arc, PoisonError, RwLock};

use attache::client::Client;
use attache_host::policy::{Answer, Notice, Policy, Question};
use tokio::sync::{mpsc, oneshot};

use crate::chat::Screens;

/// What the guard of files and terminals reports while the agent acts without asking for permission.
#[derive(Debug)]
pub(crate) enum GuardEvent {
    /// A person has to decide.
    Question(Box<Question>, oneshot::Sender<Answer>),
    /// A decision was made.
    Notice(Box<Notice>),
}

/// Events that may be queued. A question waits for room; a notice that finds none is only in the audit log.
const QUEUED: usize = 64;

/// Lends files and terminals.
#[derive(Clone)]
pub(crate) struct Lender {
    now: Arc<RwLock<Now>>,
    events: mpsc::Sender<GuardEvent>,
    /// Where what commands print is shown as it comes.
    screens: Option<Screens>,
    sandbox: Sandbox,
}

/// The sandbox of the agent's commands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sandbox {
    /// Whether every command is sandboxed, and not only those that need no question.
    pub(crate) always: bool,
    /// Paths that sandboxed commands do not see.
    pub(crate) hidden: Vec<std::path::PathBuf>,
}

struct Now {
    policy: Arc<Policy>,
    #[cfg(unix)]
    files: attache_host::files::Files,
    #[cfg(unix)]
    terminals: attache_host::terminals::PtyTerminals,
}

impl Lender {
    /// Begins with a policy. The questions come out of the receiver.
    pub(crate) fn new(policy: Policy, sandbox: Sandbox) -> (Lender, mpsc::Receiver<GuardEvent>) {
        Lender::with(policy, None, sandbox)
    }

    /// The same, and what commands print is shown.
    pub(crate) fn showing(
        policy: Policy,
        screens: Screens,
        sandbox: Sandbox,
    ) -> (Lender, mpsc::Receiver<GuardEvent>) {
        Lender::with(policy, Some(screens), sandbox)
    }

    fn with(
        policy: Policy,
        screens: Option<Screens>,
        sandbox: Sandbox,
    ) -> (Lender, mpsc::Receiver<GuardEvent>) {
        let (events, receiver) = mpsc::channel(QUEUED);
        let now = now(policy, &events, screens.as_ref(), &sandbox);
        (Lender { now: Arc::new(RwLock::new(now)), events, screens, sandbox }, receiver)
    }

    /// From now on this policy holds.
    pub(crate) fn set(&self, policy: Policy) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) =
            now(policy, &self.events, self.screens.as_ref(), &self.sandbox);
    }

    /// The policy that holds.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).policy.clone()
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use attache::client::{ReadFiles as _, RequestContext, Terminals, WriteFiles as _};
    use attache::wire::v1::CreateTerminalRequest;
    use attache_host::Host;
    use attache_host::terminals::PtyTerminals;

    pub(super) fn now(
        policy: Policy,
        events: &mpsc::Sender<GuardEvent>,
        screens: Option<&Screens>,
        sandbox: &Sandbox,
    ) -> Now {
        let policy = Arc::new(policy);
        let (questions, notices) = (events.clone(), events.clone());
        let host = Host::new(policy.clone())
            .on_ask(move |question| {
                let questions = questions.clone();
                async move {
                    let (reply, answer) = oneshot::channel();
                    let event = GuardEvent::Question(Box::new(question), reply);
                    if questions.send(event).await.is_err() {
                        return Answer::Unanswered;
                    }
                    answer.await.unwrap_or(Answer::Unanswered)
                }
            })
            .on_notice(move |notice| drop(notices.try_send(GuardEvent::Notice(Box::new(notice)))));
        let mut terminals = host.terminals();
        if let Ok(program) = std::env::current_exe() {
            terminals = terminals.sandbox(program, sandbox.hidden.clone());
        }
        if sandbox.always {
            terminals = terminals.sandboxed();
        }
        if let Some(screens) = screens.cloned() {
            terminals = terminals.on_event(move |event| screens.event(event));
        }
        Now { policy, files: host.files(), terminals }
    }

    impl Lender {
        /// Offers what is lent.
        pub(crate) fn offer(&self, mut client: Client, fs: bool, terminal: bool) -> Client {
            if fs {
                let lender = self.clone();
                client = client.read_files(move |cx, request| {
                    let files = lender.read().files.clone();
                    async move { files.read(cx, request).await }
                });
                let lender = self.clone();
                client = client.write_files(move |cx, request| {
                    let files = lender.read().files.clone();
                    async move { files.write(cx, request).await }
                });
            }
            if terminal {
                client = client.terminals(Lent(self.clone()));
            }
            client
        }

        fn read(&self) -> std::sync::RwLockReadGuard<'_, Now> {
            self.now.read().unwrap_or_else(PoisonError::into_inner)
        }
    }

    struct Lent(Lender);

    impl Terminals for Lent {
        type Terminal = <PtyTerminals as Terminals>::Terminal;

        async fn create(
            &self,
            cx: RequestContext,
            request: CreateTerminalRequest,
        ) -> attache::Result<Self::Terminal> {
            let terminals = self.0.read().terminals.clone();
            terminals.create(cx, request).await
        }
    }
}

#[cfg(unix)]
use unix::now;

#[cfg(not(unix))]
fn now(
    policy: Policy,
    _events: &mpsc::Sender<GuardEvent>,
    _screens: Option<&Screens>,
    _sandbox: &Sandbox,
) -> Now {
    Now { policy: Arc::new(policy) }
}

#[cfg(not(unix))]
impl Lender {
    /// Files and terminals are lent on Unix only.
    pub(crate) fn offer(&self, client: Client, _fs: bool, _terminal: bool) -> Client {
        client
    }
}
