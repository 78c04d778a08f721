//! `attache` alone on a terminal: starts the agent and a session, and chats.

use attache::client::Agent;
use attache_host::budget::{Budget, Meter};

use super::{Opener, Screens, Setup};
use crate::connect::{ConnectOptions, client, connect};
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::lend::Lender;
use crate::run::{self, Connection, Permits};
use crate::wire::{Lines, Wire};

/// Chats with the agent that is meant, in this directory.
pub(crate) fn chat(cx: &Cx) -> Result<()> {
    let setup = run::Setup::new(cx)?;
    let permits = Permits::new(cx)?;
    cx.warn();
    let code = run::runtime(async {
        let (chat, agent) = start(cx, setup, &permits).await?;
        let code = super::run(chat).await.context("the terminal")?;
        run::leave(&agent).await;
        Ok(code)
    })?;
    match code {
        0 => Ok(()),
        130 => Err(Failure { shown: true, ..Failure::interrupted() }),
        // What went wrong is on the screen.
        _ => Err(Failure { shown: true, ..Failure::runtime("the chat ended with an error") }),
    }
}

async fn start(cx: &Cx, setup: run::Setup, permits: &Permits) -> Result<(Setup, Agent)> {
    let roots: Vec<_> = std::iter::once(setup.cwd.clone()).chain(setup.directories.clone()).collect();
    let policy = permits.policy(&cx.paths, &setup.spec.name, &roots, setup.secrets())?;
    let screens = Screens::default();
    let (lender, questions) = Lender::showing(policy, screens.clone());
    // What a person can answer and a screen can show is offered here, and only here.
    let client = client(setup.cancel_timeout)
        .elicitation_forms()
        .elicitation_urls()
        .notices()
        .compaction()
        .plans()
        .subagents();
    let options = ConnectOptions {
        client: lender.offer(client, setup.fs, setup.terminal),
        cwd: setup.cwd.clone(),
        wire: logged(cx, &setup)?,
        on_stderr: None,
        timeout: setup.start_timeout,
        credentials: setup.credentials.clone(),
        must_authenticate: setup.must_authenticate,
    };
    match setup.spec.known {
        true => cx.output.note(format_args!("starting {}", setup.spec.name)),
        false => cx.output.note(format_args!("starting {}", setup.spec.address)),
    }
    let agent = connect(&setup.spec, options).await?;
    let connection = Connection { setup, agent: agent.clone(), lender, questions };
    let session = connection.new_session().await?;
    if let Some(model) = &connection.setup.model {
        run::set_model(&session, model).await?;
    }
    let name = agent
        .info()
        .map_or(connection.setup.spec.name.as_str(), |info| info.title.as_deref().unwrap_or(&info.name));
    let version = agent.info().map_or("", |info| info.version.as_str());
    let notices = vec![format!("{name} {version} in {}; /help shows commands and keys", cx.cwd.display())];
    let chat = Setup {
        agent: agent.clone(),
        name: name.to_owned(),
        session,
        opener: Opener {
            cwd: connection.setup.cwd.clone(),
            directories: connection.setup.directories.clone(),
            mcp_servers: connection.servers()?,
            system_prompt: connection.system_prompt(),
            meta: connection.meta()?,
            policy: connection.lender.policy(),
            login: format!("leave and run `attache auth login {}`", connection.setup.spec.name),
            opened: Box::new(|_| {}),
        },
        asks: connection.questions,
        screens,
        meter: Meter::new(Budget::new().tokens(permits.max_tokens).cost(permits.max_cost)),
        time: permits.timeout,
        colours: cx.output.color,
        history: Some(cx.paths.state.join("history")),
        notices,
    };
    Ok((chat, agent))
}

/// `--log`: the lines of the connection go to a file. There is no place for them on the screen, so `-v` shows none.
fn logged(cx: &Cx, setup: &run::Setup) -> Result<Option<Wire>> {
    let Some(file) = cx.config.text("log").map(|file| cx.cwd.join(file)) else { return Ok(None) };
    let mut log = crate::log::Log::new(false, Some(&file), setup.secrets())?;
    let wire = Wire::default();
    let tapped = wire.clone();
    tokio::spawn(async move {
        let mut lines = Lines::default();
        loop {
            wire.changed().await;
            wire.take(&mut lines);
            lines.iter().for_each(|(flow, line)| log.line(flow, line));
        }
    });
    Ok(Some(tapped))
}
