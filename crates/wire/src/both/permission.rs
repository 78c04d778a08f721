//! Options and answers of a permission request. Kinds of options and outcomes are open in version 2
//! only.

use super::{PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest};
use crate::shape::*;

object! {
    /// An option that the user can choose.
    pub struct PermissionOption { // PERM-03
        required {
            /// Id of the option.
            option_id "optionId": PermissionOptionId [Required],
            /// The text to show.
            name "name": String [Required],
            /// The meaning of the option.
            kind "kind": PermissionOptionKind [Required],
        }
    }
}

object! {
    /// The answer.
    pub struct RequestPermissionResponse {
        required {
            /// The outcome.
            outcome "outcome": RequestPermissionOutcome [Required],
        }
    }
}

crate::methods! {
    "session/request_permission": RequestPermissionRequest => RequestPermissionResponse,
}
