//! Single requests: methods, statuses, headers, ids.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::HTTP;
use super::client::{Client, send, within};
use crate::remote::http1::{Request, Response};
use crate::remote::socket::Socket;
use crate::scenarios::scenario_table;
use crate::{Stage, Step, Stop};

scenario_table! { Agent in BOTH:
    "http-initialize": "initialize by POST, and the response to it",
        ["HTTP-05", "HTTP-06", "HTTP-07"] needs [HTTP] => initialize;
    "http-methods": "POST, GET and DELETE at one URL", ["HTTP-01"] needs [HTTP] => methods;
    "http-version-2": "the first frame of HTTP/2", ["HTTP-04"] needs [HTTP] => http2;
    "http-content-type": "a POST of text/plain", ["HTTP-17"] needs [HTTP] => content_type;
    "http-accept": "a GET that accepts only JSON", ["HTTP-18"] needs [HTTP] => accept;
    "http-ids": "requests without a connection id, and with an unknown one",
        ["HTTP-14", "HTTP-19"] needs [HTTP] => ids;
    "http-session-ids": "session ids in the header, in the params, in none and in both",
        ["HTTP-15", "HTTP-16"] needs [HTTP] => session_ids;
    "http-unknown-session": "streams of sessions that do not exist", ["HTTP-20"] needs [HTTP] => unknown_session;
    "http-batch": "a POST of an array", ["HTTP-23"] needs [HTTP] => batch;
    "http-initialize-error": "initialize with params that the agent refuses",
        ["HTTP-29"] needs [HTTP] => initialize_error;
    "http-body": "a body that is too long, and one that is not UTF-8", ["HTTP-30"] needs [HTTP] => body;
    "http-origin": "requests of a web page of another site", ["HTTP-33"] needs [HTTP] => origin;
    "http-token": "the ids of a connection without the token", ["HTTP-36"] needs [HTTP] => token;
}

/// An id that no server has given.
pub(super) const UNKNOWN: &str = "00000000-0000-4000-8000-attache-check";

async fn initialize(stage: &mut Stage) -> Step {
    // Whether there is Streamable HTTP at all.
    let client = Client::open(stage).await;
    if let Err(Stop::NotApplicable(why)) = client {
        return Err(Stop::NotApplicable(why));
    }
    let endpoint = stage.endpoint()?;
    let request = Client::initialize(stage);
    let mut response = send(stage, &endpoint, &Request::post(&request)).await?;
    let body = within(stage, "the body of the response", response.text()).await?;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    let is_answer = answer["jsonrpc"] == "2.0" && answer["id"] == request["id"];
    let is_answer = is_answer && (answer.get("result").is_some() || answer.get("error").is_some());
    if response.status != 200 {
        stage.fail("HTTP-05", format!("initialize is answered with status {}, not 200", response.status));
    } else if !response.is_type("application/json") || !is_answer {
        stage.fail("HTTP-05", "the body is not the answer to initialize as application/json");
    } else {
        stage.pass("HTTP-05");
    }
    let id = response.header("acp-connection-id").unwrap_or_default();
    let is_visible = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic());
    stage.check("HTTP-06", is_visible, "the response has no Acp-Connection-Id");
    if answer.get("result").is_some() {
        let has = answer["result"].get("connectionId").is_some();
        stage.check("HTTP-07", !has, "the result has a member `connectionId`, which is not in the schema");
    }
    Ok(())
}

async fn methods(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let get = send(stage, &client.endpoint, &client.of(Request::stream(), None)).await?.status;
    let is_served = |status: u16| !matches!(status, 404 | 405 | 501);
    if !is_served(get) {
        stage.fail("HTTP-01", format!("a GET of a stream is refused with {get}"));
        return Ok(());
    }
    let delete = client.delete(stage).await?.status;
    let why = format!("a DELETE of a connection is refused with {delete}");
    stage.check("HTTP-01", is_served(delete), why);
    Ok(())
}

/// The preface of HTTP/2 and an empty frame of settings (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The type of a frame of settings.
const SETTINGS: u8 = 4;

async fn http2(stage: &mut Stage) -> Step {
    Client::open(stage).await?;
    let endpoint = stage.endpoint()?;
    let (mut stream, agreed) = match timeout(stage.deadline(), endpoint.open_http2()).await {
        Ok(Ok(opened)) => opened,
        // A TLS handshake fails if no protocol is shared.
        Ok(Err(error)) => {
            stage.exchanged(format!("a connection for HTTP/2 → {error}"));
            stage.fail("HTTP-04", "the server does not agree to HTTP/2");
            return Ok(());
        }
        Err(_) => return Err(Stop::Deadline("a connection for HTTP/2".to_owned())),
    };
    let mut head = [0; 9];
    let settings = async {
        stream.write_all(PREFACE).await?;
        stream.read_exact(&mut head).await
    };
    let spoken =
        agreed && matches!(timeout(stage.deadline(), settings).await, Ok(Ok(_))) && head[3] == SETTINGS;
    stage.exchanged("the preface of HTTP/2");
    stage.check("HTTP-04", spoken, "the server does not answer the preface of HTTP/2 with its settings");
    Ok(())
}

async fn content_type(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    for kind in ["text/plain", "application/json5"] {
        let (_, message) = client.message("_attache/probe", json!({}));
        let request = client.of(Request::post(&message), None).with("content-type", kind);
        let status = send(stage, &client.endpoint, &request).await?.status;
        // A media type that begins like the right one is refused by few servers, and does no harm.
        if kind == "text/plain" || status == 415 {
            stage.check("HTTP-17", status == 415, format!("a POST of {kind} gets {status}, not 415"));
        }
    }
    client.delete(stage).await?;
    Ok(())
}

async fn accept(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let request = client.of(Request::stream(), None).with("accept", "application/json");
    let status = send(stage, &client.endpoint, &request).await?.status;
    stage.check("HTTP-18", status == 406, format!("a GET that accepts only JSON gets {status}, not 406"));
    client.delete(stage).await?;
    Ok(())
}

async fn ids(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let (_, message) = client.message("session/list", json!({}));
    let requests = [Request::post(&message), Request::stream(), Request::new("DELETE")];
    for request in requests {
        let method = request.method;
        let status = send(stage, &client.endpoint, &request).await?.status;
        stage.check(
            "HTTP-19",
            status == 400,
            format!("a {method} without Acp-Connection-Id gets {status}, not 400"),
        );
        if method == "POST" {
            // HTTP-14: the header is required, so a request without it must not be accepted.
            stage.check("HTTP-14", status >= 400, format!("a POST without Acp-Connection-Id gets {status}"));
        }
        let request = request.with("acp-connection-id", UNKNOWN);
        let status = send(stage, &client.endpoint, &request).await?.status;
        stage.check(
            "HTTP-19",
            status == 404,
            format!("a {method} with an unknown connection id gets {status}, not 404"),
        );
    }
    client.delete(stage).await?;
    Ok(())
}

async fn session_ids(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let mut events = client.stream(stage, None).await?;
    let session = client.new_session(stage, &mut events).await?;
    let (_, message) =
        client.message("session/prompt", json!({ "prompt": [{ "type": "text", "text": "hi" }] }));
    let status = client.post(stage, None, &message).await?.status;
    stage.check("HTTP-15", status == 400, format!("a prompt without a session id gets {status}, not 400"));
    // A cancellation of a session in which nothing runs has no effect.
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    let status = client.post(stage, None, &cancel).await?.status;
    let is_accepted = (200..300).contains(&status);
    stage.check("HTTP-16", is_accepted, format!("a session id in the params alone is refused with {status}"));
    let status = client.post(stage, Some(UNKNOWN), &cancel).await?.status;
    stage.check(
        "HTTP-16",
        status == 400,
        format!("different session ids in header and params get {status}, not 400"),
    );
    client.delete(stage).await?;
    Ok(())
}

/// The number of unknown sessions after which a server must have refused one.
const GHOSTS: usize = 80;

async fn unknown_session(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let mut open: Vec<Response> = Vec::new();
    for number in 0..GHOSTS {
        let session = format!("{UNKNOWN}-{number}");
        let response = send(stage, &client.endpoint, &client.of(Request::stream(), Some(&session))).await?;
        match response.status {
            // A session may be loaded later, so a few may be opened ahead.
            200 => open.push(response),
            status => {
                stage.check(
                    "HTTP-20",
                    status == 404,
                    format!("the stream of an unknown session gets {status}, not 404"),
                );
                client.delete(stage).await?;
                return Ok(());
            }
        }
    }
    stage.fail("HTTP-20", format!("{GHOSTS} streams of unknown sessions were opened on one connection"));
    client.delete(stage).await?;
    Ok(())
}

async fn batch(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    let (_, one) = client.message("_attache/probe", json!({}));
    let (_, two) = client.message("_attache/probe", json!({}));
    let status = client.post(stage, None, &json!([one, two])).await?.status;
    stage.check("HTTP-23", matches!(status, 400 | 501), format!("a batch gets {status}, not 400"));
    client.delete(stage).await?;
    Ok(())
}

async fn initialize_error(stage: &mut Stage) -> Step {
    Client::open(stage).await?;
    let endpoint = stage.endpoint()?;
    let wrong = json!({ "jsonrpc": "2.0", "id": "wrong", "method": "initialize", "params": { "protocolVersion": {} } });
    let mut response = send(stage, &endpoint, &Request::post(&wrong)).await?;
    let body = within(stage, "the body of the response", response.text()).await?;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    if answer.get("result").is_some() {
        return Err(Stop::NotExercised("the agent accepts a protocolVersion that is an object".to_owned()));
    }
    let kept = response.status == 200 && answer["error"]["code"].is_i64() && answer["id"] == "wrong";
    stage.check(
        "HTTP-29",
        kept,
        format!("a refused initialize gets {}, not 200 with the error", response.status),
    );
    Ok(())
}

/// More than servers take in one body.
const LARGE: usize = 40 << 20;

async fn body(stage: &mut Stage) -> Step {
    let client = Client::open(stage).await?;
    let bytes = b"{\"jsonrpc\":\"2.0\",\"method\":\"_attache/\xff\"}".to_vec();
    let request = client.of(Request { body: bytes, ..Request::post(&Value::Null) }, None);
    let status = send(stage, &client.endpoint, &request).await?.status;
    stage.check("HTTP-30", status == 400, format!("a body that is not UTF-8 gets {status}, not 400"));
    let text = "x".repeat(LARGE);
    let large = json!({ "jsonrpc": "2.0", "method": "_attache/large", "params": { "text": text } });
    let request = client.of(Request::post(&large), None);
    let bytes = request.bytes(&client.endpoint);
    let endpoint = client.endpoint.clone();
    let upload = async {
        let (mut reader, mut writer) = tokio::io::split(endpoint.open().await?);
        let mut start = Vec::new();
        for piece in bytes.chunks(64 << 10) {
            tokio::select! {
                biased;
                // The status may come before the end of the body.
                read = reader.read_buf(&mut start) => { read?; break }
                // A server that has closed the connection may have responded before.
                written = writer.write_all(piece) => if written.is_err() {
                    break;
                },
            }
        }
        while start.len() < 12 && reader.read_buf(&mut start).await? > 0 {}
        std::io::Result::Ok(start)
    };
    let limit = stage.deadline() * 3;
    let start = timeout(limit, upload).await;
    let status = match &start {
        Ok(Ok(start)) => {
            let start = String::from_utf8_lossy(start);
            start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
        }
        _ => 0_u16,
    };
    stage.exchanged(format!("POST content-length: {} → {status}", request.body.len()));
    match status {
        413 => stage.pass("HTTP-30"),
        200..300 => stage.note(format!("a body of {LARGE} bytes is taken")),
        // The server closed the connection under the body, and its response may be lost with that.
        0 => stage.note(format!("a body of {LARGE} bytes is cut off")),
        status => stage.fail("HTTP-30", format!("a body of {LARGE} bytes gets {status}, not 413")),
    }
    client.delete(stage).await?;
    Ok(())
}

/// A site that no server knows (RFC 2606).
const FOREIGN: &str = "https://attache-check.invalid";

/// A browser asks before it posts JSON to another site, and does not ask before it opens a
/// WebSocket.
async fn origin(stage: &mut Stage) -> Step {
    Client::open(stage).await?;
    let endpoint = stage.endpoint()?;
    let request = Request::new("OPTIONS")
        .with("origin", FOREIGN)
        .with("access-control-request-method", "POST")
        .with("access-control-request-headers", "content-type");
    let response = send(stage, &endpoint, &request).await?;
    let allowed = response.header("access-control-allow-origin");
    let is_allowed =
        response.status < 400 && allowed.is_some_and(|origin| origin == "*" || origin == FOREIGN);
    stage.check("HTTP-33", !is_allowed, "a web page of another site may post messages");
    let key = attache_http::ws::random_key().unwrap_or_default();
    let upgrade = Socket::request(&key).with("origin", FOREIGN);
    let status = send(stage, &endpoint, &upgrade).await?.status;
    stage.check("HTTP-33", status != 101, "a web page of another site may open a WebSocket");
    Ok(())
}

async fn token(stage: &mut Stage) -> Step {
    let mut client = Client::open(stage).await?;
    if !client.endpoint.has_token() {
        return Err(Stop::NotApplicable("no token was given, so the server is open".to_owned()));
    }
    let open = client.endpoint.without_token();
    let (_, message) = client.message("_attache/probe", json!({}));
    let requests = [
        client.of(Request::post(&message), None),
        client.of(Request::stream(), None),
        client.of(Request::new("DELETE"), None),
        Request::post(&Client::initialize(stage)),
    ];
    for request in requests {
        let status = send(stage, &open, &request).await?.status;
        let kept = matches!(status, 401 | 403 | 404);
        stage.check(
            "HTTP-36",
            kept,
            format!("a {} without the token gets {status}, not 401", request.method),
        );
    }
    client.delete(stage).await?;
    Ok(())
}
