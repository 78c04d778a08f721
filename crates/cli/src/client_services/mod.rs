//! The files and terminals that this program provides to an agent, under the policy of the running
//! prompt.
//!
//! A connection may serve many prompts with different permissions, so each request looks up the
//! current policy.

pub(crate) mod terminals;

use std::sync::Arc;

use attache::client::Client;
use attache_host::policy::{Answer, Notice, Policy, Question};
use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot};

use crate::checkpoints::Checkpoints;
pub(crate) use terminals::TerminalOutputs;

/// What the guard of files and terminals reports while the agent acts without asking for
/// permission.
#[derive(Debug)]
pub(crate) enum GuardEvent {
    /// A person has to decide.
    Question(Box<Question>, oneshot::Sender<Answer>),
    /// A decision was made.
    Notice(Box<Notice>),
}

/// Events that may be queued. A question waits for room; a notice that finds none is only in the
/// audit log.
const QUEUED: usize = 64;

/// Files and terminals for the agent. Clones share their state.
#[derive(Clone)]
pub(crate) struct ClientServices {
    current: Arc<RwLock<Current>>,
    events: mpsc::Sender<GuardEvent>,
    /// Collects the output of commands for the screen.
    terminal_outputs: Option<TerminalOutputs>,
    sandbox: Sandbox,
    /// Keeps files as they are before the agent writes them.
    checkpoints: Option<Checkpoints>,
}

/// The sandbox of the agent's commands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sandbox {
    /// Whether every command is sandboxed, and not only those that need no question.
    pub(crate) always: bool,
    /// Paths that sandboxed commands do not see.
    pub(crate) hidden: Vec<std::path::PathBuf>,
}

struct Current {
    policy: Arc<Policy>,
    #[cfg(unix)]
    guard: attache_host::policy::Guard,
    #[cfg(unix)]
    files: attache_host::files::Files,
    #[cfg(unix)]
    terminals: attache_host::terminals::PtyTerminals,
}

impl ClientServices {
    /// Starts with a policy. Questions and notices arrive at the receiver.
    pub(crate) fn new(policy: Policy, sandbox: Sandbox) -> (ClientServices, mpsc::Receiver<GuardEvent>) {
        ClientServices::with(policy, None, sandbox)
    }

    /// Like `new`, but collects the output of commands.
    pub(crate) fn with_terminal_outputs(
        policy: Policy,
        terminal_outputs: TerminalOutputs,
        sandbox: Sandbox,
    ) -> (ClientServices, mpsc::Receiver<GuardEvent>) {
        ClientServices::with(policy, Some(terminal_outputs), sandbox)
    }

    fn with(
        policy: Policy,
        terminal_outputs: Option<TerminalOutputs>,
        sandbox: Sandbox,
    ) -> (ClientServices, mpsc::Receiver<GuardEvent>) {
        let (events, receiver) = mpsc::channel(QUEUED);
        let current = current(policy, &events, terminal_outputs.as_ref(), &sandbox);
        (
            ClientServices {
                current: Arc::new(RwLock::new(current)),
                events,
                terminal_outputs,
                sandbox,
                checkpoints: None,
            },
            receiver,
        )
    }

    /// Notes files in these checkpoints before they are written.
    pub(crate) fn noted_in(mut self, checkpoints: Option<Checkpoints>) -> ClientServices {
        self.checkpoints = checkpoints;
        self
    }

    /// Replaces the policy.
    pub(crate) fn set(&self, policy: Policy) {
        *self.current.write() = current(policy, &self.events, self.terminal_outputs.as_ref(), &self.sandbox);
    }

    /// Returns the current policy.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.current.read().policy.clone()
    }
}

#[cfg(unix)]
mod unix {
    use super::*;
    use attache::client::{ReadFiles as _, RequestContext, Terminal, Terminals, WriteFiles as _};
    use attache::wire::v1::{CreateTerminalRequest, TerminalExitStatus, TerminalId, TerminalOutputResponse};
    use attache_host::Host;
    use attache_host::files::Files;
    use attache_host::terminals::{PtyTerminal, PtyTerminals};

    pub(super) fn current(
        policy: Policy,
        events: &mpsc::Sender<GuardEvent>,
        terminal_outputs: Option<&TerminalOutputs>,
        sandbox: &Sandbox,
    ) -> Current {
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
        if let Some(terminal_outputs) = terminal_outputs.cloned() {
            terminals = terminals.on_event(move |event| terminal_outputs.event(event));
        }
        Current { policy, guard: host.guard().clone(), files: host.files(), terminals }
    }

    impl ClientServices {
        /// Installs the services in a client.
        pub(crate) fn install(&self, mut client: Client, fs: bool, terminal: bool) -> Client {
            if fs {
                let services = self.clone();
                client = client.read_files(move |cx, request| {
                    let files = services.read().files.clone();
                    async move { files.read(cx, request).await }
                });
                let services = self.clone();
                client = client.write_files(move |cx, request: attache::wire::v1::WriteTextFileRequest| {
                    let (files, checkpoints) = (services.read().files.clone(), services.checkpoints.clone());
                    async move {
                        if let Some(checkpoints) = checkpoints {
                            let path = std::path::PathBuf::from(&request.path);
                            // Without its old content the file can still be written, only not
                            // undone.
                            let _ = checkpoints.run(move |store| store.name(&path)).await;
                        }
                        files.write(cx, request).await
                    }
                });
            }
            if terminal {
                client = client.terminals(SharedTerminals(self.clone()));
            }
            client
        }

        /// Files and terminals under the current policy, for callers other than a client.
        pub(crate) fn provide(&self) -> (Files, PtyTerminals) {
            let current = self.read();
            (current.files.clone(), current.terminals.clone())
        }

        /// Like `provide`, but `ask` answers the questions.
        pub(crate) fn provide_asking<F, Fut>(&self, ask: F) -> (Files, PtyTerminals)
        where
            F: Fn(Question) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Answer> + Send + 'static,
        {
            let current = self.read();
            let guard = current.guard.clone().on_ask(ask);
            (Files::new(guard.clone()), current.terminals.clone().with_guard(guard))
        }

        fn read(&self) -> parking_lot::RwLockReadGuard<'_, Current> {
            self.current.read()
        }
    }

    struct SharedTerminals(ClientServices);

    impl Terminals for SharedTerminals {
        type Terminal = SharedTerminal;

        async fn create(
            &self,
            cx: RequestContext,
            request: CreateTerminalRequest,
        ) -> attache::Result<Self::Terminal> {
            let terminals = self.0.read().terminals.clone();
            let terminal = Arc::new(terminals.create(cx, request).await?);
            if let Some(outputs) = &self.0.terminal_outputs {
                // Weak: a terminal that the agent releases is not kept for the keyboard.
                let typed = Arc::downgrade(&terminal);
                let input = move |bytes: &[u8]| {
                    typed
                        .upgrade()
                        .is_some_and(|terminal| terminal.input(bytes).is_ok_and(|n| n == bytes.len()))
                };
                outputs.attach(terminal.number(), Arc::new(input));
            }
            Ok(SharedTerminal(terminal))
        }
    }

    /// A terminal of the agent that the user can type into.
    pub(crate) struct SharedTerminal(Arc<PtyTerminal>);

    impl Terminal for SharedTerminal {
        fn output(&self) -> impl Future<Output = attache::Result<TerminalOutputResponse>> + Send {
            self.0.output()
        }

        fn wait_for_exit(&self) -> impl Future<Output = attache::Result<TerminalExitStatus>> + Send {
            self.0.wait_for_exit()
        }

        fn kill(&self) -> impl Future<Output = attache::Result<()>> + Send {
            self.0.kill()
        }

        fn release(&self) -> impl Future<Output = attache::Result<()>> + Send {
            self.0.release()
        }

        fn output_bytes(&self) -> usize {
            self.0.output_bytes()
        }

        fn named(&self, id: &TerminalId) {
            self.0.named(id);
        }
    }
}

#[cfg(unix)]
use unix::current;

#[cfg(not(unix))]
fn current(
    policy: Policy,
    _events: &mpsc::Sender<GuardEvent>,
    _screens: Option<&TerminalOutputs>,
    _sandbox: &Sandbox,
) -> Current {
    Current { policy: Arc::new(policy) }
}

#[cfg(not(unix))]
impl ClientServices {
    /// Files and terminals are provided on Unix only.
    pub(crate) fn install(&self, client: Client, _fs: bool, _terminal: bool) -> Client {
        client
    }
}
