//! `session/archive`, `unarchive`, `status` and `set_title`. Unstable.

use crate::shape::*;
use crate::v1::SessionId;

markers! {
    /// The agent has `session/archive` and `session/unarchive`.
    SessionArchiveCapabilities,
    /// The agent has `session/status`.
    SessionStatusCapabilities,
    /// The agent has `session/set_title`.
    SessionTitleCapabilities,
}

open_enum! {
    /// Which sessions to list. SSTAT-06: a value that is not listed is refused by the agent. Unstable.
    pub enum SessionArchiveFilter {
        /// Those that are not archived.
        Exclude = "exclude",
        /// All.
        Include = "include",
        /// Those that are archived.
        Only = "only",
    }
}

object! {
    /// Puts a session away (SSTAT-04). Unstable.
    pub struct ArchiveSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

object! {
    /// The session is put away (SSTAT-07). Unstable.
    pub struct ArchiveSessionResponse [nullable] {}
}

object! {
    /// Takes a session out again (SSTAT-10). Unstable.
    pub struct UnarchiveSessionRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

object! {
    /// The session is out again (SSTAT-07). Unstable.
    pub struct UnarchiveSessionResponse [nullable] {}
}

open_enum! {
    /// Where a session is. Unstable.
    pub enum SessionStatus {
        /// In the agent's memory; this client still has to load or resume it (SSTAT-03).
        Open = "open",
        /// Only in the agent's store.
        Saved = "saved",
    }
}

impl SessionStatus {
    /// Whether the session is in the agent's memory. SSTAT-02: values that are not listed count as `saved`.
    pub fn is_open(&self) -> bool {
        matches!(self, SessionStatus::Open)
    }
}

object! {
    /// Asks where a session is, without touching it (SSTAT-01). Unstable.
    pub struct SessionStatusRequest {
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

object! {
    /// Says where a session is. Unstable.
    pub struct SessionStatusResponse {
        required {
            /// Where it is.
            status "status": SessionStatus [Required],
        }
    }
}

object! {
    /// Gives a session a title (SSTAT-08, SSTAT-09). Unstable.
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
    /// The session has a title. Unstable.
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
