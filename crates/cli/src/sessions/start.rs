//! `sessions new` and `sessions ensure`.

use std::future::Future;

use attache::client::Session;
use serde_json::{Value, json};

use super::result;
use crate::client_services::ClientServices;
use crate::cx::Cx;
use crate::error::{DetailCode, Failure, Result};
use crate::output::Format;
use crate::run::{Connection, Permits, Restored, SessionSetup, note_session};
use crate::runtime::{runtime, until_interrupted};
use crate::session_store::{Record, Scope, Store};
use crate::time::now;
use crate::wire::Wire;

/// Starts a session.
pub(crate) fn new(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let (record, replaced) = create(cx, setup)?;
    let replaced = replaced.first().map(|old| old.id.clone());
    match cx.output.format {
        Format::Json => cx.output.json(&result(
            "session_ensured",
            &record,
            &[("created", json!(true)), ("replacedSessionId", json!(replaced))],
        )),
        Format::Quiet => cx.output.row(&record.id),
        Format::Text => match replaced {
            Some(old) => cx.output.row(format_args!("{}\t(replaced {old})", record.id)),
            None => cx.output.row(&record.id),
        },
    }
    Ok(())
}

/// Finds the session that a prompt would go to, or starts one.
pub(crate) fn ensure(cx: &Cx) -> Result<()> {
    let setup = SessionSetup::new(cx)?;
    let scope = Scope::new(&setup.spec, &cx.cwd, cx.flags.sessions.name.as_deref());
    let wanted = cx.flags.sessions.resume_session.as_deref();
    let found = Store::new(&cx.paths).route(&scope)?;
    let found = found.filter(|record| wanted.is_none_or(|id| record.session_id == id));
    let (record, created) = match found {
        Some(record) => (record, false),
        None => (create(cx, setup)?.0, true),
    };
    match cx.output.format {
        Format::Json => cx.output.json(&result("session_ensured", &record, &[("created", json!(created))])),
        Format::Quiet => cx.output.row(&record.id),
        Format::Text => {
            let how = if created { "created" } else { "existing" };
            cx.output.row(format_args!("{}\t({how})", record.id));
        }
    }
    Ok(())
}

/// Starts a session with the agent and records it.
fn create(cx: &Cx, setup: SessionSetup) -> Result<(Record, Vec<Record>)> {
    let name = cx.flags.sessions.name.as_deref();
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(Failure::usage("the session's name is empty"));
    }
    cx.warn();
    let scope = Scope::new(&setup.spec, &cx.cwd, name);
    let wanted = cx.flags.sessions.resume_session.clone();
    let mut record = runtime(async {
        with_agent(cx, setup, async |connection, wire| {
            let session = match &wanted {
                None => connection.new_session().await?,
                Some(id) => take_over(connection, id).await?,
            };
            let model = connection.setup.model.clone();
            if let Some(model) = &model {
                crate::run::set_model(&session, model).await?;
            }
            let mut record =
                Record::new(session.id().as_str(), &connection.setup.spec.identity(), &cx.cwd, &now());
            note(&mut record, connection, &session);
            record.model = model;
            record.agent_session = wire.agent_session();
            Ok(record)
        })
        .await
    })?;
    record.name = name.map(str::to_owned);
    let replaced = add(&Store::new(&cx.paths), &mut record, &scope, wanted.is_some())?;
    #[cfg(unix)]
    for old in &replaced {
        runtime(async { crate::run::close_owner(&cx.paths, &old.id).await })?;
    }
    cx.output.note(format_args!("created session {} ({})", record.label(), record.id));
    cx.output.note(format_args!("agent: {}", record.agent.as_deref().unwrap_or(&record.agent_command)));
    cx.output.note(format_args!("cwd: {}", record.cwd.display()));
    Ok((record, replaced))
}

/// Records a session. Returns the ones that it replaces.
pub(crate) fn add(store: &Store, record: &mut Record, scope: &Scope, again: bool) -> Result<Vec<Record>> {
    let same = |old: &Record| again && old.cwd == record.cwd && old.name == record.name;
    if !store.get(&record.id).is_some_and(|old| same(&old)) {
        make_unique(store, record);
    }
    store.add(record, scope, &now())
}

/// Changes the id of a new record if there is one with that id: agents that number their sessions
/// per process reuse ids.
pub(crate) fn make_unique(store: &Store, record: &mut Record) {
    if store.get(&record.id).is_some() {
        record.id = format!("{}-{:x}", record.id, crate::session_store::hash(&now()));
    }
}

/// A session that the agent has stored.
async fn take_over(connection: &Connection, id: &str) -> Result<Session> {
    match connection.find_session(id).await {
        Some(Ok((session, Restored::Resumed | Restored::Loaded))) => Ok(session),
        Some(Ok(_)) | None => Err(Failure::runtime("this agent cannot resume stored sessions")
            .detail(DetailCode::ResumeUnsupported)),
        Some(Err(error)) => {
            Err(Failure::from(error).context(format_args!("the session `{id}` cannot be resumed")))
        }
    }
}

/// The record of a new session.
pub(crate) fn note(record: &mut Record, connection: &Connection, session: &Session) {
    let setup = &connection.setup;
    record.agent = setup.spec.known.then(|| setup.spec.name.clone());
    record.directories.clone_from(&setup.directories);
    record.system_prompt.clone_from(&setup.system_prompt);
    record.allowed_tools.clone_from(&setup.allowed_tools);
    record.restorable = Some(connection.agent.resumer().is_some() || connection.agent.loader().is_some());
    note_session(record, session);
}

/// Runs work with the agent started and the session not prompted, then ends the agent.
pub(super) async fn with_agent<T>(
    cx: &Cx,
    setup: SessionSetup,
    work: impl AsyncFnOnce(&Connection, &Wire) -> Result<T>,
) -> Result<T> {
    let permits = Permits::without_turn(cx)?;
    let roots: Vec<_> = std::iter::once(setup.cwd.clone()).chain(setup.directories.clone()).collect();
    let policy = permits.policy(&cx.paths, &setup.spec, &roots, setup.secrets())?;
    let (services, questions) = ClientServices::new(policy, setup.command_sandbox(&cx.paths));
    let wire = Wire::default();
    let mut log = crate::run::wire_log(cx.output.verbose, &setup);
    let stderr = crate::run::show_stderr(cx.output.verbose, &setup);
    let working = async {
        let connection = Connection::start(setup, services, questions, wire.clone(), stderr).await?;
        let result = work(&connection, &wire).await;
        crate::run::leave(&connection.agent).await;
        // After its end, so that all it has printed is there.
        result.map_err(|failure| connection.with_cause(failure))
    };
    let deadline = permits.timeout;
    let late = async {
        match deadline {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = until_interrupted(logged(&mut log, &wire, working)) => result,
        () = late => Err(crate::run::timed_out(deadline.unwrap_or_default())),
    }
}

/// Logs the lines that pass meanwhile.
async fn logged<T>(log: &mut crate::log::WireLog, wire: &Wire, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut lines = crate::wire::Lines::default();
    loop {
        let done = tokio::select! {
            biased;
            done = &mut work => Some(done),
            () = wire.changed() => None,
        };
        wire.take(&mut lines);
        lines.iter().for_each(|(flow, line)| log.line(flow, line));
        if let Some(done) = done {
            return done;
        }
    }
}

/// A record as others print it.
pub(super) fn as_json(record: &Record) -> Value {
    record.to_json()
}
