//! Requests in the form of version 2.

use std::sync::atomic::{AtomicU64, Ordering};

use attache_wire::v1::{
    CreateElicitationRequest, ElicitationPropertySchema, ElicitationSchema, ElicitationScope, RequestId,
    RequestPermissionRequest, SessionConfigOptionValue, SessionInfo, StringFormat, StringPropertySchema,
    ToolCallUpdate, ToolKind,
};
use attache_wire::{Json, Meta, v2};

use super::{convert, update};
use crate::client::agent::AgentHandle;
use crate::client::ask::{PermissionCommand, PermissionDetails};
use crate::client::elicitation::mode_not_offered;
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
    let (mut command, mut has_call) = (None, true);
    let mut call = match request.subject {
        Some(v2::RequestPermissionSubject::ToolCall(subject)) => update::tool_call(subject.tool_call).0,
        Some(v2::RequestPermissionSubject::Command(subject)) => {
            has_call = subject.tool_call_id.is_some();
            let id = subject.tool_call_id.unwrap_or_else(|| made_up().into());
            let input = serde_json::json!({ "command": subject.command, "cwd": subject.cwd });
            let mut call = ToolCallUpdate::new(id);
            call.title = Some(subject.command.clone());
            call.kind = Some(ToolKind::Execute);
            call.raw_input = Json::new(&input).ok();
            command = Some(PermissionCommand { command: subject.command, cwd: subject.cwd });
            call
        }
        _ => {
            has_call = false;
            ToolCallUpdate::new(made_up())
        }
    };
    call.title = call.title.or_else(|| Some(request.title.clone()));
    let options = convert::permission_options(request.options);
    let (title, description) = (Some(request.title), request.description);
    let details = PermissionDetails { title, description, command, has_call };
    Ok((RequestPermissionRequest::new(request.session_id, call, options).meta(request.meta), details))
}

/// A question in the form of version 1. A text of a format that version 1 lacks has none.
// V2-21, ELIC-33
pub(crate) fn elicitation(request: v2::CreateElicitationRequest) -> Result<CreateElicitationRequest, String> {
    let scope: ElicitationScope = match request.scope {
        v2::ElicitationScope::Session(scope) => scope.into(),
        v2::ElicitationScope::Request(scope) => match scope.request_id {
            v2::RequestId::Number(number) => RequestId::Number(number).into(),
            v2::RequestId::Str(text) => RequestId::Str(text).into(),
        },
        _ => return Err("an elicitation needs `sessionId` or `requestId`".to_owned()),
    };
    let converted = match request.mode {
        v2::ElicitationMode::Form(form) => {
            CreateElicitationRequest::form(scope, request.message, form_schema(form.requested_schema))
        }
        v2::ElicitationMode::Url(url) => {
            CreateElicitationRequest::url(scope, request.message, url.elicitation_id, url.url)
        }
        // ELIC-02
        v2::ElicitationMode::Other(mode) => return Err(mode_not_offered(&mode.tag)),
        _ => return Err("this client does not offer that mode".to_owned()),
    };
    Ok(converted.meta(request.meta))
}

fn form_schema(form: v2::ElicitationSchema) -> ElicitationSchema {
    let mut converted = ElicitationSchema::new().title(form.title).description(form.description);
    converted.required = form.required;
    converted.meta = form.meta;
    for (name, property) in form.properties {
        let property = match property {
            v2::ElicitationPropertySchema::String(text) => text_schema(text).into(),
            v2::ElicitationPropertySchema::Number(number) => number.into(),
            v2::ElicitationPropertySchema::Integer(number) => number.into(),
            v2::ElicitationPropertySchema::Boolean(flag) => flag.into(),
            v2::ElicitationPropertySchema::Array(list) => list.into(),
            v2::ElicitationPropertySchema::Other(other) => ElicitationPropertySchema::Other(other),
            _ => continue,
        };
        converted.properties.insert(name, property);
    }
    converted
}

fn text_schema(text: v2::StringPropertySchema) -> StringPropertySchema {
    let mut converted = StringPropertySchema::new();
    converted.title = text.title;
    converted.description = text.description;
    converted.min_length = text.min_length;
    converted.max_length = text.max_length;
    converted.pattern = text.pattern;
    converted.format = match text.format {
        Some(v2::StringFormat::Email) => Some(StringFormat::Email),
        Some(v2::StringFormat::Uri) => Some(StringFormat::Uri),
        Some(v2::StringFormat::Date) => Some(StringFormat::Date),
        Some(v2::StringFormat::DateTime) => Some(StringFormat::DateTime),
        _ => None,
    };
    converted.default_value = text.default_value;
    converted.values = text.values;
    converted.one_of = text.one_of;
    converted.meta = text.meta;
    converted
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
            let point = serde_json::json!({ "type": "_attache_after", "at": cursor });
            serde_json::from_value(point).map(Some).map_err(Error::internal)
        }
    }
}

/// The same in `_meta` of version 1. As in version 2, an unknown point is an error unless the
/// caller's `_meta` says otherwise.
pub(crate) fn meta_after(meta: Option<Meta>, cursor: &str) -> Result<Meta> {
    let mut members = match &meta {
        Some(meta) => meta.as_json().parse().map_err(Error::internal)?,
        None => serde_json::Map::new(),
    };
    let mut attache = serde_json::json!({ "after": cursor, "strict": true });
    if let (Some(point), Some(serde_json::Value::Object(own))) =
        (attache.as_object_mut(), members.remove("attache"))
    {
        point.extend(own.into_iter().filter(|(name, _)| name != "after"));
    }
    members.insert("attache".to_owned(), attache);
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
