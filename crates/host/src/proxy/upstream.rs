//! Another proxy that connections go through, as in networks without direct access.

use std::io;
use std::time::Duration;

use attache_http::proxy::{Proxies, Proxy};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::destination::{Destination, Traffic, connect_to};
use super::{Options, head};
use crate::net;

/// The proxies of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream(Proxies);

/// One proxy. One that does not speak HTTP cannot be used, and must not be bypassed.
pub(super) struct Server<'a>(&'a Proxy);

impl Upstream {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower or upper case.
    /// `None` if none is set.
    pub fn from_vars(variable: impl Fn(&str) -> Option<String>) -> Option<Upstream> {
        let proxies = Proxies::from_vars(variable);
        (!proxies.is_empty()).then_some(Upstream(proxies))
    }

    /// The proxy for a host, unless it is an exception.
    pub(super) fn server(&self, host: &str, traffic: Traffic) -> Option<Server<'_>> {
        self.0.find(host, matches!(traffic, Traffic::Tunnel)).map(Server)
    }
}

impl Server<'_> {
    /// The value of `Proxy-Authorization`.
    pub(super) fn credentials(&self) -> Option<&str> {
        self.0.credentials.as_deref()
    }

    /// Connects to the proxy itself. The user has chosen it, so it is not asked about.
    pub(super) async fn open(&self, patience: Duration) -> io::Result<TcpStream> {
        if !self.0.is_http {
            return Err(io::Error::other("the upstream proxy is not an HTTP proxy"));
        }
        connect_to(&net::resolve(&self.0.host, self.0.port).await?, patience).await
    }

    /// Connects to a destination through the proxy.
    pub(super) async fn tunnel(&self, destination: &Destination, options: &Options) -> io::Result<TcpStream> {
        let mut stream = self.open(options.patience).await?;
        let host = match destination.host.contains(':') {
            true => format!("[{}]:{}", destination.host, destination.port),
            false => format!("{}:{}", destination.host, destination.port),
        };
        let mut request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(credentials) = self.credentials() {
            request.push_str(&format!("Proxy-Authorization: {credentials}\r\n"));
        }
        request.push_str("\r\n");
        let mut rest = Vec::new();
        let ask = async {
            stream.write_all(request.as_bytes()).await?;
            head::read(&mut stream, &mut rest, options.head_bytes).await
        };
        let answer = tokio::time::timeout(options.patience, ask).await??;
        let status = answer.line.split(' ').nth(1).unwrap_or_default();
        // A server that speaks first would have to wait for the client in any other proxy too.
        if !status.starts_with('2') || !rest.is_empty() {
            return Err(io::Error::other(format!("the upstream proxy refused the connection ({status})")));
        }
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Upstream> {
        Upstream::from_vars(|name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_names_proxies_and_exceptions() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HTTPS_PROXY", " ")]), None);
        let upstream =
            of(&[("HTTPS_PROXY", "http://u:p%40ss@proxy:3128/"), ("no_proxy", "localhost, .corp")]).unwrap();
        let server = upstream.server("example.org", Traffic::Tunnel).unwrap();
        assert_eq!((server.0.host.as_str(), server.0.port), ("proxy", 3128));
        assert_eq!(server.credentials(), Some("Basic dTpwQHNz"));
        assert!(upstream.server("example.org", Traffic::Request).is_none());
        assert!(upstream.server("a.corp", Traffic::Tunnel).is_none());
    }

    #[tokio::test]
    async fn other_kinds_of_proxies_are_not_bypassed() {
        for address in ["socks5://proxy:1", "https://proxy", "http://proxy:port"] {
            let upstream = of(&[("https_proxy", address)]).unwrap();
            let server = upstream.server("example.org", Traffic::Tunnel).unwrap();
            assert!(server.open(Duration::from_secs(1)).await.is_err(), "{address}");
        }
    }
}
