//! Several plans in one session: `plan_update` and `plan_removed`. Unstable.

use crate::shape::*;
use crate::v1::{PlanEntry, PlanId};

empty_objects! {
    /// The client takes plans by id.
    PlanCapabilities,
}

object! {
    /// A plan as a list of entries.
    pub struct PlanItems {
        required {
            /// The plan.
            plan_id "planId": PlanId [Required],
            /// All entries; malformed ones are skipped.
            entries "entries": Vec<PlanEntry> [SkipInvalid], // PLAN-10
        }
    }
}

object! {
    /// A plan that is kept in a file.
    pub struct PlanFile {
        required {
            /// The plan.
            plan_id "planId": PlanId [Required],
            /// Where the file is.
            uri "uri": String [Required],
        }
    }
}

object! {
    /// A plan as a text.
    pub struct PlanMarkdown {
        required {
            /// The plan.
            plan_id "planId": PlanId [Required],
            /// The text, in Markdown.
            content "content": String [Required],
        }
    }
}

tagged! {
    /// The content of a plan.
    pub enum PlanUpdateContent by "type" { // PLAN-09
        /// Entries.
        Items(PlanItems) = "items",
        /// A file.
        File(PlanFile) = "file",
        /// A text.
        Markdown(PlanMarkdown) = "markdown",
    }
}

object! {
    /// Sets one of a session's plans. Each plan id is tracked separately.
    pub struct PlanUpdate { // PLAN-09
        required {
            /// The plan.
            plan "plan": PlanUpdateContent [Required],
        }
    }
}

object! {
    /// Removes a plan.
    pub struct PlanRemoved {
        required {
            /// The plan.
            plan_id "planId": PlanId [Required],
        }
    }
}
