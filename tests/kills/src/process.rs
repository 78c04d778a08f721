//! Processes by their ids.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A process, with its start time because ids are used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: u32,
    started: String,
}

impl Process {
    pub(crate) fn this() -> Process {
        Process::of(std::process::id())
    }

    pub(crate) fn of(id: u32) -> Process {
        Process { id, started: stat(id).map(|(_, started)| started).unwrap_or_default() }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"id": self.id, "started": self.started})
    }

    pub(crate) fn from_json(value: &Value) -> Option<Process> {
        let id = u32::try_from(value["id"].as_u64()?).ok()?;
        Some(Process { id, started: value["started"].as_str()?.to_owned() })
    }

    /// Whether it runs. One that waits to be reaped does not.
    pub(crate) fn is_running(&self) -> bool {
        stat(self.id).is_some_and(|(state, started)| started == self.started && !matches!(state, 'Z' | 'X'))
    }

    pub(crate) fn kill(&self) {
        if self.is_running()
            && let Some(id) = i32::try_from(self.id).ok().and_then(Pid::from_raw)
        {
            // It may have ended by itself meanwhile.
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

/// State and start time of a process.
fn stat(id: u32) -> Option<(char, String)> {
    let text = std::fs::read_to_string(PathBuf::from(format!("/proc/{id}/stat"))).ok()?;
    // The name before may hold spaces and parentheses.
    let (_, rest) = text.rsplit_once(") ")?;
    let words: Vec<&str> = rest.split(' ').collect();
    Some((words.first()?.chars().next()?, (*words.get(19)?).to_owned()))
}
