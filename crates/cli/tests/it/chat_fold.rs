//! What is long is folded and can be unfolded; what is on the screen fits it, whatever its size
//! becomes.

use attache::agent::{Agent, AgentSession, OpenRequest, ToolStatus, Turn};
use attache::wire::v1::ToolKind;
use attache::{Json, Prompt, Result, StopReason};

use crate::chat_rig::{Chat, Start};

const CTRL_O: &str = "\x0f";

#[derive(Clone)]
struct Talker;

impl AgentSession for Talker {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        match &*prompt.text() {
            "think" => {
                for number in 1..=30 {
                    turn.think(format!("thought {number}\n\n")).await?;
                }
            }
            "raw" => {
                let json = |value: serde_json::Value| Json::new(&value).unwrap();
                let input = json(serde_json::json!({"pattern": "needle", "depth": 3}));
                let tool = turn.tool("Search").kind(ToolKind::Search).input(input).start().await?;
                let output = json(serde_json::json!({"hits": [{"file": "hay.txt"}]}));
                let done = tool.change().status(ToolStatus::Completed).raw_output(output);
                tool.update(done).await?;
            }
            "print" => {
                let text: String = (1..=40).map(|number| format!("row {number}\n")).collect();
                turn.tool("Print").kind(ToolKind::Execute).start().await?.complete([text.into()]).await?;
            }
            text => turn.say(format!("echo: {text}")).await?,
        }
        turn.say("\n\ndone").await?;
        Ok(StopReason::EndTurn)
    }
}

async fn start(start: Start) -> Chat {
    start.with(Agent::new(|_: OpenRequest| async { Ok(Talker) })).await
}

#[tokio::test]
async fn output_is_unfolded_and_folded_again() {
    let mut chat = start(Start::new()).await;
    chat.say("print");
    chat.sees("… 32 lines (Ctrl-O, /show 1)").await;
    chat.sees("done").await;
    assert!(!chat.history().contains("row 7"));
    chat.keys(CTRL_O);
    chat.sees_no_more("… 32 lines").await;
    chat.sees("│ row 40").await;
    // All of it, also what does not fit on the screen.
    chat.until("the prompt below it", |screen| screen.contents().contains("Ctrl-O folds again")).await;
    for number in 1..=40 {
        assert!(chat.history().contains(&format!("│ row {number}\n")), "{number} in\n{}", chat.history());
    }
    chat.keys(CTRL_O);
    chat.sees("… 32 lines (Ctrl-O, /show 1)").await;
    chat.sees("> print").await;
    chat.sees_no_more("row 32").await;
}

#[tokio::test]
async fn one_block_is_shown_in_full_by_its_number() {
    let mut chat = start(Start::new().size(60, 80)).await;
    chat.say("/show");
    chat.sees("nothing to show").await;
    chat.say("print");
    chat.sees("/show 1").await;
    chat.say("/show 1");
    chat.sees("│ row 1\n").await;
    chat.sees("│ row 40").await;
    chat.say("raw");
    chat.sees("✓ Search").await;
    chat.say("/show");
    chat.sees("1 ✓ run Print").await;
    chat.sees("2 ✓ Search").await;
    // What a tool was given and gave back is not on the screen unless the user wants to see it.
    assert!(!chat.text().contains("needle"));
    chat.say("/show 2");
    chat.sees("\"pattern\": \"needle\"").await;
    chat.sees("\"file\": \"hay.txt\"").await;
    chat.say("/show 7");
    chat.sees("no such block").await;
    chat.say("/show x");
    chat.sees("/show takes a number").await;
}

#[tokio::test]
async fn thoughts_are_folded_when_they_are_over() {
    let mut chat = start(Start::new().size(60, 80)).await;
    chat.say("think");
    chat.sees("done").await;
    chat.sees("thought 1\n").await;
    chat.sees("lines (Ctrl-O, /show 1)").await;
    assert!(!chat.text().contains("thought 9"), "{}", chat.text());
    chat.say("/show 1");
    chat.sees("thought 9\n").await;
    chat.sees("thought 30").await;
}

#[tokio::test]
async fn the_screen_is_wrapped_again() {
    let words = "these words take more than one line of a narrow screen and none of them may be lost";
    let mut chat = start(Start::new().size(24, 100)).await;
    chat.say(words);
    chat.sees(&format!("echo: {words}")).await;
    chat.sees("done").await;
    chat.resize(24, 30);
    chat.sees("echo: these words take more\nthan one line of a narrow\nscreen and none of them may\nbe lost")
        .await;
    chat.sees("> these words take more than").await;
    assert!(!chat.text().contains('…'), "{}", chat.text());
    chat.resize(20, 90);
    chat.sees(&format!("echo: {words}")).await;
    chat.until("one prompt line", |screen| {
        screen.contents().lines().filter(|line| line.trim_end() == ">").count() == 1
    })
    .await;
    // What was there before fits above, in the order in which it was said.
    let text = chat.text();
    assert!(text.find("/help shows").unwrap() < text.find("> these").unwrap(), "{text}");
}
