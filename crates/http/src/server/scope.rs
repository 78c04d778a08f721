//! The scope of a message: the connection or one of its sessions.
//!
//! It is read from the beginning of the encoded line, which costs the same for every size of
//! message. So a frame needs no second form inside, messages of other programs are routed like our
//! own, and other transports pay nothing.

use crate::message::{DEPTH, session_id};
use attache_conn::rpc::{Frame, Id, Scan};
use std::borrow::Cow;

/// Scope of an outgoing message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scope<'a> {
    /// The response to a request, which has the scope of the request; with the session that its
    /// result names.
    Response(Id, Option<Cow<'a, str>>),
    /// A request or notification of one session.
    Session(Cow<'a, str>),
    /// Everything else.
    Connection,
}

/// Returns the scope of an encoded message.
pub(super) fn of(line: &[u8]) -> Scope<'_> {
    match Scan::line(line, DEPTH) {
        Scan::Call(call) => session_id(call.params).map_or(Scope::Connection, Scope::Session),
        Scan::Frame(frame) => match frame {
            Frame::Response { id, outcome } => {
                Scope::Response(id, outcome.ok().and_then(|result| session_id(result.get())))
            }
            // HTTP-34: `$/` methods belong to the connection.
            Frame::Request { method, params, .. } | Frame::Notification { method, params }
                if !method.starts_with('$') =>
            {
                params.and_then(|params| session_id(params.get())).map_or(Scope::Connection, Scope::Session)
            }
            _ => Scope::Connection,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes() {
        let session = |id: &'static str| Scope::Session(Cow::Borrowed(id));
        for (line, scope) in [
            (
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{}}}"#,
                session("a"),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{},"sessionId":"a"}}"#,
                session("a"),
            ),
            (r#"{"params":{"sessionId":"\u0061\""},"id":1,"method":"x","jsonrpc":"2.0"}"#, session("a\"")),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"sessionId":"a"}}"#,
                Scope::Response(Id::Int(7), Some(Cow::Borrowed("a"))),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"7","error":{"code":1,"message":"m"}}"#,
                Scope::Response(Id::from("7"), None),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"sessionId":"a"}}"#,
                Scope::Connection,
            ),
            (r#"{"jsonrpc":"2.0","method":"x","params":{"sessionId":null}}"#, Scope::Connection),
            (r#"{"jsonrpc":"2.0","method":"x"}"#, Scope::Connection),
            ("text", Scope::Connection),
        ] {
            assert_eq!(of(line.as_bytes()), scope, "{line}");
        }
    }
}
