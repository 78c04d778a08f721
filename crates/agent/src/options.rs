//! What an agent is started with.

use std::path::PathBuf;

use crate::model::Thinking;
use crate::modes::Mode;

/// What an agent is started with. Everything has a default that works.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The model, such as `anthropic/claude-sonnet-4-5`, `ollama/qwen3` or `script:FILE`; the best that can be reached unless
    /// given.
    pub model: Option<String>,
    /// The mode that new sessions begin in.
    pub mode: Mode,
    /// How long the model may think.
    pub thinking: Thinking,
    /// The file that sessions are kept in; they are gone with the process if there is none.
    pub store: Option<PathBuf>,
    /// Where the user's own instructions and commands are: `AGENTS.md` and `commands/*.md`.
    pub config_dir: Option<PathBuf>,
    /// How far one turn may go.
    pub limits: Limits,
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
