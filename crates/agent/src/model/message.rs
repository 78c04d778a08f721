//! What is said to a model: messages made of parts, and the tools it may call.

use serde_json::Value;

/// One question to a model.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What the model is told about its task, before everything else.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// What it may call.
    pub tools: Vec<ToolSpec>,
    /// How long it may think.
    pub thinking: Thinking,
    /// The most tokens of the answer; `None` leaves it to the model's own limit.
    pub max_output: Option<u32>,
    /// The same for all requests of one conversation, so that a provider can find its cache again.
    pub cache_key: Option<String>,
}

/// How long a model may think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// Not at all, where the model allows that.
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

    /// The word for it: `off`, `low`, `medium`, `high`.
    pub fn word(self) -> &'static str {
        match self {
            Thinking::Off => "off",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
        }
    }

    /// Reads such a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Thinking::ALL.into_iter().find(|level| level.word() == word)
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, and the tools that answer the model's calls.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its media type, such as `image/png`.
        mime: String,
        /// Its bytes in base64.
        data: String,
    },
    /// Sound.
    Audio {
        /// Its media type, such as `audio/wav`.
        mime: String,
        /// Its bytes in base64.
        data: String,
    },
    /// What the model thought, before or between what it said.
    Thought {
        /// The thought, or a summary of it; may be empty.
        text: String,
        /// The provider's signature or its encrypted form. It goes back to the provider that made it, to nobody else.
        seal: Option<Value>,
    },
    /// The model calls a tool.
    Call(ToolCall),
    /// What a tool answered.
    Result {
        /// The id of the call.
        call: String,
        /// The answer: text and pictures.
        parts: Vec<Part>,
        /// Whether the tool failed.
        failed: bool,
    },
}

/// A call that the model made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Unique within the conversation; made up where the provider gave none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// An object.
    pub arguments: Value,
    /// As the seal of a thought: some providers sign calls.
    pub seal: Option<Value>,
}

/// A tool on offer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does and when to call it.
    pub about: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: Value,
}

impl Message {
    /// A message of the user with text only.
    pub fn user(text: impl Into<String>) -> Self {
        Message { role: Role::User, parts: vec![Part::Text(text.into())] }
    }

    /// A message of the model with text only.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message { role: Role::Assistant, parts: vec![Part::Text(text.into())] }
    }

    /// Its text parts, one after the other; thoughts and results do not count.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }

    /// The calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// The text parts among these, one after the other.
pub(crate) fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
