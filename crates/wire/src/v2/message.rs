//! Messages: pieces that are appended, and updates that replace.

use crate::shape::*;
use crate::v2::{ContentBlock, MessageId};
use crate::{Meta, Patch};

object! {
    // V2-17
    /// A piece that is appended to a message. Pieces of several messages may interleave.
    pub struct ContentChunk {
        required {
            // V2-16
            /// The message it belongs to.
            message_id "messageId": MessageId [Required],
            /// The piece.
            content "content": ContentBlock [Required],
        }
    }
}

/// Declares updates of messages, which differ in the author only.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        $(object! {
            $(#[$doc])*
            pub struct $name {
                required {
                    // V2-16
                    /// The message.
                    message_id "messageId": MessageId [Required],
                }
                optional {
                    // V2-17
                    /// The content, which replaces all pieces so far.
                    content "content": Patch<Vec<ContentBlock>> [PatchSkipInvalid],
                    // V2-18
                    /// Custom metadata of extensions (`_meta`), patched by key.
                    meta "_meta": Patch<Meta> [PatchMeta],
                }
                no_meta!
            }
        })+
    };
}

messages! {
    /// Creates or changes a message of the user.
    UserMessage,
    /// Creates or changes a message of the agent.
    AgentMessage,
    /// Creates or changes a thought of the agent.
    AgentThought,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn content_has_three_states() {
        // shows V2-16, V2-17
        let read = |rest: &str| {
            serde_json::from_str::<AgentMessage>(&format!(r#"{{"messageId":"m"{rest}}}"#)).unwrap().content
        };
        assert_eq!(read(""), Patch::Keep);
        assert_eq!(read(r#","content":5"#), Patch::Keep);
        assert_eq!(read(r#","content":null"#), Patch::Clear);
        assert_eq!(read(r#","content":[]"#), Patch::Set(Vec::new()));
        assert_eq!(read(r#","content":[5,{"type":"text","text":"x"}]"#), Patch::Set(vec!["x".into()]));
        assert!(serde_json::from_str::<AgentMessage>(r#"{"content":[]}"#).is_err());
        assert!(serde_json::from_str::<ContentChunk>(r#"{"content":{"type":"text","text":"x"}}"#).is_err());
    }
}
