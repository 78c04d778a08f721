//! Agents at a URL: tokens, and the transports of known servers.

use std::collections::BTreeSet;
use std::io;

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
/// Servers that are remembered.
const SERVERS: usize = 256;

/// Connects to the agent at a URL.
pub(crate) async fn link(url: &str, spec: &AgentSpec) -> io::Result<Link> {
    let file = Paths::from_env().cache.join("transports.json");
    let mut options = Options { token: token(spec)?, reconnect: Backoff::RECONNECT, ..Options::default() };
    if let Some(token) = &options.token {
        crate::log::mask_values(vec![token.clone()]);
    }
    let known: Known = read_cache(&file);
    for origin in &known.http {
        options.transports.insert(origin, Transport::StreamableHttp);
    }
    options.headers.push(("user-agent".to_owned(), format!("attache/{}", env!("CARGO_PKG_VERSION"))));
    let link = remote::connect(url, &options).await?;
    let all = options.transports.all().into_iter();
    let http = all.filter(|(_, transport)| *transport == Transport::StreamableHttp);
    let now = Known { http: http.map(|(origin, _)| origin).take(SERVERS).collect() };
    if now != known {
        write_cache(&file, &now);
    }
    Ok(link)
}

/// Servers without WebSocket. Without this cache the WebSocket is tried first.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Known {
    #[serde(default)]
    http: BTreeSet<String>,
}

/// The token: from the file that the settings name, or from the environment if the user chose this agent.
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
