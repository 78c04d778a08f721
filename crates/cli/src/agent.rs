//! `attache agent`: this program as an agent, for editors and for itself.

mod login;
mod providers;

pub(crate) use login::{key_providers, save_key};

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use attache::Link;
use attache_agent::auth::Keys;
use attache_agent::model::Thinking;
use attache_agent::{Hooks, Limits, Options, Sandbox, SandboxOptions, TrustSource};
use attache_host::trust::TrustStore;

use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::Output;
use crate::runtime::runtime;

/// Serves one client on standard input and output, or only logs in to a provider of models or out
/// of it.
pub(crate) fn agent(cx: &Cx) -> Result<()> {
    if let Some(provider) = &cx.flags.own_agent.login {
        return login::login(cx, provider);
    }
    if let Some(provider) = &cx.flags.own_agent.logout {
        return login::logout(cx, provider);
    }
    if let Err(problem) = Keys::new(&cx.paths.config).check() {
        cx.output.warn(format_args!("the stored keys are not used: {problem}"));
    }
    let options = options(cx)?;
    runtime(async {
        attache_agent::serve(options, crate::log::tap(Link::stdio())).await.map_err(Failure::runtime)
    })
}

fn options(cx: &Cx) -> Result<Options> {
    let flags = &cx.flags.own_agent;
    let mut options = Options {
        model: cx.flags.model.clone(),
        models: providers::settings(cx)?,
        store: Some(cx.paths.data.join("agent.db")),
        config_dir: Some(cx.paths.config.clone()),
        state_dir: Some(cx.paths.state.clone()),
        diagnostics: cx.config.settings.diagnostics.clone(),
        hooks: Hooks {
            before_tool: cx.config.settings.hook_before_tool.clone(),
            after_tool: cx.config.settings.hook_after_tool.clone(),
            turn_end: cx.config.settings.hook_turn_end.clone(),
        },
        trust: match cx.trusts_all() {
            true => TrustSource::All,
            false => TrustSource::Store(TrustStore::new(&cx.paths.state)),
        },
        ..Options::default()
    };
    if let Some(mode) = flags.mode.as_deref() {
        options.mode = Some(mode.parse().map_err(|why| Failure::usage(format_args!("--mode: {why}")))?);
    }
    if let Some(level) = flags.thinking.as_deref() {
        options.thinking = Thinking::from_id(level).ok_or_else(|| {
            Failure::usage(format_args!("--thinking is off, low, medium or high, not `{level}`"))
        })?;
    }
    if let Some(file) = &flags.store {
        options.store = Some(std::path::absolute(file).map_err(Failure::runtime)?);
    }
    if flags.no_store {
        options.store = None;
    }
    if let Some(steps) = flags.max_steps.and_then(|steps| steps.try_into().ok()) {
        options.limits = Limits { steps, ..options.limits };
    }
    options.sandbox = match flags.no_sandbox {
        true => Sandbox::Off,
        false => Sandbox::On(SandboxOptions {
            program: std::env::current_exe().context("the path of this program")?,
            required: flags.sandbox || cx.flags.sandbox,
            network: !flags.no_network,
            hidden: cx.paths.all(),
        }),
    };
    Ok(options)
}

/// Runs a confined command, if the arguments are those of one, and returns its exit code.
pub(crate) fn sandboxed(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != attache_host::sandbox::WORD {
        return None;
    }
    Some(match attache_host::sandbox::run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            Output::plain().fail(&Failure::runtime(format_args!("sandbox: {error}")));
            ExitCode::from(match error.kind() {
                ErrorKind::NotFound => 127,
                ErrorKind::PermissionDenied => 126,
                _ => 125,
            })
        }
    })
}
