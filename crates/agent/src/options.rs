//! What an agent is started with.

use std::path::PathBuf;

use attache_host::trust::{ProjectFiles, TrustStore};

use crate::model::{Settings, Thinking};
use crate::modes::Mode;

/// What an agent is started with. Everything has a default that works, without a look at the environment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The model, such as `anthropic/claude-sonnet-4-5`, `ollama/qwen3` or `script:FILE`; the best that can be reached unless
    /// given.
    pub model: Option<String>,
    /// The providers of models: [`Settings::from_env`] for those that the environment names.
    pub models: Settings,
    /// The mode that new sessions begin in; `ask` unless given, and `plan` in a project that is not trusted.
    pub mode: Option<Mode>,
    /// How long the model may think.
    pub thinking: Thinking,
    /// The file that sessions are kept in; they are gone with the process if there is none.
    pub store: Option<PathBuf>,
    /// Where the user's own instructions and commands are: `AGENTS.md` and `commands/*.md`.
    pub config_dir: Option<PathBuf>,
    /// Where remembered answers and the audit log are; without it answers are remembered until the session ends, and nothing is
    /// logged.
    pub state_dir: Option<PathBuf>,
    /// Whether the files of projects may take effect.
    pub trust: TrustSource,
    /// How far one turn may go.
    pub limits: Limits,
    /// The sandbox of commands.
    pub sandbox: Sandbox,
}

/// Where the answer comes from whether a project is trusted.
#[derive(Debug, Clone, Default)]
pub enum TrustSource {
    /// No project is trusted that has files which would take effect.
    #[default]
    None,
    /// Every project is.
    All,
    /// The user's answers.
    Store(TrustStore),
}

impl TrustSource {
    /// Whether the files of a project may take effect.
    pub(crate) fn is_trusted(&self, project: &ProjectFiles) -> bool {
        match self {
            TrustSource::None => project.is_empty(),
            TrustSource::All => true,
            TrustSource::Store(store) => store.status(project).is_trusted(),
        }
    }
}

/// The sandbox of commands.
#[derive(Debug, Clone, Default)]
pub enum Sandbox {
    /// The program has none. Every command is asked about.
    #[default]
    Missing,
    /// The user switched it off. Commands run as the mode says.
    Off,
    /// Commands run in the strongest sandbox that works on this machine.
    On(SandboxOptions),
}

/// How commands are sandboxed.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// A program that passes [`attache_host::sandbox::WORD`] on to [`attache_host::sandbox::run`].
    pub program: PathBuf,
    /// Whether no command runs if no sandbox works. Otherwise every command is asked about.
    pub required: bool,
    /// Whether commands reach the network, through a proxy that asks about every new host.
    pub network: bool,
    /// Paths that commands do not see, beside the places where credentials usually are.
    pub hidden: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            model: None,
            models: Settings { look_around: false, ..Settings::from_vars(|_| None) },
            mode: None,
            thinking: Thinking::default(),
            store: None,
            config_dir: None,
            state_dir: None,
            trust: TrustSource::default(),
            limits: Limits::default(),
            sandbox: Sandbox::default(),
        }
    }
}

/// How far one turn may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked in one turn; then the turn ends with `max_turn_requests`.
    pub steps: u32,
    /// How many tokens the model may write in one turn; then the turn ends with `max_tokens`.
    pub output_tokens: Option<u64>,
    /// How full the model's window may be, in percent, before the conversation is compacted.
    pub compact_at: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 100, output_tokens: None, compact_at: 80 }
    }
}
