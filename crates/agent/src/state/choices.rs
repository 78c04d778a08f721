//! Settings that a session offers its client: mode, model and thinking level.

use attache::wire::v1::{
    ModelInfo as WireModel, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionModelState,
};

use super::session::Conversation;
use crate::model::{ModelInfo, Thinking};
use crate::modes::Mode;

/// Settings that a session offers, by their older and their newer names.
// MODE-10
pub(crate) struct Choices {
    /// The models, for older clients. `None` if there is none.
    // MODEL-01
    pub(crate) models: Option<SessionModelState>,
    pub(crate) options: Vec<SessionConfigOption>,
}

impl Choices {
    pub(super) fn new(conversation: &Conversation, models: Vec<ModelInfo>) -> Self {
        let current = conversation.model.as_ref().map(|model| model.info());
        let models = current.map(|current| model_state(current, models));
        let mut options = vec![mode_option(conversation.mode)];
        options.extend(models.as_ref().map(model_option));
        if current.is_none_or(|model| model.thinking) {
            options.push(thinking_option(conversation.thinking));
        }
        Choices { models, options }
    }
}

fn mode_option(mode: Mode) -> SessionConfigOption {
    let choice = |mode: Mode| {
        SessionConfigSelectOption::new(mode.id(), mode.name()).description(mode.about().to_owned())
    };
    SessionConfigOption::select("mode", "Mode", mode.id(), Mode::ALL.map(choice).to_vec())
        .category(SessionConfigOptionCategory::Mode)
}

fn model_state(current: &ModelInfo, mut models: Vec<ModelInfo>) -> SessionModelState {
    if !models.iter().any(|model| model.spec() == current.spec()) {
        models.insert(0, current.clone());
    }
    let wire = |model: &ModelInfo| WireModel::new(model.spec(), model.name.clone());
    SessionModelState::new(current.spec(), models.iter().map(wire).collect::<Vec<_>>())
}

fn model_option(models: &SessionModelState) -> SessionConfigOption {
    let choice =
        |model: &WireModel| SessionConfigSelectOption::new(model.model_id.as_str(), model.name.clone());
    let choices: Vec<_> = models.available_models.iter().map(choice).collect();
    SessionConfigOption::select("model", "Model", models.current_model_id.as_str(), choices)
        .category(SessionConfigOptionCategory::Model)
}

fn thinking_option(level: Thinking) -> SessionConfigOption {
    let choice = |level: Thinking| SessionConfigSelectOption::new(level.id(), level.name());
    SessionConfigOption::select("thinking", "Thinking", level.id(), Thinking::ALL.map(choice).to_vec())
        .category(SessionConfigOptionCategory::ThoughtLevel)
}
