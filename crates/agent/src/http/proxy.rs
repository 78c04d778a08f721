//! Which requests go through a proxy, as the usual variables say.

use std::net::IpAddr;

use super::Target;

/// The proxies of an environment.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    /// Hosts that are reached without one.
    none: Vec<String>,
}

/// One proxy. Has no debug text, since its URL may hold a password.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) host: String,
    pub(super) port: u16,
    /// The value of `proxy-authorization`.
    pub(super) credentials: Option<String>,
}

impl Proxies {
    /// From `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or not.
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

    /// The proxy for a target, if it has one.
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
    /// `http://user:password@host:port`; other schemes are not spoken.
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
        let credentials = user.map(|user| format!("Basic {}", base64(&unescape(user))));
        (!host.is_empty()).then(|| Proxy {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            credentials,
        })
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%');
        let escaped = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    bytes
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let all = group.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
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

    #[test]
    fn base64_has_its_padding() {
        for (text, expected) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")]
        {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
