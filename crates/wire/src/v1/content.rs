//! Content blocks of prompts, messages and tool calls (CONT-01 to CONT-08).

use crate::shape::*;

closed_enum! {
    /// An audience of content.
    pub enum Role {
        /// The model.
        Assistant = "assistant",
        /// The user.
        User = "user",
    }
}

object! {
    /// Hints about how to use a piece of content; receivers may ignore them (CONT-06).
    pub struct Annotations {
        optional {
            /// The intended audience.
            audience "audience": Option<Vec<Role>> [SkipInvalid],
            /// When the content was last changed, as ISO 8601 text.
            last_modified "lastModified": Option<String> [LenientText],
            /// How much it matters, from 0 (optional) to 1 (essential).
            priority "priority": Option<f64> [Lenient],
        }
    }
}

object! {
    /// Text, plain or Markdown.
    pub struct TextContent {
        required {
            /// The text.
            text "text": String [Required],
        }
        optional {
            /// Hints for the receiver.
            annotations "annotations": Option<Box<Annotations>> [Lenient],
        }
    }
}

object! {
    /// An image (CONT-03).
    pub struct ImageContent {
        required {
            /// The bytes, as base64.
            data "data": String [Required],
            /// The media type, such as `image/png`.
            mime_type "mimeType": String [Required],
        }
        optional {
            /// Where the image comes from.
            uri "uri": Option<String> [LenientText],
            /// Hints for the receiver.
            annotations "annotations": Option<Box<Annotations>> [Lenient],
        }
    }
}

object! {
    /// Sound (CONT-03).
    pub struct AudioContent {
        required {
            /// The bytes, as base64.
            data "data": String [Required],
            /// The media type, such as `audio/wav`.
            mime_type "mimeType": String [Required],
        }
        optional {
            /// Hints for the receiver.
            annotations "annotations": Option<Box<Annotations>> [Lenient],
        }
    }
}

object! {
    /// A pointer to something the agent can fetch itself (CONT-05).
    pub struct ResourceLink {
        required {
            /// A name to show.
            name "name": String [Required],
            /// The URI.
            uri "uri": String [Required],
        }
        optional {
            /// A longer name to show.
            title "title": Option<String> [LenientText],
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// The media type.
            mime_type "mimeType": Option<String> [LenientText],
            /// How many bytes it has.
            size "size": Option<i64> [Lenient],
            /// Hints for the receiver.
            annotations "annotations": Option<Box<Annotations>> [Lenient],
        }
    }
}

object! {
    /// A resource whose text is included.
    pub struct TextResourceContents {
        required {
            /// Where it comes from.
            uri "uri": String [Required],
            /// The text.
            text "text": String [Required],
        }
        optional {
            /// The media type.
            mime_type "mimeType": Option<String> [LenientText],
        }
    }
}

object! {
    /// A resource whose bytes are included.
    pub struct BlobResourceContents {
        required {
            /// Where it comes from.
            uri "uri": String [Required],
            /// The bytes, as base64.
            blob "blob": String [Required],
        }
        optional {
            /// The media type.
            mime_type "mimeType": Option<String> [LenientText],
        }
    }
}

/// The contents of an embedded resource (CONT-04).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EmbeddedResourceResource {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl<'de> serde::Deserialize<'de> for EmbeddedResourceResource {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Members::deserialize(deserializer)?;
        // A resource with both is text, as every other reader has it.
        if members.has("text") {
            TextResourceContents::from_map(members.rest()).map(EmbeddedResourceResource::Text)
        } else {
            BlobResourceContents::from_map(members.rest()).map(EmbeddedResourceResource::Blob)
        }
    }
}

impl serde::Serialize for EmbeddedResourceResource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EmbeddedResourceResource::Text(text) => text.serialize(serializer),
            EmbeddedResourceResource::Blob(blob) => blob.serialize(serializer),
        }
    }
}

impl From<TextResourceContents> for EmbeddedResourceResource {
    fn from(text: TextResourceContents) -> Self {
        EmbeddedResourceResource::Text(text)
    }
}

impl From<BlobResourceContents> for EmbeddedResourceResource {
    fn from(blob: BlobResourceContents) -> Self {
        EmbeddedResourceResource::Blob(blob)
    }
}

object! {
    /// A resource that travels with the message.
    pub struct EmbeddedResource {
        required {
            /// The resource.
            resource "resource": EmbeddedResourceResource [Required],
        }
        optional {
            /// Hints for the receiver.
            annotations "annotations": Option<Box<Annotations>> [Lenient],
        }
    }
}

tagged! {
    /// One block of content. CONT-07: in version 1 the list is closed. All but text is boxed: nearly every block is
    /// text, and blocks are moved about a lot.
    pub enum ContentBlock by "type" {
        /// Text; every agent takes it (INIT-21).
        Text(TextContent) = "text",
        /// An image; needs the prompt capability `image`.
        Image(Box<ImageContent>) = "image",
        /// Sound; needs the prompt capability `audio`.
        Audio(Box<AudioContent>) = "audio",
        /// A pointer to a resource; every agent takes it (INIT-21).
        ResourceLink(Box<ResourceLink>) = "resource_link",
        /// A resource that is included; needs the prompt capability `embeddedContext`.
        Resource(Box<EmbeddedResource>) = "resource",
    }
}

/// Boxes large payloads.
macro_rules! from_boxed {
    ($($variant:ident($ty:ty)),+) => {
        $(impl From<$ty> for ContentBlock {
            fn from(block: $ty) -> Self {
                ContentBlock::$variant(Box::new(block))
            }
        })+
    };
}

from_boxed!(Image(ImageContent), Audio(AudioContent), ResourceLink(ResourceLink), Resource(EmbeddedResource));

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        ContentBlock::Text(TextContent::new(text))
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        ContentBlock::Text(TextContent::new(text))
    }
}

impl ContentBlock {
    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            ContentBlock::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}
