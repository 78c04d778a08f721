//! The status of plan entries in both versions.

use attache_wire::v1::{PlanEntry, PlanEntryStatus};
use attache_wire::v2::PlanEntryStatus as PlanStatus;
use attache_wire::{Json, Meta};
use serde_json::{Map, Value, json};

/// The member of `_meta` that holds a status which version 1 does not have.
const KEY: &str = "attache";

/// Returns the status of an entry, also one that only version 2 has: there an entry can be
/// cancelled. Version 1 shows such an entry as completed.
///
/// ```
/// use attache::client::{PlanStatus, plan_status};
/// use attache::model::{PlanEntry, PlanEntryPriority, PlanEntryStatus};
///
/// let entry = PlanEntry::new("Build", PlanEntryPriority::High, PlanEntryStatus::Pending);
/// assert_eq!(plan_status(&entry), PlanStatus::Pending);
/// ```
pub fn plan_status(entry: &PlanEntry) -> PlanStatus {
    match entry.status {
        PlanEntryStatus::InProgress => PlanStatus::InProgress,
        PlanEntryStatus::Completed if is_cancelled(entry) => PlanStatus::Cancelled,
        PlanEntryStatus::Completed => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    }
}

fn is_cancelled(entry: &PlanEntry) -> bool {
    let own: Option<Value> = entry.meta.as_ref().and_then(|meta| meta.get(KEY));
    own.is_some_and(|own| own["status"] == "cancelled")
}

/// The status in version 1.
pub(crate) fn to_v1(status: &PlanStatus) -> PlanEntryStatus {
    match status {
        PlanStatus::InProgress => PlanEntryStatus::InProgress,
        PlanStatus::Completed | PlanStatus::Cancelled => PlanEntryStatus::Completed,
        _ => PlanEntryStatus::Pending,
    }
}

/// The `_meta` of a cancelled entry.
pub(crate) fn cancelled(meta: Option<Meta>) -> Option<Meta> {
    let mut members: Map<String, Value> =
        meta.as_ref().and_then(|meta| meta.as_json().parse().ok()).unwrap_or_default();
    members.insert(KEY.to_owned(), json!({"status": "cancelled"}));
    Meta::from_json(Json::from(Value::Object(members)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use attache_wire::v1::PlanEntryPriority;

    use super::*;

    #[test]
    fn a_cancelled_entry_keeps_its_meta() {
        let meta = Meta::new(&json!({"a": 1})).unwrap();
        let entry =
            |meta| PlanEntry::new("step", PlanEntryPriority::Low, to_v1(&PlanStatus::Cancelled)).meta(meta);
        let cancelled = entry(cancelled(Some(meta.clone())));
        assert_eq!(plan_status(&cancelled), PlanStatus::Cancelled);
        assert_eq!(cancelled.meta.unwrap().get::<u8>("a"), Some(1));
        assert_eq!(plan_status(&entry(Some(meta))), PlanStatus::Completed);
        assert_eq!(plan_status(&entry(super::cancelled(None))), PlanStatus::Cancelled);
    }
}
