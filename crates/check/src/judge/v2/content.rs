//! Values: permission options, diffs, terminal bytes, commands.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::items;
use crate::judge::agent::is_absolute;
use crate::judge::message::text;
use crate::judge::{EventLog, Findings, Message, Watcher};
use crate::role::Role;

/// Judges values.
#[derive(Debug)]
pub(super) struct Contents;

impl Watcher for Contents {
    fn rules(&self) -> &'static [&'static str] {
        &["V2-24", "V2-32", "V2-33", "V2-41"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from == Role::Agent && message.asks("session/request_permission") {
            options(message, &message.params()["options"], out);
            diffs(message, &message.params()["subject"]["toolCall"]["content"], out);
        }
        if let Some((_, kind, update)) = message.update() {
            match kind {
                "terminal_output_chunk" => bytes(message, &update["data"], out),
                "terminal_update" => bytes(message, &update["output"]["data"], out),
                "tool_call_update" => diffs(message, &update["content"], out),
                "tool_call_content_chunk" => diff(message, &update["content"], out),
                "available_commands_update" => commands(message, &update["availableCommands"], out),
                _ => {}
            }
        }
        for method in ["session/new", "session/resume", "session/fork"] {
            if let Some((_, result)) = log.result_of(message, method) {
                commands(message, &result["availableCommands"], out);
            }
        }
    }
}

fn options(message: &Message, options: &Value, out: &mut Findings) {
    let mut ids = BTreeSet::new();
    if let Some(twice) = items(options).map(|option| text(&option["optionId"])).find(|id| !ids.insert(*id)) {
        out.fail("V2-24", message, format!("two options have the id {twice:?}"));
    }
}

fn bytes(message: &Message, data: &Value, out: &mut Findings) {
    let Some(data) = data.as_str() else { return };
    let fits = STANDARD.decode(data).is_ok();
    out.check("V2-32", message, fits, || format!("terminal bytes are not base64: {data:?}"));
}

fn commands(message: &Message, commands: &Value, out: &mut Findings) {
    let mut names = BTreeSet::new();
    for command in items(commands) {
        let name = text(&command["name"]);
        let plain = !name.is_empty() && !name.contains(|c: char| c == '/' || c.is_whitespace());
        out.check("V2-41", message, plain, || format!("{name:?} is no name of a command"));
        if plain && !names.insert(name) {
            out.fail("V2-41", message, format!("two commands have the name {name:?}"));
        }
    }
}

fn diffs(message: &Message, content: &Value, out: &mut Findings) {
    items(content).for_each(|item| diff(message, item, out));
}

/// Paths are absolute, and a patch changes the listed files.
// V2-33
fn diff(message: &Message, item: &Value, out: &mut Findings) {
    if item["type"] != "diff" || !item["changes"].is_array() {
        return;
    }
    let changes: Vec<&Value> = items(&item["changes"]).collect();
    let paths: BTreeSet<&str> = changes
        .iter()
        .flat_map(|change| [&change["path"], &change["oldPath"]])
        .filter_map(Value::as_str)
        .collect();
    if let Some(path) = paths.iter().find(|path| !is_absolute(path)) {
        return out.fail("V2-33", message, format!("the path {path:?} is not absolute"));
    }
    if item["patch"]["format"] == "git_patch"
        && let Some(other) = patched(text(&item["patch"]["text"])).find(|path| !paths.contains(path))
    {
        let why = format!("the patch changes {other:?}, which is not among the changes");
        return out.fail("V2-33", message, why);
    }
    out.pass("V2-33", message);
}

/// The files of a patch. Lines inside a hunk may look like headers, so only those directly before
/// one count.
fn patched(patch: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = patch.lines().collect();
    let mut found = Vec::new();
    for three in lines.windows(3) {
        let [old, new, hunk] = three else { continue };
        if let (Some(old), Some(new)) = (old.strip_prefix("--- "), new.strip_prefix("+++ "))
            && hunk.starts_with("@@")
        {
            found.extend([old, new]);
        }
    }
    found
        .into_iter()
        .map(|path| path.split('\t').next().unwrap_or(path))
        // Git quotes unusual paths; what they name is not decided here.
        .filter(|path| *path != "/dev/null" && !path.starts_with('"'))
}

#[cfg(test)]
mod tests {
    use super::patched;

    #[test]
    fn files_of_a_patch() {
        let patch = "--- /w/a\n+++ /w/a\n@@ -1,2 +1,2 @@\n-x\n+y\n--- a\n+++ b\n z\n--- /dev/null\n+++ /w/b\n@@ -0,0 +1 @@\n+n\n";
        assert_eq!(patched(patch).collect::<Vec<_>>(), ["/w/a", "/w/a", "/w/b"]);
    }
}
