#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "hyper")]
mod message;
pub mod proxy;
#[cfg(feature = "server")]
pub mod server;
pub mod ws;

/// A transport of remote connections.
///
/// ```
/// use attache_http::Transport;
/// use attache_http::client::remote::Options;
///
/// let options = Options { transport: Some(Transport::WebSocket), ..Options::default() };
/// # drop(options);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// One WebSocket.
    WebSocket,
    /// POST requests and streams of server-sent events.
    StreamableHttp,
}
