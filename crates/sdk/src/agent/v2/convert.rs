//! Values of version 2 from and to those of the model.

use attache_rpc::ErrorObject;
use attache_wire::v1::{
    AgentCapabilities, AuthCapabilities, AuthMethod, AvailableCommand, AvailableCommandInput,
    BooleanConfigOptionCapabilities, ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities,
    McpServer, McpServerHttp, McpServerStdio, NoticeCapabilities, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionsCapabilities, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionModeState, StopReason,
};
#[cfg(feature = "unstable")]
use attache_wire::v1::{ContentBlock, PlanCapabilities, SubagentCapabilities, SystemPrompt};
use attache_wire::v2;

use crate::{Error, Result};

/// The option that stands for the modes of an agent that has no option of category `mode`.
pub(crate) const MODE: &str = "mode";

/// The capabilities of a client. Files and terminals do not exist in version 2; the updates that
/// version 1 has capabilities for need none.
pub(crate) fn client_capabilities(client: v2::ClientCapabilities) -> ClientCapabilities {
    let boolean = SessionConfigOptionsCapabilities::new().boolean(BooleanConfigOptionCapabilities::new());
    let session = ClientSessionCapabilities::new()
        .compaction(CompactionCapabilities::new())
        .config_options(boolean)
        .notices(NoticeCapabilities::new());
    let terminal = client.auth.is_some_and(|auth| auth.terminal.is_some());
    let capabilities = ClientCapabilities::new()
        .auth(AuthCapabilities::new().terminal(terminal))
        .session(session)
        .elicitation(client.elicitation)
        .meta(client.meta);
    #[cfg(feature = "unstable")]
    let capabilities = capabilities.plan(PlanCapabilities::new()).subagents(SubagentCapabilities::new());
    capabilities
}

/// The capabilities of the agent. `session` stands for all methods that every agent has in
/// version 2.
pub(crate) fn agent_capabilities(agent: AgentCapabilities) -> v2::AgentCapabilities {
    let prompt = v2::PromptCapabilities::new()
        .image(agent.prompt_capabilities.image.then(v2::PromptImageCapabilities::new))
        .audio(agent.prompt_capabilities.audio.then(v2::PromptAudioCapabilities::new))
        .embedded_context(
            agent.prompt_capabilities.embedded_context.then(v2::PromptEmbeddedContextCapabilities::new),
        );
    let mcp = v2::McpCapabilities::new()
        .stdio(v2::McpStdioCapabilities::new())
        .http(agent.mcp_capabilities.http.then(v2::McpHttpCapabilities::new));
    #[cfg(feature = "unstable")]
    let mcp = mcp.acp(agent.mcp_capabilities.acp.then(v2::McpAcpCapabilities::new));
    let session = v2::SessionCapabilities::new()
        .prompt(prompt)
        .mcp(mcp)
        .delete(agent.session_capabilities.delete)
        .additional_directories(agent.session_capabilities.additional_directories);
    #[cfg(feature = "unstable")]
    let session = session
        .system_prompt(agent.session_capabilities.system_prompt)
        .fork(agent.session_capabilities.fork)
        .archive(agent.session_capabilities.archive)
        .status(agent.session_capabilities.status)
        .title(agent.session_capabilities.title);
    let capabilities = v2::AgentCapabilities::new().session(session);
    #[cfg(feature = "unstable")]
    let capabilities = capabilities
        .auth(agent.auth.status.map(|status| v2::AgentAuthCapabilities::new().status(status)))
        .providers(agent.providers);
    capabilities
}

/// The ways to log in. A method of an unknown type has no form in version 2 and is left out.
pub(crate) fn auth_methods(methods: Vec<AuthMethod>) -> Vec<v2::AuthMethod> {
    let convert = |method| match method {
        AuthMethod::Agent(method) => Some(
            v2::AuthMethodAgent::new(method.id, method.name)
                .description(method.description)
                .meta(method.meta)
                .into(),
        ),
        AuthMethod::Terminal(method) => {
            let env = method.env.unwrap_or_default().into_iter();
            let env: Vec<_> = env.map(|(name, value)| v2::EnvVariable::new(name, value)).collect();
            Some(
                v2::AuthMethodTerminal::new(method.id, method.name)
                    .description(method.description)
                    .args(method.args.unwrap_or_default())
                    .env(env)
                    .meta(method.meta)
                    .into(),
            )
        }
        _ => None,
    };
    methods.into_iter().filter_map(convert).collect()
}

/// The MCP servers of a session. One of an unknown transport refuses the session.
// V2-25
pub(crate) fn mcp_servers(servers: Vec<v2::McpServer>) -> Result<Vec<McpServer>> {
    let convert = |server| match server {
        v2::McpServer::Stdio(server) => {
            let converted = McpServerStdio::new(server.name, server.command, server.args, server.env);
            Ok(McpServer::Stdio(converted.meta(server.meta)))
        }
        v2::McpServer::Http(server) => {
            let converted = McpServerHttp::new(server.name, server.url, server.headers);
            Ok(McpServer::Http(converted.meta(server.meta)))
        }
        #[cfg(feature = "unstable")]
        v2::McpServer::Acp(server) => Ok(McpServer::Acp(server)),
        v2::McpServer::Other(unknown) => {
            Err(Error::invalid_params(format!("this agent takes no MCP servers of type `{}`", unknown.tag)))
        }
        _ => Err(Error::invalid_params("this agent does not know this type of MCP server")),
    };
    servers.into_iter().map(convert).collect()
}

// SYSP-03
/// A system prompt, which holds text only.
#[cfg(feature = "unstable")]
pub(crate) fn system_prompt(prompt: Option<v2::SystemPrompt>) -> Result<Option<SystemPrompt>> {
    let Some(prompt) = prompt else { return Ok(None) };
    let content: Result<Vec<ContentBlock>> = prompt
        .content
        .into_iter()
        .map(|block| match block {
            v2::ContentBlock::Text(text) => Ok(ContentBlock::from(text.text)),
            _ => Err(Error::invalid_params("a system prompt needs text blocks")),
        })
        .collect();
    Ok(Some(SystemPrompt::new(prompt.mode, content?).meta(prompt.meta)))
}

/// The slash commands.
pub(crate) fn commands(commands: &[AvailableCommand]) -> Vec<v2::AvailableCommand> {
    let convert = |command: &AvailableCommand| {
        let input = command.input.as_ref().and_then(|input| match input {
            AvailableCommandInput::Unstructured(input) => {
                let input = v2::TextCommandInput::new(input.hint.clone()).meta(input.meta.clone());
                Some(v2::AvailableCommandInput::Text(input))
            }
            _ => None,
        });
        v2::Command::new(command.name.clone(), command.description.clone())
            .input(input)
            .meta(command.meta.clone())
            .into()
    };
    commands.iter().map(convert).collect()
}

/// The config options. One of an unknown kind has no form in version 2 and is left out.
pub(crate) fn options(options: &[SessionConfigOption]) -> Vec<v2::SessionConfigOption> {
    options.iter().filter_map(option).collect()
}

fn option(option: &SessionConfigOption) -> Option<v2::SessionConfigOption> {
    let kind: v2::SessionConfigKind = match &option.kind {
        SessionConfigKind::Select(select) => {
            v2::SessionConfigSelect::new(select.current_value.clone(), values(&select.options)?).into()
        }
        SessionConfigKind::Boolean(boolean) => boolean.clone().into(),
        _ => return None,
    };
    Some(
        v2::SessionConfigOption::new(option.id.clone(), option.name.clone(), kind)
            .description(option.description.clone())
            .category(option.category.clone())
            .meta(option.meta.clone()),
    )
}

fn values(options: &SessionConfigSelectOptions) -> Option<v2::SessionConfigSelectOptions> {
    match options {
        SessionConfigSelectOptions::Ungrouped(options) => Some(options.clone().into()),
        SessionConfigSelectOptions::Grouped(groups) => {
            let groups = groups.iter().map(|group| {
                v2::SessionConfigSelectGroup::new(
                    group.group.clone(),
                    group.name.clone(),
                    group.options.clone(),
                )
                .meta(group.meta.clone())
            });
            Some(groups.collect::<Vec<_>>().into())
        }
        _ => None,
    }
}

/// The option that stands for the modes.
pub(crate) fn mode_option(modes: &SessionModeState) -> SessionConfigOption {
    let values: Vec<SessionConfigSelectOption> = modes
        .available_modes
        .iter()
        .map(|mode| {
            SessionConfigSelectOption::new(mode.id.as_str(), mode.name.clone())
                .description(mode.description.clone())
        })
        .collect();
    SessionConfigOption::select(MODE, "Mode", modes.current_mode_id.as_str(), values)
        .category(SessionConfigOptionCategory::Mode)
}

/// The reason why a turn ended.
pub(crate) fn stop_reason(outcome: Result<StopReason, ErrorObject>) -> v2::StopReason {
    match outcome {
        Ok(StopReason::EndTurn) => v2::StopReason::EndTurn,
        Ok(StopReason::MaxTokens) => v2::StopReason::MaxTokens,
        Ok(StopReason::MaxTurnRequests) => v2::StopReason::MaxTurnRequests,
        Ok(StopReason::Refusal) => v2::StopReason::Refusal,
        Ok(StopReason::Cancelled) => v2::StopReason::Cancelled,
        Ok(_) => v2::StopReason::EndTurn,
        Err(error) => {
            let data = error.data.map(attache_wire::Json::from);
            v2::Error::new(error.code, error.message).data(data).into()
        }
    }
}
