//! The older MCP transport over HTTP: responses arrive as server-sent events, requests are posted
//! to a URL that the first event names.

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::http::EventStream;
use attache_http::client::sse::SseEvent;
use attache_http::client::{HttpClient, HttpError, Request, absolute, same_server};

/// A transport over server-sent events.
pub(super) struct SseTransport {
    http: HttpClient,
    headers: Vec<(String, String)>,
    /// The URL for requests.
    post: String,
    events: EventStream,
}

impl SseTransport {
    pub(super) async fn open(
        http: HttpClient,
        url: &str,
        headers: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let mut request = Request::get(url).header("accept", "text/event-stream");
        request.headers.extend(headers.iter().cloned());
        let response = http.send(request).await.map_err(|error| error.to_string())?;
        if response.status != 200 {
            return Err(format!("it responded with HTTP status {}", response.status));
        }
        let events = EventStream::new(response, None);
        let mut sse = SseTransport { http, headers, post: String::new(), events };
        loop {
            let event =
                sse.next().await.ok_or("it closed the connection before it named a URL for requests")?;
            if event.event.as_deref() == Some("endpoint") {
                sse.post = join(url, event.data.trim())?;
                return Ok(sse);
            }
        }
    }

    async fn next(&mut self) -> Option<SseEvent> {
        self.events.next().await?.ok()
    }
}

/// The URL for requests, which must be on the same server, because it gets the credentials.
fn join(base: &str, named: &str) -> Result<String, String> {
    let address = absolute(base, named);
    if same_server(base, &address) {
        Ok(address)
    } else {
        Err("its URL for requests is on another server".to_owned())
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = HttpError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpError>> + Send + 'static {
        let body = serde_json::to_value(&item).unwrap_or_default();
        let mut request = Request::post_json(&self.post, &body);
        request.headers.extend(self.headers.iter().cloned());
        let http = self.http.clone();
        // The response arrives as an event.
        async move { http.send(request).await.map(drop) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.next().await?;
            if event.event.as_deref().is_none_or(|kind| kind == "message")
                && let Ok(message) = serde_json::from_str(&event.data)
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
