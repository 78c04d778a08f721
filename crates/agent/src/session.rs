//! A session as the SDK sees it: opened, prompted and configured by the client.

use std::sync::Arc;

use attache::agent::{self, OpenRequest, OpenedSession, OptionValue, Turn};
use attache::wire::v1::{AvailableCommand, ModelId, NoticeSeverity, SessionConfigId, SessionModeId};
use attache::{Error, Prompt, Result, StopReason};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::commands;
use crate::mcp::Servers;
use crate::state::{AgentState, ModelChangeNotifier, SessionState};
use crate::store::Log;
use crate::tools::{AnyTool, Toolbox};
use crate::turn;

/// A session as the SDK sees it.
pub(crate) struct Session {
    state: Arc<SessionState>,
    servers: Servers,
    /// The session's tools, complete when its MCP servers are connected or have failed.
    tools: OnceCell<Arc<Toolbox>>,
    /// Slash commands that were announced to the client.
    commands: Mutex<Vec<AvailableCommand>>,
}

impl Session {
    /// Opens a session with what its log holds.
    pub(crate) async fn open(
        agent: Arc<AgentState>,
        notifier: &ModelChangeNotifier,
        request: OpenRequest,
        log: &Log,
    ) -> OpenedSession<Session> {
        let models = agent.models().await;
        let state = Arc::new(SessionState::new(agent, &request, log));
        let servers = Servers::connect(request.mcp_servers, request.cwd, state.agent.http().clone());
        notifier.add(&state);
        let choices = state.choices(models);
        let mode = state.conversation().mode;
        let commands = commands::available(&state);
        let session =
            Session { servers, tools: OnceCell::new(), commands: Mutex::new(commands.clone()), state };
        let open =
            OpenedSession::new(session).modes(mode.state()).options(choices.options).commands(commands);
        match choices.models {
            Some(models) => open.models(models),
            None => open,
        }
    }

    /// Command files come and go; the client is notified when the list has changed.
    // CMD-02
    async fn update_commands(&self) -> Result<()> {
        let commands = commands::available(&self.state);
        {
            let mut known = self.commands.lock();
            if *known == commands {
                return Ok(());
            }
            known.clone_from(&commands);
        }
        self.state.handle.set_commands(commands).await
    }

    /// The session's tools. The first turn waits for the MCP servers and reports those that failed.
    async fn tools(&self, turn: Turn<'_>) -> Result<Arc<Toolbox>> {
        if let Some(tools) = self.tools.get() {
            return Ok(tools.clone());
        }
        let found = turn.until_cancelled(self.servers.ready()).await?;
        let mut tools = Toolbox::builtin(&self.state);
        tools.add([Arc::new(turn::Task::default()) as Arc<dyn AnyTool>]);
        tools.add(found.tools);
        let tools = self.tools.get_or_init(|| std::future::ready(Arc::new(tools))).await.clone();
        for problem in found.problems {
            self.state.reporter.notify(turn, NoticeSeverity::Warning, &problem).await?;
        }
        Ok(tools)
    }
}

impl agent::AgentSession for Session {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        self.update_commands().await?;
        turn::run(&self.state, turn, prompt, self.tools(turn)).await
    }

    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        self.state.set_mode(mode.as_str())
    }

    async fn model_changed(&self, model: &ModelId) -> Result<()> {
        self.state.set_model(model.as_str())
    }

    async fn option_changed(&self, id: &SessionConfigId, value: &OptionValue) -> Result<()> {
        let OptionValue::Choice(value) = value else {
            return Err(Error::invalid_params(format!("`{id}` takes one of its values")));
        };
        match id.as_str() {
            "mode" => self.state.set_mode(value),
            "model" => self.state.set_model(value),
            "thinking" => self.state.set_thinking(value),
            _ => Err(Error::invalid_params(format!("no option \"{id}\""))),
        }
    }

    async fn closed(&self) {
        if let Some(tools) = self.tools.get() {
            tools.close().await;
        }
    }
}
