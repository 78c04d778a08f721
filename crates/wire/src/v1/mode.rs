//! Session modes: one of a few ways in which the agent works. Config options are their successor.

// MODE-09

use super::{SessionId, SessionModeId};
use crate::shape::*;

object! {
    /// A mode.
    pub struct SessionMode {
        required {
            /// Id of the mode.
            id "id": SessionModeId [Required],
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
    /// The modes of a session and which one holds.
    pub struct SessionModeState { // MODE-01
        required {
            /// The mode that holds.
            current_mode_id "currentModeId": SessionModeId [Required],
            /// All modes.
            available_modes "availableModes": Vec<SessionMode> [SkipInvalid],
        }
    }
}

object! {
    /// Changes the mode, at any time.
    pub struct SetSessionModeRequest { // MODE-03, MODE-05, MODE-06
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// One of the modes offered.
            mode_id "modeId": SessionModeId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The mode is changed. An older draft spelt its `_meta` without the line; that is ignored.
    SetSessionModeResponse, // MODE-11
}

crate::methods! {
    "session/set_mode": SetSessionModeRequest => SetSessionModeResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn malformed_modes_are_skipped() {
        // shows MODE-01
        let text =
            r#"{"currentModeId":"a","availableModes":[{"id":"a","name":"A","description":5},{"id":"b"},7]}"#;
        let state: SessionModeState = serde_json::from_str(text).unwrap();
        assert_eq!(state, SessionModeState::new("a", vec![SessionMode::new("a", "A")]));
        for list in ["null", "5", "{}"] {
            let text = format!(r#"{{"currentModeId":"a","availableModes":{list}}}"#);
            assert!(serde_json::from_str::<SessionModeState>(&text).unwrap().available_modes.is_empty());
        }
        assert!(serde_json::from_str::<SessionModeState>(r#"{"currentModeId":"a"}"#).is_err());
    }

    #[test]
    fn the_key_is_mode_id() {
        // shows MODE-05
        let text = r#"{"sessionId":"s","mode":"plan"}"#;
        assert!(serde_json::from_str::<SetSessionModeRequest>(text).is_err());
    }

    #[test]
    fn any_empty_answer_will_do() {
        // shows MODE-11, RPC-22
        for text in ["null", "{}", r#"{"meta":{"x":1}}"#] {
            let response: SetSessionModeResponse = serde_json::from_str(text).unwrap();
            assert_eq!(response, SetSessionModeResponse::new());
        }
    }
}
