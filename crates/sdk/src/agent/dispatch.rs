//! Dispatch of the client's messages. Dispatch is a plain function: it decodes, registers and
//! spawns but never waits, so no handler can block the reader. On a runtime with one thread, where
//! nothing else could run meanwhile, a handler is polled once before it is spawned (`Core::begin`).

use std::sync::Arc;

use attache_conn::{Dispatch, IncomingNotification, IncomingRequest, Peer, Reason, Responder, Side};
use attache_rpc::ErrorObject;
use attache_wire::v1::{
    CancelNotification, InitializeRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
    ProtocolVersion, ResumeSessionRequest,
};
use attache_wire::v2::{ErrorCode, UnsupportedProtocolVersionErrorData};
use attache_wire::{Notification, Request};

use super::builder::Agent;
use super::client::ClientHandle;
use super::core::{Answer, Core, Failing};
use super::method::Method;
use super::steering::{Offer, PendingPrompt, PromptSource};
use super::table::BeginError;
use super::turn_task::{self, TurnTask};
use super::{initialize, manage, open, v2};
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
        Router { core, client: None, used: false }
    });
    let core = shared.ok_or_else(|| Error::internal("the connection was not opened"))?;
    let _abort = core.abort_on_drop();
    // A task of its own: on a runtime with several threads the reader then runs beside the handlers
    // it wakes.
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
    /// A copy of the client in `core`, which needs a lock.
    client: Option<ClientHandle>,
    /// Whether the client sent another request than `initialize`.
    used: bool,
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
            self.initialize(request);
            self.client = self.core.client();
            return;
        }
        let Some(client) = &self.client else {
            // INIT-03: nothing before initialize.
            return request.reject(ErrorObject::invalid_request("`initialize` comes first"));
        };
        // V2-01
        if client.is_v2() && request.has_null_id() {
            return request.reject(null_id());
        }
        // A request that was refused above does not count.
        self.used = true;
        match find(request.method(), client.is_v2()) {
            None => extension(&self.core, client.clone(), request),
            Some(method) if !(method.is_installed)(&self.core.services) => {
                request.reject(ErrorObject::method_not_found(method.name));
            }
            Some(method) if method.needs_login && !self.core.is_logged_in() => {
                request.reject(ErrorObject::auth_required());
            }
            Some(method) => (method.serve)(&self.core, client.clone(), request),
        }
    }
}

impl Router {
    /// The version decides about the type of the params. `initialize` can be repeated, but the
    /// version of a connection stays once it is used.
    fn initialize(&self, request: IncomingRequest<'_>) {
        let offered: Option<u16> = super::member(request.params_text(), "protocolVersion");
        let v2_offer = offered.filter(|offered| self.core.services.v2 && *offered >= ProtocolVersion::V2.0);
        let present = self.client.as_ref().map(ClientHandle::version);
        match (present, v2_offer) {
            (Some(ProtocolVersion::V2), _) if self.used => {
                request.reject(ErrorObject::invalid_request("the connection is initialized"));
            }
            (Some(ProtocolVersion::V2), None) => request.reject(match offered {
                Some(offered) => unsupported_version(offered),
                None => ErrorObject::invalid_params("`protocolVersion` is not a version"),
            }),
            (Some(ProtocolVersion::V1), Some(_)) if self.used => {
                request.reject(ErrorObject::invalid_request("the connection is initialized with version 1"));
            }
            // V2-01
            (_, Some(_)) if request.has_null_id() => request.reject(null_id()),
            (_, Some(offered)) => {
                if let Some((request, responder)) = v2::read_initialize(request, offered) {
                    v2::initialize(&self.core, request, responder);
                }
            }
            _ => {
                if let Some((request, responder)) = super::read(request, false) {
                    initialize::initialize(&self.core, request, responder);
                }
            }
        }
    }
}

fn null_id() -> ErrorObject {
    ErrorObject::invalid_request("the id of a request is never null")
}

/// A connection of version 2 cannot change to version 1.
// INIT-08
fn unsupported_version(offered: u16) -> ErrorObject {
    let data = UnsupportedProtocolVersionErrorData::new(offered, [ProtocolVersion::V2]);
    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0;
    ErrorObject::new(code, "unsupported protocol version").with_data(&data)
}

/// The stable methods, the frequent ones first.
static METHODS: &[Method] = &[
    Method::new("session/prompt", prompt),
    Method::new("session/new", open::serve::<NewSessionRequest>).after_login(),
    Method::new("session/load", open::serve::<LoadSessionRequest>)
        .if_installed(|services| services.load.is_some()) // SESS-09
        .after_login(),
    Method::new("session/resume", open::serve::<ResumeSessionRequest>)
        .if_installed(|services| services.resume.is_some())
        .after_login(),
    Method::new("session/close", open::close),
    Method::new("session/set_mode", |core, _, request| core.answer(request, manage::set_mode)),
    Method::new("session/set_config_option", |core, _, request| {
        core.answer(request, manage::set_config_option);
    }),
    Method::new("session/list", |core, _, request| core.answer(request, manage::list))
        .if_installed(|services| services.list.is_some())
        .after_login(),
    Method::new("session/delete", |core, _, request| core.answer(request, manage::delete))
        .if_installed(|services| services.delete.is_some())
        .after_login(),
    Method::new("authenticate", |core, _, request| core.answer(request, initialize::authenticate))
        .if_installed(|services| services.auth.is_some()),
    Method::new("logout", |core, _, request| core.answer(request, initialize::logout))
        .if_installed(|services| services.logout.is_some()),
];

/// The method of a name; `None` for extensions and unknown ones.
// INIT-10: those of the agreed version and no others.
fn find(name: &str, in_v2: bool) -> Option<&'static Method> {
    const V1: &[&[Method]] = &[
        METHODS,
        #[cfg(feature = "unstable")]
        super::unstable::METHODS,
        #[cfg(feature = "drafts")]
        super::drafts::METHODS,
    ];
    const V2: &[&[Method]] = &[
        v2::METHODS,
        #[cfg(feature = "unstable")]
        v2::UNSTABLE,
        #[cfg(feature = "unstable")]
        super::unstable::METHODS,
    ];
    let tables = if in_v2 { V2 } else { V1 };
    tables.iter().copied().flatten().find(|method| method.name == name)
}

fn note(core: &Core, notification: IncomingNotification<'_>) {
    if notification.method() == CancelNotification::METHOD {
        // CANCEL-10: it has no effect on a session that is unknown or idle. RPC-04: it is never
        // answered.
        let cancel = notification.decode(serde_json::from_str::<CancelNotification>, |_| None);
        if let Some(entry) = cancel.and_then(|cancel| core.sessions.get(&cancel.session_id)) {
            entry.cancel();
        }
        return;
    }
    let method = notification.method().to_owned();
    let (Some(params), Some(client)) = (notification.open(), core.client()) else { return };
    match core.services.notifications.get(method.as_str()) {
        Some(take) => take(params, &client),
        #[cfg(feature = "drafts")]
        None => {
            if let Some(service) = &core.services.drafts.next_edits {
                core.nes.notification(&**service, &method, params);
            }
        }
        #[cfg(not(feature = "drafts"))]
        None => {}
    }
    // EXT-08: unknown notifications are ignored.
}

/// Registers the turn and spawns it. The cancel token is in the table before this returns, so a
/// cancel that follows the prompt at once finds it.
// The request has the same members in both versions.
pub(super) fn prompt(core: &Arc<Core>, client: ClientHandle, request: IncomingRequest<'_>) {
    let Some((request, responder)) = super::read::<PromptRequest>(request, client.is_v2()) else { return };
    let PromptRequest { session_id, prompt, meta, .. } = request;
    let entry = core.session(&session_id);
    let entry = entry.and_then(|entry| {
        initialize::check_prompt(&core.services.prompt, &prompt)?;
        Ok(entry)
    });
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => return responder.err(error.to_wire()),
    };
    let token = responder.cancellation();
    let pending = PendingPrompt { responder, prompt: Prompt::from(prompt), meta };
    let source = match core.services.steering {
        true => PromptSource::Offered(Offer::new(pending)),
        false => PromptSource::Own(pending),
    };
    let offer = if let PromptSource::Offered(offer) = &source { Some(offer.clone()) } else { None };
    let queue = client.is_v2() || offer.is_some();
    let running = match entry.begin(token.clone(), queue, offer) {
        Ok(running) => running,
        Err(refusal) => {
            let error = match refusal {
                // PROMPT-13: one turn at a time; the second prompt is refused, and the first
                // continues.
                BeginError::Busy => ErrorObject::invalid_request("a turn is already running in this session"),
                BeginError::Shut => Error::unknown_session(session_id.as_str()).to_wire(),
            };
            return source.take().map_or((), |pending| pending.responder.err(error));
        }
    };
    let changing = running.entry().last_change();
    let (errors, grace) = (core.errors.clone(), core.services.cancel_grace);
    core.spawn(turn_task::run(TurnTask { client, errors, running, changing, token, source, grace }));
}

// EXT-07, RPC-12: an extension's request is answered; one of an unknown method with -32601.
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
