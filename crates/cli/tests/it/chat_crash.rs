//! Agents that end without being asked to.

use std::fs;

use crate::chat_rig::{CTRL_D, Chat, ENTER, Start};
use crate::world::test_agent;

/// Fails the first time it is asked, in the middle of its answer; after that it works.
fn agent(start: &Start, better: &str) -> String {
    let dir = start.place().path();
    let bad = "on session/prompt\n  say half an ans\n  stderr the disk is on fire\n  exit 3\n";
    fs::write(dir.join("bad"), bad).unwrap();
    fs::write(dir.join("good"), better).unwrap();
    let program = test_agent().display().to_string();
    let script = format!(
        "#!/bin/sh\ncd {}\nif [ -e broken ]; then exec {program} good; fi\ntouch broken\nexec {program} bad\n",
        dir.display()
    );
    let file = dir.join("agent.sh");
    fs::write(&file, script).unwrap();
    format!("sh {}", file.display())
}

async fn fail(start: Start, agent: &str) -> Chat {
    let mut chat = start.run_with(agent);
    chat.sees("> ").await;
    chat.say("go");
    chat.sees("half an ans").await;
    chat.sees("the agent ended (exit code 3)").await;
    chat.sees("the disk is on fire").await;
    chat.sees("the agent has exited; Enter restarts it, Ctrl-D quits").await;
    chat.prompts("").await;
    chat
}

#[tokio::test]
async fn the_cause_is_shown_and_enter_restarts_it() {
    let start = Start::new();
    let agent = agent(&start, "on session/prompt\n  say all is well again\n  done end_turn\n");
    let mut chat = fail(start, &agent).await;
    chat.keys(ENTER);
    chat.sees("restarting the agent").await;
    chat.sees("the agent has forgotten the conversation").await;
    chat.sees_no_more("the agent has exited").await;
    chat.say("again");
    chat.sees("all is well again").await;
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
    assert!(chat.is_cooked());
}

#[tokio::test]
async fn a_prompt_restarts_it_and_the_conversation_continues() {
    let start = Start::new();
    let better = "on initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"resume\":{}}}}\n\
         on session/resume\n  reply {}\non session/prompt\n  say answer to $prompt\n  done end_turn\n";
    let agent = agent(&start, better);
    let mut chat = fail(start, &agent).await;
    chat.say("once more");
    chat.sees("answer to once more").await;
    assert!(!chat.text().contains("has forgotten"), "{}", chat.text());
    chat.say("/restart");
    chat.until("a second start", |screen| screen.contents().matches("restarting the agent").count() == 2)
        .await;
    chat.say("and more");
    chat.sees("answer to and more").await;
}

#[tokio::test]
async fn one_that_cannot_be_started_again_costs_nothing_that_was_written() {
    let start = Start::new();
    let agent = agent(&start, "on initialize\n  stderr no space left\n  exit 4\n");
    let mut chat = fail(start, &agent).await;
    chat.say("a long thought");
    chat.sees("exit code 4").await;
    chat.sees("space left").await;
    chat.prompts("a long thought").await;
    chat.keys("\x15");
    chat.prompts("").await;
    chat.keys(CTRL_D);
    assert_eq!(chat.exit().await.code(), Some(1));
    assert!(chat.is_cooked());
}

#[tokio::test]
async fn secrets_in_last_words_are_not_shown() {
    let start = Start::new().args(&["--ask", "--env", "FIRE_TOKEN=sesame-opens"]);
    let dir = start.place().path().to_owned();
    let script = dir.join("script");
    fs::write(&script, "on session/prompt\n  stderr key $env.FIRE_TOKEN is wrong\n  exit 3\n").unwrap();
    let agent = format!("{} {}", test_agent().display(), script.display());
    let mut chat = start.run_with(&agent);
    chat.sees("> ").await;
    chat.say("go");
    chat.sees("is wrong").await;
    assert!(!chat.history().contains("sesame"), "{}", chat.history());
}
