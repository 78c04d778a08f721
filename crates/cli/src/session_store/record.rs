//! What is known of a session.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// A session as it is recorded. The names in JSON are those that scripts for acpx know.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record {
    /// Names the record; it stays when the agent's session is replaced.
    pub(crate) id: String,
    /// The agent's name for the session.
    pub(crate) session_id: String,
    /// The agent's name for it in its own store, if that is another one.
    pub(crate) agent_session: Option<String>,
    /// What the agent is called here, if it is a known one.
    pub(crate) agent: Option<String>,
    /// How the agent is reached.
    pub(crate) agent_command: String,
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) created_at: String,
    pub(crate) last_used_at: String,
    pub(crate) last_prompt_at: Option<String>,
    pub(crate) closed_at: Option<String>,
    /// Turns so far.
    pub(crate) turns: u64,
    /// It came from elsewhere: the agent must find it, a new one would not be the same.
    pub(crate) imported: bool,
    /// Whether the agent can find it again. Unknown before the agent was asked.
    pub(crate) restorable: Option<bool>,
    /// What the user has set, to be set again when the agent has been restarted.
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) options: Vec<(String, Value)>,
    /// What the agent says is set now, and what it offers.
    pub(crate) current_mode: Option<String>,
    pub(crate) current_model: Option<String>,
    pub(crate) models: Vec<String>,
    /// What the session was started with.
    pub(crate) system_prompt: Option<Value>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// The agent's process, and how the last one ended.
    pub(crate) pid: Option<u32>,
    pub(crate) agent_started_at: Option<String>,
    pub(crate) last_exit_code: Option<i32>,
    pub(crate) last_exit_signal: Option<String>,
    pub(crate) last_exit_at: Option<String>,
    pub(crate) disconnect_reason: Option<String>,
    /// Members that a newer version wrote.
    rest: Map<String, Value>,
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

    /// How people call it: its name, or `cwd`.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or("cwd")
    }

    /// `None` if it is not a record.
    pub(crate) fn from_json(value: Value) -> Option<Record> {
        let Value::Object(mut map) = value else { return None };
        let mut take = Take(&mut map);
        let record = Record {
            id: take.text("acpxRecordId")?,
            session_id: take.text("acpSessionId")?,
            agent_session: take.text("agentSessionId"),
            agent: take.text("agentName"),
            agent_command: take.text("agentCommand")?,
            cwd: PathBuf::from(take.text("cwd")?),
            directories: take
                .texts("additionalDirectories")
                .unwrap_or_default()
                .into_iter()
                .map(Into::into)
                .collect(),
            name: take.text("name"),
            title: take.text("title"),
            created_at: take.text("createdAt")?,
            last_used_at: take.text("lastUsedAt")?,
            last_prompt_at: take.text("lastPromptAt"),
            closed_at: take.text("closedAt"),
            turns: take.number("turns").unwrap_or_default(),
            imported: take.yes("imported").unwrap_or_default(),
            restorable: take.yes("restorable"),
            mode: take.text("desiredModeId"),
            model: take.text("desiredModelId"),
            options: take.object("desiredConfigOptions"),
            current_mode: take.text("currentModeId"),
            current_model: take.text("currentModelId"),
            models: take.texts("availableModels").unwrap_or_default(),
            system_prompt: take.0.remove("systemPrompt").filter(|value| !value.is_null()),
            allowed_tools: take.texts("allowedTools"),
            pid: take.number("pid"),
            agent_started_at: take.text("agentStartedAt"),
            last_exit_code: take.number("lastAgentExitCode"),
            last_exit_signal: take.text("lastAgentExitSignal"),
            last_exit_at: take.text("lastAgentExitAt"),
            disconnect_reason: take.text("lastAgentDisconnectReason"),
            rest: Map::new(),
        };
        map.remove("closed");
        Some(Record { rest: map, ..record })
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut map = self.rest.clone();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                map.insert(key.to_owned(), value);
            }
        };
        put("acpxRecordId", json!(self.id));
        put("acpSessionId", json!(self.session_id));
        put("agentSessionId", json!(self.agent_session));
        put("agentName", json!(self.agent));
        put("agentCommand", json!(self.agent_command));
        put("cwd", json!(self.cwd));
        if !self.directories.is_empty() {
            put("additionalDirectories", json!(self.directories));
        }
        put("name", json!(self.name));
        put("title", json!(self.title));
        put("createdAt", json!(self.created_at));
        put("lastUsedAt", json!(self.last_used_at));
        put("lastPromptAt", json!(self.last_prompt_at));
        put("closed", json!(self.is_closed()));
        put("closedAt", json!(self.closed_at));
        put("turns", json!(self.turns));
        if self.imported {
            put("imported", json!(true));
        }
        put("restorable", json!(self.restorable));
        put("desiredModeId", json!(self.mode));
        put("desiredModelId", json!(self.model));
        if !self.options.is_empty() {
            put("desiredConfigOptions", Value::Object(self.options.iter().cloned().collect()));
        }
        put("currentModeId", json!(self.current_mode));
        put("currentModelId", json!(self.current_model));
        if !self.models.is_empty() {
            put("availableModels", json!(self.models));
        }
        put("systemPrompt", json!(self.system_prompt));
        put("allowedTools", json!(self.allowed_tools));
        put("pid", json!(self.pid));
        put("agentStartedAt", json!(self.agent_started_at));
        put("lastAgentExitCode", json!(self.last_exit_code));
        put("lastAgentExitSignal", json!(self.last_exit_signal));
        put("lastAgentExitAt", json!(self.last_exit_at));
        put("lastAgentDisconnectReason", json!(self.disconnect_reason));
        Value::Object(map)
    }
}

/// Takes members out of an object.
struct Take<'a>(&'a mut Map<String, Value>);

impl Take<'_> {
    fn text(&mut self, key: &str) -> Option<String> {
        match self.0.remove(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        match self.0.remove(key)? {
            Value::Array(items) => {
                Some(items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
            }
            _ => None,
        }
    }

    fn number<T: TryFrom<i64>>(&mut self, key: &str) -> Option<T> {
        self.0.remove(key)?.as_i64().and_then(|number| T::try_from(number).ok())
    }

    fn yes(&mut self, key: &str) -> Option<bool> {
        self.0.remove(key)?.as_bool()
    }

    fn object(&mut self, key: &str) -> Vec<(String, Value)> {
        match self.0.remove(key) {
            Some(Value::Object(map)) => map.into_iter().collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_also_what_this_version_does_not_know() {
        let mut record = Record::new("s-1", "agent --acp", Path::new("/work"), "2026-11-15T10:00:00.000Z");
        record.name = Some("api".to_owned());
        record.options = vec![("effort".to_owned(), json!("high"))];
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
