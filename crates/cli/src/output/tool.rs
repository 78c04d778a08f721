//! Tool calls as text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};

use attache::Meta;
use attache::wire::Json;
use attache::wire::v1::{
    ContentBlock, EmbeddedResourceResource, SessionUpdate, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate,
};
use attache_host::policy::CommandLine;
use attache_host::sandbox::Confinement;
use attache_term::render::markdown;
use attache_transcript::{Change, ItemKind, ToolCall, Transcript, push_bounded};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::count;

/// Replaces output of a reading tool that is not to be printed.
pub(super) const SUPPRESSED: &str = "[read output suppressed]";

const INLINE: usize = 220;
const OUTPUT_CHARS: usize = 2000;
const OUTPUT_LINES: usize = 28;
const LOCATIONS: usize = 5;
/// Calls that are remembered.
const CALLS: usize = 256;
/// Older calls that still run and are remembered until they end.
const RETIRED: usize = 64;
/// Most bytes of JSON that are parsed; longer JSON is shown as text.
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

/// The printed status of a call.
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

    fn is_final(self) -> bool {
        matches!(self, Status::Completed | Status::Failed)
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

/// The calls of a turn. Updates are reduced to their printed parts, so the model stays small.
#[derive(Default)]
pub(super) struct Tools {
    hasher: RandomState,
    transcript: Transcript,
    /// Output so far, by the index of the call.
    printed: BTreeMap<u64, Printed>,
}

/// The printed output of a call.
#[derive(Default)]
struct Printed {
    /// Output of the call's command, which some agents report beside the protocol.
    streamed: String,
    /// Whether the beginning was printed.
    begun: bool,
    /// Hash of the end that was printed.
    ended: Option<u64>,
}

impl Tools {
    /// Applies an update. Returns the view to print, if it is new.
    pub(super) fn update(&mut self, update: ToolCallUpdate, suppress_reads: bool) -> Option<ToolView> {
        let streamed = update.meta.as_ref().and_then(streamed);
        let id = inline(update.tool_call_id.as_str());
        let update = self.reduce(update);
        let mut change = self.transcript.change(SessionUpdate::from(update).into())?;
        let at = match &mut change {
            Change::ToolCall(at, _) => *at,
            Change::ReturnToolCall(before, _) => {
                let at = self.transcript.end();
                if let Some(printed) = self.printed.remove(before) {
                    self.printed.insert(at, printed);
                }
                at
            }
            Change::Push(item) => {
                if let ItemKind::ToolCall(call) = &mut item.kind {
                    call.state.title.get_or_insert(id);
                }
                self.transcript.end()
            }
            _ => return None,
        };
        self.transcript.apply(change);
        let printed = self.printed.entry(at).or_default();
        if let Some(text) = streamed {
            // Only the beginning of the output is shown.
            push_bounded(&mut printed.streamed, &text, 8 * OUTPUT_CHARS);
        }
        let view = match self.transcript.get(at).map(|item| &item.kind) {
            Some(ItemKind::ToolCall(call)) => view(call, &printed.streamed, suppress_reads),
            // A retired call is shown again when it ends.
            _ => return None,
        };
        let is_new = if view.status.is_final() {
            let now = self.hasher.hash_one((&view.title, view.status.name(), &view.details));
            printed.ended.replace(now) != Some(now)
        } else {
            !std::mem::replace(&mut printed.begun, true)
        };
        self.forget();
        is_new.then_some(view)
    }

    /// Forgets old calls. Some of those that still run are retired instead.
    fn forget(&mut self) {
        while self.transcript.items().len() > CALLS {
            let is_running = matches!(self.transcript.front().map(|item| &item.kind),
                Some(ItemKind::ToolCall(call)) if !call.is_final());
            if is_running && self.transcript.retired() < RETIRED {
                self.transcript.retire_front();
            } else {
                self.printed.remove(&self.transcript.start());
                self.transcript.pop_front();
            }
        }
    }

    /// Reduces an update to the parts that may be printed. Every part is bounded.
    fn reduce(&self, mut update: ToolCallUpdate) -> ToolCallUpdate {
        // An id may be as long as a message.
        if update.tool_call_id.as_str().len() > INLINE {
            let hash = self.hasher.hash_one(update.tool_call_id.as_str());
            update.tool_call_id = format!("{hash:x}").into();
        }
        update.title = update.title.map(|title| inline(&title)).filter(|title| !title.is_empty());
        update.locations =
            update.locations.map(|all| files(&all).map(ToolCallLocation::new).into_iter().collect());
        update.content =
            update.content.map(|content| excerpts(&content).iter().map(Excerpt::to_content).collect());
        update.raw_input = update.raw_input.and_then(|input| Json::new(&summary(input.get())).ok());
        update.raw_output = update.raw_output.and_then(|output| {
            let excerpt = match parsed(output.get()) {
                Some(output) => words(&output, 0).map(|text| Excerpt::new(&text)),
                None => Some(Excerpt::new(output.get())),
            };
            Json::new(&excerpt).ok()
        });
        update.meta = None;
        update
    }
}

fn view(call: &ToolCall, streamed: &str, suppress_reads: bool) -> ToolView {
    let status = match call.state.status {
        Some(ToolCallStatus::Completed) => Status::Completed,
        Some(ToolCallStatus::Failed) => Status::Failed,
        Some(ToolCallStatus::Pending) => Status::Pending,
        _ => Status::Running,
    };
    let title = call.title().to_owned();
    let mut details = String::new();
    let mut add = |label: &str, value: &str| {
        details.push_str(&format!("  {label}: {value}\n"));
    };
    let kind = call.state.kind.map(|kind| kind.as_str());
    if let Some(kind) = kind.filter(|_| status.is_final()) {
        add("kind", kind);
    }
    let input = call.state.raw_input.as_ref().and_then(|input| input.parse::<Option<String>>().ok()?);
    let command = input.clone();
    // Many titles are the command, and many results begin with it.
    let input = input.filter(|input| *input != title.trim().trim_matches('`'));
    if let Some(input) = &input {
        add("input", input);
    }
    if let Some(files) = call.locations().first() {
        add("files", &files.path);
    }
    if status.is_final() {
        let output = if suppress_reads && is_read(kind, Some(&title)) {
            SUPPRESSED.to_owned()
        } else {
            results(call, streamed, command.as_deref())
        };
        if !output.is_empty() {
            details.push_str("  output:\n");
            for line in output.lines() {
                details.push_str(format!("    {line}").trim_end());
                details.push('\n');
            }
        }
    }
    ToolView { title, status, details }
}

/// Returns the results of a call: its output, then its content, nothing twice.
fn results(call: &ToolCall, streamed: &str, command: Option<&str>) -> String {
    let output = call.state.raw_output.as_ref().and_then(|output| output.parse::<Option<Excerpt>>().ok()?);
    let mut parts: Vec<Excerpt> = Vec::new();
    let content = call.content().iter().filter_map(Excerpt::from_content);
    for part in std::iter::once(output.unwrap_or_else(|| Excerpt::new(streamed))).chain(content) {
        let repeats = command.is_some_and(|command| part.says(command));
        if part.lines > 0 && !repeats && !parts.iter().any(|known| known.hash == part.hash) {
            parts.push(part);
        }
    }
    joined(&parts)
}

/// The beginning of a text, as far as it can ever be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
            // No character has more than four bytes, and one more than is shown says that there are
            // more.
            push_bounded(&mut head, line, 4 * (OUTPUT_CHARS + 1));
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Excerpt { head, lines: text.lines().count(), hash: hasher.finish() }
    }

    /// Whether it is this text and nothing else, in a block of code or not.
    fn says(&self, text: &str) -> bool {
        let mut lines = self.head.lines().filter(|line| !markdown::is_fence(line));
        self.lines <= 3 && lines.next().is_some_and(|line| line.trim() == text) && lines.next().is_none()
    }

    /// Stores the excerpt as the content of a tool call.
    fn to_content(&self) -> ToolCallContent {
        ContentBlock::from(serde_json::to_string(self).unwrap_or_default()).into()
    }

    fn from_content(content: &ToolCallContent) -> Option<Excerpt> {
        match content {
            ToolCallContent::Content(content) => serde_json::from_str(content.content.as_text()?).ok(),
            _ => None,
        }
    }
}

/// Returns the beginnings of the parts that can be shown; the last one counts the lines of all
/// later parts.
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
fn joined(parts: &[Excerpt]) -> String {
    let lines = parts.iter().map(|part| part.lines + 1).sum::<usize>().saturating_sub(1);
    let heads: Vec<&str> = parts.iter().map(|part| part.head.as_str()).collect();
    let mut shown: String = heads.join("\n\n").lines().take(OUTPUT_LINES).collect::<Vec<_>>().join("\n");
    if lines > OUTPUT_LINES {
        let more = count((lines - OUTPUT_LINES) as u64, "more line");
        shown.push_str(&format!("\n... ({more})"));
    }
    cut(&shown, OUTPUT_CHARS)
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

/// Returns the output of a command since the last update, in the format of codex-acp.
fn streamed(meta: &Meta) -> Option<String> {
    #[derive(Deserialize)]
    struct Delta {
        data: String,
    }
    meta.get::<Delta>("terminal_output_delta").map(|delta| delta.data)
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

/// Returns the command inside if the words start our own sandbox.
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
            let lines = |text: &str| text.lines().count() as i64;
            let old = diff.old_text.as_deref().map_or(0, lines);
            let change = lines(&diff.new_text) - old;
            let path = inline(&diff.path);
            Some(Cow::Owned(match change {
                0 => format!("diff {path} (line count unchanged)"),
                change => format!(
                    "diff {path} ({}{})",
                    if change < 0 { '-' } else { '+' },
                    count(change.unsigned_abs(), "line")
                ),
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
