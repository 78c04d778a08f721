//! Each language read from recorded forms of answers, cut at every byte, and written for a
//! conversation that has everything.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::model::{Message, Part, Request, Response, Role, Stop, Thinking, ToolCall, ToolSpec, catalog};
use attache_http::client::sse::{Lines, Sse};

fn info(api: Api) -> ModelInfo {
    let (provider, id) = match api {
        Api::Anthropic => ("anthropic", "claude-sonnet-5-5"),
        Api::Chat => ("vllm", "qwen3"),
        Api::Responses => ("openai", "gpt-5.4"),
        Api::Gemini => ("gemini", "gemini-3.5-flash"),
        Api::Ollama => ("ollama", "qwen3"),
    };
    ModelInfo { thinking: true, images: true, ..catalog::info(provider, id) }
}

/// Reads a stream that arrives in these pieces.
fn read(api: Api, pieces: &[&[u8]]) -> Result<Vec<Event>, ModelError> {
    let mut decoder = api.decoder(&info(api), &Request::default());
    let (mut sse, mut lines, mut events) = (Sse::default(), Lines::default(), Vec::new());
    let mut take = |message: String, events: &mut Vec<Event>| {
        if message.trim().is_empty() || message == "[DONE]" {
            return Ok(());
        }
        decoder.take(&serde_json::from_str(&message).unwrap(), events)
    };
    for piece in pieces {
        if api == Api::Ollama {
            lines.push(piece);
            while let Some(line) = lines.next_line().unwrap() {
                take(String::from_utf8(line.to_vec()).unwrap(), &mut events)?;
            }
        } else {
            sse.push(piece);
            while let Some(event) = sse.next_event().unwrap() {
                take(event.data, &mut events)?;
            }
        }
    }
    assert!(decoder.is_complete());
    decoder.finish(&mut events);
    Ok(events)
}

fn answer(events: &[Event]) -> Response {
    let mut answer = Response::default();
    events.iter().for_each(|event| answer.add(event));
    answer
}

fn sse(messages: &[Value]) -> String {
    messages.iter().map(|message| format!("data: {message}\n\n")).collect()
}

/// The same answer in each language: a thought, text, two calls, tokens.
fn stream(api: Api) -> String {
    match api {
        Api::Anthropic => sse(&[
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1,
                "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "I look"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "ping"}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Größe "}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "😀"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "a", "name": "read", "input": {}}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":"}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "\"ä\"}"}}),
            json!({"type": "content_block_stop", "index": 2}),
            json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "b", "name": "list", "input": {}}}),
            json!({"type": "content_block_stop", "index": 3}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
            json!({"type": "message_stop"}),
        ]),
        Api::Chat => {
            let delta =
                |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
            let mut text = sse(&[
                delta(json!({"role": "assistant", "content": ""})),
                delta(json!({"reasoning_content": "I "})),
                delta(json!({"reasoning_content": "look"})),
                delta(json!({"content": "Größe "})),
                delta(json!({"content": "😀"})),
                delta(
                    json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}]}),
                ),
                delta(
                    json!({"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "list", "arguments": "{"}}]}),
                ),
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\":"}}]})),
                delta(
                    json!({"tool_calls": [{"index": 1, "function": {"arguments": "}"}}, {"index": 0, "function": {"arguments": "\"ä\"}"}}]}),
                ),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 20,
                    "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 4}}}),
            ]);
            text.push_str("data: [DONE]\n\n");
            text
        }
        Api::Responses => sse(&[
            json!({"type": "response.created", "response": {}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs", "summary": []}}),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "I look"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs",
                "summary": [{"type": "summary_text", "text": "I look"}], "encrypted_content": "enc"}}),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Größe "}),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "😀"}),
            json!({"type": "response.output_text.done", "output_index": 1, "text": "Größe 😀"}),
            json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call", "call_id": "a", "name": "read", "arguments": ""}}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"path\":"}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "\"ä\"}"}),
            json!({"type": "response.output_item.done", "output_index": 2, "item": {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{\"path\":\"ä\"}"}}),
            json!({"type": "response.output_item.added", "output_index": 3, "item": {"type": "function_call", "call_id": "b", "name": "list", "arguments": ""}}),
            json!({"type": "response.output_item.done", "output_index": 3, "item": {"type": "function_call", "call_id": "b", "name": "list", "arguments": "{}"}}),
            json!({"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 12, "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 5}, "output_tokens_details": {"reasoning_tokens": 4}}}}),
        ]),
        Api::Gemini => {
            let parts =
                |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}]});
            sse(&[
                parts(json!([{"text": "I look", "thought": true}])),
                parts(json!([{"text": "Größe "}])),
                parts(json!([{"text": "😀"}])),
                parts(
                    json!([{"functionCall": {"id": "a", "name": "read", "args": {"path": "ä"}}, "thoughtSignature": "sig"},
                    {"functionCall": {"id": "b", "name": "list", "args": {}}}]),
                ),
                json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}],
                    "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 16, "thoughtsTokenCount": 4, "cachedContentTokenCount": 5}}),
            ])
        }
        Api::Ollama => [
            json!({"message": {"role": "assistant", "content": "", "thinking": "I look"}, "done": false}),
            json!({"message": {"role": "assistant", "content": "Größe "}, "done": false}),
            json!({"message": {"role": "assistant", "content": "😀"}, "done": false}),
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [
                {"id": "a", "function": {"index": 0, "name": "read", "arguments": {"path": "ä"}}},
                {"id": "b", "function": {"index": 0, "name": "list", "arguments": {}}}]}, "done": false}),
            json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
                "prompt_eval_count": 12, "eval_count": 20}),
        ]
        .iter()
        .map(|line| format!("{line}\n"))
        .collect(),
    }
}

#[test]
fn the_same_answer_is_read_from_every_language_wherever_it_is_cut() {
    for api in Api::ALL {
        let stream = stream(api);
        let bytes = stream.as_bytes();
        let whole = read(api, &[bytes]).unwrap();
        let answer = answer(&whole);
        let message = answer.message();
        assert_eq!(message.text(), "Größe 😀", "{api:?}");
        assert!(
            matches!(&message.parts[0], Part::Thought { text, .. } if text == "I look"),
            "{api:?}: {message:?}"
        );
        let calls: Vec<_> = message.calls().collect();
        assert_eq!((calls[0].id.as_str(), calls[0].name.as_str()), ("a", "read"), "{api:?}");
        assert_eq!(calls[0].arguments, json!({"path": "ä"}), "{api:?}");
        assert_eq!((calls[1].id.as_str(), &calls[1].arguments), ("b", &json!({})), "{api:?}");
        assert_eq!(answer.stop, Some(Stop::Calls), "{api:?}");
        assert_eq!(
            (answer.usage.context(), answer.usage.output),
            (if api == Api::Anthropic { 15 } else { 12 }, 20)
        );
        assert_eq!(answer.usage.cache_read, if api == Api::Ollama { 0 } else { 5 }, "{api:?}");
        for cut in 0..bytes.len() {
            assert_eq!(read(api, &[&bytes[..cut], &bytes[cut..]]).unwrap(), whole, "{api:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(api, &single).unwrap(), whole, "{api:?} byte by byte");
    }
}

#[test]
fn arguments_grow_to_what_the_call_ends_with() {
    for api in Api::ALL {
        let mut grown = String::new();
        for event in read(api, &[stream(api).as_bytes()]).unwrap() {
            match event {
                Event::CallBegins { index: 0, name, .. } => assert_eq!(name, "read"),
                Event::CallGrows { index: 0, json } => grown.push_str(&json),
                Event::CallEnds { index: 0, call } => {
                    assert_eq!(
                        serde_json::from_str::<Value>(&grown).unwrap(),
                        call.unwrap().arguments,
                        "{api:?}"
                    );
                }
                _ => {}
            }
        }
    }
}

/// A conversation with a bit of everything, as it would be sent after the answer above.
fn conversation(api: Api) -> Request {
    let said = answer(&read(api, &[stream(api).as_bytes()]).unwrap()).message();
    let image = Part::Image { mime: "image/png".into(), data: "AAAA".into() };
    let result = |call: &str, parts: Vec<Part>, failed| Part::Result { call: call.into(), parts, failed };
    Request {
        system: "be good".into(),
        messages: vec![
            Message { role: Role::User, parts: vec![Part::Text("what is this?".into()), image.clone()] },
            said,
            Message {
                role: Role::User,
                parts: vec![
                    result("a", vec![Part::Text("content".into()), image], false),
                    result("b", vec![Part::Text("no such".into())], true),
                ],
            },
        ],
        tools: vec![ToolSpec {
            name: "read".into(),
            about: "reads".into(),
            schema: json!({"type": "object"}),
        }],
        thinking: Thinking::High,
        max_output: Some(1000),
        temperature: Some(0.5),
        web_search: false,
        cache_key: Some("s1".into()),
    }
}

fn body(api: Api) -> Value {
    api.body(&info(api), &conversation(api))
}

#[test]
fn anthropic_gets_its_signatures_marks_and_pictures() {
    let body = body(Api::Anthropic);
    assert_eq!(body["max_tokens"], 1000);
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
    assert_eq!(body["thinking"]["type"], "adaptive");
    assert_eq!(body["output_config"]["effort"], "high");
    let messages = &body["messages"];
    assert_eq!(messages[0]["content"][1]["source"]["media_type"], "image/png");
    assert_eq!(
        messages[1]["content"][0],
        json!({"type": "thinking", "thinking": "I look", "signature": "sig"})
    );
    assert_eq!(
        messages[1]["content"][2],
        json!({"type": "tool_use", "id": "a", "name": "read", "input": {"path": "ä"}})
    );
    assert_eq!(messages[2]["content"][0]["content"][1]["type"], "image");
    assert_eq!(messages[2]["content"][1]["is_error"], true);
    assert!(messages[0]["content"][1].get("cache_control").is_some());
    assert!(messages[2]["content"][1].get("cache_control").is_some());
}

#[test]
fn older_anthropic_models_get_a_budget_that_leaves_room() {
    let old = catalog::info("anthropic", "claude-haiku-4-5");
    let ask = |thinking, max_output| {
        Api::Anthropic.body(
            &old,
            &Request { thinking, max_output, messages: vec![Message::user("x")], ..Request::default() },
        )
    };
    assert_eq!(ask(Thinking::Medium, None)["thinking"], json!({"type": "enabled", "budget_tokens": 12_000}));
    assert_eq!(ask(Thinking::High, Some(4096))["thinking"]["budget_tokens"], 2048);
    assert!(ask(Thinking::High, Some(2000)).get("thinking").is_none());
    assert!(ask(Thinking::Off, None).get("thinking").is_none());
    assert!(ask(Thinking::Off, None).get("output_config").is_none());
}

#[test]
fn chat_gets_results_as_messages_and_their_pictures_after_them() {
    let body = body(Api::Chat);
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!((&body["max_tokens"], &body["reasoning_effort"]), (&json!(1000), &json!("high")));
    assert!(body.get("prompt_cache_key").is_none(), "only OpenAI knows it");
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    assert_eq!(messages[1]["content"][1]["image_url"]["url"], "data:image/png;base64,AAAA");
    assert_eq!(
        messages[2]["tool_calls"][0]["function"],
        json!({"name": "read", "arguments": "{\"path\":\"ä\"}"})
    );
    assert_eq!(messages[2]["reasoning_content"], "I look");
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "a", "content": "content"}));
    assert_eq!(messages[5]["content"][1]["type"], "image_url");
    let mut later = conversation(Api::Chat);
    later.messages.push(Message::assistant("done"));
    later.messages.push(Message::user("thanks"));
    let body = Api::Chat.body(&info(Api::Chat), &later);
    assert!(body["messages"][2].get("reasoning_content").is_none(), "thoughts of an earlier turn stay away");
    assert_eq!(body["messages"][7]["content"], "thanks", "text alone is plain text");
}

#[test]
fn responses_get_encrypted_thoughts_and_a_cache_key() {
    let body = body(Api::Responses);
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["reasoning"]["effort"], "high");
    assert_eq!((&body["prompt_cache_key"], &body["instructions"]), (&json!("s1"), &json!("be good")));
    assert_eq!(body["tools"][0]["name"], "read");
    let kinds: Vec<_> =
        body["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    let results = ["function_call_output", "function_call_output"];
    assert_eq!(kinds[..5], ["message", "reasoning", "message", "function_call", "function_call"]);
    assert_eq!(kinds[5..], results);
    assert_eq!(body["input"][1]["encrypted_content"], "enc");
    assert_eq!(body["input"][2]["content"][0]["type"], "output_text");
    assert_eq!(body["input"][5]["output"][1]["type"], "input_image");
    assert_eq!(body["input"][6]["output"], "no such");
}

#[test]
fn gemini_gets_signatures_with_calls_and_names_with_results() {
    let body = body(Api::Gemini);
    assert_eq!(
        body["generationConfig"]["thinkingConfig"],
        json!({"includeThoughts": true, "thinkingLevel": "high"})
    );
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["type"], "object");
    let contents = &body["contents"];
    assert_eq!(contents[0]["parts"][1]["inlineData"]["mimeType"], "image/png");
    assert_eq!(contents[1]["role"], "model");
    assert_eq!(contents[1]["parts"][1]["thoughtSignature"], "sig");
    assert!(contents[1]["parts"][2].get("thoughtSignature").is_none());
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["name"], "read");
    assert_eq!(contents[2]["parts"][1]["inlineData"]["data"], "AAAA");
    assert_eq!(contents[2]["parts"][2]["functionResponse"]["response"], json!({"error": "no such"}));
}

#[test]
fn ollama_gets_the_window_that_was_found_out() {
    let body = body(Api::Ollama);
    assert_eq!(body["options"], json!({"num_ctx": 32_000, "num_predict": 1000, "temperature": 0.5}));
    assert_eq!(body["think"], true);
    assert_eq!(body["messages"][1]["images"], json!(["AAAA"]));
    assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["arguments"], json!({"path": "ä"}));
    assert_eq!(body["messages"][3]["tool_name"], "read");
    assert_eq!(body["messages"][4], json!({"role": "tool", "tool_name": "list", "content": "no such"}));
}

#[test]
fn a_signature_goes_back_to_its_provider_only() {
    for from in Api::ALL {
        for to in Api::ALL.into_iter().filter(|to| *to != from) {
            let text = to.body(&info(to), &conversation(from)).to_string();
            for secret in ["\"sig\"", "\"enc\"", "I look", "anthropic\"", "reasoning_content"] {
                assert!(!text.contains(secret), "{from:?} to {to:?}: {secret} in {text}");
            }
        }
    }
    // Gemini refuses calls without a signature, so those of others are marked.
    let body = Api::Gemini.body(&info(Api::Gemini), &conversation(Api::Anthropic));
    assert_eq!(body["contents"][1]["parts"][1]["thoughtSignature"], "skip_thought_signature_validator");
}

#[test]
fn an_interrupted_conversation_is_normalized() {
    let call = |id: &str| {
        Part::Call(ToolCall { id: id.into(), name: "read".into(), arguments: json!({}), signature: None })
    };
    let result =
        |id: &str| Part::Result { call: id.into(), parts: vec![Part::Text("x".into())], failed: false };
    let assistant = |parts: Vec<Part>| Message { role: Role::Assistant, parts };
    let user = |parts: Vec<Part>| Message { role: Role::User, parts };
    let request = Request {
        messages: vec![
            Message::user("go"),
            assistant(vec![call("1"), call("2")]),
            user(vec![Part::Text("and".into()), result("2"), result("9")]),
            assistant(vec![call("3")]),
            assistant(vec![Part::Text("  ".into())]),
            Message::user("hello"),
            Message::user("again"),
            assistant(vec![call("4")]),
        ],
        ..Request::default()
    };
    let messages = crate::model::normalize::normalized(&request, &info(Api::Chat)).messages;
    let shape: Vec<String> = messages
        .iter()
        .map(|message| {
            let parts = message.parts.iter().map(|part| match part {
                Part::Call(call) => format!("call {}", call.id),
                Part::Result { call, failed, .. } => format!("result {call} {failed}"),
                Part::Text(text) => text.clone(),
                _ => "?".into(),
            });
            parts.collect::<Vec<_>>().join(", ")
        })
        .collect();
    assert_eq!(
        shape,
        [
            "go",
            "call 1, call 2",
            "result 2 false, result 1 true, and",
            "call 3",
            "result 3 true, hello, again",
            "call 4",
            "result 4 true",
        ]
    );
}

#[test]
fn unsupported_content_is_replaced_by_its_name() {
    let mut blind = info(Api::Chat);
    blind.images = false;
    blind.tools = false;
    let text = Api::Chat.body(&blind, &conversation(Api::Chat)).to_string();
    assert!(
        text.contains("which you cannot see") && !text.contains("image_url") && !text.contains("AAAA"),
        "{text}"
    );
    assert!(!text.contains("\"tools\""));
}

#[test]
fn urls_are_made_from_bases_as_people_write_them() {
    for (api, base, url) in [
        (Api::Anthropic, "https://a", "https://a/v1/messages"),
        (Api::Anthropic, "https://a/v1/", "https://a/v1/messages"),
        (Api::Chat, "http://h:1/v1/", "http://h:1/v1/chat/completions"),
        (Api::Responses, "https://o/v1", "https://o/v1/responses"),
        (Api::Gemini, "https://g", "https://g/v1beta/models/m:streamGenerateContent?alt=sse"),
        (Api::Gemini, "https://g/v1/", "https://g/v1/models/m:streamGenerateContent?alt=sse"),
        (Api::Ollama, "http://h:1/v1", "http://h:1/api/chat"),
    ] {
        assert_eq!(api.url(base, "m"), url);
    }
}

mod quirks;
