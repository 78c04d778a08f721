//! Where a connection wants to go, and whether it may.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use super::Shared;
use crate::net::{self, Reach};

/// A place that a command wants to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The name or number of the host, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The distance: of the nearest address, or as the name suggests while there are no addresses.
    pub reach: Reach,
    /// The addresses that a connection may be made to.
    ///
    /// They are empty when a name is asked about for the first time, because a lookup alone can
    /// carry data away. A yes allows the lookup, and the connection unless an address turns out to
    /// be nearer than `reach`; then the destination is asked about again, with its addresses. An
    /// upstream proxy finds the addresses itself.
    pub addresses: Vec<SocketAddr>,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The name or number is not one.
    Invalid,
    /// The answer was no.
    Denied,
    /// The name has no address.
    Unknown(io::Error),
    /// No connection could be made.
    Unreachable(io::Error),
}

type Answer = Pin<Box<dyn Future<Output = bool> + Send>>;
type Decide = Box<dyn Fn(Destination) -> Answer + Send + Sync>;

/// Answers are kept for this many destinations.
const MOST_DECISIONS: usize = 1024;

/// A destination whose distance changes is another one: its name may have been given an address of
/// this machine.
type Key = (String, u16, Reach);

/// The answers so far.
pub(super) struct Decisions {
    decide: Decide,
    known: Mutex<HashMap<Key, Arc<OnceCell<bool>>>>,
}

impl std::fmt::Debug for Decisions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decisions").finish_non_exhaustive()
    }
}

impl Decisions {
    pub(super) fn new(decide: Decide) -> Self {
        Decisions { decide, known: Mutex::default() }
    }

    pub(super) fn forget(&self) {
        self.known.lock().clear();
    }

    /// Waits for the answer about a destination. Connections to the same one wait for the same
    /// answer.
    async fn require(&self, destination: &Destination) -> Result<(), Refusal> {
        let key = (destination.host.clone(), destination.port, destination.reach);
        let cell = {
            let mut known = self.known.lock();
            if known.len() >= MOST_DECISIONS && !known.contains_key(&key) {
                known.retain(|_, cell| !cell.initialized());
            }
            known.entry(key).or_default().clone()
        };
        match cell.get_or_init(|| (self.decide)(destination.clone())).await {
            true => Ok(()),
            false => Err(Refusal::Denied),
        }
    }
}

/// The kind of data that goes to a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Bytes that the proxy does not understand.
    Tunnel,
    /// A request that the proxy reads and passes on.
    Request,
}

/// Judges and finds a destination. It may be connected to when this returns.
pub(super) async fn approve(
    host: &str,
    port: u16,
    traffic: Traffic,
    shared: &Shared,
) -> Result<Destination, Refusal> {
    let host = normal(host).filter(|_| port != 0).ok_or(Refusal::Invalid)?;
    let mut destination = match host.parse::<IpAddr>() {
        Ok(ip) => {
            let (reach, addresses) = (net::reach_from_here(ip), vec![SocketAddr::new(ip, port)]);
            Destination { host, port, reach, addresses }
        }
        Err(_) => Destination { reach: net::reach_by_name(&host), host, port, addresses: Vec::new() },
    };
    shared.decisions.require(&destination).await?;
    if destination.addresses.is_empty() && shared.upstream(&destination.host, traffic).is_none() {
        let addresses = net::resolve(&destination.host, port).await.map_err(Refusal::Unknown)?;
        let nearest = addresses.iter().map(|address| net::reach_from_here(address.ip())).min();
        destination.addresses = addresses;
        if let Some(nearest) = nearest.filter(|nearest| *nearest < destination.reach) {
            destination.reach = nearest;
            shared.decisions.require(&destination).await?;
        }
    }
    Ok(destination)
}

/// Connects to the first of these addresses that answers.
pub(super) async fn connect_to(addresses: &[SocketAddr], patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match tokio::time::timeout(patience, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// A host in the form in which it is asked about, if it is one.
fn normal(host: &str) -> Option<String> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Some(ip.to_string());
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name = !host.is_empty()
        && host.len() <= 253
        && host.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        });
    is_name.then(|| host.to_ascii_lowercase())
}

impl Refusal {
    /// The reason, for a person.
    pub(super) fn explain(&self, host: &str, port: u16) -> String {
        match self {
            Refusal::Invalid => "invalid destination".to_owned(),
            Refusal::Denied => format!("connection to {host}:{port} was denied"),
            Refusal::Unknown(error) => format!("cannot resolve {host}: {error}"),
            Refusal::Unreachable(error) => format!("cannot connect to {host}:{port}: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_numbers() {
        for (host, expected) in [
            ("Example.ORG", Some("example.org")),
            ("example.org.", Some("example.org")),
            ("[::1]", Some("::1")),
            ("::1", Some("::1")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("", None),
            (".", None),
            ("a..b", None),
            ("a b", None),
            ("user@host", None),
            ("host/path", None),
            ("a\r\nb", None),
            ("b\u{fc}cher.example", None),
            ("fe80::1%eth0", None),
        ] {
            assert_eq!(normal(host).as_deref(), expected, "{host:?}");
        }
        assert_eq!(normal(&"a.".repeat(200)), None);
    }
}
