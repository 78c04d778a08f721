//! The interactive chat.
//!
//! Layers, each of which can be tested without the ones below:
//!
//! - `transcript` is the model of the conversation with what the chat adds to it; `subagents` and
//!   `tasks` belong to it.
//! - `view` turns blocks into styled lines and decides which of them are finished.
//! - `ask` holds questions of the agent and of our own guards; `commands` parses slash commands,
//!   `help` prints their output.
//! - `app` is the whole state: events and keys in, lines and effects out. `keys` handles keys,
//!   `layout` draws.
//! - `item` draws one item, `scrollback` keeps those that may be drawn again.
//! - `picker` is a list to choose from, `files` the list for `@`, `attention` calls the user.
//! - `ui` waits for input and decides when to draw, `drive` is the main loop, `open` opens
//!   sessions, `saved_session` keeps one, `traffic` receives the wire, `actions` are the commands
//!   that need more than the screen, `foreground` gives the terminal to other programs, `resume`
//!   finds the conversation of `-c` and `-r`, `undo` takes changes of files back, `typing` passes
//!   keys to commands of the agent, `clipboard` has pictures. [`run`] is the entry point.
//!
//! What never happens here: text of an agent reaches the terminal with its control characters; a
//! page is opened or a permission given without the user's key; a letter that was typed for a
//! prompt answers a question; the terminal is left raw; the program wakes up while nothing happens.

mod actions;
mod app;
mod ask;
mod attach;
mod attention;
mod clipboard;
mod commands;
mod drive;
mod files;
mod foreground;
mod help;
mod item;
mod keys;
mod layout;
mod open;
mod resume;
mod saved_session;
mod scrollback;
mod start;
mod state;
mod subagents;
mod tasks;
mod traffic;
mod transcript;
mod typing;
mod ui;
mod undo;
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
use attache_term::device::{self, Keys, Raw};
use attache_term::editor::Editor;
use attache_term::editor::history::{History, HistoryFile};
use attache_term::render::text::Look;
use attache_term::screen::Screen;
use tokio::sync::mpsc;

use self::app::App;
use self::attention::Attention;
use self::drive::{Driver, InitialSession};
pub(crate) use self::resume::choose;
use self::saved_session::SavedSession;
use self::start::Starter;
pub(crate) use self::start::chat;
use self::state::SessionState;
use self::traffic::Traffic;
use self::transcript::Severity;
use self::ui::{Signals, Ui, usable};
use self::view::Canvas;
use crate::client_services::TerminalOutputs;
use crate::error::{Context as _, Result};
use crate::run::{ChatCommand, Connection};
use crate::session_store::Record;

/// The parameters of a chat.
pub(crate) struct ChatParameters<'a> {
    /// The name of the agent.
    pub(crate) name: String,
    pub(crate) connection: Connection,
    /// The first session.
    pub(crate) first: InitialSession,
    /// Opens further sessions.
    pub(crate) opener: Opener,
    /// Restarts the agent.
    pub(crate) starter: Rc<Starter<'a>>,
    /// The saved session, if the chat is in one.
    pub(crate) saved: Option<SavedSession>,
    pub(crate) traffic: Option<Traffic>,
    /// Commands of other processes for that session.
    pub(crate) commands: Option<mpsc::Receiver<ChatCommand>>,
    /// Output of client terminals.
    pub(crate) terminal_outputs: TerminalOutputs,
    pub(crate) meter: Meter,
    pub(crate) budget: Budget,
    /// The time limit of a turn.
    pub(crate) time: Option<Duration>,
    pub(crate) colours: bool,
    /// Whether additional notices are shown.
    pub(crate) verbose: bool,
    /// The file of the prompt history.
    pub(crate) history: Option<PathBuf>,
    /// Notices at the start, a line each.
    pub(crate) notices: Vec<String>,
    /// The first prompt, from the command line.
    pub(crate) prompt: Option<String>,
    pub(crate) attention: Attention,
}

/// Opens sessions with the same directories, servers and prompt each time.
pub(crate) struct Opener {
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) mcp_servers: Vec<McpServer>,
    pub(crate) system_prompt: Option<SystemPrompt>,
    pub(crate) meta: Option<Meta>,
    pub(crate) policy: Arc<Policy>,
    /// Advice for an agent that requires authentication.
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
            login: "log in: /login".to_owned(),
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
        async move { session.ok_or(attache::Error::Unsupported("forking sessions"))?.await }
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
        async move { session.ok_or(attache::Error::Unsupported("resuming sessions"))?.await }
    }
}

/// How a chat was left.
pub(crate) struct Left {
    /// The exit code.
    pub(crate) code: u8,
    /// The record of a conversation that can be resumed.
    pub(crate) record: Option<Record>,
    /// Arguments of the program that replaces this one.
    pub(crate) successor: Option<Vec<String>>,
}

/// Runs the chat until the user quits.
///
/// # Errors
/// If the terminal cannot be used, or the session cannot be opened.
pub(crate) async fn run(mut setup: ChatParameters<'_>) -> Result<Left> {
    let (columns, rows) = crossterm::terminal::size().context("the terminal")?;
    let (columns, rows) = (usable(columns.into()), usize::from(rows).max(1));
    let look = Look { colours: setup.colours, unicode: device::is_unicode() };
    let canvas = Canvas { columns, rows, look, cwd: setup.opener.cwd.clone(), beat: 0, unfold: false };
    let (_, closed) = mpsc::channel(1);
    let raw = Raw::enter().context("the terminal")?;
    let ui = Ui {
        keys: Keys::read().context("the terminal")?,
        guard: std::mem::replace(&mut setup.connection.guard, closed),
        connection: setup.connection.agent.events(),
        terminal_outputs: setup.terminal_outputs.clone(),
        task_results: mpsc::channel(16),
        traffic: setup.traffic,
        commands: setup.commands,
        signals: Signals::new().context("signals")?,
        screen: Screen::new(io::stdout(), look),
        dirty: true,
        drawn: Instant::now(),
        deadline: None,
        interrupt_expected: false,
        raw,
    };
    let mut editor = Editor::default().with_chips();
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
    app.attention = setup.attention;
    app.is_own_agent = setup.connection.setup.spec.is_own();
    app.queue.extend(setup.prompt);
    for notice in setup.notices {
        app.notice(Severity::Info, notice);
    }
    let mut driver = Driver {
        ui,
        app,
        connection: Rc::new(setup.connection),
        opener: setup.opener,
        starter: setup.starter,
        saved: setup.saved,
        meter: setup.meter,
        end_shown: false,
        checkpoint: None,
    };
    let ended = driver.begin_and_run(setup.first).await;
    let _ = driver.finish();
    let resumable = driver.resumable();
    let successor = driver.app.successor.take();
    let checkpoint = driver.last_checkpoint();
    // The terminal and the session are released before the agent is awaited.
    let connection = driver.leave();
    crate::run::leave(&connection.agent).await;
    // What the agent wrote until its end belongs to the turn.
    if let Some((checkpoints, turn)) = checkpoint {
        let _ = checkpoints.run(move |store| store.end(turn)).await;
    }
    Ok(Left { code: ended?, record: resumable, successor })
}
