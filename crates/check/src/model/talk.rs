//! What a request to a model means, whichever API it came by.

use serde_json::Value;

/// A request.
#[derive(Debug, Default)]
pub(super) struct Ask {
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) tools: Vec<Tool>,
    /// The conversation, the oldest first.
    pub(crate) turns: Vec<Turn>,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub(crate) name: String,
    /// The JSON schema of its input; null for a tool that takes plain text.
    pub(crate) schema: Value,
}

impl Tool {
    pub(crate) fn takes_text(&self) -> bool {
        self.schema.is_null()
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum Turn {
    User(String),
    Model(String),
    /// What a tool gave.
    Result(String),
}

/// What the model says next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Text(String),
    /// Words until the connection ends.
    Endless,
    /// The request is refused.
    Fail,
    Call {
        tool: String,
        input: Input,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    Json(Value),
    Text(String),
}

impl Reply {
    /// In one line, for the log.
    pub(crate) fn brief(&self) -> String {
        match self {
            Reply::Text(text) => format!("text {text}"),
            Reply::Endless => "endless".to_owned(),
            Reply::Fail => "fail".to_owned(),
            Reply::Call { tool, input: Input::Json(input) } => format!("call {tool} {input}"),
            Reply::Call { tool, input: Input::Text(input) } => format!("call {tool} {input:?}"),
        }
    }
}

/// The texts in a content that may be a text, or a list of parts with texts in them.
pub(super) fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => {
            ["text", "content", "output"].iter().find_map(|key| part.get(*key)).map_or(String::new(), texts)
        }
        _ => String::new(),
    }
}
