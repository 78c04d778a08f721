//! A system prompt from the client. Unstable.

pub use crate::v1::SystemPromptMode;

use crate::v2::ContentBlock;

#[path = "../../both/system_prompt.rs"]
mod both;
pub use both::*;
