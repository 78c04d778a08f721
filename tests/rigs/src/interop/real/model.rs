//! The model's process, and what its log says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A model that is running. It ends when this is dropped.
pub(super) struct Model {
    child: Child,
    pub(super) url: String,
    log: PathBuf,
}

impl Model {
    pub(super) fn start(program: &str, log: &Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg("--log").arg(log).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut url).map_err(|error| format!("{program}: {error}"))?;
        }
        Ok(Self { child, url: url.trim().to_owned(), log: log.to_owned() })
    }

    /// Stops the model and returns its requests.
    pub(super) fn finish(self) -> Result<ModelRequests, String> {
        let log = self.log.clone();
        drop(self);
        let text = fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        Ok(ModelRequests(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// What a model was asked, in order.
pub(super) struct ModelRequests(Vec<Value>);

impl ModelRequests {
    fn entries(&self, what: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |entry| entry["what"] == what)
    }

    /// The requests of a conversation that has this marker; those for titles and the like offer no
    /// tools.
    pub(super) fn with(&self, marker: &str) -> Vec<&Value> {
        let offers = |entry: &Value| entry["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        self.entries("model").filter(|entry| entry["marker"] == marker && offers(entry)).collect()
    }

    /// Whether the agent hung up on a request with this marker.
    pub(super) fn dropped(&self, marker: &str) -> bool {
        self.with(marker).iter().any(|asked| self.entries("dropped").any(|entry| entry["n"] == asked["n"]))
    }

    /// What was to be reached elsewhere.
    pub(super) fn outside(&self) -> Vec<&str> {
        self.entries("outside").filter_map(|entry| entry["target"].as_str()).collect()
    }
}
