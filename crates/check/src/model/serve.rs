//! One connection: requests in, answers out, until it ends.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::model::api::{self, Api};
use crate::model::http::{self, Events, Request};
use crate::model::log::Log;
use crate::model::script;
use crate::model::talk::Reply;

/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(600);

/// Between two words of an endless answer, and after how many even that ends.
const PAUSE: Duration = Duration::from_millis(20);
const ENDLESS: usize = 6000;

pub(super) fn connection(stream: TcpStream, log: &Log) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(IDLE));
    let _ = stream.set_write_timeout(Some(IDLE));
    let Ok(mut to) = stream.try_clone() else { return };
    let mut from = BufReader::new(stream);
    while let Ok(Some(request)) = Request::read(&mut from) {
        if answer(&request, &mut to, log).is_err() {
            return;
        }
    }
}

fn answer(request: &Request, to: &mut TcpStream, log: &Log) -> io::Result<()> {
    let number = log.number();
    if request.is_for_elsewhere() {
        log.write(
            &json!({"n": number, "what": "outside", "method": request.method, "target": request.target}),
        );
        return http::answer(to, "403 Forbidden", &json!({"error": {"message": "only loopback is served"}}));
    }
    let Some(api) = Api::of(request) else {
        log.write(&json!({"n": number, "what": "other", "method": request.method, "target": request.target}));
        return match api::catalogue(request) {
            Some(value) => http::answer(to, "200 OK", &value),
            None => http::answer(
                to,
                "404 Not Found",
                &json!({"error": {"message": "there is no such thing here"}}),
            ),
        };
    };
    let body = request.json();
    let ask = api.read(request, &body);
    let decision = script::decide(&ask);
    log.write(&json!({
        "n": number,
        "what": "model",
        "api": api.name(),
        "model": ask.model,
        "stream": ask.stream,
        "tools": ask.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        "marker": decision.marker,
        "step": decision.step,
        "reply": decision.reply.brief(),
        "body": body,
    }));
    let sent = if let Reply::Fail = decision.reply {
        // Clients repeat a request after a status of 500 or above, or after 429.
        let error = json!({"type": "invalid_request_error", "message": "something broke within"});
        http::answer(to, "400 Bad Request", &json!({"type": "error", "error": error}))
    } else if ask.stream {
        stream(api, to, &ask.model, number, &decision.reply)
    } else {
        let reply = match decision.reply {
            Reply::Endless => Reply::Text("word 0".to_owned()),
            reply => reply,
        };
        http::answer(to, "200 OK", &api.whole(&ask.model, number, &reply))
    };
    if let Err(error) = &sent {
        log.write(&json!({"n": number, "what": "dropped", "why": error.to_string()}));
    }
    sent
}

fn stream(api: Api, to: &mut TcpStream, model: &str, number: u64, reply: &Reply) -> io::Result<()> {
    let mut events = Events::begin(to)?;
    let mut stream = api.stream(model, number);
    let mut send = |list: Vec<(&'static str, String)>| -> io::Result<()> {
        list.iter().try_for_each(|(name, data)| events.send(name, data))
    };
    match reply {
        Reply::Text(text) => {
            send(stream.begin_text())?;
            for piece in pieces(text) {
                send(stream.text(piece))?;
            }
        }
        Reply::Endless => {
            send(stream.begin_text())?;
            for count in 0..ENDLESS {
                send(stream.text(&format!("word {count} ")))?;
                std::thread::sleep(PAUSE);
            }
        }
        Reply::Call { tool, input } => send(stream.call(tool, input))?,
        Reply::Fail => {}
    }
    send(stream.end(reply))?;
    events.end()
}

/// A text in a few pieces, cut between characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let cut = rest.char_indices().nth(8).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(cut);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::{Read, Write};
    use std::net::TcpListener;

    use serde_json::Value;

    use super::*;

    /// What is answered to a request.
    fn answered(head: &str, body: &Value) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let body = body.to_string();
        write!(client, "{head} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        connection(server, &Log::none());
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The same request in all four APIs: where it goes, and what it holds.
    fn everywhere(text: &str, stream: bool) -> [(String, Value); 4] {
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        [
            (
                "/v1/chat/completions".to_owned(),
                json!({
                    "stream": stream,
                    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": text}]}],
                    "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}],
                }),
            ),
            (
                "/v1/responses".to_owned(),
                json!({
                    "stream": stream,
                    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}],
                    "tools": [{"type": "function", "name": "bash", "parameters": schema}],
                }),
            ),
            (
                "/v1/messages?beta=true".to_owned(),
                json!({
                    "stream": stream,
                    "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
                    "tools": [{"name": "bash", "input_schema": schema}],
                }),
            ),
            (
                format!("/v1beta/models/m:{verb}"),
                json!({
                    "contents": [{"role": "user", "parts": [{"text": text}]}],
                    "tools": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": schema}]}],
                }),
            ),
        ]
    }

    #[test]
    fn every_api_streams_a_text_in_pieces() {
        for (path, body) in everywhere("[[answer a longer text]]", true) {
            let answer = answered(&format!("POST {path}"), &body);
            assert!(answer.contains("text/event-stream") && answer.ends_with("0\r\n\r\n"), "{answer}");
            assert!(answer.contains(r#""a longer""#) && answer.contains(r#"" text""#), "{path}: {answer}");
        }
    }

    #[test]
    fn a_failure_is_a_status_that_is_not_repeated() {
        for stream in [true, false] {
            for (path, body) in everywhere("[[fail]]", stream) {
                let answer = answered(&format!("POST {path}"), &body);
                assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
            }
        }
    }

    #[test]
    fn other_hosts_and_large_requests_are_refused() {
        let elsewhere = answered("POST http://example.com/v1/messages", &json!({}));
        assert!(elsewhere.starts_with("HTTP/1.1 403 "), "{elsewhere}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        write!(client, "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", usize::MAX).unwrap();
        connection(server, &Log::none());
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    }

    #[test]
    fn every_api_calls_the_tool_that_is_offered() {
        for stream in [true, false] {
            for (path, body) in everywhere("[[run ls -l]]", stream) {
                let answer = answered(&format!("POST {path}"), &body);
                assert!(answer.contains(r#""name":"bash""#) && answer.contains("ls -l"), "{path}: {answer}");
            }
        }
    }

    #[test]
    fn after_the_result_of_the_tool_every_api_ends() {
        let [mut chat, mut responses, mut messages, mut gemini] = everywhere("[[run ls]]", false);
        let add = |body: &mut Value, list: &str, item: Value| body[list].as_array_mut().unwrap().push(item);
        add(&mut chat.1, "messages", json!({"role": "tool", "tool_call_id": "c", "content": "out"}));
        add(
            &mut responses.1,
            "input",
            json!({"type": "function_call_output", "call_id": "c", "output": "out"}),
        );
        let result = json!({"type": "tool_result", "tool_use_id": "c", "content": "out"});
        add(&mut messages.1, "messages", json!({"role": "user", "content": [result]}));
        let result = json!({"functionResponse": {"name": "bash", "response": {"output": "out"}}});
        add(&mut gemini.1, "contents", json!({"role": "user", "parts": [result]}));
        for (path, body) in [chat, responses, messages, gemini] {
            let answer = answered(&format!("POST {path}"), &body);
            assert!(answer.contains(r#""finished""#), "{path}: {answer}");
        }
    }

    #[test]
    fn what_is_meant_for_elsewhere_is_refused() {
        for head in ["CONNECT example.com:443", "GET http://example.com/"] {
            assert!(answered(head, &Value::Null).starts_with("HTTP/1.1 403"), "{head}");
        }
        assert!(answered("GET /nothing", &Value::Null).starts_with("HTTP/1.1 404"));
        assert!(answered("GET /v1/models", &Value::Null).contains("fake-model"));
    }
}
