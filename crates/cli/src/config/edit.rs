//! Changes one value in a TOML text and leaves the rest, comments included, as it is.

use crate::error::{Failure, Result};

/// `text` with `key` (dotted: `agents.mine.command`) set to `value`, which is TOML.
pub(crate) fn set(text: &str, key: &str, value: &str) -> Result<String> {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let start = match table {
        "" => 0,
        table => match lines.iter().position(|line| header(line) == Some(table)) {
            Some(at) => at + 1,
            None => {
                if lines.last().is_some_and(|line| !line.trim().is_empty()) {
                    lines.push(String::new());
                }
                lines.push(format!("[{table}]"));
                lines.len()
            }
        },
    };
    let end =
        lines.iter().skip(start).position(|line| line.trim_start().starts_with('[')).map(|at| at + start);
    let end = end.unwrap_or(lines.len());
    let assignment = format!("{name} = {value}");
    match lines.iter().take(end).skip(start).position(|line| assigns(line, name)) {
        Some(at) => {
            if let Some(line) = lines.get_mut(start + at) {
                *line = assignment;
            }
        }
        None => {
            // Behind the last line of the table that says something. Remarks behind that belong to what follows.
            let says = |line: &&String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
            let table: Vec<&String> = lines.iter().take(end).skip(start).collect();
            let last = table.iter().rposition(says).map(|at| at + 1);
            // In a table that says nothing, behind the remarks at its head.
            let head = || table.iter().position(|line| line.trim().is_empty());
            let whole = if end == lines.len() { table.len() } else { 0 };
            let at = start + last.or_else(head).unwrap_or(whole);
            lines.insert(at, assignment);
        }
    }
    let mut text = lines.join("\n");
    text.push('\n');
    // A value that spans lines, an array of tables: what this cannot do must not damage the file.
    let fits = text.parse::<toml::Table>().is_ok_and(|table| says(&table, key, value));
    if fits {
        Ok(text)
    } else {
        Err(Failure::runtime(format_args!("cannot change `{key}` here; edit the file by hand")))
    }
}

fn header(line: &str) -> Option<&str> {
    line.trim().strip_prefix('[')?.strip_suffix(']').map(str::trim)
}

fn assigns(line: &str, name: &str) -> bool {
    line.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// Whether the table, as it is read back, says what was asked for.
fn says(table: &toml::Table, key: &str, value: &str) -> bool {
    let Ok(wanted) = format!("value = {value}").parse::<toml::Table>() else { return false };
    let mut at = Some(table);
    let (path, name) = key.rsplit_once('.').unwrap_or(("", key));
    for part in path.split('.').filter(|part| !part.is_empty()) {
        at = at.and_then(|table| table.get(part)).and_then(toml::Value::as_table);
    }
    at.and_then(|table| table.get(name)) == wanted.get("value")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::set;

    #[test]
    fn comments_stay_and_values_change() {
        let text = "# mine\nformat = \"text\" # why\n\n[agents.a]\ncommand = \"x\"\n";
        let changed = set(text, "format", "\"json\"").unwrap();
        assert_eq!(changed, "# mine\nformat = \"json\"\n\n[agents.a]\ncommand = \"x\"\n");
        let changed = set(text, "timeout", "3").unwrap();
        assert_eq!(changed, "# mine\nformat = \"text\" # why\ntimeout = 3\n\n[agents.a]\ncommand = \"x\"\n");
        let changed = set(text, "agents.b.command", "\"y\"").unwrap();
        assert!(changed.ends_with("command = \"x\"\n\n[agents.b]\ncommand = \"y\"\n"));
        assert_eq!(set("", "ttl", "1").unwrap(), "ttl = 1\n");
        // Remarks stay with what they are about.
        let text = "# mine\nttl = 1\n\n# of a\n[agents.a]\ncommand = \"x\"\n";
        let changed = set(text, "timeout", "3").unwrap();
        assert_eq!(changed, "# mine\nttl = 1\ntimeout = 3\n\n# of a\n[agents.a]\ncommand = \"x\"\n");
        assert_eq!(set("# mine\n", "ttl", "1").unwrap(), "# mine\nttl = 1\n");
        let changed = set("# of a\n[agents.a]\ncommand = \"x\"\n", "ttl", "1").unwrap();
        assert_eq!(changed, "ttl = 1\n# of a\n[agents.a]\ncommand = \"x\"\n");
    }

    #[test]
    fn what_cannot_be_changed_line_by_line_is_refused() {
        assert!(set("agents = { a = { command = \"x\" } }\n", "agents.a.command", "\"y\"").is_err());
        assert!(set("timeout = [\n1,\n]\n", "timeout", "3").is_err());
    }
}
