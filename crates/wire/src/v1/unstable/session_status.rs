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
    /// Filter by archive state. Agents refuse unlisted values.
    pub enum SessionArchiveFilter { // SSTAT-06
        /// Sessions that are not archived.
        Exclude = "exclude",
        /// All sessions.
        Include = "include",
        /// Archived sessions.
        Only = "only",
    }
}

object! {
    /// Archives a session.
    pub struct ArchiveSessionRequest { // SSTAT-04
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The session is archived.
    ArchiveSessionResponse, // SSTAT-07
}

object! {
    /// Restores an archived session.
    pub struct UnarchiveSessionRequest { // SSTAT-10
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The session is restored.
    UnarchiveSessionResponse, // SSTAT-07
}

open_enum! {
    /// The status of a session.
    pub enum SessionStatus {
        /// In the agent's memory; this client still has to load or resume it.
        Open = "open", // SSTAT-03
        /// Only in the agent's store.
        Saved = "saved",
    }
}

impl SessionStatus {
    // SSTAT-02
    /// Whether the session is in the agent's memory. Unlisted values count as `saved`.
    pub fn is_open(&self) -> bool {
        matches!(self, SessionStatus::Open)
    }
}

object! {
    /// Requests the status of a session without changing it.
    pub struct SessionStatusRequest { // SSTAT-01
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
    /// Sets the title of a session.
    pub struct SetSessionTitleRequest { // SSTAT-08, SSTAT-09
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
            /// The title as the agent keeps it, which is the one to show.
            title "title": String [Required], // SSTAT-11
        }
    }
}

crate::methods! {
    "session/archive": ArchiveSessionRequest => ArchiveSessionResponse,
    "session/unarchive": UnarchiveSessionRequest => UnarchiveSessionResponse,
    "session/status": SessionStatusRequest => SessionStatusResponse,
    "session/set_title": SetSessionTitleRequest => SetSessionTitleResponse,
}
