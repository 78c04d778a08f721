//! `attache`: drive any ACP agent from a terminal, for people and for scripts.
//!
//! Layers, from the bottom; arrows point down only (`cargo xtask tidy` checks it):
//!
//! - `error`, `paths`, `time`, `runtime`, `log`, `wire`; `output` prints through `attache-term`
//! - `args` reads the command line, `agents` knows agents, `credentials` keeps secrets,
//!   `session_store` conversations
//! - `config` merges settings from files, environment and flags; `cx` is the context of a command
//! - `connect` starts an agent, `remote` reaches one at a URL; `client_services` provides files and
//!   terminals to it; `forms` asks the user; `checkpoints` undoes changes of files; `mcp_server`
//!   provides the same to agents without `fs/*` and `terminal/*`
//! - `auth`, `trust`, `model_setup`, `run` (prompts), `sessions` and `chat` are what users call
//!   most; `commands` has the others
//!
//! What never happens here: foreign text reaches a terminal with its control characters; a prompt
//! goes to a session that was not asked for; a project's settings allow more than the user's; a
//! secret is printed; an agent is left running without a limit that the user can see.

#![expect(clippy::result_large_err, reason = "failures end the program; their size does not matter")]

#[cfg(unix)]
mod agent;
mod agents;
mod args;
mod auth;
mod chat;
mod checkpoints;
mod client_services;
mod commands;
mod config;
mod connect;
mod credentials;
mod cx;
mod error;
mod forms;
mod lenient;
mod log;
#[cfg(unix)]
mod mcp_server;
mod model_setup;
mod output;
mod paths;
mod remote;
mod run;
mod runtime;
mod session_store;
mod sessions;
mod time;
mod tool_call;
mod trust;
mod versions;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use args::{Command, Parsed};
use cx::Cx;
use error::{Context as _, Failure, Kind, Result};
use output::Output;
use paths::Paths;

/// The size at which the log of chats is replaced.
const LARGEST_CHAT_LOG: u64 = 8 << 20;

fn main() -> ExitCode {
    #[cfg(unix)]
    if let Some(code) = agent::sandboxed(std::env::args_os().skip(1)) {
        return code;
    }
    attache_conn::process::adopt_orphans();
    attache_conn::process::return_freed_memory();
    let paths = Paths::from_env();
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(code) = hidden(&paths, &arguments) {
        return code;
    }
    let known = known_agents(&paths);
    let (mut line, mut flags) = match args::parse(arguments, &known) {
        Ok(Parsed::Run(line, flags)) => (line, flags),
        Ok(Parsed::Help(commands)) => {
            help(&commands);
            return done(&Output::plain());
        }
        Ok(Parsed::Version) => {
            Output::plain().line(format_args!("attache {}", env!("CARGO_PKG_VERSION")));
            return done(&Output::plain());
        }
        Err(failure) => return failed(&failure, &early_output()),
    };
    match chat::choose(&paths, &mut line, &mut flags) {
        Ok(true) => {}
        Ok(false) => return ExitCode::SUCCESS,
        Err(failure) => return failed(&failure, &early_output()),
    }
    let mut cx = match Cx::new(paths, line, flags) {
        Ok(cx) => cx,
        Err((failure, output)) => return failed(&failure, &output),
    };
    match start_log(&cx).and_then(|()| trust::ask_first(&mut cx)).and_then(|()| command(&cx)) {
        Ok(()) => done(&cx.output),
        Err(failure) => failed(&failure, &cx.output),
    }
}

/// Ends the program, with a failure if the output could not be written.
fn done(output: &Output) -> ExitCode {
    match output::write_error() {
        Some(failure) => failed(&failure, output),
        None => ExitCode::SUCCESS,
    }
}

/// Starts the log. A chat needs its terminal, so it logs to a file.
fn start_log(cx: &Cx) -> Result<()> {
    let file = cx.config.settings.log.as_deref();
    if !is_chat(cx) || file.is_some_and(|file| file != "-") {
        let path = file.map(|file| if file == "-" { PathBuf::from(file) } else { cx.cwd.join(file) });
        return log::init(path.as_deref());
    }
    if file.is_none() && !cx.output.verbose && !log::is_requested() {
        return Ok(());
    }
    let path = cx.paths.logs().join("chat.log");
    paths::private_dir(&cx.paths.logs()).context("the log")?;
    if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > LARGEST_CHAT_LOG) {
        let _ = std::fs::remove_file(&path);
    }
    log::init(Some(&path))
}

/// Whether the command is a chat: `chat`, or no command, and a terminal on both sides. A prompt for
/// scripts is not one: it has a session's name or a file, or asks for another format.
fn is_chat(cx: &Cx) -> bool {
    let flags = &cx.flags.prompt;
    let scripted = flags.file.is_some()
        || flags.no_wait
        || flags.answers.is_some()
        || (!cx.args.words.is_empty()
            && (flags.session.is_some() || cx.output.format != output::Format::Text));
    match cx.args.path().as_slice() {
        ["chat"] => true,
        [] => !scripted && !run::is_piped() && cx.output.stdout.terminal,
        _ => false,
    }
}

/// One line per command.
fn command(cx: &Cx) -> Result<()> {
    match cx.args.path().as_slice() {
        [] => bare(cx),
        ["chat"] if run::is_piped() || !cx.output.stdout.terminal => {
            Err(Failure::usage("the chat needs a terminal").hint("in scripts: attache exec"))
        }
        ["chat"] => chat::chat(cx),
        ["prompt"] => run::prompt(cx),
        ["exec"] => run::exec(cx),
        ["compare"] => run::compare(cx),
        ["cancel"] => run::cancel(cx),
        ["set-mode"] => run::set_mode(cx),
        ["set"] => run::set(cx),
        ["status"] => run::status(cx),
        ["sessions", "list"] => sessions::list(cx),
        ["sessions", "new"] => sessions::new(cx),
        ["sessions", "ensure"] => sessions::ensure(cx),
        ["sessions", "show"] => sessions::show(cx),
        ["sessions", "history"] => sessions::history(cx),
        ["sessions", "read"] => sessions::read(cx),
        ["sessions", "watch"] => sessions::watch(cx),
        ["sessions", "export"] => sessions::export(cx),
        ["sessions", "import"] => sessions::import(cx),
        ["sessions", "close"] => sessions::close(cx),
        ["sessions", "delete"] => sessions::delete(cx),
        ["sessions", "fork"] => sessions::fork(cx),
        ["sessions", "prune"] => sessions::prune(cx),
        ["permissions", "list"] => commands::permissions::list(cx),
        ["permissions", "revoke"] => commands::permissions::revoke(cx),
        ["permissions", "clear"] => commands::permissions::clear(cx),
        #[cfg(unix)]
        ["agent"] => agent::agent(cx),
        #[cfg(unix)]
        ["demo"] => commands::demo::demo(cx),
        ["agents"] => commands::agents::list(cx),
        ["config", "show"] => commands::config::show(cx),
        ["config", "init"] => commands::config::init(cx),
        ["config", "set"] => commands::config::set(cx),
        ["config", "get"] => commands::config::get(cx),
        ["config", "unset"] => commands::config::unset(cx),
        ["config", "edit"] => commands::config::edit(cx),
        ["config", "path"] => commands::config::path(cx),
        ["trust", "list"] => trust::list(cx),
        ["trust", "add"] => trust::add(cx),
        ["trust", "remove"] => trust::remove(cx),
        ["record"] => commands::recordings::record(cx),
        ["replay"] => commands::recordings::replay(cx),
        ["trace"] => commands::recordings::trace(cx),
        #[cfg(unix)]
        ["mcp-server"] => commands::mcp_server::mcp_server(cx),
        ["serve"] => commands::serve::serve(cx),
        ["hub"] => commands::hub::hub(cx),
        ["hub", "top"] => commands::top::top(cx),
        ["token", "new"] => commands::token::new(cx),
        ["token", "list"] => commands::token::list(cx),
        ["token", "revoke"] => commands::token::revoke(cx),
        ["connect"] => commands::serve::connect(cx),
        ["doctor"] => commands::doctor::doctor(cx),
        #[cfg(unix)]
        ["check", "agent"] => commands::check::agent(cx),
        #[cfg(unix)]
        ["check", "server"] => commands::check::server(cx),
        #[cfg(unix)]
        ["check", "client"] => commands::check::client(cx),
        #[cfg(unix)]
        ["check", "trace"] => commands::check::trace(cx),
        ["auth", "login"] => auth::login(cx),
        ["auth", "logout"] => auth::logout(cx),
        ["auth", "status"] => auth::status(cx),
        ["import"] => commands::import::import(cx),
        ["registry", "list" | "search"] => commands::registry::list(cx),
        ["registry", "install"] => commands::registry::install(cx),
        ["registry", "update"] => commands::registry::update(cx),
        ["registry", "remove"] => commands::registry::remove(cx),
        ["completions"] => {
            cx.output.page(&args::completions(cx.args.word(0).unwrap_or("bash")));
            Ok(())
        }
        ["man"] => {
            cx.output.page(&args::man(config::ENVIRONMENT, config::FILES));
            Ok(())
        }
        other => Err(args::incomplete(other)),
    }
}

/// Runs without a command: a terminal starts a chat, with the words as its first prompt. Without
/// one, words are a prompt, and piped text is a prompt for the open session or else for none.
fn bare(cx: &Cx) -> Result<()> {
    if is_chat(cx) {
        return chat::chat(cx);
    }
    let has_prompt = !cx.args.words.is_empty() || cx.flags.prompt.file.is_some();
    if has_prompt || cx.flags.prompt.session.is_some() {
        return run::prompt(cx);
    }
    if run::is_piped() {
        let open = run::find(cx, &run::SessionSetup::new(cx)?).is_ok();
        return if open { run::prompt(cx) } else { run::exec(cx) };
    }
    help(&cx.args.commands);
    Ok(())
}

/// Internal commands of the program and its completions.
fn hidden(paths: &Paths, arguments: &[String]) -> Option<ExitCode> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        #[cfg(unix)]
        ["__owner"] => run::run_owner(paths),
        #[cfg(unix)]
        ["check-bridge", socket] => commands::check::bridge(socket),
        #[cfg(unix)]
        ["check-bridge", socket, words @ ..] => commands::check::login(socket, words),
        ["__complete", "agents"] => {
            known_agents(paths).iter().for_each(|name| Output::plain().row(name));
            Ok(())
        }
        ["__complete", "sessions"] => session_store::names_here(paths).map(|names| {
            names.iter().for_each(|name| Output::plain().row(name));
        }),
        _ => return None,
    };
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure, &Output::plain()),
    })
}

/// The names of agents, for parsing. A settings file that cannot be read is reported later.
fn known_agents(paths: &Paths) -> Vec<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let config = config::load(paths, &here, None).unwrap_or_default();
    let builtin = agents::BUILTIN.iter().flat_map(|agent| agent.also.iter().copied().chain([agent.name]));
    config.agents.keys().cloned().chain(builtin.map(str::to_owned)).collect()
}

fn help(commands: &[&'static Command]) {
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(100);
    Output::plain().page(&args::help(commands, width));
}

/// The output for a failure to parse the command line.
fn early_output() -> Output {
    let mut output = Output::plain();
    output.find_colors(false);
    let arguments: Vec<String> = std::env::args().collect();
    let json = |pair: &[String]| matches!(pair, [flag, value] if flag == "--format" && value == "json");
    if arguments.windows(2).any(json)
        || arguments.iter().any(|arg| arg == "--format=json" || arg == "--json-strict")
    {
        output.format = output::Format::Json;
    }
    output
}

fn failed(failure: &Failure, output: &Output) -> ExitCode {
    debug_assert!(failure.kind != Kind::Usage || !failure.message.is_empty());
    output.fail(failure);
    ExitCode::from(failure.kind.exit_code())
}
