//! The older way of MCP over HTTP: answers come as server-sent events, questions are posted to an address that the first event
//! names.

use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::Sse as Event;

use super::http::events;
use crate::http::{Http, HttpError, Request, absolute, same_server};

/// A server behind server-sent events.
pub(super) struct Sse {
    http: Http,
    headers: Vec<(String, String)>,
    /// Where questions go.
    post: String,
    events: Pin<Box<dyn Stream<Item = Result<Event, sse_stream::Error>> + Send>>,
}

impl Sse {
    pub(super) async fn open(http: Http, url: &str, headers: Vec<(String, String)>) -> Result<Self, String> {
        let mut request = Request::get(url).header("accept", "text/event-stream");
        request.headers.extend(headers.iter().cloned());
        let response = http.send(request).await.map_err(|error| error.to_string())?;
        if response.status != 200 {
            return Err(format!("it answered with HTTP status {}", response.status));
        }
        let mut sse = Sse { http, headers, post: String::new(), events: events(response, None) };
        loop {
            let event = sse.next().await.ok_or("it closed the connection before it said where to post")?;
            if event.event.as_deref() == Some("endpoint") {
                sse.post = join(url, event.data.as_deref().unwrap_or_default().trim())?;
                return Ok(sse);
            }
        }
    }

    async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.events.as_mut().poll_next(cx)).await?.ok()
    }
}

/// The address that an event names, which must be of the server that was asked: credentials go there.
fn join(base: &str, named: &str) -> Result<String, String> {
    let address = absolute(base, named);
    if same_server(base, &address) {
        Ok(address)
    } else {
        Err("it wants to be talked to through another server".to_owned())
    }
}

impl Transport<RoleClient> for Sse {
    type Error = HttpError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpError>> + Send + 'static {
        let body = serde_json::to_value(&item).unwrap_or_default();
        let mut request = Request::post_json(&self.post, &body);
        request.headers.extend(self.headers.iter().cloned());
        let http = self.http.clone();
        // What it has to say comes as an event.
        async move { http.send(request).await.map(drop) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.next().await?;
            if event.event.as_deref().is_none_or(|kind| kind == "message")
                && let Ok(message) = serde_json::from_str(event.data.as_deref().unwrap_or_default())
            {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), HttpError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn the_address_is_on_the_same_server() {
        let base = "http://localhost:1/mcp/sse?x=1";
        assert_eq!(join(base, "/post?id=1").as_deref(), Ok("http://localhost:1/post?id=1"));
        assert_eq!(join(base, "post").as_deref(), Ok("http://localhost:1/mcp/post"));
        assert_eq!(join("http://localhost:1", "post").as_deref(), Ok("http://localhost:1/post"));
        assert_eq!(join(base, "http://localhost:1/p").as_deref(), Ok("http://localhost:1/p"));
        assert!(join(base, "http://localhost:12/p").is_err());
        assert!(join(base, "http://evil/p").is_err());
    }
}
