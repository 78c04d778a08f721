//! Subagents: sessions that another session started, and messages between them. Unstable.

pub use crate::v1::{SessionCancelCapabilities, SubagentSessionCapabilities};

use crate::shape::*;
use crate::v2::{BackgroundWork, ContentBlock, MessageId, SessionId, StateUpdate};
use crate::{Meta, Patch};

object! {
    /// A subagent that works in the background.
    pub struct BackgroundSubagent {
        required {
            /// Its session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

object! {
    /// The state is unknown; the previous one is no longer confirmed.
    pub struct UnknownStateUpdate {
        optional {
            // V2-36
            /// All background work; absent if it is not reported.
            background "background": Option<Vec<BackgroundWork>> [Lenient],
        }
    }
}

object! {
    // V2-17
    /// Announces or changes a child session. Absent members stay, `null` clears.
    pub struct SubagentUpdate {
        required {
            /// The child.
            session_id "sessionId": SessionId [Required],
        }
        optional {
            /// A title to show.
            title "title": Patch<String> [PatchText],
            /// A description to show.
            description "description": Patch<String> [PatchText],
            /// Operations that the client may request.
            capabilities "capabilities": Patch<SubagentSessionCapabilities> [PatchLenient],
            /// Its state.
            state "state": Patch<StateUpdate> [PatchLenient],
            /// Where it works.
            cwd "cwd": Patch<String> [PatchStrict],
            /// Where else it may work.
            additional_directories "additionalDirectories": Patch<Vec<String>> [PatchStrict],
            // V2-18
            /// Custom metadata of extensions (`_meta`), patched by key.
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    // V2-17
    /// A message from one session to another. Absent members stay, `null` clears.
    pub struct SessionMessage {
        required {
            /// The message, as this session names it.
            message_id "messageId": MessageId [Required],
        }
        optional {
            /// The sender.
            sender_session_id "senderSessionId": Patch<SessionId> [PatchText],
            /// The recipient.
            recipient_session_id "recipientSessionId": Patch<SessionId> [PatchText],
            /// Its name in the sender's session.
            sender_message_id "senderMessageId": Patch<MessageId> [PatchText],
            /// Its name in the recipient's session.
            recipient_message_id "recipientMessageId": Patch<MessageId> [PatchText],
            /// The content.
            content "content": Patch<Vec<ContentBlock>> [PatchSkipInvalid],
            // V2-18
            /// Custom metadata of extensions (`_meta`), patched by key.
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    /// A piece of a message between sessions.
    pub struct SessionMessageChunk {
        required {
            /// The message.
            message_id "messageId": MessageId [Required],
            /// The piece.
            content "content": ContentBlock [Required],
        }
    }
}
