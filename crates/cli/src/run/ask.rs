//! Questions to a person, in a form that can be asked in another process.

use attache::wire::v1::{PermissionOptionKind, RequestPermissionRequest, ToolCallContent};
use attache_host::policy::{Answer, Question, What};
use serde_json::{Value, json};

/// How much of a text that is to be written is shown.
const LINES: usize = 40;

/// A question and the answers there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    /// What is asked, in one line.
    pub(crate) title: String,
    /// What it is about, in as many lines as it takes.
    pub(crate) details: String,
    pub(crate) choices: Vec<Choice>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The key that chooses it; the number always does.
    pub(crate) key: Option<char>,
    pub(crate) label: String,
    pub(crate) allows: bool,
}

impl Ask {
    /// The agent asks whether it may run a tool. The choices are the agent's options, in its order.
    pub(crate) fn permission(request: &RequestPermissionRequest) -> Ask {
        let call = &request.tool_call;
        let title = call.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let kind = call.kind.map_or("other", |kind| kind.as_str());
        let mut keys: Vec<char> = Vec::new();
        let choices = request.options.iter().map(|option| {
            let key = match option.kind {
                PermissionOptionKind::AllowOnce => 'y',
                PermissionOptionKind::AllowAlways => 'a',
                PermissionOptionKind::RejectOnce => 'n',
                PermissionOptionKind::RejectAlways => 'N',
                _ => '\0',
            };
            // PERM-11: two options of one kind are not the same; the second has only its number.
            let free = key != '\0' && !keys.contains(&key);
            keys.push(key);
            Choice { key: free.then_some(key), label: option.name.clone(), allows: option.kind.allows() }
        });
        Ask {
            title: format!("Allow {} [{kind}]?", title.unwrap_or(call.tool_call_id.as_str())),
            choices: choices.collect(),
            details: details(request),
        }
    }

    /// The agent does something without having asked.
    pub(crate) fn direct(question: &Question) -> Ask {
        let (title, details) = match &question.what {
            What::Read(path) => (format!("Allow reading {}?", path.display()), String::new()),
            What::Write { path, content } => {
                (format!("Allow writing {}?", path.display()), shortened(content))
            }
            What::Run { command, cwd } => {
                (format!("Allow running `{}`?", command.text()), format!("in {}", cwd.display()))
            }
            _ => ("Allow this?".to_owned(), String::new()),
        };
        let choice = |key, label: &str, allows| Choice { key: Some(key), label: label.to_owned(), allows };
        let choices =
            vec![choice('y', "Yes", true), choice('a', "Yes, always", true), choice('n', "No", false)];
        Ask { title, details, choices }
    }

    /// What a choice means for [`direct`](Self::direct).
    pub(crate) fn direct_answer(choice: Option<usize>) -> Answer {
        match choice {
            Some(0) => Answer::Allow,
            Some(1) => Answer::AllowAlways,
            _ => Answer::Deny,
        }
    }

    /// Which choice a line means: a key, a number, or a word for yes and no. Nothing means no.
    pub(crate) fn choice(&self, line: &str) -> Option<usize> {
        let line = line.trim();
        if let Ok(number) = line.parse::<usize>() {
            return number.checked_sub(1).filter(|at| *at < self.choices.len());
        }
        let mut letters = line.chars();
        let (first, rest) = (letters.next(), letters.as_str());
        let key = match (first?, rest.to_lowercase().as_str()) {
            (key, "") => key,
            ('y' | 'Y', "es") => 'y',
            ('n', "o") => 'n',
            _ => return None,
        };
        let exact = self.choices.iter().position(|choice| choice.key == Some(key));
        let lower = key.to_lowercase().next();
        exact.or_else(|| self.choices.iter().position(|choice| choice.key.is_some() && choice.key == lower))
    }

    pub(crate) fn to_json(&self) -> Value {
        let choices: Vec<Value> = self
            .choices
            .iter()
            .map(|choice| json!({ "key": choice.key, "label": choice.label, "allows": choice.allows }))
            .collect();
        json!({ "title": self.title, "details": self.details, "choices": choices })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Ask> {
        let choice = |value: &Value| {
            Some(Choice {
                key: value.get("key").and_then(Value::as_str).and_then(|key| key.chars().next()),
                label: value.get("label")?.as_str()?.to_owned(),
                allows: value.get("allows")?.as_bool()?,
            })
        };
        Some(Ask {
            title: value.get("title")?.as_str()?.to_owned(),
            details: value.get("details")?.as_str()?.to_owned(),
            choices: value.get("choices")?.as_array()?.iter().map(choice).collect::<Option<_>>()?,
        })
    }
}

/// What the tool would do: its command or input, its diffs.
fn details(request: &RequestPermissionRequest) -> String {
    let call = &request.tool_call;
    let mut text = String::new();
    if let Some(input) = call.raw_input.as_ref().and_then(|input| input.parse::<Value>().ok()) {
        match &input {
            Value::Object(map) => {
                for (key, value) in map {
                    match value {
                        Value::String(value) => text.push_str(&format!("{key}: {}\n", shortened(value))),
                        value => text.push_str(&format!("{key}: {value}\n")),
                    }
                }
            }
            Value::Null => {}
            other => text.push_str(&format!("{other}\n")),
        }
    }
    for content in call.content.iter().flatten() {
        if let ToolCallContent::Diff(diff) = content {
            text.push_str(&format!("--- {}\n", diff.path));
            for line in diff.old_text.as_deref().unwrap_or_default().lines().take(LINES) {
                text.push_str(&format!("-{line}\n"));
            }
            for line in diff.new_text.lines().take(LINES) {
                text.push_str(&format!("+{line}\n"));
            }
        }
    }
    text.trim_end().to_owned()
}

fn shortened(text: &str) -> String {
    let count = text.lines().count();
    if count <= LINES {
        return text.trim_end().to_owned();
    }
    let shown: Vec<&str> = text.lines().take(LINES).collect();
    format!("{}\n… ({} more lines)", shown.join("\n"), count - LINES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ask() -> Ask {
        let request = serde_json::from_value(json!({
            "sessionId": "s",
            "toolCall": { "toolCallId": "c", "title": "Edit a.rs", "kind": "edit", "rawInput": { "path": "a.rs" } },
            "options": [
                { "optionId": "1", "name": "Once", "kind": "allow_once" },
                { "optionId": "2", "name": "This session", "kind": "allow_always" },
                { "optionId": "3", "name": "This project", "kind": "allow_always" },
                { "optionId": "4", "name": "No", "kind": "reject_once" },
            ],
        }));
        Ask::permission(&request.unwrap())
    }

    #[test]
    fn keys_numbers_and_words_choose_and_nothing_else_does() {
        let ask = ask();
        let keys: Vec<Option<char>> = ask.choices.iter().map(|choice| choice.key).collect();
        assert_eq!(keys, [Some('y'), Some('a'), None, Some('n')]);
        let choose = |line: &str| ask.choice(line);
        assert_eq!(choose("y"), Some(0));
        assert_eq!(choose(" Yes "), Some(0));
        assert_eq!(choose("3"), Some(2));
        assert_eq!(choose("N"), Some(3));
        for line in ["", "5", "0", "yeah", "x"] {
            assert_eq!(choose(line), None, "{line}");
        }
    }

    #[test]
    fn a_question_can_be_sent() {
        let ask = ask();
        assert_eq!(Ask::from_json(&ask.to_json()), Some(ask));
    }
}
