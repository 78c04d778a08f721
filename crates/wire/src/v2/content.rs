//! Content blocks of prompts, messages and tool calls.

pub use crate::v1::{BlobResourceContents, EmbeddedResourceResource, TextResourceContents};

use crate::shape::*;

#[path = "../both/content.rs"]
mod both;
pub use both::*;

open_enum! {
    /// An audience of content.
    pub enum Role {
        /// The model.
        Assistant = "assistant",
        /// The user.
        User = "user",
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

tagged! {
    /// One block of content. All but text is boxed: nearly every block is text, and blocks are
    /// moved about a lot.
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
