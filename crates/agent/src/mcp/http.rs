//! Streamable HTTP on the one way that this program has to the network; what is sent when, is rmcp's business.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse, SseStream};

use crate::http::{Body, Http, HttpError, Request, Response};

/// The most that is read of an answer that is not streamed.
const ANSWER: usize = 16 << 20;

type Failed = StreamableHttpError<HttpError>;
type Events = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// Sends what rmcp wants to send.
#[derive(Clone)]
pub(super) struct Streamable {
    http: Http,
    headers: Arc<Vec<(String, String)>>,
}

impl Streamable {
    pub(super) fn new(http: Http, headers: Vec<(String, String)>) -> Self {
        Streamable { http, headers: Arc::new(headers) }
    }

    async fn send(
        &self,
        method: &str,
        uri: &str,
        body: Vec<u8>,
        session: Option<&str>,
        extra: Vec<(String, String)>,
    ) -> Result<Response, Failed> {
        let mut request = Request { method: method.to_owned(), body, ..Request::get(uri) };
        request.headers.push(("accept".into(), "application/json, text/event-stream".into()));
        request.headers.extend(session.map(|session| ("mcp-session-id".to_owned(), session.to_owned())));
        request.headers.extend(extra);
        request.headers.extend(self.headers.iter().cloned());
        self.http.send(request).await.map_err(StreamableHttpError::Client)
    }
}

impl StreamableHttpClient for Streamable {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = serde_json::to_vec(&message)?;
        let mut extra = extra(auth_header, custom_headers);
        extra.push(("content-type".into(), "application/json".into()));
        let mut response = self.send("POST", &uri, body, session_id.as_deref(), extra).await?;
        let session = response.header("mcp-session-id").map(str::to_owned);
        match response.status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if session_id.is_some() => return Err(StreamableHttpError::SessionExpired),
            _ => {}
        }
        let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
        if response.status < 300 && kind.starts_with("text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(events(response), session));
        }
        let status = response.status;
        let answer = response.body.bytes(ANSWER).await.map_err(StreamableHttpError::Client)?;
        // An error of the protocol counts more than the status that came with it.
        match serde_json::from_slice(&answer) {
            Ok(message) if kind.starts_with("application/json") => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ if status < 300 && answer.is_empty() => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP status {status}").into())),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        // Servers may refuse this; either way we are gone.
        self.send("DELETE", &uri, Vec::new(), Some(&session_id), extra(auth_header, custom_headers))
            .await
            .map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failed> {
        let mut extra = extra(auth_header, custom_headers);
        extra.extend(last_event_id.map(|id| ("last-event-id".to_owned(), id)));
        let response = self.send("GET", &uri, Vec::new(), session_id.as_deref(), extra).await?;
        match response.status {
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            200 => Ok(events(response)),
            status => {
                Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP status {status}").into()))
            }
        }
    }
}

fn extra(auth: Option<String>, headers: HashMap<HeaderName, HeaderValue>) -> Vec<(String, String)> {
    let auth = auth.map(|token| ("authorization".to_owned(), format!("Bearer {token}")));
    let text = |(name, value): (HeaderName, HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    auth.into_iter().chain(headers.into_iter().filter_map(text)).collect()
}

/// The events of an answer.
pub(super) fn events(response: Response) -> Events {
    Box::pin(SseStream::from_bytes_stream(Chunks(response.body)))
}

/// The body of an answer as a stream.
struct Chunks(Body);

impl Stream for Chunks {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_chunk(cx).map(Result::transpose)
    }
}
