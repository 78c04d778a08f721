//! `session/archive`, `unarchive`, `status` and `set_title`. Unstable.

use crate::shape::*;
use crate::v1::SessionId;

empty_objects! {
    /// The agent has `session/archive` and `session/unarchive`.
    SessionArchiveCapabilities,
    /// The agent has `session/status`.
    SessionStatusCapabilities,
    /// The agent has `session/set_title`.
    SessionTitleCapabilities,
}

open_enum! {
    /// Filter by archive state. SSTAT-06: agents refuse unlisted values.
    pub enum SessionArchiveFilter {
        /// Sessions that are not archived.
        Exclude = "exclude",
        /// All sessions.
        Include = "include",
        /// Archived sessions.
        Only = "only",
    }
}

object! {
    /// Archives a session (SSTAT-04).
    pub struct ArchiveSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The session is archived (SSTAT-07).
    ArchiveSessionResponse,
}

object! {
    /// Restores an archived session (SSTAT-10).
    pub struct UnarchiveSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The session is restored (SSTAT-07).
    UnarchiveSessionResponse,
}

open_enum! {
    /// The status of a session.
    pub enum SessionStatus {
        /// In the agent's memory; this client still has to load or resume it (SSTAT-03).
        Open = "open",
        /// Only in the agent's store.
        Saved = "saved",
    }
}

impl SessionStatus {
    /// Whether the session is in the agent's memory. SSTAT-02: unlisted values count as `saved`.
    pub fn is_open(&self) -> bool {
        matches!(self, SessionStatus::Open)
    }
}

object! {
    /// Requests the status of a session without changing it (SSTAT-01).
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
    }
}

object! {
    /// Sets the title of a session (SSTAT-08, SSTAT-09).
    pub struct SetSessionTitleRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The title.
            title "title": String [Required],
        }
    }
}

object! {
    /// The title is set.
    pub struct SetSessionTitleResponse {
        required {
            /// The title as the agent keeps it, which is the one to show (SSTAT-11).
            title "title": String [Required],
        }
    }
}

crate::methods! {
    "session/archive": ArchiveSessionRequest => ArchiveSessionResponse,
    "session/unarchive": UnarchiveSessionRequest => UnarchiveSessionResponse,
    "session/status": SessionStatusRequest => SessionStatusResponse,
    "session/set_title": SetSessionTitleRequest => SetSessionTitleResponse,
}
