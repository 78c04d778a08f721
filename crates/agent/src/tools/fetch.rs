//! `fetch`: a page or a file from the network.

use std::net::SocketAddr;
use std::time::Duration;

use attache::wire::v1::ToolKind;
use attache_host::net::{self, Reach};
use attache_host::policy::{Destination, Effect};
use serde_json::json;

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, html, network, text};
use crate::text::clip_marked;
use attache_http::client::{Request, Response, absolute};

/// The time limit for a page with all its redirects.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most that is loaded, and the most of it that the model gets.
const MAX_BYTES: usize = 4 << 20;
const MAX_TEXT: usize = 48 << 10;
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

pub(crate) struct Fetch;

impl Tool for Fetch {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Fetch,
            "fetch",
            "Fetches a web page or a text file with GET. Pages are returned as plain text. A redirect to another host is reported and \
             not followed.",
            &[("url", text("the address, http or https"), true)],
        )
    }

    async fn prepare(&self, _: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let url = arguments.text("url")?.trim().to_owned();
        let host = host(&url)?;
        let effects = vec![Effect::Connect(destination(&url)?)];
        let title = format!("Fetch {url}");
        let work = move |cx: ToolContext, _| async move {
            match tokio::time::timeout(TIMEOUT, fetch(&cx, url, &host)).await {
                Ok(fetched) => fetched,
                Err(_) => Err(format!("no response within {} seconds", TIMEOUT.as_secs()).into()),
            }
        };
        Ok(Job::new(title, effects, work))
    }
}

/// The host of a URL, with its port.
fn host(url: &str) -> Result<String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or("`url` must begin with https:// or http://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("`url` must not contain a user name or a password".into());
    }
    if authority.is_empty() || authority.contains(|char: char| char.is_whitespace() || char == '\\') {
        return Err(format!("`{url}` is not a valid address").into());
    }
    Ok(authority.to_ascii_lowercase())
}

/// The host of a URL, for the permission engine.
fn destination(url: &str) -> Result<Destination> {
    let authority = host(url)?;
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => {
            (name, port.parse().map_err(|_| format!("`{url}` has no valid port"))?)
        }
        _ => (authority.as_str(), if url.starts_with("https") { 443 } else { 80 }),
    };
    let host = name.trim_matches(['[', ']']).trim_end_matches('.').to_owned();
    let is_near = net::reach_by_name(&host) != Reach::Internet;
    Ok(Destination { host, port: Some(port), is_near })
}

/// The addresses of the host that was allowed; empty if a proxy looks up the name. If they are on
/// this machine or a local network, which the name alone does not show, the user is asked again.
async fn addresses(cx: &ToolContext, url: &str) -> Result<Vec<SocketAddr>> {
    let target = cx.session.agent.http().direct_target(url).map_err(|error| error.to_string())?;
    let Some((host, port)) = target else { return Ok(Vec::new()) };
    let found = net::resolve(&host, port).await.map_err(|error| format!("{host}: {error}"))?;
    if found.is_empty() {
        return Err(format!("{host} has no address").into());
    }
    let near = found.iter().find(|address| net::reach_from_here(address.ip()) != Reach::Internet);
    match near {
        Some(near) if !destination(url)?.is_near => {
            let to = Destination { host: near.ip().to_string(), port: Some(port), is_near: true };
            match network::may_connect(cx, to).await {
                true => Ok(found),
                false => Err(format!(
                    "{host} resolves to {near}, on this machine or a local network, and the user did not allow that"
                )
                .into()),
            }
        }
        _ => Ok(found),
    }
}

async fn fetch(cx: &ToolContext, mut url: String, allowed: &str) -> Result<Output> {
    let addresses = addresses(cx, &url).await?;
    for _ in 0..=MAX_REDIRECTS {
        let request = Request::get(&url)
            .header("accept", "text/html, text/*, application/json, */*;q=0.5")
            .only_to(addresses.clone());
        let response = cx.session.agent.http().send(request).await.map_err(|error| error.to_string())?;
        match (response.status, response.header("location")) {
            (300..=399, Some(location)) => {
                let next = absolute(&url, location);
                // The permission was for one host.
                if host(&next)? != allowed {
                    return Ok(Output::visible(format!("redirects to {next}; fetch that if it is needed")));
                }
                url = next;
            }
            _ => return output(response).await,
        }
    }
    Err("too many redirects".into())
}

async fn output(mut response: Response) -> Result<Output> {
    let status = response.status;
    let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let bytes = response.body.bytes(MAX_BYTES).await.map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        return Err(format!("the response ({status}, {kind}, {} bytes) is not text", bytes.len()).into());
    }
    let body = String::from_utf8_lossy(&bytes);
    let body = if kind.contains("html") { html::to_text(&body) } else { body.into_owned() };
    let text = clip_marked(&body, MAX_TEXT, "\n[… cut]");
    if !(200..300).contains(&status) {
        return Err(format!("the server responded with status {status}:\n{text}").into());
    }
    let raw = json!({"status": status, "contentType": kind, "bytes": bytes.len()});
    Ok(Output { raw: Some(raw), ..Output::text(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_strictly() {
        assert_eq!(host("https://Example.com:8080/a?b"), Ok("example.com:8080".to_owned()));
        assert_eq!(host("http://a?x"), Ok("a".to_owned()));
        for bad in ["ftp://x", "https://", "https://a@b/", "example.com", "https://a\\b/", "https://a b/"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn near_hosts_are_known() {
        for near in [
            "localhost:3000",
            "127.0.0.1",
            "10.1.2.3:80",
            "169.254.169.254",
            "[::1]:8080",
            "printer",
            "nas.local",
            "0",
            "127.1",
            "0x7f.1",
            "localhost.localdomain.",
        ] {
            assert!(destination(&format!("http://{near}/")).is_ok_and(|to| to.is_near), "{near}");
        }
        for far in ["example.com", "docs.rs:443", "8.8.8.8", "1password.com"] {
            assert!(destination(&format!("https://{far}/")).is_ok_and(|to| !to.is_near), "{far}");
        }
    }
}
