//! Plans of the agent.

// PLAN-01 to PLAN-10

use crate::shape::*;

#[path = "../both/plan.rs"]
mod both;
pub use both::*;

closed_enum! {
    /// The priority of an entry.
    pub enum PlanEntryPriority { // PLAN-06
        /// High.
        High = "high",
        /// Medium.
        Medium = "medium",
        /// Low.
        Low = "low",
    }
}

closed_enum! {
    /// The status of an entry.
    pub enum PlanEntryStatus { // PLAN-06
        /// Not begun.
        Pending = "pending",
        /// Being worked on.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}

object! {
    /// The session's plan. It lists every entry and replaces the plan before it.
    pub struct Plan { // PLAN-03, PLAN-04
        required {
            /// All entries; malformed ones are skipped.
            entries "entries": Vec<PlanEntry> [SkipInvalid], // PLAN-10
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::v1::*;

    #[test]
    fn malformed_entries_are_skipped_but_the_list_must_be_there() {
        // shows PLAN-10
        let good = r#"{"content":"a","priority":"low","status":"in_progress"}"#;
        let bad = r#"{"content":"a","priority":"urgent","status":"pending"}"#;
        let plan: Plan = serde_json::from_str(&format!(r#"{{"entries":[{bad},{good},5]}}"#)).unwrap();
        let entry = PlanEntry::new("a", PlanEntryPriority::Low, PlanEntryStatus::InProgress);
        assert_eq!(plan, Plan::new([entry]));
        for text in [r#"{"entries":"none"}"#, r#"{"entries":null}"#] {
            assert_eq!(serde_json::from_str::<Plan>(text).unwrap(), Plan::new([]));
        }
        assert!(serde_json::from_str::<Plan>("{}").is_err());
    }

    #[test]
    fn plan_updates_are_closed_and_need_an_id() {
        // shows PLAN-09
        let read = serde_json::from_str::<PlanUpdate>;
        assert!(read(r#"{"plan":{"type":"items","entries":[]}}"#).is_err());
        assert!(read(r#"{"plan":{"type":"canvas","planId":"p"}}"#).is_err());
        let update = read(r#"{"plan":{"content":"x","planId":"p","type":"markdown"}}"#).unwrap();
        assert_eq!(update, PlanUpdate::new(PlanMarkdown::new("p", "x")));
    }
}
