//! Prompts: `session/prompt` and `session/cancel`.

use crate::shape::*;
use crate::v2::{ContentBlock, MessageId, SessionId};

object! {
    /// Sends a message of the user; several may wait at once.
    pub struct PromptRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The message, at least one block; a malformed block makes the whole prompt invalid.
            prompt "prompt": Vec<ContentBlock> [RequiredList],
        }
    }
}

object! {
    // V2-08
    /// The message is inserted into the conversation. The work on it is not done yet.
    pub struct PromptResponse {
        required {
            /// Id of the message, as its updates name it.
            message_id "messageId": MessageId [Required],
        }
    }
}

object! {
    /// Cancels foreground work and prompts that are not inserted yet.
    pub struct CancelSessionNotification {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

crate::methods! {
    "session/prompt": PromptRequest => PromptResponse,
}

crate::notifications! {
    "session/cancel": CancelSessionNotification,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_answer_names_the_message() {
        // shows V2-08
        assert!(serde_json::from_str::<PromptResponse>("{}").is_err());
        assert!(serde_json::from_str::<PromptResponse>("null").is_err());
        assert_eq!(serde_json::from_str::<PromptResponse>(r#"{"messageId":"m"}"#).unwrap().message_id, "m");
    }

    #[test]
    fn no_block_of_a_prompt_is_lost() {
        // shows V2-20
        let read = |prompt: &str| {
            serde_json::from_str::<PromptRequest>(&format!(r#"{{"sessionId":"s","prompt":{prompt}}}"#))
        };
        assert!(read(r#""x""#).is_err() && read("null").is_err() && read(r#"[{"type":"text"}]"#).is_err());
        let prompt = read(r#"[{"type":"_x"}]"#).unwrap().prompt;
        assert!(matches!(&prompt[..], [ContentBlock::Other(_)]));
    }
}
