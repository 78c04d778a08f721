//! Capabilities of the client. An absent, `null` or malformed capability is unsupported.

pub use crate::v1::{ElicitationCapabilities, ElicitationFormCapabilities, ElicitationUrlCapabilities};

use crate::shape::*;

object! {
    // V2-03
    /// Capabilities of the client, sent once in `initialize`.
    pub struct ClientCapabilities {
        optional {
            /// Authentication methods that need the client.
            auth "auth": Option<ClientAuthCapabilities> [Lenient],
            /// Kinds of questions that it can show.
            elicitation "elicitation": Option<ElicitationCapabilities> [Lenient],
        }
    }
}

object! {
    /// Authentication methods that need the client.
    pub struct ClientAuthCapabilities {
        optional {
            /// Whether it can run the agent in a terminal to log in.
            terminal "terminal": Option<TerminalAuthCapabilities> [Lenient],
        }
    }
}

empty_objects! {
    /// The client can run the agent in a terminal to log in.
    TerminalAuthCapabilities,
}
