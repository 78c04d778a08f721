#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use attache::client::TextChunk;
use attache::wire::v1::{ToolCallStatus, ToolCallUpdate, UsageUpdate};
use attache_host::policy::Mode;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use attache_term::render::style::plain;
use attache_term::render::text::Look;

fn app() -> App {
    let look = Look { colours: true, unicode: true };
    let canvas = Canvas { columns: 40, rows: 16, look, cwd: PathBuf::from("/work"), beat: 0, unfold: false };
    let state = SessionState::empty();
    App::new(canvas, "agent".to_owned(), state, Arc::new(Policy::new(Mode::ASK)), Editor::default())
}

fn press(app: &mut App, code: KeyCode, modifiers: KeyModifiers) {
    app.key(KeyEvent::new(code, modifiers));
}

fn say(app: &mut App, text: &str) {
    for c in text.chars() {
        press(app, KeyCode::Char(c), KeyModifiers::NONE);
    }
    press(app, KeyCode::Enter, KeyModifiers::NONE);
}

fn ctrl(app: &mut App, c: char) {
    press(app, KeyCode::Char(c), KeyModifiers::CONTROL);
}

fn text(text: &str) -> Event {
    let mut chunk = TextChunk::default();
    chunk.text = text.to_owned();
    Event::Text(chunk)
}

fn user(text: &str) -> Event {
    let mut chunk = TextChunk::default();
    chunk.text = text.to_owned();
    Event::User(chunk)
}

fn effects(app: &mut App) -> Vec<Effect> {
    app.effects.drain(..).collect()
}

/// What goes up and what stays, as text.
fn frame(app: &mut App) -> (String, String) {
    let frame = app.frame(Instant::now());
    (plain(&frame.scrolled), plain(&frame.live))
}

fn ended(app: &mut App, how: &attache::Result<Option<StopReason>>, usage: Option<&Usage>) {
    app.turn_ended(how, usage, ToString::to_string);
}

const ENDED: attache::Result<Option<StopReason>> = Ok(Some(StopReason::EndTurn));

#[test]
fn a_prompt_is_sent_and_the_next_one_waits() {
    let mut app = app();
    say(&mut app, "one");
    assert_eq!(effects(&mut app), [Effect::Prompt("one".to_owned())]);
    app.turn_started("one", &[], Instant::now());
    say(&mut app, "two");
    assert!(effects(&mut app).is_empty());
    app.event(text("answer"));
    let (up, live) = frame(&mut app);
    assert_eq!(up, "> one\n");
    assert_eq!(
        live,
        "\nanswer\n\nqueued: two (Up takes it back, Enter se…\n⠋ 0s working, Esc interrupts\nagent\n>\n"
    );
    ended(&mut app, &ENDED, None);
    assert_eq!(effects(&mut app), [Effect::Prompt("two".to_owned())]);
    assert_eq!(frame(&mut app), ("\nanswer\n".to_owned(), "\nagent\n>\n".to_owned()));
}

#[test]
fn nothing_moves_while_nothing_runs() {
    let mut app = app();
    assert!(!app.animated());
    app.turn_started("x", &[], Instant::now());
    assert!(app.animated());
    ended(&mut app, &ENDED, None);
    assert!(!app.animated());
}

#[test]
fn ctrl_c_means_less_the_less_there_is_to_stop() {
    let mut app = app();
    app.turn_started("x", &[], Instant::now());
    ctrl(&mut app, 'c');
    assert_eq!(effects(&mut app), [Effect::Cancel]);
    assert!(frame(&mut app).1.contains("cancelling"));
    ctrl(&mut app, 'c');
    assert_eq!(effects(&mut app), [Effect::Quit(130)]);
    ended(&mut app, &Ok(Some(StopReason::Cancelled)), None);
    app.editor.set("something");
    ctrl(&mut app, 'c');
    assert!(app.editor.is_empty() && effects(&mut app).is_empty());
    ctrl(&mut app, 'c');
    assert!(effects(&mut app).is_empty());
    // Any other key in between starts over.
    press(&mut app, KeyCode::Left, KeyModifiers::NONE);
    ctrl(&mut app, 'c');
    assert!(effects(&mut app).is_empty());
    ctrl(&mut app, 'c');
    assert_eq!(effects(&mut app), [Effect::Quit(0)]);
}

#[test]
fn repeated_content_is_shown_once() {
    let mut app = app();
    app.turn_started("hello there", &[], Instant::now());
    app.event(user("hello there"));
    app.event(text("hi"));
    ended(&mut app, &ENDED, None);
    assert_eq!(frame(&mut app).0, "> hello there\n\nhi\n");
    // A replayed history is.
    app.event(user("from before"));
    app.transcript.end_turn();
    assert_eq!(frame(&mut app).0, "\n> from before\n");
}

#[test]
fn errors_and_reasons_are_reported() {
    let mut app = app();
    for (end, told) in [
        (Ok(Some(StopReason::Refusal)), "! the agent refused to continue\n"),
        (Ok(Some(StopReason::MaxTokens)), "! the agent stopped: token limit reached\n"),
        (Err(attache::Error::refuse(-32603, "broken\x1b[2J")), "✗ broken (-32603)\n"),
    ] {
        app.turn_started("x", &[], Instant::now());
        ended(&mut app, &end, None);
        let (up, _) = frame(&mut app);
        assert!(up.ends_with(told), "{up}");
    }
}

#[test]
fn usage_stands_in_the_prompt_line() {
    let mut app = app();
    app.state.usage = Some(UsageUpdate::new(1_500_u64, 10_000_u64));
    assert_eq!(frame(&mut app).1, "\nagent · 1.5k/10.0k (15%)\n>\n");
}

#[test]
fn sessions_are_not_changed_under_a_turn() {
    let mut app = app();
    app.turn_started("x", &[], Instant::now());
    say(&mut app, "/new");
    assert!(effects(&mut app).is_empty());
    ended(&mut app, &ENDED, None);
    say(&mut app, "/new");
    assert_eq!(effects(&mut app), [Effect::Open(OpenTarget::New)]);
    say(&mut app, "/load abc");
    assert_eq!(effects(&mut app), [Effect::Open(OpenTarget::Load("abc".into()))]);
    say(&mut app, "/cancel");
    assert!(effects(&mut app).is_empty());
}

#[test]
fn every_size_has_room_for_the_prompt() {
    for rows in 1..12 {
        for columns in 1..30 {
            let mut app = app();
            app.canvas.rows = rows;
            app.canvas.columns = columns;
            app.turn_started(
                "a prompt that is longer than some of the terminal_outputs",
                &[],
                Instant::now(),
            );
            app.event(text(
                "# Head\n\n| a | b |\n|--|--|\n| 日本語 | c |\n\n```\nlong line of code\n```\n\n- item",
            ));
            let tool =
                ToolCallUpdate::new("t").title("Some tool".to_owned()).status(ToolCallStatus::InProgress);
            app.transcript.tool(None, true, tool);
            app.editor.set("typed text 日本\nand more");
            app.queue.push_back("waiting".to_owned());
            let frame = app.frame(Instant::now());
            assert!(frame.live.len() <= rows.max(2), "{} lines in {rows} rows", frame.live.len());
            let (row, column) = frame.cursor.unwrap();
            assert!(row < frame.live.len(), "row {row} of {}", frame.live.len());
            // Nothing is narrower than one wide character.
            assert!(column <= columns.max(8), "column {column} of {columns}");
            for line in frame.live.iter().chain(&frame.scrolled) {
                assert!(line.width() <= columns.max(8), "{:?} in {columns}", line.plain());
            }
        }
    }
}

#[test]
fn every_size_fits() {
    for columns in 1..=40 {
        for rows in [2, 3, 5, 24] {
            let mut app = app();
            app.canvas.columns = columns;
            app.canvas.rows = rows;
            app.time = Some(Duration::from_secs(100));
            app.budget = Budget::new().tokens(Some(1000));
            app.wire.extend(["-> {\"jsonrpc\":\"2.0\"}".to_owned(), "!! 日本語".to_owned()]);
            app.turn_started(
                "a prompt with 日本語 and e\u{301} in it, longer than a line",
                &[],
                Instant::now(),
            );
            app.event(text("# Heading\n\n- 😀 item\n\n| a | b |\n|--|--|\n| long cell | 日本語 |\n\n```rust\nfn main() {}\n```\n\nrest"));
            let output: String = (0..20).map(|n| format!("output line {n} 日本語日本語日本語\n")).collect();
            let update = ToolCallUpdate::new("t").title("A tool with a long title 日本語".to_owned());
            app.transcript.tool(
                None,
                true,
                update.status(ToolCallStatus::Completed).content(vec![output.into()]),
            );
            app.queue.push_back("a prompt that waits in line".to_owned());
            say(&mut app, "/help");
            press(&mut app, KeyCode::Char('/'), KeyModifiers::NONE);
            for clear in [false, true, true] {
                app.clear = clear;
                app.canvas.unfold = !app.canvas.unfold;
                let frame = app.frame(Instant::now());
                assert!(frame.live.len() <= rows, "{columns}x{rows}: {} lines", frame.live.len());
                for line in frame.scrolled.iter().chain(&frame.live) {
                    assert!(line.width() <= columns, "{columns}x{rows}: {:?}", line.plain());
                }
                if let Some((row, column)) = frame.cursor {
                    assert!(row < rows && column <= columns, "{columns}x{rows}: {row} {column}");
                }
            }
        }
    }
}

#[test]
fn a_first_ctrl_c_is_forgotten_after_a_while() {
    let mut app = app();
    ctrl(&mut app, 'c');
    assert_eq!(app.hint.as_deref(), Some("press Ctrl-C again to quit"));
    app.quitting = Instant::now().checked_sub(2 * QUIT_WITHIN);
    ctrl(&mut app, 'c');
    assert_eq!(effects(&mut app), []);
    ctrl(&mut app, 'c');
    assert_eq!(effects(&mut app), [Effect::Quit(0)]);
    ctrl(&mut app, 'c');
    app.forget_quit();
    assert_eq!((app.hint.as_deref(), app.quit_expiry()), (None, None));
}
