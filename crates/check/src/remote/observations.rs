//! Findings about the transport of a client, made while a conversation runs over it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A rule that a client kept or broke in a request or a frame.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    pub(crate) rule: &'static str,
    /// The request or frame that shows it.
    pub(crate) shown: String,
    /// Why the rule is broken; `None` if it is kept.
    pub(crate) fault: Option<String>,
}

/// The observations of one conversation, shared with the tasks of its listener.
#[derive(Clone, Debug, Default)]
pub struct Observations(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    all: Mutex<Vec<Observation>>,
    added: Notify,
}

impl Observations {
    /// Adds an observation. Of several equal ones the first is kept.
    pub(crate) fn add(&self, rule: &'static str, kept: bool, shown: &str, why: impl Into<String>) {
        let fault = (!kept).then(|| why.into());
        let mut all = self.0.all.lock();
        if !all.iter().any(|known| known.rule == rule && known.fault == fault) {
            all.push(Observation { rule, shown: shown.to_owned(), fault });
            self.0.added.notify_waiters();
        }
    }

    pub(crate) fn has(&self, rule: &str) -> bool {
        self.0.all.lock().iter().any(|known| known.rule == rule)
    }

    /// Waits until there is an observation about the rule.
    pub(crate) async fn wait(&self, rule: &str) {
        loop {
            let mut added = std::pin::pin!(self.0.added.notified());
            added.as_mut().enable();
            if self.has(rule) {
                return;
            }
            added.await;
        }
    }

    pub(crate) fn take(&self) -> Vec<Observation> {
        std::mem::take(&mut *self.0.all.lock())
    }
}
