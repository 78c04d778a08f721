//! Dispatch of the client's messages. Dispatch is a plain function: it decodes, registers and spawns but never
//! waits, so no handler can block the reader. On a runtime with one thread, where nothing else could run
//! meanwhile, a handler is polled once before it is spawned (`Core::begin`).

use std::sync::Arc;

use attache_conn::{Dispatch, IncomingNotification, IncomingRequest, Peer, Reason, Responder, Side};
use attache_rpc::ErrorObject;
use attache_wire::v1::{CancelNotification, InitializeRequest, PromptRequest};
use attache_wire::{Notification, Request};

use super::builder::Agent;
use super::client::ClientHandle;
use super::core::{Answer, Core, Failing};
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
    /// A copy of the client in `core`, which is behind a lock.
    client: Option<ClientHandle>,
}

impl Dispatch for Router {
    fn request(&mut self, request: IncomingRequest<'_>) {
        catch_handler_panic(|| self.route(request));
    }

    fn notification(&mut self, notification: IncomingNotification<'_>) {
        catch_handler_panic(|| note(&self.core, notification));
    }

    fn noise(&mut self, line: &[u8], reason: &str) {
        tracing::debug!(reason, "a line that is not a message");
        if let Some(hook) = &self.core.services.on_noise {
            catch_handler_panic(|| hook(line, reason));
        }
    }
}

impl Router {
    fn route(&mut self, request: IncomingRequest<'_>) {
        if request.method() == InitializeRequest::METHOD {
            if let Some((request, responder)) = super::read(request) {
                initialize::initialize(&self.core, request, responder);
                self.client = self.core.client();
            }
            return;
        }
        match self.admit(request.method()) {
            Ok(client) => route(&self.core, client.clone(), request),
            Err(error) => request.reject(error),
        }
    }

    /// Returns the client if it may call `method` now.
    fn admit(&self, method: &str) -> Result<&ClientHandle, ErrorObject> {
        match &self.client {
            // INIT-03: nothing before initialize.
            None => Err(ErrorObject::invalid_request("`initialize` comes first")),
            Some(_) if !self.core.services.provides(method) => Err(ErrorObject::method_not_found(method)),
            Some(_) if needs_login(method) && !self.core.is_logged_in() => Err(ErrorObject::auth_required()),
            Some(client) => Ok(client),
        }
    }
}

fn route(core: &Arc<Core>, client: ClientHandle, request: IncomingRequest<'_>) {
    match request.method() {
        "session/prompt" => prompt(core, client, request),
        "session/new" => with(request, |request, responder| open::new(core, client, request, responder)),
        "session/load" => with(request, |request, responder| open::load(core, client, request, responder)),
        "session/resume" => {
            with(request, |request, responder| open::resume(core, client, request, responder))
        }
        "session/fork" => with(request, |request, responder| open::fork(core, client, request, responder)),
        "session/close" => with(request, |request, responder| open::close(core, request, responder)),
        "session/set_mode" => core.answer(request, manage::set_mode),
        "session/set_model" => core.answer(request, manage::set_model),
        "session/set_config_option" => core.answer(request, manage::set_config_option),
        "session/list" => core.answer(request, manage::list),
        "session/delete" => core.answer(request, manage::delete),
        "session/archive" => core.answer(request, manage::archive),
        "session/unarchive" => core.answer(request, manage::unarchive),
        "session/set_title" => core.answer(request, manage::set_title),
        "session/status" => core.answer(request, manage::status),
        "authenticate" => core.answer(request, initialize::authenticate),
        "logout" => core.answer(request, initialize::logout),
        "auth/status" => core.answer(request, initialize::auth_status),
        "providers/list" => core.answer(request, providers::list),
        "providers/set" => core.answer(request, providers::set),
        "providers/disable" => core.answer(request, providers::disable),
        "nes/start" => core.answer(request, |core, request| nes::start(core, request, client)),
        "nes/suggest" => core.answer(request, |core, request| nes::suggest(core, request, client)),
        "nes/close" => core.answer(request, nes::close),
        _ => extension(core, client, request),
    }
}

/// AUTH-05: methods that start or inspect sessions. AUTH-18: open sessions go on after a logout.
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

fn note(core: &Core, notification: IncomingNotification<'_>) {
    if notification.method() == CancelNotification::METHOD {
        // CANCEL-10: it has no effect on a session that is unknown or idle. RPC-04: it is never answered.
        let cancel = notification.decode(serde_json::from_str::<CancelNotification>, |_| None);
        if let Some(entry) = cancel.and_then(|cancel| core.sessions.get(&cancel.session_id)) {
            entry.cancel();
        }
        return;
    }
    let method = notification.method().to_owned();
    let (Some(params), Some(client)) = (notification.open(), core.client()) else { return };
    if let Some(take) = core.services.notifications.get(method.as_str()) {
        take(params, &client);
    } else if let Some(service) = &core.services.next_edits {
        core.nes.notification(&**service, &method, params);
    }
    // EXT-08: unknown notifications are ignored.
}

/// Decodes a request for a handler that responds by itself.
fn with<R: Request>(request: IncomingRequest<'_>, handle: impl FnOnce(R, Responder)) {
    if let Some((request, responder)) = super::read(request) {
        handle(request, responder);
    }
}

/// Registers the turn and spawns it. The cancel token is in the table before this returns, so a cancel that
/// follows the prompt at once finds it.
fn prompt(core: &Arc<Core>, client: ClientHandle, request: IncomingRequest<'_>) {
    with(request, |request: PromptRequest, responder| match begin(core, &request, &responder) {
        Err(error) => responder.err(error.to_wire()),
        Ok(running) => {
            let grace = core.services.cancel_grace;
            let prompt = Prompt::from(request.prompt);
            let (changing, meta) = (running.entry().last_change(), request.meta);
            let errors = core.errors.clone();
            let task = TurnTask { client, errors, running, changing, responder, prompt, meta, grace };
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

/// EXT-07, RPC-12: an extension's request is answered; one of an unknown method with -32601.
fn extension(core: &Arc<Core>, client: ClientHandle, request: IncomingRequest<'_>) {
    let Some((&method, serve)) = core.services.requests.get_key_value(request.method()) else {
        let error = ErrorObject::method_not_found(request.method());
        return request.reject(error);
    };
    let Some((params, responder)) = request.open() else { return };
    match serve(params, client) {
        Err(error) => responder.err(error.to_wire()),
        Ok(answering) => core.answer_later(Failing { method, session: None }, responder, async move {
            let raw = answering.await?;
            Ok(Box::new(move |responder: Responder| responder.ok(&*raw)) as Answer)
        }),
    }
}
