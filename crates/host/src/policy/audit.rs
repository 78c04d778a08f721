//! The audit log: every automatic answer and every decision, one JSON object per line.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use attache::wire::v1::SessionId;
use serde_json::{Value, json};

use super::memory::private;
use super::{Action, Reason, Subject};
use crate::secrets::Mask;

/// Where decisions are written down.
#[derive(Debug, Default)]
pub struct Audit {
    log: Option<Mutex<Log>>,
    error: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
}

/// A log that has grown to this is put aside under the name with `.1`, in the place of the one before.
const MOST: u64 = 16 << 20;

impl Audit {
    /// Nowhere.
    pub fn none() -> Self {
        Audit::default()
    }

    /// At the end of a file, which is made if it is not there.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let log = Log { path: path.to_owned(), file: append_to(path)? };
        Ok(Audit { log: Some(Mutex::new(log)), error: Mutex::default() })
    }

    /// The first thing that went wrong, if something did.
    pub fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn fail(&self, error: String) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(super) fn write(&self, entry: &Entry<'_>) {
        let Some(log) = &self.log else { return };
        let mut line = entry.to_line(SystemTime::now());
        line.push('\n');
        if let Err(error) = log.lock().unwrap_or_else(PoisonError::into_inner).append(&line) {
            self.fail(format!("cannot write the audit log: {error}"));
        }
    }
}

impl Log {
    /// One write per line, at the end of the file: lines of several processes do not mix.
    fn append(&mut self, line: &str) -> io::Result<()> {
        if self.file.metadata()?.len() >= MOST {
            // Another process may have put it aside already.
            if fs::metadata(&self.path).is_ok_and(|meta| meta.len() >= MOST) {
                let mut aside = self.path.clone().into_os_string();
                aside.push(".1");
                fs::rename(&self.path, aside)?;
            }
            self.file = append_to(&self.path)?;
        }
        self.file.write_all(line.as_bytes())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    private(File::options().append(true).create(true)).open(path)
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Allowed,
    Denied,
    Cancelled,
}

/// One line of the log.
pub(super) struct Entry<'a> {
    pub(super) event: &'static str,
    pub(super) session: Option<&'a SessionId>,
    pub(super) agent: &'a str,
    pub(super) tool_call: Option<&'a str>,
    pub(super) action: &'a Action,
    pub(super) outcome: Outcome,
    pub(super) option: Option<&'a str>,
    pub(super) remembered: Option<&'a Subject>,
    pub(super) reason: &'a Reason,
    pub(super) mask: &'a Mask,
}

impl Entry<'_> {
    fn to_line(&self, now: SystemTime) -> String {
        let clean = |text: &str| Value::from(self.mask.text(text).into_owned());
        let action = self.action;
        let outcome = match self.outcome {
            Outcome::Allowed => "allowed",
            Outcome::Denied => "denied",
            Outcome::Cancelled => "cancelled",
        };
        let paths = || action.paths.iter().map(|path| clean(&path.to_string_lossy())).collect::<Vec<_>>();
        let members = [
            ("time", Some(json!(timestamp(now)))),
            ("event", Some(json!(self.event))),
            ("outcome", Some(json!(outcome))),
            ("by", Some(json!(self.reason.source.as_str()))),
            ("rule", self.reason.rule.as_deref().map(clean)),
            ("reason", Some(clean(&self.reason.text))),
            ("option", self.option.map(clean)),
            ("remembered", self.remembered.map(|subject| clean(&subject.to_string()))),
            ("agent", (!self.agent.is_empty()).then(|| json!(self.agent))),
            ("session", self.session.map(|session| json!(session.as_str()))),
            ("toolCall", self.tool_call.map(clean)),
            ("kind", action.kind.map(|kind| json!(kind.as_str()))),
            ("tool", action.tool.as_deref().map(clean)),
            ("title", action.title.as_deref().map(clean)),
            ("paths", (!action.paths.is_empty()).then(|| Value::from(paths()))),
            (
                "commands",
                (!action.commands.is_empty())
                    .then(|| action.commands.iter().map(|c| clean(c.text())).collect()),
            ),
            ("hosts", (!action.hosts.is_empty()).then(|| json!(action.hosts))),
        ];
        // By hand, so that a line begins with when and what.
        let mut line = String::from("{");
        for (name, value) in members {
            let Some(value) = value else { continue };
            if line.len() > 1 {
                line.push(',');
            }
            line.push_str(&format!("\"{name}\":{value}"));
        }
        line.push('}');
        line
    }
}

/// RFC 3339, in UTC, with milliseconds.
pub(super) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// The date of a day, counted from the first of January 1970.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}
