//! What an agent says and does, on the screen.

use attache::agent::{Agent, AgentSession, OpenRequest, Turn};
use attache::wire::v1::{Cost, PlanEntry, PlanEntryPriority as Priority, PlanEntryStatus as Step, ToolKind};
use attache::{Prompt, Result, StopReason};

use crate::chat_rig::{CTRL_D, Cue, Start};

/// An agent whose every prompt is answered by the same play.
macro_rules! plays {
    ($name:ident, |$self:ident, $turn:ident, $prompt:ident| $body:block) => {
        #[derive(Clone, Default)]
        struct $name {
            #[allow(dead_code)]
            cue: Cue,
        }
        impl AgentSession for $name {
            async fn prompt(&$self, $turn: Turn<'_>, $prompt: Prompt) -> Result<StopReason> {
                $body
                Ok(StopReason::EndTurn)
            }
        }
        impl $name {
            fn agent(&self) -> Agent {
                let this = self.clone();
                Agent::new(move |_: OpenRequest| {
                    let this = this.clone();
                    async move { Ok(this) }
                })
                .info("tester", "1.0")
            }
        }
    };
}

#[tokio::test]
async fn markdown_streams_onto_the_screen() {
    plays!(Writer, |self, turn, _prompt| {
        for piece in
            ["# Tit", "le\n\nSome **bo", "ld** text\n\n- one\n- two\n\n```rust\nfn ", "main() {}\n```\n"]
        {
            turn.say(piece).await?;
        }
        turn.say("| a | b |\n|---|---|\n| 1 | 2 |\n").await?;
        self.cue.given().await;
        turn.say("\nend of it").await?;
    });
    let writer = Writer::default();
    let mut chat = Start::new().with(writer.agent()).await;
    chat.say("write");
    chat.sees("1 │ 2").await;
    for text in ["> write", "Some bold text", "• one", "  fn main() {}", "a │ b"] {
        chat.sees(text).await;
    }
    assert!(chat.cell_of("Title").bold() && chat.cell_of("Title").underline());
    assert!(chat.cell_of("bold text").bold() && !chat.cell_of("text").bold());
    assert_eq!(chat.cell_of("fn main").fgcolor(), vt100::Color::Idx(5));
    chat.sees("working, Esc interrupts").await;
    writer.cue.give();
    chat.sees("end of it").await;
    chat.sees_no_more("working").await;
    chat.keys(CTRL_D);
    assert!(chat.exit().await.success());
    let history = chat.history();
    for text in ["Title", "Some bold text", "end of it"] {
        assert_eq!(history.matches(text).count(), 1, "{text} in:\n{history}");
    }
}

#[tokio::test]
async fn thoughts_are_dim_and_usage_is_in_the_prompt_line() {
    plays!(Thinker, |self, turn, _prompt| {
        turn.think("let me see").await?;
        turn.say("seen").await?;
        turn.report_usage(12_300, 200_000, Some(Cost::new(0.126, "USD"))).await?;
    });
    let mut chat = Start::new().with(Thinker::default().agent()).await;
    chat.say("think");
    chat.sees("tester · 12.3k/200k (6%) · $0.13").await;
    chat.sees("seen").await;
    assert!(chat.cell_of("let me see").dim());
    assert!(!chat.cell_of("seen").dim());
    chat.say("/cost");
    chat.sees("12.3k of 200k tokens").await;
}

#[tokio::test]
async fn a_tool_call_is_one_line_that_changes() {
    plays!(Worker, |self, turn, _prompt| {
        let tool = turn.tool("Edit main.rs").kind(ToolKind::Edit).start().await?;
        tool.run().await?;
        self.cue.given().await;
        let old: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 5", "line five");
        tool.complete([attache::Edit::modify("/w/main.rs", old, new).into()]).await?;
        let failing = turn.tool("Run tests").kind(ToolKind::Execute).start().await?;
        failing.fail("two of three failed").await?;
    });
    let worker = Worker::default();
    let mut chat = Start::new().with(worker.agent()).await;
    chat.say("work");
    chat.sees("Edit main.rs").await;
    worker.cue.give();
    chat.sees("✓ Edit main.rs").await;
    chat.sees("/w/main.rs  +1 -1").await;
    chat.sees("5 - line 5").await;
    chat.sees("5 + line five").await;
    chat.sees("✗ Run tests (failed)").await;
    chat.sees("two of three failed").await;
    assert_eq!(chat.cell_of("- line 5").fgcolor(), vt100::Color::Idx(1));
    assert_eq!(chat.cell_of("+ line five").fgcolor(), vt100::Color::Idx(2));
    assert_eq!(chat.history().matches("Edit main.rs").count(), 1);
    chat.say("/diff");
    chat.until("the change again", |screen| screen.contents().matches("+ line five").count() == 2).await;
}

#[tokio::test]
async fn a_plan_is_a_check_list() {
    plays!(Planner, |self, turn, _prompt| {
        let plan = |first, second| {
            vec![
                PlanEntry::new("First step", Priority::High, first),
                PlanEntry::new("Second step", Priority::Low, second),
            ]
        };
        turn.plan(plan(Step::InProgress, Step::Pending)).await?;
        self.cue.given().await;
        turn.plan(plan(Step::Completed, Step::InProgress)).await?;
        self.cue.given().await;
        turn.plan(plan(Step::Completed, Step::Completed)).await?;
        turn.say("all done").await?;
    });
    let planner = Planner::default();
    let mut chat = Start::new().with(planner.agent()).await;
    chat.say("plan");
    chat.sees("Plan 0/2").await;
    chat.sees("▸ First step !").await;
    chat.sees("☐ Second step").await;
    planner.cue.give();
    chat.sees("☑ First step").await;
    chat.sees("▸ Second step").await;
    planner.cue.give();
    chat.sees("all done").await;
    chat.sees_no_more("Plan").await;
}

#[tokio::test]
async fn output_of_commands_is_live_and_folded() {
    plays!(Runner, |self, turn, _prompt| {
        let tool = turn.tool("Count").kind(ToolKind::Execute).start().await?;
        tool.run().await?;
        let script = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo line $i; done; cat fifo; echo last";
        let terminals = turn.terminals().expect("the client provides terminals");
        let terminal = terminals.command("sh").args(["-c", script]).start().await?;
        tool.show_terminal(&terminal).await?;
        terminal.wait().await?;
        tool.update(tool.change().status(attache::agent::ToolStatus::Completed)).await?;
        terminal.release().await?;
        turn.say("counted").await?;
    });
    let start = Start::new().args(&["--approve-all"]);
    let fifo = start.place().work().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut chat = start.with(Runner::default().agent()).await;
    chat.say("count");
    chat.sees("│ line 50").await;
    chat.sees("… 44 lines").await;
    std::fs::write(&fifo, "from outside\n").unwrap();
    chat.sees("counted").await;
    chat.sees("│ from outside").await;
    chat.sees("│ last").await;
    chat.sees("✓ run Count").await;
    chat.sees("… 44 lines").await;
    assert!(!chat.history().contains("line 44"));
}

#[tokio::test]
async fn agents_cannot_write_to_the_terminal() {
    plays!(Injector, |self, turn, _prompt| {
        turn.say("before\n\n\x1b[2J\x1b[H\x1b]0;evil\x07visible \u{202e}text\n\n").await?;
        let tool = turn.tool("tool \x1b]0;evil\x07title\r\nsecond").start().await?;
        tool.complete(["\x1b[31mred\x1b[0m &#27;[2J".into()]).await?;
        turn.say("after").await?;
    });
    let mut chat = Start::new().with(Injector::default().agent()).await;
    chat.say("inject");
    chat.sees("after").await;
    for text in ["> inject", "before", "visible text", "tool title", "red"] {
        chat.sees(text).await;
    }
    assert!(chat.titles().is_empty(), "{:?}", chat.titles());
}

#[tokio::test]
async fn a_flood_passes_and_the_keys_stay_alive() {
    plays!(Flooder, |self, turn, prompt| {
        if prompt.text() == "flood" {
            for number in 0..20_000 {
                turn.say(format!("word{number} ")).await?;
                if number % 10 == 9 {
                    turn.say("\n\n").await?;
                }
            }
        }
        turn.say(format!("\n\nend of {}", prompt.text())).await?;
    });
    let mut chat = Start::new().with(Flooder::default().agent()).await;
    chat.say("flood");
    chat.say("second");
    chat.sees("end of flood").await;
    chat.sees("end of second").await;
    chat.sees("> second").await;
}

#[tokio::test]
async fn narrow_screens_and_wide_characters() {
    plays!(Poet, |self, turn, _prompt| {
        turn.say("日本語のとても長い文章です。\n\n| 列 | 説明 |\n|--|--|\n| a | 日本語の説明 |\n").await?;
    });
    let mut chat = Start::new().size(12, 20).with(Poet::default().agent()).await;
    chat.say("詩");
    chat.sees("> 詩").await;
    chat.sees("日本語のとても長い").await;
    chat.sees("文章です。").await;
    chat.sees("日本語の説").await;
}

#[tokio::test]
async fn without_colours_and_without_unicode() {
    plays!(Plain, |self, turn, _prompt| {
        turn.say("# Naïve\n\n- “one”\n\n`code`").await?;
        turn.tool("Look…").kind(ToolKind::Read).start().await?.complete([]).await?;
    });
    let start = Start::new().env("NO_COLOR", "1").env("LC_ALL", "C");
    let mut chat = start.with(Plain::default().agent()).await;
    chat.say("go");
    chat.sees("# Naive").await;
    chat.sees("- \"one\"").await;
    chat.sees("+ read Look...").await;
    chat.look(|screen| {
        let (rows, columns) = screen.size();
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let cell = screen.cell(row, column).unwrap();
            assert_eq!(cell.fgcolor(), vt100::Color::Default, "{:?}", cell.contents());
            assert!(cell.contents().is_ascii(), "{:?}", cell.contents());
        }
    });
}
