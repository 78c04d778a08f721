//! Streamable HTTP on the one way that this program has to the network; what is sent when, is rmcp's business.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use attache_conn::rpc::{Frame, Id};
use futures_core::Stream;
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::limits::MESSAGE_BYTES;
use super::lines::{failure, too_long};
use crate::http::{Body, Http, HttpError, Request, Response};

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
        let asked = match &message {
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
            return Ok(StreamableHttpPostResponse::Sse(events(response, asked), session));
        }
        let status = response.status;
        let answer = match (response.body.bytes(MESSAGE_BYTES).await, asked) {
            (Err(HttpError::TooLong), Some(id)) => {
                return Ok(StreamableHttpPostResponse::Json(failure(id, too_long()), session));
            }
            (answer, _) => answer.map_err(StreamableHttpError::Client)?,
        };
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
            200 => Ok(events(response, None)),
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

/// The events of an answer; `asked` is the request that they answer, if they are for one.
pub(super) fn events(response: Response, asked: Option<i64>) -> Events {
    let chunks =
        Chunks { body: response.body, asked, event: 0, head: Vec::new(), at_line_start: true, ended: false };
    Box::pin(SseStream::from_bytes_stream(chunks))
}

/// The body of an answer as a stream of bytes with events that are not too long.
struct Chunks {
    body: Body,
    asked: Option<i64>,
    /// How many bytes the event has so far.
    event: usize,
    /// How the data of the event begins.
    head: Vec<u8>,
    /// The last byte ended a line, so that another line end ends the event.
    at_line_start: bool,
    ended: bool,
}

/// How much of an event's beginning is kept, to know whom it is for.
const HEAD_BYTES: usize = 512;

impl Chunks {
    /// Whether the event that this chunk goes on with, or one in it, is too long.
    fn is_too_long(&mut self, chunk: &[u8]) -> bool {
        for &byte in chunk {
            match byte {
                b'\n' if self.at_line_start => {
                    self.event = 0;
                    self.head.clear();
                }
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                byte => {
                    self.at_line_start = false;
                    self.event += 1;
                    if self.head.len() < HEAD_BYTES {
                        self.head.push(byte);
                    }
                }
            }
        }
        self.event > MESSAGE_BYTES
    }

    /// Ends the event that is too long, of which the reader has the beginning, and answers the request that it was for.
    fn refusal(&self) -> Bytes {
        let data = self.head.iter().position(|byte| *byte == b'{').and_then(|at| self.head.get(at..));
        let why = too_long();
        let id = match Frame::parse_head(data.unwrap_or_default(), &why) {
            Frame::Response { id: Id::Int(id), .. } => Some(id),
            _ => self.asked,
        };
        let answer = id.and_then(|id| serde_json::to_string(&failure(id, why)).ok());
        let event = answer.map(|answer| format!("\n\ndata: {answer}\n\n")).unwrap_or_default();
        Bytes::from(event)
    }
}

impl Stream for Chunks {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let chunk = match ready!(self.body.poll_chunk(cx)) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Poll::Ready(None),
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        if self.is_too_long(&chunk) {
            self.ended = true;
            return Poll::Ready(Some(Ok(self.refusal())));
        }
        Poll::Ready(Some(Ok(chunk)))
    }
}
