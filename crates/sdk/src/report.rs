//! Reports of handlers that fail: an id for the peer, the cause for the author.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use attache_conn::Peer;
use attache_rpc::ErrorObject;

use crate::id::unique_id;
use crate::task::catch_handler_panic;
use crate::{Error, SessionId};

/// A handler failed, and the peer sees only `internal error` with an id. Passed to
/// [`Agent::on_error`](crate::agent::Agent::on_error) and
/// [`Client::on_error`](crate::client::Client::on_error).
///
/// `Display` prints one line with the id and the whole chain of causes.
///
/// ```
/// use attache::client::Client;
///
/// let client = Client::new().on_error(|failure| eprintln!("[{}] {failure}", failure.error_id));
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HandlerError<'a> {
    /// The method of the request.
    pub method: &'a str,
    /// The session of the request, if it belongs to one.
    pub session_id: Option<&'a SessionId>,
    /// The error that the handler returned.
    pub error: &'a Error,
    /// The id that the peer gets as `data.errorId`.
    pub error_id: &'a str,
}

impl fmt::Display for HandlerError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed", self.method)?;
        if let Some(session) = self.session_id {
            write!(f, " in session {session}")?;
        }
        write!(f, " ({}): {}", self.error_id, Chain(self.error))
    }
}

/// An error with its causes, in one line.
struct Chain<'a>(&'a Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

/// The hook of a user.
pub(crate) type ErrorHook = Arc<dyn Fn(&HandlerError<'_>) + Send + Sync>;

/// The hook for raw lines that are no messages.
pub(crate) type NoiseHook = Arc<dyn Fn(&[u8], &str) + Send + Sync>;

/// Turns errors of handlers into responses and reports those that the peer cannot see.
#[derive(Clone)]
pub(crate) struct ErrorReporter {
    hook: Option<ErrorHook>,
    peer: Peer,
}

impl ErrorReporter {
    pub(crate) fn new(hook: Option<ErrorHook>, peer: Peer) -> Self {
        ErrorReporter { hook, peer }
    }

    /// The response for an error of a handler.
    pub(crate) fn respond(&self, method: &str, session_id: Option<&SessionId>, error: &Error) -> ErrorObject {
        let response = error.to_wire();
        // When our own peer is gone, handlers fail for that reason and the end is reported
        // elsewhere.
        let gone = matches!(error, Error::Closed(_)) && self.peer.is_read_closed();
        if gone || !error.is_hidden() {
            return response;
        }
        let error_id: String = unique_id("err");
        let failure = HandlerError { method, session_id, error, error_id: &error_id };
        tracing::error!(
            method,
            session = session_id.map(tracing::field::display),
            error_id,
            error = %Chain(error),
            "handler failed"
        );
        match &self.hook {
            Some(hook) => catch_handler_panic(|| hook(&failure)),
            // A subscriber has it already.
            None if tracing::enabled!(tracing::Level::ERROR) => {}
            None => print(&failure),
        }
        response
            .with_data(&[("errorId", &error_id)].into_iter().collect::<std::collections::BTreeMap<_, _>>())
    }
}

/// The only place where this crate prints: an unseen error would be worse.
#[expect(clippy::print_stderr, reason = "the documented default of `on_error`")]
fn print(failure: &HandlerError<'_>) {
    eprintln!("{failure}");
}
