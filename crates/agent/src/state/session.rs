//! State of one session.

use std::collections::BTreeMap;
use std::sync::Arc;

use attache::agent::{OpenRequest, SessionHandle};
use attache::{Error, Result};
use attache_host::policy::Policy;
use attache_host::trust::ProjectFiles;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{AgentState, Choices};
use crate::blocking;
use crate::instructions;
use crate::model::{Message, Model, ModelInfo, Thinking, Usage};
use crate::modes::Mode;
use crate::project_files;
use crate::reporter::Reporter;
use crate::skills::{self, Skill};
use crate::store::{Entry, Log, Store};
use crate::text::clip_marked;
use crate::workspace::Workspace;

/// The least bytes of the results of a response, and the most bytes of one of them.
pub(crate) const MIN_RESULTS: usize = 1 << 10;
pub(crate) const MAX_RESULT: usize = 64 << 10;

/// The most bytes of the listing for models with a small window.
const MAX_LISTING: usize = 400;

/// State of one session, shared by its tools and its turns.
pub(crate) struct SessionState {
    pub(crate) agent: Arc<AgentState>,
    pub(crate) workspace: Workspace,
    pub(crate) reporter: Reporter,
    pub(crate) handle: SessionHandle,
    /// Instructions of the user, the project and the client, for the system prompt.
    pub(crate) instructions: String,
    /// Skills of the project and the user.
    pub(crate) skills: Vec<Skill>,
    /// The project's own files, if they may not take effect.
    pub(crate) restricted: Option<ProjectFiles>,
    /// Decides about the effects of tools.
    pub(crate) policy: Policy,
    id: String,
    /// The project's files for models with a small window.
    listing: OnceCell<String>,
    conversation: Mutex<Conversation>,
}

/// The part of a session that changes: settings, messages and usage.
pub(crate) struct Conversation {
    pub(crate) mode: Mode,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) thinking: Thinking,
    /// What is sent to the model, oldest first.
    pub(crate) messages: Vec<Message>,
    /// Tokens of the model's window that the last request and its response took.
    pub(crate) used: u64,
    /// Tokens of the last response, as the provider counted them.
    pub(crate) last_usage: Usage,
    /// Tokens of all responses since the session was opened.
    pub(crate) total_usage: Usage,
    /// Tokens of subagents that the turn has not counted yet.
    pub(crate) task_usage: Usage,
    /// US dollars so far; `None` if a response had no known price.
    pub(crate) cost: Option<f64>,
    /// Whether the user was notified that the project is restricted.
    pub(crate) restriction_reported: bool,
}

impl SessionState {
    /// The state of a session with what its log holds.
    pub(crate) fn new(agent: Arc<AgentState>, request: &OpenRequest, log: &Log) -> Self {
        let settings: BTreeMap<String, Value> = log.settings();
        let setting = |key: &str| settings.get(key).and_then(Value::as_str);
        let project = ProjectFiles::scan(&request.cwd);
        let trusted = agent.options.trust.is_trusted(&project);
        // In a project that is not trusted the agent only reads, until the user chooses another
        // mode.
        let first = agent.options.mode.unwrap_or(if trusted { Mode::Ask } else { Mode::Plan });
        let mode = setting("mode").and_then(Mode::from_id).unwrap_or(first);
        let thinking = setting("thinking").and_then(Thinking::from_id).unwrap_or(agent.options.thinking);
        let model = agent.first_model(setting("model"));
        let workspace = Workspace::new(request.cwd.clone(), request.additional_directories.clone());
        let mut instructions = instructions::gather(&project, agent.options.config_dir.as_deref(), trusted);
        let skills = skills::gather(&project, agent.options.config_dir.as_deref(), trusted);
        instructions.push_str(&skills::listing(&skills));
        instructions.push_str(&instructions::of_client(request.system_prompt.as_ref()));
        let conversation = Conversation {
            mode,
            model,
            thinking,
            messages: log.context(),
            used: 0,
            last_usage: Usage::default(),
            total_usage: Usage::default(),
            task_usage: Usage::default(),
            cost: Some(0.0),
            restriction_reported: false,
        };
        SessionState {
            policy: agent.policy(mode, workspace.roots()),
            restricted: (!trusted).then_some(project),
            reporter: Reporter::new(agent.store.clone(), request.id.as_str()),
            id: request.id.as_str().to_owned(),
            listing: OnceCell::new(),
            handle: request.session.clone(),
            workspace,
            instructions,
            skills,
            conversation: Mutex::new(conversation),
            agent,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn store(&self) -> &Store {
        &self.agent.store
    }

    /// Locks the changing part. The guard is never held across an `await`.
    pub(crate) fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock()
    }

    pub(crate) fn model(&self) -> Option<Arc<dyn Model>> {
        self.conversation().model.clone()
    }

    /// Asks the model's server for the window, if it is not known yet.
    pub(crate) async fn complete_model(&self) {
        let Some(model) = self.model() else { return };
        if let Some(complete) = self.agent.models.look_up(model.info()).await {
            let mut conversation = self.conversation();
            // The user may have chosen another model in the meantime.
            if conversation.model.as_ref().is_some_and(|now| Arc::ptr_eq(now, &model)) {
                conversation.model = Some(complete);
            }
        }
    }

    /// The most bytes of all results of a response: a quarter of the model's window, at four bytes
    /// per token.
    pub(crate) fn results_limit(&self) -> usize {
        let window = self.model().map_or(u64::MAX, |model| model.info().window);
        usize::try_from(window).unwrap_or(usize::MAX).max(MIN_RESULTS)
    }

    /// The most bytes of a single result.
    pub(crate) fn result_limit(&self) -> usize {
        self.results_limit().min(MAX_RESULT)
    }

    /// The instructions, at most about a quarter of the model's window.
    pub(crate) fn instructions_for(&self, model: Option<&ModelInfo>) -> String {
        // Four bytes are about a token.
        let limit = model.map_or(usize::MAX, |model| usize::try_from(model.window).unwrap_or(usize::MAX));
        clip_marked(&self.instructions, limit, "\n[… cut]\n")
    }

    /// Lists the project's files once, so that the start of the prompt stays the same.
    pub(crate) async fn prepare_listing(&self) {
        let root = self.workspace.cwd().to_owned();
        let list =
            || blocking::run(move || Ok::<_, String>(project_files::short_listing(&root, MAX_LISTING)));
        self.listing.get_or_init(async || list().await.unwrap_or_default()).await;
    }

    /// The project's files, if they were listed.
    pub(crate) fn listing(&self) -> Option<&str> {
        self.listing.get().map(String::as_str)
    }

    pub(crate) fn accepts_images(&self) -> bool {
        self.model().is_some_and(|model| model.info().images)
    }

    /// Adds a message to the conversation, in the log and in memory.
    pub(crate) fn add_message(&self, message: Message) -> Result<()> {
        self.reporter.log(&[Entry::Message(message.clone())])?;
        self.conversation().messages.push(message);
        Ok(())
    }

    /// The settings that the session offers now.
    pub(crate) fn choices(&self, models: Vec<ModelInfo>) -> Choices {
        Choices::new(&self.conversation(), models)
    }

    /// Announces another list of models. A model in use stays, because sending the project
    /// to another provider is the user's decision; a session without one gets the best available.
    // CONF-16
    pub(super) async fn models_changed(&self, models: Vec<ModelInfo>) -> Result<()> {
        let best = self.agent.first_model(None);
        {
            let mut conversation = self.conversation();
            conversation.model = conversation.model.take().or(best);
        }
        let choices = self.choices(models);
        if let Some(models) = choices.models {
            self.handle.set_models(models)?;
        }
        self.handle.set_options(choices.options).await
    }

    /// Switches the mode from the agent's side.
    // MODE-07
    pub(crate) async fn switch_mode(&self, mode: Mode) -> Result<()> {
        self.set_mode(mode.id())?;
        self.handle.set_mode(mode.id()).await
    }

    pub(crate) fn set_mode(&self, id: &str) -> Result<()> {
        let mode: Mode = id.parse().map_err(Error::invalid_params)?;
        self.log_setting("mode", id)?;
        self.conversation().mode = mode;
        self.policy.set_mode(self.agent.policy_mode(mode));
        Ok(())
    }

    pub(crate) fn set_model(&self, spec: &str) -> Result<()> {
        let model = self.agent.models.open(spec).map_err(Error::invalid_params)?;
        self.log_setting("model", spec)?;
        self.conversation().model = Some(model);
        Ok(())
    }

    pub(crate) fn set_thinking(&self, id: &str) -> Result<()> {
        let level = Thinking::from_id(id)
            .ok_or_else(|| Error::invalid_params(format!("no thinking level \"{id}\"")))?;
        self.log_setting("thinking", id)?;
        self.conversation().thinking = level;
        Ok(())
    }

    fn log_setting(&self, key: &str, value: &str) -> Result<()> {
        self.reporter.log(&[Entry::Setting { key: key.to_owned(), value: value.into() }])
    }
}
