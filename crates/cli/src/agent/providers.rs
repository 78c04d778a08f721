//! `[providers.NAME]` in the user's settings: providers of models and their addresses. The settings
//! of a project cannot name any, because a provider reads the project.

use attache_agent::model::Settings;

use crate::cx::Cx;
use crate::error::{Failure, Result};

/// How long models may be silent.
const TIMEOUT: &str = "ATTACHE_MODEL_TIMEOUT";

/// What the environment, the file and the flags say about providers.
pub(super) fn settings(cx: &Cx) -> Result<Settings> {
    let mut settings = Settings::from_env();
    from_file(cx, &mut settings)?;
    let of_env = std::env::var(TIMEOUT).ok().filter(|value| !value.is_empty());
    let flag = cx.flags.own_agent.model_timeout.clone().map(|value| ("--model-timeout", value));
    if let Some((name, value)) = flag.or(of_env.map(|value| (TIMEOUT, value))) {
        settings.set_timeout(&value).map_err(|why| Failure::usage(format_args!("{name}: {why}")))?;
    }
    Ok(settings)
}

fn from_file(cx: &Cx, settings: &mut Settings) -> Result<()> {
    let Some(table) = cx.config.tables.get("providers") else { return Ok(()) };
    let wrong = |why: String| Failure::usage(format_args!("{}: {why}", cx.config.user_file.display()));
    let providers = table.value.as_table().ok_or_else(|| wrong("`providers` is a table".to_owned()))?;
    for (id, entry) in providers {
        let entry = entry.as_table().ok_or_else(|| wrong(format!("`providers.{id}` is a table")))?;
        for (field, value) in fields(entry) {
            let text = text(value).ok_or_else(|| {
                wrong(format!("`providers.{id}.{field}` is a text, a number, yes or no, or a list of texts"))
            })?;
            settings
                .apply(id, &field, &text, |name| std::env::var(name).ok())
                .map_err(|why| wrong(format!("`providers.{id}.{field}`: {why}")))?;
        }
    }
    Ok(())
}

/// The fields of an entry; those of tables in it with their names after a dot.
fn fields(entry: &toml::Table) -> Vec<(String, &toml::Value)> {
    let mut fields = Vec::new();
    for (field, value) in entry {
        match value {
            toml::Value::Table(inner) if ["headers", "model", "price"].contains(&field.as_str()) => {
                add_fields(field, inner, &mut fields);
            }
            value => fields.push((field.clone(), value)),
        }
    }
    fields
}

fn add_fields<'a>(prefix: &str, table: &'a toml::Table, fields: &mut Vec<(String, &'a toml::Value)>) {
    for (name, value) in table {
        let name = format!("{prefix}.{name}");
        match value {
            toml::Value::Table(inner) => add_fields(&name, inner, fields),
            value => fields.push((name, value)),
        }
    }
}

/// A text, a number, yes or no, or a list of texts, which commas separate then.
fn text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Boolean(yes) => Some(yes.to_string()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(|item| item.as_str()).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn entries_become_lines() {
        let entry: toml::Table = toml::from_str(
            "api = 'chat'\nenabled = false\nmodels = ['a', 'b']\nheaders = { x = 'y' }\nbad = [1]\ntimeout = 9\n\
             price.input = 2\nmodel.'a.b' = { temperature = 0.5, price = { output = 1.5 } }",
        )
        .unwrap();
        let lines: Vec<_> = fields(&entry).into_iter().map(|(field, value)| (field, text(value))).collect();
        let line = |field: &str, text: &str| (field.to_owned(), Some(text.to_owned()));
        let expected = [
            line("api", "chat"),
            ("bad".to_owned(), None),
            line("enabled", "false"),
            line("headers.x", "y"),
            line("model.a.b.price.output", "1.5"),
            line("model.a.b.temperature", "0.5"),
            line("models", "a,b"),
            line("price.input", "2"),
            line("timeout", "9"),
        ];
        assert_eq!(lines, expected);
    }
}
