//! Paths and line numbers: paths are absolute, lines count from 1.

// ROOT-04, ROOT-05

use serde_json::Value;

use super::super::message::asked_tool;
use super::super::{EventLog, Findings, Message, Watcher};
use super::items;
use crate::Role;

pub(super) struct Paths;

impl Watcher for Paths {
    fn rules(&self) -> &'static [&'static str] {
        &["ROOT-04", "ROOT-05", "FS-04", "FS-05", "FS-07", "TERM-13", "TOOL-15", "TOOL-18", "LIST-10"]
    }

    fn observe(&mut self, log: &EventLog, message: &Message, out: &mut Findings) {
        if message.from != Role::Agent {
            return;
        }
        if let Some((_, result)) = log.result_of(message, "session/list") {
            for info in items(&result["sessions"]) {
                path(message, &info["cwd"], "LIST-10", out);
                items(&info["additionalDirectories"]).for_each(|root| path(message, root, "ROOT-04", out));
            }
        }
        let Some((method, params)) = message.call(Role::Agent) else { return };
        match method {
            "fs/read_text_file" | "fs/write_text_file" => {
                path(message, &params["path"], "FS-04", out);
                line(message, &params["line"], "FS-05", out);
                out.check("FS-07", message, params["sessionId"].is_string(), || {
                    format!("{method} names no session")
                });
            }
            "terminal/create" if !params["cwd"].is_null() => path(message, &params["cwd"], "TERM-13", out),
            "session/request_permission" => {
                tool(message, asked_tool(params), out);
                // The subject of a question about a command, in version 2.
                cwd(message, &params["subject"]["cwd"], out);
            }
            "session/update" => {
                let update = &params["update"];
                match update["sessionUpdate"].as_str() {
                    Some("tool_call" | "tool_call_update") => tool(message, update, out),
                    Some("subagent_update" | "terminal_update") => cwd(message, &update["cwd"], out),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// A directory, if one is named.
// ROOT-04
fn cwd(message: &Message, cwd: &Value, out: &mut Findings) {
    if !cwd.is_null() {
        path(message, cwd, "ROOT-04", out);
    }
}

fn tool(message: &Message, call: &Value, out: &mut Findings) {
    for place in items(&call["locations"]) {
        path(message, &place["path"], "TOOL-18", out);
        line(message, &place["line"], "TOOL-18", out);
    }
    // V2-33 judges the diffs of version 2, which list changes.
    let diffs =
        items(&call["content"]).filter(|item| item["type"] == "diff" && item.get("changes").is_none());
    for item in diffs {
        path(message, &item["path"], "TOOL-15", out);
        let texts = item["newText"].is_string() && (item["oldText"].is_string() || item["oldText"].is_null());
        out.check("TOOL-15", message, texts, || {
            "a diff needs `newText`, and `oldText` is a text or null".to_owned()
        });
    }
}

/// Judges a path. A relative one breaks `rule` and the rule about all paths; a value that is not a
/// string breaks `rule` alone.
// ROOT-04
fn path(message: &Message, path: &Value, rule: &'static str, out: &mut Findings) {
    let Some(text) = path.as_str() else {
        out.fail(rule, message, format!("a path is {path}"));
        return;
    };
    let why = || format!("the path {text:?} is not absolute");
    out.check("ROOT-04", message, is_absolute(text), why);
    if rule != "ROOT-04" {
        out.check(rule, message, is_absolute(text), why);
    }
}

fn line(message: &Message, line: &Value, rule: &'static str, out: &mut Findings) {
    if line.is_null() {
        return;
    }
    let fits = line.as_u64().is_some_and(|line| line > 0);
    let why = || format!("line {line}: lines count from 1");
    out.check("ROOT-05", message, fits, why);
    out.check(rule, message, fits, why);
}

/// By the rules of any platform: a recording may come from another one.
pub(crate) fn is_absolute(path: &str) -> bool {
    let drive = |path: &str| {
        let mut letters = path.chars();
        letters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
            && letters.next() == Some(':')
            && matches!(letters.next(), Some('/' | '\\'))
    };
    path.starts_with('/') || path.starts_with("\\\\") || drive(path)
}
