//! `attache exec`: one prompt, nothing kept.

use std::future::Future;
use std::time::{Duration, Instant};

use attache::ContentBlock;
use attache::client::Session;
use tokio::sync::watch;

use super::input;
use super::live::Connection;
use super::permits::Permits;
use super::renderer::{Local, Renderer, View};
use super::settings::{set_model, set_option};
use super::setup::SessionSetup;
use super::spinner::Spinner;
use super::turn::{Ended, Stop, StopCause, Task, late, run, stopped, timed_out};
use crate::client_services::ClientServices;
use crate::config::keys;
use crate::connect::OnStderr;
use crate::cx::Cx;
use crate::error::{DetailCode, Failure, Result};
use crate::log::WireLog;
use crate::output::{Mark, Output};
use crate::runtime::{Interrupts, runtime};
use crate::wire::Wire;
use attache_host::policy::Span;

/// Sends one prompt without keeping the session.
pub(crate) fn exec(cx: &Cx) -> Result<()> {
    may_exec(cx)?;
    let setup = SessionSetup::new(cx)?;
    let permits = Permits::new(cx)?;
    let options = options(cx)?;
    let prompt = input::prompt(cx)?;
    cx.warn();
    runtime(async {
        let log = wire_log(cx.output.verbose, &setup);
        let mut renderer = Renderer::Local(Box::new(Local::new(&cx.output, log)));
        let result =
            stoppable(|stop| one_shot(cx, setup, permits, options, prompt, &mut renderer, stop)).await;
        end(&mut renderer, result).await
    })
}

/// Fails if prompts without a session are disabled.
pub(super) fn may_exec(cx: &Cx) -> Result<()> {
    if cx.config.settings.exec {
        return Ok(());
    }
    let source = cx.config.source(&keys::EXEC);
    Err(Failure::runtime(format_args!("prompts without a session are disabled (`exec = false`, {source})"))
        .detail(DetailCode::ExecDisabled)
        .hint("use a session: attache sessions new, then attache prompt"))
}

/// The log of the wire for a command. Masks the secrets of its agent.
pub(crate) fn wire_log(verbose: bool, setup: &SessionSetup) -> WireLog {
    crate::log::mask_values(setup.secrets());
    WireLog::new(verbose, setup.secrets())
}

/// Shows the end of a command.
pub(super) async fn end<T>(renderer: &mut Renderer, result: Result<T>) -> Result<()> {
    let Renderer::Local(local) = renderer else { return result.map(|_| ()) };
    match result {
        Ok(_) => local.finish().await.map_err(|error| Failure::write_error(&error)),
        // A failure of the output cannot be written to it.
        Err(failure) if failure.is_write_error() => Err(failure),
        Err(mut failure) => {
            local.failure(&mut failure).await;
            Err(failure)
        }
    }
}

/// Runs work that a signal stops. A second signal ends the program without waiting.
pub(super) async fn stoppable<F: Future<Output = Result<Ended>>>(
    work: impl FnOnce(Stop) -> F,
) -> Result<Ended> {
    let (tell, stop) = watch::channel(None);
    let watched = async {
        let mut interrupts = Interrupts::new();
        interrupts.next().await;
        let _ = tell.send(Some(StopCause::Interrupted));
        interrupts.next().await;
    };
    tokio::select! {
        result = work(stop) => result,
        () = watched => Err(Failure::interrupted()),
    }
}

/// `KEY=VALUE` of `--config-option`.
fn options(cx: &Cx) -> Result<Vec<(String, String)>> {
    let read = |assignment: &str| {
        let pair = assignment
            .split_once('=')
            .filter(|(key, value)| !key.trim().is_empty() && !value.trim().is_empty());
        let (key, value) = pair.ok_or_else(|| {
            Failure::usage(format_args!("--config-option is KEY=VALUE, not `{assignment}`"))
        })?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    };
    cx.flags.prompt.config_options.iter().map(String::as_str).map(read).collect()
}

pub(super) async fn one_shot(
    cx: &Cx,
    setup: SessionSetup,
    permits: Permits,
    options: Vec<(String, String)>,
    prompt: Vec<ContentBlock>,
    renderer: &mut Renderer,
    mut stop: Stop,
) -> Result<Ended> {
    let stop = &mut stop;
    let limit = permits.timeout.unwrap_or_default();
    let deadline = permits.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let wire = Wire::default();
    let mut view = View::new(renderer, None, wire.clone());
    let roots: Vec<_> = std::iter::once(setup.cwd.clone()).chain(setup.directories.clone()).collect();
    let policy = permits.policy(&cx.paths, &setup.spec, &roots, setup.secrets())?.span(Span::Command);
    let (services, guard) = ClientServices::new(policy, setup.command_sandbox(&cx.paths));
    let stderr = show_stderr(cx.output.verbose, &setup);
    let (model, name) = (setup.model.clone(), setup.spec.name.clone());
    let starting = async {
        let connection = Connection::start(setup, services, guard, wire, stderr).await?;
        match session(&connection, model.as_deref(), &options).await {
            Ok(session) => Ok((connection, session)),
            Err(failure) => {
                leave(&connection.agent).await;
                // After its end, so that all it has printed is there.
                Err(connection.with_cause(failure))
            }
        }
    };
    let spinner = Spinner::run(Spinner::new(&cx.output, format!("starting {name}")));
    let started = view.during(async {
        tokio::select! {
            started = starting => started,
            why = stopped(stop) => Err(stopped_early(why)),
            () = late(deadline) => Err(timed_out(limit)),
            () = spinner => Err(Failure::interrupted()),
        }
    });
    let (mut connection, mut session) = started.await?;
    view.renderer.wait_for(Spinner::new(&cx.output, format!("waiting for {}", connection.setup.spec.name)));
    let policy = connection.services.policy();
    let task = Task {
        agent: &connection.setup.spec.name,
        session: &mut session,
        guard: &mut connection.guard,
        policy: &policy,
        permits: &permits,
        blocks: &prompt,
        deadline,
    };
    let result = run(task, &mut view, stop).await;
    drop(session);
    view.during(leave(&connection.agent)).await;
    // After its end, so that all it has printed is there.
    result.map_err(|failure| connection.with_cause(failure))
}

/// A session as it was asked for.
async fn session(
    connection: &Connection,
    model: Option<&str>,
    options: &[(String, String)],
) -> Result<Session> {
    if model.is_none() {
        crate::model_setup::require(&connection.setup.spec, &connection.agent).await?;
    }
    let session = connection.new_session().await?;
    if let Some(model) = model
        && let Err(failure) = set_model(&session, model).await
    {
        // An agent without any model offers none to choose from; that is the cause then.
        crate::model_setup::require(&connection.setup.spec, &connection.agent).await?;
        return Err(failure);
    }
    for (key, value) in options {
        set_option(&session, key, value).await?;
    }
    Ok(session)
}

/// An agent is given time to leave by itself. One that takes longer is not waited for:
/// its guardian ends it.
// STDIO-10
pub(crate) async fn leave(agent: &attache::client::AgentHandle) {
    let _ = tokio::time::timeout(Duration::from_secs(1), agent.shutdown()).await;
}

/// The failure of a prompt that was stopped before its turn began.
pub(super) fn stopped_early(why: StopCause) -> Failure {
    match why {
        StopCause::Interrupted => Failure::interrupted(),
        StopCause::Cancelled => Failure::runtime("cancelled before the prompt was sent"),
    }
}

/// Shows the stderr of the agent with `-v`, without secrets. Errors quote its end in any case.
pub(crate) fn show_stderr(verbose: bool, setup: &SessionSetup) -> Option<OnStderr> {
    let mask = attache_host::secrets::Mask::from_env().with(setup.secrets());
    verbose.then(|| -> OnStderr {
        Box::new(move |line| {
            Output::plain().tell_line(&Mark::AgentStderr.then(mask.text(line)));
        })
    })
}
