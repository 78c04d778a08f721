//! An entry of a plan. Priorities and statuses are open in version 2 only.

use super::{PlanEntryPriority, PlanEntryStatus};
use crate::shape::*;

object! {
    /// One step of a plan.
    pub struct PlanEntry {
        required {
            /// The task.
            content "content": String [Required],
            /// The priority.
            priority "priority": PlanEntryPriority [Required],
            /// The status.
            status "status": PlanEntryStatus [Required],
        }
    }
}
