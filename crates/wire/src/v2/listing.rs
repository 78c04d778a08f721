//! Existing sessions: `session/list` and `session/delete`.

#[cfg(feature = "unstable")]
pub use crate::v1::SessionArchiveFilter;
pub use crate::v1::{DeleteSessionRequest, DeleteSessionResponse};

use crate::shape::*;
use crate::v2::SessionId;

#[path = "../both/listing.rs"]
mod both;
pub use both::*;

object! {
    /// A page of sessions.
    pub struct ListSessionsResponse {
        required {
            /// The sessions.
            sessions "sessions": Vec<SessionInfo> [SkipInvalid],
        }
        optional {
            // V2-45
            /// Where the next page begins; absent on the last one. An empty cursor is a cursor.
            next_cursor "nextCursor": Option<String> [Optional],
        }
    }
}

object! {
    /// A session in a list.
    pub struct SessionInfo {
        required {
            /// Id of the session.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory.
            cwd "cwd": String [Required],
        }
        optional {
            /// Roots besides `cwd`.
            additional_directories "additionalDirectories": Vec<String> [OptionalList],
            /// A title to show.
            title "title": Option<String> [LenientText],
            /// When something last happened in it, as RFC 3339 text.
            updated_at "updatedAt": Option<String> [LenientText],
            /// Whether it is archived.
            #[cfg(feature = "unstable")]
            archived "archived": Option<bool> [Lenient],
        }
    }
}

crate::methods! {
    "session/list": ListSessionsRequest => ListSessionsResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_cursor_may_be_empty_but_not_a_number() {
        // shows V2-45
        let read = serde_json::from_str::<ListSessionsResponse>;
        assert_eq!(read(r#"{"sessions":[],"nextCursor":""}"#).unwrap().next_cursor.as_deref(), Some(""));
        assert_eq!(read(r#"{"sessions":null,"nextCursor":null}"#).unwrap(), ListSessionsResponse::new([]));
        assert!(read(r#"{"sessions":[],"nextCursor":5}"#).is_err());
    }
}
