//! Values of version 2 from and to those of the model.

use attache_wire::v1::{
    AgentAuthCapabilities, AgentCapabilities, Annotations, AudioContent, AuthMethod, AuthMethodAgent,
    AuthMethodTerminal, AvailableCommand, AvailableCommandInput, ClientCapabilities, ContentBlock,
    EmbeddedResource, ImageContent, LogoutCapabilities, McpCapabilities, McpServer, PermissionOption,
    PermissionOptionKind, PromptCapabilities, ResourceLink, Role, SessionCapabilities,
    SessionCloseCapabilities, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelect, SessionConfigSelectGroup, SessionConfigSelectOptions, SessionListCapabilities,
    SessionMode, SessionModeState, SessionResumeCapabilities, StopReason, TextContent, ToolKind,
    UnstructuredCommandInput,
};
use attache_wire::{Meta, v2};

use crate::{Error, Result};

/// The capabilities of a client. Files and terminals do not exist in version 2.
// V2-03
pub(crate) fn client_capabilities(client: ClientCapabilities) -> v2::ClientCapabilities {
    let terminal = client.auth.terminal.then(v2::TerminalAuthCapabilities::new);
    v2::ClientCapabilities::new()
        .auth(terminal.map(|terminal| v2::ClientAuthCapabilities::new().terminal(terminal)))
        .elicitation(client.elicitation)
        .meta(client.meta)
}

/// The capabilities of an agent. `session` stands for all methods that every agent has in
/// version 2.
// V2-05
pub(crate) fn agent_capabilities(agent: v2::AgentCapabilities, has_login: bool) -> AgentCapabilities {
    let mut capabilities = AgentCapabilities::new().meta(agent.meta);
    // V2-07: both login and logout, or none.
    let logout = has_login.then(LogoutCapabilities::new);
    capabilities.auth = AgentAuthCapabilities::new().logout(logout);
    #[cfg(feature = "unstable")]
    {
        capabilities.auth.status = agent.auth.and_then(|auth| auth.status);
        capabilities.providers = agent.providers;
    }
    let Some(session) = agent.session else { return capabilities };
    let prompt = session.prompt.unwrap_or_default();
    capabilities.load_session = true;
    capabilities.prompt_capabilities = PromptCapabilities::new()
        .image(prompt.image.is_some())
        .audio(prompt.audio.is_some())
        .embedded_context(prompt.embedded_context.is_some());
    let mcp = session.mcp.unwrap_or_default();
    capabilities.mcp_capabilities = McpCapabilities::new().http(mcp.http.is_some());
    #[cfg(feature = "unstable")]
    (capabilities.mcp_capabilities.acp = mcp.acp.is_some());
    capabilities.session_capabilities = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(session.delete)
        .additional_directories(session.additional_directories);
    #[cfg(feature = "unstable")]
    {
        let can = &mut capabilities.session_capabilities;
        can.system_prompt = session.system_prompt;
        can.fork = session.fork;
        can.archive = session.archive;
        can.status = session.status;
        can.title = session.title;
    }
    capabilities
}

/// The ways to log in. One of an unknown type cannot be used and is left out.
pub(crate) fn auth_methods(methods: Vec<v2::AuthMethod>) -> Vec<AuthMethod> {
    let convert = |method| match method {
        v2::AuthMethod::Agent(method) => Some(AuthMethod::Agent(
            AuthMethodAgent::new(method.method_id, method.name)
                .description(method.description)
                .meta(method.meta),
        )),
        v2::AuthMethod::Terminal(method) => {
            let env = method.env.into_iter().map(|variable| (variable.name, variable.value));
            Some(AuthMethod::Terminal(
                AuthMethodTerminal::new(method.method_id, method.name)
                    .description(method.description)
                    .args(method.args)
                    .env(env.collect::<std::collections::BTreeMap<_, _>>())
                    .meta(method.meta),
            ))
        }
        _ => None,
    };
    methods.into_iter().filter_map(convert).collect()
}

/// The MCP servers of a session.
///
/// # Errors
/// For servers over SSE, which version 2 does not have.
pub(crate) fn mcp_servers(servers: Vec<McpServer>) -> Result<Vec<v2::McpServer>> {
    let convert = |server| match server {
        McpServer::Stdio(server) => Ok(v2::McpServerStdio::new(server.name, server.command)
            .args(server.args)
            .env(server.env)
            .meta(server.meta)
            .into()),
        McpServer::Http(server) => Ok(v2::McpServerHttp::new(server.name, server.url)
            .headers(server.headers)
            .meta(server.meta)
            .into()),
        #[cfg(feature = "unstable")]
        McpServer::Acp(server) => Ok(v2::McpServer::Acp(server)),
        // V2-39
        _ => Err(Error::Unsupported("MCP servers over sse")),
    };
    servers.into_iter().map(convert).collect()
}

/// The config options. One of an unknown kind cannot be set and is left out.
pub(crate) fn options(options: Vec<v2::SessionConfigOption>) -> Vec<SessionConfigOption> {
    let convert = |option: v2::SessionConfigOption| {
        let kind = match option.kind {
            v2::SessionConfigKind::Select(select) => SessionConfigKind::Select(SessionConfigSelect::new(
                select.current_value,
                values(select.options)?,
            )),
            v2::SessionConfigKind::Boolean(boolean) => SessionConfigKind::Boolean(boolean),
            _ => return None,
        };
        let converted = SessionConfigOption::new(option.config_id, option.name, kind);
        Some(converted.description(option.description).category(option.category).meta(option.meta))
    };
    options.into_iter().filter_map(convert).collect()
}

fn values(options: v2::SessionConfigSelectOptions) -> Option<SessionConfigSelectOptions> {
    match options {
        v2::SessionConfigSelectOptions::Ungrouped(options) => Some(options.into()),
        v2::SessionConfigSelectOptions::Grouped(groups) => {
            let groups = groups.into_iter().map(|group| {
                SessionConfigSelectGroup::new(group.group_id, group.name, group.options).meta(group.meta)
            });
            Some(groups.collect::<Vec<_>>().into())
        }
        _ => None,
    }
}

/// The modes that a config option of category `mode` stands for.
pub(crate) fn modes(options: &[SessionConfigOption]) -> Option<SessionModeState> {
    let (_, select) = select_of(options, &SessionConfigOptionCategory::Mode)?;
    let modes = select.options.iter().map(|value| {
        SessionMode::new(value.value.as_str(), value.name.clone()).description(value.description.clone())
    });
    Some(SessionModeState::new(select.current_value.as_str(), modes.collect::<Vec<_>>()))
}

/// The first select option of a category.
pub(crate) fn select_of<'o>(
    options: &'o [SessionConfigOption],
    category: &SessionConfigOptionCategory,
) -> Option<(&'o SessionConfigOption, &'o SessionConfigSelect)> {
    options.iter().find_map(|option| match &option.kind {
        SessionConfigKind::Select(select) if option.category.as_ref() == Some(category) => {
            Some((option, select))
        }
        _ => None,
    })
}

/// The slash commands. One of an unknown type cannot be run and is left out.
pub(crate) fn commands(commands: Vec<v2::AvailableCommand>) -> Vec<AvailableCommand> {
    let convert = |command| {
        let v2::AvailableCommand::Command(command) = command else { return None };
        let input = command.input.and_then(|input| match input {
            v2::AvailableCommandInput::Text(input) => {
                let input = UnstructuredCommandInput::new(input.hint).meta(input.meta);
                Some(AvailableCommandInput::Unstructured(input))
            }
            _ => None,
        });
        let converted = AvailableCommand::new(command.name, command.description);
        Some(converted.input(input).meta(command.meta))
    };
    commands.into_iter().filter_map(convert).collect()
}

/// A content block; `None` for one of an unknown type.
pub(crate) fn content(block: v2::ContentBlock) -> Option<ContentBlock> {
    Some(match block {
        v2::ContentBlock::Text(text) => {
            let annotations = text.annotations.map(|of| annotations(*of));
            ContentBlock::Text(TextContent::new(text.text).annotations(annotations).meta(text.meta))
        }
        v2::ContentBlock::Image(image) => {
            let annotations = image.annotations.map(|of| annotations(*of));
            let converted = ImageContent::new(image.data, image.mime_type).uri(image.uri);
            converted.annotations(annotations).meta(image.meta).into()
        }
        v2::ContentBlock::Audio(audio) => {
            let annotations = audio.annotations.map(|of| annotations(*of));
            AudioContent::new(audio.data, audio.mime_type).annotations(annotations).meta(audio.meta).into()
        }
        v2::ContentBlock::ResourceLink(link) => {
            let annotations = link.annotations.map(|of| annotations(*of));
            let mut converted = ResourceLink::new(link.name, link.uri);
            converted.title = link.title;
            converted.description = link.description;
            converted.mime_type = link.mime_type;
            converted.size = link.size.and_then(|size| size.try_into().ok());
            converted.annotations(annotations).meta(link.meta).into()
        }
        v2::ContentBlock::Resource(resource) => {
            let annotations = resource.annotations.map(|of| annotations(*of));
            EmbeddedResource::new(resource.resource).annotations(annotations).meta(resource.meta).into()
        }
        _ => return None,
    })
}

fn annotations(annotations: v2::Annotations) -> Box<Annotations> {
    let role = |role| match role {
        v2::Role::Assistant => Some(Role::Assistant),
        v2::Role::User => Some(Role::User),
        _ => None,
    };
    let audience = annotations.audience.map(|audience| audience.into_iter().filter_map(role).collect());
    let mut converted = Annotations::new();
    converted.audience = audience;
    converted.last_modified = annotations.last_modified;
    converted.priority = annotations.priority;
    converted.meta = annotations.meta;
    Box::new(converted)
}

/// The kind of a tool.
pub(crate) fn tool_kind(kind: &v2::ToolKind) -> ToolKind {
    match kind {
        v2::ToolKind::Read => ToolKind::Read,
        v2::ToolKind::Edit => ToolKind::Edit,
        v2::ToolKind::Delete => ToolKind::Delete,
        v2::ToolKind::Move => ToolKind::Move,
        v2::ToolKind::Search => ToolKind::Search,
        v2::ToolKind::Execute => ToolKind::Execute,
        v2::ToolKind::Think => ToolKind::Think,
        v2::ToolKind::Fetch => ToolKind::Fetch,
        v2::ToolKind::SwitchMode => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// The options of a question. One of an unknown kind is left out: a program that chooses by kind
/// could not know whether it allows.
// V2-22, V2-24
pub(crate) fn permission_options(options: Vec<v2::PermissionOption>) -> Vec<PermissionOption> {
    let convert = |option: v2::PermissionOption| {
        let kind = match option.kind {
            v2::PermissionOptionKind::AllowOnce => PermissionOptionKind::AllowOnce,
            v2::PermissionOptionKind::AllowAlways => PermissionOptionKind::AllowAlways,
            v2::PermissionOptionKind::RejectOnce => PermissionOptionKind::RejectOnce,
            v2::PermissionOptionKind::RejectAlways => PermissionOptionKind::RejectAlways,
            _ => return None,
        };
        Some(PermissionOption::new(option.option_id, option.name, kind).meta(option.meta))
    };
    options.into_iter().filter_map(convert).collect()
}

/// The end of a turn: a stop reason, or the error that ended it.
// V2-12: an agent need not report a reason.
pub(crate) fn turn_end(reason: Option<v2::StopReason>) -> Result<StopReason> {
    Ok(match reason {
        Some(v2::StopReason::MaxTokens) => StopReason::MaxTokens,
        Some(v2::StopReason::MaxTurnRequests) => StopReason::MaxTurnRequests,
        Some(v2::StopReason::Refusal) => StopReason::Refusal,
        Some(v2::StopReason::Cancelled) => StopReason::Cancelled,
        Some(v2::StopReason::Error(reason)) => {
            let error = reason.error.map(|error| {
                let mut object = attache_rpc::ErrorObject::new(error.code.0, error.message);
                object.data = error.data.map(|data| data.as_raw().to_owned());
                object
            });
            let unnamed = || attache_rpc::ErrorObject::new(-32603, "the agent reported no cause");
            return Err(Error::Refused(error.unwrap_or_else(unnamed)));
        }
        // An unknown reason is an end as well; `Event::State` has its name.
        _ => StopReason::EndTurn,
    })
}

/// `_meta` with a stop reason that version 1 does not have.
pub(crate) fn unknown_reason(reason: Option<&v2::StopReason>) -> Option<Meta> {
    let Some(v2::StopReason::Other { stop_reason, .. }) = reason else { return None };
    Meta::new(&serde_json::json!({ "attache": { "stopReason": stop_reason } })).ok()
}

/// The reason of a turn of version 1 in the model.
pub(crate) fn stop_reason(end: &Result<Option<attache_wire::v1::PromptResponse>>) -> Option<v2::StopReason> {
    match end {
        Ok(Some(response)) => Some(match response.stop_reason {
            StopReason::MaxTokens => v2::StopReason::MaxTokens,
            StopReason::MaxTurnRequests => v2::StopReason::MaxTurnRequests,
            StopReason::Refusal => v2::StopReason::Refusal,
            StopReason::Cancelled => v2::StopReason::Cancelled,
            _ => v2::StopReason::EndTurn,
        }),
        Err(Error::Refused(error)) => {
            let data = error.data.clone().map(attache_wire::Json::from);
            Some(v2::Error::new(error.code, error.message.clone()).data(data).into())
        }
        _ => None,
    }
}
