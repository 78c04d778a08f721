//! Messages, as far as the transport has to understand them.

use std::borrow::Cow;

use attache_conn::rpc::{ErrorObject, Frame, Id, Malformed, Scan, encode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::message::{DEPTH, session_id};

/// Methods whose responses change the streams of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Initialize,
    /// `session/new` and `session/fork`: the result names a session.
    CreateSession,
    /// `session/load` and `session/resume`: the session is known.
    OpenSession,
    /// `session/close` and `session/delete`.
    CloseSession,
    /// A request that may be repeated without another effect.
    Repeatable,
    Other,
}

impl Method {
    fn of(name: &str) -> Method {
        match name {
            "initialize" => Method::Initialize,
            "session/new" | "session/fork" => Method::CreateSession,
            "session/load" | "session/resume" => Method::OpenSession,
            "session/close" | "session/delete" => Method::CloseSession,
            "session/list" => Method::Repeatable,
            _ => Method::Other,
        }
    }
}

/// A message of the client or the agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Request {
        id: Id,
        method: Method,
        session: Option<String>,
    },
    Notification {
        session: Option<String>,
    },
    /// A response; `session` is the one that a result names.
    Response {
        id: Id,
        session: Option<String>,
        is_error: bool,
    },
    /// Anything else; the receiver answers it.
    Invalid,
}

impl Message {
    /// Reads an outgoing line.
    pub(super) fn outgoing(line: &[u8]) -> Message {
        Message::read(line, true)
    }

    /// Reads an incoming line. The session of a notification is not looked for: its stream is
    /// known.
    pub(super) fn incoming(line: &[u8]) -> Message {
        Message::read(line, false)
    }

    fn read(line: &[u8], sessions_of_notifications: bool) -> Message {
        match Scan::line(line, DEPTH) {
            Scan::Call(call) => match call.id {
                Some(id) => {
                    Message::Request { id, method: Method::of(call.method), session: session(call.params) }
                }
                None if sessions_of_notifications => Message::Notification { session: session(call.params) },
                None => Message::Notification { session: None },
            },
            Scan::Frame(Frame::Request { id, method, params }) => {
                let session = params.and_then(|params| session(params.get()));
                Message::Request { id, method: Method::of(&method), session }
            }
            Scan::Frame(Frame::Notification { method, params }) => {
                // HTTP-34: `$/…` belongs to the connection.
                let params = params.filter(|_| sessions_of_notifications && !method.starts_with('$'));
                Message::Notification { session: params.and_then(|params| session(params.get())) }
            }
            Scan::Frame(Frame::Response { id, outcome }) => Message::Response {
                id,
                is_error: outcome.is_err(),
                session: outcome.ok().and_then(|result| session(RawValue::get(result))),
            },
            // The client waits for the answer to a request that is not well-formed too.
            Scan::Frame(Frame::Malformed(Malformed { answer: Some((id, _)), .. }))
                if sessions_of_notifications && id != Id::Null =>
            {
                Message::Request { id, method: Method::Other, session: None }
            }
            Scan::Frame(_) => Message::Invalid,
        }
    }
}

fn session(json: &str) -> Option<String> {
    session_id(json).map(Cow::into_owned)
}

/// An error response, for a request that did not reach the agent.
pub(super) fn error_response(id: &Id, error: &ErrorObject) -> Vec<u8> {
    let mut line = Vec::new();
    // Ids and errors always have a JSON form.
    let _ = encode::error(&mut line, id, error);
    line.pop();
    line
}

/// The error in the body of a refused message; `None` if the body is something else.
pub(super) fn error_of(body: &[u8]) -> Option<ErrorObject> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Error,
    }
    #[derive(Deserialize)]
    struct Error {
        code: i32,
        message: String,
    }
    let Refusal { error } = serde_json::from_slice(body).ok()?;
    Some(ErrorObject::new(error.code, error.message))
}

/// The protocol version in the response to `initialize`.
pub(super) fn protocol_version(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Response {
        result: Result,
    }
    #[derive(Deserialize)]
    struct Result {
        #[serde(rename = "protocolVersion")]
        version: u64,
    }
    serde_json::from_slice::<Response>(line).ok().map(|response| response.result.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_their_session() {
        let request = br#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s\u0031","prompt":[]}}"#;
        let expected = Message::Request { id: Id::Int(1), method: Method::Other, session: Some("s1".into()) };
        assert_eq!(Message::outgoing(request), expected);
        let loose = br#" {"params":{"sessionId":"s"},"method":"session/load","id":"a","jsonrpc":"2.0"}"#;
        let expected =
            Message::Request { id: Id::from("a"), method: Method::OpenSession, session: Some("s".into()) };
        assert_eq!(Message::outgoing(loose), expected);
        let cancel = br#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
        assert_eq!(Message::outgoing(cancel), Message::Notification { session: Some("s".into()) });
        // HTTP-34
        let general =
            br#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1,"sessionId":"s"}}"#;
        assert_eq!(Message::outgoing(general), Message::Notification { session: None });
        let created = br#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#;
        let expected = Message::Response { id: Id::Int(2), session: Some("s".into()), is_error: false };
        assert_eq!(Message::incoming(created), expected);
        let refused = br#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no"}}"#;
        let expected = Message::Response { id: Id::Int(2), session: None, is_error: true };
        assert_eq!(Message::incoming(refused), expected);
        assert_eq!(Message::incoming(b"[]"), Message::Invalid);
        let array = br#"{"jsonrpc":"2.0","id":3,"method":"session/new","params":[1]}"#;
        let expected_array = Message::Request { id: Id::Int(3), method: Method::Other, session: None };
        assert_eq!(Message::outgoing(array), expected_array);
        assert_eq!(Message::incoming(array), Message::Invalid);
        let error = error_response(&Id::Int(2), &ErrorObject::internal("why"));
        assert_eq!(Message::incoming(&error), expected);
        let body = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no array"}}"#;
        let error = error_of(body).map(|error| (error.code, error.message));
        assert_eq!(error, Some((-32600, "no array".to_owned())));
        assert!(error_of(b"Bad Request").is_none());
        assert_eq!(protocol_version(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#), Some(1));
    }
}
