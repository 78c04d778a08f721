//! A running agent and its session.

use attache::client::{AgentHandle, Session, SessionBuilder};
use attache::wire::v1::{McpServer, ProtocolVersion, SessionConfigKind, SystemPrompt, SystemPromptMode};
use attache::{ContentBlock, Meta, code};
use attache_host::secrets::Mask;
use serde_json::Value;
use tokio::sync::mpsc;

use super::settings::{model_option, set_mode, set_model, set_option};
use super::setup::SessionSetup;
use super::tail::StderrTail;
use crate::client_services::{ClientServices, GuardEvent};
use crate::connect::{OnStderr, client, connect, explain_auth};
use crate::error::{Context as _, DetailCode, Failure, Result};
use crate::mcp_server::{Asking, Endpoint, Toolbox};
use crate::paths::Paths;
use crate::session_store::{Record, SystemPromptText};
use crate::wire::Wire;

/// A connection to an agent.
pub(crate) struct Connection {
    pub(crate) setup: SessionSetup,
    pub(crate) agent: AgentHandle,
    pub(crate) services: ClientServices,
    /// Actions of the agent that it did not ask permission for.
    pub(crate) guard: mpsc::Receiver<GuardEvent>,
    /// The stderr of the agent since its start or the last turn.
    pub(crate) stderr: StderrTail,
    /// Files and commands for an agent of version 2.
    endpoint: Option<Endpoint>,
}

/// How a session was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Restored {
    Resumed,
    Loaded,
    /// It could not be restored, for this reason, and a new one was started.
    Replaced(String),
}

impl Connection {
    /// Starts the agent. Its lines go to `wire`.
    pub(crate) async fn start(
        setup: SessionSetup,
        services: ClientServices,
        guard: mpsc::Receiver<GuardEvent>,
        wire: Wire,
        on_stderr: Option<OnStderr>,
    ) -> Result<Connection> {
        let client = services.install(client(setup.cancel_timeout), setup.fs, setup.terminal);
        // Each prompt decides whether questions can be answered; the session outlives it.
        let client = client.elicitation_forms().elicitation_urls().notices();
        let stderr = StderrTail::new(Mask::from_env().with(setup.secrets()));
        let options = setup.connect_options(client, Some(wire), stderr.listen(on_stderr));
        let agent = connect(&setup.spec, options).await?;
        Connection::new(setup, agent, services, guard, stderr)
    }

    /// A connection to an agent that was started. An agent of version 2 gets files and terminals as
    /// an MCP server, if the user wants that and it takes such servers.
    pub(crate) fn new(
        setup: SessionSetup,
        agent: AgentHandle,
        services: ClientServices,
        guard: mpsc::Receiver<GuardEvent>,
        stderr: StderrTail,
    ) -> Result<Connection> {
        let is_v2 = agent.protocol_version() == ProtocolVersion::V2;
        let endpoint = match is_v2 && setup.mcp_server && (setup.fs || setup.terminal) {
            true => {
                let roots = std::iter::once(setup.cwd.clone()).chain(setup.directories.clone()).collect();
                let tools =
                    Toolbox::new(services.clone(), roots, Asking::User).only(setup.fs, setup.terminal);
                Some(Endpoint::open(&Paths::from_env(), tools)?)
            }
            false => None,
        };
        Ok(Connection { setup, agent, services, guard, stderr, endpoint })
    }

    pub(crate) fn servers(&self) -> Result<Vec<McpServer>> {
        let read = |server: &Value| serde_json::from_value(server.clone()).context("an MCP server");
        let configured = self.setup.mcp_servers.iter().map(read);
        let own = self.endpoint.iter().map(|endpoint| Ok(McpServer::Stdio(endpoint.server())));
        configured.chain(own).collect()
    }

    /// The system prompt as a member of the protocol, if the agent supports it.
    pub(crate) fn system_prompt(&self) -> Option<SystemPrompt> {
        self.agent.capabilities().session_capabilities.system_prompt.as_ref()?;
        let (mode, text) = match self.setup.system_prompt.as_ref()? {
            SystemPromptText::Replace(text) => (SystemPromptMode::Override, text),
            SystemPromptText::Append { append } => (SystemPromptMode::Append, append),
        };
        Some(SystemPrompt::new(mode, vec![ContentBlock::from(text.as_str())]))
    }

    pub(crate) fn meta(&self) -> Result<Option<Meta>> {
        let meta = self.setup.meta(self.system_prompt().is_some());
        meta.map(|meta| Meta::new(&meta)).transpose().context("the session's options")
    }

    /// Starts a session.
    pub(crate) async fn new_session(&self) -> Result<Session> {
        let new = self.agent.new_session(&self.setup.cwd).mcp_servers(self.servers()?);
        let new = new.additional_directories(self.setup.directories.clone());
        let new = new.system_prompt(self.system_prompt()).meta(self.meta()?);
        let session = new.await.map_err(|error| self.explain(error, "cannot start a session"))?;
        if let Some(endpoint) = &self.endpoint {
            endpoint.set_session(session.id().clone());
        }
        let spec = &self.setup.spec;
        if let Some(mode) = &spec.mode {
            let set = set_mode(&session, mode).await;
            set.map_err(|failure| failure.context(format_args!("`mode` of the agent `{}`", spec.name)))?;
        }
        Ok(session)
    }

    pub(crate) fn explain(&self, error: attache::Error, what: &str) -> Failure {
        let failure = Failure::from(error);
        let failure = explain_auth(failure, &self.setup.spec, &self.agent);
        let failure = if failure.answered.is_some() { failure } else { failure.context(what) };
        self.with_cause(failure)
    }

    /// Adds the stderr of the agent and a hint to a failure of the agent.
    pub(crate) fn with_cause(&self, failure: Failure) -> Failure {
        let closed = failure.detail == Some(DetailCode::AgentDisconnected);
        let failed = failure.answered.as_ref().is_some_and(|answer| answer.code == code::INTERNAL_ERROR);
        if !(closed || failed) {
            return failure;
        }
        let printed = self.stderr.lines();
        let failure = match printed.is_empty() {
            true => failure,
            false => failure.stderr(printed.iter().map(String::as_str)),
        };
        let hint = format!("attache doctor {}", self.setup.spec.argument());
        if failure.hints.contains(&hint) { failure } else { failure.hint(hint) }
    }

    /// Sets the options that all sessions of this connection have. Servers and meta that cannot be
    /// read are reported when the first session is opened.
    fn with_options<K>(&self, session: SessionBuilder<K>) -> SessionBuilder<K> {
        session
            .mcp_servers(self.servers().unwrap_or_default())
            .additional_directories(self.setup.directories.clone())
            .system_prompt(self.system_prompt())
            .meta(self.meta().ok().flatten())
    }

    /// Resumes a session if the agent can, else loads it. `None` if the agent can do neither.
    pub(crate) async fn find_session(&self, id: &str) -> Option<Result<(Session, Restored), attache::Error>> {
        // SESS-20: resuming does not repeat the history, which was printed when it was new.
        let mut refusal = None;
        if let Some(resuming) = self.agent.resumer() {
            match self.with_options(resuming.resume(id, &self.setup.cwd)).await {
                Ok(session) => return Some(Ok((session, Restored::Resumed))),
                Err(error @ attache::Error::Closed(_)) => return Some(Err(error)),
                Err(error) => refusal = Some(error),
            }
        }
        if let Some(loading) = self.agent.loader() {
            let loaded = async { self.with_options(loading.load(id, &self.setup.cwd)).await?.finish().await };
            return Some(loaded.await.map(|session| (session, Restored::Loaded)));
        }
        refusal.map(Err)
    }

    /// Restores the session of a record, or starts a new one if that is not possible.
    pub(crate) async fn restore(&self, record: &Record) -> Result<(Session, Restored)> {
        let must = record.imported;
        let reason = match self.find_session(&record.session_id).await {
            Some(Ok(found)) => return Ok(found),
            Some(Err(error @ attache::Error::Closed(_))) => {
                return Err(self.explain(error, "cannot restore the session"));
            }
            Some(Err(error)) if error.is_auth_required() => {
                return Err(self.explain(error, "cannot restore the session"));
            }
            Some(Err(error)) => Failure::from(error).message,
            None => "the agent cannot restore sessions".to_owned(),
        };
        if must {
            return Err(Failure::runtime(format_args!(
                "the session {} cannot be restored: {reason}",
                record.label()
            ))
            .detail(DetailCode::SessionResumeRequired)
            .hint(
                "it was imported, so a new one would not be the same; start one with `attache sessions new`",
            ));
        }
        Ok((self.new_session().await?, Restored::Replaced(reason)))
    }

    /// Restores the settings of the user. Returns a message for each that the agent no longer
    /// offers.
    pub(crate) async fn set_again(&self, session: &Session, record: &Record) -> Vec<String> {
        let mut problems = Vec::new();
        let mut tell = |what: &str, result: Result<()>| {
            if let Err(failure) = result {
                problems.push(format!("{what} could not be restored: {failure}"));
            }
        };
        if let Some(mode) = &record.mode {
            tell("the mode", set_mode(session, mode).await);
        }
        if let Some(model) = &record.model {
            tell("the model", set_model(session, model).await);
        }
        for (key, value) in &record.options {
            tell(&format!("the option `{key}`"), set_option(session, key, &text(value)).await.map(|_| ()));
        }
        problems
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Copies the state of the session into its record.
pub(crate) fn note_session(record: &mut Record, session: &Session) {
    record.session_id = session.id().to_string();
    record.title = session.title().or_else(|| record.title.take());
    if let Some(modes) = session.modes() {
        record.current_mode = Some(modes.current_mode_id.to_string());
    }
    let options = session.config_options();
    if let Some(SessionConfigKind::Select(select)) = model_option(&options).map(|option| &option.kind) {
        record.current_model = Some(select.current_value.to_string());
        record.models = select.options.iter().map(|option| option.value.to_string()).collect();
    } else if let Some(models) = session.models() {
        record.current_model = Some(models.current_model_id.to_string());
        record.models = models.available_models.iter().map(|model| model.model_id.to_string()).collect();
    }
}
