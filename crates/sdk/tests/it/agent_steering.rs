//! Prompts that reach the running turn.

use attache::StopReason;
use attache::agent::Agent;
use serde_json::json;

use crate::agent_rig::{Rig, agent, prompt};
use crate::agent_v2::open;

/// An agent whose turns take prompts until one is `end`; a turn that starts with `quick` takes
/// none.
fn steered() -> Agent {
    agent(|turn, prompt| {
        Box::pin(async move {
            turn.say(format!("start {}", prompt.text())).await?;
            while prompt.text() != "quick" {
                let next = turn.next_prompt().await?;
                turn.say(format!("take {}", next.text())).await?;
                if next.text() == "end" {
                    break;
                }
            }
            Ok(StopReason::EndTurn)
        })
    })
    .steering()
}

#[tokio::test(start_paused = true)]
async fn later_prompts_are_inserted_into_the_turn() {
    // shows V2-08, V2-10
    let mut rig = open(steered()).await;
    rig.prompt("p1", "s1", "one").await;
    rig.inserted("p1", "one").await;
    assert_eq!(rig.update().await["content"]["text"], "start one");
    for (id, text) in [("p2", "two"), ("p3", "end")] {
        rig.prompt(id, "s1", text).await;
        let message = rig.update().await;
        assert_eq!(message["sessionUpdate"], "user_message");
        assert_eq!(rig.client.result(id).await, json!({"messageId": message["messageId"]}));
        assert_eq!(rig.update().await["content"]["text"], format!("take {text}"));
    }
    rig.idle("end_turn").await;
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_no_turn_takes_has_its_own() {
    for in_v2 in [true, false] {
        let agent = agent(|turn, prompt| {
            Box::pin(async move {
                if prompt.text() == "one" {
                    // Let the second prompt arrive, and do not take it.
                    let request = attache::wire::v1::WriteTextFileRequest::new("s1", "/f", "");
                    turn.client().request(&request).await?;
                }
                turn.say(prompt.text()).await?;
                Ok(StopReason::EndTurn)
            })
        })
        .steering();
        let mut rig = if in_v2 { open(agent).await } else { Rig::open(agent, json!({})).await };
        rig.prompt("p1", "s1", "one").await;
        if in_v2 {
            rig.inserted("p1", "one").await;
        }
        let asked = rig.client.expect("fs/write_text_file").await;
        rig.prompt("p2", "s1", "two").await;
        rig.client.answer(&asked, json!({})).await;
        match in_v2 {
            true => {
                assert_eq!(rig.update().await["content"]["text"], "one");
                rig.idle("end_turn").await;
                rig.inserted("p2", "two").await;
                assert_eq!(rig.update().await["content"]["text"], "two");
                rig.idle("end_turn").await;
            }
            false => {
                rig.expect_text("s1", "one").await;
                rig.expect_end("p1", "end_turn").await;
                rig.expect_text("s1", "two").await;
                rig.expect_end("p2", "end_turn").await;
            }
        }
        rig.disconnect().await;
    }
}

#[tokio::test(start_paused = true)]
async fn version_1_answers_at_the_end_of_the_turn() {
    let mut rig = Rig::open(steered(), json!({})).await;
    rig.prompt("p1", "s1", "one").await;
    rig.expect_text("s1", "start one").await;
    rig.prompt("p2", "s1", "two").await;
    rig.expect_text("s1", "take two").await;
    rig.client.expect_silence().await;
    rig.prompt("p3", "s1", "end").await;
    rig.expect_text("s1", "take end").await;
    for id in ["p2", "p3", "p1"] {
        rig.expect_end(id, "end_turn").await;
    }
    rig.disconnect().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_turn_and_what_it_has_not_taken() {
    // shows V2-15
    let mut rig = open(steered()).await;
    rig.prompt("p1", "s1", "one").await;
    rig.inserted("p1", "one").await;
    rig.update().await;
    rig.cancel("s1").await;
    rig.idle("cancelled").await;
    rig.prompt("p2", "s1", "quick").await;
    rig.inserted("p2", "quick").await;
    rig.update().await;
    rig.idle("end_turn").await;
    rig.expect_error("session/prompt", prompt("other", "hi"), -32002).await;
    rig.disconnect().await;

    let mut rig = Rig::open(steered(), json!({})).await;
    rig.prompt("p1", "s1", "one").await;
    rig.expect_text("s1", "start one").await;
    rig.cancel("s1").await;
    rig.expect_end("p1", "cancelled").await;
    rig.disconnect().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_prompt_is_answered_once() {
    // shows PROMPT-13, V2-08
    const PROMPTS: usize = 300;
    for in_v2 in [false, true] {
        let agent = agent(|turn, prompt| {
            Box::pin(async move {
                // Some turns wait for prompts beside their work, some take what is there, some take
                // none.
                match prompt.text().len() % 3 {
                    0 => {
                        tokio::select! {
                            biased;
                            () = tokio::task::yield_now() => {}
                            _ = turn.next_prompt() => {}
                        }
                    }
                    1 => while turn.take_prompt().is_some() {},
                    _ => {}
                }
                Ok(StopReason::EndTurn)
            })
        })
        .steering();
        let mut rig = if in_v2 { open(agent).await } else { Rig::open(agent, json!({})).await };
        for number in 0..PROMPTS {
            rig.client.request(number, "session/prompt", prompt("s1", &"x".repeat(number % 7))).await;
        }
        let (mut answered, mut inserted, mut idle) = (std::collections::HashSet::new(), 0, false);
        while answered.len() < PROMPTS || (in_v2 && !idle) {
            let line = rig.client.line().await;
            let update = &line["params"]["update"];
            let is_prompt = update["sessionUpdate"] == "user_message";
            inserted += usize::from(is_prompt);
            // A turn begins with its prompt and only then reports that it runs.
            idle = update["state"] == "idle" || (idle && !is_prompt && update["state"].is_null());
            if let Some(id) = line["id"].as_u64() {
                assert!(line.get("result").is_some() && answered.insert(id), "{line}");
            }
        }
        assert_eq!(inserted, if in_v2 { PROMPTS } else { 0 });
        rig.assert_responsive().await;
        rig.disconnect().await;
    }
}
