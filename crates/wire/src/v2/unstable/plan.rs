//! Plans in files and texts, and their removal. Unstable.

use crate::shape::*;
use crate::v2::PlanId;

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

object! {
    /// Removes a plan.
    pub struct PlanRemoved {
        required {
            /// The plan.
            plan_id "planId": PlanId [Required],
        }
    }
}
