//! Requests that are not taken yet.

use crate::Responder;
use crate::shared::Shared;
use attache_rpc::{Event, Frame, Id};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A request that nobody has taken yet, and that perhaps is none: nobody has looked at its `params`. See
/// [`Dispatch::unread_request`](crate::Dispatch::unread_request).
pub struct Ticket<'a> {
    shared: &'a Arc<Shared>,
    line: &'a [u8],
    fate: &'a mut Fate,
}

/// What became of a ticket.
pub(crate) enum Fate {
    /// Not taken.
    Open(Id),
    Taken,
    Refused(Cow<'static, str>),
}

impl<'a> Ticket<'a> {
    pub(crate) fn new(shared: &'a Arc<Shared>, line: &'a [u8], fate: &'a mut Fate) -> Self {
        Ticket { shared, line, fate }
    }

    /// Takes the request: from here on it is open and wants an answer. `None` if it had to be refused, because its id is in
    /// use or too many are open; the peer is told already.
    pub fn take(self) -> Option<Responder> {
        let Fate::Open(id) = std::mem::replace(self.fate, Fate::Taken) else { return None };
        // What is asked for, and with what, is the taker's business now.
        let request = Frame::Request { id, method: Cow::Borrowed(""), params: None };
        match self.shared.accept(request, self.line) {
            Event::Request { id, token, .. } => {
                return Some(Responder::new(self.shared, id, token, self.line.len()));
            }
            Event::Noise { reason, .. } => *self.fate = Fate::Refused(reason),
            _ => {}
        }
        None
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}
