//! `initialize`, logins, and the check of prompts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use attache_conn::Responder;
use attache_rpc::ErrorObject;
use attache_wire::v1::*;

use super::builder::Services;
use super::client::ClientInfo;
use super::core::Core;
use super::open::method_not_found;
use crate::{Error, Result};

/// Responds within dispatch, so that later messages find the client.
// INIT-25: a second `initialize` keeps all sessions.
pub(super) fn initialize(core: &Core, request: InitializeRequest, responder: Responder) {
    let client = &request.client_capabilities;
    // INIT-06, INIT-07: the newest supported version, unless the client offers version 2 to an
    // agent that speaks it. INIT-31: with the capabilities.
    let response = InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities(&core.services, client))
        .auth_methods(auth_methods(&core.services, client))
        .agent_info(core.services.info.clone());
    core.set_client(ClientInfo {
        info: request.client_info,
        capabilities: request.client_capabilities,
        version: ProtocolVersion::V1,
    });
    responder.ok(&response);
}

/// The capabilities of the installed services.
#[cfg_attr(not(feature = "drafts"), expect(unused_variables, reason = "only drafts depend on the client"))]
pub(super) fn capabilities(services: &Services, client: &ClientCapabilities) -> AgentCapabilities {
    let capabilities = stable_capabilities(services);
    #[cfg(feature = "unstable")]
    let capabilities = super::unstable::advertise(services, capabilities);
    #[cfg(feature = "drafts")]
    let capabilities = super::drafts::advertise(services, client, capabilities);
    capabilities
}

fn stable_capabilities(services: &Services) -> AgentCapabilities {
    let session = SessionCapabilities::new()
        .close(SessionCloseCapabilities::new())
        .resume(services.resume.is_some().then(SessionResumeCapabilities::new))
        .list(services.list.is_some().then(SessionListCapabilities::new))
        .delete(services.delete.is_some().then(SessionDeleteCapabilities::new))
        .additional_directories(
            services.additional_directories.then(SessionAdditionalDirectoriesCapabilities::new),
        );
    let auth = AgentAuthCapabilities::new().logout(services.logout.is_some().then(LogoutCapabilities::new));
    AgentCapabilities::new()
        .load_session(services.load.is_some())
        .prompt_capabilities(services.prompt.clone())
        .mcp_capabilities(services.mcp.clone())
        .session_capabilities(session)
        .auth(auth)
}

// AUTH-08: terminal logins only for clients that can run them.
pub(super) fn auth_methods(services: &Services, client: &ClientCapabilities) -> Vec<AuthMethod> {
    let mut methods = services.auth.as_ref().map(|auth| auth.methods()).unwrap_or_default();
    methods.retain(|method| client.auth.terminal || !matches!(method, AuthMethod::Terminal(_)));
    methods
}

pub(super) async fn authenticate(
    core: Arc<Core>,
    request: AuthenticateRequest,
) -> Result<AuthenticateResponse> {
    let auth = core.services.auth.as_ref().ok_or_else(|| method_not_found("authenticate"))?;
    // AUTH-04, AUTH-10: only an announced method that the agent performs itself.
    let known = auth.methods().iter().any(|method| match method {
        AuthMethod::Agent(method) => method.id == request.method_id,
        _ => false,
    });
    if !known {
        return Err(Error::invalid_params(format!(
            "there is no auth method `{}` to call",
            request.method_id
        )));
    }
    let client = core.client().ok_or_else(|| Error::internal("no client yet"))?;
    auth.login(&request.method_id, &client).await?;
    core.logged_in.store(true, Ordering::Release); // AUTH-06
    Ok(AuthenticateResponse::new())
}

pub(super) async fn logout(core: Arc<Core>, _: LogoutRequest) -> Result<LogoutResponse> {
    core.services.logout.as_ref().ok_or_else(|| method_not_found("logout"))?().await?;
    core.logged_in.store(core.services.auth.is_none(), Ordering::Release); // AUTH-17
    Ok(LogoutResponse::new())
}

// PROMPT-04, CONT-03: blocks that were not advertised, and invalid base64, start no turn.
pub(super) fn check_prompt(offered: &PromptCapabilities, prompt: &[ContentBlock]) -> Result<()> {
    for block in prompt {
        let (taken, kind, data) = match block {
            ContentBlock::Image(image) => (offered.image, "image", Some(&image.data)),
            ContentBlock::Audio(audio) => (offered.audio, "audio", Some(&audio.data)),
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::Blob(blob) => {
                    (offered.embedded_context, "resource", Some(&blob.blob))
                }
                _ => (offered.embedded_context, "resource", None),
            },
            _ => (true, "text", None),
        };
        if !taken {
            return Err(Error::invalid_params(format!("this agent takes no `{kind}` blocks in prompts")));
        }
        if data.is_some_and(|data| !is_base64(data)) {
            return Err(Error::Refused(ErrorObject::invalid_params(format!(
                "the data of a `{kind}` block is not base64"
            ))));
        }
    }
    Ok(())
}

/// Whether a text could be base64, standard or URL-safe, padded or not, without decoding it.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    padding <= 2
        && body.len() % 4 != 1
        && (padding == 0 || text.len().is_multiple_of(4))
        && body.bytes().all(alphabet)
}
