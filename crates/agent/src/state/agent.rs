//! State that all sessions of one agent share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use attache::{Error, Result};
use attache_host::confine::Confiner;
use attache_host::policy::{self, Audit, Memory, Policy, Span, Stance};
use attache_host::secrets::Mask;
use tokio::sync::OnceCell;

use crate::model::{Model, ModelInfo, Models, Settings};
use crate::modes::Mode;
use crate::options::{Options, Sandbox};
use crate::store::Store;
use attache_http::client::HttpClient;

/// State that all sessions of one agent share.
pub(crate) struct AgentState {
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) models: Models,
    /// Set once the model servers of this machine were asked for their models.
    discovered: OnceCell<()>,
    confiner: OnceLock<Option<Confiner>>,
}

impl AgentState {
    pub(crate) fn new(options: Options) -> Result<Arc<Self>> {
        let store = match &options.store {
            Some(path) => Store::open(path, Mask::from_env().with(options.models.secrets())),
            None => Store::memory(),
        }?;
        let settings = Settings { model: options.model.clone(), ..options.models.clone() };
        let models = Models::new(&settings).map_err(Error::internal)?;
        let (discovered, confiner) = (OnceCell::new(), OnceLock::new());
        Ok(Arc::new(AgentState { options, store, models, discovered, confiner }))
    }

    /// The models that can be chosen. The first call asks the servers of this machine.
    pub(crate) async fn models(&self) -> Vec<ModelInfo> {
        let scripted = self.options.model.as_ref().is_some_and(|spec| spec.starts_with("script:"));
        if self.options.models.discover && !scripted {
            self.discovered.get_or_init(|| self.models.discover_local()).await;
        }
        self.models.list()
    }

    /// The model that a session begins with: its previous one, the configured one, or the best
    /// available.
    pub(crate) fn first_model(&self, previous: Option<&str>) -> Option<Arc<dyn Model>> {
        let best = self.models.choose();
        [previous, best.as_deref()].into_iter().flatten().find_map(|spec| self.models.open(spec).ok())
    }

    pub(crate) fn http(&self) -> &HttpClient {
        self.models.http()
    }

    /// The permission engine's mode for a session mode. If the user switched the sandbox off,
    /// `auto` allows commands inside the project; if there is none for another reason, every
    /// command needs a permission.
    pub(crate) fn policy_mode(&self, mode: Mode) -> policy::Mode {
        match (&self.options.sandbox, mode) {
            (Sandbox::Off, Mode::Auto) => policy::Mode { run: Stance::Allow, ..mode.policy() },
            _ => mode.policy(),
        }
    }

    /// The permission engine of a session with these directories.
    pub(crate) fn policy(&self, mode: Mode, roots: &[PathBuf]) -> Policy {
        let mut policy =
            Policy::new(self.policy_mode(mode)).roots(roots).agent("attache-agent").span(Span::Session);
        let Some(state) = &self.options.state_dir else { return policy };
        policy = policy.mask(Mask::from_env().with(self.options.models.secrets()));
        let project = roots.first().map_or(Path::new("/"), PathBuf::as_path);
        // Without these files answers are remembered until the session ends, and decisions are not
        // logged.
        match Memory::open(state, project) {
            Ok(memory) => policy = policy.memory(memory),
            Err(error) => tracing::warn!(%error, "cannot open the remembered permissions"),
        }
        match Audit::open(&state.join("audit.jsonl")) {
            Ok(audit) => policy = policy.audit(audit),
            Err(error) => tracing::warn!(%error, "cannot open the audit log"),
        }
        policy
    }

    /// The sandbox of this machine; `None` if it is switched off or none works. Blocks for some
    /// milliseconds the first time.
    ///
    /// # Errors
    /// If a sandbox is required and none works: then no command may run.
    pub(crate) fn confiner(&self) -> Result<Option<&Confiner>, &'static str> {
        let Sandbox::On(options) = &self.options.sandbox else { return Ok(None) };
        let detect =
            || Confiner::detect(&options.program).map(|confiner| confiner.hide(options.hidden.clone()));
        match self.confiner.get_or_init(detect) {
            None if options.required => Err("no sandbox works on this machine, and one is required"),
            found => Ok(found.as_ref()),
        }
    }

    /// Whether sandboxed commands may use the network.
    pub(crate) fn has_network(&self) -> bool {
        matches!(&self.options.sandbox, Sandbox::On(options) if options.network)
    }
}
