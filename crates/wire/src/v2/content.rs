//! Content blocks of prompts, messages and tool calls.

pub use crate::v1::{BlobResourceContents, EmbeddedResourceResource, TextResourceContents};

use crate::shape::*;

open_enum! {
    /// An audience of content.
    pub enum Role {
        /// The model.
        Assistant = "assistant",
        /// The user.
        User = "user",
    }
}

object! {
    /// Hints about how to use a piece of content; receivers may ignore them.
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
    /// An image.
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
    /// Sound.
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

open_enum! {
    /// The background that an icon is made for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}

object! {
    /// An icon to show.
    pub struct Icon {
        required {
            /// Where the image is: a URL, or a `data:` URI.
            src "src": String [Required],
        }
        optional {
            /// The media type.
            mime_type "mimeType": Option<String> [LenientText],
            /// The sizes it is made for, such as `48x48` or `any`.
            sizes "sizes": Option<Vec<String>> [SkipInvalid],
            /// The background it is made for.
            theme "theme": Option<IconTheme> [LenientText],
        }
    }
}

object! {
    /// A pointer to something the agent can fetch itself.
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
            /// Icons to show.
            icons "icons": Option<Vec<Icon>> [SkipInvalid],
            /// The media type.
            mime_type "mimeType": Option<String> [LenientText],
            /// How many bytes it has.
            size "size": Option<u64> [Lenient],
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

tagged! {
    /// One block of content. All but text is boxed: nearly every block is text, and blocks are moved about a lot.
    pub enum ContentBlock by "type" {
        /// Text; every agent takes it.
        Text(TextContent) = "text",
        /// An image; needs the capability `prompt.image`.
        Image(Box<ImageContent>) = "image",
        /// Sound; needs the capability `prompt.audio`.
        Audio(Box<AudioContent>) = "audio",
        /// A pointer to a resource; every agent takes it.
        ResourceLink(Box<ResourceLink>) = "resource_link",
        /// A resource that is included; needs the capability `prompt.embeddedContext`.
        Resource(Box<EmbeddedResource>) = "resource",
    }
    other Other
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn unknown_blocks_are_kept_and_known_ones_must_be_right() {
        // shows V2-20, V2-21
        let text = r#"{"type":"_hologram","depth":3,"data":{"a":null}}"#;
        let block: ContentBlock = serde_json::from_str(text).unwrap();
        assert!(matches!(&block, ContentBlock::Other(unknown) if unknown.get("depth") == Some(3)));
        assert_eq!(serde_json::to_string(&block).unwrap(), text);
        for bad in [r#"{"type":"text"}"#, r#"{"text":"x"}"#, r#"{"type":"image","data":"","mimeType":5}"#] {
            assert!(serde_json::from_str::<ContentBlock>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_audiences_are_kept() {
        // shows V2-21
        let text = r#"{"audience":["user","_robot"]}"#;
        let hints: Annotations = serde_json::from_str(text).unwrap();
        assert_eq!(hints.audience, Some(vec![Role::User, Role::Other("_robot".to_owned())]));
        assert_eq!(serde_json::to_string(&hints).unwrap(), text);
    }
}
