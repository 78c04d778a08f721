//! The record of a session.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A session as it is recorded. The names in JSON are those that scripts for acpx know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// The id of the record, which stays when the agent's session is replaced.
    #[serde(rename = "acpxRecordId")]
    pub(crate) id: String,
    /// The agent's id of the session.
    #[serde(rename = "acpSessionId")]
    pub(crate) session_id: String,
    /// The agent's id in its own store, if that is another one.
    #[serde(rename = "agentSessionId")]
    pub(crate) agent_session: Option<String>,
    /// The name of the agent, if it is a known one.
    #[serde(rename = "agentName")]
    pub(crate) agent: Option<String>,
    /// The agent's command or address.
    pub(crate) agent_command: String,
    pub(crate) cwd: PathBuf,
    #[serde(rename = "additionalDirectories", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) created_at: String,
    pub(crate) last_used_at: String,
    pub(crate) last_prompt_at: Option<String>,
    pub(crate) closed_at: Option<String>,
    /// Turns so far.
    #[serde(default)]
    pub(crate) turns: u64,
    /// Whether it was imported: the agent must find it, because a new one would not be the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) imported: bool,
    /// Whether the agent can find it again. Unknown before the agent was asked.
    pub(crate) restorable: Option<bool>,
    /// Settings of the user, applied again when the agent is restarted.
    #[serde(rename = "desiredModeId")]
    pub(crate) mode: Option<String>,
    #[serde(rename = "desiredModelId")]
    pub(crate) model: Option<String>,
    #[serde(rename = "desiredConfigOptions", default, skip_serializing_if = "Map::is_empty")]
    pub(crate) options: Map<String, Value>,
    /// Settings and models that the agent reports.
    #[serde(rename = "currentModeId")]
    pub(crate) current_mode: Option<String>,
    #[serde(rename = "currentModelId")]
    pub(crate) current_model: Option<String>,
    #[serde(rename = "availableModels", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) models: Vec<String>,
    /// Parameters that the session was started with.
    #[serde(default, deserialize_with = "crate::lenient::lenient")]
    pub(crate) system_prompt: Option<SystemPromptText>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// The agent's process, and the end of the last one.
    pub(crate) pid: Option<u32>,
    pub(crate) agent_started_at: Option<String>,
    /// The version of the protocol that the agent last answered with.
    pub(crate) protocol_version: Option<u16>,
    #[serde(rename = "lastAgentExitCode")]
    pub(crate) last_exit_code: Option<i32>,
    #[serde(rename = "lastAgentExitSignal")]
    pub(crate) last_exit_signal: Option<String>,
    #[serde(rename = "lastAgentExitAt")]
    pub(crate) last_exit_at: Option<String>,
    #[serde(rename = "lastAgentDisconnectReason")]
    pub(crate) disconnect_reason: Option<String>,
    /// Members that a newer version wrote.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// The system prompt of a session. In JSON a text, or `{"append": text}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SystemPromptText {
    /// Replaces the agent's own.
    Replace(String),
    /// Is added to the agent's own.
    Append { append: String },
}

impl Record {
    pub(crate) fn new(session_id: &str, agent_command: &str, cwd: &Path, now: &str) -> Record {
        Record {
            id: session_id.to_owned(),
            session_id: session_id.to_owned(),
            agent_command: agent_command.to_owned(),
            cwd: cwd.to_owned(),
            created_at: now.to_owned(),
            last_used_at: now.to_owned(),
            ..Record::default()
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }

    /// The name for people: its name, or `cwd`.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or("cwd")
    }

    /// Reads a record; `None` if a member is missing.
    pub(crate) fn from_json(mut value: Value) -> Option<Record> {
        value.as_object_mut()?.remove("closed");
        serde_json::from_value(value).ok()
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.retain(|_, value| !value.is_null());
            map.insert("closed".to_owned(), Value::Bool(self.is_closed()));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_round_trips_with_unknown_members() {
        let mut record = Record::new("s-1", "agent --acp", Path::new("/work"), "2026-11-15T10:00:00.000Z");
        record.name = Some("api".to_owned());
        record.options.insert("effort".to_owned(), json!("high"));
        record.turns = 3;
        let mut value = record.to_json();
        assert_eq!(Record::from_json(value.clone()), Some(record));
        if let Some(map) = value.as_object_mut() {
            map.insert("new".to_owned(), json!([1]));
        }
        let again = Record::from_json(value.clone()).map(|record| record.to_json());
        assert_eq!(again, Some(value));
        assert_eq!(Record::from_json(json!({ "cwd": "/" })), None);
    }
}
