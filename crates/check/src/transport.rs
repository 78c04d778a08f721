//! The transports of the protocol.

use std::fmt;

/// A transport between the two roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// The standard streams of a program.
    Stdio,
    /// A WebSocket.
    WebSocket,
    /// POST requests and streams of server-sent events.
    Http,
}

impl Transport {
    /// The transport that the rules of a section are about; `None` if they hold for all.
    pub(crate) fn of_section(section: &str) -> Option<Transport> {
        match section {
            "STDIO" => Some(Transport::Stdio),
            "WS" => Some(Transport::WebSocket),
            "HTTP" => Some(Transport::Http),
            _ => None,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Stdio => "stdio",
            Transport::WebSocket => "WebSocket",
            Transport::Http => "HTTP",
        })
    }
}
