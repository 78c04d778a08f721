//! The address of a NATS server.

use crate::error::{Error, Result};

/// Host, port and credentials from a URL: `nats://[user:password@|token@]host[:port]`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    pub(super) host: String,
    pub(super) port: u16,
    user: Option<String>,
    password: Option<String>,
}

impl ServerAddress {
    pub(super) fn parse(url: &str) -> Result<Self> {
        let bad = |reason| Error::InvalidAddress { reason };
        let rest = url.strip_prefix("nats://").ok_or(bad("it does not begin with nats://"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, place) = match rest.rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, rest),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(v6) => {
                let (host, port) = v6.split_once(']').ok_or(bad("a bracket is not closed"))?;
                (host, port.strip_prefix(':'))
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        if host.is_empty() || host.contains(['/', ',', ' ']) {
            return Err(bad("it has no host"));
        }
        let port = match port {
            Some(port) => port.parse().map_err(|_| bad("the port is not a number"))?,
            None => 4222,
        };
        let (user, password) = match credentials.map(|credentials| credentials.split_once(':')) {
            Some(Some((user, password))) => (Some(user.to_owned()), Some(password.to_owned())),
            Some(None) => (credentials.map(str::to_owned), None),
            None => (None, None),
        };
        Ok(ServerAddress { host: host.to_owned(), port, user, password })
    }

    /// The JSON of the CONNECT operation.
    pub(super) fn connect_options(&self) -> String {
        let mut options = serde_json::json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true, "echo": true,
            "lang": "rust", "name": "attache-journal", "version": env!("CARGO_PKG_VERSION"), "protocol": 1,
        });
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => {
                options["user"] = user.as_str().into();
                options["pass"] = password.as_str().into();
            }
            (Some(token), None) => options["auth_token"] = token.as_str().into(),
            _ => {}
        }
        options.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::ServerAddress;

    #[test]
    fn addresses_are_read_or_refused() {
        let parse = |url| ServerAddress::parse(url).map(|address| (address.host, address.port)).ok();
        assert_eq!(parse("nats://a"), Some(("a".to_owned(), 4222)));
        assert_eq!(parse("nats://u:p@a:1/"), Some(("a".to_owned(), 1)));
        assert_eq!(parse("nats://[::1]:5"), Some(("::1".to_owned(), 5)));
        for bad in ["http://a", "nats://", "nats://a:x", "nats://[::1", "nats://a,b"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
