//! The opening handshake of a WebSocket.

use std::time::Duration;

use attache_conn::Link;

use super::super::{Response, Upgrade};
use super::{Endpoint, RemoteError};
use crate::ws::{self, Role, Settings};

/// Time for the response to the upgrade request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest message. The link skips one that is over its own limit; one that is longer than this
/// ends the connection instead, because the time to read it has no bound.
// WS-21
const MAX_MESSAGE: u64 = 256 << 20;

pub(super) enum Outcome {
    Link(Link),
    /// The server gave another response.
    Refused(Response),
}

/// Asks the server for a WebSocket. Redirects are not followed.
// WS-01, WS-22
pub(super) async fn open(endpoint: &Endpoint) -> Result<Outcome, RemoteError> {
    let key = ws::random_key().map_err(|error| RemoteError::Protocol(error.to_string()))?;
    let request = endpoint
        .get()
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", &key);
    let upgrade = tokio::time::timeout(TIMEOUT, endpoint.client.upgrade(&request)).await;
    let Ok(upgrade) = upgrade else {
        return Err(RemoteError::Protocol(
            "the server does not answer the request for a WebSocket".to_owned(),
        ));
    };
    let upgraded = match upgrade? {
        Upgrade::Switched(upgraded) => upgraded,
        Upgrade::Refused(response) => {
            response.header_values("set-cookie").for_each(|cookie| endpoint.cookies.store(cookie));
            return Ok(Outcome::Refused(response));
        }
    };
    upgraded.header_values("set-cookie").for_each(|cookie| endpoint.cookies.store(cookie));
    let wrong = |what: &str| {
        Err(RemoteError::Protocol(format!("the server's WebSocket handshake is invalid: {what}")))
    };
    if upgraded.header("sec-websocket-accept") != Some(ws::accept_key(&key).as_str()) {
        return wrong("wrong key");
    }
    if upgraded.header("sec-websocket-extensions").is_some_and(|extensions| !extensions.trim().is_empty()) {
        return wrong("it uses an extension that was not offered");
    }
    if upgraded.header("sec-websocket-protocol").is_some() {
        return wrong("it uses a subprotocol that was not offered");
    }
    let (socket, received) = upgraded.into_parts();
    let settings = Settings { message: MAX_MESSAGE, ..Settings::default() };
    Ok(Outcome::Link(ws::link(socket, Role::Client, settings, received)))
}
