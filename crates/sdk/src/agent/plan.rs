//! Several plans of one session.

use std::fmt;
use std::sync::Arc;

use attache_wire::v1::{Plan, PlanEntry, SessionUpdate};
use attache_wire::v2::PlanId;
use serde::ser::{Serialize, Serializer};

use super::client::Recordable;
use super::turn_state::TurnState;
use super::v2::{self, MessageIds};
use crate::Result;

/// One of several plans of a session. Made by [`Turn::plan_named`](super::Turn::plan_named).
///
/// Version 1 shows one plan: the one that changed last. When that one is removed, it is empty.
///
/// ```
/// use attache::agent::Turn;
/// use attache::model::{PlanEntry, PlanEntryPriority, PlanEntryStatus};
///
/// async fn plan(turn: Turn<'_>) -> attache::Result<()> {
///     let tests = turn.plan_named("tests");
///     let entry = PlanEntry::new("Run them", PlanEntryPriority::High, PlanEntryStatus::Pending);
///     tests.set(vec![entry]).await?;
///     tests.remove().await
/// }
/// ```
// PLAN-07, PLAN-08
pub struct NamedPlan {
    turn: Arc<TurnState>,
    id: PlanId,
}

impl NamedPlan {
    pub(super) fn new(turn: Arc<TurnState>, id: PlanId) -> Self {
        NamedPlan { turn, id }
    }

    /// The plan's id.
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// Reports all entries, which replace the ones before.
    // PLAN-03
    pub async fn set(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.turn.shared().show_plan(&self.id);
        self.turn.update(&PlanChange { id: &self.id, plan: Plan::new(entries), removed: false }).await
    }

    /// Removes the plan. Without the feature `unstable` it is empty in version 2 as well.
    pub async fn remove(&self) -> Result<()> {
        if !self.turn.client().is_v2() && !self.turn.shared().is_shown_plan(&self.id) {
            return Ok(());
        }
        self.turn.update(&PlanChange { id: &self.id, plan: Plan::new(Vec::new()), removed: true }).await
    }
}

impl fmt::Debug for NamedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedPlan").field(&self.id).finish()
    }
}

struct PlanChange<'a> {
    id: &'a PlanId,
    plan: Plan,
    #[cfg_attr(not(feature = "unstable"), expect(dead_code, reason = "an unstable update"))]
    removed: bool,
}

impl Recordable for PlanChange<'_> {
    fn to_update(&self) -> Option<SessionUpdate> {
        Some(SessionUpdate::Plan(self.plan.clone()))
    }
    fn serialize_v2<S: Serializer>(&self, ids: &mut MessageIds, serializer: S) -> Result<S::Ok, S::Error> {
        ids.end_message();
        #[cfg(feature = "unstable")]
        if self.removed {
            let removed = attache_wire::v2::PlanRemoved::new(self.id.clone());
            return attache_wire::v2::SessionUpdate::from(removed).serialize(serializer);
        }
        v2::plan_items(self.id, &self.plan, serializer)
    }
}

impl Serialize for PlanChange<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SessionUpdate::Plan(self.plan.clone()).serialize(serializer)
    }
}
