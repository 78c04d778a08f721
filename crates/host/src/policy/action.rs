//! What a request is about, as far as it says.

use std::path::{Component, Path, PathBuf};

use attache::wire::v1::{RequestPermissionRequest, ToolCallContent, ToolCallUpdate, ToolKind};
use serde_json::Value;

use super::CommandLine;

/// What somebody wants to do: the facts that rules look at.
///
/// All of them are the agent's own words, except for what is asked of us directly. So the more of them there are, the
/// harder it is to be approved: a rule that approves by path must fit every path.
#[derive(Clone, Debug, Default)]
pub struct Action {
    /// The kind of tool, as claimed or, if nothing was claimed, as the title's first word has it.
    pub kind: Option<ToolKind>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The files it names, free of links and dots.
    pub paths: Vec<PathBuf>,
    /// The commands it names.
    pub commands: Vec<CommandLine>,
    /// The hosts it names; an address that cannot be read with certainty is an empty name, which no rule approves.
    pub hosts: Vec<String>,
    /// The files as they were named, links and all.
    pub(super) named: Vec<PathBuf>,
}

/// Members of a tool's input that name files.
const PATH_MEMBERS: &[&str] = &[
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
    "old_path",
    "oldPath",
    "new_path",
    "newPath",
    "source",
    "destination",
    "target_file",
    "targetFile",
];
/// Members of a tool's input that name commands.
const COMMAND_MEMBERS: &[&str] =
    &["command", "cmd", "commands", "command_line", "commandLine", "script", "shell"];
/// Members of a tool's input that name tools.
const NAME_MEMBERS: &[&str] = &["name", "tool", "toolName", "tool_name"];

impl Action {
    /// What a permission request is about. Relative paths begin in the first root.
    pub fn of(request: &RequestPermissionRequest, roots: &[PathBuf]) -> Self {
        let call = &request.tool_call;
        let input: Value = call.raw_input.as_ref().and_then(|input| input.parse().ok()).unwrap_or_default();
        let title = call.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let tool = call.name.clone().or_else(|| first_text(&input, NAME_MEMBERS));
        let named = named_paths(call, &input, roots);
        let mut commands = Vec::new();
        members(&input, COMMAND_MEMBERS).for_each(|value| add_commands(value, &mut commands));
        // A tool's input may be the command itself.
        if let (Some(ToolKind::Execute), Value::String(text)) = (call.kind, &input) {
            commands.push(CommandLine::shell(text));
        }
        let mut hosts = Vec::new();
        add_hosts(&input, &mut hosts);
        Action {
            kind: call.kind.or_else(|| title.map(kind_by_title)),
            tool,
            title: title.map(str::to_owned),
            paths: named.iter().map(|path| real_path(path)).collect(),
            commands,
            hosts,
            named,
        }
    }

    /// Reading a file through us. The path is free of links and dots.
    pub fn read(path: &Path) -> Self {
        Action::on_file(ToolKind::Read, path)
    }

    /// Writing a file through us. The path is free of links and dots.
    pub fn write(path: &Path) -> Self {
        Action::on_file(ToolKind::Edit, path)
    }

    fn on_file(kind: ToolKind, path: &Path) -> Self {
        Action { kind: Some(kind), paths: vec![path.to_owned()], ..Action::default() }
    }

    /// Running a command through us.
    pub fn run(command: CommandLine) -> Self {
        Action { kind: Some(ToolKind::Execute), commands: vec![command], ..Action::default() }
    }

    /// The first word of the title.
    pub(super) fn title_head(&self) -> Option<&str> {
        self.title.as_deref().and_then(head)
    }

    /// Whether all files that it names are below one of `roots`. Without roots nobody can say, and it counts as inside.
    pub(super) fn is_inside(&self, roots: &[PathBuf]) -> bool {
        roots.is_empty() || self.paths.iter().all(|path| roots.iter().any(|root| path.starts_with(root)))
    }
}

fn head(title: &str) -> Option<&str> {
    title.split([':', ' ', '\t', '\n', '\r']).next().filter(|head| !head.is_empty())
}

/// Agents that do not say the kind begin their titles with what they do.
fn kind_by_title(title: &str) -> ToolKind {
    match head(title).unwrap_or_default().to_ascii_lowercase().as_str() {
        "read" | "cat" => ToolKind::Read,
        "search" | "find" | "grep" => ToolKind::Search,
        "write" | "edit" | "patch" => ToolKind::Edit,
        "delete" | "remove" => ToolKind::Delete,
        "move" | "rename" => ToolKind::Move,
        "run" | "execute" | "bash" => ToolKind::Execute,
        "fetch" | "http" | "url" => ToolKind::Fetch,
        "think" => ToolKind::Think,
        _ => ToolKind::Other,
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

fn named_paths(call: &ToolCallUpdate, input: &Value, roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut named: Vec<String> = Vec::new();
    named.extend(call.locations.iter().flatten().map(|location| location.path.clone()));
    named.extend(call.content.iter().flatten().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff.path.clone()),
        _ => None,
    }));
    for value in members(input, PATH_MEMBERS) {
        match value {
            Value::String(path) => named.push(path.clone()),
            Value::Array(paths) => named.extend(paths.iter().filter_map(Value::as_str).map(str::to_owned)),
            _ => {}
        }
    }
    named.retain(|path| !path.is_empty() && !path.contains("://"));
    let base = roots.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
    let mut paths: Vec<PathBuf> = named.iter().map(|path| base.join(path)).collect();
    paths.sort();
    paths.dedup();
    paths
}

fn add_commands(value: &Value, commands: &mut Vec<CommandLine>) {
    match value {
        Value::String(text) => commands.push(CommandLine::shell(text)),
        Value::Array(words) => {
            let texts: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match texts.as_deref() {
                Some([program, args @ ..]) => commands.push(CommandLine::program(program, args)),
                Some([]) => {}
                // Something that is no list of words: it can be denied, but never approved.
                None => commands.push(CommandLine::opaque(&value.to_string())),
            }
        }
        Value::Null => {}
        other => commands.push(CommandLine::opaque(&other.to_string())),
    }
}

/// Every address anywhere in a tool's input.
fn add_hosts(value: &Value, hosts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let lower = text.to_ascii_lowercase();
            if ["http:", "https:", "ws:", "wss:", "ftp:"]
                .iter()
                .any(|scheme| lower.trim_start().starts_with(scheme))
            {
                hosts.push(host_of(text.trim()).unwrap_or_default());
            }
        }
        Value::Array(values) => values.iter().for_each(|value| add_hosts(value, hosts)),
        Value::Object(values) => values.values().for_each(|value| add_hosts(value, hosts)),
        _ => {}
    }
}

/// The host of an address, if there is no doubt about it. Programs do not agree on what odd addresses mean.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => authority.split(':').next()?,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_sure = |c: char| c.is_ascii_alphanumeric() || "-.:_".contains(c);
    let is_odd = authority.contains(['@', '\\', '%']) || host.is_empty() || !host.chars().all(is_sure);
    (!is_odd).then(|| host.to_ascii_lowercase())
}

/// Where a path leads, as far as it exists. Links are followed before `..` is.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let mut real = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => drop(real.pop()),
            Component::Normal(name) => {
                real.push(name);
                if let Ok(there) = real.canonicalize() {
                    real = there;
                }
            }
            _ => {}
        }
    }
    real
}
