//! Agents at a URL: tokens, and the transports of known servers.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use attache::Link;
use attache_conn::private;
use attache_http::Transport;
use attache_http::client::Backoff;
use attache_http::client::remote::{self, Options, RemoteError};
use serde::{Deserialize, Serialize};

use crate::agents::AgentSpec;
use crate::error::{DetailCode, Failure};
use crate::paths::{Paths, read_cache, write_cache};

/// The variable with the token of a remote agent.
pub(crate) const TOKEN_VARIABLE: &str = "ATTACHE_TOKEN";
/// Servers that are remembered; the oldest are forgotten first.
const SERVERS: usize = 256;
/// After this time the WebSocket is tried again: a proxy may have refused it for a moment.
const VALID_DAYS: u64 = 7;
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Connects to the agent at a URL.
pub(crate) async fn link(url: &str, spec: &AgentSpec) -> io::Result<Link> {
    let file = Paths::from_env().cache.join("transports.json");
    let mut options = Options { token: token(spec)?, reconnect: Backoff::RECONNECT, ..Options::default() };
    if let Some(token) = &options.token {
        crate::log::mask_values(vec![token.clone()]);
    }
    let known = Known::read(&file);
    known.http.keys().for_each(|origin| options.transports.insert(origin, Transport::StreamableHttp));
    options.headers.push(("user-agent".to_owned(), format!("attache/{}", env!("CARGO_PKG_VERSION"))));
    // A server without WebSocket is known after its response to `initialize`.
    options.transports.on_change(move |transports| {
        let all = transports.all().into_iter();
        let http = all.filter(|(_, transport)| *transport == Transport::StreamableHttp);
        known.remember(&file, http.map(|(origin, _)| origin));
    });
    Ok(remote::connect(url, &options).await?)
}

/// Servers without WebSocket. Without this cache the WebSocket is tried first.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct Known {
    /// The days since 1970 on which the servers refused the WebSocket, by origin.
    #[serde(default)]
    http: BTreeMap<String, u64>,
}

impl Known {
    /// The servers that refused the WebSocket lately.
    fn read(file: &Path) -> Known {
        let mut known: Known = read_cache(file);
        let today = today();
        known.http.retain(|_, day| today.saturating_sub(*day) < VALID_DAYS);
        known
    }

    /// Writes the servers of `now`. The days of those that are known stay, so that a use does not
    /// keep an entry alive.
    fn remember(&self, file: &Path, now: impl Iterator<Item = String>) {
        let today = today();
        let day = |origin: &str| self.http.get(origin).copied().unwrap_or(today);
        let mut http: BTreeMap<String, u64> = now.map(|origin| (origin.clone(), day(&origin))).collect();
        while http.len() > SERVERS {
            let oldest = http.iter().min_by_key(|(_, day)| **day).map(|(origin, _)| origin.clone());
            let Some(oldest) = oldest else { break };
            http.remove(&oldest);
        }
        if http != self.http {
            write_cache(file, &Known { http });
        }
    }
}

fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()) / DAY_SECONDS
}

/// The token: from the file that the settings name, or from the environment if the user chose this
/// agent.
pub(crate) fn token(spec: &AgentSpec) -> io::Result<Option<String>> {
    if let Some(file) = &spec.token_file {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let token = private::read_secret(file).map_err(named)?;
        return match token.as_deref().map(str::trim) {
            Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
            _ => Err(io::Error::other(format!("{}: there is no token in it", file.display()))),
        };
    }
    let variable = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
    Ok(variable.filter(|_| spec.takes_token))
}

/// Adds hints to the failure to reach a URL.
pub(crate) fn explain(failure: Failure, error: &io::Error) -> Failure {
    match error.get_ref().and_then(|error| error.downcast_ref::<RemoteError>()) {
        Some(RemoteError::Login(_)) => failure
            .detail(DetailCode::AuthRequired)
            .hint(format!("set {TOKEN_VARIABLE}, or `token_file` of the agent in the settings")),
        Some(RemoteError::Refused(404)) => {
            failure.hint("the usual path is /acp, or /acp/NAME for one of several agents")
        }
        _ => failure.hint("`attache doctor URL` shows each step of the connection"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_server_without_websocket_is_forgotten_after_a_week() {
        let dir = attache_conn::private::TempDir::within(&std::env::temp_dir(), "transports").unwrap();
        let file = dir.path().join("cache/transports.json");
        let origins = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let known = || Known::read(&file).http.into_keys().collect::<Vec<_>>();
        Known::read(&file).remember(&file, origins(&["http://a", "http://b"]).into_iter());
        assert_eq!(known(), ["http://a", "http://b"]);
        // A server that has learned it is forgotten at once.
        Known::read(&file).remember(&file, origins(&["http://a"]).into_iter());
        assert_eq!(known(), ["http://a"]);
        // Its day stays, whenever it is used.
        let at = |day: u64| Known { http: [("http://a".to_owned(), day)].into() };
        write_cache(&file, &at(today() - 6));
        Known::read(&file).remember(&file, origins(&["http://a", "http://c"]).into_iter());
        assert_eq!(Known::read(&file).http["http://a"], today() - 6);
        assert_eq!(Known::read(&file).http["http://c"], today());
        write_cache(&file, &at(today() - 7));
        assert!(known().is_empty());
        // The form of an earlier version, which had no days.
        std::fs::write(&file, r#"{"http":["http://a"]}"#).unwrap();
        assert!(known().is_empty());
        let many = (0..300).map(|number| format!("http://{number}"));
        Known::read(&file).remember(&file, many);
        assert_eq!(known().len(), SERVERS);
    }
}
