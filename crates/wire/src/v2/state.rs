//! The state of a session, and work that continues beside it.

pub use crate::v1::idle_reason::{ErrorStopReason, IdleStopReason};

use crate::shape::*;
#[cfg(feature = "unstable")]
use crate::v2::{BackgroundSubagent, UnknownStateUpdate, Usage};
use crate::v2::{TerminalId, ToolCallId};

/// The name of the type in version 2.
pub type StopReason = IdleStopReason;

object! {
    /// A terminal that runs in the background.
    pub struct BackgroundTerminal {
        required {
            /// The terminal.
            terminal_id "terminalId": TerminalId [Required],
        }
    }
}

object! {
    /// A tool call that runs in the background.
    pub struct BackgroundToolCall {
        required {
            /// The call.
            tool_call_id "toolCallId": ToolCallId [Required],
        }
    }
}

tagged! {
    // V2-36
    /// Work that outlives the foreground work of a session.
    pub enum BackgroundWork by "type" {
        /// A terminal.
        Terminal(BackgroundTerminal) = "terminal",
        /// A tool call.
        ToolCall(BackgroundToolCall) = "tool_call",
        /// A subagent.
        #[cfg(feature = "unstable")]
        Subagent(BackgroundSubagent) = "subagent",
    }
    other Other
}

object! {
    /// The session works.
    pub struct RunningStateUpdate {
        optional {
            // V2-36
            /// All background work; absent if it is not reported.
            background "background": Option<Vec<BackgroundWork>> [Lenient],
        }
    }
}

object! {
    /// All foreground work waits for the user.
    pub struct RequiresActionStateUpdate {
        optional {
            // V2-36
            /// All background work; absent if it is not reported.
            background "background": Option<Vec<BackgroundWork>> [Lenient],
        }
    }
}

flattened! {
    /// The session has nothing to do in the foreground.
    pub struct IdleStateUpdate {
        unions {
            /// Why the work ended, if that is reported.
            stop_reason: Option<StopReason>,
        }
        optional {
            /// Tokens that the finished work used.
            #[cfg(feature = "unstable")]
            usage "usage": Option<Usage> [Lenient],
            // V2-36
            /// All background work; absent if it is not reported.
            background "background": Option<Vec<BackgroundWork>> [Lenient],
        }
    }
}

tagged! {
    // V2-35
    /// The state of a session. An unlisted state is not idle.
    pub enum StateUpdate by "state" {
        /// It works.
        Running(RunningStateUpdate) = "running",
        /// It has nothing to do.
        Idle(IdleStateUpdate) = "idle",
        /// It waits for the user.
        RequiresAction(RequiresActionStateUpdate) = "requires_action",
        /// The state is unknown.
        #[cfg(feature = "unstable")]
        Unknown(UnknownStateUpdate) = "unknown",
    }
    other Other
}

impl StateUpdate {
    /// The background work, if it is reported.
    pub fn background(&self) -> Option<&[BackgroundWork]> {
        match self {
            StateUpdate::Running(state) => state.background.as_deref(),
            StateUpdate::Idle(state) => state.background.as_deref(),
            StateUpdate::RequiresAction(state) => state.background.as_deref(),
            #[cfg(feature = "unstable")]
            StateUpdate::Unknown(state) => state.background.as_deref(),
            StateUpdate::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn same(text: &str) -> StateUpdate {
        let state: StateUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
        state
    }

    #[test]
    fn unlisted_states_and_reasons_are_kept() {
        // shows V2-21, V2-35
        assert!(matches!(same(r#"{"state":"_sleeping","until":5}"#), StateUpdate::Other(_)));
        let StateUpdate::Idle(idle) = same(r#"{"state":"idle","stopReason":"_vendor","detail":1}"#) else {
            panic!()
        };
        assert_eq!(idle.stop_reason.unwrap().as_str(), "_vendor");
        assert!(serde_json::from_str::<StateUpdate>("{}").is_err());
    }

    #[test]
    fn an_idle_state_knows_its_reason() {
        let text = r#"{"state":"idle","stopReason":"error","error":{"code":-32000,"message":"log in"}}"#;
        let StateUpdate::Idle(idle) = same(text) else { panic!() };
        let Some(StopReason::Error(reason)) = idle.stop_reason else { panic!() };
        assert_eq!(reason.error.unwrap().message, "log in");
        for text in [
            r#"{"state":"idle"}"#,
            r#"{"state":"idle","stopReason":null}"#,
            r#"{"state":"idle","stopReason":5}"#,
        ] {
            let state: StateUpdate = serde_json::from_str(text).unwrap();
            assert_eq!(state, IdleStateUpdate::new(None).into(), "{text}");
        }
    }

    #[test]
    fn an_empty_list_of_background_work_is_not_an_absent_one() {
        // shows V2-36
        assert_eq!(same(r#"{"state":"running","background":[]}"#).background(), Some(&[][..]));
        assert_eq!(same(r#"{"state":"running"}"#).background(), None);
        let state = same(
            r#"{"state":"idle","background":[{"type":"_job","n":1},{"type":"terminal","terminalId":"t"}]}"#,
        );
        assert_eq!(state.background().unwrap().len(), 2);
        // A list with a hole would report less work than there is.
        let text =
            r#"{"state":"idle","background":[{"type":"tool_call"},{"type":"terminal","terminalId":"t"}]}"#;
        assert_eq!(serde_json::from_str::<StateUpdate>(text).unwrap().background(), None);
    }
}
