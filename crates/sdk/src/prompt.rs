//! Prompts.

use std::borrow::Cow;

use attache_wire::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, ImageContent, MessageId,
    ResourceLink, TextResourceContents,
};

/// The content of a prompt: blocks of text, images, audio, links and embedded resources.
///
/// ```
/// use attache::Prompt;
///
/// let prompt = Prompt::from("What does this do?").link("main.rs", "file:///src/main.rs");
/// assert_eq!(prompt.text(), "What does this do?");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    blocks: Vec<ContentBlock>,
    message_id: Option<MessageId>,
}

impl Prompt {
    /// An empty prompt.
    pub fn new() -> Self {
        Prompt::default()
    }

    /// The blocks.
    pub fn blocks(&self) -> &[ContentBlock] {
        &self.blocks
    }

    /// The blocks, by value.
    pub fn into_blocks(self) -> Vec<ContentBlock> {
        self.blocks
    }

    /// The id of the message that the prompt has become: in an agent that serves version 2, `None`
    /// elsewhere. Replay the message with this id.
    pub fn message_id(&self) -> Option<&MessageId> {
        self.message_id.as_ref()
    }

    pub(crate) fn set_message_id(&mut self, id: MessageId) {
        self.message_id = Some(id);
    }

    /// The text of all text blocks, concatenated. Borrowed if there is only one.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.blocks.iter().filter_map(ContentBlock::as_text);
        match (texts.next(), texts.next()) {
            (Some(first), Some(second)) => {
                [first, second].into_iter().chain(texts).collect::<String>().into()
            }
            (first, _) => first.unwrap_or_default().into(),
        }
    }

    /// The slash command at the start of the prompt, and its input.
    // CMD-04, CMD-05
    pub fn command(&self) -> Option<(&str, &str)> {
        let text = self.blocks.iter().find_map(ContentBlock::as_text)?;
        let rest = text.trim_start().strip_prefix('/')?;
        let (name, input) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        (!name.is_empty()).then_some((name, input.trim()))
    }

    /// Adds a block.
    pub fn push(&mut self, block: impl Into<ContentBlock>) {
        self.blocks.push(block.into());
    }

    /// Adds a block.
    pub fn with(mut self, block: impl Into<ContentBlock>) -> Self {
        self.push(block);
        self
    }

    /// Adds an image: base64 data and its media type.
    pub fn image(self, data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.with(ImageContent::new(data, mime_type))
    }

    /// Adds audio: base64 data and its media type.
    pub fn audio(self, data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.with(AudioContent::new(data, mime_type))
    }

    /// Adds a link to a resource that the agent can fetch itself.
    pub fn link(self, name: impl Into<String>, uri: impl Into<String>) -> Self {
        self.with(ResourceLink::new(name, uri))
    }

    /// Embeds a text resource.
    pub fn embed(self, uri: impl Into<String>, text: impl Into<String>) -> Self {
        self.with(EmbeddedResource::new(TextResourceContents::new(uri, text)))
    }

    /// Embeds a binary resource as base64.
    pub fn embed_blob(self, uri: impl Into<String>, blob: impl Into<String>) -> Self {
        self.with(EmbeddedResource::new(BlobResourceContents::new(uri, blob)))
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Prompt { blocks: vec![text.into()], message_id: None }
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Prompt { blocks: vec![text.into()], message_id: None }
    }
}

impl From<ContentBlock> for Prompt {
    fn from(block: ContentBlock) -> Self {
        Prompt { blocks: vec![block], message_id: None }
    }
}

impl From<Vec<ContentBlock>> for Prompt {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Prompt { blocks, message_id: None }
    }
}
