//! The chat as a job of a shell: it stops, the shell has the terminal, it continues.

use attache::agent::{Agent, AgentSession, OpenRequest, Turn};
use attache::{Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_D, Cue, ENTER, Start};

#[derive(Clone, Default)]
struct Diligent {
    cue: Cue,
    done: Cue,
}

impl AgentSession for Diligent {
    async fn prompt(&self, turn: Turn<'_>, _: Prompt) -> Result<StopReason> {
        turn.say("before it stops\n\n").await?;
        self.cue.given().await;
        turn.say("said meanwhile\n\n").await?;
        self.done.give();
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn ctrl_z_gives_the_terminal_to_the_shell_and_the_agent_works_on() {
    let agent = Diligent::default();
    let this = agent.clone();
    let script =
        "set -m; \"$@\"; echo \"stopped with $?\"; read line; echo \"read $line\"; fg; echo \"left with $?\"";
    let mut chat = Start::new()
        .in_shell(script)
        .with(Agent::new(move |_: OpenRequest| {
            let this = this.clone();
            async move { Ok(this) }
        }))
        .await;
    chat.say("go");
    chat.sees("before it stops").await;
    chat.keys("typed\x1a");
    chat.sees("stopped with").await;
    assert!(chat.is_cooked(), "the shell cannot use the terminal");
    assert!(!chat.look(vt100::Screen::hide_cursor) && !chat.look(vt100::Screen::bracketed_paste));
    // Nothing of what was below is left, and what was said stands above the shell's words.
    assert!(!chat.text().contains("working"), "{}", chat.text());
    // The agent is another process group, and is not stopped.
    agent.cue.give();
    agent.done.given().await;
    assert!(!chat.text().contains("said meanwhile"), "{}", chat.text());
    chat.resize(26, 60);
    chat.keys(&format!("something{ENTER}"));
    chat.sees("said meanwhile").await;
    chat.sees("before it stops").await;
    chat.prompts("typed").await;
    assert!(!chat.is_cooked());
    assert!(chat.look(vt100::Screen::bracketed_paste));
    chat.keys("\x15");
    chat.prompts("").await;
    chat.keys(CTRL_D);
    chat.sees("left with 0").await;
    assert!(chat.exit().await.success());
}

#[tokio::test]
async fn without_a_shell_that_could_continue_it_nothing_stops() {
    let agent = Agent::new(|_: OpenRequest| async { Ok(Diligent::default()) });
    let mut chat = Start::new().with(agent).await;
    // The program leads a session of its own: the system does not stop it, because nothing could
    // continue it.
    chat.keys("one\x1a two");
    chat.prompts("one two").await;
    assert!(!chat.is_cooked());
    chat.keys("\x15\x04");
    assert!(chat.exit().await.success());
}
