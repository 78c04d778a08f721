//! Messages that can be changed after they were sent.

use std::fmt;

use attache_wire::v1::{ContentBlock, ContentChunk, MessageId, SessionUpdate};
use serde::ser::{Serialize, Serializer};

use super::client::Recordable;
use super::sender::UpdateSender;
use super::v2::{self, MessageIds};
use crate::Result;
use crate::id::unique_id;

/// A message or thought of the agent, with an id of its own. Made by
/// [`Turn::message`](super::Turn::message) and [`Turn::thought`](super::Turn::thought). Several may
/// grow at the same time.
///
/// Version 1 cannot take text back. There [`replace`](Message::replace) sends only what is
/// appended, if the new text starts with the old one, and otherwise the whole text as a new
/// message; [`clear`](Message::clear) sends nothing, and later text is a new message.
///
/// ```
/// use attache::agent::Turn;
///
/// async fn answer(turn: Turn<'_>) -> attache::Result<()> {
///     let mut message = turn.message();
///     message.say("Looking").await?;
///     message.say(" …").await?;
///     message.replace("Found 3 files.").await
/// }
/// ```
// V2-16, V2-17
pub struct Message {
    sender: UpdateSender,
    kind: MessageKind,
    id: MessageId,
    /// The message in version 1, which is another one after text was taken back.
    v1_id: MessageId,
    text: String,
    /// Whether the present message of version 1 holds something else than `text`.
    differs: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum MessageKind {
    Answer,
    Thought,
}

impl MessageKind {
    fn chunk(self, chunk: ContentChunk) -> SessionUpdate {
        match self {
            MessageKind::Answer => SessionUpdate::AgentMessageChunk(chunk),
            MessageKind::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        }
    }
}

impl Message {
    pub(super) fn answer(sender: UpdateSender) -> Self {
        Message::new(sender, MessageKind::Answer)
    }

    pub(super) fn thought(sender: UpdateSender) -> Self {
        Message::new(sender, MessageKind::Thought)
    }

    fn new(sender: UpdateSender, kind: MessageKind) -> Self {
        let id: MessageId = unique_id("msg");
        Message { sender, kind, v1_id: id.clone(), id, text: String::new(), differs: false }
    }

    /// The id of the message. In version 1 it changes when text is taken back.
    pub fn id(&self) -> &MessageId {
        if self.sender.is_v2() { &self.id } else { &self.v1_id }
    }

    /// Appends text.
    pub async fn say(&mut self, text: impl AsRef<str>) -> Result<()> {
        let text = text.as_ref();
        self.fresh_if_differs();
        self.text.push_str(text);
        self.append(text).await
    }

    /// Appends a content block.
    pub async fn show(&mut self, block: impl Into<ContentBlock>) -> Result<()> {
        self.fresh_if_differs();
        let sent = self.append(block.into()).await;
        self.differs = true;
        sent
    }

    async fn append(&self, block: impl Into<ContentBlock>) -> Result<()> {
        let chunk = ContentChunk::new(block).message_id(self.v1_id.clone());
        let update = Appended { id: &self.id, update: self.kind.chunk(chunk) };
        self.sender.send(&update).await
    }

    /// Replaces everything that was said.
    pub async fn replace(&mut self, text: impl Into<String>) -> Result<()> {
        let text = text.into();
        let rest = match text.strip_prefix(self.text.as_str()) {
            Some(rest) if !self.differs => rest,
            _ => {
                self.differs = true;
                self.fresh_if_differs();
                text.as_str()
            }
        };
        let chunk = ContentChunk::new(rest).message_id(self.v1_id.clone());
        let v1 = (!rest.is_empty()).then(|| self.kind.chunk(chunk));
        self.text.clone_from(&text);
        self.upsert(&[ContentBlock::from(text)], v1).await
    }

    /// Removes everything that was said. The message stays and can be filled again.
    pub async fn clear(&mut self) -> Result<()> {
        self.differs |= !self.text.is_empty();
        self.text.clear();
        self.upsert(&[], None).await
    }

    async fn upsert(&self, content: &[ContentBlock], v1: Option<SessionUpdate>) -> Result<()> {
        if v1.is_none() && !self.sender.is_v2() {
            return Ok(());
        }
        let thought = self.kind == MessageKind::Thought;
        self.sender.send(&Replaced { id: &self.id, thought, content, v1 }).await
    }

    fn fresh_if_differs(&mut self) {
        if std::mem::take(&mut self.differs) {
            self.v1_id = unique_id("msg");
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(self.id()).finish()
    }
}

/// A piece of a message; the id of version 1 is in the update.
struct Appended<'a> {
    id: &'a MessageId,
    update: SessionUpdate,
}

impl Recordable for Appended<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        Some(self.update.clone())
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        // The next piece without an id belongs to another message.
        ids.end_message();
        let (kind, chunk) = match &self.update {
            SessionUpdate::AgentThoughtChunk(chunk) => ("agent_thought_chunk", chunk),
            SessionUpdate::AgentMessageChunk(chunk) => ("agent_message_chunk", chunk),
            other => return other.serialize(serializer),
        };
        v2::message(kind, self.id, &chunk.content, serializer)
    }
}

impl Serialize for Appended<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.update.serialize(serializer)
    }
}

/// The whole content of a message.
struct Replaced<'a> {
    id: &'a MessageId,
    thought: bool,
    content: &'a [ContentBlock],
    /// Its translation, if version 1 has one.
    v1: Option<SessionUpdate>,
}

impl Recordable for Replaced<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        self.v1.clone()
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        ids.end_message();
        let kind = if self.thought { "agent_thought" } else { "agent_message" };
        v2::message(kind, self.id, self.content, serializer)
    }
}

impl Serialize for Replaced<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.v1.serialize(serializer)
    }
}
