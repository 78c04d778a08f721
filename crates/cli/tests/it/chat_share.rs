//! What the user gives to the agent, and to its commands: output of a shell, keys, pictures.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use attache::agent::{Agent, AgentSession, OpenRequest, Turn};
use attache::wire::v1::{ContentBlock, ToolKind};
use attache::{Prompt, Result, StopReason};

use crate::chat_rig::{Chat, Start};

/// Runs a command in a terminal of the client at `run`, and keeps prompts.
#[derive(Clone, Default)]
struct Listener {
    prompts: Arc<Mutex<Vec<Prompt>>>,
}

impl AgentSession for Listener {
    async fn prompt(&self, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text().into_owned();
        self.prompts.lock().unwrap().push(prompt);
        if let Some(command) = text.strip_prefix("run ") {
            let terminals = turn.terminals().expect("terminals are provided");
            let tool = turn.tool("Ask").kind(ToolKind::Execute).start().await?;
            tool.run().await?;
            let terminal = terminals.command("sh").args(["-c", command]).start().await?;
            tool.show_terminal(&terminal).await?;
            terminal.wait().await?;
            tool.update(tool.change().status(attache::agent::ToolStatus::Completed)).await?;
            terminal.release().await?;
        }
        turn.say("heard").await?;
        Ok(StopReason::EndTurn)
    }
}

async fn start(start: Start) -> (Chat, Listener) {
    let listener = Listener::default();
    let this = listener.clone();
    let agent = Agent::new(move |_: OpenRequest| {
        let this = this.clone();
        async move { Ok(this) }
    });
    (start.with(agent.images().info("listener", "1.0")).await, listener)
}

impl Listener {
    fn last(&self) -> Prompt {
        self.prompts.lock().unwrap().last().unwrap().clone()
    }
}

#[tokio::test]
async fn output_of_a_command_goes_along_with_the_next_prompt() {
    let (mut chat, listener) = start(Start::new()).await;
    chat.say("!printf 'one\\n\\033[31mt%s\\033[m\\n' wo; exit 3 |");
    chat.sees("with the next prompt: 2 lines of output of `printf").await;
    chat.sees("(Backspace drops it)").await;
    assert_eq!(chat.cell_of("two").fgcolor(), vt100::Color::Idx(1));
    chat.say("why?");
    chat.sees("heard").await;
    let text = listener.last().text().into_owned();
    assert!(text.starts_with("why?") && text.contains("(exit code 3)"), "{text}");
    assert!(text.ends_with("one\ntwo\n"), "{text}");
    // Without the sign the output is the user's own, and what would go along can be dropped.
    chat.say("!echo mine");
    chat.until("what the command writes", |screen| screen.contents().lines().any(|line| line == "mine"))
        .await;
    // Keys that are typed while a command runs belong to the command.
    chat.prompts("").await;
    chat.say("!echo dropped |");
    chat.sees("with the next prompt").await;
    chat.keys("\x7f");
    chat.sees_no_more("with the next prompt").await;
    chat.say("and now?");
    chat.until("the second answer", |screen| screen.contents().matches("heard").count() == 2).await;
    assert_eq!(listener.last().text(), "and now?");
}

#[tokio::test]
async fn commands_of_the_agent_can_be_typed_into_and_keep_their_colours() {
    let (mut chat, _) = start(Start::new().args(&["--approve-all"])).await;
    chat.say("run printf '\\033[32m%s?\\033[m ' name; read x; echo got-$x");
    chat.sees("name?").await;
    chat.sees("Ctrl-T types into the command").await;
    assert_eq!(chat.cell_of("name?").fgcolor(), vt100::Color::Idx(2));
    chat.keys("\x14");
    chat.sees("Ctrl-T returns; keys go to: ").await;
    chat.keys("bob\r");
    chat.sees("got-bob").await;
    chat.sees("heard").await;
    chat.sees_no_more("Ctrl-T returns").await;
    chat.keys("back");
    chat.prompts("back").await;
    chat.keys("\x15\x14");
    chat.sees("no command of the agent runs in a terminal").await;
}

#[tokio::test]
async fn pictures_are_pasted_and_dropped() {
    let start_with = Start::new();
    let programs = start_with.place().path().join("bin");
    fs::create_dir(&programs).unwrap();
    let picture = start_with.place().work().join("a picture.png");
    fs::write(&picture, b"\x89PNG\r\n\x1a\nrest").unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let start_with = start_with.env("PATH", &path).env("WAYLAND_DISPLAY", "test");
    let (mut chat, listener) = start(start_with).await;
    chat.keys("\x16");
    chat.sees("no").await;
    let program = programs.join("wl-paste");
    fs::write(&program, "#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\nrest'\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    chat.keys("\x16");
    chat.sees("pastes/paste-").await;
    // Terminals paste the path of a file that is dropped on them.
    chat.keys(&format!("\x1b[200~'{}'\x1b[201~", picture.display()));
    chat.sees("a picture.png\"").await;
    chat.keys("\r");
    chat.sees("heard").await;
    let last = listener.last();
    let images = last.blocks().iter().filter(|block| matches!(block, ContentBlock::Image(_))).count();
    assert_eq!(images, 2);
}
