//! Capabilities of the client. Absent means unsupported; malformed means absent.

// INIT-15, INIT-20

#[cfg(feature = "drafts")]
use super::{ClientNesCapabilities, PositionEncodingKind};
#[cfg(feature = "unstable")]
use super::{PlanCapabilities, SubagentCapabilities};
use crate::shape::*;

object! {
    /// Capabilities of the client, sent once in `initialize`. Extensions use `meta`.
    pub struct ClientCapabilities { // INIT-17, INIT-27, INIT-28
        optional {
            /// File access that it provides.
            fs "fs": FileSystemCapabilities [OrDefault],
            /// Whether it has all `terminal/*` methods.
            terminal "terminal": bool [OrDefault],
            /// Session capabilities.
            session "session": Option<ClientSessionCapabilities> [Lenient],
            /// Whether it shows subagents.
            #[cfg(feature = "unstable")]
            subagents "subagents": Option<SubagentCapabilities> [Lenient], // SUBA-01
            /// Whether it takes plans by id.
            #[cfg(feature = "unstable")]
            plan "plan": Option<PlanCapabilities> [Lenient],
            /// Authentication methods that need the client.
            auth "auth": AuthCapabilities [OrDefault],
            /// Kinds of questions that it can show.
            elicitation "elicitation": Option<ElicitationCapabilities> [Lenient],
            /// Edit suggestions it takes; only in older drafts.
            #[cfg(feature = "drafts")]
            nes "nes": Option<ClientNesCapabilities> [Lenient],
            /// Position encodings it supports, best first; only in older drafts.
            #[cfg(feature = "drafts")]
            position_encodings "positionEncodings": Option<Vec<PositionEncodingKind>> [SkipInvalid], // NES-10
        }
    }
}

object! {
    /// File access that the client provides.
    pub struct FileSystemCapabilities {
        optional {
            /// Whether it has `fs/read_text_file`.
            read_text_file "readTextFile": bool [OrDefault],
            /// Whether it has `fs/write_text_file`.
            write_text_file "writeTextFile": bool [OrDefault],
        }
    }
}

object! {
    /// Session capabilities of the client.
    pub struct ClientSessionCapabilities {
        optional {
            /// Whether it shows compactions.
            compaction "compaction": Option<CompactionCapabilities> [Lenient],
            /// Kinds of config options that it supports besides selects.
            config_options "configOptions": Option<SessionConfigOptionsCapabilities> [Lenient],
            /// Whether it shows notices.
            notices "notices": Option<NoticeCapabilities> [Lenient],
        }
    }
}

object! {
    /// Kinds of config options that the client supports besides selects.
    pub struct SessionConfigOptionsCapabilities {
        optional {
            /// On and off.
            boolean "boolean": Option<BooleanConfigOptionCapabilities> [Lenient], // CONF-07
        }
    }
}

object! {
    /// The client shows compactions.
    pub struct CompactionCapabilities { no_meta! }
}

object! {
    /// The client shows notices.
    pub struct NoticeCapabilities { no_meta! }
}

object! {
    /// Authentication methods that need the client.
    pub struct AuthCapabilities {
        optional {
            /// Whether it can run the agent in a terminal to log in.
            terminal "terminal": bool [OrDefault], // AUTH-08, AUTH-09
        }
    }
}

object! {
    /// Kinds of questions that the client can show; an empty object means none.
    pub struct ElicitationCapabilities {
        optional {
            /// Forms.
            form "form": Option<ElicitationFormCapabilities> [Lenient],
            /// URLs to open.
            url "url": Option<ElicitationUrlCapabilities> [Lenient],
        }
    }
}

empty_objects! {
    /// The client shows boolean config options.
    BooleanConfigOptionCapabilities,
    /// The client shows forms.
    ElicitationFormCapabilities,
    /// The client opens URLs.
    ElicitationUrlCapabilities,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> ClientCapabilities {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn malformed_capabilities_are_absent() {
        // shows INIT-15, INIT-20
        let text = r#"{"fs":true,"terminal":"yes","elicitation":7,"auth":null,"session":[],"plan":true}"#;
        assert_eq!(read(text), ClientCapabilities::new());
    }

    #[test]
    fn empty_object_means_yes_and_null_means_no() {
        // shows INIT-19
        let caps =
            read(r#"{"elicitation":{"form":null,"url":{}},"session":{"notices":{},"compaction":null}}"#);
        let elicitation = caps.elicitation.unwrap();
        assert!(elicitation.form.is_none() && elicitation.url.is_some());
        let session = caps.session.unwrap();
        assert!(session.notices.is_some() && session.compaction.is_none());
    }

    #[test]
    fn only_what_is_supported_is_written() {
        let caps = ClientCapabilities::new()
            .fs(FileSystemCapabilities::new().read_text_file(true))
            .terminal(true)
            .plan(PlanCapabilities::new());
        let text = r#"{"fs":{"readTextFile":true},"terminal":true,"plan":{}}"#;
        assert_eq!(serde_json::to_string(&caps).unwrap(), text);
        assert_eq!(read(text), caps);
    }

    #[test]
    fn unknown_position_encodings_are_skipped() {
        // shows NES-10
        let caps = read(r#"{"positionEncodings":["ebcdic","utf-8"]}"#);
        assert_eq!(caps.position_encodings, Some(vec![PositionEncodingKind::Utf8]));
    }
}
