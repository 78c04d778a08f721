//! Puts what was taken over into a TOML text, whose comments and order stay.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Failure, Result};

/// A text as TOML.
fn text(text: &str) -> String {
    // The escapes of JSON are those of TOML, which wants one more letter escaped.
    Value::String(text.to_owned()).to_string().replace('\u{7f}', "\\u007f")
}

/// A key as TOML: bare where it can be.
fn key(name: &str) -> String {
    let bare = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { text(name) }
}

fn list(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| text(word.as_ref())).collect();
    format!("[{}]", words.join(", "))
}

/// `[agents.NAME]` and what belongs to it.
pub(super) fn agent_section(
    name: &str,
    argv: &[String],
    env: &BTreeMap<String, String>,
    begins: [(&str, Option<&str>); 2],
) -> String {
    let mut section = format!("[agents.{}]\nargv = {}\n", key(name), list(argv));
    for (name, value) in begins {
        if let Some(value) = value {
            section.push_str(&format!("{name} = {}\n", text(value)));
        }
    }
    if !env.is_empty() {
        let pairs: Vec<String> =
            env.iter().map(|(name, value)| format!("{} = {}", key(name), text(value))).collect();
        section.push_str(&format!("env = {{ {} }}\n", pairs.join(", ")));
    }
    section
}

/// `[[mcp_servers]]` with what JSON says, or `None` if TOML cannot say it.
pub(super) fn server_section(server: &Value) -> Option<String> {
    let mut section = "[[mcp_servers]]\n".to_owned();
    for (name, value) in server.as_object()? {
        if !value.is_null() {
            section.push_str(&format!("{} = {}\n", key(name), inline(value)?));
        }
    }
    Some(section)
}

fn inline(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(string) => text(string),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Object(map) => {
            let pairs = map.iter().map(|(name, value)| Some(format!("{} = {}", key(name), inline(value)?)));
            format!("{{ {} }}", pairs.collect::<Option<Vec<_>>>()?.join(", "))
        }
    })
}

/// Adds sections at the end, under a remark that says where they are from.
pub(super) fn append(file: &str, remark: &str, sections: &[String]) -> String {
    let mut out = file.trim_end().to_owned();
    for section in sections {
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(&format!("# {remark}\n{}", section.trim_end()));
    }
    out.push('\n');
    out
}

/// Takes the section of an agent, and those below it, out. Remarks in front of it stay: they may belong to what is before.
pub(super) fn without_agent(file: &str, name: &str) -> Result<String> {
    let mut out = String::new();
    let mut inside = false;
    for line in file.split_inclusive('\n') {
        if line.trim_start().starts_with('[')
            && let Some(path) = header(line)
        {
            inside = matches!(path.as_slice(), [table, agent, ..] if table == "agents" && agent == name);
        }
        if !inside {
            out.push_str(line);
        }
    }
    let parsed = out.parse::<toml::Table>().ok();
    let gone = parsed.is_some_and(|table| {
        table.get("agents").and_then(toml::Value::as_table).is_none_or(|agents| !agents.contains_key(name))
    });
    if gone {
        Ok(out)
    } else {
        Err(Failure::runtime(format_args!("cannot replace `agents.{name}` here; edit the file by hand")))
    }
}

/// The names in a header: `[agents."a b".env]` are three.
fn header(line: &str) -> Option<Vec<String>> {
    let table = line.parse::<toml::Table>().ok()?;
    let mut path = Vec::new();
    let mut at = Some(&table);
    while let Some((name, value)) = at.and_then(|table| table.iter().next()) {
        path.push(name.clone());
        at = match value {
            toml::Value::Table(inner) => Some(inner),
            toml::Value::Array(items) => items.first().and_then(toml::Value::as_table),
            _ => None,
        };
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn sections_read_back() {
        let env = BTreeMap::from([("A B".to_owned(), "\"x\"\n".to_owned())]);
        let section = agent_section(
            "my agent",
            &["a b".to_owned(), "c'\"".to_owned()],
            &env,
            [("mode", Some("plan")), ("model", None)],
        );
        let file = append("# mine\nformat = \"text\" # why\n\n\n", "From there.", &[section]);
        assert!(
            file.starts_with("# mine\nformat = \"text\" # why\n\n# From there.\n[agents.\"my agent\"]\n"),
            "{file}"
        );
        let table: toml::Table = file.parse().unwrap();
        let agent = &table["agents"]["my agent"];
        assert_eq!(agent["argv"][1].as_str(), Some("c'\""));
        assert_eq!((agent["mode"].as_str(), agent.get("model")), (Some("plan"), None));
        assert_eq!(agent["env"]["A B"].as_str(), Some("\"x\"\n"));
        let server =
            json!({ "name": "s", "args": ["x"], "env": [{ "name": "A", "value": "1" }], "type": null });
        let table: toml::Table = server_section(&server).unwrap().parse().unwrap();
        assert_eq!(table["mcp_servers"][0]["env"][0]["value"].as_str(), Some("1"));
    }

    #[test]
    fn one_agent_goes_and_the_rest_stays() {
        let file = "# a\n[agents.\"x\"] # this\nargv = ['x']\n[agents.x.env]\nA = '1'\n\n# b\n[agents.y]\nargv = ['y']\n";
        assert_eq!(without_agent(file, "x").unwrap(), "# a\n[agents.y]\nargv = ['y']\n");
        assert!(without_agent("agents = { x = { argv = ['x'] } }\n", "x").is_err());
        assert!(without_agent("agents.x.argv = ['x']\n", "x").is_err());
    }
}
