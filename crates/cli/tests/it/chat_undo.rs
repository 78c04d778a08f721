//! `/undo`, `/redo`, `/rewind` and `/diff` for an agent that has none of them and writes files by
//! itself.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, OpenRequest, Turn};
use attache::{Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_C, CTRL_D, Chat, Cue, DOWN, ENTER, ESC, Start};

/// Writes `NAME=TEXT` for each such word of a prompt, by itself or through the client.
#[derive(Clone, Default)]
struct Writer {
    work: PathBuf,
    prompts: Arc<Mutex<Vec<String>>>,
    cue: Cue,
}

impl AgentSession for Writer {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text().into_owned();
        self.prompts.lock().unwrap().push(text.clone());
        for word in text.lines().next().unwrap_or_default().split(' ') {
            let Some((name, content)) = word.split_once('=') else { continue };
            let (path, content) = (self.work.join(name), content.replace(',', "\n"));
            if text.starts_with("ask") {
                turn.write_files().expect("files are provided").write(&path, content).await?;
            } else {
                fs::write(path, content).unwrap();
            }
        }
        if text.contains("wait") {
            turn.say("waiting").await?;
            self.cue.given().await;
        }
        turn.say("written").await?;
        Ok(StopReason::EndTurn)
    }
}

impl Writer {
    fn agent(&self) -> Agent {
        let (this, again) = (self.clone(), self.clone());
        Agent::new(move |_: OpenRequest| {
            let this = this.clone();
            async move { Ok(this) }
        })
        .load(move |_: OpenRequest| {
            let this = again.clone();
            async move { Ok(this) }
        })
        .info("writer", "1.0")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work.join(name)).unwrap_or_else(|_| "(none)".to_owned())
    }

    fn last_prompt(&self) -> String {
        self.prompts.lock().unwrap().last().unwrap().clone()
    }
}

async fn start() -> (Chat, Writer) {
    let start = Start::new();
    let writer = Writer { work: start.place().work(), ..Writer::default() };
    fs::write(writer.work.join("a.txt"), "before\n").unwrap();
    let each = writer.clone();
    (start.with_each(move || each.agent()).await, writer)
}

/// Sends a prompt and waits for its end.
async fn turn(chat: &mut Chat, number: usize, prompt: &str) {
    chat.say(prompt);
    chat.until("the end of the turn", |screen| {
        let text = screen.contents();
        text.matches("written").count() >= number && !text.contains("working")
    })
    .await;
}

#[tokio::test]
async fn changes_of_any_agent_are_undone_and_restored() {
    let (mut chat, writer) = start().await;
    turn(&mut chat, 1, "a.txt=after new.txt=new").await;
    chat.say("/diff");
    chat.sees("a.txt  +1 -1").await;
    chat.sees("new.txt (new)  +1 -0").await;
    chat.say("/undo");
    chat.sees("undone in 2 files: a.txt, new.txt; /redo restores it").await;
    assert_eq!((writer.read("a.txt"), writer.read("new.txt")), ("before\n".into(), "(none)".into()));
    chat.say("/diff");
    chat.sees("no file was changed").await;
    chat.say("/redo");
    chat.sees("restored: a.txt, new.txt").await;
    assert_eq!(writer.read("a.txt"), "after");
    // The agent is told, and the user sees that it will be.
    chat.say("/undo");
    chat.sees("with the next prompt: a note about undone files (Backspace drops it)").await;
    chat.say("go on");
    chat.sees("sent along: a note about undone files").await;
    chat.sees_no_more("with the next prompt").await;
    let told = "The user has undone changes of yours in these files: a.txt, new.txt.";
    chat.until("the prompt at the agent", |_| writer.last_prompt().contains(told)).await;
    assert!(writer.last_prompt().starts_with("go on"));
}

#[tokio::test]
async fn undoing_never_destroys_what_the_user_wrote_later() {
    let (mut chat, writer) = start().await;
    turn(&mut chat, 1, "a.txt=one,two,three,four b.txt=b").await;
    fs::write(writer.work.join("a.txt"), "one\ntwo\nthree\nfour\nmine\n").unwrap();
    chat.say("/undo");
    chat.sees("undone in 1 file: b.txt").await;
    chat.sees("left alone: a.txt: changed since; /undo a.txt shows its parts").await;
    assert_eq!(writer.read("a.txt"), "one\ntwo\nthree\nfour\nmine\n");
    chat.say("/undo a.txt");
    chat.sees("Undo in a.txt").await;
    // The last row of the list, so that Esc and what follows are not read as one key.
    chat.sees("Enter chooses").await;
    chat.keys(ESC);
    chat.sees_no_more("Enter chooses").await;
    chat.say("/undo c.txt");
    chat.sees("c.txt: no change of this conversation to undo").await;
}

#[tokio::test]
async fn single_parts_of_a_file_are_undone() {
    let (mut chat, writer) = start().await;
    fs::write(writer.work.join("a.txt"), "one\ntwo\nthree\nfour\nfive\n").unwrap();
    turn(&mut chat, 1, "a.txt=ONE,two,three,four,FIVE,").await;
    chat.say("/undo a.txt");
    chat.sees("line 1  -1 +1").await;
    chat.sees("line 5  -1 +1").await;
    chat.sees("the whole file").await;
    chat.keys(&format!("{DOWN}{ENTER}"));
    chat.sees("undone in 1 file: a.txt").await;
    assert_eq!(writer.read("a.txt"), "ONE\ntwo\nthree\nfour\nfive\n");
    // The rest is offered again.
    chat.sees("❯   line 1  -1 +1").await;
    chat.keys(ESC);
    chat.sees_no_more("Enter chooses").await;
}

#[tokio::test]
async fn the_conversation_goes_back_to_a_prompt_after_a_restart() {
    let (mut chat, writer) = start().await;
    turn(&mut chat, 1, "first a.txt=1").await;
    turn(&mut chat, 2, "second a.txt=2 b.txt=2").await;
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
    let mut again = Start::new().after(&chat).args(&["-c"]).run_alone();
    again.prompts("").await;
    again.say("/rewind");
    again.sees("Go back to before").await;
    again.sees("second a.txt=2 b.txt=2").await;
    again.keys(&format!("{DOWN}{ENTER}"));
    again.sees("undone in 2 files: a.txt, b.txt").await;
    again.prompts("first a.txt=1").await;
    assert_eq!((writer.read("a.txt"), writer.read("b.txt")), ("before\n".into(), "(none)".into()));
}

#[tokio::test]
async fn what_a_cancelled_agent_wrote_is_undone_after_the_chat_was_left() {
    let (mut chat, writer) = start().await;
    chat.say("wait a.txt=half");
    chat.sees("waiting").await;
    chat.say("/undo");
    chat.sees("the agent is working; cancel it first").await;
    chat.keys(CTRL_C);
    chat.sees("cancelling").await;
    chat.keys(CTRL_C);
    chat.exit().await;
    let mut again = Start::new().after(&chat).args(&["-c"]).run_alone();
    again.prompts("").await;
    again.say("/undo");
    again.sees("undone in 1 file: a.txt").await;
    assert_eq!(writer.read("a.txt"), "before\n");
}

#[tokio::test]
async fn ignored_files_that_are_written_through_the_client_are_undone() {
    let (mut chat, writer) = start().await;
    fs::write(writer.work.join(".gitignore"), "*.env\n").unwrap();
    fs::write(writer.work.join("x.env"), "before\n").unwrap();
    chat.say("ask x.env=after");
    chat.asks("x.env").await;
    chat.keys("y");
    chat.sees("written").await;
    chat.sees_no_more("working").await;
    assert_eq!(writer.read("x.env"), "after");
    chat.say("/undo");
    chat.sees("undone in 1 file: x.env").await;
    assert_eq!(writer.read("x.env"), "before\n");
}

#[tokio::test]
async fn without_checkpoints_nothing_is_kept() {
    let start = Start::new().env("ATTACHE_CHECKPOINTS", "false");
    let (home, work) = (start.place().home(), start.place().work());
    let writer = Writer { work, ..Writer::default() };
    let mut chat = start.with(writer.agent()).await;
    turn(&mut chat, 1, "a.txt=after").await;
    chat.say("/undo");
    chat.sees("nothing is kept for /undo").await;
    assert!(!home.join("attache/state/checkpoints").exists());
}
