//! The history of prompts, kept between runs.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use attache_conn::private;

/// Most entries in the file.
const KEPT: usize = 1000;
/// A longer prompt is kept in memory only.
const LONGEST: usize = 32 << 10;

/// A history of prompts. In the file each entry is a line, with `\n` for a line break and `\\` for
/// a backslash.
#[derive(Debug, Default)]
pub struct History {
    entries: Vec<String>,
    file: Option<HistoryFile>,
}

/// The file that keeps entries between runs.
#[derive(Debug, Clone)]
pub struct HistoryFile {
    /// The path of the file. Its directory is created if it is missing.
    pub path: PathBuf,
    /// Removes secrets from an entry before it is written; in memory it stays as it was typed.
    pub redact: fn(&str) -> String,
}

impl History {
    /// Loads a history; one that cannot be read is empty.
    pub fn load(file: Option<HistoryFile>) -> History {
        let text = file.as_ref().and_then(|file| fs::read(&file.path).ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut entries: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(unescape).collect();
        if entries.len() > 2 * KEPT {
            entries.drain(..entries.len() - KEPT);
            if let Some(file) = &file {
                let _ = rewrite(&file.path, &entries);
            }
        }
        History { entries, file }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns an entry; the oldest has index 0.
    pub fn get(&self, at: usize) -> Option<&str> {
        self.entries.get(at).map(String::as_str)
    }

    /// Finds the newest entry before `before` that contains a text.
    pub fn find(&self, wanted: &str, before: usize) -> Option<usize> {
        if wanted.is_empty() {
            return None;
        }
        let older = self.entries.get(..before).unwrap_or_default();
        older.iter().rposition(|entry| entry.contains(wanted))
    }

    /// Adds an entry, unless it repeats the last one or begins with a blank.
    pub fn add(&mut self, text: &str) {
        if text.starts_with(' ') || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        if let Some(file) = self.file.as_ref().filter(|_| text.len() <= LONGEST) {
            let _ = append(file, text);
        }
    }
}

fn append(file: &HistoryFile, text: &str) -> io::Result<()> {
    if let Some(parent) = file.path.parent() {
        private::create_directory(parent)?;
    }
    // One write, so that two programs do not mix their lines.
    private::append(&file.path)?.write_all(format!("{}\n", escape(&(file.redact)(text))).as_bytes())
}

fn rewrite(file: &Path, entries: &[String]) -> io::Result<()> {
    let text: String = entries.iter().map(|entry| escape(entry) + "\n").collect();
    private::replace(file, text.as_bytes())
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_key_is_in_memory_only() {
        let dir = private::TempDir::new("attache-history").unwrap();
        let file = dir.path().join("history");
        let redact = |text: &str| text.replace("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "***");
        let mut history = History::load(Some(HistoryFile { path: file.clone(), redact }));
        history.add("use ghp_0123456789abcdefghijklmnopqrstuvwxyz for the password field");
        assert!(history.get(0).unwrap().contains("ghp_"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "use *** for the password field\n");
    }

    #[test]
    fn entries_survive_in_a_file_that_is_private() {
        let dir = std::env::temp_dir().join(format!("attache-history-{}", std::process::id()));
        let file = dir.join("deep/history");
        let stored = || Some(HistoryFile { path: file.clone(), redact: str::to_owned });
        let mut history = History::load(stored());
        for text in ["one", "two\nlines \\ and\\n", "two\nlines \\ and\\n", " secret"] {
            history.add(text);
        }
        let again = History::load(stored());
        assert_eq!(again.entries, ["one", "two\nlines \\ and\\n"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let many: Vec<String> = (0..2100).map(|n| n.to_string()).collect();
        rewrite(&file, &many).unwrap();
        assert_eq!(History::load(stored()).len(), KEPT);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), KEPT);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn searches_go_back() {
        let mut history = History::default();
        for text in ["make test", "make doc", "ls"] {
            history.add(text);
        }
        assert_eq!(history.find("make", 3), Some(1));
        assert_eq!(history.find("make", 1), Some(0));
        assert_eq!(history.find("make", 0), None);
        assert_eq!(history.find("", 3), None);
    }
}
