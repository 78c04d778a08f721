//! What providers of models answer, each in its language: the least that is a whole answer.

use serde_json::{Value, json};

/// The languages, by the names that the settings have for them.
pub(crate) const APIS: [&str; 5] = ["chat", "responses", "anthropic", "gemini", "ollama"];

/// A text, read with three tokens and written with two.
pub(crate) fn text(api: &str, text: &str) -> String {
    match api {
        "chat" => chat(&[json!({"delta": {"content": text}}), json!({"delta": {}, "finish_reason": "stop"})]),
        "responses" => lines(&[
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": 3, "output_tokens": 2}}}),
        ]),
        "anthropic" => {
            let start = json!({"type": "text", "text": ""});
            anthropic(start, json!({"type": "text_delta", "text": text}), "end_turn")
        }
        "gemini" => gemini(json!({"text": text})),
        _ => ollama(json!({"content": text})),
    }
}

/// A call of a tool whose arguments are this text, which may be no JSON.
pub(crate) fn call(api: &str, name: &str, arguments: &str) -> String {
    // Where arguments are no text, what is no object is sent as it is.
    let tree = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
    match api {
        "chat" => {
            let function = json!({"name": name, "arguments": arguments});
            let call = json!([{"index": 0, "id": "c", "function": function}]);
            chat(&[
                json!({"delta": {"tool_calls": call}}),
                json!({"delta": {}, "finish_reason": "tool_calls"}),
            ])
        }
        "responses" => {
            let begins = json!({"type": "function_call", "call_id": "c", "name": name});
            let ends = json!({"type": "function_call", "call_id": "c", "name": name, "arguments": arguments});
            lines(&[
                json!({"type": "response.output_item.added", "output_index": 0, "item": begins}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": arguments}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": ends}),
                json!({"type": "response.completed", "response": {"usage": {"input_tokens": 3, "output_tokens": 2}}}),
            ])
        }
        "anthropic" => {
            let start = json!({"type": "tool_use", "id": "c", "name": name, "input": {}});
            anthropic(start, json!({"type": "input_json_delta", "partial_json": arguments}), "tool_use")
        }
        "gemini" => gemini(json!({"functionCall": {"id": "c", "name": name, "args": tree}})),
        _ => ollama(json!({"tool_calls": [{"id": "c", "function": {"name": name, "arguments": tree}}]})),
    }
}

/// How an answer is announced.
pub(crate) fn content_type(api: &str) -> &'static str {
    if api == "ollama" { "application/x-ndjson" } else { "text/event-stream" }
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn chat(choices: &[Value]) -> String {
    let choices: Vec<Value> = choices.iter().map(|choice| json!({"choices": [choice]})).collect();
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    format!("{}data: {usage}\n\ndata: [DONE]\n\n", lines(&choices))
}

fn anthropic(start: Value, delta: Value, stop: &str) -> String {
    lines(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ])
}

fn gemini(part: Value) -> String {
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2});
    lines(&[
        json!({"candidates": [{"content": {"parts": [part]}}]}),
        json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": usage}),
    ])
}

fn ollama(message: Value) -> String {
    let end = json!({"message": {"content": ""}, "done": true, "prompt_eval_count": 3, "eval_count": 2});
    format!("{}\n{end}\n", json!({"message": message, "done": false}))
}
