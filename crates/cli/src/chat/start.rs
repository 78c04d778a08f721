//! `attache` on a terminal: starts the agent and a session, then the chat.

use std::path::PathBuf;
use std::rc::Rc;

use attache::client::Session;
use attache_host::budget::{Budget, Meter};
use attache_host::policy::Memory;
use attache_host::secrets::Mask;
use attache_term::device;
use tokio::sync::mpsc;

use super::actions::login_rows;
use super::app::Pick;
use super::attention::Attention;
use super::drive::InitialSession;
use super::saved_session::SavedSession;
use super::traffic::Traffic;
use super::{ChatParameters, Opener};
use crate::auth::ask;
use crate::checkpoints::Checkpoints;
use crate::client_services::{ClientServices, TerminalOutputs};
use crate::connect::{OnStderr, client, connect};
use crate::cx::Cx;
use crate::error::{Context as _, DetailCode, Failure, Result};
use crate::model_setup::Picked;
use crate::paths::repository;
use crate::run::{self, Connection, Permits, Restored, SessionLock, StderrTail};
use crate::runtime::runtime;
use crate::session_store::{Record, Recorder, Scope, Store, short};
use crate::wire::Wire;
use attache_term::picker::Row;
use attache_term::render::style::Line;

/// Chats with the chosen agent in this directory, in a new session or in a named one.
pub(crate) fn chat(cx: &Cx) -> Result<()> {
    if !device::can_move_cursor() {
        return Err(Failure::runtime("this terminal (TERM=dumb) cannot show the chat; use attache exec"));
    }
    let setup = run::SessionSetup::new(cx)?;
    let permits = Permits::new(cx)?;
    cx.warn();
    let ended = runtime(async {
        Ok(match start(cx, setup, &permits).await? {
            Started::Chat(chat) => {
                let super::Left { code, record, successor } = super::run(*chat).await?;
                if let Some(args) = successor {
                    return Ok(Ended::Instead(args));
                }
                if let Some(record) = record {
                    let id = record.name.as_deref().unwrap_or_else(|| short(&record.id));
                    cx.output.note(format_args!("resume this conversation: attache -c, or attache -r {id}"));
                }
                Ended::Code(code)
            }
            Started::Instead(args) => Ended::Instead(args),
            Started::Left => Ended::Code(0),
        })
    })?;
    let code = match ended {
        Ended::Code(code) => code,
        Ended::Instead(args) => return become_other(&args),
    };
    match code {
        0 => Ok(()),
        130 => Err(Failure { shown: true, ..Failure::interrupted() }),
        // The error is on the screen.
        _ => Err(Failure { shown: true, ..Failure::runtime("the chat ended with an error") }),
    }
}

/// The result of starting a chat.
enum Started<'a> {
    Chat(Box<ChatParameters<'a>>),
    /// The user chose another command.
    Instead(Vec<String>),
    Left,
}

enum Ended {
    Code(u8),
    Instead(Vec<String>),
}

/// Replaces this process by the program with other arguments.
fn become_other(args: &[String]) -> Result<()> {
    use std::os::unix::process::CommandExt as _;
    let program = std::env::current_exe().context("the path of this program")?;
    Err(Failure::runtime(std::process::Command::new(program).args(args).exec()))
}

/// Starts the agent, and restarts it.
pub(crate) struct Starter<'a> {
    cx: &'a Cx,
    setup: run::SessionSetup,
    permits: &'a Permits,
    terminal_outputs: TerminalOutputs,
    wire: Option<Wire>,
    stderr: Option<mpsc::Sender<String>>,
    pub(crate) mask: Mask,
    /// `None` if the user does not want any.
    pub(crate) checkpoints: Option<Checkpoints>,
}

impl Starter<'_> {
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let setup = self.setup.clone();
        let roots: Vec<_> = std::iter::once(setup.cwd.clone()).chain(setup.directories.clone()).collect();
        let policy = self.permits.policy(&self.cx.paths, &setup.spec, &roots, setup.secrets())?;
        let (services, guard) = ClientServices::with_terminal_outputs(
            policy,
            self.terminal_outputs.clone(),
            setup.command_sandbox(&self.cx.paths),
        );
        let services = services.noted_in(self.checkpoints.clone());
        // Only the chat can show these to a person, so only the chat offers them.
        let client = client(setup.cancel_timeout)
            .elicitation_forms()
            .elicitation_urls()
            .notices()
            .compaction()
            .plans()
            .subagents();
        let on_stderr = self.stderr.clone().map(|lines| -> OnStderr {
            // Not awaited: lines that the screen is too slow for are in the log.
            Box::new(move |line| drop(lines.try_send(line.to_owned())))
        });
        let stderr = StderrTail::new(self.mask.clone());
        let client = services.install(client, setup.fs, setup.terminal);
        let options = setup.connect_options(client, self.wire.clone(), stderr.listen(on_stderr));
        let agent = connect(&setup.spec, options).await?;
        Connection::new(setup, agent, services, guard, stderr)
    }

    /// Records a conversation without a name. It is closed for `attache prompt`, which has a
    /// session of its own.
    pub(crate) async fn save(
        &self,
        connection: &Connection,
        session: &Session,
        title: &str,
    ) -> Result<(SavedSession, Option<Recorder>)> {
        let store = Store::new(&self.cx.paths);
        let spec = &connection.setup.spec;
        let (id, cwd) = (session.id().as_str(), &connection.setup.cwd);
        let known = store.all()?.into_iter().find(|record| {
            record.session_id == id && record.cwd == *cwd && record.agent_command == spec.identity()
        });
        // An agent that numbers its sessions may use the id of an older one, which it cannot
        // resume.
        let known = known.filter(|record| record.restorable == Some(true));
        let record = match known {
            Some(record) => record,
            None => {
                let now = crate::time::now();
                let mut record = Record::new(id, &spec.identity(), cwd, &now);
                crate::sessions::note(&mut record, connection, session);
                record.model.clone_from(&connection.setup.model);
                record.title.get_or_insert_with(|| title.to_owned());
                record.closed_at = Some(now);
                crate::sessions::make_unique(&store, &mut record);
                store.keep(&record)?;
                record
            }
        };
        let held = SessionLock::acquire(&self.cx.paths, &record).await?;
        let recorder = store.history(&record.id).record(self.mask.clone()).ok();
        Ok((SavedSession::new(store, &record, held), recorder))
    }

    fn memory(&self) -> Result<(PathBuf, Memory)> {
        let cwd = &self.setup.cwd;
        let project = repository(cwd).unwrap_or(cwd).to_owned();
        let memory = Memory::open(&self.cx.paths.state, &project).context("what is always allowed")?;
        Ok((project, memory))
    }

    /// Returns the remembered answers of the project.
    pub(crate) fn remembered(&self) -> Result<Vec<Row<Pick>>> {
        let (project, memory) = self.memory()?;
        let now = std::time::SystemTime::now();
        let row = |answer: attache_host::policy::Remembered| {
            let effect = if answer.allow { "always" } else { "never" };
            Row {
                label: format!("{effect}: {}", answer.scope.describe(&project)),
                about: format!("{}  {}", answer.agent, crate::time::ago(&answer.since, now)),
                current: false,
                value: Pick::Revoke(answer.id),
            }
        };
        Ok(memory.list().into_iter().map(row).collect())
    }

    /// Returns the conversations with all agents, the last one first.
    pub(crate) fn conversations(&self) -> Result<Vec<Record>> {
        let mut records = Store::new(&self.cx.paths).all()?;
        records.retain(|record| record.turns > 0);
        Ok(records)
    }

    /// The directory of pasted pictures.
    pub(crate) fn pastes(&self) -> PathBuf {
        self.cx.paths.state.join("pastes")
    }

    /// Revokes a remembered answer.
    pub(crate) fn revoke(&self, number: u64) -> Result<()> {
        self.memory()?.1.revoke(number).context("what is always allowed").map(drop)
    }
}

async fn start<'a>(cx: &'a Cx, setup: run::SessionSetup, permits: &'a Permits) -> Result<Started<'a>> {
    let store = Store::new(&cx.paths);
    let name = cx.flags.prompt.session.as_deref();
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(Failure::usage("the session's name is empty"));
    }
    let scope = Scope::new(&setup.spec, &cx.cwd, name);
    let prompt = (!cx.args.words.is_empty()).then(|| cx.args.words.join(" "));
    let record = match &cx.args.record {
        Some(id) => store.get(id),
        // A prompt goes to the open session of the directory, as it does without a terminal.
        None if name.is_some() || prompt.is_some() => store.route(&scope)?,
        None => None,
    };
    let held = match &record {
        Some(record) => Some(SessionLock::acquire(&cx.paths, record).await?),
        None => None,
    };
    let setup = match &record {
        Some(record) => setup.with_record(record),
        None => setup,
    };
    let log = crate::log::logs_wire().then(|| run::wire_log(false, &setup));
    let file = crate::log::file().filter(|_| cx.output.verbose);
    let wire = Some(Wire::default());
    let (stderr, lines) = mpsc::channel(64);
    let mask = Mask::from_env().with(setup.secrets());
    let terminal_outputs = TerminalOutputs::default();
    let roots = std::iter::once(setup.cwd.clone()).chain(setup.directories.clone()).collect();
    let wanted = cx.config.settings.checkpoints;
    let checkpoints = wanted.then(|| Checkpoints::new(cx.paths.state.join("checkpoints"), roots));
    let starter = Starter {
        cx,
        setup,
        permits,
        terminal_outputs: terminal_outputs.clone(),
        wire: wire.clone(),
        stderr: cx.output.verbose.then_some(stderr),
        mask: mask.clone(),
        checkpoints,
    };
    match starter.setup.spec.known {
        true => cx.output.note(format_args!("starting {}", starter.setup.spec.name)),
        false => cx.output.note(format_args!("starting {}", starter.setup.spec.address)),
    }
    let mut connection = starter.connect().await?;
    let (spec, has_model) = (&starter.setup.spec, starter.setup.model.is_some());
    loop {
        let picked = if !has_model && crate::model_setup::is_missing(spec, &connection.agent).await {
            crate::model_setup::pick(cx, spec).await?
        } else if !has_model && crate::model_setup::is_undecided(cx, spec) {
            crate::model_setup::pick_default(cx, &connection.agent).await?
        } else {
            break;
        };
        match picked {
            Picked::Continue => break,
            Picked::Leave => return Ok(Started::Left),
            Picked::Instead(args) => return Ok(Started::Instead(args)),
            Picked::Retry => {
                run::leave(&connection.agent).await;
                connection = starter.connect().await?;
            }
        }
    }
    let mut notices = vec![greeting(cx, &connection)];
    notices.extend(file.map(|file| format!("the wire log is in {}", file.display())));
    let (opener, first) = loop {
        let opener = Opener::of(&connection)?;
        let opened = match &record {
            Some(record) => find(&connection, &opener, record, &mut notices).await,
            None => new(&connection).await.map(|session| InitialSession::Session(Box::new(session))),
        };
        match opened {
            Ok(first) => break (opener, first),
            // AUTH-02: a session needs a login first; the agent is started again to see it.
            Err(failure) if failure.detail == Some(DetailCode::AuthRequired) => {
                if !log_in(cx, &connection).await? {
                    return Err(failure);
                }
                run::leave(&connection.agent).await;
                connection = starter.connect().await?;
            }
            Err(failure) => return Err(failure),
        }
    };
    let kept = match (record, held, name, &first) {
        (Some(record), Some(held), ..) => Some((record, held)),
        (_, _, Some(name), InitialSession::Session(session)) => {
            let record = record_of(cx, &connection, session, name, &scope, &store)?;
            let held = SessionLock::acquire(&cx.paths, &record).await?;
            notices.push(format!("new session {name}"));
            Some((record, held))
        }
        _ => None,
    };
    let (mut commands, mut recorder) = (None, None);
    let kept = kept.map(|(record, mut held)| {
        commands = held.commands();
        recorder = store.history(&record.id).record(mask.clone()).ok();
        SavedSession::new(store, &record, held)
    });
    let traffic =
        wire.map(|wire| Traffic::new(wire, log, recorder, cx.output.verbose.then_some(lines), mask));
    let turns = permits.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
    let budget = Budget::new().turns(turns).tokens(permits.max_tokens).cost(permits.max_cost);
    Ok(Started::Chat(Box::new(ChatParameters {
        name: agent_name(&connection),
        first,
        opener,
        connection,
        starter: Rc::new(starter),
        saved: kept,
        traffic,
        commands,
        terminal_outputs,
        meter: Meter::new(budget.clone()),
        budget,
        time: permits.timeout,
        colours: cx.output.stdout.colours,
        verbose: cx.output.verbose,
        history: Some(cx.paths.state.join("history")),
        notices,
        prompt,
        attention: Attention::new(
            &cx.config.settings.notify,
            cx.config.settings.notify_after,
            cx.config.settings.title,
        ),
    })))
}

fn agent_name(connection: &Connection) -> String {
    let named = |info: &attache::wire::v1::Implementation| info.title.as_ref().unwrap_or(&info.name).clone();
    connection.agent.info().map_or_else(|| connection.setup.spec.name.clone(), named)
}

fn greeting(cx: &Cx, connection: &Connection) -> String {
    let mut name = agent_name(connection);
    if let Some(info) = connection.agent.info() {
        name = format!("{name} {}", info.version);
    }
    format!("{} in {}; /help shows commands and keys", name.trim_end(), cx.cwd.display())
}

/// Lets the user choose a login method of the agent and runs it. Returns `false` if there is none,
/// or the user leaves.
async fn log_in(cx: &Cx, connection: &Connection) -> Result<bool> {
    let name = &connection.setup.spec.name;
    loop {
        let rows = login_rows(connection);
        if rows.is_empty() {
            return Ok(false);
        }
        let intro = [Line::from(format!("{name} requires a login."))];
        let Some(Pick::Login(args)) = ask::pick("Log in", &intro, rows).await? else { return Ok(false) };
        let program = std::env::current_exe().context("the path of this program")?;
        let cwd = cx.cwd.clone();
        let run = move || std::process::Command::new(program).args(args).current_dir(cwd).status();
        let status = tokio::task::spawn_blocking(run).await.context("the login")?.context("the login")?;
        if status.success() {
            return Ok(true);
        }
        cx.output.tell("not logged in");
    }
}

/// Opens a new session with the model of the settings.
async fn new(connection: &Connection) -> Result<Session> {
    let session = connection.new_session().await?;
    if let Some(model) = &connection.setup.model {
        run::set_model(&session, model).await?;
    }
    Ok(session)
}

fn record_of(
    cx: &Cx,
    connection: &Connection,
    session: &Session,
    name: &str,
    scope: &Scope,
    store: &Store,
) -> Result<Record> {
    let spec = &connection.setup.spec;
    let mut record = Record::new(session.id().as_str(), &spec.identity(), &cx.cwd, &crate::time::now());
    crate::sessions::note(&mut record, connection, session);
    record.model.clone_from(&connection.setup.model);
    record.name = Some(name.to_owned());
    crate::sessions::add(store, &mut record, scope, false)?;
    Ok(record)
}

/// Opens a saved session: loads it with its history, or resumes it if the agent cannot load.
async fn find(
    connection: &Connection,
    opener: &Opener,
    record: &Record,
    notices: &mut Vec<String>,
) -> Result<InitialSession> {
    if connection.agent.loader().is_some() {
        let loading = opener.load(&connection.agent, &record.session_id.as_str().into()).await;
        let loading = loading.map_err(|error| connection.explain(error, "cannot load the session"))?;
        return Ok(InitialSession::Loading(loading));
    }
    let (session, restored) = connection.restore(record).await?;
    if let Restored::Replaced(reason) = restored
        && record.turns > 0
    {
        notices.push(lost(&reason));
    }
    Ok(InitialSession::Session(Box::new(session)))
}

/// The notice for an agent that has lost a session.
pub(crate) fn lost(reason: &str) -> String {
    format!("the agent has forgotten the conversation ({reason}); this is a new one")
}
