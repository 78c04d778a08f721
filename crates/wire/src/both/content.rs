//! Content blocks with hints about their use. The roles in those hints are open in version 2 only.

use super::{ContentBlock, EmbeddedResourceResource, ResourceLink, Role};
use crate::shape::*;

object! {
    /// Hints about how to use a piece of content; receivers may ignore them.
    pub struct Annotations { // CONT-06
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
    /// An image.
    pub struct ImageContent { // CONT-03
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
    /// Sound.
    pub struct AudioContent { // CONT-03
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
