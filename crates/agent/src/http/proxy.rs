//! Proxies, from the usual environment variables.

use std::net::IpAddr;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::Target;
use crate::text::percent_decode;

/// The proxies of an environment.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    /// Hosts without a proxy.
    none: Vec<String>,
}

/// One proxy. It has no `Debug`, because its URL may contain a password.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) host: String,
    pub(super) port: u16,
    /// The value of `proxy-authorization`.
    pub(super) credentials: Option<String>,
}

impl Proxies {
    /// From `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case.
    pub fn from_env() -> Self {
        Proxies::from_vars(|name| std::env::var(name).ok())
    }

    /// From variables that are looked up by `var`.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let value = var(&name.to_lowercase()).or_else(|| var(name));
            value.filter(|value| !value.is_empty())
        };
        let proxy = |name: &str| either(name).or_else(|| either("ALL_PROXY")).as_deref().and_then(Proxy::of);
        let none = either("NO_PROXY").unwrap_or_default();
        let none = none.split(',').map(|host| host.trim().to_lowercase()).filter(|host| !host.is_empty());
        Proxies { http: proxy("HTTP_PROXY"), https: proxy("HTTPS_PROXY"), none: none.collect() }
    }

    /// The proxy for a target, if any.
    pub(super) fn of(&self, target: &Target) -> Option<Proxy> {
        let proxy = if target.tls { &self.https } else { &self.http };
        proxy.clone().filter(|_| !is_loopback(&target.host) && !self.is_excepted(&target.host))
    }

    fn is_excepted(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        self.none.iter().any(|name| {
            let name = name.trim_start_matches("*.").trim_start_matches('.');
            name == "*" || host == name || host.strip_suffix(name).is_some_and(|front| front.ends_with('.'))
        })
    }
}

/// Whether a host is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Proxy {
    /// `http://user:password@host:port`; other schemes are not supported.
    fn of(url: &str) -> Option<Self> {
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return None,
            None => url,
        };
        let authority = rest.split('/').next()?;
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (place, 8080),
        };
        let credentials = user.map(|user| format!("Basic {}", BASE64_STANDARD.encode(percent_decode(user))));
        (!host.is_empty()).then(|| Proxy {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            credentials,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn chosen(vars: &[(&str, &str)], url: &str) -> Option<(String, Option<String>)> {
        let proxies = Proxies::from_vars(|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        let proxy = proxies.of(&Target::of(url).unwrap())?;
        Some((format!("{}:{}", proxy.host, proxy.port), proxy.credentials))
    }

    #[test]
    fn variables_decide() {
        let url = "https://api.example.com/v1";
        assert_eq!(chosen(&[], url), None);
        assert_eq!(chosen(&[("HTTP_PROXY", "http://p:1")], url), None);
        assert_eq!(chosen(&[("HTTPS_PROXY", "http://p:1")], url), Some(("p:1".into(), None)));
        assert_eq!(chosen(&[("https_proxy", "p:1")], url), Some(("p:1".into(), None)));
        assert_eq!(chosen(&[("ALL_PROXY", "http://p")], url), Some(("p:8080".into(), None)));
        assert_eq!(chosen(&[("HTTPS_PROXY", "socks5://p:1")], url), None);
        let with_user = chosen(&[("HTTPS_PROXY", "http://me:p%40ss@p:1")], url);
        assert_eq!(with_user, Some(("p:1".into(), Some("Basic bWU6cEBzcw==".into()))));
    }

    #[test]
    fn exceptions_and_loopback_go_straight() {
        let all = ("ALL_PROXY", "http://p:1");
        for (none, url, direct) in [
            ("example.com", "https://api.example.com/", true),
            (".example.com", "https://api.example.com/", true),
            ("*.example.com", "https://API.example.com/", true),
            ("ample.com", "https://api.example.com/", false),
            ("*", "https://api.example.com/", true),
            ("other.org, example.com", "http://example.com/", true),
            ("", "http://127.0.0.1:11434/", true),
            ("", "http://localhost:1/", true),
            ("", "http://[::1]:1/", true),
            ("", "http://10.0.0.1/", false),
        ] {
            let found = chosen(&[all, ("NO_PROXY", none)], url);
            assert_eq!(found.is_none(), direct, "{none} {url}");
        }
    }
}
