//! Subagents: sessions that another session started, and messages between them.

// SUBA-01 to SUBA-07

use crate::shape::*;
use crate::v1::{ContentBlock, IdleStopReason, MessageId, SessionId, Usage};

#[path = "../../both/subagent.rs"]
mod both;
pub use both::*;

empty_objects! {
    /// The client shows subagents.
    SubagentCapabilities,
}

empty_objects! {
    /// The child's turn can be cancelled.
    SessionCancelCapabilities,
}

object! {
    /// Operations on a child session that the client may request.
    pub struct SubagentSessionCapabilities { // SUBA-03
        optional {
            /// Its turn can be cancelled.
            cancel "cancel": Option<SessionCancelCapabilities> [Lenient],
        }
    }
}

empty_objects! {
    /// The session works.
    RunningStateUpdate,
    /// The session waits for the user.
    RequiresActionStateUpdate,
    /// The state is unknown. The previous state is no longer confirmed.
    UnknownStateUpdate, // SUBA-07
}

flattened! {
    /// The session has nothing to do.
    pub struct IdleStateUpdate {
        unions {
            /// Why, if that is known.
            stop_reason: Option<IdleStopReason>,
        }
        optional {
            /// Tokens that the turn used.
            usage "usage": Option<Usage> [Lenient],
        }
    }
}

impl Default for IdleStateUpdate {
    fn default() -> Self {
        IdleStateUpdate::new(None)
    }
}

tagged! {
    /// The state of a session. An unlisted or absent state is not idle.
    pub enum StateUpdate by "state" { // SUBA-04
        /// It works.
        Running(RunningStateUpdate) = "running",
        /// It has nothing to do.
        Idle(IdleStateUpdate) = "idle",
        /// It waits for the user.
        RequiresAction(RequiresActionStateUpdate) = "requires_action",
        /// The state is unknown.
        Unknown(UnknownStateUpdate) = "unknown",
    }
    other Other
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Patch;
    use crate::v1::ErrorStopReason;

    fn same(text: &str) -> StateUpdate {
        let state: StateUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
        state
    }

    #[test]
    fn states_that_are_not_listed_are_kept_and_are_not_idle() {
        // shows SUBA-04
        let state = same(r#"{"state":"_sleeping","until":5}"#);
        assert!(matches!(state, StateUpdate::Other(unknown) if unknown.tag == "_sleeping"));
        assert!(matches!(same(r#"{"state":"unknown"}"#), StateUpdate::Unknown(_)));
        assert!(serde_json::from_str::<StateUpdate>("{}").is_err());
    }

    #[test]
    fn an_idle_state_knows_its_reason() {
        // shows SUBA-06
        let StateUpdate::Idle(idle) = same(r#"{"state":"idle"}"#) else { panic!() };
        assert_eq!(idle, IdleStateUpdate::new(None));
        let StateUpdate::Idle(idle) = same(r#"{"state":"idle","stopReason":"_vendor","detail":1}"#) else {
            panic!()
        };
        assert_eq!(idle.stop_reason.unwrap().as_str(), "_vendor");
        let text = r#"{"state":"idle","stopReason":"error","error":{"code":-32603,"message":"boom"}}"#;
        let StateUpdate::Idle(idle) = same(text) else { panic!() };
        let Some(IdleStopReason::Error(reason)) = idle.stop_reason else { panic!() };
        assert_eq!(reason.error.unwrap().message, "boom");
    }

    #[test]
    fn a_malformed_reason_is_no_reason() {
        let text = r#"{"stopReason":5,"usage":true,"error":{"code":1},"state":"idle"}"#;
        let state: StateUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(state, IdleStateUpdate::new(None).into());
        let text = r#"{"state":"idle","stopReason":"error","error":{"code":1}}"#;
        let StateUpdate::Idle(idle) = serde_json::from_str(text).unwrap() else { panic!() };
        assert_eq!(idle.stop_reason, Some(IdleStopReason::Error(ErrorStopReason::new())));
    }

    #[test]
    fn a_child_has_three_states_per_member_and_strict_directories() {
        // shows SUBA-02, SUBA-05
        let read = serde_json::from_str::<SubagentUpdate>;
        assert!(read(r#"{"title":"x"}"#).is_err());
        let text = r#"{"sessionId":"c","title":null,"state":{"state":"running"},"cwd":null}"#;
        let update = read(text).unwrap();
        assert_eq!((&update.title, &update.description), (&Patch::Clear, &Patch::Keep));
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
        let text = r#"{"sessionId":"c","title":5,"state":{},"capabilities":7}"#;
        assert_eq!(read(text).unwrap(), SubagentUpdate::new("c"));
        assert!(read(r#"{"sessionId":"c","cwd":5}"#).is_err());
        assert!(read(r#"{"sessionId":"c","additionalDirectories":["/a",5]}"#).is_err());
    }

    #[test]
    fn a_message_between_sessions_may_be_changed_piece_by_piece() {
        let text = r#"{"messageId":"m","senderSessionId":null,"content":[{"type":"text","text":"x"},5]}"#;
        let message: SessionMessage = serde_json::from_str(text).unwrap();
        assert_eq!(message.sender_session_id, Patch::Clear);
        assert_eq!(message.recipient_session_id, Patch::Keep);
        assert_eq!(message.content, Patch::Set(vec!["x".into()]));
    }
}
