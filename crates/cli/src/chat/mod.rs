//! The interactive chat.
//!
//! Layers, each of which can be tested without the ones below:
//!
//! - `transcript` folds events into blocks; `tool` and `output` are what they hold.
//! - `render` turns text, Markdown, code and changes into styled lines; `view` does it for blocks and decides which of them are
//!   finished.
//! - `editor` is the line that is written, `ask` are questions of the agent and of our own guards, `commands` and `page` what begins
//!   with a slash.
//! - `app` is all of that as one state: events and keys in, lines and wishes out. `keys` is what keys do to it, `face` how it looks.
//! - `terminal`, `screen` and `hub` are the device, `drive` is the loop. [`run`] is the way in.
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
mod editor;
mod face;
mod hub;
mod keys;
mod output;
mod page;
mod past;
mod render;
mod screen;
mod start;
mod state;
mod terminal;
mod tool;
mod transcript;
mod view;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache::Meta;
use attache::client::{Agent, Loading, Session};
use attache::wire::v1::{McpServer, SessionId, SystemPrompt};
use attache_host::budget::Meter;
use attache_host::policy::Policy;
use tokio::sync::mpsc;

use self::app::App;
use self::drive::Driver;
use self::editor::Editor;
use self::editor::history::History;
use self::hub::{Hub, Signals, usable};
pub(crate) use self::output::Screens;
use self::render::text::Look;
use self::screen::Screen;
pub(crate) use self::start::chat;
use self::state::SessionState;
use self::terminal::Raw;
use self::transcript::Severity;
use self::view::Canvas;
use crate::lend::Asked;

/// What a chat needs.
pub(crate) struct Setup {
    pub(crate) agent: Agent,
    /// What the agent is called.
    pub(crate) name: String,
    /// The session to begin with.
    pub(crate) session: Session,
    /// How further sessions are opened.
    pub(crate) opener: Opener,
    /// What the agent does without asking, where somebody has to decide.
    pub(crate) asks: mpsc::Receiver<Asked>,
    /// The terminals that are lent.
    pub(crate) screens: Screens,
    pub(crate) meter: Meter,
    /// How long a turn may take.
    pub(crate) time: Option<Duration>,
    pub(crate) colours: bool,
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
    /// Is told each session that the chat goes on with.
    pub(crate) opened: Box<dyn FnMut(&SessionId)>,
}

/// The options that all ways to open a session share.
macro_rules! with_options {
    ($opener:ident, $session:expr) => {{
        let mut session = $session
            .additional_directories($opener.directories.iter().cloned())
            .mcp_servers($opener.mcp_servers.iter().cloned());
        if let Some(prompt) = &$opener.system_prompt {
            session = session.system_prompt(prompt.clone());
        }
        if let Some(meta) = &$opener.meta {
            session = session.meta(meta.clone());
        }
        session
    }};
}

impl Opener {
    fn new_session(&self, agent: &Agent) -> impl Future<Output = attache::Result<Session>> + use<> {
        let session = with_options!(self, agent.session(&self.cwd));
        async move { session.await }
    }

    fn fork(&self, agent: &Agent, id: &SessionId) -> impl Future<Output = attache::Result<Session>> + use<> {
        let session =
            agent.forking().map(|forking| with_options!(self, forking.session(id.clone(), &self.cwd)));
        async move { session.ok_or(attache::Error::Unsupported("copies of sessions"))?.await }
    }

    fn load(&self, agent: &Agent, id: &SessionId) -> impl Future<Output = attache::Result<Loading>> + use<> {
        let session =
            agent.loading().map(|loading| with_options!(self, loading.session(id.clone(), &self.cwd)));
        async move { session.ok_or(attache::Error::Unsupported("loading sessions"))?.await }
    }

    fn resume(
        &self,
        agent: &Agent,
        id: &SessionId,
    ) -> impl Future<Output = attache::Result<Session>> + use<> {
        let session =
            agent.resuming().map(|resuming| with_options!(self, resuming.session(id.clone(), &self.cwd)));
        async move { session.ok_or(attache::Error::Unsupported("going on with stored sessions"))?.await }
    }
}

/// Chats until the user leaves or the agent ends; the exit code.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) async fn run(setup: Setup) -> io::Result<u8> {
    if std::env::var("TERM").is_ok_and(|term| term == "dumb") {
        return Err(io::Error::other("this terminal cannot move its cursor (TERM=dumb); use `attache exec`"));
    }
    let (columns, rows) = crossterm::terminal::size()?;
    let (columns, rows) = (usable(columns.into()), usize::from(rows).max(1));
    let look = Look { colours: setup.colours, unicode: terminal::is_unicode() };
    let canvas = Canvas { columns, rows, look, cwd: setup.opener.cwd.clone(), beat: 0, unfold: false };
    let raw = Raw::enter()?;
    let hub = Hub {
        keys: terminal::keys()?,
        asks: setup.asks,
        news: setup.agent.events(),
        screens: setup.screens.clone(),
        outcomes: mpsc::channel(16),
        signals: Signals::new()?,
        screen: Screen::new(io::stdout(), look),
        dirty: true,
        drawn: Instant::now(),
        deadline: None,
        raw,
    };
    let mut editor = Editor::default();
    editor.history = History::load(setup.history);
    let state = SessionState::of(&setup.session);
    let policy = setup.opener.policy.clone();
    let mut app = App::new(canvas, setup.name, state, policy, editor);
    app.transcript.screens = setup.screens;
    for notice in setup.notices {
        app.notice(Severity::Info, notice);
    }
    let mut driver =
        Driver { hub, app, agent: setup.agent, opener: setup.opener, meter: setup.meter, time: setup.time };
    driver.opened(&setup.session);
    let ended = driver.run(setup.session).await;
    let _ = driver.finish();
    ended
}
