//! One field of a form: how it is asked for, and what was typed into it.

use attache::wire::v1::{
    ElicitationContentValue as Value, ElicitationPropertySchema as Property, EnumOption, MultiSelectItems,
};

use crate::output::quoted;

/// How a field is asked for.
pub(super) struct Described {
    /// What the agent says before the question, and what can be chosen.
    pub(super) lines: Vec<String>,
    /// What is asked for. The agent's part of it is quoted.
    pub(super) prompt: String,
    /// What is taken if nothing is typed.
    // ELIC-13
    pub(super) default: Option<String>,
}

/// Something to choose: what is sent, and how it is called.
struct Choice {
    value: String,
    title: String,
}

pub(super) fn described(name: &str, property: &Property, required: bool) -> Described {
    let (title, about, default) = match property {
        Property::String(schema) => (&schema.title, &schema.description, schema.default_value.clone()),
        Property::Number(schema) => {
            (&schema.title, &schema.description, schema.default_value.map(|value| value.to_string()))
        }
        Property::Integer(schema) => {
            (&schema.title, &schema.description, schema.default_value.map(|value| value.to_string()))
        }
        Property::Boolean(schema) => {
            let word = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
            (&schema.title, &schema.description, schema.default_value.map(word))
        }
        Property::Array(schema) => {
            (&schema.title, &schema.description, schema.default_value.as_ref().map(|chosen| chosen.join(",")))
        }
        // ELIC-33: a kind that is not known stays empty.
        _ => (&None, &None, None),
    };
    let mut lines: Vec<String> = about.iter().cloned().collect();
    let choices = choices(property);
    for (at, choice) in choices.iter().enumerate() {
        let title = if choice.title == choice.value { String::new() } else { format!("  {}", choice.title) };
        lines.push(format!("{}. {}{title}", at + 1, choice.value));
    }
    let mut prompt = quoted(title.as_deref().unwrap_or(name));
    match property {
        Property::Boolean(_) => prompt.push_str(" (yes, no)"),
        Property::Array(_) => prompt.push_str(" (several, separated by commas)"),
        _ => {}
    }
    match &default {
        Some(default) => prompt.push_str(&format!(" [default: {}]", quoted(default))),
        None if !required => prompt.push_str(" (optional)"),
        None => {}
    }
    Described { lines, prompt, default }
}

fn choices(property: &Property) -> Vec<Choice> {
    let plain = |values: &[String]| {
        values.iter().map(|value| Choice { value: value.clone(), title: value.clone() }).collect()
    };
    let titled = |options: &[EnumOption]| {
        options.iter().map(|it| Choice { value: it.value.clone(), title: it.title.clone() }).collect()
    };
    match property {
        Property::String(schema) => match (&schema.one_of, &schema.values) {
            (Some(options), _) => titled(options),
            (None, Some(values)) => plain(values),
            (None, None) => Vec::new(),
        },
        Property::Array(schema) => match &schema.items {
            MultiSelectItems::String(items) => plain(&items.values),
            MultiSelectItems::Titled(items) => titled(&items.any_of),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// What was typed as a value of the field's kind; nothing typed is no value. Of what can be chosen,
/// the number and the title mean the value.
pub(super) fn typed(property: &Property, text: &str) -> Option<Value> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let choices = choices(property);
    let chosen = |text: &str| {
        let fits = |choice: &&Choice| choice.value == text || choice.title.eq_ignore_ascii_case(text);
        let by_name = choices.iter().find(fits);
        let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let choice = by_name.or_else(|| number.and_then(|at| choices.get(at)));
        choice.map_or_else(|| text.to_owned(), |choice| choice.value.clone())
    };
    // What is not of its kind goes to the check as it is, which says what is wrong.
    let as_it_is = || Value::String(text.to_owned());
    match property {
        Property::String(_) => Some(Value::String(chosen(text))),
        Property::Number(_) => Some(text.parse::<f64>().map_or_else(|_| as_it_is(), Value::from)),
        Property::Integer(_) => Some(text.parse::<i64>().map_or_else(|_| as_it_is(), Value::from)),
        Property::Boolean(_) => Some(match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => true.into(),
            "n" | "no" | "false" => false.into(),
            _ => as_it_is(),
        }),
        Property::Array(_) => {
            let values: Vec<String> = text.split(',').map(|part| chosen(part.trim())).collect();
            Some(values.into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn property(json: &str) -> Property {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn numbers_and_titles_mean_the_value() {
        let one = property(
            r#"{"type":"string","oneOf":[{"const":"eu","title":"Europe"},{"const":"us","title":"America"}]}"#,
        );
        for text in ["us", "2", "america"] {
            assert_eq!(typed(&one, text), Some(Value::String("us".to_owned())), "{text}");
        }
        // What is not offered is not guessed.
        assert_eq!(typed(&one, "3"), Some(Value::String("3".to_owned())));
        let many = property(r#"{"type":"array","items":{"type":"string","enum":["a","b","c"]}}"#);
        assert_eq!(typed(&many, "1, c"), Some(Value::StringArray(vec!["a".to_owned(), "c".to_owned()])));
        assert_eq!(described("f", &one, true).lines, ["1. eu  Europe", "2. us  America"]);
    }

    #[test]
    fn kinds_and_defaults() {
        let yes = property(r#"{"type":"boolean","default":true}"#);
        assert_eq!(described("f", &yes, false).prompt, "\"f\" (yes, no) [default: \"yes\"]");
        assert_eq!(typed(&yes, "No"), Some(false.into()));
        let count = property(r#"{"type":"integer","title":"Count"}"#);
        assert_eq!(described("f", &count, false).prompt, "\"Count\" (optional)");
        assert_eq!(typed(&count, "7"), Some(Value::Integer(7)));
        assert_eq!(typed(&count, "many"), Some(Value::String("many".to_owned())));
        assert_eq!(typed(&count, " "), None);
    }
}
