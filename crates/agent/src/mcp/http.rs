//! MCP over streamable HTTP. rmcp decides what to send; this module sends it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use attache_conn::rpc::{Frame, Id};
use futures_core::Stream;
use hyper::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse};

use super::limits::MESSAGE_BYTES;
use super::stdio::{failure, too_long};
use attache_http::client::sse::{Sse as SseReader, SseEvent, TooLong};
use attache_http::client::{Body, ErrorKind, HttpClient, HttpError, Request, Response};

type Error = StreamableHttpError<HttpError>;
type Events = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// The HTTP client of rmcp's transport.
#[derive(Clone)]
pub(super) struct StreamableHttp {
    http: HttpClient,
    headers: Arc<Vec<(String, String)>>,
}

impl StreamableHttp {
    pub(super) fn new(http: HttpClient, headers: Vec<(String, String)>) -> Self {
        StreamableHttp { http, headers: Arc::new(headers) }
    }

    async fn send(
        &self,
        method: &str,
        uri: &str,
        body: Vec<u8>,
        session: Option<&str>,
        extra: Vec<(String, String)>,
    ) -> Result<Response, Error> {
        let mut request = Request { method: method.to_owned(), body: body.into(), ..Request::get(uri) };
        request.headers.push(("accept".into(), "application/json, text/event-stream".into()));
        request.headers.extend(session.map(|session| ("mcp-session-id".to_owned(), session.to_owned())));
        request.headers.extend(extra);
        request.headers.extend(self.headers.iter().cloned());
        self.http.send(request).await.map_err(StreamableHttpError::Client)
    }
}

impl StreamableHttpClient for StreamableHttp {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body = serde_json::to_vec(&message)?;
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => match &request.id {
                RequestId::Number(id) => Some(*id),
                RequestId::String(_) => None,
            },
            _ => None,
        };
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
            return Ok(StreamableHttpPostResponse::Sse(
                Box::pin(EventStream::new(response, request)),
                session,
            ));
        }
        let status = response.status;
        let body = match (response.body.bytes(MESSAGE_BYTES).await, request) {
            (Err(error), Some(id)) if error.kind() == ErrorKind::TooLong => {
                return Ok(StreamableHttpPostResponse::Json(failure(id, too_long()), session));
            }
            (body, _) => body.map_err(StreamableHttpError::Client)?,
        };
        // A JSON-RPC error is more precise than the HTTP status.
        match serde_json::from_slice(&body) {
            Ok(message) if kind.starts_with("application/json") => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ if status < 300 && body.is_empty() => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP status {status}").into())),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        // A server may refuse this.
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
    ) -> Result<Events, Error> {
        let mut extra = extra(auth_header, custom_headers);
        extra.extend(last_event_id.map(|id| ("last-event-id".to_owned(), id)));
        let response = self.send("GET", &uri, Vec::new(), session_id.as_deref(), extra).await?;
        match response.status {
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            200 => Ok(Box::pin(EventStream::new(response, None))),
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

/// The events of a response. One that is too long is replaced by an error for its request.
pub(super) struct EventStream {
    body: Body,
    reader: SseReader,
    /// The request that the response answers, if it is for one.
    request: Option<i64>,
    ended: bool,
}

impl EventStream {
    pub(super) fn new(response: Response, request: Option<i64>) -> Self {
        let reader = SseReader::with_limit(MESSAGE_BYTES);
        EventStream { body: response.body, reader, request, ended: false }
    }

    /// The next event; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<SseEvent, HttpError>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<SseEvent, HttpError>>> {
        while !self.ended {
            match self.reader.next_event() {
                Ok(Some(event)) => return Poll::Ready(Some(Ok(event))),
                Ok(None) => {}
                Err(error) => return self.refuse(&error),
            }
            match ready!(self.body.poll_chunk(cx)) {
                Ok(Some(chunk)) => self.reader.push(&chunk),
                Ok(None) => self.ended = true,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        Poll::Ready(None)
    }

    /// Ends the stream with an error for the request whose response is too long.
    fn refuse(&mut self, error: &TooLong) -> Poll<Option<Result<SseEvent, HttpError>>> {
        self.ended = true;
        let why = too_long();
        let id = match Frame::parse_head(error.head.trim_start().as_bytes(), &why) {
            Frame::Response { id: Id::Int(id), .. } => Some(id),
            _ => self.request,
        };
        let data = id.and_then(|id| serde_json::to_string(&failure(id, why)).ok());
        Poll::Ready(data.map(|data| Ok(SseEvent { data, ..SseEvent::default() })))
    }
}

impl Stream for EventStream {
    type Item = Result<Sse, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.poll_event(cx));
        Poll::Ready(event.map(|event| match event {
            Ok(SseEvent { event, data, id, retry }) => Ok(Sse { event, data: Some(data), id, retry }),
            Err(error) => Err(SseError::Body(Box::new(error))),
        }))
    }
}
