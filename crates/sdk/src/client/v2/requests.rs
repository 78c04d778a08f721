//! Requests in the form of version 2.

use std::sync::atomic::{AtomicU64, Ordering};

use attache_wire::v1::{
    RequestPermissionRequest, SessionConfigOptionValue, SessionInfo, ToolCallUpdate, ToolKind,
};
use attache_wire::{Json, Meta, v2};

use super::{convert, update};
use crate::client::agent::AgentHandle;
use crate::client::ask::{PermissionCommand, PermissionDetails};
use crate::client::session_builder::{CheckedOptions, OpenResponse, Replay};
use crate::client::state::State;
use crate::{Error, Result};

/// Questions without a tool call get one that is made up.
static QUESTIONS: AtomicU64 = AtomicU64::new(1);

/// A question in the form of version 1, and what only version 2 says.
// V2-24
pub(crate) fn permission(
    request: v2::RequestPermissionRequest,
) -> Result<(RequestPermissionRequest, PermissionDetails), String> {
    if request.options.is_empty() {
        return Err("a permission request needs at least one option".to_owned());
    }
    let made_up = || format!("question-{}", QUESTIONS.fetch_add(1, Ordering::Relaxed));
    let mut command = None;
    let mut call = match request.subject {
        Some(v2::RequestPermissionSubject::ToolCall(subject)) => update::tool_call(subject.tool_call).0,
        Some(v2::RequestPermissionSubject::Command(subject)) => {
            let id = subject.tool_call_id.unwrap_or_else(|| made_up().into());
            let input = serde_json::json!({ "command": subject.command, "cwd": subject.cwd });
            let mut call = ToolCallUpdate::new(id);
            call.title = Some(subject.command.clone());
            call.kind = Some(ToolKind::Execute);
            call.raw_input = Json::new(&input).ok();
            command = Some(PermissionCommand { command: subject.command, cwd: subject.cwd });
            call
        }
        _ => ToolCallUpdate::new(made_up()),
    };
    call.title = call.title.or_else(|| Some(request.title.clone()));
    let options = convert::permission_options(request.options);
    let details = PermissionDetails { title: Some(request.title), description: request.description, command };
    Ok((RequestPermissionRequest::new(request.session_id, call, options).meta(request.meta), details))
}

/// Checks that the agent has sessions, and starts the servers that it gets.
// V2-06, MCP-03
pub(crate) fn check_session(agent: &AgentHandle, checked: &CheckedOptions) -> Result<()> {
    let Some(capabilities) = agent.0.capabilities_v2.get() else { return Ok(()) };
    let session = capabilities.session.as_ref().ok_or(Error::Unsupported("sessions"))?;
    let starts_servers = session.mcp.as_ref().is_some_and(|mcp| mcp.stdio.is_some());
    let is_program =
        |server: &attache_wire::v1::McpServer| matches!(server, attache_wire::v1::McpServer::Stdio(_));
    match !starts_servers && checked.options.mcp_servers.iter().any(is_program) {
        true => Err(Error::Unsupported("MCP servers that are programs")),
        false => Ok(()),
    }
}

/// Fills in the members that all requests for sessions have in common.
macro_rules! with_options {
    ($request:expr, $checked:ident) => {{
        let mut request = $request;
        request.additional_directories = $checked.directories.unwrap_or_default();
        request.mcp_servers = convert::mcp_servers($checked.options.mcp_servers)?;
        request.meta = $checked.options.meta;
        #[cfg(feature = "unstable")]
        (request.system_prompt = $checked.options.system_prompt.map(system_prompt));
        request
    }};
}

pub(crate) fn new_session(checked: CheckedOptions) -> Result<v2::NewSessionRequest> {
    Ok(with_options!(v2::NewSessionRequest::new(checked.cwd), checked))
}

pub(crate) fn resume_session(
    id: v2::SessionId,
    checked: CheckedOptions,
    replay: Option<v2::ReplayFrom>,
) -> Result<v2::ResumeSessionRequest> {
    Ok(with_options!(v2::ResumeSessionRequest::new(id, checked.cwd).replay_from(replay), checked))
}

/// The point from which a history is replayed. The cursor is an extension of ours.
pub(crate) fn replay_from(replay: &Replay) -> Result<Option<v2::ReplayFrom>> {
    match replay {
        Replay::None => Ok(None),
        Replay::Start => Ok(Some(v2::ReplayFromStart::new().into())),
        Replay::After(cursor) => {
            let point = serde_json::json!({ "type": "_attache_after", "cursor": cursor });
            serde_json::from_value(point).map(Some).map_err(Error::internal)
        }
    }
}

/// The same in `_meta` of version 1.
pub(crate) fn meta_after(meta: Option<Meta>, cursor: &str) -> Result<Meta> {
    let mut members = match &meta {
        Some(meta) => meta.as_json().parse().map_err(Error::internal)?,
        None => serde_json::Map::new(),
    };
    members.insert("attache".to_owned(), serde_json::json!({ "after": cursor }));
    Meta::new(&members).map_err(Error::internal)
}

#[cfg(feature = "unstable")]
pub(crate) fn fork_session(id: v2::SessionId, checked: CheckedOptions) -> Result<v2::ForkSessionRequest> {
    Ok(with_options!(v2::ForkSessionRequest::new(id, checked.cwd), checked))
}

#[cfg(feature = "unstable")]
fn system_prompt(prompt: attache_wire::v1::SystemPrompt) -> v2::SystemPrompt {
    let text = |block| match block {
        attache_wire::v1::ContentBlock::Text(text) => Some(v2::ContentBlock::from(text.text)),
        _ => None,
    };
    let content: Vec<_> = prompt.content.into_iter().filter_map(text).collect();
    v2::SystemPrompt::new(prompt.mode, content).meta(prompt.meta)
}

macro_rules! open_responses {
    ($($response:ident),+) => {
        $(impl OpenResponse for v2::$response {
            fn apply(self, state: &mut State) {
                // V2-44: an absent list says nothing; empty ones are not written.
                if !self.config_options.is_empty() {
                    state.config_options = convert::options(self.config_options).into();
                    state.derive_modes();
                }
                if !self.available_commands.is_empty() {
                    state.commands = convert::commands(self.available_commands).into();
                }
            }
        })+
    };
}

open_responses!(NewSessionResponse, ResumeSessionResponse);
#[cfg(feature = "unstable")]
open_responses!(ForkSessionResponse);

/// A session in a list.
pub(crate) fn session_info(info: v2::SessionInfo) -> SessionInfo {
    let directories = Some(info.additional_directories).filter(|directories| !directories.is_empty());
    let mut converted = SessionInfo::new(info.session_id, info.cwd);
    converted.additional_directories = directories;
    converted.title = info.title;
    converted.updated_at = info.updated_at;
    #[cfg(feature = "unstable")]
    (converted.archived = info.archived);
    converted.meta(info.meta)
}

/// A new value of a config option.
// V2-40
pub(crate) fn option_value(value: SessionConfigOptionValue) -> Result<v2::SessionConfigOptionValue> {
    match value {
        SessionConfigOptionValue::ValueId(id) => Ok(id.into()),
        SessionConfigOptionValue::Boolean(on) => Ok(on.into()),
        _ => Err(Error::Unsupported("config options with such values")),
    }
}
