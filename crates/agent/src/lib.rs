//! A coding agent that speaks ACP, small enough to read in an evening.
//!
//! It is started as `attache agent`, or with [`serve`] inside of another program:
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
//! It works on Unix: where there is no client that lends files and terminals, those of `attache-host` are needed, which are Unix's.
//!
//! Reading order: `session.rs` (what a session is), `turn/` (the loop), `tools/` (what the model can do), `modes.rs` (what needs a
//! question), `ground/` (where tools act), `voice.rs` (told and written down), `history.rs` (sessions that
//! were there before), `commands/`, `instructions.rs`; then what stands on
//! its own: `mcp/`, `nes/`, `model/`, `auth/`, `store/`.
//!
//! What never happens here: a file is changed that was not kept before; something is told to the client that is not in the
//! log; a permission is decided by what a model, a file or a command says; a turn leaves a session that cannot go on.

pub mod auth;
mod commands;
mod ground;
mod history;
mod house;
pub mod http;
mod instructions;
mod mcp;
pub mod model;
mod modes;
mod nes;
mod network;
mod options;
mod project;
pub mod providers;
mod session;
pub mod store;
mod tools;
mod turn;
mod voice;

pub use modes::Mode;
pub use options::{Limits, Options, Sandbox, SandboxOptions, TrustSource};

use attache::agent::{Agent, SystemPromptSupport};
use attache::{Link, Result};

use auth::{Keys, Logins};
use house::{Bell, House};
use providers::Routes;

/// Serves one client until it leaves.
pub async fn serve(options: Options, link: Link) -> Result<()> {
    agent(options)?.serve(link).await
}

/// The agent, to be served over any number of links.
pub fn agent(mut options: Options) -> Result<Agent> {
    let keys = options.config_dir.as_deref().map_or_else(Keys::nowhere, Keys::new);
    options.models = options.models.with_keys(|provider| keys.get(provider));
    let house = House::new(options)?;
    let models = house.models.clone();
    let bell = Bell::new(&house);
    let logins = Logins::new(models.clone(), keys).telling(bell.clone());
    let (leaving, status) = (logins.clone(), logins.clone());
    let open = house.clone();
    let suggestions = nes::Suggestions::new(house.clone());
    let agent = Agent::new(move |request| open.clone().new_session(request));
    // What a prompt may hold is said before a session chooses its model; sound is taken by few.
    let agent = match house.first_model(None).is_some_and(|model| model.info().audio) {
        true => agent.audio(),
        false => agent,
    };
    Ok(history::offer(agent, &house)
        .info("attache-agent", env!("CARGO_PKG_VERSION"))
        .auth(logins)
        .logout(move || {
            let leaving = leaving.clone();
            async move { leaving.leave().await }
        })
        .auth_status(move || std::future::ready(Ok(status.status())))
        .providers(Routes::new(models).telling(bell))
        .next_edits(suggestions)
        .images()
        .embedded_context()
        .additional_directories()
        .mcp_over_http()
        .mcp_over_sse()
        .system_prompts(SystemPromptSupport::Append))
}
