//! Services that the specification marks as unstable: forks, archives, titles, status, providers,
//! system prompts, plans and subagents.

mod builder;
mod providers;

use std::future::Future;
use std::sync::Arc;

use attache_wire::v1::*;

use super::builder::{IdFn, PlainFn, Services};
use super::core::Core;
use super::method::Method;
use super::open::{self, as_params, method_not_found};
use super::session::{BoxFuture, ErasedSession, OpenRequest};
use super::turn::Turn;
use crate::id::unique_id;
use crate::task::lock;
use crate::{Error, Result, check};

use providers::DynProviders;
pub use providers::Providers;

/// The system prompts that an agent accepts from a client.
///
/// ```
/// use attache::agent::{Agent, SystemPromptSupport};
///
/// fn with_prompts(agent: Agent) -> Agent {
///     agent.system_prompts(SystemPromptSupport::Append)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPromptSupport {
    /// Text that is appended to the agent's own prompt.
    Append,
    /// Text that is appended to the agent's own prompt or replaces it.
    AppendOrOverride,
}

pub(super) type ForkFn =
    Arc<dyn Fn(SessionId, OpenRequest) -> BoxFuture<'static, Result<ErasedSession>> + Send + Sync>;
type TitleFn = Arc<dyn Fn(SessionId, String) -> BoxFuture<'static, Result<String>> + Send + Sync>;

/// The installed services.
#[derive(Clone, Default)]
pub(super) struct UnstableServices {
    pub(super) fork: Option<ForkFn>,
    system_prompt: Option<SystemPromptSupport>,
    archive: Option<(IdFn<()>, IdFn<()>)>,
    title: Option<TitleFn>,
    status: Option<IdFn<SessionStatus>>,
    auth_status: Option<PlainFn<AuthStatusResponse>>,
    providers: Option<Arc<dyn DynProviders>>,
}

pub(super) static METHODS: &[Method] = &[
    Method::new("session/fork", open::serve::<ForkSessionRequest>)
        .if_installed(|services| services.unstable.fork.is_some())
        .after_login(),
    Method::new("session/archive", |core, _, request| core.answer(request, archive))
        .if_installed(archives)
        .after_login(),
    Method::new("session/unarchive", |core, _, request| core.answer(request, unarchive))
        .if_installed(archives)
        .after_login(),
    Method::new("session/set_title", |core, _, request| core.answer(request, set_title))
        .if_installed(|services| services.unstable.title.is_some())
        .after_login(),
    Method::new("session/status", |core, _, request| core.answer(request, status))
        .if_installed(has_status)
        .after_login(),
    // AUTH-22: needs no login.
    Method::new("auth/status", |core, _, request| core.answer(request, auth_status))
        .if_installed(|services| services.unstable.auth_status.is_some()),
    Method::new("providers/list", |core, _, request| core.answer(request, providers::list))
        .if_installed(has_providers),
    Method::new("providers/set", |core, _, request| core.answer(request, providers::set))
        .if_installed(has_providers),
    Method::new("providers/disable", |core, _, request| core.answer(request, providers::disable))
        .if_installed(has_providers),
];

pub(super) fn has_status(services: &Services) -> bool {
    services.unstable.status.is_some()
}

// PROV-01
fn has_providers(services: &Services) -> bool {
    services.unstable.providers.is_some()
}

// SSTAT-05: agents that archive also list.
fn archives(services: &Services) -> bool {
    services.unstable.archive.is_some() && services.list.is_some()
}

/// Adds the capabilities of the installed services.
pub(super) fn advertise(services: &Services, mut all: AgentCapabilities) -> AgentCapabilities {
    let UnstableServices { fork, system_prompt, title, status, auth_status, providers, .. } =
        &services.unstable;
    all.providers = providers.is_some().then(ProvidersCapabilities::new);
    all.auth.status = auth_status.is_some().then(AuthStatusCapabilities::new);
    let session = &mut all.session_capabilities;
    session.fork = fork.is_some().then(SessionForkCapabilities::new);
    session.archive = archives(services).then(SessionArchiveCapabilities::new);
    session.status = status.is_some().then(SessionStatusCapabilities::new);
    session.title = title.is_some().then(SessionTitleCapabilities::new);
    session.system_prompt = system_prompt.map(|which| {
        let overriding = (which == SystemPromptSupport::AppendOrOverride).then(|| {
            SessionSystemPromptModeCapabilities::new()
                .overriding(SessionSystemPromptOverrideCapabilities::new())
        });
        SessionSystemPromptCapabilities::new().mode(overriding)
    });
    all
}

/// Checks the unstable members of a request to open a session.
pub(super) fn check_open(request: &OpenRequest, services: &Services) -> Result<()> {
    let through_client = request.mcp_servers.iter().any(|server| matches!(server, McpServer::Acp(_)));
    if through_client && !services.mcp.acp {
        return Err(open::no_mcp_servers("acp")); // MCP-08
    }
    let Some(prompt) = &request.system_prompt else { return Ok(()) };
    // SYSP-02: an unsupported system prompt opens no session.
    let fits = match (services.unstable.system_prompt, &prompt.mode) {
        (Some(_), SystemPromptMode::Append) => true,
        (Some(which), SystemPromptMode::Override) => which == SystemPromptSupport::AppendOrOverride,
        _ => false,
    };
    if !fits {
        return Err(Error::invalid_params(format!(
            "this agent takes no system prompt of mode `{}`",
            prompt.mode
        )));
    }
    as_params(check::system_prompt_content(prompt))
}

/// Replaces an update that the client does not support, or fails if nothing can replace it.
pub(super) fn adapt(update: SessionUpdate, client: &ClientCapabilities) -> Result<SessionUpdate> {
    match update {
        // PLAN-07, PLAN-08: a client that supports one plan only gets that one. Other forms of a
        // plan are messages.
        SessionUpdate::PlanUpdate(update) if client.plan.is_none() => {
            let text = match update.plan {
                PlanUpdateContent::Items(items) => return Ok(SessionUpdate::Plan(Plan::new(items.entries))),
                PlanUpdateContent::Markdown(plan) => plan.content,
                PlanUpdateContent::File(plan) => format!("Plan: {}", plan.uri),
                _ => return Err(Error::Unsupported("plan updates")),
            };
            let chunk = ContentChunk::new(text).message_id(unique_id::<MessageId>("msg"));
            Ok(SessionUpdate::AgentMessageChunk(chunk))
        }
        SessionUpdate::PlanRemoved(_) if client.plan.is_none() => {
            Ok(SessionUpdate::Plan(Plan::new(Vec::new())))
        }
        // SUBA-01
        SessionUpdate::SubagentUpdate(_)
        | SessionUpdate::SessionMessage(_)
        | SessionUpdate::SessionMessageChunk(_)
            if client.subagents.is_none() =>
        {
            Err(Error::Unsupported("subagents"))
        }
        update => Ok(update),
    }
}

// SSTAT-06: an unsupported filter is refused, never treated as another.
pub(super) fn check_list(services: &Services, request: &ListSessionsRequest) -> Result<()> {
    let supported = match &request.archived {
        None => true,
        Some(SessionArchiveFilter::Exclude | SessionArchiveFilter::Include | SessionArchiveFilter::Only) => {
            services.unstable.archive.is_some()
        }
        Some(_) => false,
    };
    match supported {
        true => Ok(()),
        false => Err(Error::invalid_params("this agent does not support that `archived` filter")),
    }
}

// SSTAT-05: every entry states whether it is archived.
pub(super) fn complete_list(services: &Services, mut list: ListSessionsResponse) -> ListSessionsResponse {
    if services.unstable.archive.is_some() {
        for session in &mut list.sessions {
            session.archived.get_or_insert(false);
        }
    }
    list
}

impl Turn<'_> {
    /// Sets the token counts of the response.
    // PROMPT-19
    pub fn set_usage(&self, usage: Usage) {
        lock(&self.inner().response).usage = Some(usage);
    }
}

// SSTAT-04: an open session is closed first.
fn archive(
    core: Arc<Core>,
    request: ArchiveSessionRequest,
) -> impl Future<Output = Result<ArchiveSessionResponse>> {
    let closed = core.sessions.remove(&request.session_id).map(|entry| core.end(entry));
    async move {
        let (archive, _) =
            core.services.unstable.archive.as_ref().ok_or_else(|| method_not_found("session/archive"))?;
        if let Some(closed) = closed {
            closed.await;
        }
        archive(request.session_id).await?;
        Ok(ArchiveSessionResponse::new())
    }
}

async fn unarchive(core: Arc<Core>, request: UnarchiveSessionRequest) -> Result<UnarchiveSessionResponse> {
    let (_, unarchive) =
        core.services.unstable.archive.as_ref().ok_or_else(|| method_not_found("session/unarchive"))?;
    unarchive(request.session_id).await?;
    Ok(UnarchiveSessionResponse::new())
}

// SSTAT-08: stored before it is answered, and never empty.
async fn set_title(core: Arc<Core>, request: SetSessionTitleRequest) -> Result<SetSessionTitleResponse> {
    let set = core.services.unstable.title.as_ref().ok_or_else(|| method_not_found("session/set_title"))?;
    let title = request.title.trim();
    if title.is_empty() {
        return Err(Error::invalid_params("a title must not be empty"));
    }
    Ok(SetSessionTitleResponse::new(set(request.session_id, title.to_owned()).await?))
}

// SSTAT-01: read-only.
pub(super) async fn status(core: Arc<Core>, request: SessionStatusRequest) -> Result<SessionStatusResponse> {
    let status = core.services.unstable.status.as_ref().ok_or_else(|| method_not_found("session/status"))?;
    if core.sessions.get(&request.session_id).is_some() {
        return Ok(SessionStatusResponse::new(SessionStatus::Open));
    }
    Ok(SessionStatusResponse::new(status(request.session_id).await?))
}

// AUTH-22: changes nothing.
async fn auth_status(core: Arc<Core>, _: AuthStatusRequest) -> Result<AuthStatusResponse> {
    core.services.unstable.auth_status.as_ref().ok_or_else(|| method_not_found("auth/status"))?().await
}
