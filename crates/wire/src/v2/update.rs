//! `session/update`: progress and changes of a session.

use crate::shape::*;
use crate::v2::{
    AgentMessage, AgentThought, AvailableCommandsUpdate, CompactionSummaryChunk, CompactionUpdate,
    ConfigOptionUpdate, ContentBlock, ContentChunk, MessageId, Notice, PlanUpdate, SessionId, StateUpdate,
    TerminalOutputChunk, TerminalUpdate, ToolCallContentChunk, ToolCallUpdate, UsageUpdate, UserMessage,
};
#[cfg(feature = "unstable")]
use crate::v2::{PlanRemoved, SessionMessage, SessionMessageChunk, SubagentUpdate};
use crate::{Meta, Patch};

object! {
    // V2-17
    /// Changes the title or time of a session. Absent members stay, `null` clears.
    pub struct SessionInfoUpdate {
        optional {
            /// Its title.
            title "title": Patch<String> [PatchText],
            /// When it was last active, as RFC 3339 text.
            updated_at "updatedAt": Patch<String> [PatchText],
            // V2-18
            /// Custom metadata of extensions (`_meta`), patched by key.
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

tagged! {
    // V2-21
    /// One update of a session. Unlisted kinds are kept for relays and shown generically or not at
    /// all. Large payloads are boxed: most updates are pieces of text.
    pub enum SessionUpdate by "sessionUpdate" [no_from] {
        /// A piece of the user's message.
        UserMessageChunk(ContentChunk) = "user_message_chunk",
        /// The user's message.
        UserMessage(UserMessage) = "user_message",
        /// A piece of the agent's message.
        AgentMessageChunk(ContentChunk) = "agent_message_chunk",
        /// The agent's message.
        AgentMessage(AgentMessage) = "agent_message",
        /// A piece of the agent's thoughts.
        AgentThoughtChunk(ContentChunk) = "agent_thought_chunk",
        /// A thought of the agent.
        AgentThought(AgentThought) = "agent_thought",
        /// The state.
        StateUpdate(Box<StateUpdate>) = "state_update",
        /// Content that is appended to a tool call.
        ToolCallContentChunk(Box<ToolCallContentChunk>) = "tool_call_content_chunk",
        /// A tool call.
        ToolCallUpdate(Box<ToolCallUpdate>) = "tool_call_update",
        /// A terminal.
        TerminalUpdate(Box<TerminalUpdate>) = "terminal_update",
        /// Output that is appended to a terminal.
        TerminalOutputChunk(TerminalOutputChunk) = "terminal_output_chunk",
        /// A plan.
        PlanUpdate(PlanUpdate) = "plan_update",
        /// A plan was removed.
        #[cfg(feature = "unstable")]
        PlanRemoved(PlanRemoved) = "plan_removed",
        /// The slash commands.
        AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
        /// The config options.
        ConfigOptionUpdate(ConfigOptionUpdate) = "config_option_update",
        /// Title and time.
        SessionInfoUpdate(SessionInfoUpdate) = "session_info_update",
        /// How full the context window is.
        UsageUpdate(UsageUpdate) = "usage_update",
        /// A message to show once.
        Notice(Notice) = "notice",
        /// A compaction.
        CompactionUpdate(Box<CompactionUpdate>) = "compaction_update",
        /// A piece of a compaction's summary.
        CompactionSummaryChunk(CompactionSummaryChunk) = "compaction_summary_chunk",
        /// A child session.
        #[cfg(feature = "unstable")]
        SubagentUpdate(Box<SubagentUpdate>) = "subagent_update",
        /// A message between sessions.
        #[cfg(feature = "unstable")]
        SessionMessage(Box<SessionMessage>) = "session_message",
        /// A piece of a message between sessions.
        #[cfg(feature = "unstable")]
        SessionMessageChunk(SessionMessageChunk) = "session_message_chunk",
    }
    other Other
}

// Chunks are left out, because three variants have that type.
from_payloads! {
    SessionUpdate:
    UserMessage, AgentMessage, AgentThought, StateUpdate(Box), ToolCallContentChunk(Box), ToolCallUpdate(Box),
    TerminalUpdate(Box), TerminalOutputChunk, PlanUpdate, AvailableCommandsUpdate, ConfigOptionUpdate,
    SessionInfoUpdate, UsageUpdate, Notice, CompactionUpdate(Box), CompactionSummaryChunk,
}

#[cfg(feature = "unstable")]
from_payloads! {
    SessionUpdate:
    PlanRemoved, SubagentUpdate(Box), SessionMessage(Box), SessionMessageChunk,
}

impl SessionUpdate {
    /// A piece of the agent's message.
    pub fn agent_message(message_id: impl Into<MessageId>, content: impl Into<ContentBlock>) -> Self {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(message_id, content))
    }

    /// A piece of the agent's thoughts.
    pub fn agent_thought(message_id: impl Into<MessageId>, content: impl Into<ContentBlock>) -> Self {
        SessionUpdate::AgentThoughtChunk(ContentChunk::new(message_id, content))
    }

    /// A piece of the user's message.
    pub fn user_message(message_id: impl Into<MessageId>, content: impl Into<ContentBlock>) -> Self {
        SessionUpdate::UserMessageChunk(ContentChunk::new(message_id, content))
    }
}

object! {
    /// Reports an update of a session.
    pub struct UpdateSessionNotification {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The update.
            update "update": SessionUpdate [Required],
        }
    }
}

crate::notifications! {
    "session/update": UpdateSessionNotification,
}

impl SessionUpdate {
    /// Reads the params of `session/update` in their usual form: without whitespace, the session id
    /// first. Returns `None` for any other form, which `serde_json` has to read.
    #[doc(hidden)]
    pub fn read_params(params: &str) -> Option<(std::borrow::Cow<'_, str>, Self)> {
        crate::UpdateParams::open(params)?.read()
    }

    /// Reads params that were opened. Returns `None` if `serde_json` has to read them.
    #[doc(hidden)]
    pub fn read_opened(params: crate::UpdateParams<'_>) -> Option<(std::borrow::Cow<'_, str>, Self)> {
        params.read()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn same(text: &str) -> SessionUpdate {
        let update: SessionUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
        update
    }

    #[test]
    fn unlisted_kinds_are_kept_and_listed_ones_must_be_right() {
        // shows V2-16, V2-20, V2-21
        assert!(matches!(same(r#"{"sessionUpdate":"_x","a":[1,null]}"#), SessionUpdate::Other(_)));
        for bad in [
            "{}",
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}"#,
            r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"t"}"#,
            r#"{"sessionUpdate":"state_update"}"#,
            r#"{"sessionUpdate":"config_option_update","configOptions":null}"#,
        ] {
            assert!(serde_json::from_str::<SessionUpdate>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_state_shares_the_object_of_its_update() {
        // shows V2-21
        let update = same(r#"{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}"#);
        assert!(
            matches!(update, SessionUpdate::StateUpdate(state) if matches!(*state, StateUpdate::Idle(_)))
        );
        let text = r#"{"until":5,"sessionUpdate":"state_update","state":"_sleeping"}"#;
        let update: SessionUpdate = serde_json::from_str(text).unwrap();
        let again: SessionUpdate = serde_json::from_str(&serde_json::to_string(&update).unwrap()).unwrap();
        let SessionUpdate::StateUpdate(state) = again else { panic!("{again:?}") };
        let StateUpdate::Other(state) = *state else { panic!("{state:?}") };
        assert_eq!((state.tag.as_str(), state.get("until")), ("_sleeping", Some(5)));
    }
}
