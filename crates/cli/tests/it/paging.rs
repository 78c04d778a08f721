//! A question that is longer than the terminal is read page by page; nothing of it is cut.

use serde_json::json;

use crate::clean_tty::{WITH_KEYS, WITH_LINES, run};
use crate::world::World;

fn world() -> World {
    let lines = |word: &str| (1..=40).map(|n| format!("{word} {n}\n")).collect::<String>();
    let ask = json!({
        "toolCall": { "toolCallId": "t", "title": "Edit a.txt", "kind": "edit",
            "content": [{ "type": "diff", "path": "a.txt", "oldText": lines("old"), "newText": lines("new") }] },
        "options": [{ "optionId": "y", "name": "Yes", "kind": "allow_once" }, { "optionId": "n", "name": "No", "kind": "reject_once" }],
    });
    World::new().agent(&format!(
        "on session/prompt\n  call session/request_permission {ask}\n  say $last\n  done end_turn\n"
    ))
}

fn shown(term: &str, keys: &str) -> String {
    let answers = [("Enter shows more", keys), ("your answer: ", "y\r")];
    String::from_utf8(run(&world().env("NO_COLOR", "1"), term, &["exec", "go"], &answers)).unwrap()
}

#[test]
fn page_by_page_to_the_end() {
    for term in [WITH_KEYS, WITH_LINES] {
        let text = shown(term, "\r");
        // The terminal has forty rows.
        assert!(text.contains("? 38 of 82 lines, Enter shows more (a: all, q: stop reading) "), "{text}");
        assert!(text.contains("? 76 of 82 lines"), "{text}");
        for word in ["old", "new"] {
            for number in 1..=40 {
                assert!(text.contains(&format!("{word} {number}\r\n")), "{word} {number} in {text}");
            }
        }
        assert!(text.contains(r#""optionId":"y""#), "{text}");
    }
}

#[test]
fn all_at_once_or_no_further() {
    for term in [WITH_KEYS, WITH_LINES] {
        let text = shown(term, "a\r");
        assert_eq!(text.matches("Enter shows more").count(), 1, "{text}");
        assert!(text.contains("+ new 40\r\n") && !text.contains("were not read"), "{text}");
        let text = shown(term, "q\r");
        assert_eq!(text.matches("Enter shows more").count(), 1, "{text}");
        assert!(!text.contains("+ new 40") && text.contains("[permission] 44 lines were not read"), "{text}");
    }
}
