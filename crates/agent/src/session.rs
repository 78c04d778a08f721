//! A session: its directories, its settings, the conversation so far.
//!
//! The SDK's side of it ([`Session`]) only passes on what it is asked; what the rest of the agent works with is [`Live`].

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache::agent::{self, OpenRequest, OpenedSession, OptionValue, SessionHandle, Turn};
use attache::wire::v1::{
    AvailableCommand, ModelId, ModelInfo as WireModel, SessionConfigId, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigSelectOption, SessionModeId, SessionModelState,
};
use attache::{Error, Prompt, Result, StopReason};
use attache_host::policy::Policy;
use attache_host::trust::ProjectFiles;
use serde_json::Value;

use crate::commands;
use crate::ground::Ground;
use crate::house::House;
use crate::instructions;
use crate::mcp::Servers;
use crate::model::{Message, Model, ModelInfo, Thinking};
use crate::modes::Mode;
use crate::network::Network;
use crate::store::{Entry, Snapshot, Store};
use crate::tools::ToolBox;
use crate::turn;
use crate::voice::Voice;

/// A session as the SDK knows it.
pub(crate) struct Session(Arc<Live>);

/// A session as everything else here knows it.
pub(crate) struct Live {
    pub(crate) house: Arc<House>,
    pub(crate) ground: Ground,
    pub(crate) voice: Voice,
    pub(crate) handle: SessionHandle,
    pub(crate) servers: Servers,
    /// What AGENTS.md and its like say, and what the client adds.
    pub(crate) instructions: String,
    /// The project's own files, if they may not take effect.
    pub(crate) restricted: Option<ProjectFiles>,
    /// Decides about the effects of tools.
    pub(crate) policy: Policy,
    /// The network of sandboxed commands.
    pub(crate) network: Network,
    id: String,
    state: Mutex<State>,
}

/// What changes while the session lives.
pub(crate) struct State {
    pub(crate) mode: Mode,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) thinking: Thinking,
    /// Files that were read, with the user's permission where they lie outside the project.
    read: HashSet<PathBuf>,
    pub(crate) tools: ToolBox,
    /// Whether the user knows that the project is restricted.
    pub(crate) restriction_told: bool,
    /// Whether the tools of MCP servers are among them.
    pub(crate) servers_joined: bool,
    /// What the model is told, oldest first.
    pub(crate) context: Vec<Message>,
    /// How many tokens of the window the last request took, with its answer.
    pub(crate) used: u64,
    /// US dollars so far, if every answer had a price.
    pub(crate) cost: Option<f64>,
    /// The slash commands that the client knows of.
    pub(crate) commands: Vec<AvailableCommand>,
    /// The files as they were when the last command began.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
}

/// Files that a session remembers as read at most.
const MOST_READ: usize = 10_000;

impl Session {
    /// Opens a session with what is kept of it.
    pub(crate) async fn open(
        house: Arc<House>,
        request: OpenRequest,
        context: Vec<Message>,
        settings: &BTreeMap<String, Value>,
    ) -> OpenedSession<Session> {
        let setting = |key: &str| settings.get(key).and_then(Value::as_str);
        let project = ProjectFiles::scan(&request.cwd);
        let trusted = house.options.trust.is_trusted(&project);
        // In a project that is not trusted the agent only reads, until the user chooses another mode.
        let first = house.options.mode.unwrap_or(if trusted { Mode::Ask } else { Mode::Plan });
        let mode = setting("mode").and_then(Mode::from_id).unwrap_or(first);
        let thinking = setting("thinking").and_then(Thinking::from_word).unwrap_or(house.options.thinking);
        let models = house.models().await;
        let model = house.first_model(setting("model"));
        let ground = Ground::new(request.cwd.clone(), request.additional_directories.clone());
        let servers = Servers::reach(request.mcp_servers, request.cwd.clone(), house.http());
        let config_dir = house.options.config_dir.as_deref();
        let mut instructions = instructions::gather(&project, config_dir, trusted);
        instructions.push_str(&instructions::of_client(request.system_prompt.as_ref()));
        let policy = house.policy(mode, ground.roots());
        let live = Arc::new(Live {
            policy,
            network: Network::default(),
            restricted: (!trusted).then_some(project),
            voice: Voice::new(house.store.clone(), request.id.as_str()),
            id: request.id.as_str().to_owned(),
            handle: request.session,
            servers,
            ground,
            instructions,
            state: Mutex::new(State {
                mode,
                model,
                thinking,
                read: HashSet::new(),
                tools: ToolBox::usual(),
                restriction_told: false,
                servers_joined: false,
                context,
                used: 0,
                cost: Some(0.0),
                commands: Vec::new(),
                snapshot: None,
            }),
            house,
        });
        live.house.has_opened(&live);
        live.offer(models)
    }
}

impl Live {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn store(&self) -> &Store {
        &self.house.store
    }

    /// Never held across an `await`.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn model(&self) -> Option<Arc<dyn Model>> {
        self.state().model.clone()
    }

    /// Remembers that a file was read.
    pub(crate) fn note_read(&self, path: &Path) {
        let mut state = self.state();
        if state.read.len() < MOST_READ {
            state.read.insert(path.to_owned());
        }
    }

    /// Whether a file was read in this session.
    pub(crate) fn was_read(&self, path: &Path) -> bool {
        self.state().read.contains(path)
    }

    pub(crate) fn takes_images(&self) -> bool {
        self.model().is_some_and(|model| model.info().images)
    }

    /// Adds a message to the conversation, in memory and on disk.
    pub(crate) fn remember(&self, message: Message) -> Result<()> {
        self.voice.keep(&[Entry::Message(message.clone())])?;
        self.state().context.push(message);
        Ok(())
    }

    /// Switches the mode from the agent's side (MODE-07).
    pub(crate) async fn switch_mode(&self, mode: Mode) -> Result<()> {
        self.keep_setting("mode", mode.id())?;
        self.enter(mode);
        self.handle.set_mode(mode.id()).await
    }

    /// CMD-02: files of commands come and go; the client is told when they have.
    async fn renew_commands(&self) -> Result<()> {
        let commands = commands::offered(self);
        let changed = {
            let mut state = self.state();
            let changed = state.commands != commands;
            state.commands.clone_from(&commands);
            changed
        };
        if changed { self.handle.set_commands(commands).await } else { Ok(()) }
    }

    fn keep_setting(&self, key: &str, value: &str) -> Result<()> {
        self.voice.keep(&[Entry::Setting { key: key.to_owned(), value: value.into() }])
    }

    /// What the session offers: modes, models, options and commands, the same settings by their old and new names (MODE-10).
    fn offer(self: Arc<Self>, models: Vec<ModelInfo>) -> OpenedSession<Session> {
        let mode = self.state().mode;
        let (models, options) = self.choices(models);
        let commands = commands::offered(&self);
        self.state().commands.clone_from(&commands);
        let open = OpenedSession::new(Session(self)).modes(mode.state()).options(options).commands(commands);
        match models {
            Some(models) => open.models(models),
            None => open,
        }
    }

    /// The models, in the way of older clients, and all options.
    fn choices(&self, models: Vec<ModelInfo>) -> (Option<SessionModelState>, Vec<SessionConfigOption>) {
        let (mode, thinking, model) = {
            let state = self.state();
            (state.mode, state.thinking, state.model.as_ref().map(|model| model.info().clone()))
        };
        let mut options = vec![mode_option(mode)];
        let models = model_state(model.as_ref(), models);
        options.extend(models.as_ref().map(model_option));
        if model.is_none_or(|model| model.thinking) {
            options.push(thinking_option(thinking));
        }
        (models, options)
    }

    /// CONF-16: other models are on offer now. One that is in use stays: to send a project to somebody else is not for us to
    /// decide. Whoever had none gets the best there is.
    pub(crate) async fn renew_models(&self, models: Vec<ModelInfo>) -> Result<()> {
        let best = self.house.first_model(None);
        {
            let mut state = self.state();
            state.model = state.model.take().or(best);
        }
        let (models, options) = self.choices(models);
        if let Some(models) = models {
            self.handle.set_models(models)?;
        }
        self.handle.set_options(options).await
    }

    fn set_model(&self, spec: &str) -> Result<()> {
        let model = self.house.models.open(spec).map_err(Error::invalid_params)?;
        self.keep_setting("model", spec)?;
        self.state().model = Some(model);
        Ok(())
    }

    fn set_mode(&self, id: &str) -> Result<()> {
        let mode =
            Mode::from_id(id).ok_or_else(|| Error::invalid_params(format!("there is no mode `{id}`")))?;
        self.keep_setting("mode", id)?;
        self.enter(mode);
        Ok(())
    }

    fn enter(&self, mode: Mode) {
        self.state().mode = mode;
        self.policy.set_mode(self.house.policy_mode(mode));
    }

    fn set_thinking(&self, word: &str) -> Result<()> {
        let level = Thinking::from_word(word)
            .ok_or_else(|| Error::invalid_params(format!("there is no thinking level `{word}`")))?;
        self.keep_setting("thinking", word)?;
        self.state().thinking = level;
        Ok(())
    }
}

fn mode_option(mode: Mode) -> SessionConfigOption {
    let choice = |mode: Mode| {
        SessionConfigSelectOption::new(mode.id(), mode.name()).description(mode.about().to_owned())
    };
    SessionConfigOption::select("mode", "Mode", mode.id(), Mode::ALL.map(choice).to_vec())
        .category(SessionConfigOptionCategory::Mode)
}

/// MODEL-01: the models, in the way of older clients. `None` if there is none.
fn model_state(current: Option<&ModelInfo>, mut models: Vec<ModelInfo>) -> Option<SessionModelState> {
    let current = current?;
    if !models.iter().any(|model| model.spec() == current.spec()) {
        models.insert(0, current.clone());
    }
    let wire = |model: &ModelInfo| WireModel::new(model.spec(), model.name.clone());
    Some(SessionModelState::new(current.spec(), models.iter().map(wire).collect::<Vec<_>>()))
}

fn model_option(models: &SessionModelState) -> SessionConfigOption {
    let choice =
        |model: &WireModel| SessionConfigSelectOption::new(model.model_id.as_str(), model.name.clone());
    let choices: Vec<_> = models.available_models.iter().map(choice).collect();
    SessionConfigOption::select("model", "Model", models.current_model_id.as_str(), choices)
        .category(SessionConfigOptionCategory::Model)
}

fn thinking_option(level: Thinking) -> SessionConfigOption {
    let choice = |level: Thinking| {
        let name = match level {
            Thinking::Off => "Off",
            Thinking::Low => "Low",
            Thinking::Medium => "Medium",
            Thinking::High => "High",
        };
        SessionConfigSelectOption::new(level.word(), name)
    };
    SessionConfigOption::select("thinking", "Thinking", level.word(), Thinking::ALL.map(choice).to_vec())
        .category(SessionConfigOptionCategory::ThoughtLevel)
}

impl agent::AgentSession for Session {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        self.0.renew_commands().await?;
        turn::run(&self.0, turn, prompt).await
    }

    async fn mode_changed(&self, mode: &SessionModeId) -> Result<()> {
        self.0.set_mode(mode.as_str())
    }

    async fn model_changed(&self, model: &ModelId) -> Result<()> {
        self.0.set_model(model.as_str())
    }

    async fn option_changed(&self, id: &SessionConfigId, value: &OptionValue) -> Result<()> {
        let OptionValue::Choice(value) = value else {
            return Err(Error::invalid_params(format!("`{id}` takes one of its values")));
        };
        match id.as_str() {
            "mode" => self.0.set_mode(value),
            "model" => self.0.set_model(value),
            "thinking" => self.0.set_thinking(value),
            _ => Err(Error::invalid_params(format!("there is no option `{id}`"))),
        }
    }
}
