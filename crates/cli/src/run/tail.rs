//! The last lines of an agent's stderr, kept to explain its errors.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use attache_host::secrets::Mask;
use parking_lot::{Mutex, MutexGuard};

use crate::connect::OnStderr;

/// Lines that are kept, and bytes of each.
const LINES: usize = 16;
const LONGEST: usize = 2000;

/// How long an error waits for the lines that explain it.
const DELAY: Duration = Duration::from_millis(50);

/// The lines, without secrets. Clones are the same.
#[derive(Clone)]
pub(crate) struct StderrTail(Arc<Inner>);

struct Inner {
    mask: Mask,
    lines: Mutex<VecDeque<String>>,
}

impl StderrTail {
    pub(crate) fn new(mask: Mask) -> StderrTail {
        StderrTail(Arc::new(Inner { mask, lines: Mutex::default() }))
    }

    /// Listens to an agent, and lets another listener hear the lines too.
    pub(crate) fn listen(&self, mut other: Option<OnStderr>) -> OnStderr {
        let tail = self.clone();
        Box::new(move |line| {
            tail.push(line);
            if let Some(other) = &mut other {
                other(line);
            }
        })
    }

    fn push(&self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let line: String = self.0.mask.text(line).chars().take(LONGEST).collect();
        let mut lines = self.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Waits a moment for lines that were printed before an answer and are still on their way
    /// through the other pipe.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(DELAY).await;
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// Drops all lines, before the next turn.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lines.lock()
    }
}
