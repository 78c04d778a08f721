//! `session/archive`, `unarchive`, `status` and `set_title`. Unstable.

pub use crate::v1::{
    ArchiveSessionRequest, ArchiveSessionResponse, SessionStatus, SetSessionTitleRequest,
    SetSessionTitleResponse, UnarchiveSessionRequest, UnarchiveSessionResponse,
};

use crate::shape::*;
use crate::v2::{SessionId, StateUpdate};

object! {
    /// Requests the status of a session without changing it.
    pub struct SessionStatusRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

object! {
    /// The status of a session.
    pub struct SessionStatusResponse {
        required {
            /// The status.
            status "status": SessionStatus [Required],
        }
        optional {
            /// The state, if the session is open.
            state "state": Option<StateUpdate> [Lenient],
        }
    }
}

crate::methods! {
    "session/status": SessionStatusRequest => SessionStatusResponse,
}
