//! The settings as typed values.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

/// The values of all keys in [`KEYS`](super::KEYS), one field each. A key that has no default is an
/// `Option`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) default_agent: String,
    pub(crate) model: Option<String>,
    pub(crate) format: String,
    pub(crate) permissions: String,
    pub(crate) permission_policy: Option<String>,
    pub(crate) non_interactive_permissions: String,
    pub(crate) auth_policy: String,
    pub(crate) exec: bool,
    pub(crate) protocol: Option<String>,
    pub(crate) mcp_server: bool,
    pub(crate) fs: bool,
    pub(crate) terminal: bool,
    pub(crate) sandbox: bool,
    pub(crate) diagnostics: Option<String>,
    pub(crate) hook_before_tool: Option<String>,
    pub(crate) hook_after_tool: Option<String>,
    pub(crate) hook_turn_end: Option<String>,
    #[serde(default, deserialize_with = "some_seconds")]
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) prompt_retries: u64,
    #[serde(deserialize_with = "seconds")]
    pub(crate) ttl: Duration,
    pub(crate) queue_max_depth: usize,
    #[serde(deserialize_with = "seconds")]
    pub(crate) start_timeout: Duration,
    #[serde(deserialize_with = "seconds")]
    pub(crate) cancel_timeout: Duration,
    pub(crate) notify: String,
    #[serde(deserialize_with = "seconds")]
    pub(crate) notify_after: Duration,
    pub(crate) checkpoints: bool,
    pub(crate) title: bool,
    pub(crate) log: Option<String>,
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn some_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    seconds(deserializer).map(Some)
}
