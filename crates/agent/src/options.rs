//! Options of an agent.

use std::path::PathBuf;

use attache_host::trust::{ProjectFiles, TrustStore};

use crate::model::{Settings, Thinking};
use crate::modes::Mode;

/// Options of an agent. The defaults work and do not read the environment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The model, such as `anthropic/claude-sonnet-4-5`, `ollama/qwen3` or `script:FILE`; default:
    /// the best available.
    pub model: Option<String>,
    /// The providers of models; [`Settings::from_env`] reads the environment.
    pub models: Settings,
    /// The mode of new sessions; default: `ask`, and `plan` in a project that is not trusted.
    pub mode: Option<Mode>,
    /// How long the model may think.
    pub thinking: Thinking,
    /// The file that stores sessions; without it they end with the process.
    pub store: Option<PathBuf>,
    /// The directory of the user's own `AGENTS.md` and `commands/*.md`.
    pub config_dir: Option<PathBuf>,
    /// The directory of remembered permissions and the audit log; without it permissions end with
    /// the session, and nothing is logged.
    pub state_dir: Option<PathBuf>,
    /// Whether the files of projects may take effect.
    pub trust: TrustSource,
    /// A command line that runs after edits. What it prints goes to the model if it fails.
    pub diagnostics: Option<String>,
    /// Command lines before and after tool calls and at the end of a turn.
    pub hooks: Hooks,
    /// Limits of one turn.
    pub limits: Limits,
    /// The sandbox of commands.
    pub sandbox: Sandbox,
}

/// Decides whether a project is trusted.
#[derive(Debug, Clone, Default)]
pub enum TrustSource {
    /// Only projects without files that would take effect.
    #[default]
    None,
    /// Every project.
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
    /// The program has none. Every command needs a permission.
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
    /// Whether no command runs if no sandbox works. Otherwise every command needs a permission.
    pub required: bool,
    /// Whether commands reach the network, through a proxy that asks about every new host.
    pub network: bool,
    /// Paths that commands do not see, besides the usual locations of credentials.
    pub hidden: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            model: None,
            models: Settings { discover: false, ..Settings::from_vars(|_| None) },
            mode: None,
            thinking: Thinking::default(),
            store: None,
            config_dir: None,
            state_dir: None,
            trust: TrustSource::default(),
            diagnostics: None,
            hooks: Hooks::default(),
            limits: Limits::default(),
            sandbox: Sandbox::default(),
        }
    }
}

/// Command lines that run at certain moments, with the permissions, the sandbox and the limits of
/// the tool `run`.
///
/// They get the variables `ATTACHE_HOOK` (the name of the hook), `ATTACHE_TOOL`,
/// `ATTACHE_TOOL_INPUT` (the arguments as JSON, up to 64 KiB) and `ATTACHE_TOOL_PATH` (the argument
/// `path`). Calls that only read have no hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Before a tool call. If it fails the call is not run, and the model gets its output.
    pub before_tool: Option<String>,
    /// After a tool call that succeeded. The model gets its output if it fails.
    pub after_tool: Option<String>,
    /// Before a turn ends normally. If it fails the model gets its output and continues, at most
    /// three times.
    pub turn_end: Option<String>,
}

/// Limits of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests to the model in one turn; then the turn ends with `max_turn_requests`.
    pub steps: u32,
    /// Output tokens in one turn; then the turn ends with `max_tokens`.
    pub output_tokens: Option<u64>,
    /// How full the model's window may be, in percent, before the conversation is compacted.
    pub compact_at: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 100, output_tokens: None, compact_at: 80 }
    }
}
