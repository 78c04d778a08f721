//! Plans of the agent, each with an id.

use crate::shape::*;
use crate::v2::PlanId;
#[cfg(feature = "unstable")]
use crate::v2::{PlanFile, PlanMarkdown};

#[path = "../both/plan.rs"]
mod both;
pub use both::*;

open_enum! {
    /// The priority of an entry.
    pub enum PlanEntryPriority {
        /// High.
        High = "high",
        /// Medium.
        Medium = "medium",
        /// Low.
        Low = "low",
    }
}

open_enum! {
    /// The status of an entry.
    pub enum PlanEntryStatus {
        /// Not begun.
        Pending = "pending",
        /// Being worked on.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// Given up.
        Cancelled = "cancelled",
    }
}

object! {
    /// A plan as a list of entries, which replaces the list before it.
    pub struct PlanItems {
        required {
            /// The plan.
            plan_id "planId": PlanId [Required],
            /// All entries; malformed ones are skipped.
            entries "entries": Vec<PlanEntry> [ListSkipInvalid],
        }
    }
}

tagged! {
    // PLAN-09
    /// The content of a plan. Content of an unlisted type names its plan too.
    pub enum PlanUpdateContent by "type" {
        /// Entries.
        Items(PlanItems) = "items",
        /// A file.
        #[cfg(feature = "unstable")]
        File(PlanFile) = "file",
        /// A text.
        #[cfg(feature = "unstable")]
        Markdown(PlanMarkdown) = "markdown",
    }
    other Other ["planId"]
}

impl PlanUpdateContent {
    /// The plan.
    pub fn plan_id(&self) -> Option<PlanId> {
        match self {
            PlanUpdateContent::Items(plan) => Some(plan.plan_id.clone()),
            #[cfg(feature = "unstable")]
            PlanUpdateContent::File(plan) => Some(plan.plan_id.clone()),
            #[cfg(feature = "unstable")]
            PlanUpdateContent::Markdown(plan) => Some(plan.plan_id.clone()),
            PlanUpdateContent::Other(unknown) => unknown.get("planId"),
        }
    }
}

object! {
    /// Sets one of a session's plans.
    pub struct PlanUpdate {
        required {
            /// The plan.
            plan "plan": PlanUpdateContent [Required],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_plan_has_an_id() {
        // shows PLAN-09, V2-20, V2-21
        let read = serde_json::from_str::<PlanUpdateContent>;
        assert!(read(r#"{"type":"_tree","root":1}"#).is_err());
        assert!(read(r#"{"type":"items","planId":"p","entries":null}"#).is_err());
        let text = r#"{"type":"_tree","planId":"p","root":1}"#;
        assert_eq!(read(text).unwrap().plan_id(), Some("p".into()));
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        let text =
            r#"{"type":"items","planId":"p","entries":[5,{"content":"c","priority":"low","status":"_x"}]}"#;
        let PlanUpdateContent::Items(items) = read(text).unwrap() else { panic!() };
        assert_eq!(items.entries[0].status, PlanEntryStatus::Other("_x".to_owned()));
    }
}
