//! Existing sessions: `session/list` and `session/delete`.

#[cfg(feature = "unstable")]
use super::SessionArchiveFilter;
use super::SessionId;
use crate::shape::*;

#[path = "../both/listing.rs"]
mod both;
pub use both::*;

object! {
    /// A page of sessions.
    pub struct ListSessionsResponse { // LIST-03, LIST-04
        required {
            /// The sessions.
            sessions "sessions": Vec<SessionInfo> [SkipInvalid],
        }
        optional {
            /// Where the next page begins; absent on the last one.
            next_cursor "nextCursor": Option<String> [LenientText], // LIST-05
        }
    }
}

object! {
    /// A session in a list.
    pub struct SessionInfo { // LIST-10
        required {
            /// Id of the session.
            session_id "sessionId": SessionId [Required],
            /// The absolute path of the working directory.
            cwd "cwd": String [Required],
        }
        optional {
            /// Roots besides `cwd`.
            additional_directories "additionalDirectories": Option<Vec<String>> [SkipInvalid], // ROOT-15, ROOT-16
            /// A title to show.
            title "title": Option<String> [LenientText], // LIST-15
            /// When something last happened in it, as ISO 8601 text.
            updated_at "updatedAt": Option<String> [LenientText],
            /// Whether it is archived.
            #[cfg(feature = "unstable")]
            archived "archived": Option<bool> [Lenient], // SSTAT-05
        }
    }
}

object! {
    /// Deletes a session.
    pub struct DeleteSessionRequest { // DEL-01, DEL-03
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The session no longer exists.
    DeleteSessionResponse, // DEL-04
}

crate::methods! {
    "session/list": ListSessionsRequest => ListSessionsResponse,
    "session/delete": DeleteSessionRequest => DeleteSessionResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::v1::*;

    #[test]
    fn filters_are_read_strictly() {
        // shows RPC-21, LIST-06, SSTAT-06
        let read = serde_json::from_str::<ListSessionsRequest>;
        assert_eq!(read("null").unwrap(), ListSessionsRequest::new());
        assert_eq!(
            read(r#"{"cwd":null,"cursor":null,"archived":null}"#).unwrap(),
            ListSessionsRequest::new()
        );
        assert!(read(r#"{"cursor":5}"#).is_err());
        assert!(read(r#"{"cwd":[]}"#).is_err());
        assert!(read(r#"{"archived":true}"#).is_err());
        // The value is kept, so that the agent can refuse it instead of listing the wrong sessions.
        let odd = read(r#"{"archived":"_x"}"#).unwrap();
        assert_eq!(odd.archived, Some(SessionArchiveFilter::Other("_x".to_owned())));
        // shows LIST-14
        assert_eq!(read(r#"{"additionalDirectories":["/a"]}"#).unwrap(), ListSessionsRequest::new());
    }

    #[test]
    fn malformed_entries_are_skipped() {
        // shows LIST-03, LIST-05, LIST-10
        let text = r#"{"sessions":[{"sessionId":"a"},{"sessionId":"b","cwd":"/b","title":7,
            "additionalDirectories":["/x",5],"archived":"?"}],"nextCursor":null}"#;
        let page: ListSessionsResponse = serde_json::from_str(text).unwrap();
        let b = SessionInfo::new("b", "/b").additional_directories(vec!["/x".to_owned()]);
        assert_eq!(page, ListSessionsResponse::new(vec![b]));
        let empty: ListSessionsResponse =
            serde_json::from_str(r#"{"sessions":null,"nextCursor":5}"#).unwrap();
        assert_eq!(empty, ListSessionsResponse::new(Vec::new()));
        assert!(serde_json::from_str::<ListSessionsResponse>("{}").is_err());
    }

    #[test]
    fn an_unknown_status_counts_as_saved() {
        // shows SSTAT-02
        let read = |text| serde_json::from_str::<SessionStatusResponse>(text);
        assert!(read(r#"{"status":"open"}"#).unwrap().status.is_open());
        assert!(!read(r#"{"status":"_x"}"#).unwrap().status.is_open());
        assert!(read("{}").is_err());
    }
}
