//! The choice of an agent on the first run, and the ways to a model if our own agent has none: a
//! clear failure for scripts, a few choices for people.

use attache::client::AgentHandle;
use attache::wire::v1::AuthState;
use attache_term::picker::Row;
use attache_term::render::style::Line;

use crate::agents::{AgentSpec, BUILTIN, OWN, builtin, on_path};
use crate::auth::ask;
use crate::config::{Source, keys, write_setting};
use crate::cx::Cx;
use crate::error::{DetailCode, Failure, Result};

/// Whether the agent is ours and has no model to work with.
pub(crate) async fn is_missing(spec: &AgentSpec, agent: &AgentHandle) -> bool {
    let Some(status) = agent.auth_status().filter(|_| spec.is_own()) else { return false };
    status.get().await.is_ok_and(|status| status.state == AuthState::Unauthenticated)
}

/// The failure, with the choices to a model.
pub(crate) fn failure() -> Failure {
    let failure =
        Failure::runtime("no model: no API key is set, and no model server answers on this machine")
            .detail(DetailCode::NoModel)
            .hint(
                "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or save a key: attache auth login",
            )
            .hint("or start a model server on this machine: ollama serve, LM Studio, llama-server or vLLM");
    match installed().as_slice() {
        [] => failure,
        [first, ..] => failure.hint(format!("or use another agent that is installed here: attache {first}")),
    }
    .hint("or see everything work without a model: attache demo")
}

/// Fails if our own agent has no model.
pub(crate) async fn require(spec: &AgentSpec, agent: &AgentHandle) -> Result<()> {
    if is_missing(spec, agent).await { Err(failure()) } else { Ok(()) }
}

/// Other agents whose programs are installed.
fn installed() -> Vec<&'static str> {
    let others = BUILTIN.iter().filter(|agent| agent.name != OWN);
    let found = others.filter(|agent| {
        agent.spec().program().is_some_and(|program| program != "npx" && on_path(program).is_some())
    });
    found.map(|agent| agent.name).take(5).collect()
}

/// Whether no agent was chosen yet: none is named here, and no setting names a default one.
pub(crate) fn is_undecided(cx: &Cx, spec: &AgentSpec) -> bool {
    let is_named = cx.args.agent.is_some() || cx.flags.agent.is_some() || cx.flags.prompt.session.is_some();
    spec.is_own() && !is_named && matches!(cx.config.source(&keys::DEFAULT_AGENT), Source::Default)
}

/// Asks on the first run which of the agents that work here is the default. Does not ask if there
/// is only our own.
pub(crate) async fn pick_default(cx: &Cx, agent: &AgentHandle) -> Result<Picked> {
    let others = installed();
    if others.is_empty() {
        return Ok(Picked::Continue);
    }
    let own = row(OWN, format!("Attaché's own agent, with {}", model_source(agent).await), OWN);
    let installed = others.iter().map(|name| {
        let title = builtin(name).map_or("", |agent| agent.title);
        row(name, format!("{title}, which is installed"), *name)
    });
    let rows = std::iter::once(own).chain(installed).collect();
    let title = "Which agent do you want to talk to?";
    let Some(name) = ask::pick(title, &[], rows).await? else { return Ok(Picked::Leave) };
    save_default(cx, name)?;
    Ok(if name == OWN { Picked::Continue } else { Picked::Instead(vec![name.to_owned()]) })
}

/// The source of the model of our own agent, for people.
async fn model_source(agent: &AgentHandle) -> String {
    let status = match agent.auth_status() {
        Some(status) => status.get().await.ok(),
        None => None,
    };
    let accounts = status.and_then(|status| status.accounts).unwrap_or_default();
    let labels: Vec<&str> = accounts.iter().map(|account| account.label.as_str()).collect();
    if labels.is_empty() { "a model server on this machine".to_owned() } else { labels.join(", ") }
}

fn save_default(cx: &Cx, name: &str) -> Result<()> {
    write_setting(&cx.config.user_file, keys::DEFAULT_AGENT.name, &format!("{name:?}"), false)?;
    cx.output
        .tell(format_args!("{name} is the default now; another one: attache config set default_agent NAME"));
    Ok(())
}

/// What the user wants to do without a model.
pub(crate) enum Picked {
    /// There may be a model now.
    Retry,
    /// Open the chat anyway.
    Continue,
    /// Run this program again with these arguments.
    Instead(Vec<String>),
    Leave,
}

#[derive(Clone)]
enum SetupChoice {
    Key,
    Server,
    Agent(&'static str),
    Demo,
    Continue,
}

fn row<T>(label: &str, about: impl Into<String>, value: T) -> Row<T> {
    Row { label: label.to_owned(), about: about.into(), current: false, value }
}

/// Asks on the terminal how to get to a model.
pub(crate) async fn pick(cx: &Cx, spec: &AgentSpec) -> Result<Picked> {
    let out = &cx.output;
    let mut rows = vec![
        row("Enter an API key", "of Anthropic, OpenAI, Google and others", SetupChoice::Key),
        row("Use a model server on this machine", "Ollama, LM Studio, llama.cpp, vLLM", SetupChoice::Server),
    ];
    rows.extend(installed().into_iter().map(|name| {
        row(&format!("Use another agent: {name}"), "which is installed", SetupChoice::Agent(name))
    }));
    rows.push(row("Watch the demo", "it needs no model", SetupChoice::Demo));
    rows.push(row("Open the chat anyway", "", SetupChoice::Continue));
    let intro = [Line::from("No model yet: no API key is set, and no model server answers on this machine.")];
    let Some(chosen) = ask::pick("What now?", &intro, rows).await? else { return Ok(Picked::Leave) };
    match chosen {
        SetupChoice::Key => save_key(cx).await,
        SetupChoice::Server => {
            out.tell("Start the server (for example: ollama serve), then press Enter.");
            Ok(match ask::line("").await? {
                Some(_) => Picked::Retry,
                None => Picked::Leave,
            })
        }
        SetupChoice::Agent(name) => {
            if is_undecided(cx, spec) {
                save_default(cx, name)?;
            }
            Ok(Picked::Instead(vec![name.to_owned()]))
        }
        SetupChoice::Demo => Ok(Picked::Instead(vec!["demo".to_owned()])),
        SetupChoice::Continue => Ok(Picked::Continue),
    }
}

#[cfg(unix)]
async fn save_key(cx: &Cx) -> Result<Picked> {
    let providers = crate::agent::key_providers(cx)?;
    let rows = providers.iter().map(|provider| row(&provider.name, "", provider)).collect();
    let Some(chosen) = ask::pick("Key for", &[], rows).await? else { return Ok(Picked::Retry) };
    crate::agent::save_key(cx, chosen).await?;
    Ok(Picked::Retry)
}

#[cfg(not(unix))]
async fn save_key(_: &Cx) -> Result<Picked> {
    Ok(Picked::Continue)
}
