//! Child sessions and messages between sessions. States and content blocks differ between the
//! versions.

use super::{ContentBlock, MessageId, SessionId, StateUpdate, SubagentSessionCapabilities};
use crate::shape::*;
use crate::{Meta, Patch};

object! {
    /// Announces or changes a child session. Absent members stay,
    /// `null` clears.
    pub struct SubagentUpdate { // SUBA-02, SUBA-05
        required {
            /// The child.
            session_id "sessionId": SessionId [Required],
        }
        optional {
            /// A title to show.
            title "title": Patch<String> [PatchLenient],
            /// A description to show.
            description "description": Patch<String> [PatchLenient],
            /// Operations that the client may request.
            capabilities "capabilities": Patch<SubagentSessionCapabilities> [PatchLenient],
            /// The state of its turn.
            state "state": Patch<StateUpdate> [PatchLenient],
            /// Where it works.
            cwd "cwd": Patch<String> [PatchStrict],
            /// Where else it may work.
            additional_directories "additionalDirectories": Patch<Vec<String>> [PatchStrict],
            /// Custom metadata of extensions (`_meta`).
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    /// A message from one session to another. Absent members stay, `null` clears.
    pub struct SessionMessage { // SUBA-05
        required {
            /// The message, as this session names it.
            message_id "messageId": MessageId [Required],
        }
        optional {
            /// The sender.
            sender_session_id "senderSessionId": Patch<SessionId> [PatchLenient],
            /// The recipient.
            recipient_session_id "recipientSessionId": Patch<SessionId> [PatchLenient],
            /// Its name in the sender's session.
            sender_message_id "senderMessageId": Patch<MessageId> [PatchLenient],
            /// Its name in the recipient's session.
            recipient_message_id "recipientMessageId": Patch<MessageId> [PatchLenient],
            /// The content.
            content "content": Patch<Vec<ContentBlock>> [PatchSkipInvalid],
            /// Custom metadata of extensions (`_meta`).
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
