//! Calls that repeat earlier ones of the turn. A model that is stuck makes the same call for ever.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use attache::wire::v1::ToolKind;

use super::TurnContext;
use super::model_stream::RequestedCall;
use crate::model::{Part, text_of};
use crate::tools::ToolInfo;

/// How often a call may return the same result while nothing else is changed.
const MOST: u32 = 3;

/// How often a call may return the same result while only calls are repeated that were made before.
const MOST_WITHOUT_PROGRESS: u32 = 5;

/// The calls of a turn and their results.
#[derive(Default)]
pub(super) struct Repeats {
    /// Calls since something else was changed.
    earlier: HashMap<String, Earlier>,
    /// How often a call returned a result, since the last change by a new call. A change by a
    /// repeated call does not count: two commands that take turns would never end.
    without_progress: HashMap<u64, u32>,
    /// All calls since the conversation was last compacted.
    since_compaction: HashSet<String>,
    /// All calls before that.
    before_compaction: HashSet<String>,
    /// Why the turn has to end.
    stuck: Option<String>,
}

struct Earlier {
    count: u32,
    parts: Vec<Part>,
    failed: bool,
}

/// A call as [`Repeats`] knows it.
pub(super) struct CallKey {
    tool: String,
    key: String,
    kind: ToolKind,
    is_read_only: bool,
}

impl CallKey {
    /// The key of a call, which may be one that cannot be run: then nothing is changed by it.
    pub(super) fn new(cx: &TurnContext, requested: &RequestedCall) -> Self {
        let (tool, arguments) = match &requested.call {
            Ok(call) => (&call.name, call.arguments.to_string()),
            Err(invalid) => (&invalid.name, invalid.raw.clone()),
        };
        let info =
            requested.call.as_ref().ok().and_then(|call| cx.tools.get(&call.name)).map(|(info, _)| info);
        CallKey {
            tool: tool.clone(),
            key: format!("{tool} {arguments}"),
            kind: info.map_or(ToolKind::Other, |info| info.kind),
            is_read_only: info.is_none_or(ToolInfo::is_read_only),
        }
    }

    /// Whether the result is the same as long as no other call changes something.
    fn is_stable(&self) -> bool {
        use ToolKind::{Delete, Edit, Move, Read, Search};
        matches!(self.kind, Read | Search | Edit | Delete | Move)
    }

    /// Whether something may have changed. A command that failed may have done half of its work.
    fn has_changed_something(&self, failed: bool) -> bool {
        use ToolKind::{Delete, Edit, Move};
        let is_file_change = matches!(self.kind, Delete | Edit | Move);
        !(self.is_read_only || failed && is_file_change)
    }

    fn hash_with(&self, result: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.key, result).hash(&mut hasher);
        hasher.finish()
    }
}

impl Repeats {
    /// The result of a call that was made before and does not have to be run again.
    pub(super) fn known(&mut self, call: &CallKey, id: &str) -> Option<Part> {
        let earlier = self.earlier.get_mut(&call.key).filter(|_| call.is_stable())?;
        earlier.count += 1;
        let (count, text, failed) = (earlier.count, text_of(&earlier.parts), earlier.failed);
        let mut parts =
            vec![Part::Text("Already done, nothing has changed since. The result was:\n".to_owned())];
        parts.extend(earlier.parts.iter().cloned());
        self.check(call, count, &text);
        Some(Part::Result { call: id.to_owned(), parts, failed })
    }

    pub(super) fn is_known(&self, call: &CallKey) -> bool {
        call.is_stable() && self.earlier.contains_key(&call.key)
    }

    /// Records the result of a call that was run.
    pub(super) fn record(&mut self, call: &CallKey, result: &mut Part) {
        let Part::Result { parts, failed, .. } = result else { return };
        let is_first = self.since_compaction.insert(call.key.clone());
        let is_new = is_first && !self.before_compaction.contains(&call.key);
        if call.has_changed_something(*failed) {
            self.earlier.retain(|key, _| *key == call.key);
            if is_new {
                self.without_progress.clear();
            }
        }
        let text = text_of(parts);
        let same = self.earlier.get_mut(&call.key).filter(|earlier| text_of(&earlier.parts) == text);
        let count = match same {
            Some(earlier) => {
                earlier.count += 1;
                parts.push(Part::Text("\n[The same call returned the same result before.]".to_owned()));
                earlier.count
            }
            None => {
                let earlier = Earlier { count: 1, parts: parts.clone(), failed: *failed };
                self.earlier.insert(call.key.clone(), earlier);
                1
            }
        };
        self.check(call, count, &text);
    }

    /// Counts a result, and ends the turn if there were too many like it.
    fn check(&mut self, call: &CallKey, count: u32, text: &str) {
        let total = self.without_progress.entry(call.hash_with(text)).or_default();
        *total += 1;
        if count >= MOST {
            self.stuck = Some(format!("the model called `{}` three times with the same result", call.tool));
        } else if *total >= MOST_WITHOUT_PROGRESS {
            self.stuck = Some(format!(
                "the model called `{}` five times with the same result and made only calls in between that it had made before",
                call.tool
            ));
        }
    }

    /// Why the turn has to end, if calls were repeated too often.
    pub(super) fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    /// Forgets the results, which the model does not see any more. Returns whether there was a new
    /// call since the last time.
    pub(super) fn compacted(&mut self) -> bool {
        self.earlier.clear();
        self.without_progress.clear();
        let calls = std::mem::take(&mut self.since_compaction);
        let has_progress = calls.iter().any(|call| !self.before_compaction.contains(call));
        self.before_compaction.extend(calls);
        has_progress
    }
}
