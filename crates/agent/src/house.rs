//! What all sessions of one agent share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use attache::agent::{OpenRequest, OpenedSession};
use attache::wire::v1::SessionId;
use attache::{Error, Result, code};
use attache_host::confine::Confiner;
use attache_host::policy::{self, Audit, Memory, Policy, Span, Stance};
use attache_host::secrets::Mask;
use tokio::sync::OnceCell;

use crate::http::Http;
use crate::model::{Model, ModelInfo, Models, Settings};
use crate::modes::Mode;
use crate::options::{Options, Sandbox};
use crate::session::{Live, Session};
use crate::store::{Log, NewRow, Store, StoreError};

/// What all sessions of one agent share.
pub(crate) struct House {
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) models: Models,
    /// Servers on this machine are asked once, when somebody wants to know.
    looked: OnceCell<()>,
    http: OnceLock<Result<Http, String>>,
    confiner: OnceLock<Option<Confiner>>,
    /// The sessions that were opened, and perhaps are no more.
    sessions: Mutex<Vec<Weak<Live>>>,
}

impl House {
    pub(crate) fn new(options: Options) -> Result<Arc<Self>> {
        let store = match &options.store {
            Some(path) => Store::open(path, Mask::from_env().with(options.models.secrets())),
            None => Store::memory(),
        };
        let store = store.map_err(internal)?;
        let settings = Settings { model: options.model.clone(), ..options.models.clone() };
        let models = Models::new(&settings).map_err(internal)?;
        let (looked, http, confiner, sessions) =
            (OnceCell::new(), OnceLock::new(), OnceLock::new(), Mutex::default());
        Ok(Arc::new(House { options, store, models, looked, http, confiner, sessions }))
    }

    /// A new session.
    pub(crate) async fn new_session(self: Arc<Self>, request: OpenRequest) -> Result<OpenedSession<Session>> {
        let new =
            NewRow { id: request.id.as_str(), cwd: &request.cwd, roots: &request.additional_directories };
        self.store.create(&new).map_err(internal)?;
        Ok(self.open(request, &Log::default()).await)
    }

    /// Opens a session with what is kept of it.
    pub(crate) async fn open(self: Arc<Self>, request: OpenRequest, log: &Log) -> OpenedSession<Session> {
        Session::open(self, request, log.context(), &log.settings()).await
    }

    /// Remembers a session.
    pub(crate) fn has_opened(&self, live: &Arc<Live>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        // Only when it would have to grow, so that many sessions do not look at one another each time.
        if sessions.len() == sessions.capacity() {
            sessions.retain(|session| session.strong_count() > 0);
        }
        sessions.push(Arc::downgrade(live));
    }

    /// Tells every open session which models there are now.
    async fn tell_models(&self) {
        let models = self.models().await;
        let open: Vec<Arc<Live>> = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.iter().filter_map(Weak::upgrade).collect()
        };
        for live in open {
            // One that is being closed need not know.
            let _ = live.renew_models(models.clone()).await;
        }
    }

    /// The models that can be chosen.
    pub(crate) async fn models(&self) -> Vec<ModelInfo> {
        let scripted = self.options.model.as_ref().is_some_and(|spec| spec.starts_with("script:"));
        if self.options.models.look_around && !scripted {
            self.looked.get_or_init(|| self.models.look_around()).await;
        }
        self.models.list()
    }

    /// The model that a session begins with: the one it had, the one that was asked for, the best there is.
    pub(crate) fn first_model(&self, had: Option<&str>) -> Option<Arc<dyn Model>> {
        let best = self.models.choose();
        [had, best.as_deref()].into_iter().flatten().find_map(|spec| self.models.open(spec).ok())
    }

    /// The way to the network.
    pub(crate) fn http(&self) -> Result<Http, String> {
        let open = || match &self.options.models.http {
            Some(http) => Ok(http.clone()),
            None => Http::from_env().map_err(|error| error.to_string()),
        };
        self.http.get_or_init(open).clone()
    }

    /// What a mode means to the permission engine. Without a sandbox by the user's own choice, `auto` asks about no command inside the
    /// project; without one for another reason it asks about all.
    pub(crate) fn policy_mode(&self, mode: Mode) -> policy::Mode {
        match (&self.options.sandbox, mode) {
            (Sandbox::Off, Mode::Auto) => policy::Mode { run: Stance::Allow, ..mode.policy() },
            _ => mode.policy(),
        }
    }

    /// The permission engine of a session with these directories.
    pub(crate) fn policy(&self, mode: Mode, roots: &[PathBuf]) -> Policy {
        let policy =
            Policy::new(self.policy_mode(mode)).roots(roots).agent("attache-agent").span(Span::Session);
        let Some(state) = &self.options.state_dir else { return policy };
        let policy = policy.mask(Mask::from_env().with(self.options.models.secrets()));
        // Without its file the engine remembers until the session ends, and asks again afterwards.
        let project = roots.first().map_or(Path::new("/"), PathBuf::as_path);
        let policy = match Memory::open(state, project) {
            Ok(memory) => policy.memory(memory),
            Err(_) => policy,
        };
        match Audit::open(&state.join("audit.jsonl")) {
            Ok(audit) => policy.audit(audit),
            Err(_) => policy,
        }
    }

    /// The sandbox of this machine; `None` if it is switched off, or none works. Blocks for some milliseconds the first time.
    ///
    /// # Errors
    /// If one is required and none works: then nothing is run.
    pub(crate) fn confiner(&self) -> Result<Option<&Confiner>, String> {
        let Sandbox::On(options) = &self.options.sandbox else { return Ok(None) };
        let detect =
            || Confiner::detect(&options.program).map(|confiner| confiner.hide(options.hidden.clone()));
        match self.confiner.get_or_init(detect) {
            None if options.required => {
                Err("no sandbox works on this machine, and one is required".to_owned())
            }
            found => Ok(found.as_ref()),
        }
    }

    /// Whether sandboxed commands may have a network.
    pub(crate) fn has_network(&self) -> bool {
        matches!(&self.options.sandbox, Sandbox::On(options) if options.network)
    }
}

/// For those who change what models there are, over the wire, while sessions are open.
#[derive(Clone, Default)]
pub(crate) struct Bell(Option<Arc<House>>);

impl Bell {
    pub(crate) fn new(house: &Arc<House>) -> Self {
        Bell(Some(house.clone()))
    }

    /// Does something, and tells the open sessions if there are other models afterwards.
    pub(crate) async fn around<T>(&self, models: &Models, work: impl Future<Output = T>) -> T {
        let names = || models.list().iter().map(ModelInfo::spec).collect::<Vec<_>>();
        let before = names();
        let done = work.await;
        if let Some(house) = &self.0
            && names() != before
        {
            house.tell_models().await;
        }
        done
    }
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bell")
    }
}

/// RPC-18
pub(crate) fn missing(id: &SessionId, error: StoreError) -> Error {
    match error {
        StoreError::Unknown(_) => Error::not_found(format!("there is no session `{id}`")),
        error => internal(error),
    }
}

/// What is wrong with the user's own disk or settings may be told.
pub(crate) fn internal(error: impl std::fmt::Display) -> Error {
    Error::refuse(code::INTERNAL_ERROR, error.to_string())
}
