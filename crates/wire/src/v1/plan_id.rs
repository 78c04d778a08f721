//! Ids of plans: unstable in version 1, stable in version 2.

use crate::shape::*;

ids! {
    /// Id of a plan, unique in its session.
    PlanId,
}
