//! What servers do that no interface allows.

use super::*;

fn chat(deltas: &[Value]) -> Vec<Event> {
    let mut decoder = Api::Chat.decoder(&info(Api::Chat), &Request::default());
    let mut events = Vec::new();
    for delta in deltas {
        let message = json!({"choices": [{"delta": delta}]});
        decoder.take(&message, &mut events).unwrap();
    }
    decoder.take(&json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}), &mut events).unwrap();
    decoder.finish(&mut events);
    events
}

fn calls(deltas: &[Value]) -> Vec<(String, String, String)> {
    let answer = answer(&chat(deltas));
    assert_eq!(answer.stop, Some(Stop::Calls), "`stop` with calls means calls");
    let message = answer.message();
    message.calls().map(|call| (call.id.clone(), call.name.clone(), call.arguments.to_string())).collect()
}

fn call(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    json!({ "tool_calls": [call] })
}

fn triple(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.into(), name.into(), arguments.into())
}

#[test]
fn calls_without_indexes_and_ids_stay_separate() {
    let two = [triple("a", "read", "{\"x\":1}"), triple("b", "list", "{}")];
    // No index; later pieces say nothing at all.
    let found = calls(&[
        call(None, Some("a"), Some("read"), "{\"x\""),
        call(None, None, None, ":1}"),
        call(None, Some("b"), Some("list"), ""),
    ]);
    assert_eq!(found, two);
    // The same index for all.
    let found = calls(&[
        call(Some(0), Some("a"), Some("read"), "{\"x\":1}"),
        call(Some(0), Some("b"), Some("list"), "{}"),
    ]);
    assert_eq!(found, two);
    // Id and name come with every piece.
    let found = calls(&[
        call(Some(0), Some("a"), Some("read"), "{\"x\""),
        call(Some(0), Some("a"), Some("read"), ":1}"),
        call(Some(0), Some("a"), Some("read"), ""),
        call(Some(1), Some("b"), Some("list"), "{}"),
    ]);
    assert_eq!(found, two);
    // No ids, or the same for all: they are made up.
    for id in [None, Some(""), Some("x")] {
        let found =
            calls(&[call(Some(0), id, Some("read"), "{\"x\":1}"), call(Some(0), id, Some("list"), "{}")]);
        assert_eq!(found.iter().map(|call| call.1.as_str()).collect::<Vec<_>>(), ["read", "list"]);
        assert_ne!(found[0].0, found[1].0);
    }
    // The name comes late.
    let found = calls(&[
        call(Some(0), Some("a"), None, "{\"x\""),
        call(Some(0), None, Some("read"), ":1}"),
        call(Some(1), Some("b"), Some("list"), "{}"),
    ]);
    assert_eq!(found, two);
}

#[test]
fn an_id_is_never_used_twice_in_a_conversation() {
    let old = ToolCall { id: "call_0".into(), name: "read".into(), arguments: json!({}), signature: None };
    let request = Request {
        messages: vec![Message { role: Role::Assistant, parts: vec![Part::Call(old)] }],
        ..Request::default()
    };
    let mut decoder = Api::Chat.decoder(&info(Api::Chat), &request);
    let mut events = Vec::new();
    let delta = call(Some(0), Some("call_0"), Some("read"), "{}");
    decoder
        .take(&json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}), &mut events)
        .unwrap();
    decoder.finish(&mut events);
    let message = answer(&events).message();
    assert_ne!(message.calls().next().unwrap().id, "call_0");
}

#[test]
fn arguments_may_be_an_object_or_wrapped_twice_but_not_broken() {
    let object =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": {"x": 1}}}]});
    assert_eq!(calls(&[object]), [triple("a", "read", "{\"x\":1}")]);
    assert_eq!(
        calls(&[call(Some(0), Some("a"), Some("read"), "\"{\\\"x\\\":1}\"")]),
        [triple("a", "read", "{\"x\":1}")]
    );
    assert_eq!(calls(&[call(Some(0), Some("a"), Some("read"), "null")]), [triple("a", "read", "{}")]);
    for broken in ["{\"x\": ", "[1]", "\"text\"", "x"] {
        let events = chat(&[call(Some(0), Some("a"), Some("read"), broken)]);
        let bad = events.iter().find_map(|event| match event {
            Event::CallEnds { call: Err(bad), .. } => Some(bad.clone()),
            _ => None,
        });
        let bad = bad.unwrap();
        assert_eq!((bad.raw.as_str(), bad.name.as_str()), (broken, "read"));
        assert!(bad.why.contains("arguments"), "{}", bad.why);
        assert_eq!(answer(&events).message().calls().count(), 1);
    }
}

#[test]
fn thoughts_come_under_several_names_and_go_back_under_theirs() {
    for field in ["reasoning_content", "reasoning"] {
        let events = chat(&[json!({field: "hm", "content": ""}), json!({"content": "yes"})]);
        let message = answer(&events).message();
        assert_eq!(message.text(), "yes");
        let request = Request { messages: vec![Message::user("?"), message], ..Request::default() };
        let body = Api::Chat.body(&info(Api::Chat), &request);
        assert_eq!(body["messages"][1][field], "hm");
    }
    let both =
        answer(&chat(&[json!({"reasoning_content": "hm", "reasoning": "hm"}), json!({"content": "x"})]));
    assert!(matches!(&both.message().parts[0], Part::Thought { text, .. } if text == "hm"));
    let tags = answer(&chat(&[json!({"content": "<thi"}), json!({"content": "nk>hm</think>\n\nyes"})]));
    assert!(matches!(&tags.message().parts[0], Part::Thought { text, .. } if text == "hm"));
    assert_eq!(tags.message().text(), "yes");
}

#[test]
fn signed_thoughts_of_openrouter_go_back_as_they_came() {
    let detail = |text: &str| json!({"type": "reasoning.text", "index": 0, "text": text, "signature": null});
    let signed = json!({"type": "reasoning.text", "index": 0, "signature": "s"});
    let events = chat(&[
        json!({"reasoning": "a", "reasoning_details": [detail("a")]}),
        json!({"reasoning": "b", "reasoning_details": [detail("b")]}),
        json!({"reasoning_details": [signed]}),
        json!({"content": "yes"}),
    ]);
    let request =
        Request { messages: vec![Message::user("?"), answer(&events).message()], ..Request::default() };
    let body = Api::Chat.body(&info(Api::Chat), &request);
    assert_eq!(
        body["messages"][1]["reasoning_details"],
        json!([{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}])
    );
}

#[test]
fn reasons_to_stop_are_understood() {
    let chat = |reason: &str| json!({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]});
    let anthropic = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}});
    let gemini = |reason: &str| json!({"candidates": [{"finishReason": reason}]});
    let responses = |reason: &str| json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": reason}}});
    for (api, message, stop) in [
        (Api::Chat, chat("stop"), Stop::Done),
        (Api::Chat, chat("tool_calls"), Stop::Done),
        (Api::Chat, chat("length"), Stop::MaxTokens),
        (Api::Chat, chat("content_filter"), Stop::Refused),
        (
            Api::Chat,
            json!({"choices": [{"message": {"refusal": "no"}, "finish_reason": "stop"}]}),
            Stop::Refused,
        ),
        (Api::Anthropic, anthropic("end_turn"), Stop::Done),
        (Api::Anthropic, anthropic("max_tokens"), Stop::MaxTokens),
        (Api::Anthropic, anthropic("refusal"), Stop::Refused),
        (Api::Anthropic, anthropic("pause_turn"), Stop::Other("pause_turn".into())),
        (Api::Gemini, gemini("STOP"), Stop::Done),
        (Api::Gemini, gemini("MAX_TOKENS"), Stop::MaxTokens),
        (Api::Gemini, gemini("SAFETY"), Stop::Refused),
        (Api::Gemini, json!({"promptFeedback": {"blockReason": "OTHER"}}), Stop::Refused),
        (Api::Responses, responses("max_output_tokens"), Stop::MaxTokens),
        (Api::Responses, responses("content_filter"), Stop::Refused),
        (Api::Ollama, json!({"message": {}, "done": true, "done_reason": "length"}), Stop::MaxTokens),
    ] {
        let mut decoder = api.decoder(&info(api), &Request::default());
        let mut events = Vec::new();
        decoder.take(&message, &mut events).unwrap();
        assert!(decoder.is_complete());
        decoder.finish(&mut events);
        assert_eq!(events.last(), Some(&Event::End(stop)), "{api:?} {message}");
    }
}

#[test]
fn errors_and_invalid_messages_in_a_stream_fail() {
    let error = json!({"error": {"message": "m", "code": 503}});
    for api in Api::ALL {
        for message in
            [&error, &json!({"error": "m"}), &json!({"type": "error", "message": "m"}), &json!({"x": 1})]
        {
            let mut decoder = api.decoder(&info(api), &Request::default());
            let failure = decoder.take(message, &mut Vec::new()).unwrap_err();
            assert_eq!(failure.is_retryable, *message == error, "{api:?} {message}: {failure:?}");
        }
    }
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "m"}}});
    let mut decoder = Api::Responses.decoder(&info(Api::Responses), &Request::default());
    assert!(decoder.take(&failed, &mut Vec::new()).unwrap_err().is_retryable);
}

#[test]
fn whole_answers_instead_of_streams_are_read() {
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "hi",
        "tool_calls": [{"id": "a", "function": {"name": "read", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let anthropic = json!({"type": "message", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "text", "text": "hi"}, {"type": "tool_use", "id": "a", "name": "read", "input": {"x": 1}}],
        "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 2}});
    for (api, message) in [(Api::Chat, whole), (Api::Anthropic, anthropic)] {
        let mut decoder = api.decoder(&info(api), &Request::default());
        let mut events = Vec::new();
        decoder.take(&message, &mut events).unwrap();
        assert!(decoder.is_complete());
        decoder.finish(&mut events);
        let answer = answer(&events);
        assert_eq!(answer.message().text(), "hi");
        assert_eq!(answer.message().calls().count(), 1);
        assert_eq!((answer.stop, answer.usage.input), (Some(Stop::Calls), 3));
    }
}
