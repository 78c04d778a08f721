//! ROOT-04 and ROOT-05: paths are absolute, lines count from 1.

use serde_json::Value;

use super::super::{Book, Findings, Said, Watcher};
use super::items;
use crate::Role;

pub(super) struct Paths;

impl Watcher for Paths {
    fn rules(&self) -> &'static [&'static str] {
        &["ROOT-04", "ROOT-05", "FS-04", "FS-05", "FS-07", "TERM-13", "TOOL-15", "TOOL-18", "LIST-10"]
    }

    fn see(&mut self, _: &Book, said: &Said<'_>, out: &mut Findings) {
        if said.from != Role::Agent {
            return;
        }
        if let Some((_, result)) = said.result_of("session/list") {
            for info in items(&result["sessions"]) {
                path(said, &info["cwd"], "LIST-10", out);
                items(&info["additionalDirectories"]).for_each(|root| path(said, root, "ROOT-04", out));
            }
        }
        let Some((method, params)) = said.call(Role::Agent) else { return };
        match method {
            "fs/read_text_file" | "fs/write_text_file" => {
                path(said, &params["path"], "FS-04", out);
                line(said, &params["line"], "FS-05", out);
                out.check("FS-07", said, params["sessionId"].is_string(), || {
                    format!("{method} names no session")
                });
            }
            "terminal/create" if !params["cwd"].is_null() => path(said, &params["cwd"], "TERM-13", out),
            "session/request_permission" => tool(said, &params["toolCall"], out),
            "session/update" => {
                let update = &params["update"];
                match update["sessionUpdate"].as_str() {
                    Some("tool_call" | "tool_call_update") => tool(said, update, out),
                    Some("subagent_update") if !update["cwd"].is_null() => {
                        path(said, &update["cwd"], "ROOT-04", out)
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

fn tool(said: &Said<'_>, call: &Value, out: &mut Findings) {
    for place in items(&call["locations"]) {
        path(said, &place["path"], "TOOL-18", out);
        line(said, &place["line"], "TOOL-18", out);
    }
    for item in items(&call["content"]).filter(|item| item["type"] == "diff") {
        path(said, &item["path"], "TOOL-15", out);
        let texts = item["newText"].is_string() && (item["oldText"].is_string() || item["oldText"].is_null());
        out.check("TOOL-15", said, texts, || {
            "a diff needs `newText`, and `oldText` is a text or null".to_owned()
        });
    }
}

/// Breaks `rule` and ROOT-04 together, for a path that is a string; what is none is a matter of `rule` alone.
fn path(said: &Said<'_>, path: &Value, rule: &'static str, out: &mut Findings) {
    let Some(text) = path.as_str() else {
        out.fail(rule, said, format!("a path is {path}"));
        return;
    };
    let why = || format!("the path {text:?} is not absolute");
    out.check("ROOT-04", said, is_absolute(text), why);
    if rule != "ROOT-04" {
        out.check(rule, said, is_absolute(text), why);
    }
}

fn line(said: &Said<'_>, line: &Value, rule: &'static str, out: &mut Findings) {
    if line.is_null() {
        return;
    }
    let fits = line.as_u64().is_some_and(|line| line > 0);
    let why = || format!("line {line}: lines count from 1");
    out.check("ROOT-05", said, fits, why);
    out.check(rule, said, fits, why);
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
