//! The steps of a connection to a URL: name, socket, TLS, token, WebSocket, Streamable HTTP.

use std::time::{Duration, Instant};

use attache::client::Client;
use attache_http::Transport;
use attache_http::client::ErrorKind;
use attache_http::client::remote::{Options, RemoteError, connect};

use super::report::{Report, State, Step};
use super::steps::patience;
use crate::agents::{Address, AgentSpec};
use crate::cx::Cx;
use crate::remote::{TOKEN_VARIABLE, token};

/// Examines the URL of an agent. Returns false if the examination ends here.
pub(super) async fn examine(cx: &Cx, spec: &AgentSpec, report: &mut Report<'_>) -> bool {
    let Address::Remote(url) = &spec.address else { return true };
    let token = match token(spec) {
        Ok(token) => token,
        Err(error) => {
            report.add(Step::new("token", State::Broken, error.to_string()));
            return false;
        }
    };
    let options = Options { token: token.clone(), ..Options::default() };
    let begun = Instant::now();
    let upgrade = Options { transport: Some(Transport::WebSocket), ..options.clone() };
    let websocket = tokio::time::timeout(patience(cx), connect(url, &upgrade)).await;
    let error = match websocket {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(error),
        Err(_) => {
            report
                .add(Step::new("server", State::Broken, "it does not answer").hint("is it the right port?"));
            return false;
        }
    };
    if !reached(url, error.as_ref(), report) || !permitted(token.is_some(), error.as_ref(), report) {
        return false;
    }
    report.add(match &error {
        None => Step::new("websocket", State::Fine, "the server has it").time(begun.elapsed()),
        Some(error) => Step::new("websocket", State::Odd, error.to_string()),
    });
    let begun = Instant::now();
    let http = streamable(url, &options, patience(cx)).await;
    let works = http.is_ok();
    report.add(match http {
        Ok(()) => {
            Step::new("http", State::Fine, "the server has POST and server-sent events").time(begun.elapsed())
        }
        Err(why) => Step::new("http", State::Odd, why),
    });
    if error.is_some() && !works {
        report.add(
            Step::new(
                "transport",
                State::Broken,
                "the server has neither WebSocket nor Streamable HTTP here",
            )
            .hint("is the path right? The usual one is /acp"),
        );
        return false;
    }
    true
}

/// Reports name, socket and TLS.
fn reached(url: &str, error: Option<&RemoteError>, report: &mut Report<'_>) -> bool {
    let kind = match error {
        Some(RemoteError::Http(error)) => Some(error.kind()),
        Some(RemoteError::Url(why)) => {
            report.add(Step::new("url", State::Broken, why.clone()));
            return false;
        }
        _ => None,
    };
    let has_tls = url.starts_with("wss:") || url.starts_with("https:");
    let failed = kind.map(|kind| match kind {
        ErrorKind::Dns => "name",
        ErrorKind::Tls => "tls",
        _ => "socket",
    });
    let steps = if has_tls { &["name", "socket", "tls"][..] } else { &["name", "socket"] };
    for &name in steps {
        if failed == Some(name) {
            let why = error.map(ToString::to_string).unwrap_or_default();
            report.add(Step::new(name, State::Broken, why).hint(match name {
                "name" => "is the host name right?",
                "socket" => "is the server running, and can this machine reach it?",
                _ => "SSL_CERT_FILE names the certificate of a server that signs its own",
            }));
            return false;
        }
        report.add(Step::new(name, State::Fine, "fine"));
    }
    if !has_tls {
        report.add(Step::new("tls", State::Skipped, "the connection is not encrypted"));
    }
    true
}

/// Reports the token.
fn permitted(has_token: bool, error: Option<&RemoteError>, report: &mut Report<'_>) -> bool {
    let refused = matches!(error, Some(RemoteError::Login(_)));
    let step = match (has_token, refused) {
        (true, false) => Step::new("token", State::Fine, "the server accepts it"),
        (true, true) => Step::new("token", State::Broken, "the server does not accept the token"),
        (false, false) => Step::new("token", State::Skipped, "none is set, and the server needs none"),
        (false, true) => Step::new("token", State::Broken, "the server needs one")
            .hint(format!("set {TOKEN_VARIABLE}, or `token_file` of the agent in the settings")),
    };
    report.add(step);
    !refused
}

/// Tries `initialize` over Streamable HTTP.
async fn streamable(url: &str, options: &Options, patience: Duration) -> Result<(), String> {
    let options = Options { transport: Some(Transport::StreamableHttp), ..options.clone() };
    let link = connect(&as_http(url), &options).await.map_err(|error| error.to_string())?;
    let client = Client::new().initialize_timeout(patience).on_error(|_| {});
    let agent = client.connect(link).await.map_err(|error| error.to_string())?;
    drop(agent);
    Ok(())
}

fn as_http(url: &str) -> String {
    if url.starts_with("ws") { url.replacen("ws", "http", 1) } else { url.to_owned() }
}
