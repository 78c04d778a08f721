//! Proxies, from the usual environment variables.

use std::fmt;
use std::net::IpAddr;

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// The proxies of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    /// Hosts without a proxy, in lower case.
    exceptions: Vec<String>,
}

/// One proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Host name, or address without brackets.
    pub host: String,
    /// Port; 80 if the variable has none.
    pub port: u16,
    /// The value of `proxy-authorization`.
    pub credentials: Option<String>,
    /// Whether it speaks HTTP. Proxies of other kinds, such as SOCKS, are not supported.
    pub is_http: bool,
}

/// Without the credentials.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Proxies {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case.
    pub fn from_env() -> Self {
        Proxies::from_vars(|name| std::env::var(name).ok())
    }

    /// Reads the same variables with `var`.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let value = var(&name.to_lowercase()).or_else(|| var(name));
            value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let proxy = |name: &str| either(name).or_else(|| either("ALL_PROXY")).map(|url| Proxy::parse(&url));
        let list = either("NO_PROXY").unwrap_or_default();
        let exceptions =
            list.split(',').map(|host| host.trim().to_lowercase()).filter(|host| !host.is_empty());
        Proxies { http: proxy("HTTP_PROXY"), https: proxy("HTTPS_PROXY"), exceptions: exceptions.collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// Returns the proxy for a host, unless it is an exception. `tls` selects the one for tunnels.
    /// Loopback hosts are the caller's decision; see [`is_loopback`].
    pub fn find(&self, host: &str, tls: bool) -> Option<&Proxy> {
        let proxy = if tls { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.is_exception(host))
    }

    fn is_exception(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        self.exceptions.iter().any(|name| {
            let name = name.trim_start_matches("*.").trim_start_matches('.');
            name == "*" || host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.'))
        })
    }
}

impl Proxy {
    /// Parses `http://user:password@host:port`.
    fn parse(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (place, Some(80)),
        };
        let credentials =
            login.map(|login| format!("Basic {}", BASE64_STANDARD.encode(percent_decode(login))));
        let is_http = scheme.eq_ignore_ascii_case("http") && port.is_some() && !host.is_empty();
        let host = host.trim_matches(['[', ']']).to_owned();
        Proxy { host, port: port.unwrap_or(80), credentials, is_http }
    }
}

/// Whether a host is this machine.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Decodes `%20` and the like. An invalid escape stays as it is.
pub fn percent_decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|hex| *first == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        let decoded = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &tail[2..] } else { tail };
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(vars: &[(&str, &str)]) -> Proxies {
        Proxies::from_vars(|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn find(vars: &[(&str, &str)]) -> Option<(String, u16, Option<String>)> {
        let proxies = of(vars);
        let proxy = proxies.find("api.example.com", true)?;
        Some((proxy.host.clone(), proxy.port, proxy.credentials.clone()))
    }

    #[test]
    fn variables_decide() {
        let at = |host: &str, port| Some((host.to_owned(), port, None));
        assert_eq!(find(&[]), None);
        assert!(of(&[("HTTPS_PROXY", " ")]).is_empty());
        assert_eq!(find(&[("HTTP_PROXY", "http://p:1")]), None);
        assert_eq!(find(&[("HTTPS_PROXY", "http://p:1")]), at("p", 1));
        assert_eq!(find(&[("https_proxy", "p:1")]), at("p", 1));
        assert_eq!(find(&[("ALL_PROXY", "http://p/")]), at("p", 80));
        assert_eq!(find(&[("ALL_PROXY", "[::1]:8080")]), at("::1", 8080));
        let with_login = find(&[("HTTPS_PROXY", "http://me:p%40ss@p:1")]);
        assert_eq!(with_login, Some(("p".into(), 1, Some("Basic bWU6cEBzcw==".into()))));
        assert!(!format!("{:?}", of(&[("HTTPS_PROXY", "http://me:p@p:1")])).contains("Basic"));
    }

    #[test]
    fn other_kinds_of_proxies_are_marked() {
        for url in ["socks5://p:1", "https://p", "http://p:port", "http://"] {
            assert!(!of(&[("HTTPS_PROXY", url)]).find("example.org", true).unwrap().is_http, "{url}");
        }
    }

    #[test]
    fn exceptions_have_no_proxy() {
        for (exceptions, host, direct) in [
            ("example.com", "api.example.com", true),
            (".example.com", "api.example.com", true),
            ("*.example.com", "API.example.com", true),
            ("ample.com", "api.example.com", false),
            ("*", "api.example.com", true),
            ("other.org, example.com", "example.com", true),
            ("", "10.0.0.1", false),
        ] {
            let proxies = of(&[("ALL_PROXY", "http://p:1"), ("NO_PROXY", exceptions)]);
            assert_eq!(proxies.find(host, true).is_none(), direct, "{exceptions} {host}");
        }
        for host in ["127.0.0.1", "localhost", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
    }

    #[test]
    fn escapes_are_decoded() {
        for (text, decoded) in
            [("/a%20b", "/a b"), ("/100%", "/100%"), ("%4", "%4"), ("%+5%zz", "%+5%zz"), ("%c3%A4", "ä")]
        {
            assert_eq!(percent_decode(text), decoded.as_bytes(), "{text}");
        }
    }
}
