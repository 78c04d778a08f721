//! A system prompt from the client. Unstable.

pub use crate::v1::SystemPromptMode;

use crate::shape::*;
use crate::v2::ContentBlock;

object! {
    /// A system prompt from the client, read strictly, so that no part of it is lost unnoticed.
    pub struct SystemPrompt {
        required {
            /// How the prompt is combined with the agent's own.
            mode "mode": SystemPromptMode [Required],
            /// The prompt: text blocks, at least one.
            content "content": Vec<ContentBlock> [RequiredList],
        }
    }
}
