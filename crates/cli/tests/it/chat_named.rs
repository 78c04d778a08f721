//! A chat in a session with a name: its history is shown again, and it continues elsewhere.

use std::fs;
use std::process::{Command, Output};

use crate::chat_rig::{CTRL_D, Chat, Start};
use crate::world::test_agent;

/// It can load sessions, and says how many turns it has had.
const LOADS: &str = r#"
on initialize
  reply {"protocolVersion":1,"agentInfo":{"name":"keeper","version":"1"},"agentCapabilities":{"loadSession":true}}
on session/load
  update {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"asked long ago"}}
  update {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"answered long ago"}}
  reply {}
on session/prompt
  say turn $turn of $session: $prompt
  done end_turn
"#;

/// It can resume sessions, but does not repeat what was said in them.
const RESUMES: &str = r#"
on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}
on session/resume
  reply {}
on session/prompt
  say turn $turn of $session: $prompt
  done end_turn
"#;

/// It forgets everything.
const FORGETS: &str = "";

fn agent(start: &Start, script: &str) -> String {
    let file = start.place().path().join("script");
    fs::write(&file, script).unwrap();
    format!("{} {}", test_agent().display(), file.display())
}

async fn open(start: Start, agent: &str) -> Chat {
    let mut chat = start.args(&["--ask", "-s", "api"]).run_with(agent);
    chat.sees("> ").await;
    chat
}

async fn leave(chat: &mut Chat) {
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
}

/// Another command, in the same place.
fn attache(chat: &Chat, agent: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_attache"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", chat.place.home())
        .env("ATTACHE_HOME", chat.place.home().join("attache"))
        .current_dir(chat.place.work())
        .args(["--agent", agent])
        .args(args)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test]
async fn chat_and_prompt_continue_each_other() {
    let start = Start::new();
    let agent = agent(&start, LOADS);
    let mut chat = open(start, &agent).await;
    chat.sees("new session api").await;
    chat.say("hello");
    chat.sees("turn 1 of").await;
    chat.sees_no_more("working").await;
    leave(&mut chat).await;

    let output = attache(&chat, &agent, &["prompt", "-s", "api", "from a script"]);
    let said = text(&output);
    assert!(
        output.status.success() && said.contains("turn 2 of") && said.contains("from a script"),
        "{said}"
    );

    // The owner that waits for the next prompt lets the session go.
    let mut again = open(Start::new().after(&chat), &agent).await;
    again.sees("asked long ago").await;
    again.sees("answered long ago").await;
    assert!(!again.text().contains("new session"));
    again.say("and here");
    again.sees("turn 3 of").await;
    again.sees_no_more("working").await;
    leave(&mut again).await;

    let history = text(&attache(&chat, &agent, &["sessions", "history", "api"]));
    for word in ["hello", "from a script", "and here"] {
        assert!(history.contains(word), "{word} in {history}");
    }
    attache(&chat, &agent, &["sessions", "close", "api"]);
}

#[tokio::test]
async fn earlier_details_of_a_call_stay_in_the_question() {
    let start = Start::new();
    let agent = agent(&start, RESUMES);
    let mut chat = open(start, &agent).await;
    chat.say("first words");
    chat.sees("turn 1 of").await;
    chat.sees_no_more("working").await;
    leave(&mut chat).await;
    let mut again = open(Start::new().after(&chat), &agent).await;
    again.sees("> first words").await;
    again.sees("turn 1 of").await;
    again.say("next words");
    again.sees("turn 2 of").await;
    leave(&mut again).await;
}

#[tokio::test]
async fn a_forgetful_agent_is_reported() {
    let start = Start::new();
    let agent = agent(&start, FORGETS);
    let mut chat = open(start, &agent).await;
    chat.say("first words");
    chat.until("the answer", |screen| screen.contents().matches("first words").count() == 2).await;
    chat.sees_no_more("working").await;
    leave(&mut chat).await;
    let mut again = open(Start::new().after(&chat), &agent).await;
    again.sees("the agent has forgotten the conversation").await;
    again.sees("> first words").await;
    leave(&mut again).await;
}

#[tokio::test]
async fn other_commands_are_refused_while_it_is_open() {
    let start = Start::new();
    let agent = agent(&start, &LOADS.replace("  done end_turn", "  wait session/cancel\n  done cancelled"));
    let mut chat = open(start, &agent).await;
    let prompt = attache(&chat, &agent, &["prompt", "-s", "api", "hello"]);
    assert_eq!(prompt.status.code(), Some(1));
    let said = text(&prompt);
    assert!(said.contains("is open in a chat") && said.contains("leave the chat first"), "{said}");
    // A second chat cannot have it either.
    let mut second = Start::new().after(&chat).args(&["--ask", "-s", "api"]).run_with(&agent);
    assert_eq!(second.exit().await.code(), Some(1));
    second.sees("is open in another chat").await;
    // What runs in it can be cancelled from elsewhere.
    chat.say("long");
    chat.sees("turn 1 of").await;
    let cancel = attache(&chat, &agent, &["cancel", "-s", "api"]);
    assert!(cancel.status.success(), "{}", text(&cancel));
    chat.sees("! cancelled").await;
    let close = attache(&chat, &agent, &["sessions", "close", "api"]);
    assert!(close.status.success(), "{}", text(&close));
    assert!(chat.exit().await.success());
    chat.sees("the session was closed by another command").await;
    assert!(chat.is_cooked());
}

#[tokio::test]
async fn another_session_is_not_recorded_under_the_name() {
    let start = Start::new();
    let agent = agent(&start, LOADS);
    let mut chat = open(start, &agent).await;
    chat.say("kept words");
    chat.sees("turn 1 of").await;
    chat.sees_no_more("working").await;
    chat.say("/new");
    chat.sees("this conversation is not saved in api").await;
    chat.say("other words");
    chat.sees(": other words").await;
    chat.sees_no_more("working").await;
    leave(&mut chat).await;
    let history = text(&attache(&chat, &agent, &["sessions", "history", "api"]));
    assert!(history.contains("kept words") && !history.contains("other words"), "{history}");
}
