//! The audit log: one JSON object per line for every decision, automatic or by a person.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attache::wire::v1::SessionId;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::memory::private;
use super::{Confined, Effect, FilePath, Reason};
use crate::secrets::Mask;
use crate::time::timestamp;

/// The log of decisions.
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

/// Size at which a log is renamed to `….1`, replacing the one before.
const LARGEST: u64 = 16 << 20;

impl Audit {
    /// No log.
    pub fn none() -> Self {
        Audit::default()
    }

    /// Appends to a file, which is created if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            attache_conn::private::create_directory(dir)?;
        }
        let log = Log { path: path.to_owned(), file: append_to(path)? };
        Ok(Audit { log: Some(Mutex::new(log)), error: Mutex::default() })
    }

    /// The first error, if there was one.
    pub fn error(&self) -> Option<String> {
        self.error.lock().clone()
    }

    pub(super) fn fail(&self, error: String) {
        tracing::warn!(error, "audit log");
        self.error.lock().get_or_insert(error);
    }

    pub(super) fn write(&self, entry: &Entry<'_>) {
        // The effects may hold contents, which are for the audit log only.
        tracing::debug!(event = entry.event, outcome = ?entry.outcome, effects = entry.effects.len(), "permission decided");
        let Some(log) = &self.log else { return };
        let mut line = entry.to_line(SystemTime::now());
        line.push('\n');
        if let Err(error) = log.lock().append(&line) {
            self.fail(format!("cannot write the audit log: {error}"));
        }
    }
}

impl Log {
    /// Appends with one write per line, so that lines of several processes do not mix.
    fn append(&mut self, line: &str) -> io::Result<()> {
        if self.file.metadata()?.len() >= LARGEST {
            // Another process may have renamed it already.
            if fs::metadata(&self.path).is_ok_and(|meta| meta.len() >= LARGEST) {
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

/// The outcome of a request.
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
    pub(super) title: Option<&'a str>,
    pub(super) effects: &'a [Effect],
    pub(super) outcome: Outcome,
    pub(super) option: Option<&'a str>,
    pub(super) remembered: Option<String>,
    pub(super) reason: &'a Reason,
    pub(super) mask: &'a Mask,
}

impl Entry<'_> {
    fn to_line(&self, now: SystemTime) -> String {
        let clean = |text: &str| Value::from(self.mask.text(text).into_owned());
        let outcome = match self.outcome {
            Outcome::Allowed => "allowed",
            Outcome::Denied => "denied",
            Outcome::Cancelled => "cancelled",
        };
        let members = [
            ("time", Some(json!(timestamp(now)))),
            ("event", Some(json!(self.event))),
            ("outcome", Some(json!(outcome))),
            ("by", Some(json!(self.reason.source.as_str()))),
            ("rule", self.reason.rule.as_deref().map(clean)),
            ("reason", Some(clean(&self.reason.text))),
            ("option", self.option.map(clean)),
            ("remembered", self.remembered.as_deref().map(clean)),
            ("agent", (!self.agent.is_empty()).then(|| json!(self.agent))),
            ("session", self.session.map(|session| clean(session.as_str()))),
            ("toolCall", self.tool_call.map(clean)),
            ("title", self.title.map(clean)),
            ("effects", Some(self.effects.iter().map(|effect| describe(effect, &clean)).collect())),
        ];
        // Formatted by hand, so that a line begins with time and event.
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

/// Texts of files and values of variables stay out of the log.
fn describe(effect: &Effect, clean: &impl Fn(&str) -> Value) -> Value {
    let path = |path: &FilePath| clean(&path.real().to_string_lossy());
    match effect {
        Effect::Read(file) => json!({ "read": path(file) }),
        Effect::Write { path: file, .. } => json!({ "write": path(file) }),
        Effect::Delete(file) => json!({ "delete": path(file) }),
        Effect::Rename { from, to } => json!({ "move": path(from), "to": path(to) }),
        Effect::Touch(file) => json!({ "use": path(file) }),
        Effect::Run(run) => {
            let env: Vec<&String> = run.env.keys().collect();
            let mut value = json!({ "run": clean(run.command.text()), "in": path(&run.cwd) });
            if !env.is_empty() {
                value["env"] = json!(env);
            }
            if run.confined != Confined::No {
                value["confined"] = json!(run.confined);
            }
            value
        }
        Effect::Connect(to) => json!({ "connect": to.to_string() }),
        Effect::Tool(used) => json!({ "tool": used.name, "server": used.server }),
        Effect::Keep(file) => json!({ "keep": path(file) }),
        Effect::SwitchMode(to) => json!({ "mode": to }),
    }
}
