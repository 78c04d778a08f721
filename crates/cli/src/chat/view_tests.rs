#![allow(clippy::unwrap_used)]

use attache::wire::v1::{Plan, PlanEntry, ToolCallStatus, ToolCallUpdate, ToolKind};

use super::super::transcript::Severity;
use super::*;
use attache::client::Speaker;
use attache_term::render::style::plain;

fn canvas() -> Canvas {
    let look = Look { colours: true, unicode: true };
    Canvas { columns: 60, rows: 24, look, cwd: PathBuf::from("/work"), beat: 0, unfold: false }
}

fn say(transcript: &mut Transcript, text: &str) {
    transcript.say(Speaker::Agent, text);
}

fn tool(transcript: &mut Transcript, id: &str, status: ToolCallStatus) {
    let update = ToolCallUpdate::new(id).title(format!("Tool {id}")).kind(ToolKind::Read).status(status);
    transcript.tool(None, true, update);
}

fn settle(view: &mut View, transcript: &mut Transcript, room: usize) -> String {
    plain(&view.settle(transcript, &canvas(), room))
}

#[test]
fn finished_paragraphs_go_up_and_the_last_one_stays() {
    let (mut view, mut transcript) = (View::default(), Transcript::default());
    say(&mut transcript, "one\n\ntwo");
    assert_eq!(settle(&mut view, &mut transcript, 10), "");
    say(&mut transcript, " and more\n\nthr");
    assert_eq!(settle(&mut view, &mut transcript, 10), "one\n");
    assert_eq!(plain(&view.live(&transcript, &canvas())), "\ntwo and more\n\nthr\n");
    say(&mut transcript, "ee\n");
    assert_eq!(settle(&mut view, &mut transcript, 10), "\ntwo and more\n");
    transcript.end_turn();
    assert_eq!(settle(&mut view, &mut transcript, 10), "\nthree\n");
    assert!(view.live(&transcript, &canvas()).is_empty());
}

#[test]
fn chunk_boundaries_do_not_change_the_text() {
    let text =
        "# Head\n\npara one\ngoes on\n\n- a\n- b\n\n```rust\nfn x() {}\n\nfn y() {}\n```\n\n> quote\n\nend\n";
    let whole = plain(&markdown::render(text, 60, Style::PLAIN, canvas().look));
    for size in 1..text.len() {
        let (mut view, mut transcript) = (View::default(), Transcript::default());
        let mut out = String::new();
        for piece in text.as_bytes().chunks(size) {
            say(&mut transcript, std::str::from_utf8(piece).unwrap());
            out += &settle(&mut view, &mut transcript, 10);
        }
        transcript.end_turn();
        out += &settle(&mut view, &mut transcript, 10);
        assert_eq!(out, whole, "in pieces of {size}");
    }
}

#[test]
fn a_block_without_end_does_not_grow() {
    let (mut view, mut transcript) = (View::default(), Transcript::default());
    let mut out = String::new();
    say(&mut transcript, "```rust\n");
    for number in 0..5_000 {
        say(&mut transcript, &format!("let a{number} = 1;\n"));
        if number % 50 == 0 {
            out += &settle(&mut view, &mut transcript, 10);
            let Some(ItemKind::Message(message)) = transcript.model.front().map(|item| &item.kind) else {
                panic!()
            };
            assert!(message_text(message).len() < MAX_OPEN_TEXT + 2_000);
        }
    }
    say(&mut transcript, "```\n");
    transcript.end_turn();
    out += &settle(&mut view, &mut transcript, 10);
    let expected: String = (0..5_000).map(|number| format!("  let a{number} = 1;\n")).collect();
    assert!(out == expected, "{} and {} bytes", out.len(), expected.len());
    // Words without a line break, too.
    for _ in 0..20_000 {
        say(&mut transcript, "word ");
    }
    settle(&mut view, &mut transcript, 10);
    let Some(ItemKind::Message(message)) = transcript.model.front().map(|item| &item.kind) else { panic!() };
    assert!(message_text(message).len() < MAX_OPEN_TEXT);
}

#[test]
fn a_running_tool_holds_what_follows_until_there_is_no_room() {
    let (mut view, mut transcript) = (View::default(), Transcript::default());
    tool(&mut transcript, "a", ToolCallStatus::InProgress);
    tool(&mut transcript, "b", ToolCallStatus::Completed);
    assert_eq!(settle(&mut view, &mut transcript, 10), "");
    assert_eq!(plain(&view.live(&transcript, &canvas())), "⠋ read Tool a\n✓ read Tool b\n");
    say(&mut transcript, &"x\n\n".repeat(10));
    assert_eq!(
        settle(&mut view, &mut transcript, 10),
        // A spinner would stand still there.
        "… read Tool a\n✓ read Tool b\n\n".to_owned() + "x\n\n".repeat(9).trim_end() + "\n"
    );
    // Its end is reported when it comes.
    transcript.tool(None, false, ToolCallUpdate::new("a").status(ToolCallStatus::Failed));
    transcript.end_turn();
    assert_eq!(
        settle(&mut view, &mut transcript, 10),
        "\nx\n\n✗ read Tool a (failed; the agent gives no reason)\n"
    );
}

#[test]
fn rows_of_tools_and_notices_stand_together() {
    let (mut view, mut transcript) = (View::default(), Transcript::default());
    for id in ["a", "b"] {
        tool(&mut transcript, id, ToolCallStatus::Completed);
    }
    transcript.notice(Severity::Info, "one");
    transcript.notice(Severity::Warning, "two\nlines");
    transcript.notice(Severity::Error, "three");
    assert_eq!(
        settle(&mut view, &mut transcript, 10),
        "✓ read Tool a\n✓ read Tool b\n\n· one\n! two\n  lines\n✗ three\n"
    );
}

#[test]
fn long_titles_are_cut_and_the_end_stays_readable() {
    let (mut view, mut transcript) = (View::default(), Transcript::default());
    let update = ToolCallUpdate::new("t").title("word ".repeat(40)).status(ToolCallStatus::Failed);
    transcript.tool(None, true, update);
    let line = settle(&mut view, &mut transcript, 10);
    assert!(line.trim_end().ends_with("… (failed; the agent gives no reason)"), "{line}");
    assert_eq!(width(line.trim_end()), 60);
}

#[test]
fn output_is_folded() {
    let (mut view, mut transcript) = (View::default(), Transcript::default());
    let text: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    let update = ToolCallUpdate::new("t").title("Run".to_owned()).content(vec![text.into()]);
    transcript.tool(None, true, update.status(ToolCallStatus::Completed));
    let shown = settle(&mut view, &mut transcript, 10);
    assert!(shown.starts_with("✓ tool Run\n  │ … 12 lines (Ctrl-O, /show 1)\n  │ line 13\n"), "{shown}");
    assert!(shown.ends_with("  │ line 20\n"), "{shown}");
}

#[test]
fn paths_are_short_inside_of_the_directory() {
    let canvas = canvas();
    assert_eq!(canvas.short("/work/src/a.rs"), "src/a.rs");
    assert_eq!(canvas.short("/workshop/a.rs"), "/workshop/a.rs");
    assert_eq!(canvas.short("/work"), "/work");
}

#[test]
fn plans_wrap_under_their_text() {
    let mut transcript = Transcript::default();
    let entry = |text: &str, status| PlanEntry::new(text, PlanEntryPriority::High, status);
    transcript.event(attache::client::Event::Plan(Plan::new([
        entry("done", PlanEntryStatus::Completed),
        entry("a step that takes more than one line to tell about it", PlanEntryStatus::InProgress),
    ])));
    let narrow = Canvas { columns: 30, ..canvas() };
    assert_eq!(
        plain(&plans(&transcript, &narrow)),
        "Plan 1/2\n  ☑ done\n  ▸ a step that takes more\n    than one line to tell\n    about it !\n"
    );
    let ascii = Canvas { look: Look { colours: false, unicode: false }, ..narrow };
    assert!(plain(&plans(&transcript, &ascii)).contains("[x] done"));
}

#[test]
fn cancelled_steps_are_not_done() {
    let cancelled = PlanEntry::new("left out", PlanEntryPriority::High, PlanEntryStatus::Completed)
        .meta(attache::Meta::new(&serde_json::json!({"attache": {"status": "cancelled"}})).unwrap());
    let mut transcript = Transcript::default();
    transcript.event(attache::client::Event::Plan(Plan::new([cancelled])));
    assert_eq!(plain(&plans(&transcript, &canvas())), "Plan 0/1\n  ☒ left out\n");
}
