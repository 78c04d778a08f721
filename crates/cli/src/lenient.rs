//! Parts of messages that are read although the rest of the message is wrong.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

/// Deserialises a member; a value of another type counts as absent.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// The response to a prompt. Any reason is accepted, because it is shown as it is.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptResult {
    #[serde(deserialize_with = "lenient")]
    pub(crate) stop_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) usage: Option<TokenCounts>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cost: Option<Cost>,
}

impl PromptResult {
    pub(crate) fn parse(json: &str) -> PromptResult {
        serde_json::from_str(json).unwrap_or_default()
    }
}

/// Token counts of a turn. Some agents report only a part of them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TokenCounts {
    #[serde(deserialize_with = "lenient")]
    pub(crate) input_tokens: Option<Number>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) output_tokens: Option<Number>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cached_read_tokens: Option<Number>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) cached_write_tokens: Option<Number>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) total_tokens: Option<Number>,
}

/// The cost of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Cost {
    #[serde(deserialize_with = "lenient")]
    pub(crate) amount: Option<Number>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) currency: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_member_does_not_hide_the_others() {
        let json = r#"{"stopReason":"new_reason","usage":{"inputTokens":"many","totalTokens":7},"cost":3}"#;
        let result = PromptResult::parse(json);
        assert_eq!(result.stop_reason.as_deref(), Some("new_reason"));
        let usage = result.usage.unwrap_or_default();
        assert_eq!((usage.input_tokens, usage.total_tokens), (None, Some(7.into())));
        assert!(result.cost.is_none());
        assert!(PromptResult::parse("null").stop_reason.is_none());
    }
}
