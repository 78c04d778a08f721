//! The file format of a recording.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Entry, EntryKind, Header, LineEnd, Trace};
use crate::Role;

/// The longest recording: ten years.
const LONGEST: Duration = Duration::from_secs(10 * 31_536_000);

/// A command line is not longer on any system.
const LONGEST_HEAD: u64 = 16 << 20;

impl Header {
    /// The first line of a recording, without its line end.
    pub fn to_line(&self) -> String {
        json!({
            "attache": "recording", "version": 1, "started": self.started, "command": self.command, "masked": self.masked,
        })
        .to_string()
    }

    fn read(line: &[u8]) -> Result<Header, String> {
        let head: Value = serde_json::from_slice(line).unwrap_or_default();
        if line.is_empty() {
            return Err("not a recording: there is nothing in it, make one with `attache record`".to_owned());
        }
        if head["attache"] != "recording" {
            return Err(
                "not a recording: the first line must say so, make one with `attache record`".to_owned()
            );
        }
        if head["version"] != 1 {
            return Err(format!("version {} of the format is not known here", head["version"]));
        }
        let words = head["command"].as_array().into_iter().flatten();
        Ok(Header {
            started: head["started"].as_str().unwrap_or_default().to_owned(),
            command: words.filter_map(Value::as_str).map(str::to_owned).collect(),
            masked: head["masked"] == true,
        })
    }
}

impl Entry {
    /// The line of a recording, without its line end.
    pub fn to_line(&self) -> String {
        let mut line = json!({ "t": self.at.as_micros() as f64 / 1e6 });
        match &self.kind {
            EntryKind::Line { from, text, end } => {
                line["from"] = from.name().into();
                match std::str::from_utf8(text) {
                    Ok(text) => line["text"] = text.into(),
                    Err(_) => line["base64"] = STANDARD.encode(text).into(),
                }
                if *end != LineEnd::Lf {
                    line["end"] = end.text().into();
                }
            }
            EntryKind::Stderr(text) => line["stderr"] = String::from_utf8_lossy(text).into(),
            EntryKind::Closed { from } => line["closed"] = from.name().into(),
            EntryKind::Exit { code, signal } => {
                line["exit"] = (*code).into();
                if let Some(signal) = signal {
                    line["signal"] = (*signal).into();
                }
            }
            EntryKind::Note(note) => line["note"] = note.as_str().into(),
        }
        line.to_string()
    }

    /// Reads a line of a recording. Kinds of entries that are not known here become notes.
    ///
    /// # Errors
    /// If the line is not an entry.
    pub fn read(line: &str) -> Result<Entry, String> {
        read_piece(line).map(|(entry, _)| entry)
    }
}

/// An entry, and whether it is only a piece of a line whose rest is to come.
fn read_piece(line: &str) -> Result<(Entry, bool), String> {
    let entry: Value = serde_json::from_str(line).map_err(|_| "not an entry: it is no JSON".to_owned())?;
    let seconds = entry["t"].as_f64().unwrap_or(0.0);
    let at = Duration::try_from_secs_f64(seconds).ok().filter(|at| *at <= LONGEST);
    let at = at.ok_or_else(|| format!("`t` is no time of a recording: {seconds}"))?;
    Ok((Entry { at, kind: read_kind(&entry)? }, entry["more"] == true))
}

/// The line of a recording for the beginning of a line whose rest is to come, without its line end.
pub(crate) fn piece_line(at: Duration, from: Role, text: &[u8]) -> String {
    let whole = Entry { at, kind: EntryKind::Line { from, text: text.to_vec(), end: LineEnd::Lf } }.to_line();
    format!("{},\"more\":true}}", &whole[..whole.len() - 1])
}

fn read_kind(entry: &Value) -> Result<EntryKind, String> {
    let number = |key: &str| entry[key].as_i64().and_then(|number| i32::try_from(number).ok());
    let role = |key: &str| {
        entry[key].as_str().and_then(Role::of).ok_or_else(|| format!("`{key}` is neither agent nor client"))
    };
    if entry.get("from").is_some() {
        let text = match (&entry["text"], &entry["base64"]) {
            (Value::String(text), _) => text.clone().into_bytes(),
            (_, Value::String(text)) => STANDARD.decode(text).map_err(|_| "`base64` is not base64")?,
            _ => return Err("a line has neither `text` nor `base64`".to_owned()),
        };
        let end = match entry["end"].as_str() {
            Some("\r\n") => LineEnd::CrLf,
            Some("") => LineEnd::Open,
            _ => LineEnd::Lf,
        };
        return Ok(EntryKind::Line { from: role("from")?, text, end });
    }
    Ok(if let Some(text) = entry["stderr"].as_str() {
        EntryKind::Stderr(text.into())
    } else if entry.get("closed").is_some() {
        EntryKind::Closed { from: role("closed")? }
    } else if entry.get("exit").is_some() {
        EntryKind::Exit { code: number("exit"), signal: number("signal") }
    } else {
        EntryKind::Note(entry["note"].as_str().map_or_else(|| entry.to_string(), str::to_owned))
    })
}

/// Why a recording cannot be read.
#[derive(Debug)]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for ReadError {}

/// Reads a recording entry by entry.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    head: Header,
    line: usize,
    /// The pieces of an unfinished line of each role.
    pieces: [Vec<u8>; 2],
}

impl<R: BufRead> Reader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// If the input is not a recording.
    pub fn new(mut input: R) -> Result<Reader<R>, ReadError> {
        let mut line = Vec::new();
        let fault = |why: String| ReadError { line: 1, why };
        // Other files may have no line ends.
        let mut start = io::Read::take(&mut input, LONGEST_HEAD);
        start.read_until(b'\n', &mut line).map_err(|error| fault(error.to_string()))?;
        let head = Header::read(line.trim_ascii_end()).map_err(fault)?;
        Ok(Reader { input, head, line: 1, pieces: Default::default() })
    }

    /// The head.
    pub fn head(&self) -> &Header {
        &self.head
    }

    /// The next entry; `None` at the end. A last line that was cut off, as a crash leaves it, is
    /// the end.
    ///
    /// # Errors
    /// If a line is not an entry.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, ReadError> {
        loop {
            let mut text = String::new();
            self.line += 1;
            let fault = |why: String| ReadError { line: self.line, why };
            let count = self.input.read_line(&mut text).map_err(|error| fault(error.to_string()))?;
            if count == 0 {
                return Ok(None);
            }
            match read_piece(text.trim_end_matches('\n')) {
                Ok((entry, more)) => {
                    if let Some(whole) = self.join(entry, more) {
                        return Ok(Some(whole));
                    }
                }
                Err(_) if text.trim().is_empty() => {}
                Err(_) if !text.ends_with('\n') => return Ok(None),
                Err(why) => return Err(fault(why)),
            }
        }
    }
}

impl<R> Reader<R> {
    /// The entry with the pieces before it; `None` if it is one of them.
    fn join(&mut self, mut entry: Entry, more: bool) -> Option<Entry> {
        let EntryKind::Line { from, text, .. } = &mut entry.kind else { return Some(entry) };
        let pieces = &mut self.pieces[usize::from(*from == Role::Client)];
        if more || !pieces.is_empty() {
            pieces.append(text);
        }
        if more {
            return None;
        }
        if !pieces.is_empty() {
            *text = std::mem::take(pieces);
        }
        Some(entry)
    }
}

impl Trace {
    /// Reads a whole recording.
    ///
    /// # Errors
    /// If the input is not a recording, or a line is not an entry.
    pub fn read(input: impl BufRead) -> Result<Trace, ReadError> {
        let mut reader = Reader::new(input)?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next_entry()? {
            entries.push(entry);
        }
        Ok(Trace { head: reader.head, entries })
    }

    /// Writes it as a recording.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write(&self, mut output: impl Write) -> io::Result<()> {
        writeln!(output, "{}", self.head.to_line())?;
        self.entries.iter().try_for_each(|entry| writeln!(output, "{}", entry.to_line()))?;
        output.flush()
    }
}
