//! How it ends, and that the terminal is as it was.

use attache::agent::{Agent, AgentSession, OpenRequest, Turn};
use attache::{Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_C, CTRL_D, Chat, Start};

#[derive(Clone)]
struct Stubborn;

impl AgentSession for Stubborn {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        match &*prompt.text() {
            // CANCEL-05 broken: it does not listen.
            "ignore" => {
                turn.say("not listening").await?;
                std::future::pending::<()>().await;
            }
            "wait" => {
                turn.say("listening").await?;
                turn.until_cancelled(std::future::pending::<()>()).await?;
            }
            text => turn.say(format!("echo: {text}")).await?,
        }
        Ok(StopReason::EndTurn)
    }
}

async fn start(start: Start) -> Chat {
    let agent = Agent::new(|_: OpenRequest| async { Ok(Stubborn) });
    start.with(agent.cancel_grace(std::time::Duration::from_secs(3600))).await
}

fn restored(chat: &Chat) {
    assert!(chat.is_cooked(), "the terminal is still raw");
}

#[tokio::test]
async fn ctrl_c_cancels_the_turn_and_the_chat_continues() {
    let mut chat = start(Start::new()).await;
    chat.say("wait");
    chat.sees("listening").await;
    chat.keys(CTRL_C);
    chat.sees("! cancelled").await;
    chat.say("hello");
    chat.sees("echo: hello").await;
    // On an empty line it takes two to leave.
    chat.sees_no_more("working").await;
    chat.keys(CTRL_C);
    chat.sees("press Ctrl-C again to quit").await;
    chat.keys(CTRL_C);
    assert!(chat.exit().await.success());
    restored(&chat);
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_an_agent_that_does_not_listen() {
    let mut chat = start(Start::new()).await;
    chat.say("ignore");
    chat.sees("not listening").await;
    chat.keys(CTRL_C);
    chat.sees("cancelling, Ctrl-C again quits").await;
    chat.keys(CTRL_C);
    assert_eq!(chat.exit().await.code(), Some(130));
    restored(&chat);
}

#[tokio::test]
async fn ctrl_d_leaves_on_an_empty_line_only() {
    let mut chat = start(Start::new()).await;
    assert!(!chat.is_cooked());
    chat.keys("ab\x01");
    chat.keys(CTRL_D);
    chat.until("the letter that is left", |screen| {
        screen.contents().lines().any(|line| line.trim_end() == "> b")
    })
    .await;
    chat.keys(CTRL_D);
    chat.prompts("").await;
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
    restored(&chat);
    // The prompt is gone, and the conversation is still there.
    assert!(!chat.text().contains("> "));
    assert!(chat.text().contains("/help shows"), "{}", chat.text());
}

#[tokio::test]
async fn signals_leave_the_terminal_as_it_was() {
    for signal in ["-TERM", "-HUP", "-INT"] {
        let mut chat = start(Start::new()).await;
        chat.say("wait");
        chat.sees("listening").await;
        let id = chat.pid().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(chat.exit().await.code(), Some(130), "{signal}");
        restored(&chat);
    }
}

#[tokio::test]
async fn the_chat_survives_the_end_of_the_agent() {
    #[derive(Clone)]
    struct Short;
    impl AgentSession for Short {
        async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
            turn.say("going").await?;
            Err(attache::Error::refuse(-32603, "out of order"))
        }
    }
    let mut chat = Start::new().with(Agent::new(|_: OpenRequest| async { Ok(Short) })).await;
    chat.say("go");
    chat.sees("✗").await;
    chat.sees("out of order").await;
    // An error is not the end.
    chat.say("again");
    chat.until("a second error", |screen| screen.contents().matches("out of order").count() == 2).await;
    chat.hang_up().await;
    chat.sees("the agent closed the connection").await;
    chat.sees("the agent has exited; Enter restarts it").await;
    chat.keys(CTRL_D);
    assert_eq!(chat.exit().await.code(), Some(1));
    restored(&chat);
}

#[tokio::test]
async fn another_size_is_another_picture() {
    let mut chat = start(Start::new().size(24, 80)).await;
    chat.say("hello, this is a line that does not fit into a narrow screen");
    chat.sees("echo: hello").await;
    chat.keys("typed");
    chat.prompts("typed").await;
    chat.resize(10, 30);
    chat.prompts("typed").await;
    chat.until("everything inside", |screen| {
        let text = screen.contents();
        text.matches("> typed").count() == 1 && text.contains("echo: hello")
    })
    .await;
    chat.resize(30, 100);
    chat.until("the wide screen", |screen| screen.contents().matches("> typed").count() == 1).await;
    chat.say("");
    chat.sees("echo: typed").await;
}

#[tokio::test]
async fn limits_cancel_the_turn_and_say_why() {
    let mut chat = start(Start::new().args(&["--timeout", "0.05"])).await;
    chat.say("wait");
    chat.sees("time limit of 0.05 s reached; the turn is cancelled").await;
    chat.sees("! cancelled").await;
}
