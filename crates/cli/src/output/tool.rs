//! Tool calls in words.

use attache::Meta;
use attache::wire::v1::{
    ContentBlock, EmbeddedResourceResource, ToolCallContent, ToolCallLocation, ToolCallUpdate,
};
use serde_json::Value;

/// Stands for what was read and is not to be printed.
pub(super) const SUPPRESSED: &str = "[read output suppressed]";

const INLINE: usize = 220;
const OUTPUT_CHARS: usize = 2000;
const OUTPUT_LINES: usize = 28;
const LOCATIONS: usize = 5;

/// Whether a tool reads: by its kind, or, if it has none, by the first word of its title.
pub(super) fn is_read(kind: Option<&str>, title: Option<&str>) -> bool {
    if kind == Some("read") {
        return true;
    }
    let head =
        title.and_then(|title| title.split(|letter: char| letter == ':' || letter.is_whitespace()).next());
    head.is_some_and(|head| ["read", "cat", "open", "view"].contains(&head.to_lowercase().as_str()))
}

/// What is known of a tool call.
#[derive(Default)]
pub(super) struct Tool {
    pub(super) title: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) status: Option<String>,
    locations: Vec<ToolCallLocation>,
    content: Vec<ToolCallContent>,
    input: Option<Value>,
    output: Option<Value>,
    /// What its command has printed so far, as some agents tell it beside the protocol.
    streamed: String,
    /// What was printed when it began, and when it ended.
    pub(super) begun: bool,
    pub(super) ended: Option<String>,
}

impl Tool {
    /// TOOL-05: what is absent stays as it was.
    pub(super) fn update(&mut self, update: ToolCallUpdate) {
        if let Some(title) = update.title.filter(|title| !title.trim().is_empty()) {
            self.title = Some(title);
        }
        if let Some(kind) = update.kind {
            self.kind = Some(kind.as_str().to_owned());
        }
        if let Some(status) = update.status {
            self.status = Some(status.as_str().to_owned());
        }
        if let Some(locations) = update.locations {
            self.locations = locations;
        }
        if let Some(content) = update.content {
            self.content = content;
        }
        if let Some(input) = update.raw_input {
            self.input = input.parse().ok();
        }
        if let Some(output) = update.raw_output {
            self.output = output.parse().ok();
        }
        if let Some(text) = update.meta.as_ref().and_then(streamed)
            // Of what is printed only the beginning is shown.
            && self.streamed.len() < 8 * OUTPUT_CHARS
        {
            self.streamed.push_str(&text);
        }
    }

    pub(super) fn is_final(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }

    pub(super) fn status(&self) -> &str {
        match self.status.as_deref() {
            Some(status @ ("completed" | "failed")) => status,
            Some("pending") => "pending",
            _ => "running",
        }
    }

    /// The lines below the title.
    pub(super) fn details(&self, suppress_reads: bool) -> String {
        let mut text = String::new();
        let mut add = |label: &str, value: &str| {
            text.push_str(&format!("  {label}: {value}\n"));
        };
        if let Some(kind) = self.kind.as_deref().filter(|_| self.is_final()) {
            add("kind", kind);
        }
        if let Some(input) = self.input.as_ref().and_then(summary) {
            add("input", &input);
        }
        if let Some(files) = self.files() {
            add("files", &files);
        }
        if self.is_final() {
            let output = if suppress_reads && is_read(self.kind.as_deref(), self.title.as_deref()) {
                SUPPRESSED.to_owned()
            } else {
                self.results()
            };
            if !output.is_empty() {
                text.push_str("  output:\n");
                for line in limited(&output).lines() {
                    text.push_str(format!("    {line}").trim_end());
                    text.push('\n');
                }
            }
        }
        text
    }

    fn files(&self) -> Option<String> {
        let mut files: Vec<String> = Vec::new();
        for location in &self.locations {
            let file = match location.line {
                Some(line) => format!("{}:{}", location.path, line.max(1)),
                None => location.path.clone(),
            };
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let hidden = files.len().saturating_sub(LOCATIONS);
        files.truncate(LOCATIONS);
        if hidden > 0 {
            files.push(format!("+{hidden} more"));
        }
        (!files.is_empty()).then(|| files.join(", "))
    }

    /// What the call made: its output, then its content, nothing twice.
    fn results(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let output = self.output.as_ref().and_then(|output| words(output, 0));
        let output = output.or_else(|| Some(self.streamed.clone()));
        for part in output.into_iter().chain(self.content.iter().filter_map(content)) {
            let part = part.trim().to_owned();
            if !part.is_empty() && !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join("\n\n")
    }
}

/// What a command has printed since the last update, in the words of codex-acp: `_meta.terminal_output_delta.data`.
fn streamed(meta: &Meta) -> Option<String> {
    let delta: Value = meta.get("terminal_output_delta")?;
    delta.get("data")?.as_str().map(str::to_owned)
}

/// One line about a tool's input: its command, its file, what it looks for, or all of it.
pub(super) fn summary(input: &Value) -> Option<String> {
    let text = |keys: &[&str]| {
        keys.iter().find_map(|key| input.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty()))
    };
    let line = match input {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Object(_) => {
            if let Some(command) = text(&["command", "cmd", "program"]) {
                let args = ["args", "arguments"].iter().find_map(|key| input.get(key)?.as_array());
                let args = args.into_iter().flatten().filter_map(Value::as_str);
                std::iter::once(command).chain(args).collect::<Vec<_>>().join(" ")
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

/// A text in one line, not too long.
pub(super) fn inline(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, INLINE)
}

/// The first `limit` characters, with dots for the rest.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
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

fn content(entry: &ToolCallContent) -> Option<String> {
    match entry {
        ToolCallContent::Content(content) => Some(block(&content.content)),
        ToolCallContent::Diff(diff) => {
            let lines = |text: &str| text.split('\n').count() as i64;
            let old = diff.old_text.as_deref().filter(|text| !text.is_empty()).map_or(0, lines);
            let change = lines(&diff.new_text) - old;
            Some(match change {
                0 => format!("diff {} (line count unchanged)", diff.path),
                change => format!("diff {} ({change:+} lines)", diff.path),
            })
        }
        ToolCallContent::Terminal(terminal) => Some(format!("[terminal] {}", terminal.terminal_id)),
        _ => None,
    }
}

/// A content block in words.
pub(super) fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image] {}", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio] {}", audio.mime_type),
        ContentBlock::ResourceLink(link) => link.title.clone().unwrap_or_else(|| link.name.clone()),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => text.text.clone(),
            EmbeddedResourceResource::Blob(blob) => format!("[resource] {}", blob.uri),
            _ => "[resource]".to_owned(),
        },
        _ => String::new(),
    }
}

fn limited(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = text.trim();
    let lines = text.lines().count();
    let mut shown: String = text.lines().take(OUTPUT_LINES).collect::<Vec<_>>().join("\n");
    if lines > OUTPUT_LINES {
        shown.push_str(&format!("\n... ({} more lines)", lines - OUTPUT_LINES));
    }
    cut(&shown, OUTPUT_CHARS)
}
