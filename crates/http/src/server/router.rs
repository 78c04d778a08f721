//! Requests become responses.

use super::access::{self, Identity, Refusal};
use super::body::{Message, RequestBody, needs_session, read};
use super::connection::{Connection, NotTaken, Route};
use super::listen::Shared;
use super::registry::{Admission, status};
use super::response::{RETRY, Response, empty, insert, json, refuse, refused, too_many};
use super::sse::Events;
use super::usage::{Full, HeldBytes};
use super::{Accepted, upgrade};
use crate::Transport;
use crate::message::DEPTH;
use attache_conn::rpc::{Frame, Id};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::Either;
use hyper::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN,
    RETRY_AFTER, USER_AGENT, VARY, WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, Method, Request, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(super) const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Ids are copied into maps, so they have a bound.
const MAX_ID: usize = 1_024;
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");

/// Responds to one request.
pub(super) async fn respond<B: RequestBody>(
    shared: &Arc<Shared>,
    remote: SocketAddr,
    request: Request<B>,
) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = match routed(shared, remote, request).await {
        Ok(response) => response,
        Err(response) => *response,
    };
    if let Some(origin) = origin
        && response.status() != StatusCode::FORBIDDEN
    {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let exposed = HeaderValue::from_static("Acp-Connection-Id, Acp-Session-Id, Retry-After");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}

type Routed = Result<Response, Box<Response>>;

async fn routed<B: RequestBody>(shared: &Arc<Shared>, remote: SocketAddr, request: Request<B>) -> Routed {
    let path = request.uri().path();
    let authority = request.uri().authority().map(|authority| authority.as_str());
    if let Some(status) = status_page(shared, remote, request.method(), path) {
        // A page of another site must not read it, also not under a name of its own. There is no
        // token to check.
        let checked = access::check(request.headers(), authority, remote.ip(), &shared.options);
        return match checked {
            Err(Refusal::Host | Refusal::Origin) => Err(forbidden(checked)),
            Ok(_) | Err(Refusal::Token) => Ok(status),
        };
    }
    let name = endpoint(shared, path)?;
    let checked = access::check(request.headers(), authority, shared.address.ip(), &shared.options);
    if request.method() == Method::OPTIONS {
        // A preflight has no token.
        return match checked {
            Err(Refusal::Host | Refusal::Origin) => Err(forbidden(checked)),
            Ok(_) | Err(Refusal::Token) => Ok(preflight()),
        };
    }
    let identity = match checked {
        Ok(identity) => identity,
        Err(_) => return Err(forbidden(checked)),
    };
    // HTTP-01
    match *request.method() {
        Method::POST => post(shared, remote, request, name, identity).await,
        Method::GET if upgrade::is_upgrade(&request) => {
            Ok(upgrade::accept(shared, remote, request, name, identity))
        }
        // HTTP-09
        Method::GET => stream(shared, &request, name.as_deref(), identity.as_ref()),
        Method::DELETE => delete(shared, &request, name.as_deref(), identity.as_ref()),
        _ => {
            let mut response =
                refused(StatusCode::METHOD_NOT_ALLOWED, "the methods are GET, POST and DELETE");
            response.headers_mut().insert(ALLOW, METHODS);
            Err(response)
        }
    }
}

/// The state of the server, for supervisors on this machine.
fn status_page(shared: &Shared, remote: SocketAddr, method: &Method, path: &str) -> Option<Response> {
    if method != Method::GET || !remote.ip().is_loopback() {
        return None;
    }
    match path {
        "/ready" if shared.is_draining() => Some(refuse(StatusCode::SERVICE_UNAVAILABLE, "draining")),
        "/health" | "/ready" => Some(refuse(StatusCode::OK, "ok")),
        "/metrics" => {
            let metrics = shared.options.metrics.as_ref()?;
            Some(refuse(StatusCode::OK, metrics.0().trim_end()))
        }
        _ => None,
    }
}

/// The name behind the path of the endpoint.
fn endpoint(shared: &Shared, path: &str) -> Result<Option<String>, Box<Response>> {
    let nothing = || refused(StatusCode::NOT_FOUND, "there is nothing here");
    let rest = path.strip_prefix(shared.options.path.as_str()).ok_or_else(nothing)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() {
        return Ok(None);
    }
    let name = rest.strip_prefix('/').ok_or_else(nothing)?;
    let known = shared.options.names.iter().find(|known| *known == name);
    known.cloned().map(Some).ok_or_else(|| refused(StatusCode::NOT_FOUND, "there is no agent of that name"))
}

fn forbidden(checked: Result<Option<Identity>, Refusal>) -> Box<Response> {
    match checked {
        Err(Refusal::Host) => refused(StatusCode::FORBIDDEN, "the Host header does not name this server"),
        Err(Refusal::Origin) => refused(StatusCode::FORBIDDEN, "pages of this origin may not connect"),
        _ => {
            let mut response = refused(StatusCode::UNAUTHORIZED, "a valid token is needed");
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

fn preflight() -> Response {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    let allowed = "Authorization, Content-Type, Accept, Acp-Connection-Id, Acp-Session-Id, Acp-Protocol-Version, Last-Event-ID";
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    response
}

/// A client that gets no place.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotAdmitted {
    status: StatusCode,
    /// The status of a WebSocket for the same reason.
    pub(super) close: u16,
    pub(super) why: &'static str,
}

impl NotAdmitted {
    pub(super) fn response(self) -> Response {
        let mut response = refuse(self.status, self.why);
        response.headers_mut().insert(RETRY_AFTER, RETRY);
        response
    }
}

/// Reserves a place for a client and makes its id.
pub(super) fn admit(
    shared: &Shared,
    identity: Option<&Identity>,
) -> Result<(Admission, String), NotAdmitted> {
    let not = |status, close, why| NotAdmitted { status, close, why };
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    if shared.is_draining() {
        return Err(not(unavailable, status::RESTART, "the server is going down"));
    }
    let admission = shared.connections.reserve(identity).map_err(|full| match full {
        Full::Server => not(unavailable, status::OVERLOADED, "the server has too many clients"),
        Full::Identity => {
            not(StatusCode::TOO_MANY_REQUESTS, status::POLICY, "this token has too many clients")
        }
    })?;
    let mut bytes = [0; 24];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| not(unavailable, status::OVERLOADED, "the system has no random numbers"))?;
    Ok((admission, URL_SAFE_NO_PAD.encode(bytes)))
}

/// A header that holds an id.
fn id_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Box<Response>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if !text.is_empty() && text.len() <= MAX_ID => Ok(Some(text)),
        _ => Err(refused(StatusCode::BAD_REQUEST, &format!("the header {name} has an invalid value"))),
    }
}

/// The connection that a request names.
// HTTP-14, HTTP-19
fn connection(
    shared: &Shared,
    headers: &HeaderMap,
    name: Option<&str>,
    identity: Option<&Identity>,
) -> Result<Arc<Connection>, Box<Response>> {
    let Some(id) = id_header(headers, &CONNECTION_ID)? else {
        return Err(refused(StatusCode::BAD_REQUEST, "there is no Acp-Connection-Id"));
    };
    shared.connections.get(id, identity, name).ok_or_else(gone)
}

fn gone() -> Box<Response> {
    refused(StatusCode::NOT_FOUND, "there is no such connection")
}

fn not_taken(why: NotTaken) -> Box<Response> {
    match why {
        NotTaken::Over => gone(),
        NotTaken::TooManySessions => too_many("there are too many sessions of this client or its token"),
        NotTaken::TooManyRequests => too_many("there are too many open requests of this client or its token"),
    }
}

/// Opens a stream.
fn stream<B>(
    shared: &Shared,
    request: &Request<B>,
    name: Option<&str>,
    identity: Option<&Identity>,
) -> Routed {
    let headers = request.headers();
    // HTTP-18
    let accepts = headers.get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let is_event_stream = |part: &str| {
        part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case("text/event-stream"))
    };
    if !accepts.flat_map(|value| value.split(',')).any(is_event_stream) {
        return Err(refused(StatusCode::NOT_ACCEPTABLE, "a stream needs `Accept: text/event-stream`"));
    }
    let connection = connection(shared, headers, name, identity)?;
    let session = id_header(headers, &SESSION_ID)?;
    let reader = connection.attach(session).map_err(|why| match why {
        // HTTP-20
        NotTaken::TooManySessions => refused(StatusCode::NOT_FOUND, "there is no such session"),
        other => not_taken(other),
    })?;
    let events = Events::new(connection, reader, shared.options.limits.comment);
    let mut response = Response::new(Either::Right(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// Ends a connection.
// HTTP-22
fn delete<B>(
    shared: &Shared,
    request: &Request<B>,
    name: Option<&str>,
    identity: Option<&Identity>,
) -> Routed {
    let connection = connection(shared, request.headers(), name, identity)?;
    shared.connections.remove(&connection.id);
    connection.end(true);
    Ok(empty(StatusCode::ACCEPTED))
}

/// Takes a message.
async fn post<B: RequestBody>(
    shared: &Arc<Shared>,
    remote: SocketAddr,
    request: Request<B>,
    name: Option<String>,
    identity: Option<Identity>,
) -> Routed {
    let (head, body) = request.into_parts();
    let headers = head.headers;
    // HTTP-17
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    if !content_type.eq_ignore_ascii_case("application/json") {
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"));
    }
    let mut received = shared.connections.received(identity.as_ref());
    let body = read(shared, body, &mut received).await?;
    let message = Message::read(&body)?;
    let is_initialize = message.method == Some("initialize");
    let connection_id = id_header(&headers, &CONNECTION_ID)?;
    if is_initialize && connection_id.is_none() {
        let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some(id) = message.id else {
            return Err(refused(StatusCode::BAD_REQUEST, "initialize is a request and needs an id"));
        };
        let from = Initiator { remote, name, identity, user_agent };
        return initialize(shared, from, id, &body, received).await;
    }
    let connection = connection(shared, &headers, name.as_deref(), identity.as_ref())?;
    let in_header = id_header(&headers, &SESSION_ID)?;
    // HTTP-16
    let session = match (in_header, message.session.as_deref()) {
        (Some(header), Some(params)) if header != params => {
            return Err(refused(StatusCode::BAD_REQUEST, "Acp-Session-Id and params.sessionId differ"));
        }
        (header, params) => header.or(params),
    };
    // HTTP-15
    if session.is_none() && message.method.is_some_and(needs_session) {
        return Err(refused(StatusCode::BAD_REQUEST, "there is neither Acp-Session-Id nor params.sessionId"));
    }
    if is_initialize {
        // A second offer is answered like the first.
        let Some(id) = message.id else {
            return Err(refused(StatusCode::BAD_REQUEST, "initialize is a request and needs an id"));
        };
        let (sender, answer) = oneshot::channel();
        connection
            .receive(&body, received, None, Some((id, Route::Body(sender))))
            .await
            .map_err(not_taken)?;
        let answer = answer.await.map_err(|_| gone())?;
        return Ok(json(StatusCode::OK, answer));
    }
    let route = message.id.filter(|_| message.method.is_some()).map(|id| {
        let own = || session.map(Arc::<str>::from);
        let route = match message.method {
            Some("session/new") => Some(Route::Opening),
            Some("session/load" | "session/resume" | "session/fork" | "session/close" | "session/delete") => {
                own().map(Route::SessionIfRead)
            }
            _ => own().map(Route::Session),
        };
        (id, route.unwrap_or(Route::Connection))
    });
    connection.receive(&body, received, session, route).await.map_err(not_taken)?;
    // HTTP-08
    Ok(empty(StatusCode::ACCEPTED))
}

/// Ends a new connection whose client did not wait for the answer.
struct Unfinished<'a>(&'a Shared, Option<Arc<Connection>>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.1.take() {
            self.0.connections.remove(&connection.id);
            connection.end(true);
        }
    }
}

/// The client of a new connection.
struct Initiator<'a> {
    remote: SocketAddr,
    name: Option<String>,
    identity: Option<Identity>,
    user_agent: &'a str,
}

/// Creates a connection.
// HTTP-05, HTTP-06, HTTP-07
async fn initialize(
    shared: &Arc<Shared>,
    from: Initiator<'_>,
    id: Id,
    body: &[u8],
    received: HeldBytes,
) -> Routed {
    let Initiator { remote, name, identity, user_agent } = from;
    let limits = &shared.options.limits;
    let (admission, connection_id) =
        admit(shared, identity.as_ref()).map_err(|not| Box::new(not.response()))?;
    let ascii = user_agent.starts_with("python-httpx");
    let connection = Connection::new(connection_id, name.clone(), identity.clone(), limits, ascii, admission);
    let link = connection.link();
    let mut unfinished = Unfinished(shared, Some(Arc::clone(&connection)));
    let (sender, answer) = oneshot::channel();
    connection.receive(body, received, None, Some((id, Route::Body(sender)))).await.map_err(not_taken)?;
    let client =
        Accepted { link, name, identity, remote, transport: Transport::StreamableHttp, closer: None };
    shared.accepted.send(client).await.map_err(|_| gone())?;
    let answer = match tokio::time::timeout(limits.initialize, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => return Err(refused(StatusCode::BAD_GATEWAY, "the agent ended before it answered")),
        Err(_) => return Err(refused(StatusCode::GATEWAY_TIMEOUT, "the agent did not answer in time")),
    };
    let is_error = matches!(Frame::parse(&answer, DEPTH), Frame::Response { outcome: Err(_), .. });
    let mut response = json(StatusCode::OK, answer);
    // HTTP-29
    if !is_error {
        unfinished.1 = None;
        shared.connections.insert(&connection);
        insert(response.headers_mut(), CONNECTION_ID, &connection.id);
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
