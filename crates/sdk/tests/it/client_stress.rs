//! Many sessions on several threads, cancelled and dropped at random: every turn ends, every
//! question has one answer.

use std::collections::HashMap;

use attache::client::{AgentHandle, Client, Event};
use attache::wire::v1::PermissionOptionKind;
use attache::{Link, StopReason};
use serde_json::{Value, json};

use crate::script::{Script, connect};
use crate::turn_events::SkipStates;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// An agent that says ten things, asks, and says how it went when it has its answer. Counts what it
/// got.
async fn agent(link: Link) -> (usize, usize) {
    let mut script = Script::on(link);
    let mut sessions = 0;
    let mut asked = 0;
    // the open question of each session, and the prompt it belongs to
    let mut open: HashMap<String, (String, Value)> = HashMap::new();
    let mut answers = 0;
    while let Some(line) = script.text().await {
        let line: Value = serde_json::from_str(&line).unwrap();
        match line["method"].as_str() {
            Some("initialize") => script.answer(&line, json!({"protocolVersion": 1})).await,
            Some("session/new") => {
                sessions += 1;
                script.answer(&line, json!({"sessionId": format!("s{sessions}")})).await;
            }
            Some("session/prompt") => {
                let session = line["params"]["sessionId"].as_str().unwrap().to_owned();
                for count in 0..10 {
                    script.say(&session, &count.to_string()).await;
                }
                asked += 1;
                let id = format!("q{asked}");
                script.ask(&*id, &session).await;
                assert!(open.insert(id, (session, line)).is_none());
            }
            Some("session/cancel") => {}
            Some(other) => panic!("{other}"),
            None => {
                let (session, prompt) = open.remove(line["id"].as_str().unwrap()).expect("a second answer");
                answers += 1;
                let cancelled = line["result"]["outcome"]["outcome"] == "cancelled";
                script.say(&session, "last").await;
                let reason = if cancelled { "cancelled" } else { "end_turn" };
                script.answer(&prompt, json!({"stopReason": reason})).await;
            }
        }
    }
    (asked, answers)
}

async fn user(handle: AgentHandle, mut dice: Dice) {
    let mut session = handle.new_session("/work").await.unwrap();
    for _ in 0..40 {
        let mut turn = session.prompt("go").await.unwrap();
        let (cancel_at, drop_at) = (dice.roll(30), dice.roll(30));
        let mut next = 0;
        let mut dropped = false;
        for count in 0.. {
            if count == cancel_at {
                turn.cancel();
            }
            if count == drop_at {
                dropped = true;
                break;
            }
            match turn.after_states().await.unwrap() {
                // what a turn says is its own, and in order
                Some(Event::Text(text)) if &*text == "last" => assert_eq!(next, 10),
                Some(Event::Text(text)) => {
                    assert_eq!(&*text, next.to_string());
                    next += 1;
                }
                Some(Event::Permission(ask)) => ask.choose_kind(PermissionOptionKind::AllowOnce),
                Some(_) => panic!(),
                None => break,
            }
        }
        if !dropped {
            assert!(matches!(turn.stop_reason(), Some(StopReason::EndTurn | StopReason::Cancelled)));
        }
    }
    // the last one runs to its end, so nothing is on its way any more
    assert_eq!(session.prompt("go").await.unwrap().finish().await.unwrap(), StopReason::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_turn_ends_whatever_happens_to_it() {
    let (ours, theirs) = Link::pair();
    let agent = tokio::spawn(agent(theirs));
    let handle = Client::new().connect(ours).await.unwrap();
    let users: Vec<_> = (1..=16).map(|seed| tokio::spawn(user(handle.clone(), Dice(seed)))).collect();
    for user in users {
        user.await.unwrap();
    }
    handle.shutdown().await;
    let (asked, answers) = agent.await.unwrap();
    assert_eq!((asked, answers), (16 * 41, 16 * 41));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_closed_as_soon_as_a_call_fails_for_that() {
    for _ in 0..200 {
        let (agent, script) = connect(Client::new(), json!({})).await;
        let end = async {
            tokio::task::yield_now().await;
            drop(script);
        };
        let (opened, ()) = tokio::join!(agent.new_session("/work"), end);
        assert!(matches!(opened, Err(attache::Error::Closed(_))), "{:?}", opened.err());
        assert!(agent.is_closed());
    }
}
