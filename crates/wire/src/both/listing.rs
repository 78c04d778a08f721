//! Requests of a list of sessions, whose entries differ between the versions.

#[cfg(feature = "unstable")]
use super::SessionArchiveFilter;
use crate::shape::*;

object! {
    /// Lists sessions. A filter by other roots, which an older draft had, is ignored.
    pub struct ListSessionsRequest [nullable] { // LIST-01, LIST-14
        optional {
            /// Only sessions of this directory.
            cwd "cwd": Option<String> [Optional], // LIST-09
            /// Where the last page ended; opaque.
            cursor "cursor": Option<String> [Optional], // LIST-06, LIST-07
            /// Whether archived ones are listed.
            #[cfg(feature = "unstable")]
            archived "archived": Option<SessionArchiveFilter> [Optional], // SSTAT-06
        }
    }
}
