//! The interactive chat.
//!
//! Layers, each of which can be tested without the ones below:
//!
//! - `transcript` folds events into blocks; `tool` and `output` are what they hold.
//! - `view` turns blocks into styled lines and decides which of them are finished.
//! - `ask` are questions of the agent and of our own guards, `commands` and `page` what begins
//!   with a slash.
//! - `app` is all of that as one state: events and keys in, lines and wishes out. `keys` is what keys do to it, `face` how it looks.
//! - `past` is what has gone up and may be drawn again, `block` how all of it looks.
//! - `hub` waits for events and draws, `drive` is the loop, `open` how it comes to a session. `kept` is a session with a
//!   name, `traffic` what goes over the wire. [`run`] is the way in.
//!
//! What never happens here: text of an agent reaches the terminal with its control characters; a page is opened or a
//! permission given without the user's key; a letter that was typed for a prompt answers a question; the terminal is left
//! raw; the program wakes up while nothing happens.

mod app;
mod ask;
mod attach;
mod block;
mod commands;
mod drive;
mod face;
mod hub;
mod kept;
mod keys;
mod kin;
mod open;
mod page;
mod past;
mod start;
mod state;
mod traffic;
mod transcript;
mod view;

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache::Meta;
use attache::client::{AgentHandle, Session, SessionBuilder, SessionReplay};
use attache::wire::v1::{McpServer, SessionId, SystemPrompt};
use attache_host::budget::{Budget, Meter};
use attache_host::policy::Policy;
use attache_host::secrets::Mask;
use attache_term::device::{self, Raw};
use attache_term::editor::Editor;
use attache_term::editor::history::{History, HistoryFile};
use attache_term::render::text::Look;
use attache_term::screen::Screen;
use tokio::sync::mpsc;

use self::app::App;
use self::drive::{Driver, First};
use self::hub::{Hub, Signals, usable};
use self::kept::Kept;
use self::start::Starter;
pub(crate) use self::start::chat;
use self::state::SessionState;
use self::traffic::Traffic;
use self::transcript::Severity;
use self::view::Canvas;
use crate::client_services::TerminalOutputs;
use crate::error::{Context as _, Result};
use crate::run::{ChatCommand, Connection};

/// What a chat needs.
pub(crate) struct Setup<'a> {
    /// What the agent is called.
    pub(crate) name: String,
    pub(crate) connection: Connection,
    /// The session to begin with.
    pub(crate) first: First,
    /// How further sessions are opened.
    pub(crate) opener: Opener,
    /// How the agent is started again.
    pub(crate) starter: Rc<Starter<'a>>,
    /// The recorded session that the chat is in, if it is in one.
    pub(crate) kept: Option<Kept>,
    pub(crate) traffic: Option<Traffic>,
    /// What other commands want from that session.
    pub(crate) wishes: Option<mpsc::Receiver<ChatCommand>>,
    /// The terminals that are lent.
    pub(crate) terminal_outputs: TerminalOutputs,
    pub(crate) meter: Meter,
    pub(crate) budget: Budget,
    /// How long a turn may take.
    pub(crate) time: Option<Duration>,
    pub(crate) colours: bool,
    /// Show what else is to be known.
    pub(crate) verbose: bool,
    /// Where prompts are remembered.
    pub(crate) history: Option<PathBuf>,
    /// What to say at first, a line each.
    pub(crate) notices: Vec<String>,
}

/// How sessions are opened: with the same directories, servers and prompt each time.
pub(crate) struct Opener {
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) mcp_servers: Vec<McpServer>,
    pub(crate) system_prompt: Option<SystemPrompt>,
    pub(crate) meta: Option<Meta>,
    pub(crate) policy: Arc<Policy>,
    /// What to do when the agent wants to know who is there.
    pub(crate) login: String,
}

impl Opener {
    fn with_options<K>(&self, session: SessionBuilder<K>) -> SessionBuilder<K> {
        session
            .additional_directories(self.directories.iter().cloned())
            .mcp_servers(self.mcp_servers.iter().cloned())
            .system_prompt(self.system_prompt.clone())
            .meta(self.meta.clone())
    }

    fn of(connection: &Connection) -> Result<Opener> {
        Ok(Opener {
            cwd: connection.setup.cwd.clone(),
            directories: connection.setup.directories.clone(),
            mcp_servers: connection.servers()?,
            system_prompt: connection.system_prompt(),
            meta: connection.meta()?,
            policy: connection.services.policy(),
            login: format!("leave and run `attache auth login {}`", connection.setup.spec.name),
        })
    }

    fn new_session(&self, agent: &AgentHandle) -> impl Future<Output = attache::Result<Session>> + use<> {
        let session = self.with_options(agent.new_session(&self.cwd));
        async move { session.await }
    }

    fn fork(
        &self,
        agent: &AgentHandle,
        id: &SessionId,
    ) -> impl Future<Output = attache::Result<Session>> + use<> {
        let session = agent.forker().map(|forking| self.with_options(forking.fork(id.clone(), &self.cwd)));
        async move { session.ok_or(attache::Error::Unsupported("copies of sessions"))?.await }
    }

    fn load(
        &self,
        agent: &AgentHandle,
        id: &SessionId,
    ) -> impl Future<Output = attache::Result<SessionReplay>> + use<> {
        let session = agent.loader().map(|loading| self.with_options(loading.load(id.clone(), &self.cwd)));
        async move { session.ok_or(attache::Error::Unsupported("loading sessions"))?.await }
    }

    fn resume(
        &self,
        agent: &AgentHandle,
        id: &SessionId,
    ) -> impl Future<Output = attache::Result<Session>> + use<> {
        let session =
            agent.resumer().map(|resuming| self.with_options(resuming.resume(id.clone(), &self.cwd)));
        async move { session.ok_or(attache::Error::Unsupported("going on with stored sessions"))?.await }
    }
}

/// Chats until the user leaves; the exit code.
///
/// # Errors
/// When the terminal cannot be used, or the session that is meant cannot be opened.
pub(crate) async fn run(mut setup: Setup<'_>) -> Result<u8> {
    let (columns, rows) = crossterm::terminal::size().context("the terminal")?;
    let (columns, rows) = (usable(columns.into()), usize::from(rows).max(1));
    let look = Look { colours: setup.colours, unicode: device::is_unicode() };
    let canvas = Canvas { columns, rows, look, cwd: setup.opener.cwd.clone(), beat: 0, unfold: false };
    let (_, nobody) = mpsc::channel(1);
    let raw = Raw::enter().context("the terminal")?;
    let hub = Hub {
        keys: device::keys().context("the terminal")?,
        guard: std::mem::replace(&mut setup.connection.guard, nobody),
        news: setup.connection.agent.events(),
        terminal_outputs: setup.terminal_outputs.clone(),
        outcomes: mpsc::channel(16),
        traffic: setup.traffic,
        wishes: setup.wishes,
        signals: Signals::new().context("signals")?,
        screen: Screen::new(io::stdout(), look),
        dirty: true,
        drawn: Instant::now(),
        deadline: None,
        raw,
    };
    let mut editor = Editor::default();
    editor.history = History::load(
        setup
            .history
            .map(|path| HistoryFile { path, redact: |text| Mask::from_env().tokens(text).into_owned() }),
    );
    let policy = setup.opener.policy.clone();
    let mut app = App::new(canvas, setup.name, SessionState::empty(), policy, editor);
    app.transcript.terminal_outputs = setup.terminal_outputs;
    app.verbose = setup.verbose;
    app.transcript.verbose = setup.verbose;
    app.budget = setup.budget;
    app.time = setup.time;
    for notice in setup.notices {
        app.notice(Severity::Info, notice);
    }
    let mut driver = Driver {
        hub,
        app,
        connection: Rc::new(setup.connection),
        opener: setup.opener,
        starter: setup.starter,
        kept: setup.kept,
        meter: setup.meter,
        told: false,
    };
    let ended = driver.begin_and_run(setup.first).await;
    let _ = driver.finish();
    // The terminal and the session are given back before the agent is waited for.
    let connection = driver.leave();
    crate::run::leave(&connection.agent).await;
    ended
}
