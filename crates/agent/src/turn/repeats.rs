//! Calls that repeat earlier ones of the turn. A model that is stuck makes the same call for ever.

use std::collections::{HashMap, HashSet};

use attache::wire::v1::ToolKind;

use super::TurnContext;
use super::model_stream::RequestedCall;
use crate::model::{Part, text_of};

/// How often a call may return the same result.
const MOST: u32 = 3;

/// The calls of a turn and their results, since something else was changed.
#[derive(Default)]
pub(super) struct Repeats {
    earlier: HashMap<String, Earlier>,
    /// All calls since the conversation was last compacted.
    since_compaction: HashSet<String>,
    /// All calls before that.
    before_compaction: HashSet<String>,
    /// The tool of a call that was repeated too often.
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
    /// `None` for a call that cannot be run, or that may be repeated.
    pub(super) fn new(cx: &TurnContext, requested: &RequestedCall) -> Option<Self> {
        let call = requested.call.as_ref().ok()?;
        let (info, _) = cx.tools.get(&call.name)?;
        let key = format!("{} {}", call.name, call.arguments);
        (info.kind != ToolKind::Think).then(|| CallKey {
            tool: call.name.clone(),
            key,
            kind: info.kind,
            is_read_only: info.is_read_only(),
        })
    }

    /// Whether the result is the same as long as no other call changes something.
    fn is_stable(&self) -> bool {
        use ToolKind::{Delete, Edit, Move, Read, Search};
        matches!(self.kind, Read | Search | Edit | Delete | Move)
    }
}

impl Repeats {
    /// The result of a call that was made before and does not have to be run again.
    pub(super) fn known(&mut self, call: &CallKey, id: &str) -> Option<Part> {
        let earlier = self.earlier.get_mut(&call.key).filter(|_| call.is_stable())?;
        earlier.count += 1;
        if earlier.count >= MOST {
            self.stuck = Some(call.tool.clone());
        }
        let mut parts =
            vec![Part::Text("Already done, nothing has changed since. The result was:\n".to_owned())];
        parts.extend(earlier.parts.iter().cloned());
        Some(Part::Result { call: id.to_owned(), parts, failed: earlier.failed })
    }

    pub(super) fn is_known(&self, call: &CallKey) -> bool {
        call.is_stable() && self.earlier.contains_key(&call.key)
    }

    /// Records the result of a call that was run.
    pub(super) fn record(&mut self, call: CallKey, result: &mut Part) {
        let Part::Result { parts, failed, .. } = result else { return };
        self.since_compaction.insert(call.key.clone());
        if !call.is_read_only {
            self.earlier.retain(|key, _| *key == call.key);
        }
        let same =
            self.earlier.get_mut(&call.key).filter(|earlier| text_of(&earlier.parts) == text_of(parts));
        let Some(earlier) = same else {
            self.earlier.insert(call.key, Earlier { count: 1, parts: parts.clone(), failed: *failed });
            return;
        };
        earlier.count += 1;
        if earlier.count >= MOST {
            self.stuck = Some(call.tool);
        }
        parts.push(Part::Text("\n[The same call returned the same result before.]".to_owned()));
    }

    /// The tool of a call that was repeated too often.
    pub(super) fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    /// Forgets the results, which the model does not see any more. Returns whether there was a new call since the last
    /// time.
    pub(super) fn compacted(&mut self) -> bool {
        self.earlier.clear();
        let calls = std::mem::take(&mut self.since_compaction);
        let has_progress = calls.iter().any(|call| !self.before_compaction.contains(call));
        self.before_compaction.extend(calls);
        has_progress
    }
}
