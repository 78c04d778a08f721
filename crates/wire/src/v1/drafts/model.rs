//! Session models. Only in older drafts, and still in use by several agents; config options of the
//! category `model` took their place.

// MODEL-03

use crate::shape::*;
use crate::v1::SessionId;

ids! {
    /// Id of a model. Only in older drafts; config options took its place.
    ModelId,
}

object! {
    /// A model.
    pub struct ModelInfo {
        required {
            /// Id of the model.
            model_id "modelId": ModelId [Required],
            /// A name to show.
            name "name": String [Required],
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
        }
    }
}

object! {
    /// The models of a session and which one answers.
    pub struct SessionModelState { // MODEL-01
        required {
            /// The model that answers.
            current_model_id "currentModelId": ModelId [Required],
            /// All models.
            available_models "availableModels": Vec<ModelInfo> [SkipInvalid],
        }
    }
}

object! {
    /// Changes the model.
    pub struct SetSessionModelRequest { // MODEL-02
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// One of the models offered.
            model_id "modelId": ModelId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The model is changed.
    SetSessionModelResponse,
}

crate::methods! {
    "session/set_model": SetSessionModelRequest => SetSessionModelResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn models_are_read_like_modes() {
        // shows MODEL-01, MODEL-02
        let text =
            r#"{"availableModels":[{"modelId":"m","name":"M","description":null},{}],"currentModelId":"m"}"#;
        let state: SessionModelState = serde_json::from_str(text).unwrap();
        assert_eq!(state, SessionModelState::new("m", vec![ModelInfo::new("m", "M")]));
        assert!(serde_json::from_str::<SetSessionModelRequest>(r#"{"sessionId":"s","model":"m"}"#).is_err());
    }
}
