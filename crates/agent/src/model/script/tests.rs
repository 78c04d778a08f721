#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::super::{
    ErrorKind, Event, Message, Model, ModelError, Part, Request, Response, Role, Stop, Usage,
};
use super::Scripted;

/// Plays the next answer and adds it to the conversation.
async fn ask(model: &Scripted, request: &mut Request) -> Result<Response, ModelError> {
    let mut stream = model.start(request.clone());
    let mut answer = Response::default();
    while let Some(event) = stream.next().await {
        answer.add(&event?);
    }
    request.messages.push(answer.message());
    Ok(answer)
}

fn result(call: &str, text: &str) -> Message {
    let parts = vec![Part::Text(text.into())];
    Message { role: Role::User, parts: vec![Part::Result { call: call.into(), parts, failed: false }] }
}

fn script(text: &str) -> Scripted {
    Scripted::new("some/demo.script", text).unwrap()
}

const DEMO: &str = r#"
# A comment.
name: Demo
window: 5000

== when "test"
think I run it.
say Let me see.
call run {"command": "cargo test",
  "why": "${text}"}
-- when result "failed"
say It fails:
  line two

  line four
call read {"path": "a"}
call read {"path": "b"}
-- when result "passed"
say It passes.
-- when result "content"
say Got ${result}.
usage input=10 output=2 cache_read=3 cache_write=4 thought=1
== when system "tiny"
say small
==
say first
==
say second
stop max_tokens
"#;

#[tokio::test]
async fn a_turn_goes_through_its_steps_and_passes_over_what_does_not_hold() {
    let model = script(DEMO);
    assert_eq!(model.info().name, "Demo (scripted, no language model)");
    assert_eq!(model.info().spec(), "script:some/demo.script");
    let mut request = Request { messages: vec![Message::user("run the test")], ..Request::default() };
    let answer = ask(&model, &mut request).await.unwrap();
    assert_eq!(answer.stop, Some(Stop::Calls));
    let message = answer.message();
    assert_eq!(message.parts[0], Part::Thought { text: "I run it.".into(), signature: None });
    assert_eq!(message.text(), "Let me see.");
    let call = message.calls().next().unwrap();
    assert_eq!(call.arguments["why"], "run the test");
    request.messages.push(result(&call.id, "1 failed"));
    let answer = ask(&model, &mut request).await.unwrap();
    assert_eq!(answer.message().text(), "It fails:\nline two\n\nline four");
    let ids: Vec<_> = answer.message().calls().map(|call| call.id.clone()).collect();
    assert_eq!(ids, ["script_1_0", "script_1_1"]);
    request.messages.push(result(&ids[0], "content"));
    let answer = ask(&model, &mut request).await.unwrap();
    assert_eq!(answer.message().text(), "Got content.");
    assert_eq!(answer.usage, Usage { input: 10, output: 2, cache_read: 3, cache_write: 4, thought: 1 });
    assert_eq!(answer.stop, Some(Stop::Done));
}

#[tokio::test]
async fn scenes_without_a_condition_play_one_after_the_other_and_the_last_stays() {
    let model = script(DEMO);
    let mut request = Request::default();
    for expected in ["first", "second", "second"] {
        request.messages.push(Message::user("hello"));
        let answer = ask(&model, &mut request).await.unwrap();
        assert_eq!(answer.message().text(), expected);
        assert_eq!(answer.stop == Some(Stop::MaxTokens), expected == "second");
    }
    let mut request =
        Request { system: "a tiny one".into(), messages: vec![Message::user("hello")], ..Request::default() };
    assert_eq!(ask(&model, &mut request).await.unwrap().message().text(), "small");
}

#[tokio::test]
async fn a_step_may_repeat_and_a_script_may_end() {
    let model = script("== when \"go\"\n-- forever\ncall tick {}");
    let mut request = Request { messages: vec![Message::user("go")], ..Request::default() };
    for _ in 0..3 {
        let answer = ask(&model, &mut request).await.unwrap();
        let id = answer.message().calls().next().unwrap().id.clone();
        request.messages.push(result(&id, "tock"));
    }
    let mut request = Request { messages: vec![Message::user("stay")], ..Request::default() };
    let error = ask(&model, &mut request).await.unwrap_err();
    assert!(error.to_string().contains("no answer to `stay`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn time_failures_and_bad_calls() {
    let model = script(
        "pace: 10ms\n==\nretry 2s busy\nwait 250ms\nsay a b c\nbadcall read {\"path\n==\nfail rate_limited after 3s slow down",
    );
    let mut request = Request { messages: vec![Message::user("x")], ..Request::default() };
    let start = tokio::time::Instant::now();
    let mut stream = model.start(request.clone());
    let retry = stream.next().await.unwrap().unwrap();
    assert_eq!(retry, Event::Retry { after: Duration::from_secs(2), why: "busy".into() });
    let mut answer = Response::default();
    let mut bad = None;
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        answer.add(&event);
        if let Event::CallEnds { call: Err(call), .. } = event {
            bad = Some(call.raw);
        }
    }
    assert_eq!(start.elapsed(), Duration::from_millis(2280));
    assert_eq!(bad.as_deref(), Some("{\"path"));
    assert_eq!(answer.message().calls().count(), 1, "a failed result must have a call to answer to");
    request.messages.extend([answer.message(), Message::user("y")]);
    let error = ask(&model, &mut request).await.unwrap_err();
    assert_eq!(
        error,
        ModelError {
            retry_after: Some(Duration::from_secs(3)),
            ..ModelError::new(ErrorKind::RateLimited, "slow down")
        }
    );
}

#[tokio::test]
async fn a_flood_can_be_left_and_a_hang_gives_nothing() {
    let model = script("== when \"flood\"\nflood a b\n== when \"hang\"\nsay x\nhang");
    let start = |text| model.start(Request { messages: vec![Message::user(text)], ..Request::default() });
    let mut flood = start("flood");
    for _ in 0..1000 {
        assert!(matches!(flood.next().await, Some(Ok(Event::Text(_)))));
    }
    let mut hang = start("hang");
    assert_eq!(hang.next().await, Some(Ok(Event::Text("x".into()))));
    tokio::select! {
        biased;
        event = hang.next() => panic!("{event:?}"),
        () = tokio::task::yield_now() => {}
    }
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, expected) in [
        ("", "no scene"),
        ("hello\n", "line 1"),
        ("colour: red\n==\nsay x", "`colour`"),
        ("==\nsay x\nshout y", "line 3: unknown action `shout`"),
        ("== whenever\nsay x", "line 1"),
        ("== when no quotes\nsay x", "quotes"),
        ("==\ncall read [1]", "object"),
        ("==\ncall read {", "line 2"),
        ("==\nwait soon", "`soon`"),
        ("==\nfail badly", "\"badly\""),
        ("==\nusage tea=2", "`tea`"),
    ] {
        let error = Scripted::new("s", text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}
