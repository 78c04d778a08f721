//! Requests to a model: messages made of parts, and the tools it may call.
//!
//! The store keeps messages as JSON:
//!
//! ```json
//! {"role":"assistant","parts":[{"type":"text","text":"hello"},{"type":"call","id":"c1","name":"read","arguments":{}}]}
//! ```

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A request to a model.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The system prompt.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools that it may call.
    pub tools: Vec<ToolSpec>,
    /// How long it may think.
    pub thinking: Thinking,
    /// The most tokens of the response; `None` for the model's own limit.
    pub max_output: Option<u32>,
    /// How random the response is; `None` for the provider's default.
    pub temperature: Option<f64>,
    /// Whether the model may search the web with the provider's own tool. The provider's settings
    /// must allow it too.
    pub web_search: bool,
    /// The same for all requests of one conversation, so that a provider finds its cache again.
    pub cache_key: Option<String>,
}

impl Request {
    /// The name of each called tool by the call's id: some providers want it with the result.
    pub(super) fn tool_names(&self) -> HashMap<&str, &str> {
        let calls = self.messages.iter().flat_map(Message::calls);
        calls.map(|call| (call.id.as_str(), call.name.as_str())).collect()
    }
}

/// How long a model may think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// Not at all, if the model allows that.
    #[default]
    Off,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// As long as it takes.
    High,
}

impl Thinking {
    /// All levels, least first.
    pub const ALL: [Thinking; 4] = [Thinking::Off, Thinking::Low, Thinking::Medium, Thinking::High];

    /// The level's id on the wire, in flags and in files.
    pub fn id(self) -> &'static str {
        match self {
            Thinking::Off => "off",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
        }
    }

    /// The level with this id.
    pub fn from_id(id: &str) -> Option<Self> {
        Thinking::ALL.into_iter().find(|level| level.id() == id)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Thinking::Off => "Off",
            Thinking::Low => "Low",
            Thinking::Medium => "Medium",
            Thinking::High => "High",
        }
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, and the tools that answer the model's calls.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Part {
    /// Text.
    Text(#[serde(serialize_with = "serialize_text", deserialize_with = "deserialize_text")] String),
    /// An image.
    Image {
        /// The media type, such as `image/png`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// Audio.
    Audio {
        /// The media type, such as `audio/wav`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// The model's reasoning.
    Thought {
        /// The text, or a summary of it; may be empty.
        text: String,
        /// The provider's signature or encrypted form. Only the same provider gets it back.
        #[serde(rename = "seal", default, skip_serializing_if = "Option::is_none")]
        signature: Option<Value>,
    },
    /// A tool call of the model.
    Call(ToolCall),
    /// The result of a tool call.
    Result {
        /// The id of the call.
        call: String,
        /// Text and images.
        parts: Vec<Part>,
        /// Whether the tool failed.
        #[serde(default)]
        failed: bool,
    },
}

#[derive(Serialize, Deserialize)]
struct TextMember<T> {
    text: T,
}

// serde's internal tags need a map, so a text is written as one.
fn serialize_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    TextMember { text }.serialize(serializer)
}

fn deserialize_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    TextMember::deserialize(deserializer).map(|member| member.text)
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the conversation; generated if the provider gave none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, an object.
    pub arguments: Value,
    /// Like the signature of a thought: some providers sign calls.
    #[serde(rename = "seal", default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Value>,
}

/// The description of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to call it.
    pub about: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: Value,
}

impl Message {
    /// A message of the user with text only.
    pub fn user(text: impl Into<String>) -> Self {
        Message::from_user(vec![Part::Text(text.into())])
    }

    /// A message of the model with text only.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message { role: Role::Assistant, parts: vec![Part::Text(text.into())] }
    }

    pub(crate) fn from_user(parts: Vec<Part>) -> Self {
        Message { role: Role::User, parts }
    }

    /// The text parts, without thoughts and results.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// The tool calls.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Whether it starts a turn: a message of the user with results continues one.
    pub(super) fn starts_turn(&self) -> bool {
        self.role == Role::User && !self.parts.iter().any(|part| matches!(part, Part::Result { .. }))
    }

    /// An estimate of its size in bytes; about four of them make a token.
    pub(crate) fn size(&self) -> usize {
        self.parts.iter().map(Part::size).sum()
    }
}

impl ToolSpec {
    /// An estimate of its size in bytes; about four of them make a token.
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.about.len() + self.schema.to_string().len()
    }
}

impl Part {
    /// An estimate of its size in bytes; about four of them make a token.
    pub(crate) fn size(&self) -> usize {
        match self {
            Part::Text(text) | Part::Thought { text, .. } => text.len(),
            Part::Call(call) => call.name.len() + call.arguments.to_string().len(),
            Part::Result { parts, .. } => parts.iter().map(Part::size).sum(),
            // Providers count media by other measures; this is about right for most.
            Part::Image { .. } | Part::Audio { .. } => 6000,
        }
    }
}

/// An estimate of the tokens in this many bytes.
pub(crate) fn estimate_tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}

/// The text parts among these, joined.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_part_survives_the_store() {
        let call = ToolCall {
            id: "c1".into(),
            name: "read".into(),
            arguments: json!({"path": "a"}),
            signature: Some(json!({"of": "gemini"})),
        };
        let image = Part::Image { mime: "image/png".into(), data: "AA==".into() };
        let message = Message {
            role: Role::Assistant,
            parts: vec![
                Part::Text("a \"b\"\n".into()),
                image.clone(),
                Part::Audio { mime: "audio/wav".into(), data: "AA==".into() },
                Part::Thought {
                    text: String::new(),
                    signature: Some(json!({"of": "anthropic", "signature": "s"})),
                },
                Part::Thought { text: "hm".into(), signature: None },
                Part::Call(call),
                Part::Result { call: "c1".into(), parts: vec![Part::Text("x".into()), image], failed: true },
            ],
        };
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message, "{text}");
    }

    #[test]
    fn the_stored_form_does_not_change() {
        let stored = json!({"role": "assistant", "parts": [
            {"type": "text", "text": "hello"},
            {"type": "thought", "text": "hm", "seal": {"of": "x"}},
            {"type": "thought", "text": "hm"},
            {"type": "call", "id": "c1", "name": "read", "arguments": {}, "seal": 1},
            {"type": "result", "call": "c1", "parts": [], "failed": false},
        ]});
        let message: Message = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), stored);
    }

    #[test]
    fn invalid_messages_are_refused() {
        for text in [
            "[]",
            r#"{"role":"system","parts":[]}"#,
            r#"{"role":"user"}"#,
            r#"{"role":"user","parts":[{"type":"smell"}]}"#,
            r#"{"role":"user","parts":[{"type":"text"}]}"#,
            r#"{"role":"user","parts":[{"type":"call","id":"1","name":"x"}]}"#,
        ] {
            assert!(serde_json::from_str::<Message>(text).is_err(), "{text}");
        }
    }
}
