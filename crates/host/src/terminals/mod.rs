//! Commands for agents, on real pseudo terminals: `terminal/*`.
//!
//! Each command runs under a guardian of [`attache_conn::process`], so that no process is left
//! after its release, the end of its session, a drop, or the end of this process, `SIGKILL`
//! included. Its output is read by a thread of its own and kept in a [`Ring`] and reported to
//! [`PtyTerminals::on_event`].
//!
//! Reading order: this file, `launch.rs` (which program), `ring.rs` (what is kept), `status.rs`.

mod created;
mod launch;
mod ring;
mod status;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use attache::client::{RequestContext, Terminal, Terminals};
use attache::wire::v1::{
    CreateTerminalRequest, SessionId, TerminalExitStatus, TerminalId, TerminalOutputResponse,
};
use attache::{Error, Result, code};
use attache_conn::process::{Command, PtyChild, PtyEvent};
use parking_lot::{Mutex, MutexGuard};

use self::created::ProtectedFiles;
use self::launch::Launch;
use self::ring::Budget;
pub use self::ring::Ring;
use crate::confine::Confiner;
use crate::net::Reach;
use crate::policy::{Confined, Destination, Guard};
use crate::proxy::{self, Proxy};
use crate::sandbox::{Confinement, Network};
use crate::secrets::withheld_variables;
use crate::shell::is_read_only;

/// Events of a terminal, for display.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TerminalEvent<'a> {
    /// A command was started.
    Started {
        /// Number of the terminal in this process.
        number: u64,
        /// The session that it belongs to.
        session: Option<&'a SessionId>,
        /// The command line.
        command: &'a str,
        /// Working directory.
        cwd: &'a Path,
    },
    /// The terminal got its protocol id.
    Named {
        /// Number of the terminal.
        number: u64,
        /// The id that tool calls use.
        id: &'a TerminalId,
    },
    /// The command printed output.
    Output {
        /// Number of the terminal.
        number: u64,
        /// The output, including control sequences.
        text: &'a str,
    },
    /// The command has ended, and all its output was reported.
    Ended {
        /// Number of the terminal.
        number: u64,
        /// Exit code or signal.
        status: &'a TerminalExitStatus,
    },
}

type OnEvent = Arc<dyn Fn(TerminalEvent<'_>) + Send + Sync>;

/// Provider of terminals: runs commands for sessions.
#[derive(Clone)]
pub struct PtyTerminals {
    guard: Guard,
    settings: Settings,
    on_event: Option<OnEvent>,
    running: Arc<AtomicUsize>,
    kept: Arc<Budget>,
    sandbox: Option<Arc<LazyConfiner>>,
    /// The proxies of sessions whose commands are sandboxed.
    proxies: Option<Proxies>,
}

/// The sandbox of this machine, found with the first command.
struct LazyConfiner {
    program: PathBuf,
    hidden: Vec<PathBuf>,
    found: OnceLock<Option<Confiner>>,
}

impl LazyConfiner {
    fn get(&self) -> Option<&Confiner> {
        let detect = || Confiner::detect(&self.program).map(|confiner| confiner.hide(self.hidden.clone()));
        self.found.get_or_init(detect).as_ref()
    }
}

/// One proxy for each session, by which its sandboxed commands reach the network.
#[derive(Clone, Default)]
struct Proxies(Arc<Mutex<HashMap<Option<SessionId>, Arc<Proxy>>>>);

#[derive(Clone, Debug)]
struct Settings {
    size: (u16, u16),
    env: Vec<(String, String)>,
    passed_env: Vec<String>,
    default_output: u64,
    largest_output: u64,
    kill_grace: Duration,
    most: usize,
}

/// Output that all terminals of the process keep together by default.
static KEPT: LazyLock<Arc<Budget>> = LazyLock::new(|| Budget::new(8 << 20));

/// Number of the next terminal.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl PtyTerminals {
    /// Runs the commands that `guard` permits.
    ///
    /// Defaults: 120 columns and 40 rows; 1 MiB of output per terminal, up to 4 MiB if the agent
    /// asks for it, 8 MiB for all terminals of this process; one second between `SIGTERM` and
    /// `SIGKILL`; 64 terminals at a time. `TERM=dumb`, `PAGER=cat` and `GIT_PAGER=cat` are set, and
    /// the agent's variables override them. Commands inherit our environment without the variables
    /// that are named like secrets.
    pub fn new(guard: Guard) -> Self {
        let env = [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];
        let settings = Settings {
            size: (120, 40),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            passed_env: Vec::new(),
            default_output: 1 << 20,
            largest_output: 4 << 20,
            kill_grace: Duration::from_secs(1),
            most: 64,
        };
        PtyTerminals {
            guard,
            settings,
            on_event: None,
            running: Arc::default(),
            kept: KEPT.clone(),
            sandbox: None,
            proxies: None,
        }
    }

    /// Uses the sandbox of this machine, if one works: commands that can only read run without a
    /// question where reading needs none, and commands of our own agent that are confined already
    /// are recognised. `program` handles [`crate::sandbox::WORD`]; commands do not see `hidden`.
    #[must_use]
    pub fn sandbox(mut self, program: PathBuf, hidden: Vec<PathBuf>) -> Self {
        self.sandbox = Some(Arc::new(LazyConfiner { program, hidden, found: OnceLock::new() }));
        self
    }

    /// Runs every command in the workspace sandbox. Connections go through a proxy, and a new host
    /// is a question. Needs [`sandbox`](Self::sandbox); where none works, no command is run.
    #[must_use]
    pub fn sandboxed(mut self) -> Self {
        self.proxies = Some(Proxies::default());
        self
    }

    /// Replaces the guard. Limits and the sandbox are shared with the original, connections of
    /// sandboxed commands are not.
    #[must_use]
    pub fn with_guard(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self.proxies = self.proxies.map(|_| Proxies::default());
        self
    }

    /// Sets the size of new terminals.
    #[must_use]
    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.settings.size = (columns, rows);
        self
    }

    /// Sets a variable for every command. The agent may override it.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.env.push((name.into(), value.into()));
        self
    }

    /// Lets commands inherit variables that are named like secrets
    /// ([`is_secret_name`](crate::secrets::is_secret_name)). Others of that kind, such as the API
    /// keys of the agent, reach a command only if the agent's request sets them.
    #[must_use]
    pub fn pass_env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.passed_env.extend(names.into_iter().map(Into::into));
        self
    }

    // TERM-06
    /// Sets how many bytes of output are kept by default, and at most on the agent's request.
    #[must_use]
    pub fn output_limits(mut self, default: u64, largest: u64) -> Self {
        (self.settings.default_output, self.settings.largest_output) = (default, largest);
        self
    }

    /// Sets how many bytes of output the terminals of this provider keep together. A terminal that
    /// prints when the budget is used up keeps its last 32 KiB.
    #[must_use]
    pub fn total_output(mut self, bytes: usize) -> Self {
        self.kept = Budget::new(bytes);
        self
    }

    /// Sets the time between `SIGTERM` and `SIGKILL`.
    #[must_use]
    pub fn kill_grace(mut self, grace: Duration) -> Self {
        self.settings.kill_grace = grace;
        self
    }

    /// Limits the number of terminals at a time.
    #[must_use]
    pub fn at_most(mut self, most: usize) -> Self {
        self.settings.most = most;
        self
    }

    /// Calls `f` with the events of all terminals, on their reader threads. A slow `f` blocks the
    /// command's output.
    #[must_use]
    pub fn on_event(mut self, f: impl Fn(TerminalEvent<'_>) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(f));
        self
    }

    /// Starts a command for a session with these roots, the working directory first.
    ///
    /// # Errors
    /// The error that the agent gets.
    pub async fn create_in(
        &self,
        session: Option<&SessionId>,
        roots: &[PathBuf],
        request: CreateTerminalRequest,
    ) -> Result<PtyTerminal> {
        // TERM-13
        let cwd = request.cwd.as_ref().map(PathBuf::from).or_else(|| roots.first().cloned());
        let cwd = cwd.ok_or_else(|| Error::invalid_params("no working directory: set `cwd`"))?;
        let limit = request.output_byte_limit.unwrap_or(self.settings.default_output);
        let limit = usize::try_from(limit.min(self.settings.largest_output)).unwrap_or(usize::MAX);
        let mut launch = Launch::new(request, cwd);
        let confiner = self.confiner().await;
        let confinement = self.confine(confiner.as_ref(), session, roots, &mut launch)?;
        self.guard.run(session, launch.run.clone()).await.map_err(|reason| {
            Error::refuse(code::INTERNAL_ERROR, format!("not permitted: `{}`: {reason}", launch.run.command))
        })?;
        let watched = confinement.is_some() && launch.run.confined == Confined::Workspace;
        if let (Some(confinement), Some(confiner)) = (confinement, &confiner) {
            let argv = confiner.command(&confinement, launch.argv()).map_err(Error::invalid_params)?;
            launch.replace(argv);
        }
        let permit = TerminalPermit::enter(&self.running, self.settings.most)?;
        let (this, session, roots) = (self.clone(), session.cloned(), roots.to_vec());
        let start = move || {
            let created = watched.then(|| ProtectedFiles::watch(&this.guard, session.as_ref(), &roots));
            this.start(session.as_ref(), &launch, limit, permit, created)
        };
        match tokio::task::spawn_blocking(start).await {
            Ok(started) => started,
            Err(error) => Err(Error::internal(error)),
        }
    }

    async fn confiner(&self) -> Option<Confiner> {
        let lazy = self.sandbox.clone()?;
        tokio::task::spawn_blocking(move || lazy.get().cloned()).await.ok().flatten()
    }

    /// Chooses the confinement of a command and records it for the policy. Returns the confinement
    /// to add.
    fn confine(
        &self,
        confiner: Option<&Confiner>,
        session: Option<&SessionId>,
        roots: &[PathBuf],
        launch: &mut Launch,
    ) -> Result<Option<Confinement>> {
        let Some(confiner) = confiner else {
            return match self.proxies {
                None => self.check_denied(launch).map(|()| None),
                Some(_) => Err(Error::refuse(code::INTERNAL_ERROR, "no sandbox works on this machine")),
            };
        };
        let denied = self.guard.policy().map(|policy| policy.denied_programs()).unwrap_or_default();
        if let Some(run) = confiner.recognise(&launch.argv(), &launch.run, roots) {
            launch.run = run;
            return Ok(if denied.is_empty() { None } else { launch.deny_programs(denied) });
        }
        let is_unclear = !launch.run.command.is_clear();
        let line = launch.run.command.text().to_owned();
        let reads_only = launch.run.effective_env().next().is_none()
            && is_read_only(&line, launch.run.cwd.real(), roots)
            && self.guard.may_run_read_only(session, &launch.run.command, &launch.run.cwd);
        if reads_only {
            launch.run.confined = Confined::ReadOnly;
            return Ok(Some(confiner.read_only(roots)));
        }
        if let Some(proxies) = &self.proxies {
            let network = match confiner.has_proxy() {
                true => {
                    let proxy = proxies.of(session, &self.guard)?;
                    // "Once" is for one command.
                    proxy.forget_decisions();
                    Network::Proxy(proxy.socket().to_owned())
                }
                false => Network::Off,
            };
            if confiner.protects_files() {
                launch.run.confined = Confined::Workspace;
            }
            return Ok(Some(confiner.workspace(roots, network, denied)));
        }
        // A command that cannot be checked against the rules beforehand is kept from the denied
        // programs while it runs.
        if is_unclear && !denied.is_empty() {
            return Ok(Some(confiner.workspace(roots, Network::Open, denied)));
        }
        Ok(None)
    }

    /// Refuses a command that may run a denied program when no sandbox can prevent it.
    fn check_denied(&self, launch: &Launch) -> Result<()> {
        let denied = self.guard.policy().map(|policy| policy.denied_programs()).unwrap_or_default();
        if denied.is_empty() || launch.run.command.is_clear() {
            return Ok(());
        }
        let text =
            "a rule denies programs, and without a sandbox it cannot be checked which ones this command runs";
        Err(Error::refuse(code::INTERNAL_ERROR, text))
    }

    fn start(
        &self,
        session: Option<&SessionId>,
        launch: &Launch,
        limit: usize,
        permit: TerminalPermit,
        mut created: Option<ProtectedFiles>,
    ) -> Result<PtyTerminal> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let ring = Mutex::new(Ring::within(limit, &self.kept));
        let shared = Arc::new(Shared { number, ring, on_event: self.on_event.clone() });
        let (columns, rows) = self.settings.size;
        let env = self.settings.env.iter().chain(&launch.env);
        let mut command = Command::new(&launch.program).args(&launch.args);
        for name in withheld_variables(&self.settings.passed_env) {
            command = command.env_remove(name);
        }
        let command = command
            .envs(env.map(|(name, value)| (name, value)))
            .current_dir(&launch.cwd)
            .grace(Duration::ZERO)
            .term_grace(self.settings.kill_grace);
        shared.emit(TerminalEvent::Started {
            number,
            session,
            command: launch.run.command.text(),
            cwd: &launch.cwd,
        });
        let output = shared.clone();
        let on_event = move |event: PtyEvent<'_>| match event {
            PtyEvent::Output(bytes) => output.push(bytes),
            PtyEvent::Ended(status) => {
                if let Some(created) = created.take() {
                    created.settle();
                }
                output.finish(status);
            }
        };
        match command.spawn_pty(columns, rows, on_event) {
            Ok(child) => {
                tracing::debug!(number, pid = child.guard.pid(), confined = ?launch.run.confined, "terminal started");
                Ok(PtyTerminal { child, shared, _permit: permit })
            }
            // TERM-18
            Err(error) => {
                tracing::debug!(number, %error, "terminal not started");
                shared.emit(TerminalEvent::Ended { number, status: &TerminalExitStatus::new() });
                Err(Error::refuse(code::INTERNAL_ERROR, error.to_string()))
            }
        }
    }
}

impl Proxies {
    /// Returns the proxy of a session, which is started with its first command.
    fn of(&self, session: Option<&SessionId>, guard: &Guard) -> Result<Arc<Proxy>> {
        let mut proxies = self.0.lock();
        if let Some(proxy) = proxies.get(&session.cloned()) {
            return Ok(proxy.clone());
        }
        let (guard, id) = (guard.clone(), session.cloned());
        let decide = move |to: proxy::Destination| {
            let (guard, id) = (guard.clone(), id.clone());
            async move {
                let is_near = to.reach != Reach::Internet;
                let to = Destination { host: to.host, port: Some(to.port), is_near };
                guard.connect(id.as_ref(), to).await.is_ok()
            }
        };
        let proxy = Proxy::start(proxy::Options::from_env(), decide)
            .map_err(|error| Error::refuse(code::INTERNAL_ERROR, format!("the network proxy: {error}")))?;
        let proxy = Arc::new(proxy);
        proxies.insert(session.cloned(), proxy.clone());
        Ok(proxy)
    }
}

impl Terminals for PtyTerminals {
    type Terminal = PtyTerminal;

    async fn create(&self, cx: RequestContext, request: CreateTerminalRequest) -> Result<PtyTerminal> {
        self.create_in(cx.session_id(), cx.roots(), request).await
    }
}

impl fmt::Debug for PtyTerminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtyTerminals").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// One of the limited number of terminals.
#[derive(Debug)]
struct TerminalPermit(Arc<AtomicUsize>);

impl TerminalPermit {
    fn enter(running: &Arc<AtomicUsize>, most: usize) -> Result<Self> {
        let permit = TerminalPermit(running.clone());
        if running.fetch_add(1, Ordering::AcqRel) >= most {
            let text = format!("limit of {most} terminals reached; release one first");
            return Err(Error::refuse(code::INTERNAL_ERROR, text));
        }
        Ok(permit)
    }
}

impl Drop for TerminalPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// State shared with the thread that reads the terminal.
struct Shared {
    number: u64,
    ring: Mutex<Ring>,
    on_event: Option<OnEvent>,
}

impl Shared {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock()
    }

    fn push(&self, bytes: &[u8]) {
        let text = self.ring().push(bytes);
        if !text.is_empty() {
            self.emit(TerminalEvent::Output { number: self.number, text: &text });
        }
    }

    fn finish(&self, status: ExitStatus) {
        if let Some(text) = self.ring().finish() {
            self.emit(TerminalEvent::Output { number: self.number, text });
        }
        tracing::debug!(number = self.number, ?status, "terminal ended");
        self.emit(TerminalEvent::Ended { number: self.number, status: &status::of(status) });
    }

    fn emit(&self, event: TerminalEvent<'_>) {
        if let Some(on_event) = &self.on_event {
            on_event(event);
        }
    }
}

/// A command on a terminal. Dropping it ends the command.
pub struct PtyTerminal {
    child: PtyChild,
    shared: Arc<Shared>,
    _permit: TerminalPermit,
}

impl PtyTerminal {
    /// Number of the terminal, as in [`TerminalEvent`].
    pub fn number(&self) -> u64 {
        self.shared.number
    }

    /// The process id of the command, for display.
    pub fn pid(&self) -> u32 {
        self.child.guard.pid()
    }

    /// Writes input to the terminal; see [`attache_conn::process::Pty::input`].
    ///
    /// # Errors
    /// When there is no room, or the command has ended.
    pub fn input(&self, bytes: &[u8]) -> std::io::Result<usize> {
        self.child.pty.input(bytes)
    }

    /// Changes the size of the terminal.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn resize(&self, columns: u16, rows: u16) -> std::io::Result<()> {
        self.child.pty.resize(columns, rows)
    }
}

impl Terminal for PtyTerminal {
    async fn output(&self) -> Result<TerminalOutputResponse> {
        // Before the output: once the command has ended, all of its output is there.
        let exit = self.child.guard.try_exit();
        let ring = self.shared.ring();
        let mut response = TerminalOutputResponse::new(ring.text(), ring.is_truncated());
        response.exit_status = exit.map(status::of);
        Ok(response)
    }

    fn output_bytes(&self) -> usize {
        self.shared.ring().len()
    }

    fn named(&self, id: &TerminalId) {
        self.shared.emit(TerminalEvent::Named { number: self.shared.number, id });
    }

    async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
        Ok(status::of(self.child.guard.wait().await))
    }

    async fn kill(&self) -> Result<()> {
        // TERM-21: killing an ended command has no effect.
        self.child.guard.terminate();
        self.child.guard.wait().await;
        Ok(())
    }

    async fn release(&self) -> Result<()> {
        self.kill().await?;
        self.shared.ring().clear();
        Ok(())
    }
}

impl fmt::Debug for PtyTerminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PtyTerminal")
            .field("number", &self.number())
            .field("child", &self.child.guard)
            .finish()
    }
}
