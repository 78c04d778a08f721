//! One line of a history.

use attache::wire::v1::{ContentBlock, SessionUpdate};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::lenient::{PromptResult, lenient};

/// A message of a turn. Only histories have the members `at` and `request`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HistoryLine {
    #[serde(deserialize_with = "some")]
    pub(crate) id: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) method: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<LineError>,
    /// The time of a prompt or its response; `null` if it is unknown.
    #[serde(deserialize_with = "some")]
    pub(crate) at: Option<Value>,
    /// The request id of the command that sent the prompt.
    #[serde(deserialize_with = "some")]
    pub(crate) request: Option<Value>,
}

/// The error of a response.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LineError {
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: Option<String>,
}

/// Keeps `null` apart from an absent member.
fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// The part of a line that the conversation consists of.
pub(super) enum Entry {
    Prompt(Vec<ContentBlock>),
    Update(Box<SessionUpdate>),
    Other,
}

impl HistoryLine {
    /// Parses a line. `None` if it is not an object, such as a line that was cut off.
    pub(crate) fn parse(line: &[u8]) -> Option<HistoryLine> {
        serde_json::from_slice(line).ok()
    }

    /// Whether the line is a prompt or its response.
    pub(crate) fn is_stamped(&self) -> bool {
        self.at.is_some()
    }

    /// Returns the result of a response, which may be that to a prompt.
    pub(crate) fn result(&self) -> Option<PromptResult> {
        self.result.as_ref().map(|result| PromptResult::parse(result.get()))
    }

    pub(crate) fn stop_reason(&self) -> Option<String> {
        self.result()?.stop_reason
    }

    /// Returns the content. Blocks and updates that cannot be read are left out.
    pub(super) fn entry(&self) -> Entry {
        #[derive(Default, Deserialize)]
        struct Prompt {
            prompt: Vec<Value>,
        }
        #[derive(Deserialize)]
        struct Update {
            update: SessionUpdate,
        }
        let params = self.params.as_ref().map_or("null", |params| params.get());
        match self.method.as_deref() {
            Some("session/prompt") => {
                let Prompt { prompt } = serde_json::from_str(params).unwrap_or_default();
                Entry::Prompt(
                    prompt.iter().filter_map(|block| ContentBlock::deserialize(block).ok()).collect(),
                )
            }
            Some("session/update") => match serde_json::from_str::<Update>(params) {
                Ok(Update { update }) => Entry::Update(Box::new(update)),
                Err(_) => Entry::Other,
            },
            _ => Entry::Other,
        }
    }
}

/// Removes the members that only histories have from a message.
pub(crate) fn without_stamps(message: &mut Map<String, Value>) {
    message.remove("at");
    message.remove("request");
}
