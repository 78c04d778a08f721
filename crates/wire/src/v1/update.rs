//! `session/update`: progress of a turn and changes of a session.

use crate::Patch;
use crate::shape::*;
use crate::v1::{
    AvailableCommandsUpdate, CompactionSummaryChunk, CompactionUpdate, ConfigOptionUpdate, ContentBlock,
    MessageId, Notice, Plan, SessionId, SessionModeId, ToolCall, ToolCallUpdate, UsageUpdate,
};
#[cfg(feature = "unstable")]
use crate::v1::{PlanRemoved, PlanUpdate, SessionMessage, SessionMessageChunk, SubagentUpdate};

object! {
    /// A piece of a message.
    pub struct ContentChunk {
        required {
            /// The piece.
            content "content": ContentBlock [Required],
        }
        optional {
            /// The message it belongs to. Without ids a change of kind begins a new message.
            message_id "messageId": Option<MessageId> [LenientText], // MSG-01, MSG-04
        }
    }
}

object! {
    /// The session's mode is another one now.
    pub struct CurrentModeUpdate { // MODE-07
        required {
            /// The mode.
            current_mode_id "currentModeId": SessionModeId [Required],
        }
    }
}

object! {
    /// Changes the title or time of a session: absent members stay, `null` clears.
    pub struct SessionInfoUpdate { // LIST-12
        optional {
            /// Its title.
            title "title": Patch<String> [PatchLenient],
            /// When it was last active, as ISO 8601 text.
            updated_at "updatedAt": Patch<String> [PatchLenient],
        }
    }
}

tagged! {
    /// One update of a session. Unlisted kinds are kept as
    /// [`Other`](SessionUpdate::Other), so that one of them never ends a session.
    pub enum SessionUpdate by "sessionUpdate" [no_from] { // PROMPT-16
        /// A chunk of the user's message; sent when a session is replayed.
        UserMessageChunk(ContentChunk) = "user_message_chunk",
        /// A chunk of the agent's message.
        AgentMessageChunk(ContentChunk) = "agent_message_chunk",
        /// A chunk of the agent's thoughts.
        AgentThoughtChunk(ContentChunk) = "agent_thought_chunk",
        /// A new tool call.
        ToolCall(Box<ToolCall>) = "tool_call",
        /// A change of a tool call.
        ToolCallUpdate(Box<ToolCallUpdate>) = "tool_call_update",
        /// The plan.
        Plan(Plan) = "plan",
        /// One of several plans.
        #[cfg(feature = "unstable")]
        PlanUpdate(PlanUpdate) = "plan_update",
        /// A plan was removed.
        #[cfg(feature = "unstable")]
        PlanRemoved(PlanRemoved) = "plan_removed",
        /// The slash commands.
        AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
        /// The mode.
        CurrentModeUpdate(CurrentModeUpdate) = "current_mode_update",
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
    ToolCall(Box), ToolCallUpdate(Box), Plan, AvailableCommandsUpdate, CurrentModeUpdate, ConfigOptionUpdate,
    SessionInfoUpdate, UsageUpdate, Notice, CompactionUpdate(Box), CompactionSummaryChunk,
}

#[cfg(feature = "unstable")]
from_payloads! {
    SessionUpdate:
    PlanUpdate, PlanRemoved, SubagentUpdate(Box), SessionMessage(Box), SessionMessageChunk,
}

impl SessionUpdate {
    /// A chunk of the agent's message.
    pub fn agent_message(content: impl Into<ContentBlock>) -> Self {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(content))
    }

    /// A chunk of the agent's thoughts.
    pub fn agent_thought(content: impl Into<ContentBlock>) -> Self {
        SessionUpdate::AgentThoughtChunk(ContentChunk::new(content))
    }

    /// A chunk of the user's message.
    pub fn user_message(content: impl Into<ContentBlock>) -> Self {
        SessionUpdate::UserMessageChunk(ContentChunk::new(content))
    }
}

object! {
    /// Reports an update of a session.
    pub struct SessionNotification { // PROMPT-12
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The update.
            update "update": SessionUpdate [Required],
        }
    }
}

crate::notifications! {
    "session/update": SessionNotification,
}

impl SessionUpdate {
    /// Reads the params of `session/update` in their usual form: without whitespace, the session id
    /// first. Returns `None` for any other form, which `serde_json` has to read.
    #[doc(hidden)]
    pub fn read_params(params: &str) -> Option<(std::borrow::Cow<'_, str>, Self)> {
        crate::UpdateParams::open(params)?.read()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(update: &str) -> serde_json::Result<SessionUpdate> {
        serde_json::from_str::<SessionNotification>(&format!(r#"{{"sessionId":"s","update":{update}}}"#))
            .map(|notification| notification.update)
    }

    #[test]
    fn the_tag_may_stand_anywhere() {
        let first =
            read(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\nb"}}"#);
        let last = read(r#"{"content":{"text":"a\nb","type":"text"},"sessionUpdate":"agent_message_chunk"}"#);
        assert_eq!(first.unwrap(), SessionUpdate::agent_message("a\nb"));
        assert_eq!(last.unwrap(), SessionUpdate::agent_message("a\nb"));
        let middle =
            read(r#"{"title":"t","sessionUpdate":"tool_call","toolCallId":"c","rawInput":{"a":[1]}}"#);
        let SessionUpdate::ToolCall(call) = middle.unwrap() else { panic!() };
        assert_eq!((&*call.title, call.raw_input.unwrap().get()), ("t", r#"{"a":[1]}"#));
    }

    #[test]
    fn streams_and_trees_are_read_as_well_as_text() {
        let text = r#"{"sessionId":"s","update":{"content":{"text":"é","type":"text"},"messageId":"m","sessionUpdate":"agent_message_chunk"}}"#;
        let whole: SessionNotification = serde_json::from_str(text).unwrap();
        let chunk = ContentChunk::new("é").message_id(MessageId::from("m"));
        assert_eq!(whole.update, SessionUpdate::AgentMessageChunk(chunk));
        assert_eq!(serde_json::from_slice::<SessionNotification>(text.as_bytes()).unwrap(), whole);
        assert_eq!(serde_json::from_reader::<_, SessionNotification>(text.as_bytes()).unwrap(), whole);
        let tree: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::from_value::<SessionNotification>(tree).unwrap(), whole);
    }

    #[test]
    fn unknown_kinds_are_kept_and_written_as_they_came() {
        // shows PROMPT-16
        let text = r#"{"sessionUpdate":"future_update","a":{"b":[1, 2]},"\u00e9\"":null}"#;
        let SessionUpdate::Other(unknown) = read(text).unwrap() else { panic!() };
        assert_eq!(unknown.tag, "future_update");
        let again = serde_json::to_string(&unknown).unwrap();
        assert_eq!(again, "{\"sessionUpdate\":\"future_update\",\"a\":{\"b\":[1, 2]},\"é\\\"\":null}");
        assert_eq!(read(&again).unwrap(), SessionUpdate::Other(unknown));
        let SessionUpdate::Other(moved) = read(r#"{"a":1,"sessionUpdate":"x","b":2}"#).unwrap() else {
            panic!()
        };
        assert_eq!(moved.object.get(), r#"{"sessionUpdate":"x","a":1,"b":2}"#);
    }

    #[test]
    fn malformed_updates_are_refused() {
        // shows PROMPT-16, PROMPT-18, TOOL-03, CONT-07, CMD-03, MODE-07
        for bad in [
            r#"{"sessionUpdate":"agent_message_chunk","content":"text"}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":[{"type":"text","text":"x"}]}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk"}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"c"}"#,
            r#"{"sessionUpdate":"tool_call","title":"t"}"#,
            r#"{"sessionUpdate":"current_mode_update","modeId":"code"}"#,
            r#"{"sessionUpdate":"available_commands_update"}"#,
            r#"{"sessionUpdate":5}"#,
            r#"{"kind":"agent-text"}"#,
            r#"["agent_message_chunk"]"#,
            "null",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let flat = r#"{"sessionId":"s","kind":"agent-text","content":"x"}"#;
        assert!(serde_json::from_str::<SessionNotification>(flat).is_err());
    }

    #[test]
    fn a_message_id_that_is_none_is_ignored() {
        // shows MSG-02
        let text =
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"messageId":5}"#;
        assert_eq!(read(text).unwrap(), SessionUpdate::agent_message("x"));
    }

    #[test]
    fn session_info_has_three_states() {
        // shows LIST-12
        let text = r#"{"sessionUpdate":"session_info_update","title":null,"updatedAt":5}"#;
        let update = read(text).unwrap();
        assert_eq!(update, SessionInfoUpdate::new().title(None).into());
        let again = serde_json::to_string(&update).unwrap();
        assert_eq!(again, r#"{"sessionUpdate":"session_info_update","title":null}"#);
    }
}
