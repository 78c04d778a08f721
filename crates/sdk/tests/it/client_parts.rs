//! Streams, and sessions in two parts.

use std::future::poll_fn;
use std::pin::Pin;

use attache::client::{Client, Event, SessionEvent};
use attache::{Error, StopReason};
use futures_core::Stream;
use serde_json::json;

use crate::script::open;
use crate::turn_events::SkipStates;

#[tokio::test(start_paused = true)]
async fn a_turn_is_a_stream() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.say("s1", "one").await;
    agent.say("s1", "two").await;
    agent.end_turn(&prompt).await;
    let mut texts = Vec::new();
    while let Some(event) = poll_fn(|cx| Pin::new(&mut turn).poll_next(cx)).await {
        if let Event::Text(text) = event.unwrap() {
            texts.push(text.text);
        }
    }
    assert_eq!((texts, turn.stop_reason()), (vec!["one".into(), "two".into()], Some(StopReason::EndTurn)));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_left_unread_is_cancelled_by_the_next_prompt() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut first = session.prompt("one").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.say("s1", "…").await;
    first.after_states().await.unwrap();
    // `first` is not dropped before the end of this function
    let (second, next) = tokio::join!(session.prompt("two"), async {
        agent.expect("session/cancel").await;
        agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
        agent.expect("session/prompt").await
    });
    agent.say("s1", "here").await;
    agent.end_turn(&next).await;
    assert_eq!(second.unwrap().text().await.unwrap(), "here");
}

fn text(event: Option<SessionEvent>) -> String {
    match event {
        Some(SessionEvent::Event(Event::Text(text))) => text.text,
        other => panic!("{other:?}"),
    }
}

fn stop(event: Option<SessionEvent>) -> StopReason {
    match event {
        Some(SessionEvent::TurnEnded(Ok(response))) => response.stop_reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_stream_holds_everything_in_wire_order() {
    let (session, mut agent) = open(Client::new()).await;
    let (prompter, mut events) = session.into_parts();
    let reading = tokio::spawn(async move {
        let mut seen = vec![text(events.after_states().await), text(events.after_states().await)];
        assert_eq!(stop(events.after_states().await), StopReason::EndTurn);
        seen.push(text(events.after_states().await));
        (seen, events)
    });
    agent.say("s1", "before").await;
    prompter.clone().prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    assert!(matches!(prompter.prompt("twice").await, Err(Error::Invalid(_))));
    agent.say("s1", "inside").await;
    agent.end_turn(&prompt).await;
    agent.say("s1", "after").await;
    let (seen, mut events) = reading.await.unwrap();
    assert_eq!(seen, ["before", "inside", "after"]);

    // from another task, with a cancel
    let other = prompter.clone();
    let prompting = tokio::spawn(async move {
        other.prompt("again").await.unwrap();
        other.cancel();
    });
    let prompt = agent.expect("session/prompt").await;
    agent.expect("session/cancel").await;
    agent.refuse(&prompt, -32603, "cancelled badly").await; // CANCEL-06
    assert_eq!(stop(events.after_states().await), StopReason::Cancelled);
    prompting.await.unwrap();

    // the end of the connection ends the turn, then the stream
    prompter.prompt("last").await.unwrap();
    agent.expect("session/prompt").await;
    drop(agent);
    assert!(matches!(events.after_states().await, Some(SessionEvent::TurnEnded(Err(Error::Closed(_))))));
    assert!(events.after_states().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_a_reader_is_cancelled_and_the_session_ends_with_both_parts() {
    let (session, mut agent) = open(Client::new()).await;
    let handle = session.agent().clone();
    let (prompter, events) = session.into_parts();
    let id = prompter.session().id().clone();
    prompter.prompt("go").await.unwrap();
    agent.expect("session/prompt").await;
    drop(events);
    agent.expect("session/cancel").await;
    assert!(handle.has_session(&id));
    drop(prompter);
    assert!(!handle.has_session(&id));
}
