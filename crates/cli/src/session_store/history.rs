//! The history of a session: the raw messages of its turns, one per line.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use attache_conn::private;
use attache_host::secrets::Mask;
use serde_json::Value;

use super::conversation::Message;
use super::line::HistoryLine;
use super::recorder::Recorder;

/// The history file of a session.
#[derive(Debug, Clone)]
pub(crate) struct History {
    path: PathBuf,
}

impl History {
    pub(super) fn new(path: PathBuf) -> History {
        History { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for appending, without the secrets that `mask` finds. A line that a crash cut
    /// off is ended first, so that only this line is lost.
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

    /// Returns the raw lines as JSON.
    pub(crate) fn lines(&self) -> io::Result<Vec<Value>> {
        self.parsed(|line| serde_json::from_slice(line).ok())
    }

    /// Returns the lines that `parse` can read.
    fn parsed<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> io::Result<Vec<T>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            // A half-written line is skipped.
            all.extend(parse(&line));
            line.clear();
        }
        Ok(all)
    }

    /// Replaces all lines.
    pub(crate) fn write(&self, lines: &[Value], mask: &Mask) -> io::Result<()> {
        let mut text = String::new();
        for line in lines {
            text.push_str(&mask.frame(&line.to_string()));
            text.push('\n');
        }
        crate::paths::replace(&self.path, text.as_bytes())
    }

    /// Returns the conversation in the format of acpx.
    pub(crate) fn messages(&self) -> io::Result<Value> {
        Ok(super::messages::messages(self.parsed(HistoryLine::parse)?.into_iter()))
    }

    /// Calls `each` with the messages of the user and the agent, in order.
    pub(crate) fn read(&self, each: impl FnMut(Message)) -> io::Result<()> {
        super::conversation::read(&self.path, each)
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
