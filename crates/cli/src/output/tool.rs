//! Tool calls in words.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};

use attache::Meta;
use attache::wire::v1::{
    ContentBlock, EmbeddedResourceResource, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolKind,
};
use attache_host::policy::CommandLine;
use attache_host::sandbox::Confinement;
use serde_json::Value;

/// Stands for what was read and is not to be printed.
pub(super) const SUPPRESSED: &str = "[read output suppressed]";

const INLINE: usize = 220;
const OUTPUT_CHARS: usize = 2000;
const OUTPUT_LINES: usize = 28;
const LOCATIONS: usize = 5;
/// Calls that are remembered.
const CALLS: usize = 256;
/// Bytes of JSON that are read as such. Of more, the text is shown.
const PARSED: usize = 4 << 20;

/// Whether a tool reads: by its kind, or, if it has none, by the first word of its title.
pub(super) fn is_read(kind: Option<&str>, title: Option<&str>) -> bool {
    if kind == Some("read") {
        return true;
    }
    let head =
        title.and_then(|title| title.split(|letter: char| letter == ':' || letter.is_whitespace()).next());
    head.is_some_and(|head| ["read", "cat", "open", "view"].contains(&head.to_lowercase().as_str()))
}

/// How far a call is, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    Running,
    Completed,
    Failed,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Failed => "failed",
        }
    }
}

/// The printed form of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolView {
    pub(super) title: String,
    pub(super) status: Status,
    /// The lines below the title.
    pub(super) details: String,
}

/// The calls of a turn. Only the parts that may still be printed are kept, and only of the last calls.
#[derive(Default)]
pub(super) struct Tools {
    hasher: RandomState,
    /// Calls by the hash of their id; an id may be as long as a message.
    calls: HashMap<u64, Tool>,
    order: VecDeque<u64>,
}

impl Tools {
    /// Applies an update. Returns what to print, if that is new.
    pub(super) fn update(&mut self, update: ToolCallUpdate, suppress_reads: bool) -> Option<ToolView> {
        let key = self.hasher.hash_one(update.tool_call_id.as_str());
        if !self.calls.contains_key(&key) {
            if self.order.len() >= CALLS {
                self.forget_one();
            }
            self.order.push_back(key);
            let title = inline(update.tool_call_id.as_str());
            self.calls.insert(key, Tool { title, ..Tool::default() });
        }
        let tool = self.calls.get_mut(&key)?;
        tool.update(update);
        let (title, status, details) = (tool.title.clone(), tool.status(), tool.details(suppress_reads));
        let is_new = if tool.is_final() {
            let now = self.hasher.hash_one((&title, status.name(), &details));
            tool.ended.replace(now) != Some(now)
        } else {
            !std::mem::replace(&mut tool.begun, true)
        };
        is_new.then_some(ToolView { title, status, details })
    }

    /// Forgets an old call, preferably one that has ended.
    fn forget_one(&mut self) {
        for tries in (0..8).rev() {
            let Some(key) = self.order.pop_front() else { return };
            if tries > 0 && self.calls.get(&key).is_some_and(|tool| !tool.is_final()) {
                self.order.push_back(key);
                continue;
            }
            self.calls.remove(&key);
            return;
        }
    }
}

/// The parts of a call that may still be printed. Each part is bounded.
#[derive(Default)]
struct Tool {
    title: String,
    kind: Option<ToolKind>,
    status: Option<ToolCallStatus>,
    files: Option<String>,
    input: Option<String>,
    output: Option<Excerpt>,
    content: Vec<Excerpt>,
    /// What its command has printed so far, as some agents tell it beside the protocol.
    streamed: String,
    /// Whether it was printed when it began, and the hash of what was printed when it ended.
    begun: bool,
    ended: Option<u64>,
}

impl Tool {
    /// TOOL-05: what is absent stays as it was.
    fn update(&mut self, update: ToolCallUpdate) {
        if let Some(title) = update.title.map(|title| inline(&title)).filter(|title| !title.is_empty()) {
            self.title = title;
        }
        self.kind = update.kind.or(self.kind);
        self.status = update.status.or(self.status);
        if let Some(locations) = update.locations {
            self.files = files(&locations);
        }
        if let Some(content) = update.content {
            self.content = excerpts(&content);
        }
        if let Some(input) = update.raw_input {
            self.input = summary(input.get());
        }
        if let Some(output) = update.raw_output {
            self.output = match parsed(output.get()) {
                Some(output) => words(&output, 0).map(|text| Excerpt::new(&text)),
                None => Some(Excerpt::new(output.get())),
            };
        }
        if let Some(text) = update.meta.as_ref().and_then(streamed) {
            // Of what is printed only the beginning is shown.
            push_bounded(&mut self.streamed, &text, 8 * OUTPUT_CHARS);
        }
    }

    fn is_final(&self) -> bool {
        matches!(self.status(), Status::Completed | Status::Failed)
    }

    fn status(&self) -> Status {
        match self.status {
            Some(ToolCallStatus::Completed) => Status::Completed,
            Some(ToolCallStatus::Failed) => Status::Failed,
            Some(ToolCallStatus::Pending) => Status::Pending,
            _ => Status::Running,
        }
    }

    /// The lines below the title.
    fn details(&self, suppress_reads: bool) -> String {
        let mut text = String::new();
        let mut add = |label: &str, value: &str| {
            text.push_str(&format!("  {label}: {value}\n"));
        };
        let kind = self.kind.map(|kind| kind.as_str());
        if let Some(kind) = kind.filter(|_| self.is_final()) {
            add("kind", kind);
        }
        if let Some(input) = &self.input {
            add("input", input);
        }
        if let Some(files) = &self.files {
            add("files", files);
        }
        if self.is_final() {
            let output = if suppress_reads && is_read(kind, Some(&self.title)) {
                SUPPRESSED.to_owned()
            } else {
                self.results()
            };
            if !output.is_empty() {
                text.push_str("  output:\n");
                for line in output.lines() {
                    text.push_str(format!("    {line}").trim_end());
                    text.push('\n');
                }
            }
        }
        text
    }

    /// What the call made: its output, then its content, nothing twice.
    fn results(&self) -> String {
        let streamed = Excerpt::new(&self.streamed);
        let mut parts: Vec<&Excerpt> = Vec::new();
        for part in std::iter::once(self.output.as_ref().unwrap_or(&streamed)).chain(&self.content) {
            if part.lines > 0 && !parts.iter().any(|known| known.hash == part.hash) {
                parts.push(part);
            }
        }
        joined(&parts)
    }
}

/// The beginning of a text, as far as it can ever be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    head: String,
    /// Lines of all of it.
    lines: usize,
    /// The hash of all of it.
    hash: u64,
}

impl Excerpt {
    fn new(text: &str) -> Excerpt {
        let text = text.trim();
        let mut head = String::new();
        for (number, line) in text.lines().take(OUTPUT_LINES).enumerate() {
            if number > 0 {
                head.push('\n');
            }
            // No character has more than four bytes, and one more than is shown says that there are more.
            push_bounded(&mut head, line, 4 * (OUTPUT_CHARS + 1));
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Excerpt { head, lines: text.lines().count(), hash: hasher.finish() }
    }
}

/// Returns the beginnings of the parts that can be shown; the last one counts the lines of all later parts.
fn excerpts(content: &[ToolCallContent]) -> Vec<Excerpt> {
    let mut all: Vec<Excerpt> = Vec::new();
    let mut lines = 0;
    for entry in content.iter().filter_map(self::content) {
        let next = Excerpt::new(&entry);
        if next.lines == 0 || all.iter().any(|known| known.hash == next.hash) {
            continue;
        }
        match all.last_mut().filter(|_| lines > OUTPUT_LINES) {
            Some(last) => last.lines += next.lines + 1,
            None => {
                lines += next.lines + 1;
                all.push(next);
            }
        }
    }
    all
}

/// Joins the parts with an empty line between them and cuts the result.
fn joined(parts: &[&Excerpt]) -> String {
    let lines = parts.iter().map(|part| part.lines + 1).sum::<usize>().saturating_sub(1);
    let heads: Vec<&str> = parts.iter().map(|part| part.head.as_str()).collect();
    let mut shown: String = heads.join("\n\n").lines().take(OUTPUT_LINES).collect::<Vec<_>>().join("\n");
    if lines > OUTPUT_LINES {
        shown.push_str(&format!("\n... ({} more lines)", lines - OUTPUT_LINES));
    }
    cut(&shown, OUTPUT_CHARS)
}

/// Appends text up to a total of `most` bytes.
pub(crate) fn push_bounded(text: &mut String, more: &str, most: usize) {
    let mut room = most.saturating_sub(text.len()).min(more.len());
    while !more.is_char_boundary(room) {
        room -= 1;
    }
    text.push_str(more.get(..room).unwrap_or_default());
}

fn files(locations: &[ToolCallLocation]) -> Option<String> {
    let mut files: Vec<String> = Vec::new();
    let mut hidden = 0;
    for location in locations {
        let path = inline(&location.path);
        let file = match location.line {
            Some(line) => format!("{path}:{}", line.max(1)),
            None => path,
        };
        if files.contains(&file) {
            continue;
        }
        if files.len() < LOCATIONS {
            files.push(file);
        } else {
            hidden += 1;
        }
    }
    if hidden > 0 {
        files.push(format!("+{hidden} more"));
    }
    (!files.is_empty()).then(|| files.join(", "))
}

/// What a command has printed since the last update, in the words of codex-acp: `_meta.terminal_output_delta.data`.
fn streamed(meta: &Meta) -> Option<String> {
    let delta: Value = meta.get("terminal_output_delta")?;
    delta.get("data")?.as_str().map(str::to_owned)
}

/// Parses JSON unless it is too large.
fn parsed(json: &str) -> Option<Value> {
    if json.len() > PARSED { None } else { serde_json::from_str(json).ok() }
}

/// One line about a tool's input: its command, its file, what it looks for, or all of it.
pub(super) fn summary(json: &str) -> Option<String> {
    let Some(input) = parsed(json) else { return Some(inline(json)) };
    let text = |keys: &[&str]| {
        keys.iter().find_map(|key| input.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty()))
    };
    let line = match &input {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Object(_) => {
            if let Some(command) = text(&["command", "cmd", "program"]) {
                let args = ["args", "arguments"].iter().find_map(|key| input.get(key)?.as_array());
                let args = args.into_iter().flatten().filter_map(Value::as_str);
                let words: Vec<&str> = std::iter::once(command).chain(args).collect();
                sandboxed(&words).unwrap_or_else(|| words.join(" "))
            } else if let Some(words) = input.get("command").and_then(Value::as_array) {
                words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
            } else if let Some(file) =
                text(&["path", "file", "filePath", "filepath", "file_path", "target", "uri", "url"])
            {
                file.to_owned()
            } else if let Some(query) = text(&["query", "pattern", "text", "search"]) {
                query.to_owned()
            } else {
                input.to_string()
            }
        }
        other => other.to_string(),
    };
    Some(inline(&line)).filter(|line| !line.is_empty() && line != "{}")
}

/// The command inside if this program is told to run it in its sandbox.
fn sandboxed(words: &[&str]) -> Option<String> {
    let launch = Confinement::parse(words)?;
    if !launch.is_started_by(&std::env::current_exe().ok()?) {
        return None;
    }
    let what = if launch.confinement.is_read_only() { "read-only sandbox" } else { "sandbox" };
    let command: Vec<_> = launch.command.iter().map(|word| word.to_string_lossy()).collect();
    let (program, args) = command.split_first()?;
    Some(format!("({what}) {}", CommandLine::program(program, args).text()))
}

/// A text in one line, not too long.
pub(super) fn inline(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        push_bounded(&mut line, word, 4 * (INLINE + 1));
        if line.len() > 4 * INLINE {
            break;
        }
    }
    cut(&line, INLINE)
}

/// The first `limit` characters, with dots for the rest.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(3)).chain("...".chars()).collect()
}

/// The text in a tool's output, wherever it is.
fn words(value: &Value, depth: usize) -> Option<String> {
    const KEYS: [&str; 9] =
        ["stdout", "stderr", "output", "content", "text", "message", "result", "response", "value"];
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.trim_end().to_owned()).filter(|text| !text.is_empty()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ if depth >= 4 => None,
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().filter_map(|item| words(item, depth + 1)).collect();
            (!parts.is_empty()).then(|| parts.join("\n"))
        }
        Value::Object(object) => {
            let mut parts: Vec<String> = Vec::new();
            for part in KEYS.iter().filter_map(|key| words(object.get(*key)?, depth + 1)) {
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            if !parts.is_empty() {
                return Some(parts.join("\n"));
            }
            if object.is_empty() { None } else { serde_json::to_string_pretty(value).ok() }
        }
    }
}

fn content(entry: &ToolCallContent) -> Option<Cow<'_, str>> {
    match entry {
        ToolCallContent::Content(content) => Some(block(&content.content)),
        ToolCallContent::Diff(diff) => {
            let lines = |text: &str| text.split('\n').count() as i64;
            let old = diff.old_text.as_deref().filter(|text| !text.is_empty()).map_or(0, lines);
            let change = lines(&diff.new_text) - old;
            let path = inline(&diff.path);
            Some(Cow::Owned(match change {
                0 => format!("diff {path} (line count unchanged)"),
                change => format!("diff {path} ({change:+} lines)"),
            }))
        }
        ToolCallContent::Terminal(terminal) => {
            Some(Cow::Owned(format!("[terminal] {}", inline(terminal.terminal_id.as_str()))))
        }
        _ => None,
    }
}

/// A content block in words.
pub(super) fn block(block: &ContentBlock) -> Cow<'_, str> {
    match block {
        ContentBlock::Text(text) => Cow::Borrowed(&text.text),
        ContentBlock::Image(image) => Cow::Owned(format!("[image] {}", inline(&image.mime_type))),
        ContentBlock::Audio(audio) => Cow::Owned(format!("[audio] {}", inline(&audio.mime_type))),
        ContentBlock::ResourceLink(link) => Cow::Borrowed(link.title.as_ref().unwrap_or(&link.name)),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => Cow::Borrowed(&text.text),
            EmbeddedResourceResource::Blob(blob) => Cow::Owned(format!("[resource] {}", inline(&blob.uri))),
            _ => Cow::Borrowed("[resource]"),
        },
        _ => Cow::Borrowed(""),
    }
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
