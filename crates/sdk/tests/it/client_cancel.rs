//! Cancelling: at every point, by everybody, and agents that do not care.

use std::time::Duration;

use attache::StopReason;
use attache::client::{Client, Event};
use serde_json::json;

use crate::script::open;
use crate::turn_events::SkipStates;

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_continues_until_the_agent_ends_it() {
    // shows CANCEL-01, CANCEL-09
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.say("s1", "a").await;
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    turn.cancel();
    turn.cancel();
    assert_eq!(agent.expect("session/cancel").await["params"], json!({"sessionId": "s1"}));
    agent.say("s1", "b").await;
    agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
    let Some(Event::Text(text)) = turn.after_states().await.unwrap() else { panic!() };
    assert_eq!(&*text, "b");
    assert!(turn.after_states().await.unwrap().is_none());
    assert_eq!(turn.stop_reason(), Some(StopReason::Cancelled));
    drop(turn);
    agent.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn every_open_question_is_answered_at_once() {
    // shows CANCEL-03, PERM-08, PERM-12: one question is taken, one waits in the queue, one comes
    // after the cancel
    let (mut session, mut agent) = open(Client::new().elicitation_forms()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.ask(1, "s1").await;
    let form = json!({"sessionId": "s1", "mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    agent.request(2, "elicitation/create", form).await;
    agent.ask(3, "s1").await;
    let Some(Event::Permission(first)) = turn.after_states().await.unwrap() else { panic!() };
    assert!(first.is_open());
    // all three are in before the cancel
    let Some(Event::Elicitation(second)) = turn.after_states().await.unwrap() else { panic!() };
    turn.cancel();
    first.withdrawn().await;
    assert!(!first.is_open() && !second.is_open());
    agent.expect("session/cancel").await;
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(agent.result(1).await, cancelled);
    assert_eq!(agent.result(2).await, json!({"action": "cancel"}));
    assert_eq!(agent.result(3).await, cancelled);
    // an answer that comes too late is no second answer
    first.choose(&"yes".into()).unwrap();
    drop(second);
    agent.ask(4, "s1").await;
    assert_eq!(agent.result(4).await, cancelled);
    agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::Cancelled);
    agent.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_control_cancels_from_elsewhere() {
    let (mut session, mut agent) = open(Client::new()).await;
    let control = session.control();
    control.cancel(); // nothing runs, nothing is sent
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    let read = tokio::spawn(async move {
        control.cancel();
        control
    });
    let control = read.await.unwrap();
    agent.expect("session/cancel").await;
    agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
    assert!(turn.after_states().await.unwrap().is_none());
    drop(turn);
    // a late cancel never touches the next turn
    control.cancel();
    agent.expect_silence().await;
    let turn = session.prompt("next").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.end_turn(&prompt).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_right_after_the_prompt() {
    let (mut session, mut agent) = open(Client::new()).await;
    let turn = session.prompt("go").await.unwrap();
    turn.cancel();
    let prompt = agent.expect("session/prompt").await;
    agent.expect("session/cancel").await;
    agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
    assert_eq!(turn.finish().await.unwrap(), StopReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_crosses_the_end() {
    let (mut session, mut agent) = open(Client::new()).await;
    let turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.end_turn(&prompt).await;
    turn.cancel();
    assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_turn_is_cancelled_and_the_next_prompt_waits_for_its_end() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("one").await.unwrap();
    let first = agent.expect("session/prompt").await;
    agent.say("s1", "a").await;
    agent.ask(1, "s1").await;
    agent.say("s1", "b").await;
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    drop(turn);
    agent.expect("session/cancel").await;
    assert_eq!(agent.result(1).await["outcome"]["outcome"], "cancelled");
    agent.ask(2, "s1").await;
    assert_eq!(agent.result(2).await["outcome"]["outcome"], "cancelled");
    let (second, ()) = tokio::join!(session.prompt("two"), async {
        agent.expect_silence().await;
        agent.say("s1", "rest of one").await;
        agent.answer(&first, json!({"stopReason": "cancelled"})).await;
    });
    let mut second = second.unwrap();
    let prompt = agent.expect("session/prompt").await;
    agent.say("s1", "of two").await;
    agent.end_turn(&prompt).await;
    let Some(Event::Text(text)) = second.after_states().await.unwrap() else { panic!() };
    assert_eq!(&*text, "of two");
    assert!(second.after_states().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ignores_cancel_loses_its_turn() {
    let client = Client::new().cancel_deadline(Duration::from_secs(7));
    let (mut session, mut agent) = open(client).await;
    let mut turn = session.prompt("one").await.unwrap();
    let first = agent.expect("session/prompt").await;
    turn.cancel();
    agent.expect("session/cancel").await;
    let before = tokio::time::Instant::now();
    assert!(turn.after_states().await.unwrap().is_none());
    assert_eq!(before.elapsed().as_secs(), 7);
    assert_eq!(turn.stop_reason(), Some(StopReason::Cancelled));
    drop(turn);
    assert_eq!(agent.expect("$/cancel_request").await["params"], json!({"requestId": first["id"]}));
    let mut turn = session.prompt("two").await.unwrap();
    let second = agent.expect("session/prompt").await;
    // the late answer touches nothing
    agent.end_turn(&first).await;
    agent.say("s1", "of two").await;
    agent.answer(&second, json!({"stopReason": "refusal"})).await;
    assert!(matches!(turn.after_states().await.unwrap(), Some(Event::Text(_))));
    assert!(turn.after_states().await.unwrap().is_none());
    assert_eq!(turn.stop_reason(), Some(StopReason::Refusal));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ignores_cancel_does_not_hold_up_the_next_prompt() {
    let client = Client::new().cancel_deadline(Duration::from_secs(7));
    let (mut session, mut agent) = open(client).await;
    let turn = session.prompt("one").await.unwrap();
    agent.expect("session/prompt").await;
    drop(turn);
    agent.expect("session/cancel").await;
    let _turn = session.prompt("two").await.unwrap();
    agent.expect("$/cancel_request").await;
    agent.expect("session/prompt").await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_expires_even_if_the_agent_keeps_sending() {
    let client = Client::new().cancel_deadline(Duration::from_secs(2));
    let (mut session, mut agent) = open(client).await;
    let mut turn = session.prompt("one").await.unwrap();
    agent.expect("session/prompt").await;
    turn.cancel();
    let talk = async {
        loop {
            agent.say("s1", "still here").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let read = async {
        while turn.after_states().await.unwrap().is_some() {}
        assert_eq!(turn.stop_reason(), Some(StopReason::Cancelled));
    };
    tokio::select! {
        () = talk => {}
        () = tokio::time::timeout(Duration::from_secs(60), read).map_ok() => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_or_a_drop_at_every_point() {
    for (point, drops) in (0..=5).flat_map(|point| [(point, false), (point, true)]) {
        let (mut session, mut agent) = open(Client::new()).await;
        let mut turn = session.prompt("go").await.unwrap();
        let prompt = agent.expect("session/prompt").await;
        agent.say("s1", "a").await;
        agent.ask(1, "s1").await;
        agent.say("s1", "b").await;
        agent.ask(2, "s1").await;
        agent.say("s1", "c").await;
        let mut held = Vec::new();
        for _ in 0..point {
            held.push(turn.after_states().await.unwrap().unwrap());
        }
        if !drops {
            turn.cancel();
        }
        // a cancelled turn that is dropped is not cancelled twice
        drop(turn);
        // one cancel, and one answer to each question, wherever it was
        let mut lines = [agent.line().await, agent.line().await, agent.line().await];
        lines.sort_by_key(|line| line["id"].as_i64());
        assert_eq!(lines[0]["method"], "session/cancel", "{point} {drops}");
        for (line, id) in lines[1..].iter().zip([1, 2]) {
            let cancelled = json!({"outcome": {"outcome": "cancelled"}});
            assert_eq!((&line["id"], &line["result"]), (&json!(id), &cancelled), "{point} {drops}");
        }
        drop(held);
        agent.say("s1", "d").await;
        agent.answer(&prompt, json!({"stopReason": "cancelled"})).await;
        agent.expect_silence().await;
        let turn = session.prompt("next").await.unwrap();
        let prompt = agent.expect("session/prompt").await;
        agent.end_turn(&prompt).await;
        assert_eq!(turn.finish().await.unwrap(), StopReason::EndTurn, "{point} {drops}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_loses_no_event() {
    let (mut session, mut agent) = open(Client::new()).await;
    let mut turn = session.prompt("go").await.unwrap();
    let prompt = agent.expect("session/prompt").await;
    let talk = tokio::spawn(async move {
        for count in 0..100 {
            agent.say("s1", &count.to_string()).await;
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
        agent.end_turn(&prompt).await;
        agent
    });
    let mut received = 0;
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_millis(3)) => {}
            event = turn.after_states() => match event.unwrap() {
                Some(Event::Text(text)) => {
                    assert_eq!(&*text, received.to_string());
                    received += 1;
                }
                Some(_) => panic!(),
                None => break,
            },
        }
    }
    assert_eq!(received, 100);
    talk.await.unwrap();
}

/// Unwraps a timeout.
trait MapOk {
    async fn map_ok(self);
}

impl<F: Future<Output = Result<(), tokio::time::error::Elapsed>>> MapOk for F {
    async fn map_ok(self) {
        self.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_prompt_that_is_answered_with_an_error_was_cancelled() {
    // shows CANCEL-22 from the other side: -32603, -32800 and anything else
    for code in [-32603, -32800, 400] {
        let (mut session, mut agent) = open(Client::new()).await;
        let turn = session.prompt("go").await.unwrap();
        let prompt = agent.expect("session/prompt").await;
        turn.cancel();
        agent.expect("session/cancel").await;
        agent.refuse(&prompt, code, "aborted").await;
        assert_eq!(turn.finish().await.unwrap(), StopReason::Cancelled);
    }
}
