//! Changes one value in a TOML text and keeps the rest, including comments and order.

use std::fs;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use crate::error::{Context as _, Failure, Result};
use crate::paths::replace;

/// Sets `key` to `value`, which is TOML, in a file of settings, which is created if it is missing.
pub(crate) fn write_setting(path: &Path, key: &str, value: &str, is_project: bool) -> Result<()> {
    let before = fs::read_to_string(path).unwrap_or_default();
    if before.parse::<toml::Table>().is_err() {
        return Err(super::wrong(path, "this is not valid TOML; fix it first"));
    }
    write_file(path, &set(&before, key, value)?, is_project)
}

/// Removes `key` from a file of settings. Returns whether it was there.
pub(crate) fn remove_setting(path: &Path, key: &str, is_project: bool) -> Result<bool> {
    let before = fs::read_to_string(path).unwrap_or_default();
    let mut document: DocumentMut =
        before.parse().map_err(|_| super::wrong(path, "this is not valid TOML; fix it first"))?;
    let was_there = remove(document.as_table_mut(), &key.split('.').collect::<Vec<_>>());
    if was_there {
        write_file(path, &document.to_string(), is_project)?;
    }
    Ok(was_there)
}

/// Removes a key, and the tables that are empty then.
fn remove(table: &mut dyn TableLike, path: &[&str]) -> bool {
    let (name, inner) = match path {
        [] => return false,
        [name] => return table.remove(name).is_some(),
        [name, inner @ ..] => (name, inner),
    };
    let Some(next) = table.get_mut(name).and_then(Item::as_table_like_mut) else { return false };
    let was_there = remove(next, inner);
    if was_there && next.is_empty() {
        table.remove(name);
    }
    was_there
}

/// Writes a file of settings. The user's may hold credentials and is private; the project's belongs
/// to the repository.
pub(crate) fn write_file(path: &Path, text: &str, is_project: bool) -> Result<()> {
    let written = if is_project { fs::write(path, text) } else { replace(path, text.as_bytes()) };
    written.context(path.display())
}

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
    use super::{remove, set};

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
    fn values_are_removed_and_the_rest_stays() {
        let without = |text: &str, key: &str| {
            let mut document: toml_edit::DocumentMut = text.parse().unwrap();
            let path: Vec<&str> = key.split('.').collect();
            remove(document.as_table_mut(), &path).then(|| document.to_string())
        };
        let text = "# mine\nttl = 1\ntimeout = 3 # long\n\n[agents.a]\ncommand = \"x\"\n";
        assert_eq!(without(text, "timeout").unwrap(), "# mine\nttl = 1\n\n[agents.a]\ncommand = \"x\"\n");
        assert_eq!(without(text, "agents.a.command").unwrap(), "# mine\nttl = 1\ntimeout = 3 # long\n");
        assert_eq!(without(text, "agents.a").unwrap(), "# mine\nttl = 1\ntimeout = 3 # long\n");
        assert_eq!(without(text, "agents.b.command"), None);
        assert_eq!(without(text, "ttl.x"), None);
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
