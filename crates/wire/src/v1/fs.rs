//! Files through the client: `fs/read_text_file` and `fs/write_text_file`.

// FS-01 to FS-17

use crate::shape::*;
use crate::v1::SessionId;

object! {
    /// Reads a file as the client sees it, unsaved changes included.
    pub struct ReadTextFileRequest { // FS-09
        required {
            /// The session.
            session_id "sessionId": SessionId [Required], // FS-07
            /// The absolute path.
            path "path": String [Required], // FS-04
        }
        optional {
            /// The first line, counted from 1.
            line "line": Option<u32> [Optional], // FS-05
            /// How many lines at most.
            limit "limit": Option<u32> [Optional], // FS-06
        }
    }
}

object! {
    /// The text.
    pub struct ReadTextFileResponse {
        required {
            /// The text.
            content "content": String [Required],
        }
    }
}

object! {
    /// Writes a file; a missing file is created.
    pub struct WriteTextFileRequest { // FS-10
        required {
            /// The session.
            session_id "sessionId": SessionId [Required], // FS-07
            /// The absolute path.
            path "path": String [Required], // FS-04
            /// The whole text.
            content "content": String [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// It was written.
    WriteTextFileResponse, // FS-12
}

crate::methods! {
    "fs/read_text_file": ReadTextFileRequest => ReadTextFileResponse,
    "fs/write_text_file": WriteTextFileRequest => WriteTextFileResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_line_range_is_not_guessed() {
        // shows FS-05, FS-06, FS-07
        let read = |text: &str| serde_json::from_str::<ReadTextFileRequest>(text);
        assert_eq!(read(r#"{"sessionId":"s","path":"/a","line":null}"#).unwrap().line, None);
        for bad in [r#""line":-1"#, r#""line":"1""#, r#""limit":1.5"#, r#""limit":4294967296"#] {
            assert!(read(&format!(r#"{{"sessionId":"s","path":"/a",{bad}}}"#)).is_err(), "{bad}");
        }
        assert!(read(r#"{"path":"/a"}"#).is_err());
    }

    #[test]
    fn a_write_may_be_answered_with_null_but_a_read_may_not() {
        // shows RPC-22, FS-12
        assert_eq!(crate::decode::<WriteTextFileResponse>(None).unwrap(), WriteTextFileResponse::new());
        assert_eq!(serde_json::to_string(&WriteTextFileResponse::new()).unwrap(), "{}");
        assert!(serde_json::from_str::<ReadTextFileResponse>("null").is_err());
        assert!(serde_json::from_str::<WriteTextFileResponse>("[]").is_err());
    }
}
