//! Permission questions in a form that can be asked in another process.

use std::path::Path;

use attache_host::policy::{Answer, Choice, Question, Section};
use serde::{Deserialize, Serialize};

use crate::output::{Document, Mark, revealed};
use attache_term::answers::Answers;
use attache_term::render::style::{Colour, Style};

/// Returns the parts of a question without texts of the agent that only say again what the headline
/// or a command says.
pub(crate) fn sections(question: &Question, headline: &str) -> Vec<Section> {
    let mut all = question.sections();
    let commands: Vec<String> = all
        .iter()
        .filter_map(|section| match section {
            Section::Command(command) => Some(command.trim().to_owned()),
            _ => None,
        })
        .collect();
    all.retain(|section| {
        let Section::Quote(text) = section else { return true };
        let text = text.trim().trim_matches('`').trim();
        text != headline.trim_end_matches('?') && !commands.iter().any(|command| command == text)
    });
    all
}

/// Returns the answers as rows for the keys.
pub(crate) fn answers(choices: &[Choice]) -> Answers {
    let answer = |choice: &Choice| attache_term::answers::Answer {
        key: choice.key,
        label: choice.label.clone(),
        allows: choice.allows,
    };
    Answers::new(choices.iter().map(answer))
}

/// Returns the answer that refuses. `None` if there is none.
pub(crate) fn refusal(choices: &[Choice]) -> Option<usize> {
    let refusal = choices.iter().position(|choice| choice.answer == Answer::Reject);
    refusal.or_else(|| choices.iter().position(|choice| !choice.allows))
}

/// What the user answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The answer with this index.
    Choice(usize),
    /// A refusal, and the prompt that the agent gets instead.
    Instead(String),
}

/// A question, its parts and its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The question in one line.
    pub(crate) headline: String,
    /// Everything that happens if the answer is yes.
    pub(crate) sections: Vec<Section>,
    pub(crate) choices: Vec<Choice>,
}

impl Ask {
    pub(crate) fn new(question: &Question) -> Ask {
        let headline = question.headline();
        Ask { sections: sections(question, &headline), headline, choices: question.choices.clone() }
    }

    /// Renders everything that happens if the answer is yes.
    pub(crate) fn document(&self) -> Document {
        let cwd = std::env::current_dir().unwrap_or_default();
        let head = Mark::Permission.line(Style::BOLD.colour(Colour::Yellow));
        let head = head.with(format!(" {}", revealed(&self.headline)), Style::BOLD);
        self.sections.iter().fold(Document::new().own(head), |document, section| match section {
            Section::Text(text) => document.own(format!("  {}", revealed(text))),
            Section::Quote(text) | Section::Command(text) => document.foreign(&**text),
            Section::Change { path, old, new } => {
                let short = Path::new(path).strip_prefix(&cwd).ok().and_then(Path::to_str);
                document.change(short.unwrap_or(path), old.as_deref(), new)
            }
        })
    }

    /// The choice that a typed line means: a key, a number, or a word for yes and no.
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

    /// The rows that list the answers: key and label.
    pub(crate) fn menu(&self) -> impl Iterator<Item = (String, &Choice)> {
        self.choices.iter().enumerate().map(|(at, choice)| {
            let key = choice.key.map_or_else(|| (at + 1).to_string(), |key| key.to_string());
            (key, choice)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use attache_host::policy::{Decision, Mode, Policy};

    use serde_json::json;

    use super::*;

    fn ask() -> Ask {
        let request = serde_json::from_value(json!({
            "sessionId": "s",
            "toolCall": {
                "toolCallId": "c", "title": "Edit a.rs", "kind": "edit",
                "content": [{ "type": "diff", "path": "/p/a.rs", "newText": "x" }],
            },
            "options": [
                { "optionId": "1", "name": "Once", "kind": "allow_once" },
                { "optionId": "2", "name": "This session", "kind": "allow_always" },
                { "optionId": "4", "name": "No", "kind": "reject_once" },
            ],
        }));
        let policy = Policy::new(Mode::ASK).roots(["/p"]).agent("x");
        match policy.decide(&request.unwrap()) {
            Decision::Ask(question) => Ask::new(&question),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_numbers_and_words_choose_and_nothing_else_does() {
        let ask = ask();
        let menu: Vec<String> = ask.menu().map(|(key, choice)| format!("{key} {}", choice.label)).collect();
        assert_eq!(
            menu,
            [
                "y Yes, once (“Once”)",
                "s Yes, until this chat ends: edit files",
                "a Always in this project: edit files (x)",
                "4 x: “This session”",
                "n No",
            ]
        );
        let choose = |line: &str| ask.choice(line);
        assert_eq!(choose("y"), Some(0));
        assert_eq!(choose(" Yes "), Some(0));
        assert_eq!(choose("4"), Some(3));
        assert_eq!(choose("N"), Some(4));
        for line in ["", "6", "0", "yeah", "x"] {
            assert_eq!(choose(line), None, "{line}");
        }
    }

    #[test]
    fn a_question_can_be_sent() {
        let ask = ask();
        let sent = serde_json::to_string(&ask).unwrap();
        assert_eq!(serde_json::from_str::<Ask>(&sent).unwrap(), ask);
    }
}
