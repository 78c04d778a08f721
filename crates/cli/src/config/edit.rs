//! Changes one value in a TOML text and keeps the rest, including comments and order.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use crate::error::{Failure, Result};

/// `text` with `key` (dotted: `agents.mine.command`) set to `value`, which is TOML.
pub(crate) fn set(text: &str, key: &str, value: &str) -> Result<String> {
    let wrong = |error: toml_edit::TomlError| Failure::usage(format_args!("`{key}`: {error}"));
    let mut document: DocumentMut = text.parse().map_err(wrong)?;
    let value: Value = value.parse().map_err(wrong)?;
    let (path, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let is_first = path.is_empty() && table.is_empty();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let new = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let item = table.entry(part).or_insert_with(new);
        table = item
            .as_table_like_mut()
            .ok_or_else(|| Failure::usage(format_args!("`{part}` in `{key}` is not a table")))?;
    }
    match table.get_mut(name) {
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        Some(_) => return Err(Failure::usage(format_args!("`{key}` is a table"))),
        None => drop(table.insert(name, Item::Value(value))),
    }
    if is_first {
        keep_head_comment(&mut document, name);
    }
    Ok(document.to_string())
}

/// Puts the first setting of a file after the comment at its head.
fn keep_head_comment(document: &mut DocumentMut, name: &str) {
    let comments = document.trailing().as_str().unwrap_or_default().to_owned();
    let (head, rest) = match comments.find("\n\n") {
        Some(at) => comments.split_at(at + 1),
        None => (comments.as_str(), ""),
    };
    if let Some(mut key) = document.key_mut(name) {
        key.leaf_decor_mut().set_prefix(head);
        document.set_trailing(rest);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::set;

    #[test]
    fn comments_stay_and_values_change() {
        let text = "# mine\nformat = \"text\" # why\n\n[agents.a]\ncommand = \"x\"\n";
        let changed = set(text, "format", "\"json\"").unwrap();
        assert_eq!(changed, "# mine\nformat = \"json\" # why\n\n[agents.a]\ncommand = \"x\"\n");
        let changed = set(text, "timeout", "3").unwrap();
        assert_eq!(changed, "# mine\nformat = \"text\" # why\ntimeout = 3\n\n[agents.a]\ncommand = \"x\"\n");
        let changed = set(text, "agents.b.command", "\"y\"").unwrap();
        assert!(changed.ends_with("command = \"x\"\n\n[agents.b]\ncommand = \"y\"\n"), "{changed}");
        assert_eq!(set("", "ttl", "1").unwrap(), "ttl = 1\n");
        let text = "# mine\nttl = 1\n\n# of a\n[agents.a]\ncommand = \"x\"\n";
        let changed = set(text, "timeout", "3").unwrap();
        assert_eq!(changed, "# mine\nttl = 1\ntimeout = 3\n\n# of a\n[agents.a]\ncommand = \"x\"\n");
        assert_eq!(set("# mine\n", "ttl", "1").unwrap(), "# mine\nttl = 1\n");
        assert_eq!(set("# mine\n\n# [a]\n", "ttl", "1").unwrap(), "# mine\nttl = 1\n\n# [a]\n");
        let changed = set("# of a\n[agents.a]\ncommand = \"x\"\n", "ttl", "1").unwrap();
        assert_eq!(changed, "ttl = 1\n# of a\n[agents.a]\ncommand = \"x\"\n");
    }

    #[test]
    fn values_of_every_form_change() {
        let inline = set("agents = { a = { command = \"x\" } }\n", "agents.a.command", "\"y\"").unwrap();
        assert_eq!(inline, "agents = { a = { command = \"y\" } }\n");
        assert_eq!(set("timeout = [\n1,\n]\n", "timeout", "3").unwrap(), "timeout = 3\n");
        let dotted = set("agents.a.command = \"x\"\n", "agents.a.command", "\"y\"").unwrap();
        assert_eq!(dotted, "agents.a.command = \"y\"\n");
        assert!(set("agents = 1\n", "agents.a.command", "\"y\"").is_err());
        assert!(set("[ttl]\n", "ttl", "1").is_err());
    }
}
