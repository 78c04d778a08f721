//! Protocol version 2 below the same handlers: requests of version 2 become those of the model, and
//! responses and updates are written in the form of version 2.

mod convert;
mod encode;
mod encode_tool;
pub mod translate;

use std::future::{Ready, ready};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use attache_conn::{IncomingRequest, Responder};
use attache_rpc::ErrorObject;
use attache_wire::v1::{self, ProtocolVersion};
use attache_wire::{Fields, Json, v2};
use serde_json::value::RawValue;

use super::builder::{Services, Start};
use super::client::{ClientHandle, ClientInfo};
use super::core::Core;
use super::handle::SessionHandle;
use super::method::Method;
use super::open::{self, Open, OpenReply, Opening, method_not_found};
use super::session::{BoxFuture, OpenRequest};
use super::shared::CancelKey;
use super::{dispatch, initialize, manage, options};
use crate::id::unique_id;
use crate::{Error, Result};

pub(super) use convert::{MODE, mode_option, stop_reason};
pub(super) use encode::{
    MessageIds, PLAN, Params, UserMessage, message, plan_items, terminal_chunk, text, update,
};
pub(super) use encode_tool::{PermissionRequest, tool_chunk, tool_start, tool_update};

/// The stable methods; those that only version 1 has are unknown.
// V2-39
pub(super) static METHODS: &[Method] = &[
    Method::new("session/prompt", dispatch::prompt),
    Method::new("session/new", open::serve::<v2::NewSessionRequest>).after_login(),
    Method::new("session/resume", resume).after_login(),
    Method::new("session/close", open::close),
    Method::new("session/set_config_option", |core, client, request| {
        core.answer(request, |core, request| set_config_option(core, client, request));
    }),
    Method::new("session/list", |core, _, request| core.answer(request, list)).after_login(),
    Method::new("session/delete", |core, _, request| core.answer(request, manage::delete))
        .if_installed(|services| services.delete.is_some())
        .after_login(),
    Method::new("tool_call/cancel", |core, _, request| core.answer(request, cancel_tool_call)),
    Method::new("terminal/cancel", |core, _, request| core.answer(request, cancel_terminal)),
    // V2-07: both exist if there is a way to log in.
    Method::new("auth/login", |core, _, request| core.answer(request, login))
        .if_installed(|services| services.auth.is_some()),
    Method::new("auth/logout", |core, _, request| core.answer(request, logout))
        .if_installed(|services| services.auth.is_some()),
];

/// Unstable methods whose messages differ from those of version 1.
#[cfg(feature = "unstable")]
pub(super) static UNSTABLE: &[Method] = &[
    Method::new("session/fork", open::serve::<v2::ForkSessionRequest>)
        .if_installed(|services| services.unstable.fork.is_some())
        .after_login(),
    Method::new("session/status", |core, _, request| core.answer(request, status))
        .if_installed(super::unstable::has_status)
        .after_login(),
];

/// `initialize` of a client that offers version 2 or a newer one.
pub(super) fn initialize(core: &Core, request: v2::InitializeRequest, responder: Responder) {
    let capabilities = convert::client_capabilities(request.capabilities);
    // V2-04
    let response = v2::InitializeResponse::new(ProtocolVersion::V2, core.services.info.clone())
        .capabilities(convert::agent_capabilities(initialize::capabilities(&core.services, &capabilities)))
        .auth_methods(convert::auth_methods(initialize::auth_methods(&core.services, &capabilities)));
    let info = Some(request.info);
    core.set_client(ClientInfo { info, capabilities, version: ProtocolVersion::V2 });
    responder.ok(&response);
}

/// Reads the params of `initialize`. A client that offers a later version may have other members:
/// what is missing or unreadable of `info` is unknown.
pub(super) fn read_initialize(
    request: IncomingRequest<'_>,
    offered: u16,
) -> Option<(v2::InitializeRequest, Responder)> {
    request.decode(serde_json::from_str, |params| decode_initialize(params, offered))
}

fn decode_initialize(params: Option<&RawValue>, offered: u16) -> Result<v2::InitializeRequest, ErrorObject> {
    let read = attache_wire::decode::<v2::InitializeRequest>(params);
    read.or_else(|error| {
        let later = (offered > ProtocolVersion::V2.0).then(|| {
            let members: Fields<Json> = attache_wire::decode(params).ok()?;
            let capabilities: Option<v2::ClientCapabilities> =
                members.get("capabilities").and_then(|value| value.parse().ok());
            let unknown = v2::Implementation::new("unknown", "unknown");
            Some(v2::InitializeRequest::new(offered, unknown).capabilities(capabilities.unwrap_or_default()))
        });
        later.flatten().ok_or_else(|| ErrorObject::invalid_params(error.to_string()))
    })
}

/// The options of a reply: absent if there are none, never `null`.
// V2-44
fn config_options(reply: &OpenReply) -> Vec<v2::SessionConfigOption> {
    let options = reply.settings.as_deref().and_then(|settings| settings.options.as_deref());
    convert::options(options.unwrap_or_default())
}

/// The commands, which are part of the response and not an update after it.
fn commands(reply: &OpenReply) -> Vec<v2::AvailableCommand> {
    convert::commands(reply.commands.as_deref().unwrap_or_default())
}

macro_rules! take_request {
    ($this:ident, $handle:ident) => {
        Ok(OpenRequest {
            id: $handle.id().clone(),
            cwd: PathBuf::from(std::mem::take(&mut $this.cwd)),
            additional_directories: std::mem::take(&mut $this.additional_directories)
                .into_iter()
                .map(PathBuf::from)
                .collect(),
            mcp_servers: convert::mcp_servers(std::mem::take(&mut $this.mcp_servers))?,
            #[cfg(feature = "unstable")]
            system_prompt: convert::system_prompt(std::mem::take(&mut $this.system_prompt))?,
            meta: std::mem::take(&mut $this.meta),
            client: $handle.client().clone(),
            session: $handle.clone(),
        })
    };
}

impl Open for v2::NewSessionRequest {
    const NAMES_SESSION: bool = true;

    fn handle(&self, client: ClientHandle, _: &Services) -> SessionHandle {
        SessionHandle::shut(client, unique_id("sess"))
    }

    fn take_request(&mut self, handle: &SessionHandle) -> Result<OpenRequest> {
        take_request!(self, handle)
    }

    fn open(self, services: &Services, request: OpenRequest, start: Start) -> Option<Opening> {
        Some((services.open)(request, start))
    }

    fn response(reply: OpenReply) -> Self::Response {
        let (options, commands) = (config_options(&reply), commands(&reply));
        v2::NewSessionResponse::new(reply.id).config_options(options).available_commands(commands)
    }
}

impl Open for v2::ResumeSessionRequest {
    const NAMES_SESSION: bool = false;
    const REPORTS_STATE: bool = true;

    // V2-26: a replay is sent before the response; without one no history is.
    fn handle(&self, client: ClientHandle, services: &Services) -> SessionHandle {
        let id = self.session_id.clone();
        match &self.replay_from {
            Some(_) => SessionHandle::replay(client, id),
            None if services.resume.is_some() => SessionHandle::shut(client, id),
            None => SessionHandle::discarding(client, id),
        }
    }

    fn take_request(&mut self, handle: &SessionHandle) -> Result<OpenRequest> {
        // V2-25
        if let Some(v2::ReplayFrom::Other(unknown)) = &self.replay_from {
            return Err(Error::invalid_params(format!("this agent cannot replay from `{}`", unknown.tag)));
        }
        take_request!(self, handle)
    }

    fn open(self, services: &Services, request: OpenRequest, start: Start) -> Option<Opening> {
        let handler = match &self.replay_from {
            Some(_) => services.load.as_ref(),
            None => services.resume.as_ref().or(services.load.as_ref()),
        };
        handler.map(|open| open(request, start))
    }

    fn response(reply: OpenReply) -> Self::Response {
        let (options, commands) = (config_options(&reply), commands(&reply));
        v2::ResumeSessionResponse::new().config_options(options).available_commands(commands)
    }
}

#[cfg(feature = "unstable")]
impl Open for v2::ForkSessionRequest {
    const NAMES_SESSION: bool = true;

    fn handle(&self, client: ClientHandle, _: &Services) -> SessionHandle {
        SessionHandle::shut(client, unique_id("sess"))
    }

    fn take_request(&mut self, handle: &SessionHandle) -> Result<OpenRequest> {
        take_request!(self, handle)
    }

    fn open(self, services: &Services, request: OpenRequest, _: Start) -> Option<Opening> {
        services.unstable.fork.as_ref().map(|fork| fork(self.session_id, request))
    }

    fn response(reply: OpenReply) -> Self::Response {
        let (options, commands) = (config_options(&reply), commands(&reply));
        v2::ForkSessionResponse::new(reply.id).config_options(options).available_commands(commands)
    }
}

// V2-05: every agent resumes. One that stores nothing resumes the sessions that are open.
fn resume(core: &Arc<Core>, client: ClientHandle, request: IncomingRequest<'_>) {
    if core.services.load.is_some() || core.services.resume.is_some() {
        return open::serve::<v2::ResumeSessionRequest>(core, client, request);
    }
    core.answer(request, |core, request: v2::ResumeSessionRequest| async move {
        let entry = core.session(&request.session_id)?;
        if request.replay_from.is_some() {
            return Err(Error::invalid_params("this agent cannot replay sessions"));
        }
        let options = options::visible(entry.state().settings(), &client).unwrap_or_default();
        entry.shared().repeat_state(&client, entry.is_busy()); // V2-27
        Ok(v2::ResumeSessionResponse::new().config_options(convert::options(&options)))
    });
}

/// Sets an option. The one that stands for the modes sets the mode. A plain function, because
/// changes happen in wire order only if dispatch enqueues them.
// V2-40: the value names its type.
fn set_config_option(
    core: Arc<Core>,
    client: ClientHandle,
    request: v2::SetSessionConfigOptionRequest,
) -> BoxFuture<'static, Result<v2::SetSessionConfigOptionResponse>> {
    let entry = match core.session(&request.session_id) {
        Ok(entry) => entry,
        Err(error) => return Box::pin(ready(Err(error))),
    };
    let modes = request.config_id == *MODE && options::modes_as_option(entry.state().settings()).is_some();
    let value = match request.value {
        v2::SessionConfigOptionValue::Id(value) if modes => {
            let request = v1::SetSessionModeRequest::new(request.session_id, value.as_str());
            let setting = manage::set_mode(core, request);
            return Box::pin(async move {
                setting.await?;
                let options = options::visible(entry.state().settings(), &client).unwrap_or_default();
                Ok(v2::SetSessionConfigOptionResponse::new(convert::options(&options)))
            });
        }
        v2::SessionConfigOptionValue::Id(value) => v1::SessionConfigOptionValue::ValueId(value),
        v2::SessionConfigOptionValue::Boolean(flag) => v1::SessionConfigOptionValue::Boolean(flag),
        // V2-25
        _ => return Box::pin(ready(Err(Error::invalid_params("this kind of value is not known")))),
    };
    let request = v1::SetSessionConfigOptionRequest::new(request.session_id, request.config_id, value);
    let setting = manage::set_config_option(core, request);
    Box::pin(async move {
        let options = setting.await?.config_options;
        Ok(v2::SetSessionConfigOptionResponse::new(convert::options(&options)))
    })
}

// V2-05: every agent lists. One that stores nothing has nothing to list.
async fn list(core: Arc<Core>, request: v2::ListSessionsRequest) -> Result<v2::ListSessionsResponse> {
    if core.services.list.is_none() {
        return Ok(v2::ListSessionsResponse::new(Vec::new()));
    }
    let asked = v1::ListSessionsRequest::new().cwd(request.cwd).cursor(request.cursor).meta(request.meta);
    #[cfg(feature = "unstable")]
    let asked = asked.archived(request.archived);
    let response = manage::list(core, asked).await?;
    let sessions = response.sessions.into_iter().map(|session| {
        let info = v2::SessionInfo::new(session.session_id, session.cwd)
            .additional_directories(session.additional_directories.unwrap_or_default())
            .title(session.title)
            .updated_at(session.updated_at)
            .meta(session.meta);
        #[cfg(feature = "unstable")]
        let info = info.archived(session.archived);
        info
    });
    let sessions: Vec<_> = sessions.collect();
    Ok(v2::ListSessionsResponse::new(sessions).next_cursor(response.next_cursor).meta(response.meta))
}

#[cfg(feature = "unstable")]
async fn status(core: Arc<Core>, request: v2::SessionStatusRequest) -> Result<v2::SessionStatusResponse> {
    let state = core.sessions.get(&request.session_id).map(|entry| entry.shared().state(entry.is_busy()));
    let status =
        super::unstable::status(core, v1::SessionStatusRequest::new(request.session_id)).await?.status;
    Ok(v2::SessionStatusResponse::new(status).state(state))
}

// V2-31: answered on acceptance; the end of the call confirms it. Not async, so that it happens in
// wire order.
fn cancel_tool_call(
    core: Arc<Core>,
    request: v2::CancelToolCallRequest,
) -> Ready<Result<v2::CancelToolCallResponse>> {
    let accepted = core.session(&request.session_id).and_then(|entry| {
        match entry.shared().cancel_object(&CancelKey::Tool(request.tool_call_id.clone())) {
            true => Ok(v2::CancelToolCallResponse::new()),
            false => Err(not_cancellable("tool call", request.tool_call_id.as_str())),
        }
    });
    ready(accepted)
}

// V2-31
fn cancel_terminal(
    core: Arc<Core>,
    request: v2::CancelTerminalRequest,
) -> Ready<Result<v2::CancelTerminalResponse>> {
    let accepted = core.session(&request.session_id).and_then(|entry| {
        match entry.shared().cancel_object(&CancelKey::Terminal(request.terminal_id.clone())) {
            true => Ok(v2::CancelTerminalResponse::new()),
            false => Err(not_cancellable("terminal", request.terminal_id.as_str())),
        }
    });
    ready(accepted)
}

fn not_cancellable(what: &str, id: &str) -> Error {
    Error::invalid_params(format!("no {what} {id:?} that can be cancelled"))
}

async fn login(core: Arc<Core>, request: v2::LoginAuthRequest) -> Result<v2::LoginAuthResponse> {
    initialize::authenticate(core, v1::AuthenticateRequest::new(request.method_id)).await?;
    Ok(v2::LoginAuthResponse::new())
}

/// An agent without a handler has nothing to forget but the login of this connection.
async fn logout(core: Arc<Core>, _: v2::LogoutAuthRequest) -> Result<v2::LogoutAuthResponse> {
    if core.services.auth.is_none() {
        return Err(method_not_found("auth/logout"));
    }
    match core.services.logout.is_some() {
        true => drop(initialize::logout(core, v1::LogoutRequest::new()).await?),
        false => core.logged_in.store(false, Ordering::Release),
    }
    Ok(v2::LogoutAuthResponse::new())
}
