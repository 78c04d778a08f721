//! What was sent before, also in other runs of the program.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use attache_conn::private;
use attache_host::secrets::Mask;

/// Entries that are kept.
const KEPT: usize = 1000;
/// A prompt that is longer is kept for this run only.
const LONGEST: usize = 32 << 10;

/// Lines of a file, one for each entry: `\n` stands for a line break, `\\` for a backslash.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    file: Option<PathBuf>,
}

impl History {
    /// A history that cannot be read is empty; the chat is worth more than its history.
    pub(crate) fn load(file: Option<PathBuf>) -> History {
        let text = file.as_deref().and_then(|file| fs::read(file).ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut entries: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(unescape).collect();
        if entries.len() > 2 * KEPT {
            entries.drain(..entries.len() - KEPT);
            if let Some(file) = &file {
                let _ = rewrite(file, &entries);
            }
        }
        History { entries, file }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        self.entries.get(at).map(String::as_str)
    }

    /// The newest entry before `before` that contains a text.
    pub(crate) fn find(&self, wanted: &str, before: usize) -> Option<usize> {
        if wanted.is_empty() {
            return None;
        }
        let older = self.entries.get(..before).unwrap_or_default();
        older.iter().rposition(|entry| entry.contains(wanted))
    }

    /// What is sent twice is kept once. What begins with a blank is not kept, as shells have it.
    pub(crate) fn add(&mut self, text: &str) {
        if text.starts_with(' ') || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        if let Some(file) = self.file.as_ref().filter(|_| text.len() <= LONGEST) {
            let _ = append(file, text);
        }
    }
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = file.parent() {
        crate::paths::private_dir(parent)?;
    }
    // Keys that were typed or pasted stay in memory only.
    let text = Mask::from_env().tokens(text);
    // One write, so that two chats do not mix their lines.
    private::append(file)?.write_all(format!("{}\n", escape(&text)).as_bytes())
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
        let mut history = History::load(Some(file.clone()));
        history.add("use ghp_0123456789abcdefghijklmnopqrstuvwxyz for the password field");
        assert!(history.get(0).unwrap().contains("ghp_"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "use *** for the password field\n");
    }

    #[test]
    fn entries_survive_in_a_file_that_is_private() {
        let dir = std::env::temp_dir().join(format!("attache-history-{}", std::process::id()));
        let file = dir.join("deep/history");
        let mut history = History::load(Some(file.clone()));
        for text in ["one", "two\nlines \\ and\\n", "two\nlines \\ and\\n", " secret"] {
            history.add(text);
        }
        let again = History::load(Some(file.clone()));
        assert_eq!(again.entries, ["one", "two\nlines \\ and\\n"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let many: Vec<String> = (0..2100).map(|n| n.to_string()).collect();
        rewrite(&file, &many).unwrap();
        assert_eq!(History::load(Some(file.clone())).len(), KEPT);
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
