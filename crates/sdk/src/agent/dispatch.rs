//! Where every message of a client goes. Dispatch is a plain function: it reads, registers and spawns, and never waits,
//! so no handler can hold up the reader. Where the runtime has one thread, and so nothing else could run meanwhile, a
//! handler is polled once before it is spawned (`Core::begin`).

use std::sync::Arc;

use attache_conn::{Dispatch, Peer, Reason, Responder, Side, Ticket};
use attache_rpc::ErrorObject;
use attache_wire::v1::{CancelNotification, NewSessionRequest, PromptRequest};
use attache_wire::{Notification, Request};
use serde_json::value::RawValue;

use super::builder::Agent;
use super::client::ClientHandle;
use super::core::{Answer, Core};
use super::table::{BeginError, TurnSlot};
use super::turn::{self, TurnTask};
use super::{initialize, manage, nes, open, providers};
use crate::task::catch_handler_panic;
use crate::{Error, Link, Prompt, Result};

/// Serves one client over a link.
pub(super) async fn serve(agent: Agent, link: Link) -> Result<()> {
    let Agent { services, limits } = agent;
    let grace = services.cancel_grace;
    let mut shared = None;
    let (_peer, driver) = attache_conn::open(link, limits, Side::Agent, |peer: &Peer| {
        let core = Core::new(peer.clone(), services);
        shared = Some(core.clone());
        Router { core, client: None }
    });
    let core = shared.ok_or_else(|| Error::internal("the connection was not opened"))?;
    let _abort = core.abort_on_drop();
    // A task of its own: on a runtime with several threads the reader then runs beside the handlers it wakes.
    let closed = crate::task::join(tokio::spawn(driver)).await;
    core.wind_down(grace).await;
    let closed = closed?;
    // STDIO-10: a client that leaves is the ordinary end.
    match closed.reason {
        Reason::Eof | Reason::LocalClose => Ok(()),
        _ => Err(closed.into()),
    }
}

struct Router {
    core: Arc<Core>,
    /// The one that `core` has too, at hand.
    client: Option<ClientHandle>,
}

impl Dispatch for Router {
    fn request(&mut self, method: &str, params: Option<&RawValue>, responder: Responder) {
        if method == "initialize" {
            catch_handler_panic(|| initialize::initialize(&self.core, params, responder));
            self.client = self.core.client();
            return;
        }
        let Some((client, responder)) = self.admit(method, responder) else { return };
        catch_handler_panic(|| route(&self.core, client, method, params, responder));
    }

    fn unread_request(&mut self, method: &str, params: &str, ticket: Ticket<'_>) {
        // What a client may do many times in a row.
        if method == NewSessionRequest::METHOD {
            catch_handler_panic(|| self.new_session(params, ticket));
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        catch_handler_panic(|| note(&self.core, method, params));
    }
}

impl Router {
    fn new_session(&self, params: &str, ticket: Ticket<'_>) {
        // What cannot be read is left to those who repair or refuse it.
        let Ok(request) = serde_json::from_str::<NewSessionRequest>(params) else { return };
        let Some(responder) = ticket.take() else { return };
        let Some((client, responder)) = self.admit(NewSessionRequest::METHOD, responder) else { return };
        open::new(&self.core, client, request, responder);
    }

    /// Who asks, if it may ask for this now; if not, it is told.
    fn admit(&self, method: &str, responder: Responder) -> Option<(ClientHandle, Responder)> {
        let refusal = match &self.client {
            // INIT-03: nothing before initialize.
            None => ErrorObject::invalid_request("`initialize` wait_turn first"),
            Some(_) if !self.core.services.settings(method) => ErrorObject::method_not_found(method),
            Some(_) if needs_login(method) && !self.core.is_logged_in() => ErrorObject::auth_required(),
            Some(client) => return Some((client.clone(), responder)),
        };
        responder.err(refusal);
        None
    }
}

fn route(
    core: &Arc<Core>,
    client: ClientHandle,
    method: &str,
    params: Option<&RawValue>,
    responder: Responder,
) {
    match method {
        "session/prompt" => prompt(core, client, params, responder),
        "session/new" => with(params, responder, |request, responder| {
            open::new(core, client, request, responder);
        }),
        "session/load" => with(params, responder, |request, responder| {
            open::load(core, client, request, responder);
        }),
        "session/resume" => with(params, responder, |request, responder| {
            open::resume(core, client, request, responder);
        }),
        "session/fork" => with(params, responder, |request, responder| {
            open::fork(core, client, request, responder);
        }),
        "session/close" => {
            with(params, responder, |request, responder| open::close(core, request, responder))
        }
        "session/set_mode" => core.answer(params, responder, manage::set_mode),
        "session/set_model" => core.answer(params, responder, manage::set_model),
        "session/set_config_option" => core.answer(params, responder, manage::set_config_option),
        "session/list" => core.answer(params, responder, manage::list),
        "session/delete" => core.answer(params, responder, manage::delete),
        "session/archive" => core.answer(params, responder, manage::archive),
        "session/unarchive" => core.answer(params, responder, manage::unarchive),
        "session/set_title" => core.answer(params, responder, manage::set_title),
        "session/status" => core.answer(params, responder, manage::status),
        "authenticate" => core.answer(params, responder, initialize::authenticate),
        "logout" => core.answer(params, responder, initialize::logout),
        "auth/status" => core.answer(params, responder, initialize::auth_status),
        "providers/list" => core.answer(params, responder, providers::list),
        "providers/set" => core.answer(params, responder, providers::set),
        "providers/disable" => core.answer(params, responder, providers::disable),
        "nes/start" => core.answer(params, responder, |core, request| nes::start(core, request, client)),
        "nes/suggest" => core.answer(params, responder, |core, request| nes::suggest(core, request, client)),
        "nes/close" => core.answer(params, responder, nes::close),
        _ => extension(core, client, method, params, responder),
    }
}

/// AUTH-05: what begins a session, and what looks at those that there are. AUTH-18: open sessions go on after a logout.
/// AUTH-22: `auth/status` is not among them.
fn needs_login(method: &str) -> bool {
    matches!(
        method,
        "session/new"
            | "session/load"
            | "session/resume"
            | "session/fork"
            | "session/list"
            | "session/delete"
            | "session/archive"
            | "session/unarchive"
            | "session/set_title"
            | "session/status"
            | "nes/start"
    )
}

fn note(core: &Core, method: &str, params: Option<&RawValue>) {
    if method == CancelNotification::METHOD {
        // CANCEL-10: for a session that is unknown or idle it means nothing. RPC-04: it is never answered.
        if let Ok(cancel) = attache_wire::decode::<CancelNotification>(params)
            && let Some(entry) = core.sessions.get(&cancel.session_id)
        {
            entry.cancel();
        }
        return;
    }
    let Some(client) = core.client() else { return };
    if let Some(take) = core.services.notifications.get(method) {
        take(params, &client);
    } else if let Some(service) = &core.services.next_edits {
        core.nes.notification(&**service, method, params);
    }
    // EXT-08: what nobody knows is ignored.
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
fn prompt(core: &Arc<Core>, client: ClientHandle, params: Option<&RawValue>, responder: Responder) {
    with(params, responder, |request: PromptRequest, responder| match begin(core, &request, &responder) {
        Err(error) => responder.err(error.to_wire()),
        Ok(running) => {
            let grace = core.services.cancel_grace;
            let prompt = Prompt::from(request.prompt);
            let (changing, meta) = (running.entry().last_change(), request.meta);
            let task = TurnTask { client, running, changing, responder, prompt, meta, grace };
            core.spawn(turn::run(task));
        }
    });
}

fn begin(core: &Core, request: &PromptRequest, responder: &Responder) -> Result<TurnSlot> {
    let entry = core.session(&request.session_id)?;
    initialize::check_prompt(&core.services.prompt, &request.prompt)?;
    entry.begin(responder.cancellation()).map_err(|refusal| match refusal {
        // PROMPT-13: one turn at a time; the second prompt is refused, and the first goes on.
        BeginError::Busy => ErrorObject::invalid_request("a turn is already running in this session").into(),
        BeginError::Shut => Error::unknown_session(request.session_id.as_str()),
    })
}

/// EXT-07: an extension's request is answered, if need be with -32601; so is every name nobody knows (RPC-12).
fn extension(
    core: &Arc<Core>,
    client: ClientHandle,
    method: &str,
    params: Option<&RawValue>,
    responder: Responder,
) {
    let Some(serve) = core.services.requests.get(method) else {
        return responder.err(ErrorObject::method_not_found(method));
    };
    match serve(params, client) {
        Err(error) => responder.err(error.to_wire()),
        Ok(answering) => core.answer_later(responder, async move {
            let raw = answering.await?;
            Ok(Box::new(move |responder: Responder| responder.ok(&*raw)) as Answer)
        }),
    }
}
