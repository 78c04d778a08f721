//! Parts of older drafts: models and edit suggestions.

mod nes;

use attache_wire::v1::{
    ClientNesCapabilities, ModelId, PositionEncodingKind, SessionConfigOptionCategory, SessionModelState,
    SetSessionModelRequest,
};

use super::agent::AgentHandle;
use super::builder::Client;
use super::session::{Session, SessionControl, check_offered};
use crate::{Error, Result};

pub use nes::{Nes, NesSession, SuggestionPoint};

impl Client {
    /// Supports these kinds of edit suggestions beside plain edits.
    // NES-04
    pub fn nes(mut self, kinds: ClientNesCapabilities) -> Self {
        self.0.more.nes = Some(kinds);
        self
    }

    /// Sets the supported position encodings, the best first; UTF-16 by default.
    // NES-10
    pub fn position_encodings(mut self, encodings: impl Into<Vec<PositionEncodingKind>>) -> Self {
        self.0.more.position_encodings = Some(encodings.into());
        self
    }
}

impl AgentHandle {
    /// Requests edit suggestions.
    // NES-01
    pub fn nes(&self) -> Option<Nes> {
        self.capabilities().nes.is_some().then(|| Nes(self.clone()))
    }
}

impl Session {
    /// The models of older agents.
    pub fn models(&self) -> Option<SessionModelState> {
        self.lane().state(|state| state.models.clone())
    }
}

impl SessionControl {
    /// Changes the model: of an older agent, or the option of category `model` of one that has no
    /// models.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the model is unknown. Nothing is sent then.
    // MODEL-02
    pub async fn set_model(&self, model: impl Into<ModelId>) -> Result<()> {
        let model = model.into();
        let has_models = self.lane.state(|state| {
            let Some(models) = &state.models else { return Ok(false) };
            let available = models.available_models.iter().map(|offered| offered.model_id.as_str());
            check_offered("model", model.as_str(), available).map(|()| true)
        })?;
        if !has_models {
            let option = self.option_of(&SessionConfigOptionCategory::Model);
            let option = option.ok_or(Error::Unsupported("session models"))?;
            return self.set_config_option(option, model.as_str()).await.map(drop);
        }
        let lane = self.lane.clone();
        let request = SetSessionModelRequest::new(self.lane.id.clone(), model.clone());
        let done = self.agent.0.in_order(&request, move |answer| {
            answer.map(|_| {
                lane.state(|state| {
                    if let Some(models) = &mut state.models {
                        models.current_model_id = model;
                    }
                });
            })
        });
        done.await?
    }
}
