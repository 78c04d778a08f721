//! Content blocks of prompts, messages and tool calls.

// CONT-01 to CONT-08

use crate::shape::*;

#[path = "../both/content.rs"]
mod both;
pub use both::*;

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
    /// A pointer to something the agent can fetch itself.
    pub struct ResourceLink { // CONT-05
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

// CONT-04
/// The contents of an embedded resource.
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

tagged! {
    /// One block of content. In version 1 the list is closed. All but text is boxed: nearly every
    /// block is text, and blocks are moved about a lot.
    pub enum ContentBlock by "type" { // CONT-07
        /// Text; every agent takes it.
        Text(TextContent) = "text", // INIT-21
        /// An image; needs the prompt capability `image`.
        Image(Box<ImageContent>) = "image",
        /// Sound; needs the prompt capability `audio`.
        Audio(Box<AudioContent>) = "audio",
        /// A pointer to a resource; every agent takes it.
        ResourceLink(Box<ResourceLink>) = "resource_link", // INIT-21
        /// A resource that is included; needs the prompt capability `embeddedContext`.
        Resource(Box<EmbeddedResource>) = "resource",
    }
}
