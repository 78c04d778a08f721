//! The parameters of an agent and its session.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use attache::client::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::mcp;
use crate::agents::AgentSpec;
use crate::client_services::Sandbox;
use crate::connect::{ConnectOptions, OnStderr, credentials};
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::paths::Paths;
use crate::session_store::{Record, SystemPromptText};
use crate::wire::Wire;

/// The parameters to start an agent and to start or restore a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionSetup {
    pub(crate) spec: AgentSpec,
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    /// As in the protocol.
    pub(crate) mcp_servers: Vec<Value>,
    pub(crate) system_prompt: Option<SystemPromptText>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) model: Option<String>,
    pub(crate) fs: bool,
    pub(crate) terminal: bool,
    /// Whether agents of version 2 get files and terminals as an MCP server.
    pub(crate) mcp_server: bool,
    /// The version of the protocol, if one was named: `1`, `2` or `auto`.
    pub(crate) protocol: Option<String>,
    /// The file of the versions that agents speak.
    pub(crate) versions: PathBuf,
    /// Whether the agent's commands run in a sandbox.
    pub(crate) sandbox: bool,
    pub(crate) start_timeout: Duration,
    pub(crate) cancel_timeout: Duration,
    pub(crate) credentials: BTreeMap<String, String>,
    pub(crate) must_authenticate: bool,
}

impl SessionSetup {
    /// Reads flags and settings.
    pub(crate) fn new(cx: &Cx) -> Result<SessionSetup> {
        SessionSetup::of(cx, cx.agent()?)
    }

    /// The same for another agent.
    pub(crate) fn of(cx: &Cx, spec: AgentSpec) -> Result<SessionSetup> {
        let settings = &cx.config.settings;
        let system_prompt = match (&cx.flags.system_prompt, &cx.flags.append_system_prompt) {
            (Some(text), _) if !text.trim().is_empty() => Some(SystemPromptText::Replace(text.clone())),
            (_, Some(text)) if !text.trim().is_empty() => {
                Some(SystemPromptText::Append { append: text.clone() })
            }
            (None, None) => None,
            _ => return Err(Failure::usage("the system prompt is empty")),
        };
        let credentials = credentials(cx, &spec);
        Ok(SessionSetup {
            model: settings.model.clone().or_else(|| spec.model.clone()),
            spec,
            cwd: cx.cwd.clone(),
            directories: cx.directories()?,
            mcp_servers: mcp::servers(cx)?,
            system_prompt,
            allowed_tools: cx.flags.allowed_tools.as_deref().map(tools).transpose()?,
            max_turns: settings.max_turns,
            fs: settings.fs,
            terminal: settings.terminal,
            mcp_server: settings.mcp_server,
            protocol: settings.protocol.clone(),
            versions: crate::versions::file(&cx.paths),
            sandbox: settings.sandbox,
            start_timeout: settings.start_timeout,
            cancel_timeout: settings.cancel_timeout,
            credentials,
            must_authenticate: settings.auth_policy == "fail",
        })
    }

    /// Adds the parameters that a recorded session was started with, unless flags override them.
    pub(crate) fn with_record(mut self, record: &Record) -> SessionSetup {
        self.cwd.clone_from(&record.cwd);
        if self.directories.is_empty() {
            self.directories.clone_from(&record.directories);
        }
        self.system_prompt = self.system_prompt.or_else(|| record.system_prompt.clone());
        self.allowed_tools = self.allowed_tools.or_else(|| record.allowed_tools.clone());
        self
    }

    /// Returns the parameters to connect to the agent.
    pub(crate) fn connect_options(
        &self,
        client: Client,
        wire: Option<Wire>,
        on_stderr: OnStderr,
    ) -> ConnectOptions {
        ConnectOptions {
            client,
            cwd: self.cwd.clone(),
            wire,
            on_stderr: Some(on_stderr),
            timeout: self.start_timeout,
            credentials: self.credentials.clone(),
            must_authenticate: self.must_authenticate,
            protocol: self.protocol.clone(),
            versions: self.versions.clone(),
        }
    }

    /// The values to mask.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let env = self.spec.env.iter().filter(|(name, _)| attache_host::secrets::is_secret_name(name));
        env.map(|(_, value)| value.clone()).chain(self.credentials.values().cloned()).collect()
    }

    /// The sandbox of the agent's commands.
    pub(crate) fn command_sandbox(&self, paths: &Paths) -> Sandbox {
        Sandbox { always: self.sandbox, hidden: paths.all() }
    }

    /// The `_meta` of claude-agent-acp for options that the protocol does not have. Other agents
    /// ignore it.
    pub(crate) fn meta(&self, native_system_prompt: bool) -> Option<Value> {
        let mut meta = Map::new();
        if let Some(prompt) = self.system_prompt.as_ref().filter(|_| !native_system_prompt) {
            meta.insert("systemPrompt".to_owned(), json!(prompt));
        }
        let mut options = Map::new();
        if let Some(tools) = &self.allowed_tools {
            options.insert("allowedTools".to_owned(), json!(tools));
        }
        if let Some(turns) = self.max_turns {
            options.insert("maxTurns".to_owned(), json!(turns));
        }
        if !options.is_empty() {
            meta.insert("claudeCode".to_owned(), json!({ "options": options }));
        }
        (!meta.is_empty()).then_some(Value::Object(meta))
    }
}

/// A list of tools; an empty text is an empty list.
fn tools(list: &str) -> Result<Vec<String>> {
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    let tools: Vec<String> = list.split(',').map(|tool| tool.trim().to_owned()).collect();
    if tools.iter().any(String::is_empty) {
        return Err(Failure::usage("--allowed-tools is a comma-separated list without empty items"));
    }
    Ok(tools)
}
