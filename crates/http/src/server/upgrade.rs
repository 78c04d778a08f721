//! The upgrade to a WebSocket.

use super::Accepted;
use super::access::{Identity, SUBPROTOCOL};
use super::listen::{Shared, Stream};
use super::meter::Meter;
use super::registry::SocketClient;
use super::response::{self, Response};
use super::router::{self, CONNECTION_ID, NotAdmitted};
use super::usage::SocketBytes;
use crate::Transport;
use crate::ws::{self, Role, Settings};
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{HeaderMap, Request, StatusCode, Version};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::{Parts, downcast};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

/// How long a refused client may take to read why.
const REFUSAL: Duration = Duration::from_secs(1);

/// Whether a request asks for a WebSocket.
pub(super) fn is_upgrade<B>(request: &Request<B>) -> bool {
    has_word(request.headers(), &UPGRADE, "websocket")
}

/// Whether a comma-separated header has a word.
fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
}

/// Accepts an upgrade. The client is accepted when the socket is there.
// WS-01, WS-02
pub(super) fn accept<B>(
    shared: &Arc<Shared>,
    remote: SocketAddr,
    mut request: Request<B>,
    name: Option<String>,
    identity: Option<Identity>,
) -> Response {
    let headers = request.headers();
    if request.version() != Version::HTTP_11 || !has_word(headers, &CONNECTION, "upgrade") {
        return response::refuse(
            StatusCode::BAD_REQUEST,
            "a WebSocket needs HTTP/1.1 and `Connection: Upgrade`",
        );
    }
    if !has_word(headers, &SEC_WEBSOCKET_VERSION, "13") {
        // WS-15
        let mut response =
            response::refuse(StatusCode::UPGRADE_REQUIRED, "this server speaks WebSocket version 13");
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return response;
    }
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()) else {
        return response::refuse(StatusCode::BAD_REQUEST, "there is no Sec-WebSocket-Key");
    };
    let key = ws::accept_key(key);
    let has_subprotocol = has_word(headers, &SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
    let admitted = router::admit(shared, identity.as_ref());
    // A page cannot see the response to a refused upgrade, only the status of a closed WebSocket.
    if let Err(not_admitted) = &admitted
        && !headers.contains_key(ORIGIN)
    {
        return not_admitted.response();
    }
    let mut response = response::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response::insert(headers, SEC_WEBSOCKET_ACCEPT, &key);
    // WS-13: a client that offered subprotocols fails if none is named; one that offered none fails
    // if one is.
    if has_subprotocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    if let Ok((_, id)) = &admitted {
        response::insert(headers, CONNECTION_ID, id);
    }
    let upgrade = hyper::upgrade::on(&mut request);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return debug!(%remote, %error, "upgrade failed"),
        };
        let Ok(Parts { io, read_buf, .. }) = downcast::<TokioIo<Stream>>(upgraded) else {
            return debug!(%remote, "upgrade of a foreign socket");
        };
        let settings =
            Settings { message: shared.options.limits.message as u64, ..shared.options.ws.clone() };
        let (admission, id) = match admitted {
            Ok(admitted) => admitted,
            Err(NotAdmitted { close, why, .. }) => {
                return refuse(io.into_inner(), settings, close, why).await;
            }
        };
        let usage = admission.usage.clone();
        let mut socket = io.into_inner();
        socket.client = Some(SocketClient::new(&shared.connections, &id, admission));
        let budget = Box::new(SocketBytes::new(&usage, &shared.options.limits));
        let (link, closer) = ws::link_with_budget(socket, settings, read_buf.to_vec(), budget);
        let mut meter = Meter::new(shared.options.limits.clone(), usage, closer.clone());
        let link = link.tap(move |flow, line| meter.message(flow, line));
        shared.connections.insert_socket(&id, identity.clone(), closer.clone());
        let (transport, closer) = (Transport::WebSocket, Some(closer));
        let client = Accepted { link, name, identity, remote, transport, closer };
        // A server that was dropped accepts no client.
        let _ = shared.accepted.send(client).await;
    });
    response
}

/// Closes a WebSocket with a status, and waits a little for the peer to read it.
async fn refuse(stream: Stream, settings: Settings, code: u16, why: &str) {
    let (link, closer) = ws::link_with_closer(stream, Role::Server, settings, Vec::new());
    closer.set_end(code, why);
    let (mut reader, mut writer) = link.split();
    let _ = tokio::time::timeout(REFUSAL, async {
        let _ = writer.close().await;
        while let Ok(Some(_)) = reader.next().await {}
    })
    .await;
}
