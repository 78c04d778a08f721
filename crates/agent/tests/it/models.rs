//! Models over real sockets: what is sent, what comes back, and what happens when something goes
//! wrong.

use std::sync::Arc;
use std::time::Duration;

use attache_agent::model::{
    Api, ErrorKind, Event, Key, Message, Model, ModelError, Models, Part, Request, Response, Role, Settings,
    Stop, Thinking,
};
use attache_http::client::HttpClient;
use serde_json::json;

use crate::models_server::{Server, Step, events, head, whole};

pub(crate) const KEY: &str = "sk-very-secret-key";

/// Settings with one provider `test` at this place, and little patience.
pub(crate) fn settings(api: Api, url: &str) -> Settings {
    let mut settings = Settings::from_vars(|_| None);
    settings.discover = false;
    settings.http = Some(HttpClient::new(None).unwrap());
    settings.timeouts.pause = Duration::from_millis(1);
    settings.timeouts.retries = 2;
    let provider = settings.provider("test");
    provider.api = api;
    provider.base_url = url.to_owned();
    provider.key = Key::new(KEY);
    settings
}

pub(crate) fn open(settings: &Settings) -> Arc<dyn Model> {
    Models::new(settings).unwrap().open("test/some-model").unwrap()
}

fn model(api: Api, server: &Server) -> Arc<dyn Model> {
    open(&settings(api, &server.url))
}

pub(crate) fn request() -> Request {
    Request { messages: vec![Message::user("hello")], ..Request::default() }
}

/// Everything that comes, and how it ends.
pub(crate) async fn ask(model: &dyn Model) -> (Vec<Event>, Option<ModelError>) {
    let mut stream = model.start(request());
    let mut events = Vec::new();
    loop {
        match stream.next().await {
            Some(Ok(event)) => events.push(event),
            Some(Err(error)) => return (events, Some(error)),
            None => return (events, None),
        }
    }
}

pub(crate) fn answer(events: &[Event]) -> Response {
    let mut answer = Response::default();
    events.iter().for_each(|event| answer.add(event));
    answer
}

fn retries(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Retry { .. })).count()
}

/// An answer that says `ok` and calls a tool, in each language.
pub(crate) fn good(api: Api) -> Vec<Step> {
    let stream = match api {
        Api::Anthropic => concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n",
            "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"read\",\"input\":{}}}\n\n",
            "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\n",
            "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":2}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        ),
        Api::Chat => concat!(
            "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"a\\\":1}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
            "data: [DONE]\n\n",
        ),
        Api::Responses => concat!(
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"ok\"}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"read\"}}\n\n",
            "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"delta\":\"{\\\"a\\\":1}\"}\n\n",
            "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"arguments\":\"{\\\"a\\\":1}\"}}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}}\n\n",
        ),
        Api::Gemini => concat!(
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ok\"}]}}]}\r\n\r\n",
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"id\":\"c\",\"name\":\"read\",\"args\":{\"a\":1}}}]},\"finishReason\":\"STOP\"}],",
            "\"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":2}}\r\n\r\n",
        ),
        Api::Ollama => concat!(
            "{\"message\":{\"content\":\"ok\"},\"done\":false}\n",
            "{\"message\":{\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"read\",\"arguments\":{\"a\":1}}}]},\"done\":false}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true,\"prompt_eval_count\":3,\"eval_count\":2}\n",
        ),
    };
    let kind = if api == Api::Ollama { "application/x-ndjson" } else { "text/event-stream; charset=utf-8" };
    vec![Step::Send(head(200, kind, "")), Step::Send(stream.as_bytes().to_vec())]
}

#[track_caller]
fn assert_good(events: &[Event]) {
    let answer = answer(events);
    let message = answer.message();
    assert_eq!(message.text(), "ok");
    let calls: Vec<_> = message.calls().map(|call| (call.id.as_str(), call.arguments.clone())).collect();
    assert_eq!(calls, [("c", json!({"a": 1}))]);
    assert_eq!((answer.usage.input, answer.usage.output, answer.stop), (3, 2, Some(Stop::Calls)));
    assert!(matches!(events.last(), Some(Event::End(_))));
}

#[tokio::test]
async fn every_language_streams_at_once_and_byte_by_byte() {
    for api in Api::ALL {
        let slow = good(api).into_iter().map(|step| match step {
            Step::Send(bytes) => Step::Bytewise(bytes),
            other => other,
        });
        let server = Server::start(vec![good(api), slow.collect()]).await;
        let model = model(api, &server);
        for _ in 0..2 {
            let (events, error) = ask(&*model).await;
            assert_eq!(error, None, "{api:?}");
            assert_good(&events);
        }
    }
}

#[tokio::test]
async fn the_key_is_sent_only_in_its_header() {
    let header = |api| match api {
        Api::Anthropic => ("x-api-key", KEY.to_owned()),
        Api::Gemini => ("x-goog-api-key", KEY.to_owned()),
        _ => ("authorization", format!("Bearer {KEY}")),
    };
    for api in Api::ALL {
        let server = Server::start(vec![good(api)]).await;
        let models = Models::new(&settings(api, &server.url)).unwrap();
        let image = Part::Image { mime: "image/png".into(), data: "AAAA".into() };
        let parts = vec![Part::Text("look".into()), image];
        let message = Message { role: Role::User, parts };
        let ask = Request {
            messages: vec![message],
            thinking: Thinking::Low,
            system: "sys".into(),
            ..Request::default()
        };
        let mut stream = models.open("test/some-model").unwrap().start(ask);
        while let Some(event) = stream.next().await {
            event.unwrap();
        }
        let seen = &server.seen()[0];
        let (name, value) = header(api);
        assert_eq!(seen.header(name), Some(value.as_str()), "{api:?}");
        assert_eq!(seen.head.matches(KEY).count(), 1, "{api:?}");
        assert_eq!(seen.header("accept-encoding"), Some("identity"));
        assert_eq!(seen.header("anthropic-version").is_some(), api == Api::Anthropic);
        assert!(!seen.path().contains("key"), "{}", seen.path());
        let body = seen.body.to_string();
        assert!(body.contains("look") && body.contains("sys"), "{body}");
        assert!(!body.contains(KEY));
    }
}

#[tokio::test]
async fn pictures_are_sent_to_models_that_see() {
    let server = Server::start(vec![good(Api::Anthropic)]).await;
    let mut settings = settings(Api::Anthropic, &server.url);
    let provider = settings.provider("anthropic");
    (provider.base_url, provider.key) = (server.url.clone(), Key::new(KEY));
    let model = Models::new(&settings).unwrap().open("anthropic/claude-sonnet-5-5").unwrap();
    let image = Part::Image { mime: "image/png".into(), data: "AAAA".into() };
    let ask =
        Request { messages: vec![Message { role: Role::User, parts: vec![image] }], ..Request::default() };
    let mut stream = model.start(ask);
    while let Some(event) = stream.next().await {
        event.unwrap();
    }
    assert_eq!(server.seen()[0].body["messages"][0]["content"][0]["source"]["data"], "AAAA");
    assert_eq!(server.seen()[0].path(), "/v1/messages");
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    for (status, body, expected) in [
        (400, r#"{"error":{"message":"bad tools"}}"#, (ErrorKind::Other, "bad tools")),
        (401, r#"{"error":{"message":"no"}}"#, (ErrorKind::Auth, "no")),
        (403, r#"{"error":"not yours"}"#, (ErrorKind::Auth, "not yours")),
        (404, r#"{"error":"no such model"}"#, (ErrorKind::Other, "no such model")),
        (400, r#"{"error":{"message":"prompt is too long"}}"#, (ErrorKind::TooLong, "prompt is too long")),
        (302, "", (ErrorKind::Other, "no details")),
    ] {
        for api in Api::ALL {
            let server =
                Server::start(vec![whole(status, "location: http://127.0.0.1:1/\r\n", body), good(api)])
                    .await;
            let (events, error) = ask(&*model(api, &server)).await;
            let error = error.unwrap();
            assert_eq!(
                ((error.kind, error.message.as_str()), error.status),
                (expected, Some(status)),
                "{api:?}"
            );
            assert!(events.is_empty());
            assert_eq!(server.seen().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_provider_that_repeats_the_key_does_not_get_it_into_an_error() {
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let server = Server::start(vec![whole(401, "", &body)]).await;
    let (_, error) = ask(&*model(Api::Chat, &server)).await;
    let error = error.unwrap();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(text.contains("Incorrect API key") && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn busy_providers_are_asked_again_when_they_say() {
    let busy = [
        whole(429, "retry-after-ms: 7\r\n", r#"{"error":{"message":"slow down"}}"#),
        whole(500, "", ""),
        whole(503, "", "<html>"),
        whole(529, "", r#"{"error":{"type":"overloaded_error","message":"busy"}}"#),
        // Hangs up without a word, or in the middle of the head.
        vec![],
        vec![Step::Send(b"HTTP/1.1 200".to_vec())],
        // A stream that ends before anything was said.
        events(": hello\n\n"),
        events("data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\"}}\n\n"),
    ];
    for api in Api::ALL {
        for (number, fault) in busy.iter().enumerate() {
            if api == Api::Ollama && number > 5 {
                continue;
            }
            let server = Server::start(vec![fault.clone(), good(api)]).await;
            let (events, error) = ask(&*model(api, &server)).await;
            assert_eq!(error, None, "{api:?} {number}");
            assert_eq!((retries(&events), server.seen().len()), (1, 2), "{api:?} {number}");
            assert!(matches!(events[0], Event::Retry { .. }), "it is reported first");
            assert_good(&events[1..]);
            if number == 0 {
                assert_eq!(
                    events[0],
                    Event::Retry {
                        after: Duration::from_millis(7),
                        why: "too many requests: slow down; try again in 1 s".into()
                    }
                );
            }
        }
    }
}

#[tokio::test]
async fn patience_ends() {
    let server = Server::start(vec![
        whole(529, "", "{}"),
        whole(529, "", "{}"),
        whole(529, "", "{}"),
        good(Api::Chat),
    ])
    .await;
    let (events, error) = ask(&*model(Api::Chat, &server)).await;
    assert_eq!((events.len(), retries(&events), server.seen().len()), (2, 2, 3));
    assert!(matches!(error, Some(ModelError { kind: ErrorKind::Overloaded, .. })));
    // It does not wait for an hour without a question.
    let server = Server::start(vec![whole(429, "retry-after: 3600\r\n", "{}"), good(Api::Chat)]).await;
    let (_, error) = ask(&*model(Api::Chat, &server)).await;
    assert!(
        matches!(error, Some(ModelError { kind: ErrorKind::RateLimited, retry_after: Some(after), .. }) if after.as_secs() == 3600)
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn after_the_first_word_nothing_is_asked_again() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"read\",\"arguments\":\"{\\\"a\"}}]}}]}\n\n";
    let error = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
    let chunked = |text: &str| {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        vec![
            Step::Send(head(200, "text/event-stream", "transfer-encoding: chunked\r\n")),
            Step::Send(chunk.into_bytes()),
        ]
    };
    for reply in [
        events(&format!("{said}{call}")),
        chunked(&format!("{said}{call}")),
        events(&format!("{said}{error}")),
    ] {
        let server = Server::start(vec![reply, good(Api::Chat)]).await;
        let (events, error) = ask(&*model(Api::Chat, &server)).await;
        assert!(
            matches!(error, Some(ModelError { kind: ErrorKind::Network | ErrorKind::Overloaded, .. })),
            "{error:?}"
        );
        assert_eq!((retries(&events), server.seen().len()), (0, 1));
        let answer = answer(&events);
        assert_eq!(answer.message().text(), "half", "what was said is kept");
        assert_eq!((answer.message().calls().count(), answer.stop), (0, None), "half a call is none");
    }
}

#[tokio::test]
async fn broken_arguments_do_not_end_the_answer() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"read\",\"arguments\":\"{oops\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    let server = Server::start(vec![events(stream)]).await;
    let (events, error) = ask(&*model(Api::Chat, &server)).await;
    assert_eq!(error, None);
    let bad = events.iter().find_map(|event| match event {
        Event::CallEnds { call: Err(bad), .. } => Some(bad),
        _ => None,
    });
    assert_eq!(bad.unwrap().raw, "{oops");
    assert_eq!(events.last(), Some(&Event::End(Stop::Calls)));
}
