//! `attache check server URL`: an agent at a URL, and the transports that lead to it.

use attache_check::remote::Endpoint;
use attache_check::run::Options;
use attache_check::target::Server;
use attache_check::{Role, Transport};
use attache_conn::private;

use super::{asked_something_else, judge, options};
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::remote::TOKEN_VARIABLE;
use crate::runtime::runtime;

/// Judges the server at a URL.
pub(crate) fn server(cx: &Cx) -> Result<()> {
    let transports: &[Transport] = match cx.flags.check.transport.as_deref() {
        Some("ws") => &[Transport::WebSocket],
        Some("http") => &[Transport::Http],
        _ => &[Transport::WebSocket, Transport::Http],
    };
    let options: Options = options(cx, Role::Agent, transports)?;
    if asked_something_else(cx, &options)? {
        return Ok(());
    }
    let Some(url) = cx.args.word(0) else {
        return Err(Failure::usage("`attache check server` needs a URL")
            .hint("attache check server http://127.0.0.1:4848/acp"));
    };
    let token = token(cx)?;
    if let Some(token) = &token {
        crate::log::mask_values(vec![token.clone()]);
    }
    let endpoint = Endpoint::new(url, token).map_err(Failure::usage)?;
    let transport = match transports {
        [only] => *only,
        _ => runtime(async { Ok(endpoint.preferred().await) })?,
    };
    judge(cx, &Server { endpoint, transport }, &options)
}

/// The token: from the file that was named, or from the environment.
pub(super) fn token(cx: &Cx) -> Result<Option<String>> {
    let Some(file) = &cx.flags.check.token_file else {
        return Ok(std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()));
    };
    let failed = |why: &dyn std::fmt::Display| Failure::usage(format_args!("the token file {file}: {why}"));
    let token = private::read_secret(&cx.cwd.join(file)).map_err(|error| failed(&error))?;
    match token.as_deref().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
        _ => Err(failed(&"there is no token in it")),
    }
}
