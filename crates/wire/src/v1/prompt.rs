//! Turns: `session/prompt` and `session/cancel`.

use crate::shape::*;
#[cfg(feature = "drafts")]
use crate::v1::MessageId;
#[cfg(feature = "unstable")]
use crate::v1::Usage;
use crate::v1::{ContentBlock, SessionId};

object! {
    /// Starts a turn.
    pub struct PromptRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The user's message; a malformed block makes the whole prompt invalid.
            prompt "prompt": Vec<ContentBlock> [RequiredList], // PROMPT-05
        }
        optional {
            /// An id that the client proposes. Only in an older draft; agents ignore it.
            #[cfg(feature = "drafts")]
            message_id "messageId": Option<MessageId> [LenientText], // MSG-03
        }
    }
}

closed_enum! {
    /// Why a turn ended.
    pub enum StopReason { // PROMPT-08
        /// The model was done.
        EndTurn = "end_turn",
        /// The model reached its limit of tokens.
        MaxTokens = "max_tokens",
        /// The turn reached its limit of model requests.
        MaxTurnRequests = "max_turn_requests",
        /// The agent refuses to continue; the prompt is not part of later context.
        Refusal = "refusal", // PROMPT-14
        /// The client cancelled the turn.
        Cancelled = "cancelled", // CANCEL-05
    }
}

object! {
    /// Ends a turn.
    pub struct PromptResponse { // PROMPT-07
        required {
            /// Why it ended.
            stop_reason "stopReason": StopReason [Required],
        }
        optional {
            /// Tokens that the turn used.
            #[cfg(feature = "unstable")]
            usage "usage": Option<Usage> [Lenient], // PROMPT-19
            /// The id that the client proposed, if it was taken. Only in an older draft.
            #[cfg(feature = "drafts")]
            user_message_id "userMessageId": Option<MessageId> [LenientText], // MSG-07
        }
    }
}

object! {
    /// Cancels the session's turn.
    pub struct CancelNotification { // CANCEL-01
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
    "session/cancel": CancelNotification,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_prompt_is_a_list_of_well_formed_blocks() {
        // shows PROMPT-05, PROMPT-22, CONT-07
        let read = |prompt: &str| {
            serde_json::from_str::<PromptRequest>(&format!(r#"{{"sessionId":"s","prompt":{prompt}}}"#))
        };
        assert_eq!(read(r#"[{"text":"x","type":"text"}]"#).unwrap().prompt, [ContentBlock::from("x")]);
        assert_eq!(read("[]").unwrap().prompt, []);
        for bad in [r#""x""#, "null", r#"["x"]"#, r#"[{"type":"text","text":"x"},{"type":"hologram"}]"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_proposed_message_id_does_no_harm() {
        // shows MSG-03, MSG-07
        let text = r#"{"sessionId":"s","prompt":[],"messageId":5}"#;
        assert_eq!(serde_json::from_str::<PromptRequest>(text).unwrap().message_id, None);
    }

    #[test]
    fn stop_reasons_are_closed() {
        // shows PROMPT-08
        for bad in [r#"{"stopReason":"done"}"#, r#"{"stopReason":"canceled"}"#, "{}", "null"] {
            assert!(serde_json::from_str::<PromptResponse>(bad).is_err(), "{bad}");
        }
        let text = r#"{"stopReason":"end_turn","usage":{"totalTokens":1}}"#;
        let response: PromptResponse = serde_json::from_str(text).unwrap();
        assert_eq!(response, PromptResponse::new(StopReason::EndTurn));
    }
}
