//! A system prompt from the client. Unstable.

use crate::shape::*;
use crate::v1::ContentBlock;

#[path = "../../both/system_prompt.rs"]
mod both;
pub use both::*;

object! {
    /// The agent takes a system prompt from the client; appending always works.
    pub struct SessionSystemPromptCapabilities {
        optional {
            /// Supported modes besides `append`.
            mode "mode": Option<SessionSystemPromptModeCapabilities> [Lenient],
        }
    }
}

object! {
    /// Modes of a system prompt besides `append`.
    pub struct SessionSystemPromptModeCapabilities {
        optional {
            /// `override`.
            overriding "override": Option<SessionSystemPromptOverrideCapabilities> [Lenient],
        }
    }
}

empty_objects! {
    /// The agent lets the client replace its system prompt.
    SessionSystemPromptOverrideCapabilities,
}

open_enum! {
    /// How the prompt is combined with the agent's own.
    pub enum SystemPromptMode {
        /// It stays, and this is added.
        Append = "append", // SYSP-05
        /// This takes its place; needs the capability `systemPrompt.mode.override`.
        Override = "override", // SYSP-01
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn nothing_is_dropped_from_a_system_prompt() {
        // shows SYSP-02
        let read = serde_json::from_str::<SystemPrompt>;
        let text = r#"{"mode":"_x","content":[{"type":"text","text":"Be brief."}]}"#;
        let prompt = read(text).unwrap();
        assert_eq!(prompt.mode, SystemPromptMode::Other("_x".to_owned()));
        assert_eq!(serde_json::to_string(&prompt).unwrap(), text);
        assert!(read(r#"{"content":[]}"#).is_err());
        assert!(read(r#"{"mode":"append","content":null}"#).is_err());
        assert!(read(r#"{"mode":"append","content":"Be brief."}"#).is_err());
        assert!(
            read(r#"{"mode":"append","content":[{"type":"text","text":"a"},{"type":"hologram"}]}"#).is_err()
        );
    }
}
