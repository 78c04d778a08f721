//! The effects of a permission request, as far as the agent states them.
//!
//! Everything here is the agent's claim. It is turned into effects so that all of it is shown and
//! all of it must be covered before anything is approved: the more an agent states, the more has to
//! be allowed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attache::wire::v1::{ContentBlock, RequestPermissionRequest, ToolCallContent, ToolKind};
use serde_json::Value;

use crate::net::{Reach, reach_by_name};

use super::{CommandLine, Content, Destination, Effect, FilePath, Run, ToolUse};

/// A permission request in the terms of the policy.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The agent's title.
    pub title: Option<String>,
    /// The name of the tool, as the agent gives it.
    pub tool: Option<String>,
    /// Texts that the agent wants to be shown.
    pub notes: Vec<String>,
    /// The effects; never empty.
    pub effects: Vec<Effect>,
}

/// Members of a tool's input that name files.
const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "filename",
    "fileName",
    "abs_path",
    "absPath",
    "absolute_path",
    "absolutePath",
    "notebook_path",
    "notebookPath",
    "directory",
    "dir",
    "dir_path",
    "dirPath",
    "target_file",
    "targetFile",
];
/// Members that name the file that is moved, and its new path.
const SOURCES: &[&str] = &["old_path", "oldPath", "source", "from"];
const TARGETS: &[&str] = &["new_path", "newPath", "destination", "to"];
/// Members that name commands.
const COMMANDS: &[&str] = &["command", "cmd", "commands", "command_line", "commandLine", "script", "shell"];
/// Members that name the directory of a command.
const DIRECTORIES: &[&str] = &["cwd", "workdir", "working_directory", "workingDirectory"];
/// Members that name tools.
const NAMES: &[&str] = &["name", "tool", "toolName", "tool_name"];

impl Claim {
    /// Reads a request. Relative paths begin in the first of `roots`.
    pub fn new(request: &RequestPermissionRequest, roots: &[PathBuf]) -> Self {
        let call = &request.tool_call;
        let input: Value = call.raw_input.as_ref().and_then(|input| input.parse().ok()).unwrap_or_default();
        let base = roots.first().map_or(Path::new("/"), PathBuf::as_path);
        let mut reader = Reader { base, input: &input, effects: Vec::new() };
        let mut notes = Vec::new();
        for content in call.content.iter().flatten() {
            match content {
                ToolCallContent::Diff(diff) => reader.add(Effect::Write {
                    path: FilePath::resolve(&diff.path, base),
                    content: Content::known(diff.old_text.as_deref(), &diff.new_text),
                }),
                ToolCallContent::Content(content) => {
                    if let ContentBlock::Text(text) = &content.content {
                        notes.push(text.text.clone());
                    }
                }
                _ => {}
            }
        }
        reader.add_commands(call.kind);
        reader.add_renames();
        let locations = call.locations.iter().flatten().map(|location| location.path.as_str());
        reader.add_paths(call.kind, locations);
        reader.add_hosts(&input);
        let tool = call.name.clone().or_else(|| first_text(&input, NAMES));
        let title = call.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        if reader.effects.is_empty() {
            reader.add(undescribed(call.kind, title, tool.clone(), &input, base));
        }
        Claim { title: title.map(str::to_owned), tool, notes, effects: reader.effects }
    }
}

/// The effect of a request that names nothing.
fn undescribed(
    kind: Option<ToolKind>,
    title: Option<&str>,
    tool: Option<String>,
    input: &Value,
    base: &Path,
) -> Effect {
    match (kind, title) {
        // A search without a path is a search in the working directory.
        (Some(ToolKind::Read | ToolKind::Search), _) => Effect::Read(FilePath::resolve(base, base)),
        // Agents that do not state the command often put it into the title.
        (Some(ToolKind::Execute), Some(title)) => {
            Effect::Run(Run::new(CommandLine::unclear(title), FilePath::resolve(base, base)))
        }
        _ => {
            let shown = (!input.is_null()).then(|| serde_json::to_string_pretty(input).unwrap_or_default());
            Effect::Tool(ToolUse { server: None, name: tool, input: shown })
        }
    }
}

struct Reader<'a> {
    base: &'a Path,
    input: &'a Value,
    effects: Vec<Effect>,
}

impl Reader<'_> {
    fn add(&mut self, effect: Effect) {
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }

    fn add_commands(&mut self, kind: Option<ToolKind>) {
        let mut lines = Vec::new();
        match (first_text(self.input, COMMANDS), self.input.get("args").and_then(texts)) {
            // A program and its arguments apart.
            (Some(program), Some(args)) => lines.push(CommandLine::program(&program, &args)),
            _ => members(self.input, COMMANDS).for_each(|value| read_commands(value, &mut lines)),
        }
        // A tool's input may be the command itself.
        if let (Some(ToolKind::Execute), Value::String(text)) = (kind, self.input) {
            lines.push(CommandLine::shell(text));
        }
        let cwd = first_text(self.input, DIRECTORIES).map_or_else(|| self.base.to_owned(), PathBuf::from);
        let env = variables(self.input.get("env"));
        for line in lines {
            let run = Run::new(line, FilePath::resolve(&cwd, self.base));
            self.add(Effect::Run(Run { env: env.clone(), ..run }));
        }
    }

    fn add_renames(&mut self) {
        let (from, to) = (first_text(self.input, SOURCES), first_text(self.input, TARGETS));
        let path = |text: String| FilePath::resolve(text, self.base);
        let effect = match (from.filter(|from| !is_address(from)), to.filter(|to| !is_address(to))) {
            (Some(from), Some(to)) => Effect::Rename { from: path(from), to: path(to) },
            (Some(one), None) | (None, Some(one)) => Effect::Touch(path(one)),
            (None, None) => return,
        };
        self.add(effect);
    }

    /// Files that the request names beside its changes. The agent's kind says what it wants with
    /// them; a kind that lies gets the agent nothing but an answer, because what it then does
    /// through this side is judged by itself.
    fn add_paths<'s>(&mut self, kind: Option<ToolKind>, locations: impl Iterator<Item = &'s str>) {
        let mut named: Vec<String> = locations.map(str::to_owned).collect();
        for value in members(self.input, PATHS) {
            match value {
                Value::String(path) => named.push(path.clone()),
                Value::Array(paths) => {
                    named.extend(paths.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
        }
        named.retain(|path| !path.is_empty() && !is_address(path));
        for path in named {
            let path = FilePath::resolve(path, self.base);
            if self
                .effects
                .iter()
                .any(|effect| effect.paths().iter().any(|known| known.real() == path.real()))
            {
                continue;
            }
            self.add(match kind {
                Some(ToolKind::Read | ToolKind::Search) => Effect::Read(path),
                Some(ToolKind::Edit) => Effect::Write { path, content: Content::Unknown },
                Some(ToolKind::Delete) => Effect::Delete(path),
                _ => Effect::Touch(path),
            });
        }
    }

    /// Every address anywhere in the input.
    fn add_hosts(&mut self, value: &Value) {
        match value {
            Value::String(text) if is_address(text) => {
                self.add(Effect::Connect(destination(text.trim()).unwrap_or_else(unreadable)));
            }
            Value::Array(values) => values.iter().for_each(|value| self.add_hosts(value)),
            Value::Object(values) => values.values().for_each(|value| self.add_hosts(value)),
            _ => {}
        }
    }
}

fn members<'a>(input: &'a Value, names: &'a [&str]) -> impl Iterator<Item = &'a Value> {
    names.iter().filter_map(|name| input.get(name))
}

fn first_text(input: &Value, names: &[&str]) -> Option<String> {
    let text =
        |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    members(input, names).find_map(text)
}

/// A list of texts, which is not empty.
fn texts(value: &Value) -> Option<Vec<&str>> {
    let texts: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
    texts.filter(|texts| !texts.is_empty())
}

fn read_commands(value: &Value, lines: &mut Vec<CommandLine>) {
    match value {
        Value::String(text) => lines.push(CommandLine::shell(text)),
        Value::Array(words) => {
            let texts: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match texts.as_deref() {
                Some([program, args @ ..]) => lines.push(CommandLine::program(program, args)),
                Some([]) => {}
                None => lines.push(CommandLine::unclear(&value.to_string())),
            }
        }
        Value::Null => {}
        other => lines.push(CommandLine::unclear(&other.to_string())),
    }
}

/// Variables as an object, or as a list of names and values.
fn variables(value: Option<&Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Some(Value::Object(map)) => map.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        Some(Value::Array(list)) => {
            let pair = |value: &Value| Some((text(value.get("name")?), text(value.get("value")?)));
            list.iter().filter_map(pair).collect()
        }
        _ => BTreeMap::new(),
    }
}

fn is_address(text: &str) -> bool {
    let text = text.trim_start();
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let named = ["http:", "https:", "ws:", "wss:", "ftp:"];
    scheme.is_some_and(|scheme| {
        scheme != "file" && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    }) || named
        .iter()
        .any(|name| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

fn unreadable() -> Destination {
    Destination { host: String::new(), port: None, is_near: true }
}

/// The host of an address, if there is no doubt about it: programs do not agree on what odd
/// addresses mean.
pub(super) fn destination(url: &str) -> Option<Destination> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':'))
        }
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_sure = |c: char| c.is_ascii_alphanumeric() || "-.:_".contains(c);
    if authority.contains(['@', '\\', '%']) || host.is_empty() || !host.chars().all(is_sure) {
        return None;
    }
    let port = match port {
        Some(port) => Some(port.parse().ok()?),
        None => match scheme.to_ascii_lowercase().as_str() {
            "http" | "ws" => Some(80),
            "https" | "wss" => Some(443),
            _ => None,
        },
    };
    let is_near = reach_by_name(&host) != Reach::Internet;
    Some(Destination { host, port, is_near })
}
