//! Usage of tokens, context window and money.

pub use crate::v1::Cost;
#[cfg(feature = "unstable")]
pub use crate::v1::Usage;

use crate::Patch;
use crate::shape::*;

object! {
    /// How full the context window is.
    pub struct UsageUpdate {
        required {
            /// Tokens in the window.
            used "used": u64 [Required],
            /// How many fit.
            size "size": u64 [Required],
        }
        optional {
            /// The cost of the session so far: absent stays, `null` clears.
            cost "cost": Patch<Cost> [PatchLenient],
        }
    }
}
