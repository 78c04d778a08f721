//! Where every message of a client goes. Dispatch is a plain function: it reads, registers and spawns, and never waits,
//! so no handler can hold up the reader.

use std::sync::Arc;

use attache_conn::{Dispatch, Peer, Reason, Responder, Side};
use attache_rpc::ErrorObject;
use attache_wire::Notification;
use attache_wire::v1::*;
use serde_json::value::RawValue;

use super::builder::Agent;
use super::client::Client;
use super::core::Core;
use super::nes::{AnyNextEdits, DocumentEvent};
use super::open::{self, no_method};
use super::turn::{self, Prompted};
use super::{hello, manage};
use crate::{Link, Prompt, Result};

/// Serves one client over a link.
pub(super) async fn serve(agent: Agent, link: Link) -> Result<()> {
    let Agent { services, limits } = agent;
    let mut shared = None;
    let (_peer, driver) = attache_conn::open(link, limits, Side::Agent, |peer: &Peer| {
        let core = Core::new(peer.clone(), services);
        shared = Some(core.clone());
        Router { core }
    });
    // A task of its own: on a runtime with several threads the reader then runs beside the handlers it wakes.
    let closed = crate::task::join(tokio::spawn(driver)).await?;
    if let Some(core) = shared {
        core.wind_down(core.services.cancel_grace).await;
    }
    // STDIO-10: a client that leaves is the ordinary end.
    match closed.reason {
        Reason::Eof | Reason::LocalClose => Ok(()),
        _ => Err(closed.into()),
    }
}

struct Router {
    core: Arc<Core>,
}

impl Dispatch for Router {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder) {
        let core = &self.core;
        if method == "initialize" {
            return hello::initialize(core, params, responder);
        }
        // INIT-03: nothing before initialize.
        let Some(client) = core.client() else {
            return responder.err(ErrorObject::invalid_request("`initialize` comes first"));
        };
        match method {
            "session/prompt" => prompt(core, client, params, responder),
            "session/new" => {
                with(params, responder, |request, responder| open::new(core, request, responder))
            }
            "session/load" => {
                with(params, responder, |request, responder| open::load(core, request, responder))
            }
            "session/resume" => {
                with(params, responder, |request, responder| open::resume(core, request, responder))
            }
            "session/fork" => {
                with(params, responder, |request, responder| open::fork(core, request, responder))
            }
            "session/close" => core.answer(params, responder, open::close),
            "session/set_mode" => core.answer(params, responder, manage::set_mode),
            "session/set_model" => core.answer(params, responder, manage::set_model),
            "session/set_config_option" => core.answer(params, responder, manage::set_config_option),
            "session/list" => core.answer(params, responder, manage::list),
            "session/delete" => core.answer(params, responder, manage::delete),
            "session/archive" => core.answer(params, responder, manage::archive),
            "session/unarchive" => core.answer(params, responder, manage::unarchive),
            "session/set_title" => core.answer(params, responder, manage::set_title),
            "session/status" => core.answer(params, responder, manage::status),
            "authenticate" => core.answer(params, responder, hello::authenticate),
            "logout" => core.answer(params, responder, hello::logout),
            "auth/status" => core.answer(params, responder, hello::auth_status),
            "providers/list" | "providers/set" | "providers/disable" => {
                providers(core, method, params, responder)
            }
            "nes/start" | "nes/suggest" | "nes/close" => next_edits(core, client, method, params, responder),
            _ => extension(core, client, method, params, responder),
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        let core = &self.core;
        if let (Some(client), Some(take)) = (core.client(), core.services.notifications.get(method)) {
            return take(params, &client);
        }
        if method == CancelNotification::METHOD {
            // CANCEL-10: for a session that is unknown or idle it means nothing. RPC-04: it is never answered.
            if let Ok(cancel) = attache_wire::decode::<CancelNotification>(params)
                && let Some(entry) = core.sessions.get(cancel.session_id.as_str())
            {
                entry.cancel();
            }
        } else if let Some(service) = &core.services.next_edits {
            document(core, &**service, method, params);
        }
        // EXT-08: what nobody knows is ignored.
    }
}

/// Reads a request for a handler that answers by itself.
fn with<R: attache_wire::Request>(
    params: Option<&RawValue>,
    responder: Responder,
    handle: impl FnOnce(R, Responder),
) {
    match super::decode::<R>(params) {
        Ok(request) => handle(request, responder),
        Err(error) => responder.err(error.to_wire()),
    }
}

/// Registers the turn, then runs it. The cancel token is in the table before this returns, so a cancel that follows the
/// prompt at once finds it.
fn prompt(core: &Arc<Core>, client: Client, params: Option<&RawValue>, responder: Responder) {
    with(params, responder, |request: PromptRequest, responder| {
        let begin = || {
            let entry = core.session(&request.session_id)?;
            hello::check_prompt(&core.services.prompt, &request.prompt)?;
            // PROMPT-13: one turn at a time; the second prompt is refused, and the first goes on.
            let running = entry.begin(responder.cancellation()).ok_or_else(|| {
                crate::Error::Refused(ErrorObject::invalid_request(
                    "a turn is already running in this session",
                ))
            })?;
            Ok((entry, running))
        };
        match begin() {
            Err(error) => responder.err(crate::Error::to_wire(&error)),
            Ok((entry, running)) => {
                let grace = core.services.cancel_grace;
                let prompt = Prompt::from(request.prompt);
                core.spawn(turn::run(Prompted { client, entry, running, responder, prompt, grace }));
            }
        }
    });
}

fn providers(core: &Arc<Core>, method: &str, params: Option<&RawValue>, responder: Responder) {
    if core.services.providers.is_none() {
        return responder.err(ErrorObject::method_not_found(method)); // PROV-01
    }
    match method {
        "providers/list" => core.answer(params, responder, |core, _: ListProvidersRequest| async move {
            core.services.providers.as_ref().ok_or_else(|| no_method("providers/list"))?.list().await
        }),
        "providers/set" => core.answer(params, responder, |core, request: SetProviderRequest| async move {
            core.services.providers.as_ref().ok_or_else(|| no_method("providers/set"))?.set(request).await
        }),
        _ => core.answer(params, responder, |core, request: DisableProviderRequest| async move {
            core.services
                .providers
                .as_ref()
                .ok_or_else(|| no_method("providers/disable"))?
                .disable(request)
                .await
        }),
    }
}

fn next_edits(
    core: &Arc<Core>,
    client: Client,
    method: &str,
    params: Option<&RawValue>,
    responder: Responder,
) {
    if core.services.next_edits.is_none() {
        return responder.err(ErrorObject::method_not_found(method)); // NES-01
    }
    match method {
        "nes/start" => core.answer(params, responder, |core, request: StartNesRequest| async move {
            core.check_login()?;
            core.nes.start(nes_service(&core)?, request, client).await
        }),
        "nes/suggest" => core.answer(params, responder, |core, request: SuggestNesRequest| async move {
            core.nes.suggest(nes_service(&core)?, request, client.capabilities()).await
        }),
        _ => core.answer(params, responder, |core, request: CloseNesRequest| async move {
            core.nes.close(nes_service(&core)?, &request)
        }),
    }
}

fn nes_service(core: &Core) -> Result<&dyn AnyNextEdits> {
    core.services.next_edits.as_deref().ok_or_else(|| no_method("nes"))
}

/// Notifications about documents and suggestions, in wire order. One that cannot be read is dropped.
fn document(core: &Core, service: &dyn AnyNextEdits, method: &str, params: Option<&RawValue>) {
    let event = match method {
        DidOpenDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Opened),
        DidChangeDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Changed),
        DidCloseDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Closed),
        DidSaveDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Saved),
        DidFocusDocumentNotification::METHOD => attache_wire::decode(params).map(DocumentEvent::Focused),
        AcceptNesNotification::METHOD => {
            if let Ok(accepted) = attache_wire::decode::<AcceptNesNotification>(params)
                && core.nes.knows(&accepted.session_id)
            {
                service.accepted(accepted);
            }
            return;
        }
        RejectNesNotification::METHOD => {
            if let Ok(rejected) = attache_wire::decode::<RejectNesNotification>(params)
                && core.nes.knows(&rejected.session_id)
            {
                service.rejected(rejected);
            }
            return;
        }
        _ => return,
    };
    if let Ok(event) = event {
        core.nes.document(service, event);
    }
}

/// EXT-07: an extension's request is answered, if need be with -32601; so is every name nobody knows (RPC-12).
fn extension(
    core: &Arc<Core>,
    client: Client,
    method: &str,
    params: Option<&RawValue>,
    responder: Responder,
) {
    let Some(serve) = core.services.requests.get(method) else {
        return responder.err(ErrorObject::method_not_found(method));
    };
    match serve(params, client) {
        Err(error) => responder.err(error.to_wire()),
        Ok(answering) => core.answer_later(responder, answering, |responder, raw| responder.ok(&*raw)),
    }
}
