use super::*;
use crate::render::style::Line;
use crate::render::text::Look;

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn ctrl(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
}

fn alt(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::ALT)
}

fn typed(text: &str) -> Editor {
    let mut editor = Editor::default();
    for c in text.chars() {
        editor.key(key(KeyCode::Char(c)));
    }
    editor
}

/// The text with the cursor as a bar.
fn shown(editor: &Editor) -> String {
    format!("{}|{}", editor.before(), editor.after())
}

#[test]
fn moving_and_cutting() {
    let mut editor = typed("one two, three");
    for (press, expected) in [
        (ctrl('a'), "|one two, three"),
        (alt('f'), "one| two, three"),
        (alt('f'), "one two|, three"),
        (alt('d'), "one two|"),
        (ctrl('y'), "one two, three|"),
        (ctrl('w'), "one two, |"),
        (alt('b'), "one |two, "),
        (ctrl('k'), "one |"),
        (ctrl('b'), "one| "),
        (ctrl('t'), "on e|"),
        (ctrl('u'), "|"),
        (ctrl('y'), "on e|"),
        (ctrl('h'), "on |"),
        (ctrl('b'), "on| "),
        (ctrl('d'), "on|"),
    ] {
        editor.key(press);
        assert_eq!(shown(&editor), expected, "after {press:?}");
    }
}

#[test]
fn characters_are_whole() {
    let mut editor = typed("aé日e\u{301}");
    editor.key(key(KeyCode::Left));
    assert_eq!(shown(&editor), "aé日|e\u{301}");
    editor.key(key(KeyCode::Backspace));
    assert_eq!(shown(&editor), "aé|e\u{301}");
    editor.key(key(KeyCode::Delete));
    assert_eq!(shown(&editor), "aé|");
    editor.key(key(KeyCode::Backspace));
    assert_eq!(shown(&editor), "a|");
}

#[test]
fn lines_and_history() {
    let mut editor = typed("first\\");
    assert_eq!(editor.key(key(KeyCode::Enter)), ActionResult::Changed);
    editor.paste("second\r\nthird\x1b[31m");
    assert_eq!(editor.text(), "first\nsecond\nthird[31m");
    editor.key(key(KeyCode::Up));
    assert_eq!(shown(&editor), "first\nsecond|\nthird[31m");
    editor.key(key(KeyCode::Up));
    assert_eq!(shown(&editor), "first|\nsecond\nthird[31m");
    assert_eq!(editor.key(key(KeyCode::Enter)), ActionResult::Submit("first\nsecond\nthird[31m".to_owned()));
    assert!(editor.is_empty());
    for c in "draft".chars() {
        editor.key(key(KeyCode::Char(c)));
    }
    editor.key(key(KeyCode::Up));
    assert_eq!(editor.text(), "first\nsecond\nthird[31m");
    assert_eq!(editor.key(key(KeyCode::Down)), ActionResult::Changed);
    assert_eq!(editor.text(), "draft");
    assert_eq!(editor.key(key(KeyCode::Down)), ActionResult::Ignored);
    assert_eq!(typed("  ").key(key(KeyCode::Enter)), ActionResult::Changed);
}

#[test]
fn the_cursor_is_where_the_text_is() {
    use crate::render::style::{Line, plain};
    use crate::render::text::Look;
    let look = Look { colours: true, unicode: true };
    let prompt = Line::from("> ");
    let mut editor = typed("日本語 abcdef");
    let painted = editor.render(&prompt, 10, 10, look);
    assert_eq!(plain(&painted.lines), "> 日本語 a\n  bcdef\n");
    assert_eq!((painted.row, painted.column), (1, 7));
    editor.key(ctrl('a'));
    editor.key(ctrl('f'));
    let painted = editor.render(&prompt, 10, 10, look);
    assert_eq!((painted.row, painted.column), (0, 4));
    // A line that is just full leaves room for the cursor.
    let painted = typed("12345678").render(&prompt, 10, 10, look);
    assert_eq!((painted.lines.len(), painted.row, painted.column), (2, 1, 2));
    // Only so many rows, around the cursor.
    let painted = typed(&"x".repeat(100)).render(&prompt, 10, 3, look);
    assert_eq!((painted.lines.len(), painted.row), (3, 2));
}

#[test]
fn searching_takes_what_was_found() {
    let mut editor = Editor::default();
    for text in ["make test", "make doc", "ls"] {
        editor.history.add(text);
    }
    editor.key(ctrl('r'));
    for c in "make".chars() {
        editor.key(key(KeyCode::Char(c)));
    }
    editor.key(ctrl('r'));
    assert_eq!(editor.key(key(KeyCode::Enter)), ActionResult::Changed);
    assert_eq!(editor.text(), "make test");
    editor.key(ctrl('r'));
    editor.key(key(KeyCode::Char('x')));
    editor.key(key(KeyCode::Esc));
    assert_eq!(editor.text(), "make test");
}

#[test]
fn changes_are_taken_back_word_by_word() {
    let mut editor = typed("one two");
    editor.key(ctrl('u'));
    assert_eq!(shown(&editor), "|");
    for expected in ["one two|", "one |", "one|", "|"] {
        editor.key(ctrl('7'));
        assert_eq!(shown(&editor), expected);
    }
    assert_eq!(editor.key(ctrl('_')), ActionResult::Ignored);
    // A cleared line comes back.
    let mut editor = typed("long");
    let _ = editor.take();
    editor.key(ctrl('_'));
    assert_eq!(shown(&editor), "long|");
}

#[test]
fn a_long_paste_is_a_chip_until_it_is_sent() {
    let long: String = (0..12).map(|n| format!("line {n} [paste 1: 12 lines]\n")).collect();
    let mut editor = typed("see ").with_chips();
    editor.paste(&long);
    editor.paste("short\ntext");
    editor.paste(&"y".repeat(2_001));
    assert_eq!(editor.text(), "see [paste 1: 12 lines]short\ntext[paste 2: 2001 characters]");
    let sent = ActionResult::Submit(format!("see {long}short\ntext{}", "y".repeat(2_001)));
    assert_eq!(editor.key(key(KeyCode::Enter)), sent);
    // The chips of the next text count from the beginning.
    editor.paste(&long);
    assert_eq!(editor.text(), "[paste 1: 12 lines]");
    editor.expand();
    assert_eq!(editor.text(), long);
}

#[test]
fn a_long_text_says_how_much_is_above() {
    let mut editor = Editor::default();
    editor.paste(&(1..=100).map(|n| format!("line {n}\n")).collect::<String>());
    let look = Look { colours: false, unicode: true };
    let painted = editor.render(&Line::from("> "), 40, 4, look);
    let text: Vec<String> = painted.lines.iter().map(Line::plain).collect();
    assert_eq!(text, ["  … 98 above", "  line 99", "  line 100", "  "]);
    assert_eq!((painted.row, painted.column), (3, 2));
    editor.key(KeyEvent::new(KeyCode::Home, KeyModifiers::CONTROL));
    // Two rows have no room for it.
    assert_eq!(editor.render(&Line::from("> "), 40, 2, look).lines.len(), 2);
}
