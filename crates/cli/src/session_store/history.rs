//! What was said in a session: the raw messages of its turns, one per line.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use attache_conn::private;
use attache_host::secrets::Mask;
use serde_json::Value;

use super::recorder::Recorder;

/// The file of a session.
#[derive(Debug, Clone)]
pub(crate) struct History {
    path: PathBuf,
}

/// Something that somebody said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) role: &'static str,
    pub(crate) at: Option<String>,
    pub(crate) text: String,
}

impl History {
    pub(super) fn new(path: PathBuf) -> History {
        History { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file to append to it, without the secrets that `mask` finds. A line that a crash has cut is ended first, so that
    /// it costs only itself.
    pub(crate) fn record(&self, mask: Mask) -> io::Result<Recorder> {
        if let Some(dir) = self.path.parent() {
            crate::paths::private_dir(dir)?;
        }
        let mut file = private::append(&self.path)?;
        if !ends_with_line(&self.path)? {
            file.write_all(b"\n")?;
        }
        Ok(Recorder::new(file, mask))
    }

    /// The raw lines, as JSON.
    pub(crate) fn lines(&self) -> io::Result<Vec<Value>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            // A half-written line is passed over.
            if let Ok(value) = serde_json::from_slice(&line) {
                all.push(value);
            }
            line.clear();
        }
        Ok(all)
    }

    /// Replaces all of it.
    pub(crate) fn write(&self, lines: &[Value], mask: &Mask) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&mask.frame(&line.to_string()));
            text.push('\n');
        }
        crate::paths::replace(&self.path, text.as_bytes())
    }

    /// The conversation, as records of acpx have it.
    pub(crate) fn messages(&self) -> io::Result<Value> {
        Ok(super::messages::messages(&self.lines()?))
    }

    /// Who said what.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        Ok(entries(&self.lines()?))
    }
}

fn ends_with_line(path: &Path) -> io::Result<bool> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = File::open(path)?;
    if fs::metadata(path)?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Puts the pieces of messages together. MSG-04: another kind of piece begins a new message.
fn entries(lines: &[Value]) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    let mut at: Option<String> = None;
    for line in lines {
        let method = line.get("method").and_then(Value::as_str);
        if method == Some("session/prompt") {
            at = line.get("at").and_then(Value::as_str).map(str::to_owned);
            let blocks = line.pointer("/params/prompt").and_then(Value::as_array);
            let text: Vec<&str> = blocks.into_iter().flatten().filter_map(block_text).collect();
            all.push(Entry { role: "user", at: at.clone(), text: text.join(" ") });
        } else if method == Some("session/update")
            && let Some(update) = line.pointer("/params/update")
            && update.get("sessionUpdate").and_then(Value::as_str) == Some("agent_message_chunk")
            && let Some(text) = update.get("content").and_then(block_text)
        {
            match all.last_mut() {
                Some(last) if last.role == "assistant" => last.text.push_str(text),
                _ => all.push(Entry { role: "assistant", at: at.clone(), text: text.to_owned() }),
            }
        }
    }
    all.retain(|entry| !entry.text.trim().is_empty());
    all
}

/// A block of content in words, if it has any.
pub(crate) fn block_text(block: &Value) -> Option<&str> {
    match block.get("type")?.as_str()? {
        "text" => block.get("text")?.as_str(),
        "resource_link" => block.get("title").or_else(|| block.get("name"))?.as_str(),
        "image" => Some("[image]"),
        "audio" => Some("[audio]"),
        _ => None,
    }
}
