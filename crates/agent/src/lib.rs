//! A coding agent that speaks ACP: model providers, tools, permissions, MCP servers and stored
//! sessions.
//!
//! The program `attache agent` runs it; [`serve`] runs it inside of another program:
//!
//! ```no_run
//! # async fn run() -> attache::Result<()> {
//! use attache::Link;
//! use attache_agent::{Options, serve};
//!
//! let options = Options { model: Some("ollama/qwen3".to_owned()), ..Options::default() };
//! serve(options, Link::stdio()).await
//! # }
//! ```
//!
//! It runs on Unix: a client without files or terminals is replaced by those of `attache-host`,
//! which need Unix.
//!
//! Layers, from the top; each module uses only those below it:
//!
//! | module | content |
//! |---|---|
//! | `history`, `auth`, `providers`, `next_edits` | stored sessions, logins, `providers/*`, next-edit suggestions |
//! | `session` | a session as the SDK sees it |
//! | `turn` | the loop: ask the model, run its tool calls, repeat |
//! | `commands`, `mcp` | slash commands; MCP servers, whose tools join the session's |
//! | `tools` | tools, their permissions, and the network of commands |
//! | `state` | state of the agent and of a session |
//! | `workspace`, `reporter`, `instructions`, `skills` | files and commands; updates to client and log; AGENTS.md; SKILL.md |
//! | `store` | sessions in SQLite, and files for `/undo` |
//! | `options`, `modes`, `model`, `project_files`, `front_matter`, `text` | settings, model clients, walks over a project |
//!
//! To learn how a prompt is answered, read `turn/mod.rs`, `turn/steps.rs` and `tools/mod.rs`.
//!
//! Invariants: no file is changed before its old content is stored; no update reaches the client
//! before it is in the log; no permission is decided by text from a model, a file or a command;
//! every turn leaves a session that can continue.

pub mod auth;
mod blocking;
mod commands;
mod front_matter;
mod history;
// Hidden modules are public for this crate's own tests.
mod instructions;
mod lenient_json;
mod mcp;
pub mod model;
mod modes;
mod next_edits;
mod options;
mod project_files;
#[doc(hidden)]
pub mod providers;
mod reporter;
mod session;
mod skills;
mod state;
#[doc(hidden)]
pub mod store;
mod text;
mod tools;
mod turn;
mod workspace;

pub use modes::Mode;
pub use options::{Hooks, Limits, Options, Sandbox, SandboxOptions, TrustSource};

use attache::agent::{Agent, SystemPromptSupport};
use attache::{Link, Result};

use auth::{Keys, Logins};
use history::Sessions;
use providers::Routes;
use state::{AgentState, ModelChangeNotifier};

/// Serves one client until it disconnects.
pub async fn serve(options: Options, link: Link) -> Result<()> {
    agent(options)?.serve(link).await
}

/// The agent, which can serve any number of links.
pub fn agent(mut options: Options) -> Result<Agent> {
    let keys = options.config_dir.as_deref().map_or_else(Keys::none, Keys::new);
    options.models = options.models.with_keys(|provider| keys.get(provider));
    let state = AgentState::new(options)?;
    let models = state.models.clone();
    let notifier = ModelChangeNotifier::new(state.clone());
    let logins = Logins::new(models.clone(), keys).with_notifier(notifier.clone());
    let (logout, status, known) = (logins.clone(), logins.clone(), state.clone());
    let sessions = Sessions { agent: state.clone(), notifier: notifier.clone() };
    let create = sessions.clone();
    let mut agent = Agent::new(move |request| create.clone().create(request));
    // Prompt capabilities are announced before a session chooses its model; few models accept
    // audio.
    if state.first_model(None).is_some_and(|model| model.info().audio) {
        agent = agent.audio();
    }
    Ok(sessions
        .add_handlers(agent)
        .info("attache-agent", env!("CARGO_PKG_VERSION"))
        .protocol_v2()
        .auth(logins)
        .logout(move || {
            let logins = logout.clone();
            async move { logins.logout().await }
        })
        .auth_status(move || {
            let (state, status) = (known.clone(), status.clone());
            async move {
                // A server on this machine needs no login, and is asked for only once.
                state.models().await;
                Ok(status.status())
            }
        })
        .providers(Routes::new(models).with_notifier(notifier))
        .next_edits(next_edits::Suggestions::new(state))
        .images()
        .embedded_context()
        .additional_directories()
        .mcp_over_http()
        .mcp_over_sse()
        .system_prompts(SystemPromptSupport::Append))
}
