//! Subagents: sessions that another session started, and messages between them. Unstable.

pub use crate::v1::{SessionCancelCapabilities, SubagentSessionCapabilities};

use crate::shape::*;
use crate::v2::{BackgroundWork, ContentBlock, MessageId, SessionId, StateUpdate};

#[path = "../../both/subagent.rs"]
mod both;
pub use both::*;

object! {
    /// A subagent that works in the background.
    pub struct BackgroundSubagent {
        required {
            /// Its session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

object! {
    /// The state is unknown; the previous one is no longer confirmed.
    pub struct UnknownStateUpdate {
        optional {
            // V2-36
            /// All background work; absent if it is not reported.
            background "background": Option<Vec<BackgroundWork>> [Lenient],
        }
    }
}
