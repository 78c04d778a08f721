//! The log: what was asked and what happened, one JSON object per line.
//!
//! | member | what |
//! |---|---|
//! | `"what":"model"` | a request to a model: `api`, `model`, `tools` (names), `marker`, `step`, `reply`, `stream`, `body` |
//! | `"what":"dropped"` | the client went away in the middle of request `n` |
//! | `"what":"other"` | anything else that was asked: `method`, `target` |
//! | `"what":"outside"` | a request for `target` through this proxy was refused |
//!
//! Each has a number `n`; requests to a model are logged before they are answered.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

pub(super) struct Log {
    file: Option<Mutex<File>>,
    count: AtomicU64,
}

impl Log {
    pub(crate) fn none() -> Self {
        Self { file: None, count: AtomicU64::new(0) }
    }

    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Some(Mutex::new(File::create(path)?)), count: AtomicU64::new(0) })
    }

    /// A number for something that happens now.
    pub(crate) fn number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn write(&self, entry: &Value) {
        if let Some(file) = &self.file {
            // One write per line: a concurrent reader sees whole lines.
            let _ = file.lock().write_all(format!("{entry}\n").as_bytes());
        }
    }
}
