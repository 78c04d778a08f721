//! What an agent wants to know from the user, asked line by line: forms to fill in, pages to visit.
//!
//! `attache exec`, `prompt` and `auth login` ask like this; the chat has forms of its own on its
//! screen. `fields.rs` is what a field is and what can be typed into it, `page.rs` what there is to
//! say about an address. Who is asked is a [`Person`], here or in another process.

mod fields;
mod page;

use std::path::Path;

use attache::client::{ElicitationAsk, RequestedInput};
use attache::wire::v1::{ElicitationContentValue as Value, ElicitationSchema, Fields};

use crate::error::{Failure, Result};
use crate::output::{Mark, in_gutter, quoted};
use attache_term::render::text::Look;
use fields::{described, typed};

pub(crate) use page::{is_web, open};

/// The user at a terminal.
pub(crate) trait Person {
    /// Shows a line.
    async fn tell(&mut self, text: &str);
    /// Lets a question be seen before it takes an answer, and discards what was typed before.
    async fn pause(&mut self);
    /// Asks for a line; `None` at the end of the input.
    async fn line(&mut self, question: &str) -> Option<String>;
    /// Opens a page, which was agreed to.
    async fn open(&mut self, url: &str);
}

/// What the user has decided.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The form is to be sent.
    Filled(Fields<Value>),
    /// The page may be visited.
    Agreed,
    Declined,
    Cancelled,
}

impl Outcome {
    /// Answers the question.
    pub(crate) fn send(self, ask: ElicitationAsk) {
        match self {
            // The form was checked before; a page has none that could not fit. Dropped, it is
            // cancelled.
            Outcome::Filled(content) => drop(ask.accept(content)),
            Outcome::Agreed => drop(ask.agree()),
            Outcome::Declined => ask.decline(),
            Outcome::Cancelled => ask.cancel(),
        }
    }
}

/// Asks the user. The future may be dropped when the answer is no longer needed.
pub(crate) async fn ask(person: &mut impl Person, agent: &str, ask: &ElicitationAsk) -> Outcome {
    // ELIC-07, ELIC-09: the asker and the purpose are shown. A gutter marks the agent's text, so
    // that it cannot ask in our name.
    let what = match ask.requested() {
        Some(RequestedInput::Url { .. }) => "asks you to visit a page",
        _ => "asks for input",
    };
    person.tell(&format!("{QUESTION} the agent {} {what}:", quoted(agent))).await;
    tell_foreign(person, ask.message()).await;
    match ask.requested() {
        Some(RequestedInput::Url { url, .. }) => visit(person, url).await,
        Some(RequestedInput::Form(schema)) => fill(person, schema, ask).await,
        _ => Outcome::Cancelled,
    }
}

/// Begins every line that waits for an answer.
const QUESTION: &str = Mark::Question.text();

async fn tell_foreign(person: &mut impl Person, text: &str) {
    for line in in_gutter(text) {
        person.tell(&line).await;
    }
}

/// The whole address is shown, and it is opened only when the user says so.
// ELIC-28, ELIC-29
async fn visit(person: &mut impl Person, url: &str) -> Outcome {
    tell_foreign(person, url).await;
    for line in page::about(url) {
        person.tell(&format!("  {line}")).await;
    }
    let web = is_web(url);
    let keys = if web { "y opens it in a browser, " } else { "" };
    person.pause().await;
    let question = format!("{QUESTION} Visit this page? ({keys}m means you open it yourself, n declines) ");
    let said = person.line(&question).await.unwrap_or_default();
    match said.trim() {
        "y" if web => {
            person.open(url).await;
            Outcome::Agreed
        }
        "m" => Outcome::Agreed,
        "n" => Outcome::Declined,
        _ => Outcome::Cancelled,
    }
}

/// Field by field; an empty line takes the default, or leaves the field out.
async fn fill(person: &mut impl Person, schema: &ElicitationSchema, ask: &ElicitationAsk) -> Outcome {
    for text in [&schema.title, &schema.description].into_iter().flatten() {
        tell_foreign(person, text).await;
    }
    person.pause().await;
    loop {
        let mut content: Fields<Value> = Fields::new();
        for (name, property) in schema.properties.iter() {
            let required = schema.required.iter().flatten().any(|wanted| wanted == name);
            let field = described(name, property, required);
            for line in &field.lines {
                tell_foreign(person, line).await;
            }
            loop {
                let Some(text) = person.line(&format!("{QUESTION} {}: ", field.prompt)).await else {
                    return Outcome::Cancelled;
                };
                let text =
                    if text.trim().is_empty() { field.default.clone().unwrap_or_default() } else { text };
                let value = typed(property, &text);
                // ELIC-11: a field that does not fit is not left.
                let problem = match &value {
                    None if required => Some("is required".to_owned()),
                    None => None,
                    Some(value) => problem(ask, name, value),
                };
                match (problem, value) {
                    (Some(problem), _) => person.tell(&format!("  {} {problem}", quoted(name))).await,
                    (None, Some(value)) => {
                        content.insert(name, value);
                        break;
                    }
                    (None, None) => break,
                }
            }
        }
        // ELIC-08: the answers can be looked over, declined and cancelled.
        let question = format!("{QUESTION} Send these answers? (y sends, c changes them, n declines) ");
        let said = person.line(&question).await;
        match said.unwrap_or_default().trim() {
            "y" => {}
            "c" => continue,
            "n" => return Outcome::Declined,
            _ => return Outcome::Cancelled,
        }
        let problems = ask.problems(&content);
        if problems.is_empty() {
            return Outcome::Filled(content);
        }
        for problem in problems {
            person.tell(&format!("  {} {}", quoted(&problem.property), problem.reason)).await;
        }
    }
}

fn problem(ask: &ElicitationAsk, name: &str, value: &Value) -> Option<String> {
    let problems = ask.problems(&Fields::from([(name.to_owned(), value.clone())]));
    problems.into_iter().find(|problem| problem.property == name).map(|problem| problem.reason)
}

/// Fills a form in with what was said beforehand.
///
/// # Errors
/// What keeps it from being sent, in one line.
pub(crate) fn fill_with(
    answers: &serde_json::Map<String, serde_json::Value>,
    ask: &ElicitationAsk,
) -> Result<Fields<Value>, String> {
    let Some(RequestedInput::Form(schema)) = ask.requested() else {
        return Err("a page can only be visited by a person".to_owned());
    };
    let mut content: Fields<Value> = Fields::new();
    for (name, property) in schema.properties.iter() {
        match answers.get(name) {
            Some(answer) => {
                let value = serde_json::from_value(answer.clone()).map_err(|_| {
                    format!("`{name}` is neither a text, a number, a switch nor a list of texts")
                })?;
                content.insert(name, value);
            }
            // What the agent would take if nothing was said.
            None => {
                let default = described(name, property, false).default;
                if let Some(value) = default.and_then(|default| typed(property, &default)) {
                    content.insert(name, value);
                }
            }
        }
    }
    let problems: Vec<String> = ask.problems(&content).iter().map(ToString::to_string).collect();
    if problems.is_empty() { Ok(content) } else { Err(problems.join("; ")) }
}

/// Reads the value of `--answers`: an object, as JSON or in a file.
pub(crate) fn answers(spec: &str, cwd: &Path) -> Result<serde_json::Map<String, serde_json::Value>> {
    let (text, source) = match spec.trim_start().starts_with('{') {
        true => (spec.to_owned(), "--answers".to_owned()),
        false => {
            let path = cwd.join(spec);
            let wrong = |error| Failure::usage(format_args!("--answers {}: {error}", path.display()));
            (std::fs::read_to_string(&path).map_err(wrong)?, format!("--answers {}", path.display()))
        }
    };
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format_args!("{source}: an object of answers by field is wanted: {error}"))
    })
}

/// A text from an agent as a part of one line, without what could move the cursor or hide
/// something.
pub(crate) fn clean(text: &str) -> String {
    attache_term::render::text::clean(text, Look { colours: false, unicode: true }).replace('\n', " ")
}
