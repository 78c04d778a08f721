//! Logs that survive the processes that write them: one line of JSON per event, each written at
//! once.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(path: &Path) -> Result<Log, String> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(Log).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn write(&mut self, event: &Value) -> Result<(), String> {
        self.0.write_all(format!("{event}\n").as_bytes()).map_err(|error| format!("a log: {error}"))
    }
}

/// The events of a log. There is none without a file.
pub(crate) fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
