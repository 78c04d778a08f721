//! A permission question as a form of the client.
//!
//! The client, usually an agent, passes the form on to the user, so an answer is worth as much as
//! the client. It holds once: answers that are remembered are given in the chat or in the settings.

use attache_host::policy::{Answer, Question, Section};
use serde_json::{Value, json};

use crate::output::count;

/// The longest text of a question. What is cut is counted.
const LONGEST: usize = 16 << 10;
const FIELD: &str = "decision";
const YES: &str = "Yes, once";
const NO: &str = "No";

/// Returns the params of `elicitation/create`.
pub(super) fn form(question: &Question) -> Value {
    let choice = json!({ "type": "string", "title": "Allow it?", "enum": [YES, NO] });
    json!({
        "mode": "form",
        "message": text(question),
        "requestedSchema": { "type": "object", "properties": { FIELD: choice }, "required": [FIELD] },
    })
}

/// Reads the result of `elicitation/create`. Everything but an accepted yes is a no.
pub(super) fn answer(result: &Value) -> Answer {
    match (result["action"].as_str(), result["content"][FIELD].as_str()) {
        (Some("accept"), Some(YES)) => Answer::Once,
        (Some("accept" | "decline"), _) => Answer::Reject,
        _ => Answer::Unanswered,
    }
}

/// The whole effect of a yes, in our words.
fn text(question: &Question) -> String {
    let mut text = question.headline();
    for section in question.sections() {
        text.push('\n');
        match section {
            Section::Text(line) => text.push_str(&line),
            Section::Quote(line) => text.push_str(&quoted("> ", &line)),
            Section::Command(line) => text.push_str(&quoted("$ ", &line)),
            Section::Change { path, old, new } => {
                let lines = |text: &str| count(text.lines().count() as u64, "line");
                let replaced = old.map(|old| format!(" instead of {}", lines(&old)));
                text.push_str(&format!(
                    "{path}: {}{}\n{}",
                    lines(&new),
                    replaced.unwrap_or_default(),
                    quoted("+ ", &new)
                ));
            }
        }
    }
    if text.len() > LONGEST {
        let cut = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let left_out = text.split_off(cut).lines().count();
        text.push_str(&format!("\n… {}", count(left_out as u64, "more line")));
    }
    text
}

/// Marks every line, so that no text of the agent looks like ours.
fn quoted(mark: &str, text: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_accepted_yes_is_a_yes() {
        let reply = |action: &str, decision: Value| {
            answer(&json!({ "action": action, "content": { FIELD: decision } }))
        };
        assert_eq!(reply("accept", json!(YES)), Answer::Once);
        assert_eq!(reply("accept", json!(NO)), Answer::Reject);
        assert_eq!(reply("accept", json!(true)), Answer::Reject);
        assert_eq!(reply("decline", json!(YES)), Answer::Reject);
        assert_eq!(reply("cancel", json!(YES)), Answer::Unanswered);
        assert_eq!(answer(&Value::Null), Answer::Unanswered);
    }
}
