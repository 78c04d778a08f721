//! Content blocks inside of tool calls. Their unions are open in version 2 only.

use super::{ContentBlock, ToolCallContent};
use crate::shape::*;

object! {
    /// A content block inside a tool call.
    pub struct Content {
        required {
            /// The block.
            content "content": ContentBlock [Required],
        }
    }
}

impl From<ContentBlock> for ToolCallContent {
    fn from(block: ContentBlock) -> Self {
        ToolCallContent::Content(Content::new(block))
    }
}

impl From<&str> for ToolCallContent {
    fn from(text: &str) -> Self {
        ContentBlock::from(text).into()
    }
}

impl From<String> for ToolCallContent {
    fn from(text: String) -> Self {
        ContentBlock::from(text).into()
    }
}
