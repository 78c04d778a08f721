//! What an agent asks while it logs the user in: pages to visit, forms to fill in.

use std::process::{Command, Stdio};

use attache::client::{ElicitationAsk, Wanted};
use attache::wire::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Property, ElicitationSchema, Fields,
    MultiSelectItems,
};

use super::ask;
use crate::cx::Cx;
use crate::error::Result;

/// Asks the user, or, where nobody can be asked, does what was said in advance: with `--yes`, pages are agreed to and shown.
pub(super) async fn answer(cx: &Cx, agent: &str, question: ElicitationAsk) -> Result<()> {
    // ELIC-07: who asks.
    cx.output.tell(format_args!("{agent} asks: {}", clean(question.message())));
    match question.wanted() {
        Some(Wanted::Url { url, .. }) => {
            let url = url.to_owned();
            page(cx, &url, question).await
        }
        Some(Wanted::Form(schema)) if ask::can_ask() => {
            let schema = schema.clone();
            form(cx, &schema, question).await
        }
        _ => {
            question.cancel();
            Ok(())
        }
    }
}

/// ELIC-28, ELIC-29: the whole address is shown, and it is opened only when the user says so.
async fn page(cx: &Cx, url: &str, question: ElicitationAsk) -> Result<()> {
    cx.output.tell(format_args!("  {}", clean(url)));
    let web = url.starts_with("https://") || url.starts_with("http://");
    if url.starts_with("http://") {
        cx.output.tell("  this page is not encrypted");
    }
    if cx.call.has("yes") {
        let _ = question.agree();
        return Ok(());
    }
    if !ask::can_ask() {
        cx.output.tell("nobody can be asked whether to visit it; --yes agrees in advance");
        question.cancel();
        return Ok(());
    }
    let keys = if web {
        "y opens it in a browser, m means you open it yourself, n declines"
    } else {
        "m means you open it yourself, n declines"
    };
    let said = ask::line(&format!("Visit this page? ({keys}) ")).await?.unwrap_or_default();
    match said.trim() {
        "y" if web => {
            let _ = question.agree();
            open(cx, url);
        }
        "m" => {
            let _ = question.agree();
        }
        "n" => question.decline(),
        _ => question.cancel(),
    }
    Ok(())
}

/// Opens a page, by its address as one argument: nothing of it is read by a shell.
fn open(cx: &Cx, url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let program = std::env::var("BROWSER")
        .ok()
        .filter(|browser| !browser.is_empty())
        .unwrap_or_else(|| program.to_owned());
    let started = Command::new(&program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        cx.output.tell(format_args!("`{program}` cannot be started; open the page yourself"));
    }
}

/// Field by field; an empty line takes the default, or leaves the field out.
async fn form(cx: &Cx, schema: &ElicitationSchema, mut question: ElicitationAsk) -> Result<()> {
    loop {
        let mut content: Fields<Value> = Fields::new();
        for (name, property) in schema.properties.iter() {
            let required = schema.required.iter().flatten().any(|wanted| wanted == name);
            let (title, choices, default) = describe(name, property);
            let mut prompt = title;
            if !choices.is_empty() {
                prompt.push_str(&format!(" ({})", choices.join(", ")));
            }
            match &default {
                Some(default) => prompt.push_str(&format!(" [{default}]")),
                None if !required => prompt.push_str(" (optional)"),
                None => {}
            }
            let Some(typed) = ask::line(&format!("{}: ", clean(&prompt))).await? else {
                question.cancel();
                return Ok(());
            };
            let typed = if typed.is_empty() { default.unwrap_or_default() } else { typed };
            if let Some(value) = value(property, &typed) {
                content.insert(name, value);
            }
        }
        // ELIC-13: the answers can be looked over, declined and cancelled.
        let said = ask::line("Send these answers? (y sends, c changes them, n declines) ")
            .await?
            .unwrap_or_default();
        match said.trim() {
            "y" => {}
            "c" => continue,
            "n" => {
                question.decline();
                return Ok(());
            }
            _ => {
                question.cancel();
                return Ok(());
            }
        }
        match question.accept(content) {
            Ok(()) => return Ok(()),
            // ELIC-11: what does not fit is asked again.
            Err(unfit) => {
                unfit.problems.iter().for_each(|problem| cx.output.tell(format_args!("  {problem}")));
                question = unfit.ask;
            }
        }
    }
}

/// The title of a field, what can be chosen, and what is taken if nothing is said.
fn describe(name: &str, property: &Property) -> (String, Vec<String>, Option<String>) {
    let title = |title: &Option<String>| title.clone().unwrap_or_else(|| name.to_owned());
    match property {
        Property::String(schema) => {
            let choices = match (&schema.one_of, &schema.values) {
                (Some(options), _) => options.iter().map(|option| option.value.clone()).collect(),
                (None, Some(values)) => values.clone(),
                (None, None) => Vec::new(),
            };
            (title(&schema.title), choices, schema.default_value.clone())
        }
        Property::Number(schema) => {
            (title(&schema.title), Vec::new(), schema.default_value.map(|value| value.to_string()))
        }
        Property::Integer(schema) => {
            (title(&schema.title), Vec::new(), schema.default_value.map(|value| value.to_string()))
        }
        Property::Boolean(schema) => {
            let choices = vec!["yes".to_owned(), "no".to_owned()];
            (
                title(&schema.title),
                choices,
                schema.default_value.map(|yes| if yes { "yes" } else { "no" }.to_owned()),
            )
        }
        Property::Array(schema) => {
            let choices = match &schema.items {
                MultiSelectItems::String(items) => items.values.clone(),
                MultiSelectItems::Titled(items) => {
                    items.any_of.iter().map(|option| option.value.clone()).collect()
                }
                _ => Vec::new(),
            };
            (title(&schema.title), choices, schema.default_value.as_ref().map(|chosen| chosen.join(",")))
        }
        _ => (name.to_owned(), Vec::new(), None),
    }
}

/// What was typed as a value of the field's kind; nothing typed is no value.
fn value(property: &Property, typed: &str) -> Option<Value> {
    let typed = typed.trim();
    if typed.is_empty() {
        return None;
    }
    // What is not of its kind is sent to the check as it is, which says what is wrong.
    let text = || Value::String(typed.to_owned());
    match property {
        Property::String(_) => Some(text()),
        Property::Number(_) => Some(typed.parse::<f64>().map_or_else(|_| text(), Value::from)),
        Property::Integer(_) => Some(typed.parse::<i64>().map_or_else(|_| text(), Value::from)),
        Property::Boolean(_) => Some(match typed.to_lowercase().as_str() {
            "y" | "yes" | "true" => true.into(),
            "n" | "no" | "false" => false.into(),
            _ => text(),
        }),
        Property::Array(_) => {
            let chosen: Vec<String> = typed.split(',').map(|choice| choice.trim().to_owned()).collect();
            Some(chosen.into())
        }
        // ELIC-33: a kind that is not known stays empty.
        _ => None,
    }
}

/// A text from an agent without what could move the cursor or hide something.
pub(crate) fn clean(text: &str) -> String {
    let odd = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().map(|letter| if odd(letter) { ' ' } else { letter }).collect()
}
