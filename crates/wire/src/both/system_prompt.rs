//! A system prompt from the client. Content blocks differ between the versions.

use super::{ContentBlock, SystemPromptMode};
use crate::shape::*;

object! {
    /// A system prompt from the client. It is read strictly, so that no part of it is lost
    /// unnoticed.
    pub struct SystemPrompt { // SYSP-02
        required {
            /// How the prompt is combined with the agent's own. Agents refuse unlisted modes.
            mode "mode": SystemPromptMode [Required], // SYSP-02
            /// The prompt: text blocks, at least one.
            content "content": Vec<ContentBlock> [RequiredList], // SYSP-03
        }
    }
}
