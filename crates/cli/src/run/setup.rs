//! What an agent and its session are started with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::mcp;
use crate::agents::{Address, AgentSpec};
use crate::connect::credentials;
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::lend::Sandbox;
use crate::paths::Paths;
use crate::session_store::Record;

/// All that is needed to start an agent and a session, or to find the session again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setup {
    pub(crate) spec: AgentSpec,
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    /// As they go over the wire.
    pub(crate) mcp_servers: Vec<Value>,
    /// A text that replaces the agent's own, or `{"append": text}`.
    pub(crate) system_prompt: Option<Value>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) model: Option<String>,
    pub(crate) fs: bool,
    pub(crate) terminal: bool,
    /// Whether the agent's commands run in a sandbox.
    pub(crate) sandbox: bool,
    pub(crate) start_timeout: Duration,
    pub(crate) cancel_timeout: Duration,
    pub(crate) credentials: BTreeMap<String, String>,
    pub(crate) must_authenticate: bool,
}

impl Setup {
    /// What flags and settings say.
    pub(crate) fn new(cx: &Cx) -> Result<Setup> {
        Setup::of(cx, cx.agent()?)
    }

    /// The same for an agent that is meant in another way.
    pub(crate) fn of(cx: &Cx, spec: AgentSpec) -> Result<Setup> {
        let config = &cx.config;
        let system_prompt = match (&cx.flags.system_prompt, &cx.flags.append_system_prompt) {
            (Some(text), _) if !text.trim().is_empty() => Some(json!(text)),
            (_, Some(text)) if !text.trim().is_empty() => Some(json!({ "append": text })),
            (None, None) => None,
            _ => return Err(Failure::usage("the system prompt is empty")),
        };
        let credentials = credentials(cx, &spec);
        Ok(Setup {
            model: config.text("model").map(str::to_owned).or_else(|| spec.model.clone()),
            spec,
            cwd: cx.cwd.clone(),
            directories: cx.directories()?,
            mcp_servers: mcp::servers(cx)?,
            system_prompt,
            allowed_tools: cx.flags.allowed_tools.as_deref().map(tools).transpose()?,
            max_turns: config.count("max_turns"),
            fs: config.is("fs"),
            terminal: config.is("terminal"),
            sandbox: config.is("sandbox"),
            start_timeout: config.seconds("start_timeout").unwrap_or(Duration::from_secs(60)),
            cancel_timeout: config.seconds("cancel_timeout").unwrap_or(Duration::from_secs(10)),
            credentials,
            must_authenticate: config.text("auth_policy") == Some("fail"),
        })
    }

    /// The same for a session that was recorded: what it was started with holds, unless something else is said now.
    pub(crate) fn with_record(mut self, record: &Record) -> Setup {
        self.cwd.clone_from(&record.cwd);
        if self.directories.is_empty() {
            self.directories.clone_from(&record.directories);
        }
        self.system_prompt = self.system_prompt.or_else(|| record.system_prompt.clone());
        self.allowed_tools = self.allowed_tools.or_else(|| record.allowed_tools.clone());
        self
    }

    /// The values that must not be seen.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let env = self.spec.env.iter().filter(|(name, _)| attache_host::secrets::is_secret_name(name));
        env.map(|(_, value)| value.clone()).chain(self.credentials.values().cloned()).collect()
    }

    /// The sandbox of the agent's commands.
    pub(crate) fn command_sandbox(&self, paths: &Paths) -> Sandbox {
        Sandbox { always: self.sandbox, hidden: paths.all() }
    }

    pub(crate) fn to_json(&self) -> Value {
        let (kind, words) = match &self.spec.address {
            Address::Command { command, args } => {
                ("command", std::iter::once(command).chain(args).cloned().collect::<Vec<_>>())
            }
            Address::Tcp(address) => ("tcp", vec![address.clone()]),
            Address::Unix(path) => ("unix", vec![path.to_string_lossy().into_owned()]),
        };
        json!({
            "name": self.spec.name,
            "known": self.spec.known,
            "address": { "kind": kind, "words": words },
            "env": self.spec.env.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
            "agentCwd": self.spec.cwd,
            "missingFilesAreEmpty": self.spec.missing_files_are_empty,
            "agentMode": self.spec.mode,
            "agentModel": self.spec.model,
            "cwd": self.cwd,
            "directories": self.directories,
            "mcpServers": self.mcp_servers,
            "systemPrompt": self.system_prompt,
            "allowedTools": self.allowed_tools,
            "maxTurns": self.max_turns,
            "model": self.model,
            "fs": self.fs,
            "terminal": self.terminal,
            "sandbox": self.sandbox,
            "startTimeout": self.start_timeout.as_secs_f64(),
            "cancelTimeout": self.cancel_timeout.as_secs_f64(),
            "credentials": self.credentials,
            "mustAuthenticate": self.must_authenticate,
        })
    }

    /// The way back. `None` if the other process is of another version.
    pub(crate) fn from_json(value: &Value) -> Option<Setup> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let yes = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
        let seconds = |key: &str| Duration::try_from_secs_f64(value.get(key)?.as_f64()?).ok();
        let words = texts(value.pointer("/address/words")?)?;
        let first = || words.first().cloned().unwrap_or_default();
        let address = match value.pointer("/address/kind")?.as_str()? {
            "tcp" => Address::Tcp(first()),
            "unix" => Address::Unix(first().into()),
            _ => Address::command(words.clone()).ok()?,
        };
        let env = value.get("env")?.as_array()?.iter().filter_map(|pair| {
            let mut pair = texts(pair)?.into_iter();
            Some((pair.next()?, pair.next()?))
        });
        let credentials = value.get("credentials")?.as_object()?.iter();
        Some(Setup {
            spec: AgentSpec {
                name: text("name")?,
                known: yes("known"),
                address,
                env: env.collect(),
                cwd: text("agentCwd").map(PathBuf::from),
                missing_files_are_empty: value.get("missingFilesAreEmpty").and_then(Value::as_bool),
                mode: text("agentMode"),
                model: text("agentModel"),
            },
            cwd: PathBuf::from(text("cwd")?),
            directories: texts(value.get("directories")?)?.into_iter().map(PathBuf::from).collect(),
            mcp_servers: value.get("mcpServers")?.as_array()?.clone(),
            system_prompt: value.get("systemPrompt").filter(|value| !value.is_null()).cloned(),
            allowed_tools: value.get("allowedTools").and_then(texts),
            max_turns: value.get("maxTurns").and_then(Value::as_u64),
            model: text("model"),
            fs: yes("fs"),
            terminal: yes("terminal"),
            sandbox: yes("sandbox"),
            start_timeout: seconds("startTimeout")?,
            cancel_timeout: seconds("cancelTimeout")?,
            credentials: credentials
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            must_authenticate: yes("mustAuthenticate"),
        })
    }

    /// What agents read that know no other way: the `_meta` of claude-agent-acp, which others pass over.
    pub(crate) fn meta(&self, native_system_prompt: bool) -> Option<Value> {
        let mut meta = Map::new();
        if let Some(prompt) = self.system_prompt.as_ref().filter(|_| !native_system_prompt) {
            meta.insert("systemPrompt".to_owned(), prompt.clone());
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

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A list of tools; an empty text is an empty list.
fn tools(list: &str) -> Result<Vec<String>> {
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    let tools: Vec<String> = list.split(',').map(|tool| tool.trim().to_owned()).collect();
    if tools.iter().any(String::is_empty) {
        return Err(Failure::usage("--allowed-tools is a list separated by commas, without empty places"));
    }
    Ok(tools)
}
