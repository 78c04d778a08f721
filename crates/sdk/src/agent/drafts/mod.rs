//! Services of older drafts: models and next-edit suggestions.

mod nes;

use std::future::Future;
use std::sync::Arc;

use attache_wire::v1::{
    AgentCapabilities, ClientCapabilities, ModelId, SessionConfigOptionCategory, SessionModelState,
    SetSessionModelRequest, SetSessionModelResponse,
};

use super::builder::{Agent, Services};
use super::core::Core;
use super::handle::SessionHandle;
use super::manage::changing;
use super::method::Method;
use super::options::{self, not_offered, unusable};
use super::session::{AgentSession, OpenedSession, Settings};
use crate::check::unknown;
use crate::{Error, Result};

use nes::DynNextEdits;
pub(super) use nes::NesTable;
pub use nes::{DocumentEvent, NextEdits};

/// The installed services.
#[derive(Clone, Default)]
pub(super) struct DraftServices {
    pub(super) next_edits: Option<Arc<dyn DynNextEdits>>,
}

pub(super) static METHODS: &[Method] = &[
    Method::new("session/set_model", |core, _, request| core.answer(request, set_model)),
    Method::new("nes/start", |core, client, request| {
        core.answer(request, |core, request| nes::start(core, request, client));
    })
    .if_installed(has_next_edits)
    .after_login(),
    Method::new("nes/suggest", |core, client, request| {
        core.answer(request, |core, request| nes::suggest(core, request, client));
    })
    .if_installed(has_next_edits),
    Method::new("nes/close", |core, _, request| core.answer(request, nes::close))
        .if_installed(has_next_edits),
];

// NES-01
fn has_next_edits(services: &Services) -> bool {
    services.drafts.next_edits.is_some()
}

/// Adds the capabilities of the installed services.
pub(super) fn advertise(
    services: &Services,
    client: &ClientCapabilities,
    mut all: AgentCapabilities,
) -> AgentCapabilities {
    let next_edits = services.drafts.next_edits.as_deref();
    all.nes = next_edits.map(|service| service.capabilities());
    all.position_encoding = next_edits.map(|service| service.encoding_for(client));
    all
}

impl Agent {
    /// Suggests next edits while the user types.
    pub fn next_edits(mut self, next_edits: impl NextEdits) -> Self {
        self.services.drafts.next_edits = Some(Arc::new(next_edits));
        self
    }
}

impl<S: AgentSession> OpenedSession<S> {
    /// Sets the models for older clients; newer ones use options of category `model`.
    // MODEL-01
    pub fn models(mut self, models: SessionModelState) -> Self {
        self.settings.models = Some(models);
        self
    }
}

impl SessionHandle {
    /// Replaces the list of models for older clients, which cannot be notified. Newer ones need
    /// [`set_options`](Self::set_options).
    // MODEL-01, MODEL-02
    pub fn set_models(&self, models: SessionModelState) -> Result<()> {
        let entry = self.entry()?;
        let mut state = entry.state();
        let before = state.settings().models.replace(models);
        let checked = options::check_settings(state.settings());
        if checked.is_err() {
            state.settings().models = before;
        }
        checked
    }
}

fn set_model(
    core: Arc<Core>,
    request: SetSessionModelRequest,
) -> impl Future<Output = Result<SetSessionModelResponse>> {
    let changing = changing(&core, &request.session_id);
    async move {
        let (entry, position) = changing?;
        position.wait_turn().await;
        check_model(entry.state().settings(), &request.model_id)?;
        entry.session.model_changed(&request.model_id).await?;
        let changed = put_model(entry.state().settings(), &request.model_id)?;
        core.send_options(&entry, changed);
        Ok(SetSessionModelResponse::new())
    }
}

// MODEL-02: the model must be available.
fn check_model(settings: &Settings, model: &ModelId) -> Result<()> {
    let models = settings.models.as_ref().ok_or_else(|| not_offered("session/set_model"))?;
    if models.available_models.iter().any(|offered| offered.model_id == *model) {
        return Ok(());
    }
    let available = models.available_models.iter().map(|model| model.model_id.as_str());
    Err(Error::invalid_params(unknown("model", model.as_str(), available)))
}

/// Changes the model; returns whether an option changed with it.
fn put_model(settings: &mut Settings, model: &ModelId) -> Result<bool> {
    check_model(settings, model)?;
    if let Some(models) = &mut settings.models {
        models.current_model_id = model.clone();
    }
    Ok(options::put_category(settings, &SessionConfigOptionCategory::Model, model.as_str()))
}

/// Sets the model that belongs to an option of category `model`.
pub(super) fn follow_option(settings: &mut Settings, value: &str) {
    if let Some(models) = &mut settings.models
        && models.available_models.iter().any(|model| model.model_id == *value)
    {
        models.current_model_id = ModelId::from(value);
    }
}

/// Checks that the current model is available.
pub(super) fn check_settings(settings: &Settings) -> Result<()> {
    if let Some(models) = &settings.models
        && !models.available_models.iter().any(|model| model.model_id == models.current_model_id)
    {
        return Err(unusable(format_args!("model `{}` is not one of its models", models.current_model_id)));
    }
    Ok(())
}
