//! Text of messages with bounded memory.

use attache_wire::v1::{ContentBlock, SessionUpdate};

use crate::model::Role;

/// The beginning of the text of one role's messages, for owners that keep nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedText {
    role: Role,
    text: String,
    /// Most bytes of `text`.
    limit: usize,
    /// Whether text was dropped. No later text may follow the gap.
    is_full: bool,
}

impl BoundedText {
    /// Creates a text of at most `limit` bytes.
    pub fn new(role: Role, limit: usize) -> BoundedText {
        BoundedText { role, text: String::new(), limit, is_full: false }
    }

    /// Appends the text of a chunk. Returns whether the update is a chunk of the role.
    ///
    /// `describe` returns the text of a block, such as [`ContentBlock::as_text`].
    pub fn fold(
        &mut self,
        update: &SessionUpdate,
        describe: impl for<'a> Fn(&'a ContentBlock) -> Option<&'a str>,
    ) -> bool {
        let (role, chunk) = match update {
            SessionUpdate::AgentMessageChunk(chunk) => (Role::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => (Role::Thought, chunk),
            SessionUpdate::UserMessageChunk(chunk) => (Role::User, chunk),
            _ => return false,
        };
        if role != self.role {
            return false;
        }
        if !self.is_full {
            let text = describe(&chunk.content).unwrap_or_default();
            let whole = self.text.len() + text.len();
            push_bounded(&mut self.text, text, self.limit);
            self.is_full = self.text.len() < whole;
        }
        true
    }

    /// Returns the text so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text so far and begins a new one.
    pub fn take(&mut self) -> String {
        self.is_full = false;
        std::mem::take(&mut self.text)
    }
}

/// Appends text up to a total of `limit` bytes, at a character boundary.
pub fn push_bounded(text: &mut String, more: &str, limit: usize) {
    let mut room = limit.saturating_sub(text.len()).min(more.len());
    while !more.is_char_boundary(room) {
        room -= 1;
    }
    text.push_str(more.get(..room).unwrap_or_default());
}
