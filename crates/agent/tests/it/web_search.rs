//! Web search with the tools of providers.

use std::sync::atomic::{AtomicUsize, Ordering};

use attache::client::Client;
use attache_agent::model::Api;
use attache_agent::{Mode, Options};
use serde_json::{Value, json};

use crate::models::settings;
use crate::models_server::{Server, Step};
use crate::rig::{Project, Seen, allow, connect};
use crate::sloppy::{encoded, text};

fn sse(messages: &[Value]) -> Vec<Step> {
    let body: String = messages.iter().map(|message| format!("data: {message}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    vec![Step::Send(format!("{head}{body}").into_bytes())]
}

/// Plays two prompts. The first is answered with `first`. Returns what the client saw of it, and
/// the bodies of the requests.
async fn play(api: Api, is_on: bool, first: Vec<Step>) -> (Seen, Vec<Value>) {
    let project = Project::new();
    let next = AtomicUsize::new(0);
    let server = Server::answering(move |_| match next.fetch_add(1, Ordering::Relaxed) {
        0 => first.clone(),
        _ => encoded(api, &text("Again.")),
    })
    .await;
    let mut models = settings(api, &server.url);
    models.apply("test", "web_search", &is_on.to_string(), |_| None).unwrap();
    let model = if api == Api::Gemini { "test/gemini-3.5-flash" } else { "test/some-model" };
    let options =
        Options { model: Some(model.to_owned()), models, mode: Some(Mode::Ask), ..Options::default() };
    let mut session = connect(Client::new(), options).await.new_session(project.path()).await.unwrap();
    let seen = allow(&mut session, "first").await;
    allow(&mut session, "second").await;
    (seen, server.seen().into_iter().map(|asked| asked.body).collect())
}

fn has_tool(body: &Value, tool: &Value) -> bool {
    body["tools"].as_array().is_some_and(|tools| tools.contains(tool))
}

#[tokio::test]
async fn anthropic_searches_and_the_search_is_not_a_call_of_ours() {
    let first = || {
        sse(&[
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\": \"rust"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": " 2027\"}"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Found."}}),
            json!({"type": "content_block_stop", "index": 2}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
            json!({"type": "message_stop"}),
        ])
    };
    let tool = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5});
    let (seen, bodies) = play(Api::Anthropic, true, first()).await;
    assert_eq!(
        (seen.text.as_str(), seen.thoughts.as_str()),
        ("Found.", "Web search: rust 2027\n"),
        "{seen:#?}"
    );
    assert!(seen.calls.is_empty(), "{seen:#?}");
    assert!(has_tool(&bodies[0], &tool), "{}", bodies[0]["tools"]);
    let answer =
        bodies[1]["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant");
    assert_eq!(answer.unwrap()["content"], json!([{"type": "text", "text": "Found."}]));
    let (_, bodies) = play(Api::Anthropic, false, first()).await;
    assert!(!has_tool(&bodies[0], &tool), "only if the setting says so");
}

#[tokio::test]
async fn openai_gets_its_search_back_behind_the_thought() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rust"}});
    let first = sse(&[
        json!({"type": "response.output_item.done", "output_index": 0, "item": search}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Found."}),
        json!({"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ]);
    let (seen, bodies) = play(Api::Responses, true, first).await;
    assert_eq!((seen.text.as_str(), seen.thoughts.as_str()), ("Found.", "Web search: rust\n"), "{seen:#?}");
    assert!(has_tool(&bodies[0], &json!({"type": "web_search"})), "{}", bodies[0]["tools"]);
    assert!(bodies[1]["input"].as_array().unwrap().contains(&search), "{}", bodies[1]["input"]);
}

#[tokio::test]
async fn gemini_gets_its_search_back_as_it_came() {
    let search = json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["rust"]}, "id": "a"}, "thoughtSignature": "s"});
    let parts = json!([search, {"text": "Found."}]);
    let first = sse(&[json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})]);
    let (seen, bodies) = play(Api::Gemini, true, first).await;
    assert_eq!((seen.text.as_str(), seen.thoughts.as_str()), ("Found.", "Web search: rust\n"), "{seen:#?}");
    assert!(has_tool(&bodies[0], &json!({"googleSearch": {}})), "{}", bodies[0]["tools"]);
    assert_eq!(bodies[0]["toolConfig"]["includeServerSideToolInvocations"], true);
    let parts = bodies[1]["contents"].as_array().unwrap().iter().find(|content| content["role"] == "model");
    assert!(parts.unwrap()["parts"].as_array().unwrap().contains(&search), "{}", bodies[1]["contents"]);
}

#[tokio::test]
async fn protocols_without_a_search_are_asked_as_before() {
    let (seen, bodies) = play(Api::Chat, true, encoded(Api::Chat, &text("Found."))).await;
    assert_eq!(seen.text, "Found.");
    assert!(!bodies[0]["tools"].to_string().contains("web_search"), "{}", bodies[0]["tools"]);
}
