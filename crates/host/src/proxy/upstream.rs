//! Another proxy that connections go through, as in networks without direct access.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::destination::{Destination, Traffic, connect_to, is_listed};
use super::{Options, head};
use crate::net;

/// The proxies of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    tunnels: Option<Server>,
    requests: Option<Server>,
    exceptions: Vec<String>,
}

/// One proxy.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Server {
    host: String,
    port: u16,
    /// Name and password, as they are sent.
    credentials: Option<String>,
    /// Something else than HTTP: it cannot be used, and must not be passed by.
    is_foreign: bool,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Credentials do not belong into logs.
        f.debug_struct("Server").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower or upper case. `None` if none is set.
    pub fn from_vars(variable: impl Fn(&str) -> Option<String>) -> Option<Upstream> {
        let variable = |name: &str| variable(name).or_else(|| variable(&name.to_ascii_uppercase()));
        let server = |name: &str| {
            let value = variable(name).or_else(|| variable("all_proxy"));
            value.filter(|value| !value.trim().is_empty()).map(|value| Server::parse(value.trim()))
        };
        let (tunnels, requests) = (server("https_proxy"), server("http_proxy"));
        let list = variable("no_proxy").unwrap_or_default();
        let exceptions: Vec<String> = list
            .split(',')
            .map(|entry| entry.trim().to_ascii_lowercase())
            .filter(|entry| !entry.is_empty())
            .collect();
        (tunnels.is_some() || requests.is_some()).then_some(Upstream { tunnels, requests, exceptions })
    }

    /// The proxy for a host, unless it is an exception.
    pub(super) fn server(&self, host: &str, traffic: Traffic) -> Option<&Server> {
        let server = match traffic {
            Traffic::Tunnel => self.tunnels.as_ref(),
            Traffic::Request => self.requests.as_ref(),
        };
        server.filter(|_| !is_listed(&self.exceptions, host))
    }
}

impl Server {
    fn parse(address: &str) -> Server {
        let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (place, Some(80)),
        };
        let credentials = login.map(|login| format!("Basic {}", base64(&percent_decoded(login))));
        let is_foreign = !scheme.eq_ignore_ascii_case("http") || port.is_none();
        Server { host: host.to_owned(), port: port.unwrap_or(80), credentials, is_foreign }
    }

    /// The value of `Proxy-Authorization`.
    pub(super) fn credentials(&self) -> Option<&str> {
        self.credentials.as_deref()
    }

    /// Connects to the proxy itself. The user has chosen it, so it is not asked about.
    pub(super) async fn open(&self, patience: Duration) -> io::Result<TcpStream> {
        if self.is_foreign {
            return Err(io::Error::other("the upstream proxy is not an HTTP proxy"));
        }
        connect_to(&net::resolve(&self.host, self.port).await?, patience).await
    }

    /// Connects to a destination through the proxy.
    pub(super) async fn tunnel(&self, destination: &Destination, options: &Options) -> io::Result<TcpStream> {
        let mut stream = self.open(options.patience).await?;
        let host = match destination.host.contains(':') {
            true => format!("[{}]:{}", destination.host, destination.port),
            false => format!("{}:{}", destination.host, destination.port),
        };
        let mut request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(credentials) = &self.credentials {
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

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) if byte == b'%' => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    bytes
}

fn base64(bytes: &[u8]) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)
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
        assert_eq!((server.host.as_str(), server.port, server.is_foreign), ("proxy", 3128, false));
        assert_eq!(server.credentials(), Some("Basic dTpwQHNz"));
        assert!(!format!("{upstream:?}").contains("dTpw"));
        assert_eq!(upstream.server("example.org", Traffic::Request), None);
        assert_eq!(upstream.server("a.corp", Traffic::Tunnel), None);
        let all = of(&[("ALL_PROXY", "[::1]:8080")]).unwrap();
        let server = all.server("example.org", Traffic::Request).unwrap();
        assert_eq!((server.host.as_str(), server.port), ("[::1]", 8080));
    }

    #[test]
    fn other_kinds_of_proxies_are_not_passed_by() {
        for address in ["socks5://proxy:1", "https://proxy", "http://proxy:port"] {
            let upstream = of(&[("https_proxy", address)]).unwrap();
            assert!(upstream.server("example.org", Traffic::Tunnel).unwrap().is_foreign, "{address}");
        }
    }

    #[test]
    fn base64_has_its_usual_form() {
        for (text, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
